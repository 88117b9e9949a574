"""The program table: what the runtime reads about an artefact (docs/abi.md, section 1), as an object file.

A plain description goes in; out comes an object that defines the hidden symbol `mlc_program` and refers to the
host functions of the entries and, when weights are embedded, to `mlc_weights`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlc.codegen.contexts import thread_context
from mlc.codegen.tensor_maps import TensorMap
from mlc.runtime.dim_sums import sum_of
from mlc.runtime.dtypes import DTYPES, dtype_code

ABI_VERSION = 1
KINDS = {"tensor": 1, "sequence": 2, "optional": 3}


@dataclass(frozen=True)
class Dim:
    """A named dimension: its range (`highest` -1: unbounded) and divisibility."""

    name: str
    lowest: int = 0
    highest: int = -1
    multiple: int = 1


@dataclass(frozen=True)
class Value:
    """An input or output.

    `dtype` is a name from `mlc.runtime.dtypes`. An entry of `dims` is an extent, the name of a dimension, or
    None (dynamic, without a name); `dims` None is any rank. `kind` goes from the outside in:
    ("optional", "sequence", "tensor"). An input `on_device` is wanted in the GPU's memory. An output with `keys` is a
    sequence of maps as a matrix, an input with the name of a `map` is a part of it; only the metadata say so. An output
    that `shares` may be in the memory of the input of that number; one that `continues` an input is what the next run
    gets there, and an input with a `default` may be made of that number. Only the metadata say these two.
    """

    name: str
    dtype: str
    dims: tuple[int | str | None, ...] | None
    kind: tuple[str, ...] = ("tensor",)
    on_device: bool = False
    keys: tuple[int | str, ...] = ()
    map: str = ""
    shares: int | None = None
    continues: str = ""
    default: int | float | None = None


@dataclass(frozen=True)
class GpuKernel:
    """A kernel as the runtime launches it: `name` in its images, and what `launch.json` says of it (mlc.codegen.ptx).

    `cubin` is None for a kernel of the host. `shared` is its dynamic shared memory in bytes, `maps` its tensor maps;
    a launch may begin `early`, before the one in front of it is done, and uses `workspace` bytes of the context's.
    """

    name: str
    cubin: bytes | None = None
    ptx: str = ""
    threads: int = 0
    group: int = 1
    arguments: int = 0
    shared: int = 0
    maps: Sequence[TensorMap] = ()
    early: bool = False
    workspace: int = 0


@dataclass(frozen=True)
class Gpu:
    """What a program needs of a GPU: `arch` of the machine code ("sm_90a"), its compute capability, the lowest driver
    version (as `cuDriverGetVersion` gives it), and its kernels by number. `status` says what is known of the code.
    `following` is the same for another architecture.
    """

    arch: str
    capability: tuple[int, int]
    driver: int
    kernels: Sequence[GpuKernel]
    status: str = ""
    following: Gpu | None = None


@dataclass(frozen=True)
class Entry:
    """An entry point; `symbol` is its host function, `int32_t symbol(mlc_rt *, const int64_t *)`."""

    name: str
    symbol: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


@dataclass(frozen=True)
class Program:
    """Everything about an artefact but its code and its weights.

    `metadata` is what the compiler wants to say (target, source hash, kernels, …); the signature is added.
    `nodes` and `messages` are the tables that the host code's node and message numbers index. Weights are
    embedded when there are any and `weights_file` is None; `weights_hash` (mlc.runtime.image_hash) is
    needed for external ones. `gpu` is None for a program that runs on the CPU.
    """

    entries: Sequence[Entry]
    dims: Sequence[Dim] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    nodes: Sequence[str] = ()
    messages: Sequence[str] = ()
    cpu_features: str = ""
    weights_size: int = 0
    weights_file: str | None = None
    weights_hash: bytes = bytes(32)
    gpu: Gpu | None = None

    def all_dims(self) -> list[Dim]:
        """`dims`, and those that only values name, without bounds."""
        result = {dim.name: dim for dim in self.dims}
        for entry in self.entries:
            for value in (*entry.inputs, *entry.outputs):
                for dim in value.dims or ():
                    if isinstance(dim, str):
                        result.setdefault(dim, Dim(dim))
        return list(result.values())

    def metadata_json(self) -> str:
        """The artefact's metadata: the signature and `metadata`, as JSON with sorted keys."""
        signature = {
            "abi_version": ABI_VERSION,
            "entries": [
                {
                    "name": entry.name,
                    "inputs": [_describe(value) for value in entry.inputs],
                    "outputs": [_describe(value, entry.inputs) for value in entry.outputs],
                }
                for entry in self.entries
            ],
            "dims": {
                dim.name: {"lowest": dim.lowest, "highest": dim.highest, "multiple": dim.multiple}
                for dim in self.all_dims()
            },
            "cpu_features": self.cpu_features,
            "weights": {"size": self.weights_size, "file": self.weights_file, "hash": self.weights_hash.hex()},
        }
        return json.dumps({**self.metadata, **signature}, sort_keys=True)


