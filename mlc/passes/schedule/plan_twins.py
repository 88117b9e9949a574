"""Decide which products of one left operand become one: `mlc.twins` numbers on pairs of launches.

```mlir
%u = mlc.launch @k0(%x, %w0) …          →  {mlc.twins = 0}    %x times %w0
%g = mlc.launch @k1(%x, %w1, %u) …      →  {mlc.twins = 0}    a function of %x times %w1, times %u
```
A gate and what it lets through, as in most language models, are two products of the same size, of which the second one
reads the result of the first. As one launch nobody writes or reads that result, and the chip is filled and emptied
once. `mlc-join-twins` obeys. Decided on launches, when it is known what each kernel is.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.frame import KernelSource, kernel_source
from mlc.kernels.common.roles import roles_of
from mlc.kernels.nvidia.tensor_cores import packed_epilogue
from mlc.kernels.nvidia.tensor_cores.twins import are_alike, products_of
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import BlockGraph, host_blocks
from mlc.passes.schedule.assign_placement import DEVICE
from mlc.passes.schedule.matrices import matrices_of
from mlc.passes.walk import called_kernel

TWINS = "mlc.twins"


class PlanTwins(Pass):
    """Decide which products of one left operand become one."""

    precision: str = "fp32"
    "What contractions of f32 may round their operands to: fp32 (nothing) or tf32"

    statistics = {"joined": "launches that are no more"}

    def run(self, root: ir.OpView) -> None:
        module, count = root.operation, 0
        kernels = {
            ir.StringAttr(view.operation.attributes["sym_name"]).value: kernel_source(view.operation)
            for view in module.regions[0].blocks[0].operations
            if "mlc.kernel" in view.operation.attributes
        }
        i64 = ir.IntegerType.get_signless(64)
        for block in host_blocks(module):
            graph = BlockGraph(block)
            for n, op in enumerate(graph.ops):
                other = self._twin(graph, n, kernels)
                if other is None:
                    continue
                for member in (graph.ops[other], op):
                    member.attributes[TWINS] = ir.IntegerAttr.get(i64, count)
                count += 1
                self.count("joined")

    def _twin(self, graph: BlockGraph, n: int, kernels: dict[str, KernelSource]) -> int | None:
        """The launch whose only reader is launch `n`, which multiplies the same tensor; None where there is none."""
        op = graph.ops[n]
        if not _is_on_device(op):
            return None
        for producer in graph.producers[n]:
            other = graph.ops[producer]
            is_free = _is_on_device(other) and TWINS not in other.attributes and len(other.results) == 1
            if is_free and graph.users[producer] == [n] and graph.legal([producer, n]):
                sources = [kernels[called_kernel(launch)] for launch in (other, op)]
                if self._may_join((other, op), sources):
                    return producer
        return None

    def _may_join(self, launches: tuple[ir.Operation, ir.Operation], sources: list[KernelSource]) -> bool:
        """Are both kernels products of the tensor cores that differ in their right operands alone, and does the second
        read the result of the first where it stores its own?"""
        products = [products_of(source) for source in sources]
        if any(len(found) != 1 for found in products):
            return False
        roots = [found[0] for found in products]
        for source, root in zip(sources, roots, strict=True):
            found = matrices_of(source, root, self.precision)
            if found is None or found.lanes != packed_epilogue.LANES:
                return False
        first, second = sources
        if packed_epilogue.matrices_behind(first, roots[0]) or not _reads_in_place(second, roots[1], launches):
            return False
        roles = roles_of(roots[0], first.results)
        if roles is None or roles_of(roots[1], second.results) != roles or not are_alike(roots, roles):
            return False
        left = [
            launch.operands[list(source.block.arguments).index(root.operands[roles.left])]
            for launch, source, root in zip(launches, sources, roots, strict=True)
        ]
        return bool(left[0] == left[1])


def _reads_in_place(source: KernelSource, root: ir.Operation, launches: tuple[ir.Operation, ir.Operation]) -> bool:
    """Does the kernel of the second launch read the result of the first, and no other matrix behind its product `root`,
    at the places where it stores its own?"""
    made = [a for a, v in zip(source.block.arguments, launches[1].operands, strict=True) if v == launches[0].results[0]]
    others = [v for v in packed_epilogue.matrices_behind(source, root) if v not in made]
    return len(made) == 1 and not others and packed_epilogue.is_addend(source, root, made[0])


def _is_on_device(op: ir.Operation) -> bool:
    """Is it a launch of the GPU that only writes its results?"""
    if op.name != "mlc.launch" or "mlc.inout" in op.attributes:
        return False
    return ir.StringAttr(op.attributes["mlc.placement"]).value == DEVICE
