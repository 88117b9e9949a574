"""Runs tiled GPU kernels in NumPy: the threads of a block in step, with what they share.

For kernels of ordinary operations; those of tensor cores, copy engines and clusters have no meaning here. Accesses must
lie within their tensors and be aligned as they say, shuffles need whole warps and barriers whole blocks; shared memory
and destinations are poison before they are written. Blocks, and the threads that add to one place, come in order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from gpu.bundle import Host
from mlir import ir
from mlir.dialects import arith
from models.gpu_cases import Case, build, differences

Array = np.ndarray
_TYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
_POISON = 0xFF
WARP = 32


def dtype_of(type_: ir.Type) -> np.dtype:
    """NumPy's type of an element."""
    return np.dtype(_TYPES[str(type_)])


def poison(count: int, dtype: np.dtype) -> Array:
    """What nobody has written."""
    return np.frombuffer(bytes([_POISON]) * (count * dtype.itemsize), dtype).copy()


def _unsigned(a: Array) -> Array:
    return a if a.dtype == np.bool_ else a.view(f"u{a.dtype.itemsize}")


def _as_unsigned(function: Callable[..., Array]) -> Callable[..., Array]:
    def apply(*values: Array) -> Array:
        found = function(*map(_unsigned, values))
        return found if found.dtype == np.bool_ else found.view(values[0].dtype)

    return apply


def _extreme(function: Callable[..., Array], zero: bool) -> Callable[..., Array]:
    """maximumf and minimumf: NaN wins, and the zeros are in order."""

    def apply(a: Array, b: Array) -> Array:
        found = function(a, b)
        both = (a == 0) & (b == 0)
        signs = np.signbit(a) & np.signbit(b) if zero else np.signbit(a) | np.signbit(b)
        return np.where(both, np.where(signs, -0.0, 0.0).astype(a.dtype), found)

    return apply


_BINARY: dict[str, Callable[..., Array]] = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or,
    "xori": np.bitwise_xor, "minsi": np.minimum, "maxsi": np.maximum, "minui": _as_unsigned(np.minimum),
    "maxui": _as_unsigned(np.maximum), "divui": _as_unsigned(np.floor_divide), "remui": _as_unsigned(np.remainder),
    "shli": np.left_shift, "shrui": _as_unsigned(np.right_shift), "shrsi": np.right_shift,
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide,
    "maximumf": _extreme(np.maximum, True), "minimumf": _extreme(np.minimum, False),
    "maxnumf": np.fmax, "minnumf": np.fmin,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "math.exp": np.exp, "math.exp2": np.exp2, "math.sqrt": np.sqrt, "math.absf": np.abs, "math.floor": np.floor,
    "math.roundeven": np.rint,
}  # fmt: skip
_INTEGERS: list[Callable[..., Array]] = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]
_INTEGERS += [_as_unsigned(f) for f in _INTEGERS[2:6]]
_REDUCTIONS = {"add": "addi", "mul": "muli", "and": "andi", "or": "ori", "xor": "xori"}


def _compare_floats(predicate: int, a: Array, b: Array) -> Array:
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in (0, 15):
        return np.full(unordered.shape, predicate == 15)
    if predicate in (7, 14):
        return unordered if predicate == 14 else ~unordered
    order: list[Callable[..., Array]] = [
        np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal
    ]  # fmt: skip
    if predicate < 7:
        return ~unordered & order[predicate - 1](a, b)
    return unordered | order[predicate - 8](a, b)


