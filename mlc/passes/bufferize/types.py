"""What becomes of types on the host: tensors are buffers, sequences and optionals are handles of the
runtime.
"""

from __future__ import annotations

import mlir.ir as ir


def is_tensor(value: ir.Value) -> bool:
    """Whether `value` is a tensor."""
    return isinstance(value.type, ir.RankedTensorType)


def is_handle_type(kind: ir.Type) -> bool:
    """Whether `kind` is a sequence or an optional."""
    return str(kind).startswith(("!mlc.seq", "!mlc.optional"))


def is_abstract(value: ir.Value) -> bool:
    """Whether `value` is something that bufferization gives another type."""
    return is_tensor(value) or is_handle_type(value.type)


def memref_type(tensor: ir.Type) -> ir.MemRefType:
    """The contiguous buffer of a tensor type; types narrower than a byte take one."""
    element = tensor.element_type
    if isinstance(element, (ir.IntegerType, ir.FloatType)) and element.width < 8:
        element = ir.IntegerType.get_signless(8)
    return ir.MemRefType.get(tensor.shape, element)


def host_type(kind: ir.Type) -> ir.Type:
    """The type of a tensor, a sequence or an optional on the host."""
    if isinstance(kind, ir.RankedTensorType):
        return memref_type(kind)
    return ir.Type.parse("!llvm.ptr") if is_handle_type(kind) else kind
