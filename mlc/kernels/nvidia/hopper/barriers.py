"""Barriers in shared memory: rings of pairs that say when a stage is full and when it is empty again.

An mbarrier (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier") completes a phase when all
expected threads have arrived and all announced bytes have come; who waits names the parity of the phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, llvm, nvvm

from mlc.kernels.common.frame import if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.tensor_cores.words import Words, assembly

_PATIENCE = 10_000_000  # nanoseconds that one try may take before the next


@dataclass(frozen=True)
class Position:
    """Where somebody is in a ring: the stage, and the parity of the round."""

    stage: ir.Value
    parity: ir.Value


class Ring:
    """`stages` pairs of barriers from byte `offset` of the shared memory on; a stage is empty again when `readers`
    have released it. Where blocks of a cluster fill each other's stages, `fillers` are those who fill this block's:
    how many, and the number of each."""

    def __init__(
        self,
        words: Words,
        offset: int,
        stages: int,
        readers: int,
        fillers: tuple[int, Callable[[ir.Value], Scalar]] | None = None,
    ) -> None:
        self.words, self.offset, self.stages, self.readers, self.fillers = words, offset, stages, readers, fillers

    @staticmethod
    def size(stages: int) -> int:
        """Bytes of the barriers."""
        return 16 * stages

    def set_up(self) -> None:
        """Makes the barriers; one thread does it, and fences."""
        for stage in range(self.stages):
            nvvm.MBarrierInitOp(self._place(stage, 0), self.words.value(1))
            nvvm.MBarrierInitOp(self._place(stage, 1), self.words.value(self.readers))

    def start(self) -> list[ir.Value]:
        """The position at the beginning, as values that a loop carries."""
        return [self.words.value(0), self.words.value(0)]

    def advance(self, at: Position) -> list[ir.Value]:
        """The next position."""
        words = self.words
        following = words.math.add(at.stage, 1)
        wraps = words.is_equal(following, self.stages)
        flipped = words.xor(at.parity, 1)
        return [
            arith.select(wraps, words.value(0), words.value(following)),
            arith.select(wraps, words.value(flipped), at.parity),
        ]

    def skip(self, at: Position, stages: Scalar) -> list[ir.Value]:
        """The position `stages` further."""
        words = self.words
        if isinstance(stages, int) and stages == 0:
            return [at.stage, at.parity]
        total = words.math.add(at.stage, stages)
        rounds = words.math.rem(words.math.div(total, self.stages), 2)
        return [words.value(words.math.rem(total, self.stages)), words.value(words.xor(at.parity, rounds))]

    def full(self, stage: Scalar) -> ir.Value:
        """The barrier of the data of a stage."""
        return self._place(stage, 0)

    def wait_full(self, at: Position) -> None:
        """Waits for the data."""
        wait(self.words, self._place(at.stage, 0), at.parity)

    def wait_empty(self, at: Position) -> None:
        """Waits until the data of the round before are not needed any more."""
        wait(self.words, self._place(at.stage, 1), self.words.value(self.words.xor(at.parity, 1)))

    def release(self, stage: Scalar, thread: ir.Value) -> None:
        """Says that a group of threads is done with a stage: its thread 0 does, or one for each who fills it."""
        place, words = self._place(stage, 1), self.words
        if self.fillers is None:
            if_then(words.is_equal(thread, 0), lambda: arrive(place))
            return
        count, block = self.fillers
        if_then(words.is_below(thread, count), lambda: arrive_at(place, words.value(block(thread))))

    def _place(self, stage: Scalar, which: int) -> ir.Value:
        first = self.offset + 8 * self.stages * which
        return self.words.place(self.words.math.add(self.words.math.mul(stage, 8), first))


class Order:
    """Barriers from byte `offset` of the shared memory on, by which groups take turns: one begins its tile when the one
    before has multiplied its own, so that others multiply while one stores. Nothing where there is one turn.
    """

    def __init__(self, words: Words, offset: int, turns: int) -> None:
        self.words, self.offset, self.turns = words, offset, turns

    @staticmethod
    def size(turns: int) -> int:
        """Bytes of the barriers."""
        return 0 if turns == 1 else 8 * turns

    def set_up(self) -> None:
        """Makes the barriers; one thread does it, and fences."""
        for turn in range(self.turns if self.turns > 1 else 0):
            nvvm.MBarrierInitOp(self._place(turn), self.words.value(1))

    def start(self) -> list[ir.Value]:
        """The parity of the first tile, as values that a loop carries."""
        return [] if self.turns == 1 else [self.words.value(0)]

    def advance(self, parity: Sequence[ir.Value]) -> list[ir.Value]:
        """That of the next one."""
        return [self.words.value(self.words.xor(p, 1)) for p in parity]

    def wait(self, turn: Scalar, parity: Sequence[ir.Value]) -> None:
        """Waits for this turn. The first group's first one has come: the phase before the first one counts as done."""
        words = self.words
        for p in parity:
            is_first = arith.extui(words.i32, words.is_equal(turn, 0))
            wait(words, self._place(turn), words.value(words.xor(p, is_first)))

    def give(self, turn: Scalar, thread: ir.Value) -> None:
        """Gives the turn to the next group; thread 0 does."""
        if self.turns == 1:
            return
        math = self.words.math
        place = self._place(math.rem(math.add(turn, 1), self.turns))
        if_then(self.words.is_equal(thread, 0), lambda: arrive(place))

    def _place(self, turn: Scalar) -> ir.Value:
        return self.words.place(self.words.math.add(self.words.math.mul(turn, 8), self.offset))


def wait(words: Words, barrier: ir.Value, parity: ir.Value) -> None:
    """Waits for the end of the phase of `parity`."""
    nvvm.MBarrierTryWaitParityOp(barrier, parity, words.value(_PATIENCE))


def arrive(barrier: ir.Value) -> None:
    """Arrives. The operation of the dialect releases at the scope of a cluster, which is a fence of the whole GPU."""
    assembly(None, [barrier], "mbarrier.arrive.shared::cta.b64 _, [$0];", "r")


def arrive_at(barrier: ir.Value, block: ir.Value) -> None:
    """Arrives at the same barrier of another block of the cluster."""
    text = "{ .reg .b32 a; mapa.shared::cluster.u32 a, $0, $1; mbarrier.arrive.shared::cluster.b64 _, [a]; }"
    assembly(None, [barrier, block], text, "r,r")


def expect_bytes(words: Words, barrier: ir.Value, count: Scalar) -> None:
    """Arrives, and announces `count` bytes."""
    nvvm.MBarrierArriveExpectTxOp(None, barrier, words.value(count))


def synchronize(words: Words, number: Scalar, threads: int) -> None:
    """A barrier of `threads` threads of the block, by its number (1 to 15)."""
    # MLIR 22 does not read `nvvm.barrier` with operands and a location, as it writes it.
    name = "llvm.nvvm.barrier.cta.sync.aligned.count"
    llvm.CallIntrinsicOp(None, name, [words.value(number), words.value(threads)], [], [])
