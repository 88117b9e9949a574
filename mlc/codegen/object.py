"""Machine code: every module of the program, on its own, from memref or LLVM dialect text to an ELF object.

A kernel module (docs/ir.md, section 6) gets the two functions of the artefact's ABI around its own ones,
goes through the upstream conversions to the LLVM dialect and through LLVM. Each module is parsed into a
context of its own on a worker thread; passes and LLVM run without the GIL. Objects depend on the module's
text, the target and the compiler's version alone, which is also the key under which they are cached.
"""

from __future__ import annotations

import heapq
import os
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from .bf16_rounding import ROUNDING, round_in_integers, rounds_in_integers
from .cache import ObjectCache
from .contexts import thread_context
from .symbols import ANONYMOUS, can_be_anonymous, kernel_symbol, named, renamed

# Reassociation only inside vector reductions; everything else keeps IEEE semantics (FMA contraction is LLVM's setting).
KERNEL_TO_LLVM = [
    "convert-vector-to-scf{full-unroll=true}",
    "expand-strided-metadata",
    "lower-affine",
    "convert-scf-to-cf",
    "canonicalize",
    "cse",
    "convert-vector-to-llvm{reassociate-fp-reductions=true}",
    "convert-math-to-llvm{approximate-log1p=false}",
    "convert-math-to-libm",
    "convert-vector-to-llvm",  # what calls of libm take vectors of float64 apart with
    "expand-strided-metadata",
    "lower-affine",
    "finalize-memref-to-llvm{use-generic-functions=false}",
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "convert-ub-to-llvm",
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true}",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
]
# Passes that have work only where a kernel's text has one of these. Each of them looks at every operation: all together
# take a third of a lowering. Transfers become loops, views affine arithmetic, mathematics calls for single numbers.
_VIEWS = ("memref.subview", "memref.expand_shape", "memref.collapse_shape", "memref.extract_", "affine.")
_ONLY_FOR = {
    "convert-vector-to-scf{full-unroll=true}": ("vector.transfer_",),
    "expand-strided-metadata": _VIEWS,
    "lower-affine": _VIEWS,
    "convert-math-to-llvm{approximate-log1p=false}": ("math.",),
    "convert-math-to-libm": ("math.",),
    "convert-vector-to-llvm": ("math.",),
    "convert-index-to-llvm": ("index.",),
}
# Bump when the code generated from the same text changes.
FORMAT = "8"


@dataclass(frozen=True)
class Target:
    """What LLVM generates code for. `cpu` and `features` are LLVM's names; `native` has been resolved
    before.
    """

    triple: str
    cpu: str
    features: str
    opt_level: int = 3

    def text(self) -> str:
        """Everything that may change an object, as one string."""
        return f"{self.triple}|{self.cpu}|{self.features}|O{self.opt_level}"


@dataclass(frozen=True)
class Unit:
    """One module to compile: its symbol, its text, and whether it is a kernel (memrefs) or the host (LLVM
    dialect).
    """

    name: str
    text: str
    is_kernel: bool = True


@dataclass(frozen=True)
class CompiledUnit:
    """An object, whether it came out of the cache, and its key there."""

    name: str
    data: bytes
    cached: bool
    key: str = ""


def cached_unit(cache: ObjectCache, name: str, key: str, is_kernel: bool = True) -> CompiledUnit | None:
    """The object of module `name` that is cached under `key`, with the module's own symbols; None when it is gone."""
    data = cache.get(key)
    if data is None:
        return None
    return CompiledUnit(name, named(data, name) if is_kernel and can_be_anonymous(name) else data, True, key)


class CodegenError(Exception):
    """A module that passed every verifier could not be turned into machine code: a bug of the compiler."""

    def __init__(self, unit: Unit, message: str) -> None:
        super().__init__(f"code generation of '{unit.name}' failed: {message}")
        self.unit, self.reason = unit, message


def pipeline_text(passes: Sequence[str]) -> str:
    """`passes` as the text of one pass pipeline on modules."""
    return f"builtin.module({','.join(passes)})"


