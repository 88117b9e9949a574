// From a module of the LLVM dialect to machine code, in process.
#include "capi.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include <cstring>
#include <mutex>

using namespace llvm;

static char *duplicate(StringRef text, size_t *length = nullptr) {
  char *copy = static_cast<char *>(malloc(text.size() + 1));
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  if (length)
    *length = text.size();
  return copy;
}

static std::string hostFeatures() {
  SubtargetFeatures features; // a string with a trailing comma would be an
                              // assertion failure in LLVM
  for (const auto &feature : sys::getHostCPUFeatures())
    features.AddFeature(feature.first(), feature.second);
  return features.getString();
}

char *mlcHostInfo() {
  std::string text =
      sys::getProcessTriple() + "\n" + sys::getHostCPUName().str();
  SmallVector<StringRef> features;
  std::string all = hostFeatures();
  StringRef(all).split(features, ',', -1, false);
  llvm::sort(features);
  for (StringRef feature : features)
    text += "\n" + feature.str();
  return duplicate(text);
}

/// Adds the passes from LLVM IR to code in `stream`. Returns true when the
/// target has none for that kind of file.
///
/// On x86 without loop strength reduction: a load takes base, index and offset
/// in one operand, and templates have laid their addresses out for that. It was
/// a fifth of LLVM's time and made depthwise convolutions a third slower. The
/// option, which LLVM asks here only, is the process's.
static bool addCodePasses(TargetMachine &machine, legacy::PassManager &passes,
                          raw_pwrite_stream &stream, CodeGenFileType type) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  auto &options = cl::getRegisteredOptions();
  auto found = options.find("disable-lsr");
  if (found != options.end())
    static_cast<cl::opt<bool> *>(found->second)
        ->setValue(machine.getTargetTriple().isX86());
  return machine.addPassesToEmitFile(passes, stream, nullptr, type);
}

/// What kernels go through on x86 whose template has laid out registers, loops
/// and addresses (`mlc.laid_out`): the rest of LLVM's pipeline takes half of
/// the time and more, and finds nothing. Other kernels do gain by it, by
/// unrolled loops mostly.
static const char *const laidOutPasses =
    "always-inline,globaldce,function(sroa,early-cse<memssa>,simplifycfg,"
    "instcombine<no-verify-fixpoint>,loop-mssa(loop-rotate,licm),gvn,"
    "instcombine<no-verify-fixpoint>,dse,vector-combine,simplifycfg,"
    "loop-mssa(licm),div-rem-pairs,early-cse)";

/// From so many instructions on, any module is treated as one of those: what
/// LLVM's pipeline takes grows faster than the module. Half a minute became
/// eight seconds for a convolution of unknown extents with 45,000.
static const unsigned mostInstructions = 20000;

namespace {

/// How many instructions `function` has with those of the functions that will
/// become a part of it.
unsigned inlinedSize(const Function &function) {
  unsigned size = function.getInstructionCount();
  for (const Instruction &instruction : instructions(function)) {
    const auto *call = dyn_cast<CallBase>(&instruction);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    if (callee && !callee->isDeclaration() &&
        callee->hasFnAttribute(Attribute::AlwaysInline))
      size += inlinedSize(*callee);
  }
  return size;
}

/// How many instructions `module` will have when that is done.
unsigned inlinedSize(const Module &module) {
  unsigned size = 0;
  for (const Function &function : module)
    if (!function.hasFnAttribute(Attribute::AlwaysInline))
      size += inlinedSize(function);
  return size;
}

/// Why LLVM gave up in this thread.
thread_local std::string fatalMessage;

class Emitter {
public:
  Emitter(StringRef triple, StringRef cpu, StringRef features, int optLevel)
      : triple(Triple::normalize(
            triple.empty() ? StringRef(sys::getProcessTriple()) : triple)),
        cpu(cpu), features(features), optLevel(optLevel) {
    if (cpu == "native") {
      this->cpu = sys::getHostCPUName().str();
      if (features.empty())
        this->features = hostFeatures();
    }
  }

