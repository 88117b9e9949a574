// The Python module `mlc._native`.
#include "capi.h"

#include "mlir-c/Diagnostics.h"
#include "mlir/Bindings/Python/Nanobind.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include <atomic>
#include <cstring>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <set>

namespace nb = nanobind;

namespace {

/// A malloc'd text as a string.
std::string take(char *text) {
  std::string copy = text ? text : "unknown error";
  free(text);
  return copy;
}

void append(MlirStringRef text, void *user) {
  static_cast<std::string *>(user)->append(text.data, text.length);
}

/// Collects errors and warnings of a context while it lives. Python callbacks
/// would need the GIL, which the threads that emit diagnostics do not hold.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(MlirContext context) : context(context) {
    id = mlirContextAttachDiagnosticHandler(context, handle, this, nullptr);
  }
  ~DiagnosticCollector() { mlirContextDetachDiagnosticHandler(context, id); }
  std::vector<std::string> errors;

private:
  static MlirLogicalResult handle(MlirDiagnostic diagnostic, void *user) {
    if (mlirDiagnosticGetSeverity(diagnostic) != MlirDiagnosticError)
      return mlirLogicalResultFailure(); // not ours: the next handler prints it
    auto *collector = static_cast<DiagnosticCollector *>(user);
    std::string text = describe(diagnostic);
    for (intptr_t i = 0; i < mlirDiagnosticGetNumNotes(diagnostic); ++i)
      text += "\n  note: " + describe(mlirDiagnosticGetNote(diagnostic, i));
    collector->errors.push_back(
        std::move(text)); // MLIR calls one handler at a time
    return mlirLogicalResultSuccess();
  }
  static std::string describe(MlirDiagnostic diagnostic) {
    std::string text;
    mlirLocationPrint(mlirDiagnosticGetLocation(diagnostic), append, &text);
    text += ": ";
    mlirDiagnosticPrint(diagnostic, append, &text);
    return text;
  }

  MlirContext context;
  MlirDiagnosticHandlerID id;
};

//===- Passes written in Python -------------------------------------------===//
// Callbacks come from any MLIR thread and take the GIL first. Exceptions never
// cross into MLIR, which has none.

std::atomic<bool> inOptMain{false};

nb::object toPython(MlirOperation op) {
  nb::object capsule = nb::steal(mlirPythonOperationToCapsule(op));
  return nb::module_::import_("mlir.ir")
      .attr("Operation")
      .attr("_CAPICreate")(capsule);
}

/// The bindings' context object owns the MLIRContext that it wraps, but
/// MlirOptMain's lives on its stack: one reference is leaked so that Python
/// never destroys it.
void adoptForeignContext(MlirOperation op) {
  static std::set<void *> seen;
  MlirContext context = mlirOperationGetContext(op);
  if (inOptMain && seen.insert(context.ptr).second)
    nb::object(toPython(op).attr("context")).release();
}

char *describe(nb::python_error &error) {
  nb::object format =
      nb::module_::import_("mlc.passes.base").attr("describe_exception");
  return strdup(nb::cast<std::string>(format(error.value())).c_str());
}

/// What a running pass may tell MLIR.
struct PassHandle {
  MlcPassRef pass;
  bool failed = false;
};

void *createInstance(void *user, const char *const *values, char **error) {
  nb::gil_scoped_acquire gil;
  try {
    nb::object spec = nb::borrow(static_cast<PyObject *>(user));
    nb::list texts;
    nb::object options = spec.attr("options");
    for (size_t i = 0, count = nb::len(options); i < count; ++i)
      texts.append(values[i]);
    return spec.attr("create")(texts).release().ptr();
  } catch (nb::python_error &caught) {
    *error = describe(caught);
    return nullptr;
  }
}

bool runInstance(void *instance, MlirOperation op, MlcPassRef pass,
                 char **error) {
  nb::gil_scoped_acquire gil;
  try {
    adoptForeignContext(op);
    PassHandle handle{pass};
    nb::object wrapped = nb::cast(&handle, nb::rv_policy::reference);
    nb::borrow(static_cast<PyObject *>(instance))
        .attr("_run")(toPython(op), wrapped);
    return !handle.failed;
  } catch (nb::python_error &caught) {
    *error = describe(caught);
  } catch (std::exception &caught) {
    *error = strdup(caught.what());
  }
  return false;
}