def _describe(value: Value, inputs: Sequence[Value] = ()) -> dict[str, Any]:
    dims = None if value.dims is None else list(value.dims)
    described: dict[str, Any] = {"name": value.name, "kind": list(value.kind), "dtype": value.dtype, "dims": dims}
    if value.keys:
        described["keys"] = list(value.keys)
    if value.map:
        described["map"] = value.map
    if value.shares is not None:
        described["shares"] = inputs[value.shares].name
    if value.continues:
        described["continues"] = value.continues
    if value.default is not None:
        described["default"] = value.default
    return described


# --- LLVM dialect ------------------------------------------------------------------------------------------

_PTR = "!llvm.ptr"
_VALUE = "!llvm.struct<(ptr, i32, i32, ptr, ptr, i32, i32, i32)>"
_DIM = "!llvm.struct<(ptr, i64, i64, i64, ptr)>"
_ENTRY = "!llvm.struct<(ptr, ptr, i32, i32, ptr, ptr)>"
_PROGRAM = "!llvm.struct<(i32, i32, ptr, ptr, ptr, i64, ptr, i64, ptr, i64, ptr, array<32 x i8>, ptr, i64, ptr, i64)>"
_PROGRAM_BYTES = 144
# Programs for GPUs have one more pointer at the end.
_GPU_PROGRAM = _PROGRAM.replace(")>", ", ptr)>")
_GPU_PROGRAM_BYTES = 152
_GPU_KERNEL = "!llvm.struct<(ptr, ptr, ptr, i32, i32, i32, i32, ptr, i64, i64)>"
_GPU = "!llvm.struct<(i32, i32, i32, i32, ptr, ptr, i64, ptr, ptr)>"
_GPU_BYTES = 56


_ESCAPES = {c: f"\\{c:02X}" for c in range(256) if not 32 <= c < 127 or c in b'"\\'}
"""How MLIR writes what is not printed in a string."""


class _Null:
    """A null pointer."""


_NULL = _Null()


@dataclass(frozen=True)
class _Address:
    symbol: str


