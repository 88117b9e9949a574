"""The hand-written model of test/runtime/model.c, linked as the compiler links its own."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlc.codegen.link import LinkError, link_library, runtime_folder
from mlc.codegen.weights_segment import BytesImage
from mlc.runtime.image_hash import hash_image

ROOT = Path(__file__).resolve().parents[3]
# forward's 4x3 matrix and its bias, then two pages' worth of zeros.
IMAGE = struct.pack("13f", *range(12), 100).ljust(8192, b"\0")
BuildModel = Callable[..., Path]


def compile_c(source: Path, output: Path, *defines: str) -> Path:
    """An object file of `source`, with the runtime's headers at hand."""
    runtime = ROOT / "mlc" / "runtime"
    includes = [f"-I{runtime / 'include'}", f"-I{runtime / 'src'}", f"-I{ROOT / 'test' / 'runtime'}"]
    subprocess.run(
        ["cc", "-std=gnu11", "-O1", "-fPIC", *includes, *defines, "-c", str(source), "-o", str(output)], check=True
    )
    return output


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of libmlc_rt.a: the installed one, else one built here."""
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    try:
        return runtime_folder()
    except LinkError:
        build = tmp_path_factory.mktemp("runtime")
        for command in (["cmake", "-S", str(ROOT / "mlc/runtime"), "-B", str(build)], ["cmake", "--build", str(build)]):
            subprocess.run(command, check=True, capture_output=True)
        return build / "lib"


@pytest.fixture(scope="session")
def build_model(runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> BuildModel:
    """Links model.c with extra `defines`, and the weights embedded or (external) beside it."""

    def build(*defines: str, external: bool = False, name: str = "model.so") -> Path:
        folder = tmp_path_factory.mktemp("model")
        if external:
            digest = ",".join(str(b) for b in hash_image([IMAGE]))
            defines = ("-DMODEL_EXTERNAL_WEIGHTS", f"-DMODEL_HASH={{{digest}}}", *defines)
        item = compile_c(ROOT / "test/runtime/model.c", folder / "model.o", *defines)
        link_library([item], folder / name, None if external else BytesImage(IMAGE), runtime=runtime)
        if external:
            write_weights(folder / "model.safetensors", IMAGE)
        return folder / name

    return build


def write_weights(path: Path, image: bytes) -> None:
    """A safetensors file with one tensor of bytes, whose data begin at a multiple of 4096."""
    header = b'{"image":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (len(image), len(image))
    header = header.ljust(4096 - 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + image)


@pytest.fixture(scope="session")
def model_path(build_model: BuildModel) -> Path:
    return build_model()