void destroyInstance(void *instance) {
  nb::gil_scoped_acquire gil;
  Py_DECREF(static_cast<PyObject *>(instance));
}

/// `spec` has name, summary, anchor, options (name, description, default,
/// kind), statistics (name, description), dialects and create(values) -> an
/// instance with _run(op, handle).
void registerPass(nb::object spec) {
  std::vector<std::string> texts;
  auto text = [&](nb::handle value) {
    return nb::cast<std::string>(nb::str(value));
  };
  std::string name = text(spec.attr("name")),
              summary = text(spec.attr("summary")),
              anchor = text(spec.attr("anchor"));
  nb::object options = spec.attr("options"),
             statistics = spec.attr("statistics"),
             dialects = spec.attr("dialects");
  texts.reserve(3 * nb::len(options) + 2 * nb::len(statistics) +
                nb::len(dialects));
  auto keep = [&](nb::handle value) {
    return texts.emplace_back(text(value)).c_str();
  };
  std::vector<MlcPassOption> optionSpecs;
  for (nb::handle option : options) {
    const char *optionName = keep(option[0]), *description = keep(option[1]),
               *value = keep(option[2]);
    optionSpecs.push_back(
        {optionName, description, value,
         static_cast<MlcOptionKind>(nb::cast<int>(option[3]))});
  }
  std::vector<MlcPassStatistic> statisticSpecs;
  for (nb::handle statistic : statistics) {
    const char *statisticName = keep(statistic[0]),
               *description = keep(statistic[1]);
    statisticSpecs.push_back({statisticName, description});
  }
  std::vector<const char *> dialectNames;
  for (nb::handle dialect : dialects)
    dialectNames.push_back(keep(dialect));
  MlcPassSpec native{name.c_str(),
                     summary.c_str(),
                     anchor.c_str(),
                     static_cast<intptr_t>(optionSpecs.size()),
                     static_cast<intptr_t>(statisticSpecs.size()),
                     static_cast<intptr_t>(dialectNames.size()),
                     optionSpecs.data(),
                     statisticSpecs.data(),
                     dialectNames.data(),
                     spec.inc_ref().ptr(),
                     createInstance,
                     runInstance,
                     destroyInstance};
  mlcRegisterPass(&native);
}

/// Upstream's PassManager.run keeps the GIL: a Python pass on a worker thread
/// would wait for it forever.
std::pair<bool, std::vector<std::string>> runPipeline(MlirPassManager passes,
                                                      MlirOperation op) {
  nb::gil_scoped_release release;
  DiagnosticCollector collector(mlirOperationGetContext(op));
  bool succeeded =
      mlirLogicalResultIsSuccess(mlirPassManagerRunOnOp(passes, op));
  return {succeeded, std::move(collector.errors)};
}

//===- Shapes -------------------------------------------------------------===//

/// A nested list filled by callbacks.
struct Nested {
  nb::list results;
  nb::list at(intptr_t result) {
    while (static_cast<intptr_t>(nb::len(results)) <= result)
      results.append(nb::list());
    return nb::cast<nb::list>(results[result]);
  }
};

// The bindings have no casters for affine expressions.
MlirAffineExpr exprFromPython(nb::handle value) {
  if (value.is_none())
    return MlirAffineExpr{nullptr};
  nb::object capsule = value.attr("_CAPIPtr");
  return mlirPythonCapsuleToAffineExpr(capsule.ptr());
}

nb::object exprToPython(MlirAffineExpr expr) {
  nb::object capsule = nb::steal(mlirPythonAffineExprToCapsule(expr));
  return nb::module_::import_("mlir.ir")
      .attr("AffineExpr")
      .attr("_CAPICreate")(capsule);
}

