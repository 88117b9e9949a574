"""One compilation: the module and its weights on their way through the phases, and the artefact at the end."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlir import ir

from mlc import _native
from mlc.codegen.cache import ObjectCache
from mlc.codegen.known_kernels import KnownKernels
from mlc.codegen.known_programs import KnownProgram, KnownPrograms
from mlc.codegen.object import CodeGenerator, CodegenError, CompiledUnit, Target, Unit
from mlc.codegen.ptx import (
    CompiledKernel,
    GpuTarget,
    PtxError,
    collect_kernels,
    compile_kernels,
    is_for_host,
    write_kernels,
)
from mlc.codegen.ptxas import AssemblyError
from mlc.codegen.version import toolchain_version
from mlc.compiler_setup import new_context
from mlc.importing import import_source, refuse_impossible
from mlc.options import FOLDERS, NUMBERS, InternalError, Options, Progress, UsageError
from mlc.packaging import ImageInProgress, begin_image, build_program, gpu_table, module_attribute, weight_image
from mlc.passes.base import PipelineError, run_pipeline, verify_operation
from mlc.passes.host.isolate_host import kernel_modules
from mlc.passes.simplify.weight_recipes import forget_recipes, store_of
from mlc.pipelines import cpu as cpu_pipeline
from mlc.pipelines import cuda as cuda_pipeline
from mlc.runtime.needed_memory import needed_memory
from mlc.stage_files import blame_stage, module_text, read_stage, text_attribute, write_stage
from mlc.targets import nvidia
from mlc.targets.cpu import CODE, TRAITS, CpuTarget, resolve
from mlc.tuning import cache as tuning_cache
from mlc.tuning.request import check_request, is_measuring, tuning_file
from mlc.weights import Store, registry
from mlc.weights.safetensors import atomic_file

if TYPE_CHECKING:
    from mlc.inspect.collect import Report

EMBEDDED_LIMIT = 256 << 20  # bytes of weights; more go to a file of their own
# One compilation at a time may use the store of a model: passes find it by its key.
_LOCKS: dict[str, threading.Lock] = {}
_PENDING = itertools.count()  # keys of stores whose sources' hashes are not known yet


class Compilation:
    """Runs once: `run` takes a source to a file."""

    def __init__(
        self, options: Options, progress: Progress | None = None, note: Callable[[str], None] | None = None
    ) -> None:
        """`progress` is told of stages; `note` gets a line for every kernel that tuning has measured."""
        self.options = options
        self._progress = progress
        self._note = note
        self.context = new_context(gpu=options.target == "cuda")
        self.title = ""
        self.written: list[Path] = []
        self.needs = ""
        """What the library needs of memory to run."""
        self.findings: Report | None = None
        self._seconds: dict[str, float] = {}
        self.module: ir.Module
        self.store: Store
        self.target: CpuTarget
        self.gpus: tuple[nvidia.NvidiaTarget, ...] = ()
        self.cache = ObjectCache() if options.cache else None
        self.known: KnownKernels | None = None
        self.programs: KnownPrograms | None = None
        self.program: KnownProgram | None = None
        self.image: ImageInProgress | None = None
        self.generator: CodeGenerator | None = None
        self._source_hash: Callable[[], str] | None = None
        self._imported = ""

    def run(self, source: Any, output: Path) -> Path:
        """Compiles `source` and writes `output`; nothing is left there when it fails. Returns the path
        written.
        """
        self._check_output(source, output)
        self.title = str(source) if isinstance(source, (str, Path)) else "model"
        with self.context, ir.Location.unknown():
            done = self._begin(source)
            with contextlib.ExitStack() as self._held:
                if self._source_hash is None:
                    self._register(self._held)
                else:
                    registry.register(self.store)
                try:
                    if self._is_looked_at() or self.options.verify:
                        self._settle(self._held)
                    path = self._verified(output) if self.options.verify else self._phases(done, output)
                    self._write_report()
                    return path
                except InternalError as error:
                    if done is not None:
                        blame_stage(Path(source), done, error)
                    raise
                finally:
                    for threads in (self.image, self.generator):
                        if threads is not None:
                            threads.close()
                    forget_recipes()
                    registry.release(self.store.key)

    def _verified(self, output: Path) -> Path:
        """Compiles, and removes the library again unless it computes what the interpreter does."""
        from mlc.verification import verify_library

        imported = self.module.operation.clone(ip=False)
        try:
            self._phases(None, output)
            with self._stage("verify"):
                verify_library(output, imported, self.store, self.options.verify)
        except BaseException:
            output.unlink(missing_ok=True)
            raise
        finally:
            imported.erase()
        return output

    def _check_output(self, source: Any, output: Path) -> None:
        """Finds out at once whether the output can be written, and that it replaces nothing that it must not."""
        if self.options.emit in self.options.phases and output.suffix != ".mlir":
            raise UsageError(f"'{output}': IR is written to a file that ends in .mlir")
        if not output.parent.is_dir():
            raise FileNotFoundError(f"the folder '{output.parent}' of the output file does not exist")
        if output.is_dir() and self.options.emit not in FOLDERS:
            raise IsADirectoryError(f"the output '{output}' is a folder")
        if self.options.report is not None and not self.options.report.parent.is_dir():
            raise FileNotFoundError(f"the folder '{self.options.report.parent}' of the report does not exist")
        if output.exists():
            if not (output.is_file() or output.is_dir()):
                raise OSError(f"the output '{output}' is neither a file nor a folder")
            if isinstance(source, (str, Path)) and Path(source).exists() and output.samefile(source):
                raise UsageError(f"the output '{output}' is the input: name another one with -o")
        try:
            tempfile.TemporaryFile(dir=output.parent).close()
        except OSError as error:
            raise OSError(f"cannot write to the folder '{output.parent.absolute()}': {error.strerror}") from error

    # --- The source -------------------------------------------------------------------------------------------

    def _begin(self, source: Any) -> str | None:
        """Makes the module and the store; returns the phase that the module has completed, if any."""
        if isinstance(source, (str, Path)) and Path(source).suffix == ".mlir":
            if self.options.verify:
                raise UsageError("verify compares a library with the model that it was compiled from: give that")
            done: str | None = self._read(Path(source))
        elif self.options.from_phase is not None:
            raise UsageError(
                f"from phase '{self.options.from_phase}' needs an .mlir file that an earlier compilation wrote"
            )
        else:
            with self._stage("import"):
                self.store = Store(f"pending{next(_PENDING)}")
                self.module, self._source_hash = import_source(source, self.context, self.store, self.options)
            done = None
        self._resolve_target()
        if done is None and self._may_know_program():
            self._imported = hashlib.sha256(module_text(self.module).encode()).hexdigest()
        if not self.store.key:
            self.store.key = hashlib.sha256(module_text(self.module).encode()).hexdigest()
        self.module.operation.attributes["mlc.store"] = ir.StringAttr.get(self.store.key)
        return done

    def _settle(self, stack: contextlib.ExitStack) -> None:
        """Waits for the hash of the source, which threads have worked out while the compiler went on, and makes it the
        key of the store. From here on `stack` has the store's lock.
        """
        if self._source_hash is None:
            return
        source, self._source_hash = self._source_hash(), None
        registry.release(self.store.key)
        self.store.key = source
        for name in ("mlc.source", "mlc.store"):
            self.module.operation.attributes[name] = ir.StringAttr.get(source)
        self._register(stack)

    def _register(self, stack: contextlib.ExitStack) -> None:
        stack.enter_context(_LOCKS.setdefault(self.store.key, threading.Lock()))
        registry.register(self.store)

    def _read(self, path: Path) -> str:
        """The module of an `.mlir` file and its store; the phase it has completed is what it says, or what it
        is told.
        """
        for name in ("inputs", "dtypes", "dims", "outputs"):
            if getattr(self.options, name):
                raise UsageError(f"'{name}' is decided when a model is imported; '{path}' has been")
        self.module, self.store = read_stage(path)
        said = text_attribute(self.module, "mlc.phase")
        wanted = self.options.from_phase
        if said and wanted and said != wanted:
            raise UsageError(f"'{path}' has completed phase '{said}', not '{wanted}'")
        done = said or wanted
        if not done:
            raise UsageError(f"'{path}' does not say which phase it has completed; say it with --from")
        phases = self.options.phases
        if done not in phases:
            raise UsageError(f"'{path}' has completed '{done}', which is no phase of target '{self.options.target}'")
        if self.options.report is not None and phases.index(done) > phases.index("schedule"):
            raise UsageError(f"a report is about phase 'schedule', which '{path}' is beyond: go on from an earlier one")
        return done

    def _resolve_target(self) -> None:
        """CPU and GPU are chosen once; a module that has been through a phase remembers them."""
        attributes = self.module.operation.attributes
        said = text_attribute(self.module, "mlc.target")
        if said and said.startswith("nvidia:") != (self.options.target == "cuda"):
            raise UsageError(f"the IR was made for target '{said}', not for '{self.options.target}'")
        if self.options.target == "cuda":
            self._resolve_gpu(said.removeprefix("nvidia:"))
        if "mlc.codegen" in attributes:
            kept = {named.name: named.attr for named in ir.DictAttr(attributes["mlc.codegen"])}
            triple, cpu, features, required = (ir.StringAttr(kept[k]).value for k in CODE)
            self.target = CpuTarget(triple, cpu, features, required, **{name: name in kept for name in TRAITS})
            self.opt_level = ir.IntegerAttr(kept["opt_level"]).value
            self.precision = ir.StringAttr(kept["precision"]).value if "precision" in kept else "fp32"
            if self.options.precision not in ("fp32", self.precision):
                raise UsageError(f"the IR was made for precision {self.precision}, not {self.options.precision}")
            self.chosen = {n: ir.IntegerAttr(kept[n]).value if n in kept else 0 for n in NUMBERS}
            for name, value in self.chosen.items():
                if getattr(self.options, name) not in (0, value):
                    raise UsageError(f"the IR was made for {name} {value}, not {getattr(self.options, name)}")
            if self.options.cpu is not None and resolve(self.options.cpu, _native.host_info()) != self.target:
                raise UsageError(f"the IR was made for CPU '{self.target.cpu}', not for '{self.options.cpu}'")
            return
        try:
            self.target = resolve(self.options.cpu or "native", _native.host_info())
        except ValueError as error:
            raise UsageError(str(error)) from error
        self.opt_level = 3 if self.options.opt_level is None else self.options.opt_level
        values: dict[str, ir.Attribute] = {name: ir.StringAttr.get(getattr(self.target, name)) for name in CODE}
        values |= {name: ir.BoolAttr.get(True) for name in TRAITS if getattr(self.target, name)}
        values["opt_level"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.opt_level)
        self.precision = self.options.precision
        values["precision"] = ir.StringAttr.get(self.precision)
        self.chosen = {name: getattr(self.options, name) for name in NUMBERS}
        i64 = ir.IntegerType.get_signless(64)
        values |= {name: ir.IntegerAttr.get(i64, value) for name, value in self.chosen.items() if value}
        attributes["mlc.codegen"] = ir.DictAttr.get(values)
        chosen = "nvidia:" + ",".join(gpu.name for gpu in self.gpus) if self.gpus else f"cpu:{self.target.cpu}"
        attributes["mlc.target"] = ir.StringAttr.get(chosen)

    def _resolve_gpu(self, kept: str) -> None:
        wanted = self.options.gpu
        if kept and wanted is not None and wanted != kept:
            raise UsageError(f"the IR was made for GPU '{kept}', not for '{wanted}'")
        try:
            self.gpus = nvidia.resolve_all(kept or wanted or "h200")
        except ValueError as error:
            raise UsageError(str(error)) from error

    # --- Phases -----------------------------------------------------------------------------------------------

    def _phases(self, done: str | None, output: Path) -> Path:
        gpu = bool(self.gpus)
        if gpu:
            phases = cuda_pipeline.phases(self.gpus, self.target, self.precision)
        else:
            winograd, row_bits = (self.chosen[name] for name in NUMBERS)
            phases = cpu_pipeline.phases(self.target, self.precision, winograd=winograd, row_bits=row_bits)
        first = 0 if done is None else self.options.phases.index(done) + 1
        check_request(self.options, self.target, first)
        if done == "schedule" and self.options.report is not None:
            self._collect()
        if self._imported and self._take_program(phases):
            if self.options.emit in ("object", "library"):
                self._begin_image(output)
            return self._artefact(output)
        for number, (name, passes) in enumerate(phases):
            if number < first:
                continue
            if name == "schedule":
                passes = self._tuned(passes)
            if name == "linalg":
                refuse_impossible(self.module, self.title)
            if name == "tile":
                self._take_known(passes)
            if passes:
                with self._stage(name), self._generating(name):
                    self._run_passes(name, passes)
            self.module.operation.attributes["mlc.phase"] = ir.StringAttr.get(name)
            self._dump(number, name)
            if name == "schedule" and self.options.report is not None:
                self._collect()
            if self.options.verify_each:
                self._verify(name)
            if self.options.emit == name:
                return self._write_stage(output)
            if name == "buffers" and self.options.emit in ("object", "library"):
                self._begin_image(output)
        return self._artefact(output)

    def _tuned(self, passes: list[str]) -> list[str]:
        """The passes of `schedule`, with the file of measured schedules where one is wanted; `tune` measures first."""
        if is_measuring(self.options):
            from mlc.tuning import phase

            with self._stage("tune"), contextlib.suppress(PipelineError):  # which the passes below will run into, too
                if self.gpus:
                    phase.measure_on_gpu(self.module, passes, self.options, self._compile_kernel, self._tuning_step)
                else:
                    target, registers = self._code_target(), self.target.vector_registers
                    phase.measure_on_cpu(
                        self.module, passes, self.options, target, registers, self.cache, self._tuning_step
                    )
        path, name = tuning_file(self.options), "mlc-assign-gpu-schedules" if self.gpus else "mlc-assign-schedules"
        if path is None:
            return passes
        return [tuning_cache.with_file(p, path) if p.startswith(name) else p for p in passes]

    def _compile_kernel(self, source: Path, library: Path) -> None:
        """Compiles a program of one kernel, which has completed phase `kernels`."""
        options = Options(target="cuda", from_phase="kernels", jobs=1, cache=self.options.cache)
        Compilation(options).run(source, library)

    def _tuning_step(self, done: int, total: int, line: str) -> None:
        self._report("tune", 0, 1, 0.0)
        if self._note is not None:
            self._note(f"tune       {done}/{total} {line}")

    def _run_passes(self, phase: str, passes: list[str]) -> None:
        before = self.module.operation.clone(ip=False)
        try:
            # MLIR's verifier has a look after every pass only where somebody asks: else it takes a tenth of the time.
            run_pipeline(self.module.operation, passes, verify=self.options.verify_each)
            if not self.options.verify_each:
                verify_operation(self.module.operation)
        except PipelineError as error:
            command = f"// mlc-opt --pass-pipeline='builtin.module({','.join(passes)})'\n"
            text = command + before.get_asm(enable_debug_info=True)
            raise self._bug(phase, _short(error), text) from error
        finally:
            before.erase()

    def _bug(self, stage: str, message: str, text: str) -> InternalError:
        """The error to raise, with a file that shows the bug where the caller wants one."""
        path = self.options.reproducer
        if path is None:
            return InternalError(stage, message, None)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError:
            return InternalError(stage, message, None)
        return InternalError(stage, message, path)

    def _verify(self, phase: str) -> None:
        from mlc.passes.verify import verify_phase

        try:
            verify_phase(self.module, phase)
        except ValueError as error:
            raise self._bug(phase, str(error), module_text(self.module)) from error

    def _dump(self, number: int, phase: str) -> None:
        if self.options.dump_ir is not None:
            self.options.dump_ir.mkdir(parents=True, exist_ok=True)
            path = self.options.dump_ir / f"{number:02}-{phase}.mlir"
            with atomic_file(path) as file:
                file.write(f"{self.module}\n".encode())

    def _write_stage(self, output: Path) -> Path:
        """The module with its locations, and the store beside it."""
        write_stage(self.module, self.store, output)
        self.written = [output]
        return output

    # --- Code generation --------------------------------------------------------------------------------------

    def _code_target(self) -> Target:
        return Target(self.target.triple, self.target.cpu, self.target.features, self.opt_level)

    def _is_looked_at(self) -> bool:
        """Whether somebody wants to see the kernels in full."""
        options = self.options
        return options.emit in options.phases or options.dump_ir is not None or options.verify_each

    def _may_know_program(self) -> bool:
        """Whether nobody wants more of the phases than what the last one makes."""
        options = self.options
        is_tuned = is_measuring(options) or tuning_file(options) is not None
        wanted = options.verify or options.report is not None or is_tuned
        return self.cache is not None and not wanted and not self._is_looked_at()

    def _take_program(self, phases: Sequence[tuple[str, Sequence[str]]]) -> bool:
        """Takes what the phases made of the same model before; false when it has to be made."""
        assert self.cache is not None
        self.programs = KnownPrograms(self.cache, self._imported, phases)
        if not self.programs.has_module():
            return False
        with self._stage("known"):
            self._settle(self._held)
            self.program = self.programs.find(self.store.key)
            if self.program is None:
                return False
            self.module = ir.Module.parse(self.program.module)
        return True

    def _take_known(self, passes: Sequence[str]) -> None:
        """Kernels whose objects are there already need no expansion, unless somebody wants to see it."""
        if self.cache is not None and not self.gpus and not self._is_looked_at():
            self.known = KnownKernels(self.cache, self._code_target(), passes)
            self.known.take(self.module.operation)

    @contextmanager
    def _generating(self, phase: str) -> Iterator[None]:
        """In `tile`, gets the code of every kernel under way as soon as it is expanded. Then nobody needs its functions
        any more, unless to look at them.
        """
        if phase != "tile" or self.gpus or self._is_looked_at():
            yield
            return
        from mlc.passes.tile.expand_kernels import watched

        generator = self.generator = self._generator()

        def hand_over(kernel: ir.Operation) -> None:
            name = ir.StringAttr(kernel.attributes["sym_name"]).value
            generator.add(Unit(name, kernel.get_asm(use_local_scope=True)))
            for function in list(kernel.regions[0].blocks[0].operations):
                function.operation.erase()

        with watched(hand_over):
            yield

    def _generator(self) -> CodeGenerator:
        version, jobs = toolchain_version(), self.options.jobs
        return CodeGenerator(self._code_target(), version=version, jobs=jobs, cache=self.cache)

    def _modules(self) -> dict[str, ir.Operation]:
        """The modules to make objects of, in the order in which they are linked."""
        modules = [c.operation for c in self.module.body.operations if c.operation.name == "builtin.module"]
        if self.gpus:
            modules = [m for m in modules if "mlc.kernel" not in m.attributes or is_for_host(m)]
        return {ir.StringAttr(m.attributes["sym_name"]).value: m for m in modules}

    def _compile(self) -> list[CompiledUnit]:
        """The objects of all modules. Locations are no part of a module's text: they do not change the code."""
        began = time.perf_counter()
        objects = dict(self.program.objects) if self.program else dict(self.known.objects) if self.known else {}
        modules = self._modules()
        generator = self.generator = self.generator or self._generator()
        for name, module in modules.items():
            if name not in objects and name not in generator.handed:
                generator.add(Unit(name, module.get_asm(use_local_scope=True), "mlc.kernel" in module.attributes))
        done = len(objects)
        self._report("object", done, len(modules), 0.0)

        def count() -> None:
            nonlocal done
            done += 1
            self._report("object", done, len(modules), time.perf_counter() - began)

        try:
            compiled = generator.results(count)
        except CodegenError as error:
            raise self._bug("object", str(error), error.unit.text) from error
        if self.known is not None:
            self.known.remember(compiled)
        if self.cache is not None:
            self.cache.trim()
        objects.update({unit.name: unit for unit in compiled})
        return [objects[name] for name in modules]

    def _artefact(self, output: Path) -> Path:
        self._settle(self._held)
        kernels = self._gpu_kernels() if self.gpus else []
        if self.gpus and self.options.emit != "library":
            self.written = [write_kernels(output, kernels)]
            return output
        from mlc.codegen.link import link_library
        from mlc.codegen.program import emit_program

        if self.image is None:
            self._begin_image(output)
        compiled = self._compile()
        with self._stage("library"):
            digest = self.program.weights if self.program else None
            image = weight_image(output, self._external_weights(), self.image, digest)
            gpu = gpu_table(self.module, self.gpus, kernels) if self.gpus else None
            program = build_program(self.module, self.target, image, gpu)
            objects = [unit.data for unit in compiled] + [emit_program(program, self.target.triple)]
            if self.options.emit == "object":
                return self._write_objects(output, compiled, objects[-1])
            link_library(objects, output, image.embedded, gpu=gpu is not None)
            image.publish()
            if self.programs is not None and self.program is None:
                names = {name for name, _ in kernel_modules(self.module.operation)}
                self.programs.remember(self.store.key, self.module, compiled, names, image.hash)
            self.needs = f"runs in {needed_memory(image.size, module_attribute(self.module, 'mlc.memory', {}))}"
            self.needs += "".join(f"; code for {gpu.arch}: {gpu.status}" for gpu in self.gpus if not gpu.tried)
            if image.file is not None and image.final is None:
                self.needs += f"; its weights were in '{image.file}' already"
            self.written = [output] if image.final is None else [output, image.final]
        return output

    def _begin_image(self, output: Path) -> None:
        external, jobs = self._external_weights(), self.options.jobs
        known = self.program.weights if self.program else None
        self.image = begin_image(self.module, store_of(self.module), output, external, jobs, known)

    def _external_weights(self) -> bool:
        size = module_attribute(self.module, "mlc.weight_bytes", 0)
        return self.options.weights == "external" or (self.options.weights == "auto" and size > EMBEDDED_LIMIT)

    def _gpu_kernels(self) -> list[CompiledKernel]:
        """The PTX of all kernels, and their machine code unless only PTX is wanted."""
        kernels = collect_kernels(self.module)
        targets = {gpu.name if i else "": gpu for i, gpu in enumerate(self.gpus)}
        made = {name: GpuTarget(gpu.arch, gpu.features, self.opt_level) for name, gpu in targets.items()}
        began, done = time.perf_counter(), 0
        emit = "ptx" if self.options.emit == "ptx" else "cubin"
        self._report(emit, 0, len(kernels), 0.0)

        def count(_: CompiledKernel) -> None:
            nonlocal done
            done += 1
            self._report(emit, done, len(kernels), time.perf_counter() - began)

        version, cache, jobs = toolchain_version(), self.cache, self.options.jobs
        try:
            return compile_kernels(
                kernels, made, version=version, assembled=emit == "cubin", jobs=jobs, cache=cache, progress=count
            )
        except PtxError as error:
            raise self._bug("ptx", str(error), error.text) from error
        except AssemblyError as error:
            raise self._bug("cubin", str(error), error.ptx) from error

    def _write_objects(self, folder: Path, compiled: list[CompiledUnit], program: bytes) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for unit in compiled:
            (folder / f"{unit.name}.o").write_bytes(unit.data)
        (folder / "program.o").write_bytes(program)
        self.written = [folder]
        return folder

    # --- The report -------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        from mlc.inspect.collect import collect

        self.findings = collect(self.module, Path(self.title).name)

    def _write_report(self) -> None:
        if self.findings is None or self.options.report is None:
            return
        from mlc.inspect.report import write_report

        self.findings.weight_bytes = module_attribute(self.module, "mlc.weight_bytes", 0)
        self.findings.arena = module_attribute(self.module, "mlc.memory", {})
        self.findings.stages = self._seconds
        write_report(self.findings, self.options.report)
        self.written.append(self.options.report)

    # --- Progress ---------------------------------------------------------------------------------------------

    def _report(self, stage: str, done: int, total: int, seconds: float) -> None:
        self._seconds[stage] = seconds
        if self._progress is not None:
            self._progress(stage, done, total, seconds)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        self._report(name, 0, 1, 0.0)
        yield
        self._report(name, 1, 1, time.perf_counter() - began)


def _short(error: PipelineError) -> str:
    """The diagnostics without the notes that print whole operations."""
    return "\n".join(e.split("\n  note: ")[0] for e in error.errors) or str(error)
