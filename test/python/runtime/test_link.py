"""What the linked file is: its symbols, its dependencies, its bytes, and the weights inside."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.codegen import link
from mlc.codegen.link import Linker, LinkError, find_linker, link_library, ziglang_linker
from mlc.codegen.weights_segment import BytesImage, FileImage, WeightsError, placeholder_object

from .conftest import IMAGE, ROOT, compile_c


def linkers() -> list[Any]:
    missing = importlib.util.find_spec("ziglang") is None
    skip = pytest.mark.skipif(missing, reason="ziglang is not installed")
    return ["cc", pytest.param("ziglang", marks=skip)]


@pytest.fixture(params=linkers())
def linker(request: pytest.FixtureRequest) -> Linker:
    return find_linker() if request.param == "cc" else ziglang_linker()


@pytest.fixture(scope="module")
def model_object(tmp_path_factory: pytest.TempPathFactory, runtime: Path) -> Path:
    return compile_c(ROOT / "test/runtime/model.c", tmp_path_factory.mktemp("object") / "model.o")


def readelf(*arguments: str) -> str:
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True, text=True).stdout


def test_symbols_and_dependencies(tmp_path: Path, model_object: Path, runtime: Path, linker: Linker) -> None:
    path = tmp_path / "m.so"
    link_library([model_object], path, BytesImage(IMAGE), linker=linker, runtime=runtime)
    rows = [line.split() for line in readelf("--dyn-syms", str(path)).splitlines() if line.strip()[:1].isdigit()]
    assert [row[7] for row in rows if row[6] != "UND"] == ["mlc_model_query"]
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", readelf("-V", str(path)))]
    assert versions and max(versions) <= (2, 35)
    needed = re.findall(r"NEEDED.*\[(.*)\]", readelf("-d", str(path)))
    assert needed == ["libc.so.6"]
    assert not re.search(r"RPATH|RUNPATH|TEXTREL", readelf("-d", str(path)))
    stack = next(line for line in readelf("-l", str(path)).splitlines() if "GNU_STACK" in line)
    assert "E" not in stack.split()[6]


def test_the_runtime_is_small(runtime: Path, model_path: Path) -> None:
    done = subprocess.run(["size", str(model_path)], check=True, capture_output=True, text=True)
    text, data = map(int, done.stdout.splitlines()[1].split()[:2])
    assert text + data < 100_000


def test_nothing_of_this_machine_is_inside(tmp_path: Path, model_object: Path, runtime: Path, linker: Linker) -> None:
    path = tmp_path / "some-folder-name" / "m.so"
    path.parent.mkdir()
    link_library([model_object], path, BytesImage(IMAGE), linker=linker, runtime=runtime)
    content = path.read_bytes()
    for text in (str(ROOT), "some-folder-name", "mlc-link-", "/tmp", "/home", "/root", str(runtime)):
        assert text.encode() not in content


def test_equal_inputs_give_equal_bytes(tmp_path: Path, model_object: Path, runtime: Path, linker: Linker) -> None:
    image = tmp_path / "image"
    image.write_bytes(IMAGE)
    paths = [tmp_path / "a.so", tmp_path / "deeper" / "b.so"]
    paths[1].parent.mkdir()
    link_library([model_object], paths[0], BytesImage(IMAGE), linker=linker, runtime=runtime)
    link_library([model_object.read_bytes()], paths[1], FileImage(image, len(IMAGE)), linker=linker, runtime=runtime)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_it_runs(tmp_path: Path, model_object: Path, runtime: Path, linker: Linker) -> None:
    path = tmp_path / "m.so"
    link_library([model_object], path, BytesImage(IMAGE), linker=linker, runtime=runtime)
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(mlc.load(path, threads=2)(x)[0], x @ np.arange(12).reshape(4, 3) + 100)
    assert os.stat(path).st_mode & 0o111


# --- Weights -------------------------------------------------------------------------------------------------


class Pattern:
    """A large image made as it is written: word i is i."""

    def __init__(self, size: int) -> None:
        self.size = size

    def chunks(self) -> Iterator[bytes]:
        step = 1 << 20
        for begin in range(0, self.size, step):
            yield np.arange(begin // 8, min(begin + step, self.size) // 8, dtype=np.int64).tobytes()


MODEL_OF_WEIGHTS = """
#include "program.h"
extern __attribute__((visibility("hidden"))) const int64_t mlc_weights[];
static long ordinary = 7;
static char zeros[5000];
static int32_t run(mlc_rt *rt, const int64_t *args) {
  const int64_t *where = (const int64_t *)(uintptr_t)args[0];
  int64_t *out = mlc_rt_output(rt, 0, 1, (const int64_t[]){3});
  if (!out) return 1;
  out[0] = ((const int64_t *)mlc_rt_weights(rt))[*where];
  out[1] = ordinary++ + (zeros[4999] += 0);
  out[2] = (int64_t)(uintptr_t)mlc_weights % 4096;
  return 0;
}
static const int64_t one[] = {1}, three[] = {3};
static const int32_t none[] = {-1};
static const mlc_rt_value_desc in = {"i", MLC_INT64, 1, one, none, 0, 0}, out = {"v", MLC_INT64, 1, three, none, 0, 0};
static const mlc_rt_entry entry = {"at", run, 1, 1, &in, &out};
__attribute__((visibility("hidden"))) const mlc_rt_program mlc_program = {
    sizeof(mlc_rt_program), 1, "{}", "", 0, 0, 0, 0, (const char *)mlc_weights, SIZE, 0, {0}, &entry, 1, 0, 0};
