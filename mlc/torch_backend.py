"""mlc as a back end of `torch.compile`, for inference.

    module = torch.compile(module.eval(), backend="mlc")
    with torch.no_grad():
        y = module(x)

`options={"precision": "bf16", "threads": 2, "strict": True}` are those of `mlc.compile` that choose how to compute,
the number of threads [PyTorch's], and whether a graph that mlc cannot compile is an error; otherwise PyTorch runs it,
with a warning that says why. Where gradients are wanted PyTorch runs the graph, too.

Dynamo hands over graphs of operations. Tensors that it knows to be a module's parameters and buffers become constants
of a library, which is made anew when they are others or have changed; symbolic sizes become dynamic dimensions. Graphs
on a GPU run there, in PyTorch's current stream. A result never shares memory with an input, as views of PyTorch do.
Source: PyTorch documentation, "Custom Backends".
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mlc.driver import compile as compile_model
from mlc.frontends.report import ModelError
from mlc.frontends.torch.export import is_functional
from mlc.frontends.torch.files import quiet
from mlc.options import InternalError, UsageError
from mlc.runtime.loader import Model, load

_LOG = logging.getLogger(__name__)
_CHOICES = ("precision", "winograd", "row_bits", "opt_level", "jobs", "cache", "cpu", "gpu", "tuning_cache")
_BITS = {torch.bfloat16: np.int16, torch.float8_e4m3fn: np.int8, torch.float8_e5m2: np.int8}  # for NumPy
_MOST = 64  # libraries of a graph: for so many sets of weights or numbers


class UnsupportedGraphError(ValueError):
    """A graph that is nothing for mlc, whatever its operations are."""


def compile_graph(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """What dynamo calls instead of `module`, whose inputs are like `inputs`: tensors, and numbers where sizes or
    integers are symbolic.

    Raises ValueError for options that there are not; with the option `strict` ModelError, UsageError or
    UnsupportedGraphError for a graph that cannot be compiled.
    """
    if mode not in (None, "default"):
        raise ValueError(f"mode {mode!r} is for Inductor; mlc takes options={{...}}: {', '.join(_CHOICES)}")
    chosen = dict(options or {})
    strict, threads = bool(chosen.pop("strict", False)), chosen.pop("threads", None)
    unknown = [name for name in chosen if name not in _CHOICES]
    if unknown:
        known = ", ".join((*_CHOICES, "threads", "strict"))
        raise ValueError(f"mlc has no option {unknown[0]!r} here; it has {known}")
    if torch.is_grad_enabled() and any(isinstance(i, torch.Tensor) and i.requires_grad for i in inputs):
        _leave(module, "gradients are wanted; call it under torch.no_grad() or torch.inference_mode()")
        return module.forward
    try:
        graph = _Graph(module, inputs, chosen, threads, strict)
        graph.library(inputs)
    except _REASONS as error:
        if strict:
            raise
        _leave(module, str(error))
        return module.forward
    return graph.run  # dynamo would copy the attributes of an object, and keep the first library by that


def _leave(module: torch.fx.GraphModule, reason: str) -> None:
    count = sum(node.op.startswith("call") for node in module.graph.nodes)
    plural = "" if count == 1 else "s"
    warnings.warn(f"mlc leaves a graph of {count} operation{plural} to PyTorch: {reason}", stacklevel=3)


_REASONS = (ModelError, UsageError, InternalError, UnsupportedGraphError)
"""What a compilation raises when PyTorch is to run the graph."""


@dataclass(frozen=True)
class _Place:
    """Where a symbolic size is found: dimension `dim` of input `number`."""

    number: int
    dim: int


class _Graph:
    """A graph and its libraries."""

    def __init__(
        self,
        module: torch.fx.GraphModule,
        inputs: Sequence[Any],
        options: Mapping[str, Any],
        threads: int | None,
        strict: bool,
    ) -> None:
        self._module, self._threads, self._strict = module, threads, strict
        self._device = _device_of(inputs)
        self._options = {**_target(self._device), **options}
        self._values = [node.meta.get("example_value") for node in module.graph.find_nodes(op="placeholder")]
        self._tensors = [n for n, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
        self._places = _places(self._values)
        self._numbers = [n for n in range(len(inputs)) if n not in self._tensors and n not in self._places]
        self._held: list[int] = []
        self._given: list[int] = []
        self._hold([n for n in self._tensors if _is_constant(inputs[n])])
        self._changed: list[int] = []
        self._libraries: OrderedDict[tuple[Any, ...], tuple[list[int], _Library]] = OrderedDict()
        self._last: tuple[tuple[Any, ...], list[int], _Library] | None = None

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Runs the library for these weights and numbers; changes what the graph changes in place."""
        try:
            library = self.library(inputs)
        except _REASONS as error:  # with other numbers than the first
            if self._strict:
                raise
            _leave(self._module, str(error))
            return tuple(self._module.forward(*inputs))
        results = library.run([inputs[n] for n in self._given])
        count = len(results) - len(self._changed)
        for number, result in zip(self._changed, results[count:], strict=True):
            inputs[number].copy_(result)
        return results[:count]

    def _hold(self, held: list[int]) -> None:
        """Makes these tensors constants of the libraries, and the others what a call gives to them."""
        self._held, self._given = held, sorted({*self._tensors} - {*held})

    def library(self, inputs: Sequence[Any]) -> _Library:
        """The library for the weights and numbers among `inputs`, which is compiled if there is none. What it was for
        weights that have changed since is forgotten."""
        key, state = self._key(inputs), self._state(inputs)
        if self._last is not None and self._last[:2] == (key, state):
            return self._last[2]
        known, found = self._libraries.get(key, (None, None))
        if found is None or known != state:
            found = self._compiled(inputs)
            key, state = self._key(inputs), self._state(inputs)  # tensors that the graph changes are not held
            self._libraries[key] = state, found
            if len(self._libraries) > _MOST:
                self._libraries.popitem(last=False)
        self._libraries.move_to_end(key)
        self._last = key, state, found
        return found

    def _key(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Which weights and numbers there are."""
        numbers = (_number(inputs[n]) for n in self._numbers)
        return (*(id(inputs[n]) for n in self._held), *numbers)

    def _state(self, inputs: Sequence[Any]) -> list[int]:
        """What tells whether weights are as they were."""
        held = [inputs[n] for n in self._held]
        return [*_versions(held), *map(torch.Tensor.data_ptr, held)]

    def _compiled(self, inputs: Sequence[Any]) -> _Library:
        program = self._exported(inputs)
        changed = self._changes_of(program)
        if changed:
            self._changed = sorted({*self._changed, *changed})
            self._hold([n for n in self._held if n not in changed])
            program = self._exported(inputs)
        with tempfile.TemporaryDirectory(prefix="mlc-") as folder:  # the library stays mapped after its file is gone
            path = Path(folder) / "graph.so"
            compile_model(program, output=path, load=False, weights="embed", **self._options)
            model = load(path, threads=self._threads or torch.get_num_threads())
        _LOG.info("compiled a graph of %d inputs and %d constants", len(self._given), len(self._held))
        return _Library(program, model, self._device, [inputs[n] for n in self._held])

    def _changes_of(self, program: Any) -> list[int]:
        """The inputs of the graph that it changes in place."""
        changed = []
        for spec in program.graph_signature.output_specs:
            number = int(spec.target.rsplit("_", 1)[1]) if "MUTATION" in spec.kind.name else 0
            if spec.kind.name == "BUFFER_MUTATION":
                changed.append(number)
            elif spec.kind.name == "USER_INPUT_MUTATION":
                changed.append(self._given[number])
        return changed

    def _exported(self, inputs: Sequence[Any]) -> Any:
        """The graph as a functional program of `torch.export`. Raises UnsupportedGraphError where PyTorch cannot make
        one."""
        given = [inputs[n] for n in self._given]
        dynamic = [self._dynamic(n) for n in self._given]
        shapes = {"given": tuple(dynamic)} if given else None
        with _exporting():
            program = torch.export.export(self._wrapper(inputs), tuple(given), dynamic_shapes=shapes)
            return program if is_functional(program) else program.run_decompositions({})

    def _dynamic(self, number: int) -> dict[int, Any]:
        shape = getattr(self._values[number], "shape", ())
        return {d: torch.export.Dim.DYNAMIC for d, extent in enumerate(shape) if _symbol(extent)}

    def _wrapper(self, inputs: Sequence[Any]) -> torch.nn.Module:
        """A module of those tensors that a call gives: it holds the others, finds sizes, and returns what the graph
        would change in place behind the graph's results."""
        graph, held = self, torch.nn.Module()
        for number in self._held:
            held.register_buffer(_held_name(number), inputs[number].detach())

        class Wrapper(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner, self.held = graph._module, held

            def forward(self, *given: torch.Tensor) -> tuple[Any, ...]:
                full = list(inputs)
                for number in graph._numbers:
                    full[number] = _number(inputs[number])
                for number in graph._held:
                    full[number] = getattr(self.held, _held_name(number))
                for number, tensor in zip(graph._given, given, strict=True):
                    full[number] = tensor
                for number, place in graph._places.items():
                    full[number] = full[place.number].shape[place.dim]
                copies = [full[number].clone() for number in graph._changed]
                for number, copy in zip(graph._changed, copies, strict=True):
                    full[number] = copy
                return (*self.inner(*full), *copies)

        return Wrapper()


class _Library:
    """A loaded library: runs on tensors, gives tensors and numbers."""

    def __init__(
        self, program: Any, model: Model, device: torch.device | None, held: Sequence[torch.Tensor]
    ) -> None:
        self._entry = model.entry()
        self._held = held  # alive as long as their identities are a key
        self._device = device
        (output,) = program.graph.find_nodes(op="output")
        self._results = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in output.args[0]]
        self._likes = [like for like in self._results if like is not None]
        tensors = [node.meta.get("val") for node in program.graph.find_nodes(op="placeholder")]
        self._places = {
            symbol: _Place(place.number - len(tensors), place.dim) for symbol, place in _extents(tensors).items()
        }  # from the end, where the tensors of a call are
        self._shapes: tuple[Any, list[Any]] | None = None

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """The results of the graph."""
        found = self._run_on_gpu(tensors) if self._device else self._entry(*tensors)
        left = iter(found)
        return tuple(None if like is None else _like(next(left), like) for like in self._results)

    def _run_on_gpu(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        device = self._device
        key = [tensor.shape for tensor in tensors]
        if self._shapes is None or self._shapes[0] != key:
            self._shapes = key, [self._shape(like, tensors) for like in self._likes]
        out = [
            None if shape is None else torch.empty(shape, dtype=like.dtype, device=device)
            for like, shape in zip(self._likes, self._shapes[1], strict=True)
        ]
        stream = torch.cuda.current_stream(device).cuda_stream
        return list(self._entry.run(list(tensors), out=out, stream=stream).values())

    def _shape(self, like: Any, tensors: Sequence[torch.Tensor]) -> list[int] | None:
        """The shape of a result; None where only the run knows it, or where it is no tensor."""
        if not isinstance(like, torch.Tensor):
            return None
        shape = []
        for extent in like.shape:
            expression: Any = extent if isinstance(extent, int) else extent.node.expr
            if _symbol(extent):
                if any(str(symbol) not in self._places for symbol in expression.free_symbols):
                    return None
                sizes = {s: self._places[str(s)] for s in expression.free_symbols}
                expression = expression.subs({s: tensors[p.number].shape[p.dim] for s, p in sizes.items()})
            shape.append(int(expression))
        return shape


@contextlib.contextmanager
def _exporting() -> Iterator[None]:
    """What PyTorch raises in here, of any kind, means that it runs the graph itself. Dynamo, which is still tracing,
    sees nothing of it: sizes would be guarded that are none of its own."""
    try:
        with torch._guards.tracing(None), quiet():
            yield
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UnsupportedGraphError(f"torch.export cannot take it: {lines[0]}") from error


def _like(result: Any, like: Any) -> Any:
    """A result of a library as what it stands for."""
    if not isinstance(like, torch.Tensor):
        return type(like)(result) if isinstance(like, (bool, int, float)) else int(result)
    if isinstance(result, torch.Tensor):
        return result
    if like.dtype in _BITS:
        return torch.from_numpy(result.view(_BITS[like.dtype])).view(like.dtype)
    return torch.from_numpy(result).to(like.device)


def _device_of(inputs: Sequence[Any]) -> torch.device | None:
    """The GPU that a graph runs on; None: the CPU. Raises UnsupportedGraphError where there is no one place."""
    devices = {tensor.device for tensor in inputs if isinstance(tensor, torch.Tensor)}
    if all(device.type == "cpu" for device in devices):
        return None
    if len(devices) != 1 or {device.type for device in devices} != {"cuda"}:
        raise UnsupportedGraphError(f"its tensors are on {', '.join(sorted(map(str, devices)))}; mlc wants one place")
    return devices.pop()


def _target(device: torch.device | None) -> dict[str, Any]:
    """The options of a compilation for a device."""
    if device is None:
        return {}
    major, minor = torch.cuda.get_device_capability(device)
    return {"target": "cuda", "gpu": f"sm_{major}{minor}{'a' if major >= 9 else ''}"}


def _versions(tensors: Sequence[torch.Tensor]) -> list[int]:
    """How often tensors have been written; 0 for those of inference mode, which do not count it."""
    try:
        return list(map(torch.Tensor._version.__get__, tensors))  # a third of the time of reading each by name
    except RuntimeError:
        return [0 if tensor.is_inference() else tensor._version for tensor in tensors]


def _number(value: Any) -> int | float:
    """A number among the inputs of a graph, symbolic or not. Raises UnsupportedGraphError for anything else."""
    if isinstance(value, (float, torch.SymFloat)):
        return float(value)
    if isinstance(value, (bool, int, torch.SymInt)):
        return int(value)
    raise UnsupportedGraphError(f"it takes a {type(value).__name__}")


def _is_constant(tensor: torch.Tensor) -> bool:
    """Does dynamo say that this is a parameter or buffer of a module?"""
    return isinstance(tensor, torch.nn.Parameter) or hasattr(tensor, "_dynamo_static_input_type")


def _places(values: Sequence[Any]) -> dict[int, _Place]:
    """Where the symbols among the inputs of a graph are sizes of tensors."""
    extents = _extents(values)
    symbols = ((n, _symbol(value)) for n, value in enumerate(values) if isinstance(value, torch.SymInt))
    return {number: extents[symbol] for number, symbol in symbols if symbol in extents}


def _symbol(size: Any) -> str:
    """The expression of a symbolic size; "" for one that is known, be it because an operation has allowed no other."""
    expression = size.node.expr if isinstance(size, torch.SymInt) else size
    return str(expression) if getattr(expression, "free_symbols", ()) else ""


def _extents(values: Sequence[Any]) -> dict[str, _Place]:
    """The first place of each symbol among the extents of tensors."""
    extents: dict[str, _Place] = {}
    for number, value in enumerate(values):
        for dim, extent in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if symbol := _symbol(extent):
                extents.setdefault(symbol, _Place(number, dim))
    return extents


def _held_name(number: int) -> str:
    return f"constant_{number}"
