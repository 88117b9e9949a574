"""Creates `mlc` operations: the one place where importers touch the MLIR bindings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from mlir import ir

from mlc.frontends.common import types
from mlc.frontends.report import MismatchError, NodeError
from mlc.weights.store import CONSTANT_PREFIX

Size: TypeAlias = int | ir.Value
"""An extent, offset or stride: a Python integer, or a value of type `index`."""

DYNAMIC = ir.ShapedType.get_dynamic_size()
INLINE_LIMIT = 64
KNOWN_LIMIT = 1024

# Operations with more than one optional or variadic operand group say how long each group is.
_SEGMENTED = {"slice", "pad", "clamp", "layer_norm", "recurrent"}


class Store(Protocol):
    """What importers need of the weight store."""

    def add(
        self, name: str, value: np.ndarray | Callable[[], np.ndarray], shape: Sequence[int] | None, dtype: str | None
    ) -> Any:
        """Keeps `value`, an array or a function that makes it, as `name`."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of the module being built, with what the importer knows beyond its type.

    `known` holds the elements of small tensors that matter for shapes: an ordinary array when all are constants, an
    object array of `int` and `index` values when some are sizes known only at run time.
    """

    value: ir.Value
    unsigned: bool = False
    known: np.ndarray | None = None

    @property
    def type(self) -> ir.RankedTensorType:
        """The ranked tensor type of the value."""
        return ir.RankedTensorType(self.value.type)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.type.rank

    @property
    def shape(self) -> list[int | None]:
        """The extents, `None` where unknown."""
        return [None if extent == DYNAMIC else extent for extent in self.type.shape]

    @property
    def element(self) -> ir.Type:
        """The MLIR element type."""
        return self.type.element_type

    @property
    def dtype(self) -> str:
        """The dtype name, `uint8` for an unsigned `i8`."""
        return types.dtype_name(self.element, self.unsigned)

    @property
    def constant(self) -> np.ndarray | None:
        """The elements when all of them are constants and few."""
        return None if self.known is None or self.known.dtype == object else self.known

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return types.is_float(self.element)

    @property
    def is_bool(self) -> bool:
        """Whether the elements are `i1`."""
        return types.is_bool(self.element)

    def __str__(self) -> str:
        extents = "x".join("?" if extent is None else str(extent) for extent in self.shape)
        return f"{self.dtype}[{extents}]"


def describe(value: object) -> str:
    """How an operand is shown in a report."""
    if value is None:
        return "-"
    if isinstance(value, Tensor) and not isinstance(value.value.type, ir.RankedTensorType):
        return str(value.value.type)
    return str(value)


def unit(flag: bool) -> ir.Attribute | None:
    """The unit attribute when `flag` is set, else nothing."""
    return ir.UnitAttr.get() if flag else None


def attribute(value: object) -> ir.Attribute:
    """The builtin attribute of a Python value, after the conventions of the dialect."""
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int | np.integer):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(value))
    if isinstance(value, float | np.floating):
        return ir.FloatAttr.get_f64(float(value))
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], str):
            return ir.ArrayAttr.get([ir.StringAttr.get(item) for item in value])
        return ir.DenseI64ArrayAttr.get([int(item) for item in value])
    raise TypeError(f"no attribute for {value!r}")


def dense(array: np.ndarray) -> ir.DenseElementsAttr:
    """The dense elements of `array`, with the signless type of its dtype."""
    element = types.element_type(array.dtype.name)
    kind = ir.RankedTensorType.get(list(array.shape), element)
    if element in (types.element_type("bool"), types.element_type("int2"), types.element_type("int4")):
        # The buffer protocol has no packed types: one attribute an element.
        mask = {"bool": 1, "int2": 3, "uint2": 3, "int4": 15, "uint4": 15}[array.dtype.name]
        if array.size == 0:
            return ir.DenseElementsAttr.get(np.zeros(array.shape, np.int8), type=kind)
        sign = (mask + 1) // 2
        items = [int(item) & mask for item in array.ravel()]
        signed = items if mask == 1 else [item - mask - 1 if item >= sign else item for item in items]
        return ir.DenseElementsAttr.get([ir.IntegerAttr.get(element, item) for item in signed], kind)
    raw = array.view(f"uint{8 * array.dtype.itemsize}") if array.dtype.kind == "V" else array
    return ir.DenseElementsAttr.get(np.ascontiguousarray(raw).reshape(array.shape), type=kind)


def split_sizes(sizes: Sequence[Size]) -> tuple[list[int], list[ir.Value]]:
    """The static list (with `DYNAMIC` marks) and the operands of a mixed size list."""
    static = [size if isinstance(size, int) else DYNAMIC for size in sizes]
    return static, [size for size in sizes if not isinstance(size, int)]


class Builder:
    """Builds operations at the current insertion point and location."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.index = ir.IndexType.get()
        # Types that the arguments of a loop's body turned out to need while it was built.
        self.wanted: dict[ir.Value, ir.Type] = {}
        self._stored: dict[str, np.ndarray | Callable[[], np.ndarray]] = {}

    # Operations -----------------------------------------------------------------------------------------------------

    def emit(
        self,
        name: str,
        operands: Sequence[object],
        results: Sequence[ir.Type] | None = None,
        /,
        regions: int = 0,
        **attributes: Any,
    ) -> ir.Operation:
        """Creates `mlc.<name>`.

        `operands` has one entry an operand group: a `Tensor`, an `ir.Value`, a list of them, or `None`. The result
        types are inferred when `results` is `None`. `MLIRError` from inference becomes `NodeError`.
        """
        flat: list[ir.Value] = []
        segments: list[int] = []
        for group in operands:
            members = [] if group is None else group if isinstance(group, list | tuple) else [group]
            flat.extend(item.value if isinstance(item, Tensor) else item for item in members)
            segments.append(len(members))
        # `unsigned` is what a builder's keyword says of the result, `is_unsigned` the attribute `unsigned`.
        names = {"is_unsigned": "unsigned"}
        named = {names.get(key, key): attribute(value) for key, value in attributes.items() if value is not None}
        if name in _SEGMENTED:
            named["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
        try:
            return ir.Operation.create(
                f"mlc.{name}",
                results=None if results is None else list(results),
                operands=flat,
                attributes=named,
                regions=regions,
                infer_type=results is None,
            )
        except ir.MLIRError as error:
            raise MismatchError(first_message(error)) from error

    def op(
        self,
        name: str,
        operands: Sequence[object],
        results: Sequence[ir.Type] | None = None,
        /,
        *,
        unsigned: bool = False,
        known: np.ndarray | None = None,
        **attributes: Any,
    ) -> Tensor:
        """`emit` for operations of one result, which `unsigned` and `known` describe."""
        operation = self.emit(name, operands, results, **attributes)
        return Tensor(operation.results[0], unsigned, limit_known(known))

    # Constants ------------------------------------------------------------------------------------------------------

    def constant(self, value: object, dtype: str | None = None) -> Tensor:
        """A constant tensor; arrays of more than 64 elements go to the weight store under a made-up name. Of a number
        below zero, unsigned integers are what their arithmetic makes of it."""
        if isinstance(value, int) and dtype is not None and types.is_unsigned(dtype):
            value %= 1 << int(dtype.removeprefix("uint"))
        array = np.asarray(value, None if dtype is None else types.numpy_dtype(dtype))
        if array.size > INLINE_LIMIT:
            digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
            return self.weight(f"{CONSTANT_PREFIX}{digest}", array, list(array.shape), array.dtype.name)
        unsigned = types.is_unsigned(array.dtype.name)
        attr = dense(array)
        return self.op("constant", [], [attr.type], value=attr, unsigned=unsigned, known=array)

    def like(self, value: float | int | bool, reference: Tensor) -> Tensor:
        """A rank-0 constant of the element type of `reference`; `NodeError` for strings, which are no numbers."""
        if reference.dtype == "string":
            raise NodeError("this needs numbers, and the elements are strings")
        return self.constant(value, reference.dtype)

    def weight(self, name: str, value: np.ndarray | Callable[[], np.ndarray], shape: list[int], dtype: str) -> Tensor:
        """A tensor kept in the weight store; a name that other contents have already gets a number."""
        unique, number = name, 0
        while unique in self._stored and not _same_contents(self._stored[unique], value):
            number += 1
            unique = f"{name}.{number}"
        if unique not in self._stored:
            self.store.add(unique, value, shape, dtype)
            self._stored[unique] = value
        kind = ir.RankedTensorType.get(shape, types.element_type(dtype))
        known = value if isinstance(value, np.ndarray) and value.size <= KNOWN_LIMIT else None
        return self.op("weight", [], [kind], name=unique, unsigned=types.is_unsigned(dtype), known=known)

    def values(self, tensor: Tensor, limit: int) -> np.ndarray | None:
        """The elements of a constant or a weight that has at most `limit` of them, else None."""
        if tensor.constant is not None:
            return tensor.constant
        owner = tensor.value.owner
        if isinstance(owner, ir.Block) or owner.operation.name != "mlc.weight":
            return None
        if int(np.prod(tensor.type.shape)) > limit:
            return None
        stored = self._stored.get(ir.StringAttr(owner.operation.attributes["name"]).value)
        return stored() if callable(stored) else stored

    def index_constant(self, value: int) -> ir.Value:
        """An `index` constant."""
        attr = ir.IntegerAttr.get(self.index, value)
        return ir.Operation.create("arith.constant", [self.index], attributes={"value": attr}).result

    # Sizes ----------------------------------------------------------------------------------------------------------

    def as_index(self, size: Size) -> ir.Value:
        """`size` as a value of type `index`."""
        return self.index_constant(size) if isinstance(size, int) else size

    def dim(self, tensor: Tensor, axis: int) -> Size:
        """The extent of `tensor` along `axis`."""
        extent = tensor.shape[axis]
        if extent is not None:
            return extent
        operands = [tensor.value, self.index_constant(axis)]
        return ir.Operation.create("tensor.dim", [self.index], operands).result

    def dims(self, tensor: Tensor) -> list[Size]:
        """All extents of `tensor`."""
        return [self.dim(tensor, axis) for axis in range(tensor.rank)]

    def element(self, tensor: Tensor, *position: Size) -> Size:
        """One element of an integer tensor as a size."""
        if tensor.known is not None and all(isinstance(part, int) for part in position):
            item = tensor.known[position]
            return item if isinstance(item, ir.Value) else int(item)
        operands = [tensor.value, *(self.as_index(part) for part in position)]
        scalar = ir.Operation.create("tensor.extract", [tensor.element], operands).result
        cast = "arith.index_castui" if tensor.unsigned else "arith.index_cast"
        return ir.Operation.create(cast, [self.index], [scalar]).result

    def elements(self, tensor: Tensor, what: str = "shape") -> list[Size]:
        """All elements of a rank-1 integer tensor as sizes; `NodeError` when their number is unknown."""
        if tensor.rank != 1:
            raise NodeError(f"the {what} operand must have rank 1, not {tensor.rank}")
        count = tensor.shape[0]
        if count is None:
            raise NodeError(
                f"the length of the {what} operand is unknown, so the rank of the result is too",
                "fix the model's input shapes so that the length is known",
            )
        return [self.element(tensor, position) for position in range(count)]

    def scalar(self, tensor: Tensor) -> Size:
        """The one element of an integer tensor of rank 0, or of rank 1 with one element, as a size."""
        return self.element(tensor, *([0] * tensor.rank))

    def arith(self, kind: str, lhs: Size, rhs: Size) -> Size:
        """Index arithmetic: `addi subi muli divsi ceildivsi floordivsi remsi maxsi minsi`."""
        folded = fold_index(kind, lhs, rhs)
        if folded is not None:
            return folded
        operands = [self.as_index(lhs), self.as_index(rhs)]
        return ir.Operation.create(f"arith.{kind}", [self.index], operands).result

    def compare_index(self, predicate: str, lhs: Size, rhs: Size) -> ir.Value:
        """`arith.cmpi` on sizes."""
        number = ["eq", "ne", "slt", "sle", "sgt", "sge"].index(predicate)
        attrs = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}
        operands = [self.as_index(lhs), self.as_index(rhs)]
        return ir.Operation.create("arith.cmpi", [types.element_type("bool")], operands, attrs).result

    def choose(self, condition: ir.Value, on_true: Size, on_false: Size) -> ir.Value:
        """`arith.select` on sizes."""
        operands = [condition, self.as_index(on_true), self.as_index(on_false)]
        return ir.Operation.create("arith.select", [self.index], operands).result

    def product(self, sizes: Sequence[Size]) -> Size:
        """The product of `sizes`."""
        total: Size = 1
        for size in sizes:
            total = self.arith("muli", total, size)
        return total

    def refined(self, tensor: Tensor, extents: Sequence[int | None]) -> Tensor:
        """`tensor` with the extents that are known here but not from its operands' types (`None`: keep)."""
        pairs = zip(tensor.type.shape, extents, strict=True)
        shape = [have if have != DYNAMIC or want is None else want for have, want in pairs]
        return self.cast_type(tensor, ir.RankedTensorType.get(shape, tensor.element))

    def cast_type(self, tensor: Tensor, kind: ir.Type) -> Tensor:
        """`tensor` as the compatible type `kind`, which differs in what is static."""
        if tensor.value.type == kind:
            return tensor
        if not isinstance(tensor.value.type, ir.RankedTensorType):
            owner = tensor.value.owner
            if is_argument(tensor.value):
                tensor.value.set_type(kind)
                return tensor
            made = isinstance(owner, ir.Operation | ir.OpView) and owner.name == "mlc.sequence_make"
            if not made or len(owner.operands):
                raise NodeError(f"a value of type {tensor.value.type} cannot become a {kind}")
            return self.op("sequence_make", [[]], [kind], unsigned=tensor.unsigned)
        value = ir.Operation.create("tensor.cast", [kind], [tensor.value]).result
        return replace(tensor, value=value)