"""


@pytest.mark.parametrize("size", [8, 4096, 100_000, 300 << 20], ids=["word", "page", "odd", "300M"])
def test_weights(tmp_path: Path, runtime: Path, linker: Linker, size: int) -> None:
    source = tmp_path / "weights.c"
    source.write_text(MODEL_OF_WEIGHTS)
    item = compile_c(source, tmp_path / "weights.o", f"-DSIZE={size}")
    path = tmp_path / "w.so"
    begin = time.perf_counter()
    link_library([item], path, Pattern(size), linker=linker, runtime=runtime)
    assert time.perf_counter() - begin < 30
    model = mlc.load(path)
    for index in (0, size // 16, size // 8 - 1):
        value, _, misaligned = model([index])[0]
        assert (value, misaligned) == (index, 0)
    assert model([0])[0][1] == 10  # other data of the segment kept their place and can be written
    assert path.stat().st_size < size + 200_000
    if size > 1 << 20:
        # Mapped lazily: a few pages are resident, not the image.
        smaps = Path("/proc/self/smaps").read_text()
        resident = sum(int(rss) for rss in re.findall(rf"{path}\n(?:.*\n)*?Rss:\s+(\d+)", smaps))
        assert resident < 20_000
    sections = readelf("-S", str(path))
    assert re.search(r"\.lbss\S*\s+PROGBITS", sections)
    path.unlink()


def test_large_images_are_not_held_in_memory(tmp_path: Path, runtime: Path) -> None:
    """300 MB pass through a process that may have 100 MB more than it begins with."""
    source = tmp_path / "weights.c"
    source.write_text(MODEL_OF_WEIGHTS)
    compile_c(source, tmp_path / "weights.o", f"-DSIZE={300 << 20}")
    program = """
import sys, resource
from pathlib import Path
from mlc.codegen.link import link_library
class Zeros:
    size = 300 << 20
    def chunks(self):
        for _ in range(300):
            yield bytes(1 << 20)