class _Writer:
    """Collects globals; returns their symbols. Equal strings and arrays are written once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._known: dict[str, str] = {}

    def _define(self, body: str, linkage: str = "private") -> _Address:
        if body not in self._known:
            symbol = f"mlc_table.{len(self._known)}"
            self._known[body] = symbol
            self.lines.append(f"llvm.mlir.global {linkage} unnamed_addr constant @{symbol}{body}")
        return _Address(self._known[body])

    def data(self, data: bytes | None) -> _Address | _Null:
        """Bytes, aligned for whatever they hold."""
        if data is None:
            return _NULL
        body = f'(dense<"0x{data.hex().upper()}"> : tensor<{len(data)}xi8>) {{alignment = 16 : i64}}'
        return self._define(f"{body} : !llvm.array<{len(data)} x i8>")

    def text(self, text: str | None) -> _Address | _Null:
        """A NUL-terminated string."""
        if text is None:
            return _NULL
        data = text.encode() + b"\0"
        escaped = data.decode("latin-1").translate(_ESCAPES)
        return self._define(f'("{escaped}") : !llvm.array<{len(data)} x i8>')

    def integers(self, values: Sequence[int], bits: int) -> _Address | _Null:
        """An array of integers."""
        if not values:
            return _NULL
        body = f"(dense<{list(values)}> : tensor<{len(values)}xi{bits}>) : !llvm.array<{len(values)} x i{bits}>"
        return self._define(body)

    def table(self, rows: Sequence[Sequence[Any]], struct: str) -> _Address | _Null:
        """An array of structs, or of pointers (each row one field)."""
        if not rows:
            return _NULL
        plain = struct.removeprefix("!llvm.")
        kind = f"!llvm.array<{len(rows)} x {plain}>"
        cells = [
            ((i, j) if struct != _PTR else (i,), value) for i, row in enumerate(rows) for j, value in enumerate(row)
        ]
        return self._define(self._region(kind, struct, cells))

    def _region(self, kind: str, struct: str, cells: Sequence[tuple[tuple[int, ...], Any]]) -> str:
        """() : kind { … } with one insertvalue per cell."""
        fields = [f.strip() for f in struct.removeprefix("!llvm.struct<(").removesuffix(")>").split(", ")]
        lines = [f"() : {kind} {{", f"%v0 = llvm.mlir.undef : {kind}"]
        for number, (position, value) in enumerate(cells):
            kind_of = fields[position[-1]] if struct != _PTR else "ptr"
            lines += [
                _constant(f"%c{number}", value, kind_of),
                f"%v{number + 1} = llvm.insertvalue %c{number}, %v{number}[{', '.join(map(str, position))}] : {kind}",
            ]
        lines += [f"llvm.return %v{len(cells)} : {kind}", "}"]
        return "\n".join(lines)

    def program(self, fields: Sequence[Any], struct: str = _PROGRAM) -> None:
        """The table itself."""
        body = self._region(struct, struct, [((i,), value) for i, value in enumerate(fields)])
        self.lines.append(f"llvm.mlir.global external hidden constant @mlc_program{body}")


def _constant(name: str, value: Any, kind: str) -> str:
    if isinstance(value, _Null):
        return f"{name} = llvm.mlir.zero : {_PTR}"
    if isinstance(value, _Address):
        return f"{name} = llvm.mlir.addressof @{value.symbol} : {_PTR}"
    if isinstance(value, bytes):
        signed = [b - 256 if b > 127 else b for b in value]
        size = len(value)
        return f"{name} = llvm.mlir.constant(dense<{signed}> : tensor<{size}xi8>) : !llvm.array<{size} x i8>"
    return f"{name} = llvm.mlir.constant({int(value)} : {kind}) : {kind}"


def _values(writer: _Writer, values: Sequence[Value], numbers: Mapping[str, int]) -> _Address | _Null:
    rows = []
    for value in values:
        if value.dtype not in DTYPES:
            raise ValueError(f"value '{value.name}': dtype '{value.dtype}' cannot cross the artefact's interface")
        kind = 0
        for name in reversed(value.kind):
            kind = kind << 4 | KINDS[name]
        dims = value.dims or ()
        rows.append(
            (
                writer.text(value.name),
                dtype_code(value.dtype),
                -1 if value.dims is None else len(dims),
                writer.integers([d if isinstance(d, int) else -1 for d in dims], 64),
                writer.integers([numbers[d] if isinstance(d, str) else -1 for d in dims], 32),
                kind,
                int(value.on_device),
                0 if value.shares is None else 1 + value.shares,
            )
        )
    return writer.table(rows, _VALUE)


def _sum(writer: _Writer, name: str, numbers: Mapping[str, int]) -> _Address | _Null:
    """What a dimension is the sum of: how many others, the constant, and the number and the factor of each."""
    found = sum_of(name, numbers)
    if found is None:
        return _NULL
    terms = [word for part, factor in found.factors.items() for word in (numbers[part], factor)]
    return writer.integers([len(found.factors), found.constant, *terms], 64)


def _gpu(writer: _Writer, gpu: Gpu) -> _Address | _Null:
    """The table of the GPU's kernels."""
    rows = []
    for kernel in gpu.kernels:
        ptx = writer.data(kernel.ptx.encode() + b"\0") if kernel.cubin is not None else _NULL
        numbers = (kernel.threads, kernel.group, kernel.arguments, kernel.shared)
        maps = writer.integers([word for one in kernel.maps for word in one.words()], 64)
        images = (writer.text(kernel.name), writer.data(kernel.cubin), ptx)
        rows.append((*images, *numbers, maps, len(kernel.maps), kernel.workspace))
    kernels = writer.table(rows, _GPU_KERNEL)
    following = _NULL if gpu.following is None else _gpu(writer, gpu.following)
    early = writer.integers([int(kernel.early) for kernel in gpu.kernels], 32)
    row = (_GPU_BYTES, gpu.driver, *gpu.capability, writer.text(gpu.arch), kernels, len(rows), following, early)
    return writer.table([row], _GPU)


