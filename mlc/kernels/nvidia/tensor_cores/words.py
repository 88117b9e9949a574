"""32-bit integers and shared memory: what the parts of a Hopper kernel compute addresses with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, llvm, nvvm, scf

from mlc.kernels.common.frame import Frame, if_values
from mlc.kernels.common.index import IndexMath, Scalar

SHARED_MEMORY = "mlc_shared"
"""The symbol of a kernel's dynamic shared memory."""


LoopBody = Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]]
"""A loop's body: the next values of what it carries, from its variable and these values."""


class _WordConstants:
    """Constants of type i32 where `IndexMath` asks for index values."""

    def __init__(self, frame: Frame) -> None:
        self._constants = frame.constants
        self._type = ir.IntegerType.get_signless(32)

    def index(self, value: Scalar) -> ir.Value:
        return self._constants.get(self._type, value) if isinstance(value, int) else value


class Words:
    """Emits 32-bit arithmetic and accesses to the shared memory of a kernel; `math` folds what is known."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.i32 = ir.IntegerType.get_signless(32)
        self.i64 = ir.IntegerType.get_signless(64)
        self.f32 = ir.F32Type.get()
        self.pointer = ir.Type.parse("!llvm.ptr<3>")
        self.math = IndexMath(_WordConstants(frame))  # type: ignore[arg-type]
        self.shared = llvm.AddressOfOp(self.pointer, SHARED_MEMORY).result
        self.shared_address = llvm.PtrToIntOp(self.i32, self.shared).result

    def value(self, scalar: Scalar) -> ir.Value:
        """`scalar` as an i32 value."""
        return self.math.constants.index(scalar)

    def narrow(self, scalar: Scalar) -> Scalar:
        """An index as a word."""
        return scalar if isinstance(scalar, int) else arith.index_cast(self.i32, scalar)

    def widen(self, scalar: Scalar) -> Scalar:
        """A word as an index."""
        return scalar if isinstance(scalar, int) else arith.index_cast(ir.IndexType.get(), scalar)

    def place(self, offset: Scalar) -> ir.Value:
        """The pointer to byte `offset` of the shared memory."""
        dynamic = [] if isinstance(offset, int) else [offset]
        constant = offset if isinstance(offset, int) else -(1 << 31)
        raw = ir.DenseI32ArrayAttr.get([constant])
        byte = ir.TypeAttr.get(ir.IntegerType.get_signless(8))
        return llvm.GEPOp(self.pointer, self.shared, dynamic, raw, byte, ir.IntegerAttr.get(self.i32, 0)).result

    def is_equal(self, a: Scalar, b: Scalar) -> ir.Value:
        """a == b."""
        return arith.cmpi(arith.CmpIPredicate.eq, self.value(a), self.value(b))

    def is_below(self, a: Scalar, b: Scalar) -> ir.Value:
        """a < b, for numbers that are not negative."""
        return arith.cmpi(arith.CmpIPredicate.ult, self.value(a), self.value(b))

    def xor(self, a: Scalar, b: Scalar) -> Scalar:
        """a ^ b."""
        if isinstance(a, int) and isinstance(b, int):
            return a ^ b
        return arith.xori(self.value(a), self.value(b))

    def loop(
        self, low: Scalar, high: Scalar, step: Scalar, inits: Sequence[ir.Value], body: LoopBody
    ) -> list[ir.Value]:
        """An `scf.for` over words, whose body is `body(variable, carried) -> next carried`."""
        op = scf.ForOp(self.value(low), self.value(high), self.value(step), list(inits))
        with ir.InsertionPoint(op.body):
            scf.YieldOp(list(body(op.induction_variable, list(op.inner_iter_args))))
        return list(op.results)

    def either(
        self,
        condition: ir.Value,
        then: Callable[[], Sequence[ir.Value]],
        otherwise: Callable[[], Sequence[ir.Value]],
        types: Sequence[ir.Type],
    ) -> list[ir.Value]:
        """An `scf.if` whose branches compute values of `types`."""
        return if_values(condition, types, then, otherwise)

    def hidden(self, value: ir.Value) -> ir.Value:
        """`value` as one that nothing is known of: a loop up to it stays one."""
        result = assembly(value.type, [value], "mov.b32 $0, $1;", "=r,r")
        assert result is not None
        return result

    def thread(self) -> ir.Value:
        """The number of this thread in its block."""
        return nvvm.read_ptx_sreg_tid_x(self.i32)


def assembly(
    results: ir.Type | None, operands: Sequence[ir.Value], text: str, constraints: str, *, pure: bool = False
) -> ir.Value | None:
    """Inline PTX; `pure` when nothing but its result matters."""
    dialect = ir.Attribute.parse("0 : i64")
    op = llvm.InlineAsmOp(results, list(operands), text, constraints, has_side_effects=not pure, asm_dialect=dialect)
    return op.results[0] if results is not None else None


def fields(struct: ir.Value, types: Sequence[ir.Type]) -> list[ir.Value]:
    """The values of a struct of `types`."""
    return [llvm.ExtractValueOp(t, struct, ir.DenseI64ArrayAttr.get([i])).res for i, t in enumerate(types)]


def declare_shared_memory(frame: Frame) -> None:
    """The kernel's dynamic shared memory, aligned as swizzled tiles want it."""
    block = frame.func.operation.parent.regions[0].blocks[0]
    text = (
        f"llvm.mlir.global external @{SHARED_MEMORY}() "
        "{addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>"
    )
    ir.InsertionPoint.at_block_begin(block).insert(ir.Operation.parse(text))