class Lockstep:
    """One kernel module."""

    def __init__(self, kernel: ir.Operation, threads: int) -> None:
        self.threads = threads
        self.ids = np.arange(threads)
        self.shared_types: dict[str, ir.MemRefType] = {}
        name = ir.StringAttr(kernel.attributes["sym_name"]).value
        for view in kernel.regions[0].blocks[0].operations:
            op = view.operation
            if op.name == "memref.global":
                self.shared_types[op.attributes["sym_name"].value] = ir.TypeAttr(op.attributes["type"]).value
            elif op.name == "func.func" and op.attributes["sym_name"].value == name:
                self.function = op
        self.shared: dict[str, Array] = {}
        self.values: dict[ir.Value, Any] = {}

    def launch(self, tensors: Sequence[Array], indices: Sequence[int], items: int, group: int) -> Array:
        """Runs all blocks on flat `tensors`; gives the two words of the error."""
        error, block = np.zeros(2, np.int64), self.function.regions[0].blocks[0]
        blocks = -(-items * group // self.threads)
        for number in range(blocks):
            self.shared = {}
            for name, type_ in self.shared_types.items():
                self.shared[name] = poison(int(np.prod(type_.shape)), dtype_of(type_.element_type))
            begin = (number * self.threads + self.ids) // group
            active = (begin < items) | (group > 1)
            begin = np.minimum(begin, items - 1)
            arguments = [*tensors, *(np.array([i]) for i in indices), error, begin, begin + 1]
            self.values = dict(zip(block.arguments, arguments, strict=True))
            with np.errstate(all="ignore"):
                self._run(block, active)
        return error

    def _run(self, block: ir.Block, mask: Array) -> list[Any]:
        for view in block.operations:
            op = view.operation
            if op.name in ("scf.yield", "func.return"):
                return [self.values[v] for v in op.operands]
            found = self._step(op, mask)
            for result, value in zip(op.results, found, strict=True):
                self.values[result] = value
        return []

    def _step(self, op: ir.Operation, mask: Array) -> list[Any]:
        kind, _, name = op.name.partition(".")
        if kind == "arith":
            return [self._arithmetic(name, op, [self.values[v] for v in op.operands])]
        if op.name in _FUNCTIONS:
            return [_FUNCTIONS[op.name](self.values[op.operands[0]])]
        handler = getattr(self, "_" + op.name.replace(".", "_"), None)
        if handler is None:
            raise NotImplementedError(f"{op.name} in step")
        found = handler(op, mask)
        return found if isinstance(found, list) else [] if found is None else [found]

    # -- numbers ----------------------------------------------------------------------------------------------------

    def _arithmetic(self, name: str, op: ir.Operation, values: list[Array]) -> Array:
        if name == "constant":
            return _constant(op)
        values = _alike(values)
        if name == "select":
            return np.where(*values)
        if name in ("cmpi", "cmpf"):
            predicate = ir.IntegerAttr(op.attributes["predicate"]).value
            return _INTEGERS[predicate](*values) if name == "cmpi" else _compare_floats(predicate, *values)
        if name in _BINARY:
            return _BINARY[name](*values)
        type_ = op.results[0].type
        to = dtype_of(type_.element_type if isinstance(type_, ir.VectorType) else type_)
        if name == "bitcast":
            return values[0].view(to)
        if name in ("extui", "uitofp", "index_castui"):
            return _unsigned(values[0]).astype(to)
        if name in ("extsi", "sitofp"):
            return (-values[0].astype(to) if values[0].dtype == np.bool_ else values[0]).astype(to)
        if name == "trunci" and to == np.bool_:
            return (values[0] & 1).astype(to)
        if name in ("trunci", "index_cast", "extf", "truncf", "fptosi", "negf"):
            return (-values[0] if name == "negf" else values[0]).astype(to)
        raise NotImplementedError(f"arith.{name} in step")

    def _llvm_inline_asm(self, op: ir.Operation, mask: Array) -> Array:
        if not ir.StringAttr(op.attributes["asm_string"]).value.startswith("ex2.approx"):
            raise NotImplementedError(f"{op.attributes['asm_string']} in step")
        return np.exp2(self.values[op.operands[0]])

    def _math_fma(self, op: ir.Operation, mask: Array) -> Array:
        a, b, c = (v.astype(np.float64) for v in _alike([self.values[o] for o in op.operands]))
        return (a * b + c).astype(self.values[op.operands[0]].dtype)

    # -- vectors ----------------------------------------------------------------------------------------------------

    def _vector_broadcast(self, op: ir.Operation, mask: Array) -> Array:
        value = self.values[op.operands[0]]
        if isinstance(op.operands[0].type, ir.VectorType):
            return value
        return np.repeat(value[:, None], op.results[0].type.shape[0], 1)

    def _vector_extract(self, op: ir.Operation, mask: Array) -> Array:
        (lane,) = ir.DenseI64ArrayAttr(op.attributes["static_position"])
        return self.values[op.operands[0]][:, lane]

    def _vector_from_elements(self, op: ir.Operation, mask: Array) -> Array:
        values = np.broadcast_arrays(*(self.values[v] for v in op.operands))
        return np.stack(values, 1)

    def _vector_reduction(self, op: ir.Operation, mask: Array) -> Array:
        value, kind = self.values[op.operands[0]], str(op.attributes["kind"]).split("<")[1].rstrip(">")
        name = _REDUCTIONS.get(kind, kind)
        if value.dtype.kind == "f" and name in ("addi", "muli"):
            name = {"addi": "addf", "muli": "mulf"}[name]
        return functools.reduce(_BINARY[name], [value[:, lane] for lane in range(value.shape[1])])

    # -- memory -----------------------------------------------------------------------------------------------------

    def _memref_reinterpret_cast(self, op: ir.Operation, mask: Array) -> Array:
        return self.values[op.operands[0]]

    _memref_cast = _memref_reinterpret_cast

    def _memref_get_global(self, op: ir.Operation, mask: Array) -> Array:
        return self.shared[ir.FlatSymbolRefAttr(op.attributes["name"]).value]

    def _places(self, buffer: Array, indices: Sequence[ir.Value], lanes: int, mask: Array, aligned: int) -> Array:
        """The elements that each thread accesses, as [threads, lanes]; those of others are 0."""
        first = np.broadcast_to(self.values[indices[0]] if len(indices) else np.zeros(1, np.int64), self.threads)
        wrong = mask & ((first < 0) | (first + lanes > buffer.size))
        if wrong.any():
            thread = int(np.flatnonzero(wrong)[0])
            raise IndexError(f"thread {thread}: elements {first[thread]} + {lanes} of {buffer.size}")
        if aligned and (first[mask] * buffer.dtype.itemsize % aligned).any():
            raise IndexError(f"{lanes} elements from {first[mask]} are not aligned to {aligned} bytes")
        return np.where(mask, first, 0)[:, None] + np.arange(lanes)

    def _load(self, op: ir.Operation, mask: Array, lanes: int, aligned: int) -> Array:
        buffer = self.values[op.operands[0]]
        places = self._places(buffer, list(op.operands)[1:2], lanes, mask, aligned)
        return buffer[places] if buffer.size else np.zeros(places.shape, buffer.dtype)

    def _store(self, op: ir.Operation, mask: Array, lanes: int, aligned: int) -> None:
        value, buffer = self.values[op.operands[0]], self.values[op.operands[1]]
        places = self._places(buffer, list(op.operands)[2:3], lanes, mask, aligned)
        value = np.broadcast_to(value.reshape(value.shape[0], lanes), places.shape)
        buffer[places[mask]] = value[mask]

    def _memref_load(self, op: ir.Operation, mask: Array) -> Array:
        return self._load(op, mask, 1, 0)[:, 0]

    def _memref_store(self, op: ir.Operation, mask: Array) -> None:
        self._store(op, mask, 1, 0)

    def _vector_load(self, op: ir.Operation, mask: Array) -> Array:
        return self._load(op, mask, op.results[0].type.shape[0], _alignment(op))

    def _vector_store(self, op: ir.Operation, mask: Array) -> None:
        self._store(op, mask, op.operands[0].type.shape[0], _alignment(op))

    def _vector_gather(self, op: ir.Operation, mask: Array) -> Array:
        buffer, first, lanes, inside, other = (self.values[v] for v in op.operands)
        places = first[:, None] + np.broadcast_to(lanes, (self.threads, lanes.shape[1]))
        active = mask[:, None] & inside
        if (active & ((places < 0) | (places >= buffer.size))).any():
            raise IndexError(f"a gather of {places[active]} of {buffer.size} elements")
        return np.where(active, buffer[np.where(active, places, 0)], other)

    def _memref_atomic_rmw(self, op: ir.Operation, mask: Array) -> Array:
        """The threads one after the other."""
        value, buffer = self.values[op.operands[0]], self.values[op.operands[1]]
        kind = arith.AtomicRMWKind(ir.IntegerAttr(op.attributes["kind"]).value).name
        function = _BINARY[_ATOMICS.get(kind, kind)]
        places = self._places(buffer, list(op.operands)[2:3], 1, mask, 0)[:, 0]
        value, before = np.broadcast_to(value, self.threads), np.zeros(self.threads, buffer.dtype)
        for thread in np.flatnonzero(mask):
            at = slice(places[thread], places[thread] + 1)
            before[thread] = buffer[at][0]
            buffer[at] = function(buffer[at], value[thread : thread + 1])
        return before

    # -- threads ----------------------------------------------------------------------------------------------------

    def _nvvm_read_ptx_sreg_tid_x(self, op: ir.Operation, mask: Array) -> Array:
        return self.ids.astype(np.int32)

    def _nvvm_shfl_sync(self, op: ir.Operation, mask: Array) -> Array:
        warps = mask.reshape(-1, WARP)
        if (warps.any(1) != warps.all(1)).any():
            raise RuntimeError("a shuffle without some of a warp's threads")
        _, value, which, _ = (np.broadcast_to(self.values[v], self.threads) for v in op.operands)
        kind, lane = str(op.attributes["kind"]), self.ids % WARP
        other = lane ^ which if "bfly" in kind else which if "idx" in kind else lane - which
        return value[self.ids - lane + np.where(other < 0, lane, other)]

    def _nvvm_barrier(self, op: ir.Operation, mask: Array) -> None:
        if not mask.all():
            raise RuntimeError("a barrier without some of the block's threads")

    _nvvm_barrier0 = _nvvm_barrier

    # -- control ----------------------------------------------------------------------------------------------------

    def _scf_if(self, op: ir.Operation, mask: Array) -> list[Array]:
        condition = np.broadcast_to(self.values[op.operands[0]], self.threads)
        found = []
        for region, active in zip(op.regions, (mask & condition, mask & ~condition), strict=True):
            found.append(self._run(region.blocks[0], active) if len(region.blocks) and active.any() else None)
        one, other = found
        if one is None or other is None:
            return list(other or one or [_nothing(r) for r in op.results])
        return [_where(condition, a, b) for a, b in zip(one, other, strict=True)]

    def _scf_for(self, op: ir.Operation, mask: Array) -> list[Array]:
        low, high, step = (np.broadcast_to(self.values[v], self.threads) for v in list(op.operands)[:3])
        block, at = op.regions[0].blocks[0], low.copy()
        carried = [self.values[v] for v in list(op.operands)[3:]]
        while (active := mask & (at < high)).any():
            self.values.update(zip(block.arguments, [at, *carried], strict=True))
            found = self._run(block, active)
            carried = [_where(active, a, b) for a, b in zip(found, carried, strict=True)]
            at = at + step
        return carried


_ATOMICS = {"maxs": "maxsi", "maxu": "maxui", "mins": "minsi", "minu": "minui"}


def _alignment(op: ir.Operation) -> int:
    return ir.IntegerAttr(op.attributes["alignment"]).value if "alignment" in op.attributes else 0


def _constant(op: ir.Operation) -> Array:
    attribute, type_ = op.attributes["value"], op.results[0].type
    if isinstance(type_, ir.VectorType):
        dtype, dense = dtype_of(type_.element_type), ir.DenseElementsAttr(attribute)
        values = [_number(dense.get_splat_value())] if dense.is_splat else list(attribute)
        return np.broadcast_to(np.array(values).astype(dtype), (1, type_.shape[0]))
    return np.array([_number(attribute)]).astype(dtype_of(type_))


def _number(attribute: ir.Attribute) -> float | int:
    for kind in (ir.BoolAttr, ir.IntegerAttr, ir.FloatAttr):
        if isinstance(attribute, kind):
            return kind(attribute).value
    raise NotImplementedError(f"constant {attribute}")


def _alike(values: Sequence[Array]) -> list[Array]:
    """Values of all threads, and of all lanes where one has several."""
    rank = max(v.ndim for v in values)
    return list(np.broadcast_arrays(*(v if v.ndim == rank else v[:, None] for v in values)))


def _where(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition[:, None] if max(a.ndim, b.ndim) == 2 else condition, a, b)


def _nothing(value: ir.Value) -> Array:
    type_ = value.type
    lanes = [type_.shape[0]] if isinstance(type_, ir.VectorType) else []
    return np.zeros([1, *lanes], dtype_of(type_.element_type if lanes else type_))


def run_case(case: Case, folder: Path, gpu: str = "sm_80") -> str:
    """What is wrong with a case's results ("": nothing). Raises OnHostError where it is more than launches."""
    from mlc.compilation import Compilation
    from mlc.compiler_setup import new_context
    from mlc.options import make_options
    from mlc.passes.schedule.assign_schedules import read_schedule
    from mlc.passes.simplify.weight_recipes import read_recipes
    from mlc.weights import Store

    model, tiled = folder / "model.onnx", folder / "tiled.mlir"
    onnx.save(build(case), model)
    Compilation(make_options(target="cuda", gpu=gpu, emit="tile")).run(model, tiled)
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(tiled.read_text())
        store = Store.load(tiled.with_suffix(".weights"))
        store.add_recipes(read_recipes(module))
        host = Host(case, module, store)
        program, inputs = host.run(), case.inputs()
        buffers = []
        for described in program["buffers"]:
            name = described.get("input", described.get("constant"))
            array = inputs.get(name, host.arrays.get(name))
            count, dtype = int(np.prod(described["shape"], dtype=np.int64)), np.dtype(_TYPES[described["element"]])
            given = None if array is None else np.ascontiguousarray(array).reshape(-1)
            if given is not None and given.dtype != dtype:
                given = given.view(dtype)
            buffers.append(poison(count, dtype) if given is None else given.copy())
        error = np.zeros(2, np.int64)
        for launch in program["launches"]:
            kernel = host.kernels[launch["kernel"]]
            schedule = read_schedule(kernel)
            run = Lockstep(kernel, int(schedule["threads"]))
            for place, target in launch["copies"]:
                buffers[target][:] = buffers[place]
            tensors = [buffers[n] for n in launch["buffers"]]
            found = run.launch(tensors, launch["indices"], launch["items"], int(schedule.get("group", 1)))
            error = found if found.any() else error
    if case.error[0] or error.any():
        return "" if error.tolist() == list(case.error) else f"the error words are {error}, not {case.error}"
    return wrong(case, inputs, [buffers[n] for n in program["outputs"]])


def wrong(case: Case, inputs: Mapping[str, Array], outputs: Sequence[Array]) -> str:
    """What is wrong with a case's results ("": nothing)."""
    for number, (got, want) in enumerate(zip(outputs, case.expected(dict(inputs)), strict=True)):
        got = got.view(want.dtype) if want.dtype.kind == "u" else got
        apart = differences(got, want.reshape(-1))
        if not (apart <= case.tolerance).all():
            at = int(np.flatnonzero(~(apart <= case.tolerance))[0])
            return f"result {number}: {got[at]} instead of {want.reshape(-1)[at]} at {at}"
    return ""