def _wrapper_text(name: str, num_tensors: int, num_indices: int) -> str:
    """The exported functions of kernel `name`: unpack the argument array and call the kernel's own
    functions.
    """

    def unpack(first: int, count: int, kind: str) -> list[str]:
        lines = []
        for i in range(first, first + count):
            lines.append(f"%p{i} = llvm.getelementptr inbounds %args[{i}] : (!llvm.ptr) -> !llvm.ptr, i64")
            lines.append(f"%v{i} = llvm.load %p{i} : !llvm.ptr -> {kind}")
        return lines

    tensors = unpack(0, num_tensors, "!llvm.ptr")
    indices = unpack(num_tensors, num_indices, "i64")
    values = [f"%v{i}" for i in range(num_tensors + num_indices)]
    types = ["!llvm.ptr"] * num_tensors + ["i64"] * num_indices
    operands = ", ".join([*values, "%error", "%begin", "%end"])
    signature = ", ".join([*types, "!llvm.ptr", "i64", "i64"])
    return "\n".join(
        [
            f"llvm.func hidden @{name}(%args: !llvm.ptr, %error: !llvm.ptr, %begin: i64, %end: i64) {{",
            *tensors,
            *indices,
            f"llvm.call @{name}.body({operands}) : ({signature}) -> ()",
            "llvm.return",
            "}",
            f"llvm.func hidden @{name}_grid(%args: !llvm.ptr) -> i64 {{",
            *indices,
            f"%n = llvm.call @{name}_grid.body({', '.join(values[num_tensors:])})"
            f" : ({', '.join(types[num_tensors:])}) -> i64",
            "llvm.return %n : i64",
            "}",
        ]
    )


def _signature(module: Any, name: str) -> tuple[int, int]:
    """How many tensors and how many index values the kernel function `name` takes; ValueError when it
    breaks the contract.
    """
    import mlir.ir as ir

    functions = {}
    for operation in module.body.operations:
        if operation.operation.name == "func.func":
            functions[ir.StringAttr(operation.attributes["sym_name"]).value] = operation
    for wanted in (name, f"{name}_grid"):
        if wanted not in functions:
            raise ValueError(f"module @{name} has no function @{wanted}")
    inputs = list(functions[name].type.inputs)
    tail = ["memref<2xi64>", "index", "index"]
    if [str(t) for t in inputs[-3:]] != tail:
        raise ValueError(f"@{name} must end with the arguments ({', '.join(tail)})")
    kinds = [isinstance(t, ir.MemRefType) for t in inputs[:-3]]
    num_tensors = sum(kinds)
    if not all(kinds[:num_tensors]) or any(kinds[num_tensors:]):
        raise ValueError(f"@{name} must take its tensors before its index values")
    num_indices = len(kinds) - num_tensors
    if len(functions[f"{name}_grid"].type.inputs) != num_indices:
        raise ValueError(f"@{name}_grid must take the {num_indices} index values of @{name}")
    return num_tensors, num_indices


def lowering(text: str) -> list[str]:
    """The passes of `KERNEL_TO_LLVM` that a kernel with that text has work for."""
    return [p for p in KERNEL_TO_LLVM if p not in _ONLY_FOR or any(found in text for found in _ONLY_FOR[p])]


def _lower_kernel(module: Any, name: str, passes: Sequence[str]) -> None:
    """Kernel functions -> LLVM dialect by `passes`, with the ABI's entry points; nothing but those two is visible
    outside the object.
    """
    import mlir.ir as ir
    from mlir.passmanager import PassManager

    from mlc import _native

    num_tensors, num_indices = _signature(module, name)
    manager = PassManager.parse(pipeline_text(passes))
    manager.enable_verifier(False)  # upstream passes on parsed, so verified, IR; LLVM's verifier sees the result
    passed, messages = _native.run_pipeline(manager, module.operation)
    if not passed:
        raise ValueError("\n".join(messages) or "a conversion failed without a message")
    internal, told = ir.Attribute.parse("#llvm.linkage<internal>"), None
    for operation in module.body.operations:
        attributes = operation.attributes
        if operation.operation.name == "llvm.mlir.global":
            attributes["linkage"] = internal
        elif operation.operation.name == "llvm.func" and len(operation.regions[0].blocks):
            symbol = ir.StringAttr(attributes["sym_name"]).value
            attributes["linkage"] = internal
            if symbol == name and "passthrough" in attributes:
                told = attributes["passthrough"]
            attributes["always_inline"] = ir.UnitAttr.get()
            if symbol in (name, f"{name}_grid"):
                attributes["sym_name"] = ir.StringAttr.get(f"{symbol}.body")
    wrapper = _wrapper_text(name, num_tensors, num_indices)
    types = ["!llvm.ptr"] * num_tensors + ["i64"] * num_indices
    declared = f"llvm.func @{name}.body({', '.join([*types, '!llvm.ptr, i64, i64'])})\n"
    declared += f"llvm.func @{name}_grid.body({', '.join(types[num_tensors:])}) -> i64\n"
    parsed = ir.Module.parse(declared + wrapper)
    entry, grid = list(parsed.body.operations)[2:]
    if told is not None:  # what LLVM is told of a function holds for the one that it becomes a part of
        entry.attributes["passthrough"] = told
    module.body.append(entry)
    module.body.append(grid)


def _opt_level(unit: Unit, target: Target) -> int:
    """The level at which LLVM compiles `unit`: at 0, matrix tiles that go through a loop crash it."""
    return max(target.opt_level, 1) if "x86_amx" in unit.text else target.opt_level