def _names(writer: _Writer, names: Sequence[str]) -> _Address | _Null:
    return writer.table([(writer.text(name),) for name in names], _PTR)


def program_module(program: Program) -> str:
    """The object's contents as a module in the LLVM dialect. ValueError when the description is wrong."""
    if len(program.weights_hash) != 32:
        raise ValueError("the weights' hash has 32 bytes")
    writer = _Writer()
    dims = program.all_dims()
    numbers = {dim.name: i for i, dim in enumerate(dims)}
    entries = []
    for entry in program.entries:
        writer.lines.append(f"llvm.func hidden @{entry.symbol}(!llvm.ptr, !llvm.ptr) -> i32")
        inputs, outputs = (_values(writer, values, numbers) for values in (entry.inputs, entry.outputs))
        counts = (len(entry.inputs), len(entry.outputs))
        entries.append((writer.text(entry.name), _Address(entry.symbol), *counts, inputs, outputs))
    weights: _Address | _Null = _NULL
    if program.weights_size and program.weights_file is None:
        weights = _Address("mlc_weights")
        kind = f"!llvm.array<{program.weights_size} x i8>"
        writer.lines.append(f"llvm.mlir.global external hidden constant @mlc_weights() : {kind}")
    rows = [(writer.text(d.name), d.lowest, d.highest, d.multiple, _sum(writer, d.name, numbers)) for d in dims]
    fields = [
        _PROGRAM_BYTES if program.gpu is None else _GPU_PROGRAM_BYTES,
        ABI_VERSION,
        writer.text(program.metadata_json()),
        writer.text(program.cpu_features),
        _names(writer, program.nodes),
        len(program.nodes),
        writer.table(rows, _DIM),
        len(rows),
        weights,
        program.weights_size,
        writer.text(program.weights_file),
        program.weights_hash,
        writer.table(entries, _ENTRY),
        len(entries),
        _names(writer, program.messages),
        len(program.messages),
    ]
    if program.gpu is None:
        writer.program(fields)
    else:
        writer.program([*fields, _gpu(writer, program.gpu)], _GPU_PROGRAM)
    return "\n".join(writer.lines) + "\n"


def emit_program(program: Program, triple: str = "") -> bytes:
    """The ELF object of `program` for `triple` (default: this machine). Needs the compiler's native module."""
    import mlir.ir as ir

    import mlc.compiler_setup  # noqa: F401
    from mlc import _native

    with thread_context():
        module = ir.Module.parse(program_module(program))
        data: bytes = _native.emit(module.operation, triple=triple, cpu="x86-64" if not triple else "", opt_level=0)
    return data
