"""The boundaries between the phases: what the IR may contain when a phase has ended (docs/ir.md §4).

`verify_phase` runs after every phase under `--verify-each` and in tests. Each check is a function of one operation that
says what is wrong with it, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from mlir import ir

from mlc.kernels.common.streamed import STREAMED
from mlc.passes.adaptor import defining_op, node_name
from mlc.passes.walk import called_kernel

Check = Callable[[ir.Operation], "str | None"]

SHOWN = 10
"""Problems that the message lists."""

_STRUCTURE = ("builtin.module", "func.func", "func.return", "func.call")
_TENSOR_SIZES = ("tensor.dim", "tensor.extract", "tensor.from_elements", "tensor.cast")
_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast")
_DATA_DEPENDENT = frozenset(
    f"mlc.{name}" for name in ("nonzero", "unique", "nms", "extern", "sequence_at", "optional_get", "scan")
)
_BODY = frozenset({"linalg.index", "linalg.yield", "tensor.extract", "tensor.dim", "cf.assert", "scf.if", "scf.yield"})


def verify_phase(module: Any, phase: str) -> None:
    """Checks the boundary after `phase` (a name of docs/ir.md §4).

    Raises ValueError that names every operation that does not belong there, with its source node, and why; also for an
    unknown phase.
    """
    if phase not in _PHASES:
        raise ValueError(f"unknown phase '{phase}'; known are {', '.join(_PHASES)}")
    problems = list(_PHASES[phase](module.operation))
    if not problems:
        return
    shown = problems[:SHOWN]
    more = f"\n… and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    raise ValueError(f"after phase '{phase}' the IR breaks its contract:\n" + "\n".join(shown) + more)


def _describe(op: ir.Operation, problem: str) -> str:
    return f"  {op.name} (node '{node_name(op.location)}'): {problem}"


def _operations(root: ir.Operation, *, kernels: bool = False) -> Iterator[ir.Operation]:
    """All operations below `root` in order; those in kernel modules only when `kernels` is set."""
    for region in root.regions:
        for block in region.blocks:
            for view in block.operations:
                op = view.operation
                if is_kernel_module(op) and not kernels:
                    continue
                yield op
                yield from _operations(op, kernels=kernels)


def is_kernel_module(op: ir.Operation) -> bool:
    return op.name == "builtin.module" and "mlc.kernel" in op.attributes


def kernel_modules(root: ir.Operation) -> list[ir.Operation]:
    """The kernel modules at the top level of the module `root`."""
    return [o.operation for o in root.regions[0].blocks[0].operations if is_kernel_module(o.operation)]


def _run(operations: Iterator[ir.Operation], *checks: Check) -> Iterator[str]:
    for op in operations:
        for check in checks:
            problem = check(op)
            if problem is not None:
                yield _describe(op, problem)
                break


# ---- mlc phases ------------------------------------------------------------------------------------------------------


def _only(names: Collection[str], prefixes: tuple[str, ...] = ()) -> Check:
    def check(op: ir.Operation) -> str | None:
        if op.name in names or op.name.startswith(prefixes):
            return None
        return "does not belong in this phase"

    return check


_MLC_PHASE = _only({*_STRUCTURE, *_TENSOR_SIZES}, ("mlc.", "scf.", "index.", "arith.", "math."))


def _scalar_arithmetic(op: ir.Operation) -> str | None:
    """Sizes may be computed with floats, too (`Range`), but tensors are for `mlc` operations."""
    if op.name.startswith(("arith.", "math.")) and not _is_scalar(op):
        return "is arithmetic on tensors"
    return None


def _is_scalar(op: ir.Operation) -> bool:
    """Upstream turns an `scf.if` with values for branches into an `arith.select` of whole tensors."""
    return op.name == "arith.select" or not _has_tensors(op)


def _no_kernel_ops(op: ir.Operation) -> str | None:
    return "belongs to the host program of later phases" if op.name in ("mlc.launch", "mlc.buffer") else None


def _resolved_dim(op: ir.Operation) -> str | None:
    """A size is asked of an argument, or of what only the data decide."""
    if op.name != "tensor.dim":
        return None
    producer = defining_op(op.operands[0])
    if producer is None or producer.name in _DATA_DEPENDENT or not producer.name.startswith("mlc."):
        return None
    return f"asks for a size of the result of {producer.name}, which follows from its operands"


def _decomposed(op: ir.Operation) -> str | None:
    from mlc.passes.decompose import rules

    if op.name not in rules() or STREAMED in op.attributes:
        return None
    return "is a composite that the target does not claim"


def _relayout(op: ir.Operation) -> str | None:
    if "mlc.relayout" in op.attributes and op.name != "mlc.transpose":
        return "carries mlc.relayout and is no transposition"
    return None


def _claimed(root: ir.Operation, check: Check) -> Check:
    from mlc.targets.claims import claims_of

    claims = {f"mlc.{name}" for name in claims_of(root)}
    return lambda op: None if op.name in claims else check(op)


def _import(root: ir.Operation) -> Iterator[str]:
    yield from _run(_operations(root), _MLC_PHASE, _scalar_arithmetic, _no_kernel_ops)


def _simplify(root: ir.Operation) -> Iterator[str]:
    yield from _run(_operations(root), _MLC_PHASE, _scalar_arithmetic, _no_kernel_ops, _resolved_dim)


def _decompose(root: ir.Operation) -> Iterator[str]:
    checks = (_MLC_PHASE, _scalar_arithmetic, _no_kernel_ops, _claimed(root, _decomposed))
    yield from _run(_operations(root), *checks)


def _layout(root: ir.Operation) -> Iterator[str]:
    checks = (_MLC_PHASE, _scalar_arithmetic, _no_kernel_ops, _claimed(root, _decomposed), _relayout)
    yield from _run(_operations(root), *checks)


# ---- linalg ----------------------------------------------------------------------------------------------------------


def _linalg_form(op: ir.Operation) -> str | None:
    from mlc.passes.lower.to_linalg import OPAQUE

    known = {*_STRUCTURE, *_TENSOR_SIZES, *_VIEWS}
    known |= {"tensor.empty", "tensor.extract_slice", "tensor.insert_slice", "linalg.generic", "linalg.fill"}
    if op.name in known or op.name in OPAQUE or op.name in _BODY or op.name.startswith(("scf.", "index.")):
        return None
    parent = op.parent.operation if op.parent is not None else None
    while parent is not None and parent.name == "scf.if":
        parent = parent.parent.operation
    inside = parent is not None and parent.name.startswith("linalg.")
    if op.name.startswith(("arith.", "math.")) and (inside or _is_scalar(op)):
        return None
    if op.name.startswith("mlc."):
        return "has not been lowered"
    return "does not belong in linalg form"


def _contraction(op: ir.Operation) -> str | None:
    """The body of a marked generic is a multiplication, then an addition, with widening casts at most."""
    if op.name != "linalg.generic" or "mlc.contraction" not in op.attributes:
        return None
    names = [o.operation.name for o in op.regions[0].blocks[0].operations]
    casts = {"arith.extf", "arith.extsi", "arith.extui"}
    plain = [name for name in names if name not in casts]
    if plain in (["arith.mulf", "arith.addf", "linalg.yield"], ["arith.muli", "arith.addi", "linalg.yield"]):
        return None
    return f"is marked mlc.contraction but its body is {', '.join(names)}"


def _traced_dim(op: ir.Operation) -> str | None:
    """Sizes never depend on a tensor that a generic or a view makes."""
    if op.name != "tensor.dim":
        return None
    producer = defining_op(op.operands[0])
    if producer is not None and producer.name in ("linalg.generic", "linalg.fill", "tensor.empty", *_VIEWS):
        return f"asks for a size of the result of {producer.name}"
    return None


def _accumulator(op: ir.Operation) -> str | None:
    """A reduction starts from a filled tensor."""
    if op.name != "linalg.generic" or "reduction" not in str(op.attributes["iterator_types"]):
        return None
    for value in list(op.operands)[len(op.operands) - len(op.results) :]:
        producer = defining_op(value)
        if producer is None or producer.name != "linalg.fill":
            return "is a reduction whose output is not a filled tensor"
    return None


def _linalg(root: ir.Operation) -> Iterator[str]:
    yield from _run(_operations(root), _linalg_form, _contraction, _traced_dim, _accumulator)


# ---- kernels and after -----------------------------------------------------------------------------------------------


def _host_of_kernels(op: ir.Operation) -> str | None:
    from mlc.passes.lower.to_linalg import OPAQUE

    known = {*_STRUCTURE, *_TENSOR_SIZES, *_VIEWS, "tensor.empty", "mlc.launch", "cf.assert"}
    if op.name in known or op.name in OPAQUE or op.name.startswith(("scf.", "index.")):
        return None
    if op.name.startswith(("arith.", "math.")) and _is_scalar(op):
        return None
    # Recipes of packed weights are written as mlc operations on weights until they are hoisted.
    if op.name.startswith("mlc."):
        return None
    return "does not belong in a host program"


def _launches(root: ir.Operation) -> Check:
    names = {ir.StringAttr(k.attributes["sym_name"]).value for k in kernel_modules(root)}

    def check(op: ir.Operation) -> str | None:
        if op.name != "mlc.launch":
            return None
        kernel = called_kernel(op)
        return None if kernel in names else f"launches @{kernel}, which does not exist"

    return check


def _functions(kernel: ir.Operation) -> list[ir.Operation]:
    return [o.operation for o in kernel.regions[0].blocks[0].operations if o.operation.name == "func.func"]


def _kernel_problem(kernel: ir.Operation, *, scheduled: bool) -> str | None:
    name = ir.StringAttr(kernel.attributes["sym_name"]).value
    defined = [ir.StringAttr(f.attributes["sym_name"]).value for f in _functions(kernel)]
    if name not in defined:
        return f"has no function @{name}"
    if scheduled and "mlc.schedule" not in kernel.attributes:
        return "has no mlc.schedule"
    return None


def _kernels(root: ir.Operation) -> Iterator[str]:
    yield from _with_kernels(root, scheduled=False)


def _schedule(root: ir.Operation) -> Iterator[str]:
    yield from _with_kernels(root, scheduled=True)


def _with_kernels(root: ir.Operation, *, scheduled: bool) -> Iterator[str]:
    yield from _run(_operations(root), _host_of_kernels, _launches(root))
    for kernel in kernel_modules(root):
        problem = _kernel_problem(kernel, scheduled=scheduled)
        if problem is not None:
            yield _describe(kernel, problem)


def _has_tensors(op: ir.Operation) -> bool:
    values = [*op.operands, *op.results]
    return any(isinstance(v.type, ir.RankedTensorType) for v in values)


def _no_tensors(op: ir.Operation) -> str | None:
    return "still works on tensors" if _has_tensors(op) else None


def _tile(root: ir.Operation) -> Iterator[str]:
    yield from _run(_operations(root), _host_of_kernels, _launches(root))
    for kernel in kernel_modules(root):
        yield from _tiled(kernel)


def _tiled(kernel: ir.Operation) -> Iterator[str]:
    """A kernel has its function and its grid function, on memrefs."""
    name = ir.StringAttr(kernel.attributes["sym_name"]).value
    defined = {ir.StringAttr(f.attributes["sym_name"]).value for f in _functions(kernel)}
    for wanted in (name, f"{name}_grid"):
        if wanted not in defined:
            yield _describe(kernel, f"has no function @{wanted}")
    yield from _run(_operations(kernel, kernels=True), _no_tensors)


def _buffers(root: ir.Operation) -> Iterator[str]:
    yield from _run(_operations(root), _launches(root), _no_tensors)
    for kernel in kernel_modules(root):
        yield from _tiled(kernel)


def _llvm(root: ir.Operation) -> Iterator[str]:
    yield from _run(_operations(root), _only({"builtin.module"}, ("llvm.",)))


def _nvvm(root: ir.Operation) -> Iterator[str]:
    """The host is a module of the LLVM dialect, so are the kernels, with one entry; the host's are those of `tile`."""
    yield from _run(_operations(root), _only({"builtin.module"}, ("llvm.",)))
    for kernel in kernel_modules(root):
        if _is_for_host(kernel):
            yield from _tiled(kernel)
            continue
        inner = _operations(kernel, kernels=True)
        yield from _run(inner, _only({"builtin.module"}, ("llvm.", "nvvm.")))
        entries = [
            o.operation for o in kernel.regions[0].blocks[0].operations if "nvvm.kernel" in o.operation.attributes
        ]
        if len(entries) != 1:
            yield _describe(kernel, f"has {len(entries)} entries")


def _is_for_host(kernel: ir.Operation) -> bool:
    return "mlc.placement" in kernel.attributes and ir.StringAttr(kernel.attributes["mlc.placement"]).value == "host"


_PHASES: dict[str, Callable[[ir.Operation], Iterator[str]]] = {
    "import": _import,
    "simplify": _simplify,
    "decompose": _decompose,
    "layout": _layout,
    "linalg": _linalg,
    "kernels": _kernels,
    "schedule": _schedule,
    "tile": _tile,
    "buffers": _buffers,
    "llvm": _llvm,
    "nvvm": _nvvm,
}