  Expected<std::string> run(mlir::Operation *op, MlcEmitKind kind) {
    if (Error error = createMachine())
      return std::move(error);
    LLVMContext context;
    std::string problems;
    context.setDiagnosticHandlerCallBack(collect, &problems);
    std::unique_ptr<Module> module =
        mlir::translateModuleToLLVMIR(op, context, "mlc");
    if (!module)
      return createStringError(
          "translation to LLVM IR failed: is the module all LLVM dialect?");
    prepare(*module);
    if (verifyModule(*module, nullptr))
      return createStringError("translation to LLVM IR made an invalid module");
    bool laidOut =
        op->hasAttr("mlc.laid_out") || inlinedSize(*module) > mostInstructions;
    Expected<std::string> code = recover([&]() -> Expected<std::string> {
      optimize(*module, laidOut);
      return kind == MlcEmitLLVMIR ? print(*module) : generate(*module, kind);
    });
    if (code && !problems.empty())
      return createStringError(problems);
    return code;
  }

private:
  /// Errors of the back end (an asm constraint, a register class, …) end up
  /// here instead of ending the process.
  static void collect(const DiagnosticInfo *info, void *user) {
    if (info->getSeverity() != DS_Error)
      return;
    raw_string_ostream stream(*static_cast<std::string *>(user));
    DiagnosticPrinterRawOStream printer(stream);
    info->print(printer);
    stream << "\n";
  }

  /// LLVM ends the process where it cannot select an instruction or finds
  /// itself in the wrong: leave the thread's work instead. What it held is
  /// lost.
  static Expected<std::string>
  recover(function_ref<Expected<std::string>()> work) {
    std::optional<Expected<std::string>> code;
    fatalMessage.clear();
    if (CrashRecoveryContext().RunSafely([&] { code.emplace(work()); }))
      return std::move(*code);
    return createStringError(
        "the code generator failed: " +
        (fatalMessage.empty() ? "see the standard error" : fatalMessage));
  }

  /// LLVM ignores unknown CPUs and features with a warning, or aborts: look
  /// them up first.
  Error check(const Target &target) {
    std::unique_ptr<MCSubtargetInfo> info(
        target.createMCSubtargetInfo(triple, "", ""));
    if (!info)
      return createStringError("no code generator for '" + triple.str() + "'");
    if (!cpu.empty() && !info->isCPUStringValid(cpu))
      return createStringError("'" + cpu + "' is no CPU of '" + triple.str() +
                               "'");
    SmallVector<StringRef> entries;
    StringRef(features).split(entries, ',');
    if (features.empty())
      return Error::success();
    for (StringRef entry : entries) {
      StringRef name = entry.drop_front(entry.empty() ? 0 : 1);
      bool hasSign = entry.starts_with("+") || entry.starts_with("-");
      bool isKnown = any_of(
          info->getAllProcessorFeatures(),
          [&](const SubtargetFeatureKV &known) { return name == known.Key; });
      if (!hasSign || !isKnown)
        return createStringError("'" + entry.str() + "' is no feature of '" +
                                 triple.str() +
                                 "' (features are a list like +avx2,-fma)");
    }
    return Error::success();
  }

  Error createMachine() {
    std::string message;
    const Target *target = TargetRegistry::lookupTarget(triple, message);
    if (!target)
      return createStringError(message);
    if (Error error = check(*target))
      return error;
    TargetOptions options;
    options.AllowFPOpFusion =
        FPOpFusion::Fast; // multiply-add contraction needs no fast-math flags
                          // on each operation
    auto level =
        CodeGenOpt::getLevel(optLevel).value_or(CodeGenOptLevel::Default);
    machine.reset(target->createTargetMachine(
        triple, cpu, features, options, Reloc::PIC_, std::nullopt, level));
    if (!machine)
      return createStringError("no code generator for '" + triple.str() + "'");
    return Error::success();
  }