/// Results without dimensions get no callback: fill up to the number of
/// results.
nb::list finish(Nested &nested, MlirOperation op) {
  if (intptr_t count = mlirOperationGetNumResults(op))
    nested.at(count - 1);
  return nested.results;
}

/// Extents of the shaped operands and values of the index operands of an
/// operation with a shape function.
struct Given {
  Given(MlirOperation op, nb::list operandDims, nb::list indexExprs) {
    if (!mlcHasDims(op))
      throw nb::type_error("the operation has no shape function (it is no mlc "
                           "operation, or its shapes are not inferred)");
    for (nb::handle shape : operandDims) {
      ranks.push_back(nb::len(shape));
      for (nb::handle dim : shape)
        dims.push_back(exprFromPython(dim));
    }
    for (nb::handle index : indexExprs)
      indices.push_back(exprFromPython(index));
  }

  std::vector<intptr_t> ranks;
  std::vector<MlirAffineExpr> dims, indices;
};

[[noreturn]] void throwErrors(const DiagnosticCollector &collector) {
  std::string text;
  for (const std::string &error : collector.errors)
    text += (text.empty() ? "" : "\n") + error;
  throw nb::value_error(text.empty() ? "shape inference failed" : text.c_str());
}

nb::object inferDims(MlirOperation op, nb::list operandDims,
                     nb::list indexExprs) {
  Given given(op, operandDims, indexExprs);
  Nested nested;
  DiagnosticCollector collector(mlirOperationGetContext(op));
  auto receive = [](void *user, intptr_t result, intptr_t, MlirAffineExpr dim) {
    nb::object value = dim.ptr ? exprToPython(dim) : nb::none();
    static_cast<Nested *>(user)->at(result).append(value);
  };
  if (!mlcInferDims(op, given.ranks.size(), given.ranks.data(),
                    given.dims.data(), given.indices.size(),
                    given.indices.data(), receive, &nested))
    throwErrors(collector);
  return finish(nested, op);
}

nb::list requirements(MlirOperation op, nb::list operandDims,
                      nb::list indexExprs) {
  Given given(op, operandDims, indexExprs);
  nb::list found;
  DiagnosticCollector collector(mlirOperationGetContext(op));
  auto receive = [](void *user, MlirAffineExpr lhs, MlirAffineExpr rhs,
                    MlcRequirementKind kind, const char *what) {
    static const char *const kinds[] = {"equal", "at_most", "stretches"};
    static_cast<nb::list *>(user)->append(nb::make_tuple(
        exprToPython(lhs), exprToPython(rhs), kinds[kind], what));
  };
  if (!mlcRequirements(op, given.ranks.size(), given.ranks.data(),
                       given.dims.data(), given.indices.size(),
                       given.indices.data(), receive, &found))
    throwErrors(collector);
  return found;
}

nb::object reify(MlirOperation op) {
  Nested nested;
  auto receive = [](void *user, intptr_t result, intptr_t, MlirValue value,
                    int64_t constant) {
    nb::object extent = value.ptr ? nb::cast(value) : nb::cast(constant);
    static_cast<Nested *>(user)->at(result).append(extent);
  };
  if (!mlcReify(op, receive, &nested))
    return nb::none();
  return finish(nested, op);
}

//===- Code generation ----------------------------------------------------===//

nb::bytes emit(MlirOperation op, const std::string &triple,
               const std::string &cpu, const std::string &features,
               int optLevel, const std::string &kind) {
  static const char *const kinds[] = {"object", "assembly", "llvm-ir"};
  int found = -1;
  for (int i = 0; i < 3; ++i)
    if (kind == kinds[i])
      found = i;
  if (found < 0)
    throw nb::value_error(
        ("kind is 'object', 'assembly' or 'llvm-ir', not '" + kind + "'")
            .c_str());
  size_t length = 0;
  char *error = nullptr, *code;
  std::vector<std::string> errors;
  {
    nb::gil_scoped_release release;
    DiagnosticCollector collector(mlirOperationGetContext(op));
    code = mlcEmit(op, triple.c_str(), cpu.c_str(), features.c_str(), optLevel,
                   static_cast<MlcEmitKind>(found), &length, &error);
    errors = std::move(collector.errors);
  }
  if (!code) {
    std::string text = take(error);
    for (const std::string &more : errors)
      text += "\n" + more;
    throw std::runtime_error(text);
  }
  nb::bytes bytes(code, length);
  free(code);
  return bytes;
}