folder = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
link_library([folder / "weights.o"], folder / "w.so", Zeros(), runtime=Path(sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    arguments = [sys.executable, "-c", program, str(tmp_path), str(runtime)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100_000
    (tmp_path / "w.so").unlink()


def test_the_placeholder_is_a_valid_object(tmp_path: Path) -> None:
    (tmp_path / "p.o").write_bytes(placeholder_object(123456))
    text = readelf("-hSs", str(tmp_path / "p.o"))
    assert "Warning" not in text and re.search(r"(123456|0x1e240) OBJECT\s+GLOBAL HIDDEN\s+1 mlc_weights", text)


# --- Failures ------------------------------------------------------------------------------------------------


class Short(Pattern):
    def chunks(self) -> Iterator[bytes]:
        yield b"x" * (self.size - 1)


class Interrupted(Pattern):
    def chunks(self) -> Iterator[bytes]:
        yield b"x"
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
        yield b"y"


@pytest.mark.parametrize(("image", "error"), [(Short(8192), WeightsError), (Interrupted(8192), KeyboardInterrupt)])
def test_nothing_is_left_after_a_failure(
    tmp_path: Path, model_object: Path, runtime: Path, image: Any, error: type[BaseException]
) -> None:
    path = tmp_path / "m.so"
    path.write_text("what was there before")
    with pytest.raises(error):
        link_library([model_object], path, image, runtime=runtime)
    assert [p.name for p in tmp_path.iterdir()] == ["m.so"] and path.read_text() == "what was there before"


def test_undefined_symbols_are_refused(tmp_path: Path, runtime: Path, linker: Linker) -> None:
    source = tmp_path / "bad.c"
    source.write_text("extern int no_such_function(void); int mlc_program_user(void) { return no_such_function(); }")
    bad = compile_c(source, tmp_path / "bad.o")
    with pytest.raises(LinkError) as caught:
        link_library([bad], tmp_path / "m.so", linker=linker, runtime=runtime)
    assert "mlc_program" in str(caught.value) and "mlc-link-" not in str(caught.value)
    assert not (tmp_path / "m.so").exists()


def test_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: Path) -> None:
    with pytest.raises(LinkError, match="cannot write to '.*no-folder'"):
        link_library([], tmp_path / "no-folder" / "m.so", runtime=runtime)
    monkeypatch.setenv("MLC_RUNTIME_LIB", str(tmp_path))
    with pytest.raises(LinkError, match=r"libmlc_rt.a is not in .*: install mlc, or build mlc/runtime with CMake"):
        link.runtime_folder()
    monkeypatch.setenv("CC", "/no/such/compiler -m64")
    with pytest.raises(LinkError, match=r"\$CC names '/no/such/compiler', which cannot be run"):
        find_linker()
    monkeypatch.setenv("CC", "false")
    with pytest.raises(LinkError, match="the linker 'false' failed with code 1 and said nothing"):
        link_library([], tmp_path / "m.so", runtime=runtime)
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LinkError, match="no linker found: install a C compiler"):
        find_linker()


def test_runtime_has_no_undefined_but_the_contract(runtime: Path) -> None:
    """The archive asks for mlc_program and for functions that the stubs offer, and defines no C++ symbols of others."""
    archive = runtime / link.RUNTIME_ARCHIVE
    done = subprocess.run(["nm", str(archive)], check=True, capture_output=True, text=True)
    defined = set(re.findall(r" [TDBRWVtdbr] (\S+)", done.stdout))
    undefined = set(re.findall(r" U (\S+)", done.stdout)) - defined
    offered: set[str] = set()
    for stub in link.STUBS:
        names = re.findall(r"FUNC.* (\S+?)@@", readelf("--dyn-syms", str(runtime / "stubs" / stub)))
        offered |= set(names)
    assert undefined - offered <= {"mlc_program", "_GLOBAL_OFFSET_TABLE_"}


# --- 16-bit floats -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def conversions(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The conversion routines behind integer interfaces."""
    folder = tmp_path_factory.mktemp("convert")
    (folder / "wrap.c").write_text(
        f'#define weak\n#define BUILTIN static\n#include "{ROOT}/mlc/runtime/src/convert.c"\n'
        "void run(int n, const float *f, const double *d, const uint16_t *h, uint16_t *sf, uint16_t *df, uint16_t *sb,"
        " uint16_t *db, float *w) {\n"
        "  for (int i = 0; i < n; ++i) {\n"
        "    half_bits a = __truncsfhf2(f[i]), b = __truncdfhf2(d[i]), c = __truncsfbf2(f[i]);\n"
        "    half_bits e = __truncdfbf2(d[i]);\n"
        "    memcpy(sf + i, &a, 2); memcpy(df + i, &b, 2); memcpy(sb + i, &c, 2); memcpy(db + i, &e, 2);\n"
        "    w[i] = __extendhfsf2(fromBits(h[i]));\n"
        "  }\n}\n"
    )
    command = ["cc", "-O1", "-shared", "-fPIC", "-Wno-unused-function", "wrap.c", "-o", "wrap.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "wrap.so"))


def test_half_conversions(conversions: ctypes.CDLL) -> None:
    """Against NumPy's float16 and ml_dtypes' bfloat16: every half, halfway cases, random bits."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    random = np.random.default_rng(0).integers(0, 1 << 32, 400_000, dtype=np.uint32).view(np.float32)
    halves = np.arange(65536, dtype=np.uint16)
    exact = halves.view(np.float16).astype(np.float32)
    brains = (halves.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(all="ignore"):
        middles = [(exact[:-1] + exact[1:]) / 2, np.nextafter(exact, np.float32(np.inf)), brains]
        values = np.concatenate([exact, *middles, random]).astype(np.float32)
        doubles = np.nextafter(values.astype(np.float64), np.inf)
        n = len(values)
        bits = np.resize(halves, n)
        outputs = [np.zeros(n, np.uint16) for _ in range(4)]
        wide = np.zeros(n, np.float32)
        arrays = [values, doubles, bits, *outputs, wide]
        conversions.run(n, *(ctypes.c_void_p(a.ctypes.data) for a in arrays))
        same_bits(outputs[0], values.astype(np.float16).view(np.uint16), np.isnan(values), 0x7C00)
        same_bits(outputs[1], doubles.astype(np.float16).view(np.uint16), np.isnan(values), 0x7C00)
        same_bits(outputs[2], values.astype(ml_dtypes.bfloat16).view(np.uint16), np.isnan(values), 0x7F80)
        np.testing.assert_array_equal(wide, bits.view(np.float16).astype(np.float32))
        # Rounded once: where the double lies just above a float that is halfway, it goes up.
        up = np.array([1 + 2**-8], np.float64)
        assert float(up[0].astype(np.float32)) == 1 + 2**-8
        for array, value in ((doubles, np.nextafter(up, 2)), (doubles, up)):
            array[0] = value[0]
            conversions.run(1, *(ctypes.c_void_p(a.ctypes.data) for a in arrays))
            assert outputs[3][0] == (0x3F81 if value[0] > up[0] else 0x3F80)


def same_bits(ours: np.ndarray, theirs: np.ndarray, nan: np.ndarray, infinity: int) -> None:
    np.testing.assert_array_equal(ours[~nan], theirs[~nan])
    assert nan.any() and ((ours[nan] & 0x7FFF) > infinity).all()
