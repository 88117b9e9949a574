"""What the IR after `schedule` says about a model, as plain data: kernels with their templates, schedules, source
nodes and work; refused fusions; warnings.

Work is counted at one set of extents: a named dimension has its lowest extent, but at least 1.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mlir import ir

from mlc import __version__
from mlc.dims import DimAnalysis
from mlc.inspect.extents import Extents, named
from mlc.inspect.work import elements_of, flops_of, multiplies_bytes
from mlc.interp.dtypes import numpy_dtype
from mlc.interp.from_ir import result_type
from mlc.kernels.common.analysis import is_contraction, reachable
from mlc.kernels.common.frame import KernelSource, kernel_source
from mlc.passes.host.nodes import node_names

GENERIC = "loops"
"""The template that takes any kernel."""


@dataclass
class KernelReport:
    """One kernel. `shapes` and `sizes` (its `index` inputs) are those of its first launch; `flops`, the part
    `byte_flops` that multiplies integers of at most eight bits, and `bytes` (of all its tensors) are for one launch,
    the mean of all where they differ (`uneven`), None where the data decide them.
    """

    name: str
    template: str
    schedule: dict[str, Any]
    nodes: list[str] = field(default_factory=list)
    launches: int = 0
    shapes: list[str] = field(default_factory=list)
    sizes: list[int | None] = field(default_factory=list)
    flops: int | None = None
    byte_flops: int | None = None
    bytes: int | None = None
    contraction: bool = False
    uneven: bool = False


Work = tuple[int | None, int | None, int | None]
"""The `flops`, `byte_flops` and `bytes` of a launch."""


@dataclass
class _Kernel:
    """A kernel while its launches are counted: their work, and that of operands that were met before."""

    report: KernelReport
    source: KernelSource
    counted: list[Work] = field(default_factory=list)
    works: dict[Hashable, Work] = field(default_factory=dict)

    def sum_up(self) -> KernelReport:
        """The report, with the work of the launches."""
        report = self.report
        if self.counted:
            report.flops, report.byte_flops, report.bytes = map(_mean, zip(*self.counted, strict=True))
        report.uneven = len(set(self.counted)) > 1
        return report


@dataclass
class Report:
    """All that is known about a compilation."""

    model: str
    compiler: str
    target: str
    extents: dict[str, int]
    kernels: list[KernelReport]
    refusals: list[dict[str, str]]
    warnings: list[str]
    weight_bytes: int = 0
    arena: dict[str, str] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The report as JSON data."""
        return asdict(self)


def collect(module: ir.Module, model: str) -> Report:
    """The report of a module that has completed `schedule`."""
    attributes = module.operation.attributes
    target = ir.StringAttr(attributes["mlc.target"]).value if "mlc.target" in attributes else ""
    kernels: dict[str, _Kernel] = {}
    functions = []
    for child in (c.operation for c in module.body.operations):
        if "mlc.kernel_of" in child.attributes or "mlc.variant_of" in child.attributes:
            continue  # the same for another architecture, or for few rows
        if "mlc.kernel" in child.attributes:
            name = ir.StringAttr(child.attributes["sym_name"]).value
            kernels[name] = _kernel(name, child)
        elif child.name == "func.func":
            functions.append(child)
    extents: dict[str, int] = {}
    refusals = _kept_float(module)
    for function in functions:
        analysis = DimAnalysis(function)
        values = _reference(analysis, function)
        extents |= values
        for launch in _launches(function):
            name = ir.FlatSymbolRefAttr(launch.attributes["kernel"]).value
            _count_launch(kernels[name], launch, named(analysis, values))
            refusals += _refusals(name, launch)
    rows = [kernel.sum_up() for kernel in kernels.values()]
    return Report(model, f"mlc {__version__}", target, extents, rows, refusals, list(_warnings(rows)))


def _plain(attribute: ir.Attribute) -> Any:
    if isinstance(attribute, ir.DictAttr):
        return {named_attr.name: _plain(named_attr.attr) for named_attr in attribute}
    if isinstance(attribute, (ir.ArrayAttr, ir.DenseI64ArrayAttr)):
        return [_plain(a) if isinstance(a, ir.Attribute) else a for a in attribute]
    return getattr(attribute, "value", str(attribute))


def _kernel(name: str, module: ir.Operation) -> _Kernel:
    schedule: dict[str, Any] = {}
    if "mlc.schedule" in module.attributes:
        alternatives = _plain(module.attributes["mlc.schedule"])
        schedule = dict(alternatives[-1]) if alternatives else {}
    source = kernel_source(module)
    contraction = any(is_contraction(op) for op in reachable(source.results))
    template = str(schedule.pop("template", ""))
    return _Kernel(KernelReport(name, template, schedule, contraction=contraction), source)


