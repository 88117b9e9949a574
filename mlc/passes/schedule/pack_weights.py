"""Store contraction weights as the panels that their kernels read.

```mlir
%w = mlc.weight "w" : tensor<768x3072xf32>
mlc.launch @k0(%x, %w)
// becomes
%p = mlc.transpose (mlc.reshape %w …) : tensor<48x768x64xf32>
mlc.launch @k0(%x, %p)
```
Obeys `packed_operand` and `panel` of the kernel's schedule. The kernel's indexing map becomes
`(n floordiv 64, k, n mod 64)`; a vector dimension that is not a multiple of the panel is padded with zeros. The packing
itself is `mlc` operations on the weight, which `mlc-hoist-weights` turns into a recipe of the store.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from mlc.dialects import mlc as m
from mlc.kernels.common.analysis import root_operation
from mlc.kernels.common.frame import kernel_source
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.recurrent_cell import layer_of
from mlc.kernels.cpu.tiles import LINE
from mlc.passes.base import Pass
from mlc.passes.schedule.assign_schedules import collect_launches, read_schedule, weight_source
from mlc.passes.schedule.recurrent_panels import RecurrentPanels


class PackWeights(Pass):
    """Store contraction weights as the panels that their kernels read."""

    dialects = ("mlc",)

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        launches = collect_launches(module)
        for view in module.regions[0].blocks[0].operations:
            op = view.operation
            if "mlc.kernel" not in op.attributes:
                continue
            schedule = read_schedule(op)
            if "packed_operand" in schedule and "mlc.packed" not in op.attributes:
                name = ir.StringAttr(op.attributes["sym_name"]).value
                _pack(op, schedule, launches[name])
                op.attributes["mlc.packed"] = ir.UnitAttr.get()


def _pack(kernel: ir.Operation, schedule: dict[str, int | str], launches: list[ir.Operation]) -> None:
    source = kernel_source(kernel)
    root = root_operation(source)
    operand, panel = int(schedule["packed_operand"]), int(schedule["panel"])
    argument = root.operands[operand]
    number = list(source.block.arguments).index(argument)
    if root.name == "mlc.recurrence":
        panels = RecurrentPanels(argument.type, layer_of(root).gates, panel, int(schedule.get("group", 1)))
        retype(source.func.operation, argument, number, panels.type)
        _replace(launches, number, panels.emit)
        return
    exprs = list(operand_map(root, operand).results)
    kept = [i for i, e in enumerate(exprs) if isinstance(e, ir.AffineDimExpr)]  # the others are unit dimensions
    dims = [ir.AffineDimExpr(exprs[i]).position for i in kept]
    shape = [argument.type.get_dim_size(i) for i in kept]
    out = [ir.AffineDimExpr(e).position for e in operand_map(root, 2).results]
    columns = out[int(schedule["vector_dim"])]
    order = _panel_order(root, dims, columns)
    plan = _Packing(dims, columns, order, panel, shape, *_groups(schedule, argument.type.element_type))
    new_type = ir.RankedTensorType.get(plan.packed_shape, argument.type.element_type)
    retype(source.func.operation, argument, number, new_type)
    maps = list(root.attributes["indexing_maps"])
    maps[operand] = ir.AffineMapAttr.get(plan.indexing_map(len(root.attributes["iterator_types"])))
    root.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    _replace(launches, number, plan.emit)


def _replace(launches: list[ir.Operation], number: int, emit: Callable[[ir.Value], ir.Value]) -> None:
    """Gives every launch what `emit` makes of its weight, operand `number`."""
    for launch in launches:
        with ir.InsertionPoint(launch), launch.location:
            launch.operands[number] = emit(without_views(launch.operands[number]))


def _groups(schedule: dict[str, int | str], element: ir.Type) -> tuple[int, int]:
    """How many elements of the reduction stand together in a packed weight, and what their number is a multiple of."""
    stored = str(schedule.get("stored"))
    if stored == "tiles":
        return 32 // element.width, LINE * 8 // element.width
    group = {"pairs": 2, "quads": 4}.get(stored, 1)
    return group, group


def without_views(value: ir.Value) -> ir.Value:
    """A weight seen through views as an operation on the weight, which can be hoisted."""
    source = weight_source(value)
    return value if source is None or source == value else m.reshape(source, list(value.type.shape))


def _panel_order(root: ir.Operation, dims: list[int], columns: int) -> tuple[list[int], list[int]]:
    """Operand dimensions outside the panel (batch, groups) and inside it (reduction dimensions, in loop order)."""
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    outside = sorted(d for d in dims if not kinds[d] and d != columns)
    return outside, sorted(d for d in dims if kinds[d])


def retype(function: ir.Operation, argument: ir.Value, number: int, new_type: ir.Type) -> None:
    """Give a kernel's argument `number` another type."""
    argument.set_type(new_type)
    old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = list(old.inputs)
    inputs[number] = new_type
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, list(old.results)))


