"""Links objects, the runtime and the weights into one shared library.

The library exports `mlc_model_query` and nothing else, needs libc and libm only, and has the same bytes
wherever it is linked: the C library it binds to is a stub (mlc/lib/stubs) that ships with the compiler,
start files and build ids are left out, and no path enters the result. The file appears under its name only
when it is complete.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .weights_segment import WeightImage, append_image, placeholder_object

EXPORTS = "{ global: mlc_model_query; local: *; };\n"
RUNTIME_ARCHIVE = "libmlc_rt.a"
GPU_ARCHIVE = "libmlc_rt_cuda.a"
STUBS = ("libm.stub.so", "libc.stub.so")
# --as-needed: no dependency on libm for a model that calls none of it.
OPTIONS = (
    "--undefined=mlc_model_query", "--gc-sections", "--as-needed", "--build-id=none", "--hash-style=gnu", "-O1",
    "-z", "defs", "-z", "relro", "-z", "now", "-z", "noexecstack",
)  # fmt: skip


class LinkError(Exception):
    """No linker on this machine, no runtime beside the compiler, or the linker refused."""


@dataclass(frozen=True)
class Linker:
    """How to call a linker: the command, and whether it is a compiler driver that takes -Wl options."""

    command: tuple[str, ...]
    driver: bool

    def arguments(self, output: Path, script: Path, inputs: Path, libraries: Sequence[Path]) -> list[str]:
        """The full command line; `inputs` is a response file that names the objects."""
        options = [*OPTIONS, f"--version-script={script}"]
        tail = [str(library) for library in libraries]
        if self.driver:
            options = [f"-Wl,{option}" for option in options]
            options = ["-nostdlib", *options]
            tail.append("-lgcc")
        return [*self.command, "-shared", "-o", str(output), *options, f"@{inputs}", *tail]


def find_linker() -> Linker:
    """$CC, else `cc`, `gcc` or `clang`, else the linker of the ziglang package. Raises LinkError when there
    is none."""
    if os.environ.get("CC"):
        command = shlex.split(os.environ["CC"])
        if not shutil.which(command[0]):
            raise LinkError(f"$CC names '{command[0]}', which cannot be run")
        return Linker(tuple(command), driver=True)
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return Linker((name,), driver=True)
    if importlib.util.find_spec("ziglang"):
        return ziglang_linker()
    raise LinkError("no linker found: install a C compiler (cc), set $CC, or `pip install ziglang`")


def ziglang_linker() -> Linker:
    """LLD as the ziglang package ships it."""
    return Linker((sys.executable, "-m", "ziglang", "ld.lld"), driver=False)


def runtime_folder() -> Path:
    """The folder of libmlc_rt.a and `stubs`: $MLC_RUNTIME_LIB, else `lib` beside the compiler's native
    module."""
    if os.environ.get("MLC_RUNTIME_LIB"):
        candidates = [Path(os.environ["MLC_RUNTIME_LIB"])]
    else:
        candidates = [Path(__file__).parent.parent / "lib"]
        native = importlib.util.find_spec("mlc._native")
        if native is not None and native.origin:
            candidates.append(Path(native.origin).parent / "lib")
    for folder in candidates:
        if all((folder / name).is_file() for name in (RUNTIME_ARCHIVE, *(f"stubs/{stub}" for stub in STUBS))):
            return folder
    raise LinkError(
        f"{RUNTIME_ARCHIVE} is not in {' or '.join(str(c) for c in candidates)}: install mlc, or build "
        "mlc/runtime with CMake and set MLC_RUNTIME_LIB to its lib folder"
    )


def link_library(
    objects: Sequence[Path | bytes],
    output: Path,
    weights: WeightImage | None = None,
    *,
    linker: Linker | None = None,
    runtime: Path | None = None,
    gpu: bool = False,
) -> None:
    """Links `objects` (files, or contents) and the runtime into the shared library `output`.

    With `weights` the image is embedded and the objects may refer to the hidden symbol `mlc_weights`, its
    page-aligned start. `runtime` is a folder as `runtime_folder` finds it; `gpu` takes the runtime for GPUs.
    The order of `objects` is kept,
    so equal inputs give equal files. Raises LinkError; whatever happens, no partial file is left.
    """
    linker = linker or find_linker()
    runtime = (runtime or runtime_folder()).resolve()
    output = Path(output).absolute()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
    except OSError as error:
        raise LinkError(f"cannot write to '{output.parent}': {error.strerror}") from error
    os.close(handle)
    temporary = Path(name)
    try:
        _run_linker(objects, temporary, weights, linker, runtime / (GPU_ARCHIVE if gpu else RUNTIME_ARCHIVE))
        if weights is not None and weights.size:
            append_image(temporary, weights)
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        temporary.replace(output)
    except OSError as error:
        raise LinkError(f"cannot write '{output}': {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _run_linker(
    objects: Sequence[Path | bytes], output: Path, weights: WeightImage | None, linker: Linker, archive: Path
) -> None:
    """Runs the linker on files in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="mlc-link-") as name:
        folder = Path(name)
        inputs = list(objects)
        if weights is not None and weights.size:
            inputs.append(placeholder_object(weights.size))
        files = [_as_file(item, folder / f"{i:06}.o") for i, item in enumerate(inputs)]
        script, response = folder / "exports.map", folder / "objects.rsp"
        script.write_text(EXPORTS)
        response.write_text("\n".join(f'"{file}"' for file in files) + "\n")
        libraries = [archive, *(archive.parent / "stubs" / stub for stub in STUBS)]
        command = linker.arguments(output, script, response, libraries)
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        except OSError as error:
            raise LinkError(f"cannot run the linker '{command[0]}': {error.strerror}") from error
        if done.returncode:
            text = (done.stderr or done.stdout).replace(f"{folder}/", "").strip()
            reason = f":\n{text}" if text else f" with code {done.returncode} and said nothing"
            raise LinkError(f"the linker '{shlex.join(linker.command)}' failed{reason}")


def _as_file(item: Path | bytes, path: Path) -> Path:
    if isinstance(item, (bytes, bytearray, memoryview)):
        path.write_bytes(item)
        return path
    return Path(item).resolve()