def _reference(analysis: DimAnalysis, function: ir.Operation) -> dict[str, int]:
    """The extents at which work is counted, of every named dimension."""
    values = {}
    for argument in ir.ArrayAttr(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else []:
        described = ir.DictAttr(argument)
        for name in _plain(described["mlc.dims"]) if "mlc.dims" in described else []:
            if name in analysis.symbol_names:
                symbol = ir.AffineSymbolExpr.get(analysis.symbol_names.index(name), function.context)
                low, _ = analysis.known_range(symbol)
                multiple = max(analysis.known_multiple(symbol), 1)
                values[name] = max(-(-(low or 1) // multiple), 1) * multiple
    return values


def _launches(function: ir.Operation) -> Iterator[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "mlc.launch":
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return iter(found)


def _count_launch(kernel: _Kernel, launch: ir.Operation, extents: Extents) -> None:
    report, source = kernel.report, kernel.source
    report.launches += 1
    report.nodes += [n for n in _all_nodes(source, launch) if n not in report.nodes]
    given = _given(launch, extents)
    if report.launches == 1:
        for value, numbers in zip(launch.operands, given, strict=True):
            if isinstance(value.type, ir.RankedTensorType):
                shape = ",".join("?" if n is None else str(n) for n in numbers)
                report.shapes.append(f"{result_type(value.type).dtype}[{shape}]")
            else:
                report.sizes.append(numbers[0])
    is_updating = "mlc.in_place" in launch.attributes
    key = (is_updating, *map(tuple, given))
    if key not in kernel.works:
        kernel.works[key] = _work(source, given, is_updating)
    kernel.counted.append(kernel.works[key])


def _given(launch: ir.Operation, extents: Extents) -> list[list[int | None]]:
    """For every operand of a launch its shape, or its value where it is an index."""
    tensors = [isinstance(value.type, ir.RankedTensorType) for value in launch.operands]
    pairs = zip(launch.operands, tensors, strict=True)
    return [extents.shape(value) if is_tensor else [extents.index(value)] for value, is_tensor in pairs]


def _work(source: KernelSource, given: list[list[int | None]], is_updating: bool) -> Work:
    """What a launch with such operands does; `is_updating` one reads what its destination held, too."""
    arguments = list(source.block.arguments)
    analysis = DimAnalysis(source.func)
    positions = {argument: number for number, argument in enumerate(arguments)}

    def lookup(position: int) -> int | None:
        found = analysis.source_of(position)
        if found is None or found[0] not in positions:
            return None
        shape = given[positions[found[0]]]
        at = found[1] or 0
        return shape[at] if at < len(shape) else None

    inside = Extents(analysis, lookup)
    sizes = [
        _bytes(argument.type, _product(numbers), argument, inside)
        for numbers, argument in zip(given, arguments, strict=True)
        if isinstance(argument.type, ir.RankedTensorType)
    ]
    if is_updating:
        sizes.append(sizes[-1])
    touched = None if None in sizes else sum(size for size in sizes if size is not None)
    return flops_of(source, inside), flops_of(source, inside, multiplies_bytes), touched


def _mean(works: Sequence[int | None]) -> int | None:
    """The mean of the launches of a kernel, rounded."""
    known = [work for work in works if work is not None]
    return round(sum(known) / len(known)) if len(known) == len(works) else None


def _bytes(type_: ir.Type, size: int | None, argument: ir.Value, extents: Extents) -> int | None:
    """What a kernel touches of a tensor of `size` elements."""
    elements = None if size is None else elements_of(argument, size, extents)
    dtype = result_type(type_).dtype
    return None if elements is None else elements * (1 if dtype == "i1" else numpy_dtype(dtype).itemsize)


def _all_nodes(source: KernelSource, launch: ir.Operation) -> list[str]:
    """The launch's nodes, then those of what is fused into the kernel."""
    names = node_names(launch.location)
    for op in source.block.operations:
        if op.operation.name.startswith(("linalg.generic", "mlc.")):
            names += node_names(op.operation.location)
    return list(dict.fromkeys(name for name in names if name))


def _product(numbers: Sequence[int | None]) -> int | None:
    known = [n for n in numbers if n is not None]
    return math.prod(known) if len(known) == len(numbers) else None


def _kept_float(module: ir.Module) -> list[dict[str, str]]:
    """Contractions of quantized operands that are done in floats."""
    attributes = module.operation.attributes
    entries = _plain(attributes["mlc.kept_float"]) if "mlc.kept_float" in attributes else []
    return [{"kernel": "", "role": "integers", **entry} for entry in entries]


def _refusals(kernel: str, launch: ir.Operation) -> list[dict[str, str]]:
    """What was not fused into a kernel, and why."""
    if "mlc.refused" not in launch.attributes:
        return []
    return [{"kernel": kernel, **entry} for entry in _plain(launch.attributes["mlc.refused"])]


def _warnings(kernels: Sequence[KernelReport]) -> Iterator[str]:
    for kernel in kernels:
        if kernel.contraction and kernel.template == GENERIC:
            nodes = ", ".join(kernel.nodes[:3])
            yield f"kernel {kernel.name} ({nodes}) is a contraction on the generic path: expect a fraction of the peak"