  void prepare(Module &module) {
    module.setDataLayout(machine->createDataLayout());
    module.setTargetTriple(triple);
    for (Function &function : module) {
      if (function.isDeclaration() || function.hasFnAttribute("target-cpu"))
        continue;
      function.addFnAttr("target-cpu", cpu);
      if (!features.empty())
        function.addFnAttr("target-features", features);
    }
  }

  /// Passes of LLVM's pipelines that no kernel has anything for.
  /// `LoopLoadElimination` compares all accesses of a loop with each other:
  /// half of the time of a pooling window. What a template carries from one
  /// iteration to the next is in registers already.
  static bool isWanted(StringRef pass) {
    return pass != "LoopLoadEliminationPass";
  }

  void optimize(Module &module, bool laidOut) {
    PipelineTuningOptions tuning;
    tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopUnrolling =
        optLevel >= 2;
    PassInstrumentationCallbacks callbacks;
    callbacks.registerShouldRunOptionalPassCallback(
        [](StringRef pass, Any) { return isWanted(pass); });
    PassBuilder builder(machine.get(), tuning, std::nullopt, &callbacks);
    LoopAnalysisManager loops;
    FunctionAnalysisManager functions;
    CGSCCAnalysisManager components;
    ModuleAnalysisManager modules;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    static const OptimizationLevel levels[] = {
        OptimizationLevel::O0, OptimizationLevel::O1, OptimizationLevel::O2,
        OptimizationLevel::O3};
    OptimizationLevel level = levels[std::clamp(optLevel, 0, 3)];
    ModulePassManager passes;
    if (optLevel == 3 && laidOut && machine->getTargetTriple().isX86())
      cantFail(builder.parsePassPipeline(passes, laidOutPasses));
    else
      passes = optLevel == 0 ? builder.buildO0DefaultPipeline(level)
                             : builder.buildPerModuleDefaultPipeline(level);
    passes.run(module, modules);
  }

  static std::string print(Module &module) {
    std::string text;
    raw_string_ostream stream(text);
    module.print(stream, nullptr);
    return text;
  }

  Expected<std::string> generate(Module &module, MlcEmitKind kind) {
    SmallVector<char, 0> code;
    raw_svector_ostream stream(code);
    legacy::PassManager passes;
    auto type = kind == MlcEmitObject ? CodeGenFileType::ObjectFile
                                      : CodeGenFileType::AssemblyFile;
    if (addCodePasses(*machine, passes, stream, type))
      return createStringError(
          "'" + triple.str() + "' cannot be emitted as " +
          (kind == MlcEmitObject ? "an object file" : "assembly"));
    passes.run(module);
    return std::string(code.data(), code.size());
  }

  Triple triple;
  std::string cpu, features;
  int optLevel;
  std::unique_ptr<TargetMachine> machine;
};

} // namespace

char *mlcEmit(MlirOperation module, const char *triple, const char *cpu,
              const char *features, int optLevel, MlcEmitKind kind,
              size_t *length, char **error) {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeAllTargetInfos();
    InitializeAllTargets();
    InitializeAllTargetMCs();
    InitializeAllAsmPrinters();
    InitializeAllAsmParsers();
    install_fatal_error_handler(
        [](void *, const char *message, bool) { fatalMessage = message; });
    CrashRecoveryContext::Enable();
  });
  mlir::Operation *op = unwrap(module);
  mlir::DialectRegistry registry;
  mlir::registerAllToLLVMIRTranslations(registry);
  op->getContext()->appendDialectRegistry(registry);
  Expected<std::string> code =
      Emitter(triple, cpu, features, optLevel).run(op, kind);
  if (code)
    return duplicate(*code, length);
  *error = duplicate(toString(code.takeError()));
  return nullptr;
}