class _Packing:
    """Shape arithmetic of one packed operand: [outside…, panels, reduction…, panel].

    In a `group` of 2 or 4, adjacent elements of the innermost reduction dimension stand together, with zeros behind a
    number of them that is not a `multiple` of so many: [outside…, panels, reduction…, K / group, panel, group].
    """

    def __init__(
        self,
        dims: list[int],
        columns: int,
        order: tuple[list[int], list[int]],
        panel: int,
        shape: list[int],
        group: int = 1,
        multiple: int = 1,
    ) -> None:
        self.dims, self.columns, self.panel, self.shape = dims, columns, panel, shape
        self.outside, self.inside = order
        self.axis = dims.index(columns)
        self.extent = dict(zip(dims, shape, strict=True))
        self.panels = -(-self.extent[columns] // panel)
        self.group, self.multiple = group, multiple
        self.grouped = self.inside[-1] if group > 1 else None

    @property
    def packed_shape(self) -> list[int]:
        e = self.extent
        groups = self.multiple // self.group  # a multiple of which there are
        inside = [-(-e[d] // self.multiple) * groups if d == self.grouped else e[d] for d in self.inside]
        shape = [e[d] for d in self.outside] + [self.panels, *inside, self.panel]
        return shape if self.grouped is None else [*shape, self.group]

    def indexing_map(self, rank: int) -> ir.AffineMap:
        dim = ir.AffineExpr.get_dim
        column, size = dim(self.columns), ir.AffineExpr.get_constant(self.panel)
        exprs = [dim(d) for d in self.outside] + [ir.AffineExpr.get_floor_div(column, size)]
        group = ir.AffineExpr.get_constant(self.group)
        exprs += [ir.AffineExpr.get_floor_div(dim(d), group) if d == self.grouped else dim(d) for d in self.inside]
        exprs.append(ir.AffineExpr.get_mod(column, size))
        if self.grouped is not None:
            exprs.append(ir.AffineExpr.get_mod(dim(self.grouped), group))
        return ir.AffineMap.get(rank, 0, exprs)

    def emit(self, weight: ir.Value) -> ir.Value:
        """The packed weight as `mlc` operations on `weight`."""
        element, rank = weight.type.element_type, len(self.shape)
        if weight.type.rank != rank:
            weight = m.reshape(weight, self.shape)
        padded = list(self.shape)
        padded[self.axis] = self.panels * self.panel
        group_axis = -1 if self.grouped is None else self.dims.index(self.grouped)
        if self.grouped is not None:
            padded[group_axis] += -padded[group_axis] % self.multiple
        if padded != self.shape:
            is_float = isinstance(element, ir.FloatType)
            attribute = ir.FloatAttr.get(element, 0.0) if is_float else ir.IntegerAttr.get(element, 0)
            value = m.constant(ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([], element), attribute))
            high = [p - s for p, s in zip(padded, self.shape, strict=True)]
            weight = m.pad(weight, [0] * rank, high, value=value)
        parts = {group_axis: [padded[group_axis] // self.group, self.group], self.axis: [self.panels, self.panel]}
        split = [part for i, extent in enumerate(padded) for part in parts.get(i, [extent])]
        weight = m.reshape(weight, split)
        position = {d: i + sum(0 <= s < i for s in parts) for i, d in enumerate(self.dims)}
        permutation = [position[d] for d in self.outside] + [position[self.columns]]
        permutation += [position[d] for d in self.inside] + [position[self.columns] + 1]
        if self.grouped is not None:
            permutation.append(position[self.grouped] + 1)
        if permutation == list(range(len(split))):
            return weight
        return m.transpose(weight, permutation)
