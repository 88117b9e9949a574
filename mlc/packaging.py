"""What goes into an artefact beside its code: the weight image and the program table, both read off the
module.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlir import ir

from mlc import __version__
from mlc.codegen.program import Dim, Entry, Program, Value
from mlc.codegen.weights_segment import FileImage
from mlc.passes.host.entry import entry_symbol
from mlc.passes.simplify.weight_recipes import read_recipes
from mlc.runtime.image_hash import ImageHash
from mlc.targets.cpu import CpuTarget
from mlc.weights import Store, WeightImage
from mlc.weights.image import Placement


@dataclass
class Image:
    """The weight image of an artefact: written, hashed, and waiting for its place.

    `embedded` is None when there are no weights or when they go to a file of their own (`file`, beside the
    artefact).
    """

    size: int = 0
    hash: bytes = bytes(32)
    embedded: FileImage | None = None
    file: str | None = None
    written: Path | None = None
    final: Path | None = None

    def publish(self) -> None:
        """Gives an external weight file its name; called when the artefact is complete."""
        if self.written is not None and self.final is not None:
            self.written.replace(self.final)


def _read(attribute: ir.Attribute) -> Any:
    """An attribute as plain Python data."""
    if isinstance(attribute, ir.DictAttr):
        return {named.name: _read(named.attr) for named in attribute}
    if isinstance(attribute, ir.ArrayAttr):
        return [_read(a) for a in attribute]
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return list(attribute)
    return attribute.value


def module_attribute(module: ir.Module, name: str, default: Any) -> Any:
    """The attribute `name` of `module` as plain data."""
    attributes = module.operation.attributes
    return _read(attributes[name]) if name in attributes else default


@contextmanager
def weight_image(module: ir.Module, store: Store, output: Path, stem: str | None) -> Iterator[Image]:
    """Evaluates the weights that `module` placed into a temporary file; with `stem` one that becomes
    `<stem>.safetensors`.
    """
    rows = module_attribute(module, "mlc.weight_image", [])
    size = module_attribute(module, "mlc.weight_bytes", 0)
    if not size:
        yield Image()
        return
    store.add_recipes(read_recipes(module))
    layout = WeightImage(store, [Placement(r["name"], r["offset"], r["size"]) for r in rows], size)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{output.name}.weights.", dir=output.parent)
    except OSError as error:
        raise OSError(f"cannot write to '{output.parent}': {error.strerror}") from error
    os.close(handle)
    path = Path(name)
    try:
        if stem is None:
            digest = _write(layout, path)
            yield Image(size, digest, embedded=FileImage(path, size))
        else:
            layout.write_safetensors(path)
            final = output.with_name(f"{stem}.safetensors")
            digest = _hash_tail(path, size)
            yield Image(size, digest, file=final.name, written=path, final=final)
    finally:
        path.unlink(missing_ok=True)


def _write(layout: WeightImage, path: Path) -> bytes:
    digest = ImageHash()
    with open(path, "wb") as file:
        for chunk in layout.chunks():
            digest.update(chunk)
            file.write(chunk)
    return digest.digest()


def _hash_tail(path: Path, size: int) -> bytes:
    """The hash of the image, which is the last `size` bytes of a safetensors file."""
    digest = ImageHash()
    for chunk in FileImage(path, size, path.stat().st_size - size).chunks():
        digest.update(chunk)
    return digest.digest()


def build_program(module: ir.Module, target: CpuTarget, image: Image) -> Program:
    """The program table of the lowered `module`."""
    ranges = module_attribute(module, "mlc.dim_ranges", {})
    dims = [Dim(name, *limits) for name, limits in ranges.items()]
    metadata = {
        "compiler": f"mlc {__version__}",
        "source": module_attribute(module, "mlc.source", ""),
        "target": {"triple": target.triple, "cpu": target.cpu, "features": target.required},
        "kernels": [{"id": i, **k} for i, k in enumerate(module_attribute(module, "mlc.kernels", []))],
        "memory": module_attribute(module, "mlc.memory", {}),
    }
    return Program(
        entries=[_entry(e) for e in module_attribute(module, "mlc.entries", [])],
        dims=dims,
        metadata=metadata,
        nodes=module_attribute(module, "mlc.nodes", []),
        messages=module_attribute(module, "mlc.messages", []),
        cpu_features=target.required,
        weights_size=image.size,
        weights_file=image.file,
        weights_hash=image.hash,
    )


def _entry(described: dict[str, Any]) -> Entry:
    inputs, outputs = (tuple(_value(v) for v in described[k]) for k in ("inputs", "outputs"))
    return Entry(described["name"], entry_symbol(described["name"]), inputs, outputs)


def _value(described: dict[str, Any]) -> Value:
    if "kind" in described:
        return Value(described["name"], described["dtype"], None, tuple(described["kind"]))
    dims = tuple(
        extent if extent >= 0 else (name or None)
        for extent, name in zip(described["shape"], described["dims"], strict=True)
    )
    return Value(described["name"], described["dtype"], dims)
