"""`mlc-place-weights`: decides where every weight lies in the weight image."""

from __future__ import annotations

import mlir.ir as ir

from mlc.passes.base import Pass

ALIGNMENT = 64


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
    there once.

    ```mlir
    %w = mlc.weight "w" : tensor<3x5xf32>
    // becomes, in module attributes {mlc.weight_image = [{name = "w", offset = 0, size = 60}], mlc.weight_bytes = 64}:
    %w = mlc.weight "w" {mlc.offset = 0 : i64} : tensor<3x5xf32>
    ```
    """

    def run(self, op: ir.Operation) -> None:
        offsets: dict[str, int] = {}
        image: list[ir.Attribute] = []
        self.bytes = 0
        i64 = ir.IntegerType.get_signless(64)

        def place(nested: ir.Operation) -> ir.WalkResult:
            if nested.name == "builtin.module" and "mlc.kernel" in nested.attributes:
                return ir.WalkResult.SKIP
            if nested.name == "mlc.weight":
                name = ir.StringAttr(nested.attributes["name"]).value
                if name not in offsets:
                    offsets[name] = self.bytes
                    image.append(_entry(name, self.bytes, nested.results[0].type))
                    self.bytes = align(self.bytes + _bytes(nested.results[0].type))
                nested.attributes["mlc.offset"] = ir.IntegerAttr.get(i64, offsets[name])
            return ir.WalkResult.ADVANCE

        op.operation.walk(place, ir.WalkOrder.PRE_ORDER)
        op.attributes["mlc.weight_image"] = ir.ArrayAttr.get(image)
        op.attributes["mlc.weight_bytes"] = ir.IntegerAttr.get(i64, self.bytes)


def _bytes(tensor: ir.Type) -> int:
    total = element_bytes(tensor.element_type)
    for extent in tensor.shape:
        total *= extent
    return total


def _entry(name: str, offset: int, tensor: ir.Type) -> ir.Attribute:
    i64 = ir.IntegerType.get_signless(64)
    return ir.DictAttr.get(
        {
            "name": ir.StringAttr.get(name),
            "offset": ir.IntegerAttr.get(i64, offset),
            "size": ir.IntegerAttr.get(i64, _bytes(tensor)),
        }
    )
