"""Store weights of contractions in tf32 along the sum, as tensor cores read them; or, with `exact`, those of
contractions in f32 whose tiles are multiplied by ordinary arithmetic.

```mlir
%w = mlc.weight "w" : tensor<768x3072xf32>
mlc.launch @k0(%x, %w)
// becomes
%t = mlc.transpose %w [1, 0] : tensor<3072x768xf32>
mlc.launch @k0(%x, %t)
```
The kernel's indexing map is permuted alike; `mlc-hoist-weights` makes a recipe of the weight store of the transpose.
Weights that something else in the kernel reads too, and operands that are computed, stay as they are.
"""

from __future__ import annotations

import math

from mlir import ir

from mlc.dialects import mlc as m
from mlc.kernels.common.analysis import is_contraction, root_operation
from mlc.kernels.common.frame import KernelSource, kernel_source
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.roles import Roles, roles_of
from mlc.kernels.nvidia.tensor_cores.operands import operands_of
from mlc.passes.base import Pass
from mlc.passes.schedule.assign_placement import is_host_kernel
from mlc.passes.schedule.assign_schedules import collect_launches, constant_inputs
from mlc.passes.schedule.matrices import is_for_exact_tiles
from mlc.passes.schedule.pack_weights import retype, without_views


class TurnWeights(Pass):
    """Store weights of contractions in tf32, or exact ones in tiles, along the sum."""

    dialects = ("mlc",)
    statistics = {"turned": "weights that are stored along the sum"}

    exact: bool = False
    "Contractions are exact: only of those that are large enough for tiles"

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        launches = collect_launches(module)
        for view in module.regions[0].blocks[0].operations:
            op = view.operation
            if "mlc.kernel" in op.attributes and not is_host_kernel(op):
                name = ir.StringAttr(op.attributes["sym_name"]).value
                self.count("turned", int(_turn(kernel_source(op), launches.get(name, []), self.exact)))


def _turn(source: KernelSource, launches: list[ir.Operation], exact: bool) -> bool:
    root = root_operation(source)
    roles = roles_of(root, source.results) if is_contraction(root) else None
    if roles is None or not all(isinstance(v.type.element_type, ir.F32Type) for v in list(root.operands)[:2]):
        return False
    if exact and not is_for_exact_tiles(source, root):
        return False
    argument = root.operands[roles.right]
    arguments = list(source.block.arguments)
    if argument not in arguments or len(list(argument.uses)) != 1:
        return False
    number, order = arguments.index(argument), _order(root, roles)
    if number not in constant_inputs(launches) or order == sorted(order) or not _helps(source, root, roles):
        return False
    exprs = list(operand_map(root, roles.right).results)
    shape = [argument.type.shape[i] for i in order]
    retype(source.func.operation, argument, number, ir.RankedTensorType.get(shape, argument.type.element_type))
    maps = list(root.attributes["indexing_maps"])
    rank = len(root.attributes["iterator_types"])
    maps[roles.right] = ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, [exprs[i] for i in order]))
    root.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    for launch in launches:
        with ir.InsertionPoint(launch), launch.location:
            launch.operands[number] = m.transpose(without_views(launch.operands[number]), order)
    return True


def _helps(source: KernelSource, root: ir.Operation, roles: Roles) -> bool:
    """Will the copy engine take both operands?"""
    operands = operands_of(source, root, roles)
    shape, exprs = root.operands[roles.right].type.shape, operand_map(root, roles.right).results
    reduced = [
        extent
        for extent, expr in zip(shape, exprs, strict=True)
        if isinstance(expr, ir.AffineDimExpr) and expr.position in roles.reduced
    ]
    return operands is not None and operands[0].problem(4) is None and math.prod(reduced) % 4 == 0


def _order(root: ir.Operation, roles: Roles) -> list[int]:
    """The dimensions of the right operand: outer ones, columns, taps, and the sum last."""
    exprs = list(operand_map(root, roles.right).results)

    def rank(position: int) -> int:
        expr = exprs[position]
        dim = expr.position if isinstance(expr, ir.AffineDimExpr) else -1
        return next((i for i, g in enumerate((roles.columns, roles.taps, roles.reduced), 1) if dim in g), 0)

    return sorted(range(len(exprs)), key=rank)
