"""`mlc-place-weights`: decides where every weight lies in the weight image."""

from __future__ import annotations

import mlir.ir as ir

from mlc.dialects import mlc as m
from mlc.passes.base import Pass
from mlc.passes.simplify.hoist_weights import recipe_of
from mlc.passes.simplify.weight_recipes import read_recipes, recipe_name, write_recipes
from mlc.weights import Recipe

ALIGNMENT = 64
OFFSET, STRIDE = "mlc.offset", "mlc.stride"  # in bytes: of a weight in the image, and from one of a stack to the next


def element_bytes(element: ir.Type) -> int:
    """The width of an element in memory: types narrower than a byte take one, complex numbers two parts."""
    if isinstance(element, ir.ComplexType):
        return 2 * element_bytes(ir.ComplexType(element).element_type)
    if isinstance(element, ir.IndexType):
        return 8
    return -(-element.width // 8)


def align(size: int, alignment: int = ALIGNMENT) -> int:
    """`size` rounded up to the alignment of buffers, or to another one."""
    return -(-size // alignment) * alignment


class PlaceWeights(Pass):
    """Decide the offset of every weight in the weight image.

    Weights lie in the order of their first use, each at a multiple of 64 bytes; a weight that is used twice is
    there once. So do the weights of a stack: where they are no multiples of 64 bytes, zeros are between them.

    ```mlir
    %w = mlc.weight "w" : tensor<3x5xf32>
    %e = mlc.weight "e"[%i of 4] : tensor<16xf32>
    // becomes, in module attributes {mlc.weight_bytes = 320,
    //     mlc.weight_image = [{name = "w", offset = 0, size = 60}, {name = "e", offset = 64, size = 256}]}:
    %w = mlc.weight "w" {mlc.offset = 0 : i64} : tensor<3x5xf32>
    %e = mlc.weight "e"[%i of 4] {mlc.offset = 64 : i64, mlc.stride = 64 : i64} : tensor<16xf32>
    ```
    """

    dialects = ("mlc",)

    def run(self, op: ir.Operation) -> None:
        self.offsets: dict[str, int] = {}
        self.image: list[ir.Attribute] = []
        self.bytes = 0
        self.recipes = read_recipes(op)
        given = len(self.recipes)
        weights: list[ir.Operation] = []

        def find(nested: ir.Operation) -> ir.WalkResult:
            if nested.name == "builtin.module" and "mlc.kernel" in nested.attributes:
                return ir.WalkResult.SKIP
            if nested.name == "mlc.weight":
                weights.append(nested)
            return ir.WalkResult.ADVANCE

        op.operation.walk(find, ir.WalkOrder.PRE_ORDER)
        for weight in weights:
            self._place(weight)
        if len(self.recipes) > given:
            write_recipes(op, self.recipes)
        op.attributes["mlc.weight_image"] = ir.ArrayAttr.get(self.image)
        op.attributes["mlc.weight_bytes"] = _integer(self.bytes)

    def _place(self, weight: ir.Operation) -> None:
        size = _bytes(weight.results[0].type)
        if "count" in weight.attributes:
            stride = align(size)
            if stride != size:
                _pad(weight, stride, self.recipes)
            weight.attributes[STRIDE] = _integer(stride)
            size = stride * ir.IntegerAttr(weight.attributes["count"]).value
        name = ir.StringAttr(weight.attributes["name"]).value
        if name not in self.offsets:
            self.offsets[name] = self.bytes
            place = {"name": ir.StringAttr.get(name), "offset": _integer(self.bytes), "size": _integer(size)}
            self.image.append(ir.DictAttr.get(place))
            self.bytes = align(self.bytes + size)
        weight.attributes[OFFSET] = _integer(self.offsets[name])


def _pad(weight: ir.Operation, stride: int, recipes: dict[str, Recipe]) -> None:
    """Let `weight`, one of a stack, name a stack whose weights are `stride` bytes long each."""
    type_ = weight.results[0].type
    width = element_bytes(type_.element_type)
    count = _bytes(type_) // width
    with ir.InsertionPoint.after(weight), weight.location:
        line = m.reshape(weight.results[0], [count])
        is_float = isinstance(type_.element_type, ir.FloatType)
        zero = (ir.FloatAttr if is_float else ir.IntegerAttr).get(type_.element_type, 0)
        splat = ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([], type_.element_type), zero)
        padded = m.pad(line, [0], [stride // width - count], value=m.constant(splat))
    made = padded.owner.operation
    recipe = recipe_of(padded, ir.IntegerAttr(weight.attributes["count"]).value)
    name = recipe_name(recipe, ir.StringAttr(weight.attributes["name"]).value)
    recipes[name] = recipe
    weight.attributes["name"] = ir.StringAttr.get(name)
    for op in (made, made.operands[1].owner.operation, line.owner.operation):
        op.erase()


def _bytes(tensor: ir.Type) -> int:
    total = element_bytes(tensor.element_type)
    for extent in tensor.shape:
        total *= extent
    return total


def _integer(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
