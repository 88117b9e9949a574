"""Models from Python: values in and out, errors, threads, life time."""

from __future__ import annotations

import gc
import multiprocessing
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import mlc
from mlc.runtime import (
    ArgumentError,
    InputError,
    LoadError,
    MlcError,
    Model,
    ModelError,
)
from mlc.runtime.dtypes import DTYPES, accepted_name, dtype_code, dtype_name, numpy_dtype

WEIGHT = np.arange(12, dtype=np.float32).reshape(4, 3)


def expected(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) @ WEIGHT + 100


def rows(count: int) -> np.ndarray:
    return (np.arange(count * 4, dtype=np.float32) % 17).reshape(count, 4)


@pytest.fixture(scope="module")
def model(model_path: Path) -> Model:
    return mlc.load(model_path, threads=2)


def is_mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


# --- Signature and calls -------------------------------------------------------------------------------------


def test_signature(model: Model) -> None:
    assert list(model.entries) == ["forward", "select", "reverse", "shout", "probe", "checked", "extend"]
    assert str(model.inputs[0]) == "float32[batch,4]" and model.inputs[0].name == "x"
    assert [str(o) for o in model.entry("select").outputs] == ["float32[k]", "int64[?]"]
    assert str(model.entry("reverse").inputs[0]) == "sequence(float32[...])"
    assert str(model.entry("reverse").inputs[1]) == "optional(float32[2])"
    assert (model.dims["batch"].lowest, model.dims["batch"].highest, model.dims["m"].multiple) == (1, 4096, 4)
    assert model.metadata["model"] == "hand-written"
    assert model.num_threads == 2


@pytest.mark.parametrize("count", [1, 2, 7, 300, 4096])
def test_call(model: Model, count: int) -> None:
    x = rows(count)
    (y,) = model(x)
    np.testing.assert_array_equal(y, expected(x))
    np.testing.assert_array_equal(model(x=x)[0], y)
    np.testing.assert_array_equal(model.run({"x": x})["y"], y)
    np.testing.assert_array_equal(model.run([x])["y"], y)


def test_same_bits_for_any_number_of_threads(model_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((999, 4)).astype(np.float32)
    results = [mlc.load(model_path, threads=n)(x)[0] for n in (1, 2, 3, 7)]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].view(np.uint32), other.view(np.uint32))


def test_python_numbers(model: Model) -> None:
    (y,) = model([[1, 2, 3, 4]])
    np.testing.assert_array_equal(y, expected(np.array([[1, 2, 3, 4]])))
    picked, positive = model.entry("select")([1.0, -1.0, 2.0], [2, -3])
    assert picked.tolist() == [2, 1] and positive.tolist() == [0, 2] and positive.dtype == np.int64


@pytest.mark.parametrize(
    "view",
    [
        lambda x: np.asfortranarray(x),
        lambda x: x[::-1][::-1],
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: x.astype(">f4"),
        lambda x: np.lib.stride_tricks.as_strided(x, x.shape, x.strides, writeable=False),
    ],
)
def test_views(model: Model, view: Any) -> None:
    x = rows(5)
    np.testing.assert_array_equal(model(view(x))[0], expected(x))


def test_field_of_a_packed_record(model: Model) -> None:
    """Strides that are no multiple of the element, and unaligned elements."""
    records = np.zeros((3, 4), dtype=np.dtype([("tag", "u1"), ("value", "f4")]))
    records["value"] = rows(3)
    np.testing.assert_array_equal(model(records["value"])[0], expected(rows(3)))