def is_argument(value: ir.Value) -> bool:
    """Whether a value is an argument of the function that is built."""
    return isinstance(value.owner, ir.Block) and value.owner.owner.operation.name == "func.func"


def _same_contents(lhs: object, rhs: object) -> bool:
    if isinstance(lhs, np.ndarray) and isinstance(rhs, np.ndarray):
        return lhs.dtype == rhs.dtype and lhs.shape == rhs.shape and lhs.tobytes() == rhs.tobytes()
    return lhs == rhs


def limit_known(known: np.ndarray | None) -> np.ndarray | None:
    """`known`, or nothing when it is too big to carry along."""
    return None if known is None or known.size > KNOWN_LIMIT else known


def first_message(error: ir.MLIRError) -> str:
    """The first diagnostic of an error, on one line."""
    diagnostics = getattr(error, "error_diagnostics", [])
    text = diagnostics[0].message if diagnostics else str(error)
    return " ".join(text.split())


_FOLDS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "divsi": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "remsi": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "maxsi": max,
    "minsi": min,
}


def fold_index(kind: str, lhs: Size, rhs: Size) -> Size | None:
    """The result of index arithmetic where it needs no operation, else nothing."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        if rhs == 0 and kind in ("divsi", "floordivsi", "ceildivsi", "remsi"):
            return None
        return _FOLDS[kind](lhs, rhs)
    if isinstance(rhs, int):
        return _fold_constant(kind, lhs, rhs)
    if isinstance(lhs, int):
        return _fold_constant(kind, rhs, lhs) if kind in ("addi", "muli") else None
    if lhs != rhs:
        return None
    return lhs if kind in ("maxsi", "minsi") else 0 if kind == "subi" else None


def _fold_constant(kind: str, size: Size, constant: int) -> Size | None:
    """`size` combined with a neutral or absorbing right operand."""
    neutral = {"addi": 0, "subi": 0, "muli": 1, "divsi": 1, "floordivsi": 1, "ceildivsi": 1}
    if neutral.get(kind) == constant:
        return size
    return 0 if kind == "muli" and constant == 0 else None