nb::dict hostInfo() {
  std::string text = take(mlcHostInfo());
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  lines.push_back(text.substr(begin));
  nb::dict info;
  info["triple"] = lines[0];
  info["cpu"] = lines[1];
  info["features"] = std::vector<std::string>(lines.begin() + 2, lines.end());
  return info;
}

int optMain(std::vector<std::string> arguments) {
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  inOptMain = true;
  int code;
  {
    nb::gil_scoped_release release;
    code = mlcOptMain(static_cast<int>(arguments.size()), argv.data());
  }
  inOptMain = false;
  return code;
}

void defineTypes(nb::module_ &m) {
  using namespace mlir::python::nanobind_adaptors;
  mlir_type_subclass(m, "StrType", mlcTypeIsAStr)
      .def_classmethod(
          "get",
          [](const nb::object &cls, MlirContext context) {
            return cls(mlcStrTypeGet(context));
          },
          nb::arg("cls"), nb::arg("context") = nb::none());
  auto get = [](MlirType (*make)(MlirType)) {
    return [make](const nb::object &cls, MlirType element) {
      return cls(make(element));
    };
  };
  mlir_type_subclass(m, "SeqType", mlcTypeIsASeq)
      .def_classmethod("get", get(mlcSeqTypeGet), nb::arg("cls"),
                       nb::arg("element_type"))
      .def_property_readonly("element_type", mlcElementType);
  mlir_type_subclass(m, "OptionalType", mlcTypeIsAOptional)
      .def_classmethod("get", get(mlcOptionalTypeGet), nb::arg("cls"),
                       nb::arg("element_type"))
      .def_property_readonly("element_type", mlcElementType);
}

} // namespace

NB_MODULE(_native, m) {
  m.doc() = "The native part of mlc: dialect, passes by name, shape functions, "
            "code generation.";
  nb::class_<PassHandle>(m, "PassHandle")
      .def("signal_failure", [](PassHandle &handle) { handle.failed = true; })
      .def("preserve_all",
           [](PassHandle &handle) { mlcPassPreserveAll(handle.pass); })
      .def("add", [](PassHandle &handle, intptr_t index, int64_t amount) {
        mlcPassAddStatistic(handle.pass, index, amount);
      });
  defineTypes(m);
  m.def("register_dialects",
        [](MlirDialectRegistry registry) { mlcRegisterDialect(registry); });
  m.def("register_pass", &registerPass, nb::arg("spec"));
  m.def("run_pipeline", &runPipeline, nb::arg("pass_manager"), nb::arg("op"),
        "Runs without the GIL; gives whether it succeeded and the located "
        "errors.");
  m.def("infer_dims", &inferDims, nb::arg("op"), nb::arg("operand_dims"),
        nb::arg("index_exprs"),
        "Result extents as affine expressions (None: known only at run time) "
        "from those of the shaped operands and the "
        "values of the index operands, both in operand order.");
  m.def("requirements", &requirements, nb::arg("op"), nb::arg("operand_dims"),
        nb::arg("index_exprs"),
        "What the operation needs of the extents given and may not have: "
        "(left, right, how they must be: 'equal', 'at_most' or 'stretches', "
        "what they are).");
  m.def(
      "has_dims", [](MlirOperation op) { return mlcHasDims(op); },
      nb::arg("op"));
  m.def("reify", &reify, nb::arg("op"),
        "Builds the result extents (int or index value) before the operation; "
        "None where one is known only after it ran.");
  m.def("emit", &emit, nb::arg("op"), nb::arg("triple") = "",
        nb::arg("cpu") = "native", nb::arg("features") = "",
        nb::arg("opt_level") = 3, nb::arg("kind") = "object");
  m.def("host_info", &hostInfo);
  m.def("opt_main", &optMain, nb::arg("argv"));
}
