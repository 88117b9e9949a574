"""What goes into an artefact beside its code: the weight image and the program table, both read off the
module.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mlir import ir

from mlc import __version__
from mlc.codegen.program import Dim, Entry, Gpu, GpuKernel, Program, Value
from mlc.codegen.ptx import CompiledKernel, portable_ptx
from mlc.codegen.symbols import entry_symbol
from mlc.codegen.weights_segment import FileImage
from mlc.codegen.weights_segment import WeightImage as EmbeddedImage
from mlc.options import NUMBERS
from mlc.passes.host.isolate_host import kernel_modules
from mlc.passes.simplify.weight_recipes import read_recipes
from mlc.runtime.image_hash import DIGEST_BYTES, LEAF_BYTES
from mlc.targets.cpu import CpuTarget
from mlc.targets.nvidia import NvidiaTarget
from mlc.weights import Store, WeightImage
from mlc.weights.image import Placement
from mlc.weights.rebuild import describe

IN_MEMORY = 256 << 20  # bytes of weights; more are evaluated into a file


@dataclass
class Image:
    """The weight image of an artefact: written, hashed, and waiting for its place.

    `embedded` is None when there are no weights or when they go to a file of their own (`file`, beside the
    artefact).
    """

    size: int = 0
    hash: bytes = bytes(32)
    embedded: EmbeddedImage | None = None
    file: str | None = None
    written: Path | None = None
    final: Path | None = None
    description: dict[str, Any] | None = None
    """Of an external image: how it is made of the model's own weights, see `mlc.weights.rebuild`."""

    def publish(self) -> None:
        """Gives an external weight file its name; called when the artefact is complete."""
        if self.written is not None and self.final is not None:
            umask = os.umask(0)
            os.umask(umask)
            self.written.chmod(0o666 & ~umask)
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


class ImageInProgress(ABC):
    """A weight image made by threads while the compiler goes on.

    `close` ends the threads, whatever they have reached.
    """

    def __init__(self, layout: WeightImage, jobs: int) -> None:
        self.size = layout.size
        self.layout = layout
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="mlc-weights")
        self._filled: list[Future[None]] = []

    def _begin(self, fill: Callable[[int], None]) -> None:
        self._filled = [self._pool.submit(fill, i) for i in range(len(self.layout.placements))]

    @abstractmethod
    def _leaf(self, start: int, size: int) -> bytes | memoryview:
        """A piece of the complete image."""

    def complete(self) -> None:
        """Waits for all weights. Raises what made one fail, or the OSError of a file that cannot be written."""
        for future in self._filled:
            future.result()

    def hash(self) -> bytes:
        """The hash of the complete image (mlc.runtime.image_hash)."""

        def leaf(start: int) -> bytes:
            content = self._leaf(start, min(LEAF_BYTES, self.size - start))
            return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()

        leaves = b"".join(self._pool.map(leaf, range(0, self.size, LEAF_BYTES)))
        return hashlib.blake2b(leaves, digest_size=DIGEST_BYTES).digest()

    def close(self) -> None:
        """Ends the threads and waits for them."""
        self._pool.shutdown(cancel_futures=True)


class ImageInMemory(ImageInProgress):
    """One small enough to be held in memory."""

    def __init__(self, layout: WeightImage, jobs: int) -> None:
        super().__init__(layout, jobs)
        self._buffer = np.zeros(layout.size, np.uint8)
        self._begin(lambda position: layout.fill(self._buffer, position))

    def _leaf(self, start: int, size: int) -> bytes | memoryview:
        return self._buffer[start : start + size].data

    def chunks(self) -> Iterator[bytes | memoryview]:
        """The content, once it is complete."""
        yield self._buffer.data


class ImageInFile(ImageInProgress):
    """One that goes to a temporary file in the folder of `output`, behind `header`: few weights are in memory
    at a time.
    """

    def __init__(self, layout: WeightImage, jobs: int, output: Path, header: bytes) -> None:
        super().__init__(layout, jobs)
        self._base = len(header)
        try:
            handle, name = tempfile.mkstemp(prefix=f".{output.name}.weights.", dir=output.parent)
        except OSError as error:
            raise OSError(f"cannot write to '{output.parent}': {error.strerror}") from error
        self.path = Path(name)
        self._file = os.fdopen(handle, "r+b")
        try:
            self._file.write(header)
            self._file.truncate(self._base + self.size)  # gaps between weights are zeros
        except OSError:
            self.close()
            raise
        self._begin(lambda position: layout.write_at(handle, self._base, position))

    def _leaf(self, start: int, size: int) -> bytes | memoryview:
        return os.pread(self._file.fileno(), size, self._base + start)

    def complete(self) -> None:
        try:
            self._file.flush()
            super().complete()
        except OSError as error:
            error.filename = error.filename or str(self.path)
            raise

    def close(self) -> None:
        super().close()
        self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # what could not be written is not wanted any more
            self._file.close()


class ImageAtHand(ImageInProgress):
    """The file of external weights that an earlier compilation has written."""

    def __init__(self, layout: WeightImage, jobs: int, path: Path, base: int) -> None:
        super().__init__(layout, jobs)
        self.path, self._base = path, base
        self._file = path.open("rb")

    @classmethod
    def find(cls, layout: WeightImage, jobs: int, path: Path, header: bytes, wanted: bytes) -> ImageAtHand | None:
        """The file `path` when it has `header` and an image with the hash `wanted`."""
        try:
            if path.stat().st_size != len(header) + layout.size:
                return None
            found = cls(layout, jobs, path, len(header))
        except OSError:
            return None
        with contextlib.suppress(OSError):
            if found._file.read(len(header)) == header and found.hash() == wanted:
                return found
        found.close()
        return None

    def _leaf(self, start: int, size: int) -> bytes | memoryview:
        return os.pread(self._file.fileno(), size, self._base + start)

    def close(self) -> None:
        super().close()
        self._file.close()


