// A pass whose body is a callback, registered under a name like any other pass.
#include "capi.h"

#include "dialect.h"
#include "mlir-c/Dialect/Affine.h"
#include "mlir-c/Dialect/Arith.h"
#include "mlir-c/Dialect/Bufferization.h"
#include "mlir-c/Dialect/ControlFlow.h"
#include "mlir-c/Dialect/Func.h"
#include "mlir-c/Dialect/GPU.h"
#include "mlir-c/Dialect/Index.h"
#include "mlir-c/Dialect/LLVM.h"
#include "mlir-c/Dialect/Linalg.h"
#include "mlir-c/Dialect/Math.h"
#include "mlir-c/Dialect/MemRef.h"
#include "mlir-c/Dialect/NVVM.h"
#include "mlir-c/Dialect/SCF.h"
#include "mlir-c/Dialect/Tensor.h"
#include "mlir-c/Dialect/UB.h"
#include "mlir-c/Dialect/Vector.h"
#include "mlir/CAPI/IR.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <memory>
#include <string>
#include <variant>
#include <vector>

using namespace mlir;

namespace {

/// Lives as long as the process: options and statistics keep pointers into it.
struct Spec {
  struct Named {
    std::string name, description;
  };
  struct Option : Named {
    std::string defaultValue;
    MlcOptionKind kind;
  };
  std::string argument, summary, anchor;
  std::vector<Option> options;
  std::vector<Named> statistics;
  std::vector<std::string> dialects;
  MlcPassSpec callbacks;
  TypeID id;
};

/// Adds the dialect called `name`, if it is one that a pass written in Python
/// may depend on. A dialect can only be loaded before the pass manager starts
/// its threads, and only through its type, which MLIR's C API has handles of:
/// the headers of so many dialects take a minute to compile.
void insertDialect(DialectRegistry &registry, StringRef name) {
  static const llvm::StringMap<MlirDialectHandle> known = {
      {"affine", mlirGetDialectHandle__affine__()},
      {"arith", mlirGetDialectHandle__arith__()},
      {"bufferization", mlirGetDialectHandle__bufferization__()},
      {"cf", mlirGetDialectHandle__cf__()},
      {"func", mlirGetDialectHandle__func__()},
      {"gpu", mlirGetDialectHandle__gpu__()},
      {"index", mlirGetDialectHandle__index__()},
      {"linalg", mlirGetDialectHandle__linalg__()},
      {"llvm", mlirGetDialectHandle__llvm__()},
      {"math", mlirGetDialectHandle__math__()},
      {"memref", mlirGetDialectHandle__memref__()},
      {"nvvm", mlirGetDialectHandle__nvvm__()},
      {"scf", mlirGetDialectHandle__scf__()},
      {"tensor", mlirGetDialectHandle__tensor__()},
      {"ub", mlirGetDialectHandle__ub__()},
      {"vector", mlirGetDialectHandle__vector__()},
  };
  if (name == "mlc")
    registry.insert<mlc::MlcDialect>();
  else if (auto found = known.find(name); found != known.end())
    mlirDialectHandleInsertDialect(found->second, wrap(&registry));
}

class PythonPass : public Pass {
public:
  explicit PythonPass(const Spec &spec)
      : Pass(spec.id, anchorOf(spec)), spec(spec) {
    declare();
  }
  /// Clones get their option values from Pass::clone and an instance of their
  /// own when they run.
  PythonPass(const PythonPass &other) : Pass(other), spec(other.spec) {
    declare();
  }
  ~PythonPass() override {
    if (instance)
      spec.callbacks.destroy(instance);
  }

  StringRef getName() const override { return spec.argument; }
  StringRef getArgument() const override { return spec.argument; }
  StringRef getDescription() const override { return spec.summary; }
  bool canScheduleOn(RegisteredOperationName name) const override {
    return spec.anchor.empty() || name.getStringRef() == spec.anchor;
  }
  std::unique_ptr<Pass> clonePass() const override {
    return std::make_unique<PythonPass>(*this);
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    for (const std::string &dialect : spec.dialects)
      insertDialect(registry, dialect);
  }

  LogicalResult initialize(MLIRContext *context) override {
    for (const std::string &dialect : spec.dialects)
      if (!context->getLoadedDialect(dialect))
        return emitError(UnknownLoc::get(context), spec.argument)
               << ": a pass written in Python cannot depend on the dialect '"
               << dialect << "'";
    return success();
  }