class Exported:
    """A foreign tensor: DLPack, not NumPy."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_dlpack(model: Model) -> None:
    x = rows(6)
    np.testing.assert_array_equal(model(Exported(x))[0], expected(x))
    np.testing.assert_array_equal(model(Exported(x.T.copy().T))[0], expected(x))
    before = sys.getrefcount(x)
    for _ in range(10):
        model(Exported(x))
    gc.collect()
    assert sys.getrefcount(x) == before


def test_out(model: Model) -> None:
    x = rows(4)
    buffer = np.full((4, 6), np.nan, np.float32)
    result = model.run({"x": x}, out=[buffer[:, ::2]])
    np.testing.assert_array_equal(buffer[:, ::2], expected(x))
    assert np.isnan(buffer[:, 1::2]).all() and np.shares_memory(result["y"], buffer)
    positive = np.empty(2, np.int64)
    results = model.entry("select").run({"data": [1, -1, 1], "indices": [0]}, out={"positive": positive})
    assert results["positive"] is positive and positive.tolist() == [0, 2] and results["picked"].tolist() == [1]


def test_outputs_outlive_the_model(build_model: Any) -> None:
    """Large ones share the runtime's memory, and what frees it stays; small ones are copies."""
    path = build_model(name="lasting.so")
    model = mlc.load(path, threads=2)
    positive = model.entry("select")(np.ones(20_000, np.float32), [0])[1]
    part, small = positive[1:], model.entry("select")([3.0, -1.0, 4.0], [0])[1]
    del model, positive
    gc.collect()
    assert part[[0, -1]].tolist() == [1, 19_999] and is_mapped(path)
    del part
    gc.collect()
    assert not is_mapped(path) and small.tolist() == [0, 2]


def test_results_are_where_earlier_ones_were(model: Model) -> None:
    """As soon as nobody has those any more, a view of them neither."""
    data = np.ones(40_000, np.float32)
    entry = model.entry("select")
    with model.context() as context:

        def run() -> np.ndarray:
            return context.run([data, [0]], entry=entry)["positive"]

        result = run()
        first, kept = result.ctypes.data, result[5:8]
        assert first % 4096 == 0
        del result
        second = run()
        assert second.ctypes.data != first and kept.tolist() == [5, 6, 7]
        del kept
        assert run().ctypes.data == first and second[[0, -1]].tolist() == [0, 39_999]


def test_empty(model: Model) -> None:
    picked, positive = model.entry("select")(np.empty(0, np.float32), np.empty(0, np.int64))
    assert picked.shape == (0,) and positive.shape == (0,)


def test_sequences(model: Model) -> None:
    reverse = model.entry("reverse")
    items = [np.arange(6, dtype=np.float32).reshape(2, 3).T, np.float32(7)]
    reversed_items, extra = reverse(items, np.array([1, 2], np.float32))
    assert [item.shape for item in reversed_items] == [(), (3, 2)]
    np.testing.assert_array_equal(reversed_items[1], items[0])
    assert extra.tolist() == [1, 2]
    assert reverse([]) == [[], None]
    with pytest.raises(InputError, match=r"input 'items': expected sequence\(float32\[...\]\), got int; pass a list"):
        reverse(3)
    with pytest.raises(InputError, match=r"expected optional\(float32\[2\]\), got float32\[3\]"):
        reverse([], np.zeros(3, np.float32))


def test_strings(model: Model) -> None:
    (loud,) = model.entry("shout")(np.array(["abc", "", "größe"], dtype=object))
    assert loud.tolist() == ["ABC", "", "GRößE"]
    assert model.entry("shout")(np.array(["x", "yy"]))[0].tolist() == ["X", "YY"]
    with pytest.raises(InputError, match="input 'words': expected strings, got int"):
        model.entry("shout")(np.array([1, "a"], dtype=object))


@hypothesis.given(data=st.data())
def test_any_view_arrives(model: Model, data: st.DataObject) -> None:
    """Transposed, sliced, reversed and broadcast views, of any rank, through a sequence."""
    shape = data.draw(st.lists(st.integers(0, 5), max_size=5))
    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    array = array.transpose(data.draw(st.permutations(range(len(shape)))))
    slices = [
        slice(data.draw(st.integers(0, 2)), None, data.draw(st.sampled_from([1, 2, -1, -2]))) for _ in range(len(shape))
    ]
    array = array[tuple(slices)]
    if data.draw(st.booleans()):
        array = np.broadcast_to(array, (2, *array.shape))
    foreign = data.draw(st.booleans()) and array.flags.writeable
    ((result,), _) = model.entry("reverse")([Exported(array) if foreign else array])
    assert result.shape == array.shape
    np.testing.assert_array_equal(result, array)


@hypothesis.given(rows_=st.integers(1, 9), step=st.sampled_from([1, 2, -1]), flip=st.booleans())
def test_any_buffer_is_filled(model: Model, rows_: int, step: int, flip: bool) -> None:
    whole = np.full((2 * rows_, 6), np.nan, np.float32)
    buffer = whole[:rows_, ::2] if step == 1 else whole[::2, :3] if step == 2 else whole[rows_ - 1 :: -1, 3:]
    if flip:
        buffer = buffer[:, ::-1]
    x = rows(rows_)
    model.run({"x": x}, out=[buffer])
    np.testing.assert_array_equal(buffer, expected(x))
    assert np.isnan(whole).sum() == whole.size - buffer.size