def _layout(module: ir.Module, store: Store) -> WeightImage:
    rows = module_attribute(module, "mlc.weight_image", [])
    store.add_recipes(read_recipes(module))
    places = [Placement(r["name"], r["offset"], r["size"]) for r in rows]
    return WeightImage(store, places, module_attribute(module, "mlc.weight_bytes", 0))


def begin_image(
    module: ir.Module, store: Store, output: Path, external: bool, jobs: int | None, known_hash: bytes | None = None
) -> ImageInProgress | None:
    """Begins the image of a module whose weights have their places, unless there are none. With `external` it is to
    become a `.safetensors` file; one that is there and has the `known_hash` is not written again.
    """
    size = module_attribute(module, "mlc.weight_bytes", 0)
    if not size:
        return None
    layout, jobs = _layout(module, store), jobs or len(os.sched_getaffinity(0))
    if external:
        header = layout.safetensors_header()
        found = None
        if known_hash is not None:
            found = ImageAtHand.find(layout, jobs, output.with_suffix(".safetensors"), header, known_hash)
        return found or ImageInFile(layout, jobs, output, header)
    return ImageInMemory(layout, jobs) if size <= IN_MEMORY else ImageInFile(layout, jobs, output, b"")


def weight_image(
    output: Path, external: bool, begun: ImageInProgress | None, known_hash: bytes | None = None
) -> Image:
    """The image of the weights that `begin_image` has begun, complete; an external one becomes a file of the stem of
    `output`. `known_hash` is the image's hash where an earlier compilation has worked it out.
    """
    if begun is None:
        return Image()
    begun.complete()
    digest = begun.hash() if known_hash is None else known_hash
    if isinstance(begun, ImageInMemory):
        return Image(begun.size, digest, embedded=begun)
    if isinstance(begun, ImageAtHand):
        return Image(begun.size, digest, file=begun.path.name, description=describe(begun.layout))
    assert isinstance(begun, ImageInFile)
    if not external:
        return Image(begun.size, digest, embedded=FileImage(begun.path, begun.size))
    final = output.with_suffix(".safetensors")
    described = describe(begun.layout)
    return Image(begun.size, digest, file=final.name, written=begun.path, final=final, description=described)


def build_program(module: ir.Module, target: CpuTarget, image: Image, gpu: Gpu | None = None) -> Program:
    """The program table of the lowered `module`, which launches on `gpu` if that is given."""
    ranges = module_attribute(module, "mlc.dim_ranges", {})
    dims = [Dim(name, *limits) for name, limits in ranges.items()]
    metadata = {
        "compiler": f"mlc {__version__}",
        "source": module_attribute(module, "mlc.source", ""),
        "target": {"triple": target.triple, "cpu": target.cpu, "features": target.required},
        "precision": module_attribute(module, "mlc.codegen", {}).get("precision", "fp32"),
        "kernels": [{"id": i, **k} for i, k in enumerate(module_attribute(module, "mlc.kernels", []))],
        "memory": module_attribute(module, "mlc.memory", {}),
    }
    chosen = module_attribute(module, "mlc.codegen", {})
    metadata |= {name: chosen[name] for name in NUMBERS if chosen.get(name, 0)}
    if "mlc.tuning" in module.operation.attributes:
        metadata["tuning"] = module_attribute(module, "mlc.tuning", "")
    if gpu is not None:
        metadata["gpu"] = _describe_gpu(gpu)
    if image.description is not None:
        metadata["weight_image"] = image.description
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
        gpu=gpu,
    )


def _describe_gpu(gpu: Gpu) -> dict[str, Any]:
    """An architecture in the metadata, and those that follow it."""
    capability = ".".join(map(str, gpu.capability))
    found = {"arch": gpu.arch, "capability": capability, "driver": gpu.driver, "status": gpu.status}
    return found if gpu.following is None else {**found, "following": _describe_gpu(gpu.following)}


def gpu_table(module: ir.Module, targets: Sequence[NvidiaTarget], compiled: Sequence[CompiledKernel]) -> Gpu:
    """What the lowered `module` needs of a GPU for each of the `targets`; `compiled` are kernels with machine code."""
    table: Gpu | None = None
    for number, target in reversed(list(enumerate(targets))):
        name = target.name if number else ""
        images = {one.kernel.kernel_of or one.kernel.name: one for one in compiled if one.kernel.architecture == name}
        table = Gpu(
            target.arch, target.capability, target.driver, _kernels(module, target, images), target.status, table
        )
    assert table is not None
    return table


def _kernels(module: ir.Module, target: NvidiaTarget, images: Mapping[str, CompiledKernel]) -> list[GpuKernel]:
    """The kernels by number, with the code of one architecture."""
    kernels = []
    for name, _ in kernel_modules(module.operation):
        one = images.get(name)
        if one is None or one.cubin is None:
            kernels.append(GpuKernel(name))
            continue
        kernel, ptx = one.kernel, portable_ptx(one.ptx, target.arch)
        words = kernel.tensors + kernel.indices
        launch = (kernel.threads, kernel.group, words, kernel.shared, kernel.maps, kernel.early, kernel.workspace)
        kernels.append(GpuKernel(kernel.name, one.cubin.data, ptx, *launch))
    return kernels


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
    return Value(
        described["name"],
        described["dtype"],
        dims,
        on_device=described.get("placement") == "device",
        keys=tuple(described.get("keys", ())),
        map=described.get("map", ""),
        shares=described.get("shares"),
        continues=described.get("continues", ""),
        default=described.get("default"),
    )
