"""`mlc-place-weights`: decides where every weight lies in the weight image."""

from __future__ import annotations

import mlir.ir as ir

from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.hoist_weights import recipe_of
from mlc.passes.simplify.weight_recipes import read_recipes, recipe_name, stack_of, write_recipes
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
        op.attributes["mlc.weight_bytes"] = b.integer(self.bytes)

    def _place(self, weight: ir.Operation) -> None:
        size = _bytes(weight.results[0].type)
        stack = stack_of(weight)
        if stack is not None:
            stride = align(size)
            if stride != size:
                _pad(weight, stack[1], stride, self.recipes)
            weight.attributes[STRIDE] = b.integer(stride)
            size = stride * stack[1]
        name = ir.StringAttr(weight.attributes["name"]).value
        if name not in self.offsets:
            self.offsets[name] = self.bytes
            place = {"name": ir.StringAttr.get(name), "offset": b.integer(self.bytes), "size": b.integer(size)}
            self.image.append(ir.DictAttr.get(place))
            self.bytes = align(self.bytes + size)
        weight.attributes[OFFSET] = b.integer(self.offsets[name])


def _pad(weight: ir.Operation, count: int, stride: int, recipes: dict[str, Recipe]) -> None:
    """Let `weight`, one of a stack of `count`, name a stack whose weights are `stride` bytes long each."""
    one = weight.results[0]
    width = element_bytes(one.type.element_type)
    elements = _bytes(one.type) // width
    with ir.InsertionPoint.after(weight), weight.location:
        line = b.reshape(one, [elements])
        padded = b.pad(line, [0], [stride // width - elements], 0)
    recipe = recipe_of(padded, count)
    name = recipe_name(recipe, ir.StringAttr(weight.attributes["name"]).value)
    recipes[name] = recipe
    weight.attributes["name"] = ir.StringAttr.get(name)
    made = padded.owner.operation
    for op in (made, made.operands[1].owner.operation, line.owner.operation):
        op.erase()


def _bytes(tensor: ir.Type) -> int:
    total = element_bytes(tensor.element_type)
    for extent in tensor.shape:
        total *= extent
    return total