  void runOnOperation() override {
    char *error = nullptr;
    bool succeeded =
        (instance || createInstance(&error)) &&
        spec.callbacks.run(instance, wrap(getOperation()),
                           reinterpret_cast<MlcPassRef>(this), &error);
    if (error) {
      getOperation()->emitError() << spec.argument << ": " << error;
      free(error);
    }
    if (!succeeded)
      signalPassFailure();
  }

  void addStatistic(intptr_t index, int64_t amount) {
    *statistics[index] += static_cast<unsigned>(amount);
  }
  void preserveAll() { markAllAnalysesPreserved(); }

private:
  template <typename T> using Scalar = std::unique_ptr<Option<T>>;
  using AnyOption =
      std::variant<Scalar<std::string>, Scalar<int64_t>, Scalar<bool>,
                   Scalar<double>, std::unique_ptr<ListOption<std::string>>>;

  static std::optional<StringRef> anchorOf(const Spec &spec) {
    return spec.anchor.empty() ? std::nullopt
                               : std::optional<StringRef>(spec.anchor);
  }

  AnyOption declare(const Spec::Option &option) {
    llvm::cl::desc description(option.description);
    StringRef value = option.defaultValue;
    switch (option.kind) {
    case MlcOptionString:
      return std::make_unique<Option<std::string>>(
          *this, option.name, description, llvm::cl::init(value.str()));
    case MlcOptionInt: {
      int64_t number = 0;
      value.getAsInteger(10, number);
      return std::make_unique<Option<int64_t>>(*this, option.name, description,
                                               llvm::cl::init(number));
    }
    case MlcOptionBool:
      return std::make_unique<Option<bool>>(*this, option.name, description,
                                            llvm::cl::init(value == "true"));
    case MlcOptionFloat: {
      double number = 0;
      value.getAsDouble(number);
      return std::make_unique<Option<double>>(*this, option.name, description,
                                              llvm::cl::init(number));
    }
    case MlcOptionList:
      return std::make_unique<ListOption<std::string>>(*this, option.name,
                                                       description);
    }
    llvm_unreachable("unknown kind of option");
  }

  void declare() {
    for (const Spec::Option &option : spec.options)
      options.push_back(declare(option));
    for (const Spec::Named &statistic : spec.statistics)
      statistics.push_back(std::make_unique<Statistic>(
          this, statistic.name.c_str(), statistic.description.c_str()));
  }

  static std::string valueText(const std::string &value) { return value; }
  static std::string valueText(int64_t value) { return std::to_string(value); }
  static std::string valueText(bool value) { return value ? "true" : "false"; }
  static std::string valueText(double value) {
    return llvm::formatv("{0:e17}", value).str();
  }

  static std::string textOf(const AnyOption &option) {
    return std::visit(
        [](const auto &held) -> std::string {
          if constexpr (std::is_same_v<
                            std::decay_t<decltype(held)>,
                            std::unique_ptr<ListOption<std::string>>>)
            return llvm::join(held->begin(), held->end(), ",");
          else
            return valueText(held->getValue());
        },
        option);
  }

  bool createInstance(char **error) {
    std::vector<std::string> texts;
    for (const AnyOption &option : options)
      texts.push_back(textOf(option));
    std::vector<const char *> values;
    for (const std::string &text : texts)
      values.push_back(text.c_str());
    instance = spec.callbacks.create(spec.callbacks.user, values.data(), error);
    return instance;
  }

  const Spec &spec;
  std::vector<AnyOption> options;
  std::vector<std::unique_ptr<Statistic>> statistics;
  void *instance = nullptr;
};

} // namespace

void mlcRegisterPass(const MlcPassSpec *given) {
  static TypeIDAllocator ids;
  auto *spec =
      new Spec{given->argument, given->summary, given->anchor, {}, {}, {},
               *given,          ids.allocate()};
  for (intptr_t i = 0; i < given->numOptions; ++i) {
    const MlcPassOption &option = given->options[i];
    spec->options.push_back(
        {{option.name, option.description}, option.defaultValue, option.kind});
  }
  for (intptr_t i = 0; i < given->numStatistics; ++i)
    spec->statistics.push_back(
        {given->statistics[i].name, given->statistics[i].description});
  spec->dialects.assign(given->dialects, given->dialects + given->numDialects);
  registerPass([spec]() -> std::unique_ptr<Pass> {
    return std::make_unique<PythonPass>(*spec);
  });
}

void mlcPassAddStatistic(MlcPassRef pass, intptr_t index, int64_t amount) {
  reinterpret_cast<PythonPass *>(pass)->addStatistic(index, amount);
}

void mlcPassPreserveAll(MlcPassRef pass) {
  reinterpret_cast<PythonPass *>(pass)->preserveAll();
}