# --- Errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (rows(2).astype(np.float64), "input 'x': expected float32[batch,4], got float64[2,4]"),
        (rows(2)[0], "input 'x': expected float32[batch,4], got float32[4]"),
        (np.zeros((0, 4), np.float32), "input 'x': dimension 'batch' is 0 in float32[0,4]"),
        (np.zeros((2, 4), "M8[s]"), "arrays of NumPy dtype 'datetime64[s]' are not supported"),
        ("text", "input 'x': expected float32[batch,4]; str cannot become an array"),
        (None, "input 'x': expected float32[batch,4], got None"),
        (np.array([[None] * 4]), "input 'x': expected float32[batch,4], got an array of Python objects"),
        ([[1, 2], [3]], "list cannot become an array"),
    ],
)
def test_bad_inputs(model: Model, value: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        model(value)
    assert message in str(caught.value)
    assert isinstance(caught.value, (MlcError, ValueError)) and caught.value.code == 2


def test_bad_calls(model: Model) -> None:
    for call, message in [
        (lambda: model(rows(1), rows(1)), "entry 'forward' takes 1 input, got 2"),
        (lambda: model.run(rows(1)), "a dictionary by name, or a list in order, and not of type ndarray"),
        (lambda: model(), "entry 'forward' needs the inputs x as well"),
        (lambda: model(rows(1), x=rows(1)), "input 'x' is given twice"),
        (lambda: model(z=rows(1)), "entry 'forward' has no input 'z'; its inputs are: x"),
        (lambda: model.entry("nope"), "the model has no entry 'nope'"),
        (lambda: model.run({"x": rows(1)}, out=[None, None]), "the entry has 1 outputs, got 2 buffers"),
        (lambda: model.run({"x": rows(1)}, out={"q": None}), "the entry has no output 'q'; its outputs are: y"),
    ]:
        with pytest.raises(ArgumentError) as caught:
            call()
        assert message in str(caught.value)


def test_bad_buffers(model: Model) -> None:
    x = rows(2)
    frozen = np.zeros((2, 3), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(InputError, match="output 'y': a buffer is a writable NumPy array"):
        model.run({"x": x}, out=[frozen])
    with pytest.raises(InputError, match=r"output 'y': the result is float32\[batch,3\], the given buffer is float64"):
        model.run({"x": x}, out=[np.zeros((2, 3))])
    square = np.zeros((4, 4), np.float32)
    with pytest.raises(InputError, match="output 'y': its buffer overlaps that of 'x'"):
        model.run({"x": square[:2]}, out=[square[1:3, :3]])


def test_an_output_may_be_an_input(model: Model) -> None:
    """That of `extend` counts copies in its last element."""
    extend, past = model.entry("extend"), np.arange(4, dtype=np.float32)
    assert extend(past)[0].tolist() == [10, 1, 2, 4]
    [present] = model.run([past], out=[past], entry="extend").values()
    assert present is past and past.tolist() == [10, 1, 2, 3]
    with pytest.raises(InputError, match="output 'present': its buffer overlaps that of 'past'"):
        model.run([past], out=[past[::-1]], entry="extend")
    assert past.tolist() == [10, 1, 2, 3]


def test_run_time_error(model: Model) -> None:
    select = model.entry("select")
    with pytest.raises(ModelError, match="node 'encoder/Gather': index 3 is out of range"):
        select([1.0, 2.0, 3.0], [0, 3])
    with pytest.raises(ModelError, match="must not be negative .value -4"):
        model.entry("checked")(np.full((4, 4), -4, np.float32))
    assert select([1.0, 2.0, 3.0], [0, 2])[0].tolist() == [1, 3]


def test_no_model(tmp_path: Path, runtime: Path) -> None:
    def refused(path: Path, message: str) -> None:
        with pytest.raises(LoadError) as caught:
            mlc.load(path)
        assert message in str(caught.value) and str(path) in str(caught.value)
        assert "\n" not in str(caught.value)

    refused(tmp_path / "none.so", "there is no file")
    refused(tmp_path, "is a folder")
    (tmp_path / "text.so").write_text("hello")
    refused(tmp_path / "text.so", "not a compiled model that this machine can load")
    refused(runtime / "stubs" / "libm.stub.so", "not a model compiled by mlc")
    (tmp_path / "old.c").write_text("const void *mlc_model_query(unsigned v) { (void)v; return 0; }")
    subprocess.run(["cc", "-shared", "-fPIC", "old.c", "-o", "old.so"], cwd=tmp_path, check=True)
    refused(tmp_path / "old.so", "ABI this one does not speak")


@pytest.mark.parametrize("kept", [0, 1, 63, 64, 100, 4096, 0.3, 0.7, 0.95])
def test_a_file_cut_short(model_path: Path, tmp_path: Path, kept: float) -> None:
    """In a process of its own: mapping such a file would end it."""
    content = model_path.read_bytes()
    (tmp_path / "cut.so").write_bytes(content[: int(kept * len(content)) if 0 < kept < 1 else int(kept)])
    program = f"import mlc\ntry: mlc.load({str(tmp_path / 'cut.so')!r})\nexcept mlc.runtime.LoadError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    assert re.search("cut short|is empty|is no ELF file", done.stdout) and "cut.so" in done.stdout


def test_a_library_of_another_machine(model_path: Path, tmp_path: Path) -> None:
    content = bytearray(model_path.read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    (tmp_path / "arm.so").write_bytes(content)
    with pytest.raises(LoadError, match="built for aarch64, this machine is x86_64"):
        mlc.load(tmp_path / "arm.so")


def test_missing_cpu_feature(build_model: Any) -> None:
    path = build_model('-DMODEL_FEATURES="+sse2,+avx10.9,-avx2,+made-up"')
    with pytest.raises(mlc.runtime.DeviceError, match="lacks avx10.9, made-up, which the model was compiled for"):
        mlc.load(path)


def test_default_thread_count(model_path: Path) -> None:
    """As many as there are cores among the processors that the process may use, unless the environment says more."""
    program = f"""
import os, mlc
os.sched_setaffinity(0, {{next(iter(os.sched_getaffinity(0)))}})
print(mlc.load({str(model_path)!r}).num_threads)
os.environ["MLC_NUM_THREADS"] = "3"
print(mlc.load({str(model_path)!r}).num_threads)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["1", "3"], done.stderr


def test_bad_thread_counts(model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="threads is 0"):
        mlc.load(model_path, threads=0)
    with pytest.raises(ArgumentError, match="0 .default. to 1024"):
        mlc.load(model_path, threads=5000)
    for text in ("four", "-1", "2 "):
        monkeypatch.setenv("MLC_NUM_THREADS", text)
        with pytest.raises(ArgumentError, match=f"MLC_NUM_THREADS is '{text}'; it must be a number"):
            mlc.load(model_path)
        assert mlc.load(model_path, threads=2).num_threads == 2
    for text in ("", "0"):
        monkeypatch.setenv("MLC_NUM_THREADS", text)
        assert mlc.load(model_path).num_threads >= 1


# --- External weights ----------------------------------------------------------------------------------------


def test_external_weights(build_model: Any, tmp_path: Path) -> None:
    path = build_model(external=True)
    weights = path.parent / "model.safetensors"
    np.testing.assert_array_equal(mlc.load(path, threads=2)(rows(3))[0], expected(rows(3)))
    moved = tmp_path / "elsewhere.safetensors"
    content = weights.read_bytes()
    weights.rename(moved)
    np.testing.assert_array_equal(mlc.load(path, weights=moved)(rows(3))[0], expected(rows(3)))
    with pytest.raises(mlc.runtime.WeightsError, match=r"cannot read the weight file '.*model.safetensors': No such"):
        mlc.load(path)
    flipped = bytearray(content)
    flipped[-1] ^= 1
    weights.write_bytes(flipped)
    with pytest.raises(mlc.runtime.WeightsError, match="the hash differs"):
        mlc.load(path)
    assert mlc.load(path, verify_weights=False)(rows(1))[0].shape == (1, 3)
    for wrong in (content[:-1], content[:5], b"\xff" * 100):
        weights.write_bytes(wrong)
        with pytest.raises(mlc.runtime.WeightsError, match="expected 8192 bytes of data behind its header"):
            mlc.load(path)


# --- Threads, processes, life time ---------------------------------------------------------------------------


def test_threads_share_a_model(model: Model) -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            with model.context() as own:
                for i in range(50):
                    x = rows(1 + (seed * 31 + i * 7) % 200)
                    np.testing.assert_array_equal(model(x)[0], expected(x))
                    np.testing.assert_array_equal(own.run({"x": x})["y"], expected(x))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def _in_child(model: Model, queue: Any) -> None:
    queue.put(float(model(rows(100))[0].sum()))


def test_fork(model: Model) -> None:
    want = float(model(rows(100))[0].sum())
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_in_child, args=(model, queue)) for _ in range(2)]
    for child in children:
        child.start()
    assert [queue.get(timeout=20) for _ in children] == [want, want]
    for child in children:
        child.join(20)
        assert child.exitcode == 0
    assert float(model(rows(100))[0].sum()) == want


def test_unloading_joins_the_threads(build_model: Any) -> None:
    path = build_model(name="unloaded.so")
    for _ in range(20):
        model = mlc.load(path, threads=3)
        model(rows(64))
        assert is_mapped(path)
        del model
        gc.collect()
        assert not is_mapped(path)


def test_unloading_out_of_a_cycle(build_model: Any) -> None:
    path = build_model(name="cyclic.so")
    holder: dict[str, Any] = {"model": mlc.load(path, threads=2)}
    holder["context"] = holder["model"].context()
    holder["output"] = holder["model"].entry("select")([1.0, 2.0], [0])
    holder["self"] = holder
    del holder
    gc.collect()
    assert not is_mapped(path)


def test_a_file_that_was_replaced(build_model: Any, tmp_path: Path) -> None:
    """Loading a path again gives what lies there now, also while the model that lay there before is in use."""
    path = tmp_path / "model.so"
    old, new = build_model(), build_model(external=True)
    shutil.copy(new.with_suffix(".safetensors"), tmp_path)
    models = []
    for source in (old, new, old, new):
        shutil.copy(source, tmp_path / "next.so")
        (tmp_path / "next.so").rename(path)
        models += [mlc.load(path), mlc.load(path)]
    mapped = [line.split(maxsplit=5)[4:] for line in Path("/proc/self/maps").read_text().splitlines()]
    inodes = {entry[0] for entry in mapped if len(entry) == 2 and entry[1].startswith(str(path))}
    assert len(inodes) == 4
    for model in models:
        np.testing.assert_array_equal(model(rows(3))[0], expected(rows(3)))
    del models, model
    gc.collect()
    assert not is_mapped(path)


def test_exit_with_a_live_model(model_path: Path) -> None:
    """The interpreter's exit with workers asleep, and a closed context."""
    program = f"""
import numpy as np, mlc
model = mlc.load({str(model_path)!r}, threads=4)
context = model.context()
print(context.run([np.ones((50, 4), np.float32)])["y"].shape)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "(50, 3)\n", "")


def test_loading_needs_numpy_only(model_path: Path) -> None:
    program = f"""
import sys, mlc
model = mlc.load({str(model_path)!r})
model.entry("shout")(["a"])
print(sorted(m for m in sys.modules if m.split(".")[0] in ("mlir", "onnx", "typer", "rich", "ml_dtypes")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_profile(model: Model) -> None:
    with model.context(profile=True) as context:
        for _ in range(3):
            context.run([rows(10)])
        report = context.profile()
        assert report["runs"] == 3 and report["ns"] > 0
        assert [(k["name"], k["calls"], k["items"]) for k in report["kernels"]] == [
            ("row_product", 3, 30),
            ("copy", 3, 90),
        ]
        assert all(0 < k["min_ns"] <= k["ns"] for k in report["kernels"])
        assert context.profile()["kernels"] == []
    assert model.context().profile() == {"runs": 0, "ns": 0, "kernels": []}


# --- Element types -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_dtypes(name: str) -> None:
    assert dtype_name(dtype_code(name)) == name
    dtype = numpy_dtype(name)
    if name != "string":
        bits = DTYPES[name][1]
        assert dtype.itemsize * 8 == max(bits, 8)
    assert accepted_name(dtype) == name


def test_dtypes_without_ml_dtypes() -> None:
    program = """
import sys
sys.modules["ml_dtypes"] = None
from mlc.runtime.dtypes import numpy_dtype
print(*(numpy_dtype(n) for n in ("bfloat16", "float8_e5m2", "int4", "float16")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "uint16 uint8 uint8 float16\n", done.stderr