def compile_unit(unit: Unit, target: Target) -> bytes:
    """The ELF object of `unit`. Raises CodegenError, with the unit, when any step fails."""
    import mlir.ir as ir

    from mlc import _native

    with thread_context():
        try:
            module = ir.Module.parse(unit.text)
            if unit.is_kernel:
                if ROUNDING in unit.text and rounds_in_integers(target.features):
                    round_in_integers(module)
                _lower_kernel(module, unit.name, lowering(unit.text))
            data: bytes = _native.emit(
                module.operation,
                cpu=target.cpu,
                features=target.features,
                opt_level=_opt_level(unit, target),
                triple=target.triple,
            )
        except (ValueError, RuntimeError, ir.MLIRError) as error:
            raise CodegenError(unit, str(error)) from error
    return data


class CodeGenerator:
    """Compiles modules on `jobs` threads (default: the processors of this process) as they are handed over.

    The thread that hands them over is one of them, from when it asks for results: until then it has other work, which
    nothing else can do. `version` names the compiler in the cache key. To be closed.
    """

    def __init__(
        self,
        target: Target,
        *,
        version: str,
        jobs: int | None = None,
        cache: ObjectCache | None = None,
    ) -> None:
        self._target, self._version, self._cache = target, version, cache
        workers = jobs or len(os.sched_getaffinity(0))
        self._helps = workers > 1  # does who waits for results?
        self._pool = ThreadPoolExecutor(max(1, workers - 1), thread_name_prefix="mlc-codegen")
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, int, Unit, Future[CompiledUnit]]] = []
        self.handed: dict[str, Future[CompiledUnit]] = {}
        """The modules that it has got, by name."""

    def add(self, unit: Unit) -> None:
        """Hands over one more module."""
        future: Future[CompiledUnit] = Future()
        with self._lock:
            # The longest first: none of them should be the last one running.
            heapq.heappush(self._waiting, (-len(unit.text), len(self.handed), unit, future))
            self.handed[unit.name] = future
        self._pool.submit(self._next)

    def results(self, progress: Callable[[], None] | None = None) -> list[CompiledUnit]:
        """Waits for what was handed over and gives it in that order; `progress` is called for every module that is
        done. Raises the CodegenError of the first that failed.
        """
        waiting = set(self.handed.values())

        def count(done: Collection[Future[CompiledUnit]]) -> None:
            waiting.difference_update(done)
            if progress is not None:
                for _ in (future for future in done if future.exception() is None):
                    progress()

        while self._helps and self._next():
            count([future for future in waiting if future.done()])
        for future in as_completed(list(waiting)):
            count([future])
        return [future.result() for future in self.handed.values()]

    def close(self) -> None:
        """Ends the threads and waits for them, whatever they have reached."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _next(self) -> bool:
        """Compiles the next module; False if there is none."""
        with self._lock:
            if not self._waiting:
                return False
            _, _, unit, future = heapq.heappop(self._waiting)
        try:
            future.set_result(self._compile(unit))
        except BaseException as error:
            future.set_exception(error)
            if not isinstance(error, Exception):  # whoever asked for results was interrupted
                raise
        return True

    def _compile(self, unit: Unit) -> CompiledUnit:
        anonymous = unit.is_kernel and can_be_anonymous(unit.name)
        symbol = ANONYMOUS if anonymous else kernel_symbol(unit.name) if unit.is_kernel else unit.name
        text = renamed(unit.text, unit.name, symbol) if unit.is_kernel else unit.text
        kind = "kernel" if unit.is_kernel else "host"
        key = ObjectCache.key(FORMAT, self._version, self._target.text(), ",".join(KERNEL_TO_LLVM), kind, text)
        data = self._cache.get(key) if self._cache is not None else None
        cached = data is not None
        if data is None:
            try:
                data = compile_unit(Unit(symbol, text, unit.is_kernel), self._target)
            except CodegenError as error:
                raise CodegenError(unit, error.reason.replace(symbol, unit.name)) from error
            if self._cache is not None:
                self._cache.put(key, data)
        return CompiledUnit(unit.name, named(data, unit.name) if anonymous else data, cached, key)


def compile_units(
    units: Sequence[Unit],
    target: Target,
    *,
    version: str,
    jobs: int | None = None,
    cache: ObjectCache | None = None,
) -> list[CompiledUnit]:
    """Compiles `units`, in their order, as a `CodeGenerator` does. Raises the CodegenError of the first failing unit in
    that order.
    """
    generator = CodeGenerator(target, version=version, jobs=jobs, cache=cache)
    try:
        for unit in units:
            generator.add(unit)
        return generator.results()
    finally:
        generator.close()
