"""Pass `mlc-widen-halves`: what a model computes in half precision is computed in `f32`.

```mlir
%0 = mlc.matmul %x, %w : tensor<4x8xf16>, tensor<8x16xf16> -> tensor<4x16xf16>
%1 = mlc.unary tanh %0 : tensor<4x16xf16> -> tensor<4x16xf16>
// becomes
%a = mlc.cast %x : tensor<4x8xf16> -> tensor<4x8xf32>
%0 = mlc.matmul %a, %w {widen} : tensor<4x8xf32>, tensor<8x16xf16> -> tensor<4x16xf32>
%b = mlc.unary tanh %0 : tensor<4x16xf32> -> tensor<4x16xf32>
%1 = mlc.cast %b : tensor<4x16xf32> -> tensor<4x16xf16>
```

CPUs compute in 32 bits anyway. To round each result and widen it again where it is read costs a product of many rows a
quarter of its speed, and gains nothing but smaller tensors between kernels. So `f16` is how inputs, outputs and weights
are stored: large weights of contractions stay as they are, as elements are widened on the way into registers, and so
does what moves elements of inputs or weights only (caches, tables). Results differ from those of a model that rounds
everywhere by what that would have rounded; onnxruntime and OpenVINO compute halves on CPUs in the same way.

With `weights` those of contractions are `f32`, too, for passes that will round them to another type.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.passes.adaptor import element
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import element_count
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_CONTRACTIONS = frozenset({"mlc.matmul", "mlc.conv"})
_COMPUTED = _CONTRACTIONS | {
    f"mlc.{name}" for name in ("unary", "binary", "compare", "select", "reduce", "pool", "scan", "recurrence")
}
_MOVES = ("reshape", "transpose", "broadcast", "slice", "concat", "pad", "gather", "gather_elements", "gather_nd")
_MOVED = frozenset(f"mlc.{name}" for name in _MOVES)
_LEAST = 1 << 14  # elements of a weight that is worth it
_SIZES = frozenset({"tensor.dim", "mlc.shape_of"})  # read no element


class WidenHalves(Pass):
    """Computes in f32 what a model computes in half precision."""

    dialects = ("mlc",)
    statistics = {"widened": "operations that compute in f32"}

    weights: bool = False
    "Weights of contractions become f32, too"

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            self.count("widened", _Function(self.weights).widen(function))


def _is_half(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and isinstance(value.type.element_type, ir.F16Type)


class _Function:
    """The values of one function, and what they are in f32."""

    def __init__(self, widen_weights: bool) -> None:
        self.widen_weights = widen_weights
        self.weights = WeightOnly()
        self.computed: dict[ir.Value, ir.Value] = {}  # what is f32 from the beginning
        self.read: dict[ir.Value, ir.Value] = {}  # what is stored as f16, widened

    def widen(self, function: ir.Operation) -> int:
        """Rewrites all operations, also those inside control flow; gives how many compute in f32 now."""
        rewritten = [op for op in operations(function) if op.name.startswith("mlc.") and self._rewrite(op)]
        count = sum(op.name != "mlc.cast" for op in rewritten)
        for op in reversed(rewritten):
            self._retire(op)
        return count

    def _rewrite(self, op: ir.Operation) -> bool:
        """Write behind `op` what it computes in f32, if it computes with halves; was that so?"""
        if not any(map(_is_half, [*op.operands, *op.results])) or all(map(self.weights.has, op.results)):
            return False
        if op.name == "mlc.cast":
            return self._cast(op)
        halves = [value for value in op.operands if _is_half(value)]
        if op.name in _MOVED:
            if not any(map(_is_half, op.results)) or not all(value in self.computed for value in halves):
                return False
        elif op.name not in _COMPUTED:
            return False
        self._repeat(op, [self._operand(op, number) for number in range(len(op.operands))])
        return True

    def _cast(self, op: ir.Operation) -> bool:
        """The same for a cast: between halves and f32 it is nothing, and others give f32 or read it."""
        [value], [result] = op.operands, op.results
        if _is_half(result):
            if isinstance(element(value), ir.F32Type):
                self.computed[result] = value
                return True
            if isinstance(element(value), ir.IntegerType) and not self.weights.has(value):
                self._repeat(op, [value])
                return True
        elif value in self.computed:
            if isinstance(element(result), ir.F32Type):
                self.computed[result] = self.computed[value]
                return True
            op.operands[0] = self.computed[value]
        return False

    def _operand(self, op: ir.Operation, number: int) -> ir.Value:
        """Operand `number` in f32, but for a weight that a contraction reads as it is."""
        value = op.operands[number]
        if not _is_half(value):
            return value
        is_right = op.name in _CONTRACTIONS and number == 1
        return value if is_right and self._stays(op) else self._wide(value)

    def _stays(self, contraction: ir.Operation) -> bool:
        """Is its right operand a weight that is widened as it is read?"""
        left, right = list(contraction.operands)[:2]
        if self.widen_weights or self.weights.has(left) or not self.weights.has(right):
            return False
        return element_count(right.type) >= _LEAST

    def _wide(self, value: ir.Value) -> ir.Value:
        if value in self.computed:
            return self.computed[value]
        if value not in self.read:
            self.read[value] = b.cast_behind(value, b.f32())
        return self.read[value]

    def _repeat(self, op: ir.Operation, operands: Sequence[ir.Value]) -> None:
        """The operation on other operands, behind it."""
        attributes = {name: op.attributes[name] for name in op.attributes}
        if op.name in _CONTRACTIONS and _is_half(operands[1]):
            attributes["widen"] = ir.UnitAttr.get()
        types = [ir.RankedTensorType.get(r.type.shape, b.f32()) if _is_half(r) else r.type for r in op.results]
        with ir.InsertionPoint.after(op), op.location:
            made = ir.Operation.create(op.name, types, list(operands), attributes)
        for old, new in zip(op.results, made.results, strict=True):
            self.computed[old] = new

    def _retire(self, op: ir.Operation) -> None:
        """Give readers that stay what they want, and erase `op`; a reader that was rewritten is gone already."""
        for result in op.results:
            wide = self.computed[result]
            if result.type == wide.type:
                result.replace_all_uses_with(wide)
                continue
            for use in list(result.uses):
                if use.owner.operation.name in _SIZES:
                    use.owner.operation.operands[use.operand_number] = wide
            if not list(result.uses):
                continue
            if op.name == "mlc.cast" and isinstance(element(op.operands[0]), ir.F32Type):
                return  # it is what they want
            result.replace_all_uses_with(b.cast_behind(wide, ir.F16Type.get()))
        op.erase()
