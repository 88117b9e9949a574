"""Libraries for GPUs on a machine without one: what they ask of the driver, and what they say when it refuses.

`fake_libcuda.c` takes the driver's place. It runs no kernels, but knows every address and writes down what it was asked.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from gpu.assembled import OTHERS, SPILLED, assemble
from gpu.stand_in import RUN, RUN_ALL, Outcome, run_with
from models.gpu_cases import Case, build, cases
from onnx import helper, numpy_helper
from spread import EVERY
from toolchain import needs_ptxas

pytestmark = [
    needs_ptxas,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


@pytest.fixture(scope="module")
def perceptron(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers with a dynamic batch, a constant and weights: kernels k0, k1 and k2."""
    rng = np.random.default_rng(0)
    arrays = {"w1": rng.standard_normal((32, 64)), "b1": rng.standard_normal(64), "w2": rng.standard_normal((64, 16))}
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], name="first"),
        helper.make_node("Add", ["a", "b1"], ["b"], name="bias"),
        helper.make_node("Relu", ["b"], ["c"], name="relu"),
        helper.make_node("MatMul", ["c", "w2"], ["d"], name="second"),
        helper.make_node("Softmax", ["d"], ["y"], name="softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "perceptron",
        [helper.make_tensor_value_info("x", 1, ["n", 32])],
        [helper.make_tensor_value_info("y", 1, ["n", 16])],
        [numpy_helper.from_array(a.astype("f4"), n) for n, a in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return _compile(model, tmp_path_factory.mktemp("perceptron") / "model.so")


@pytest.fixture(scope="module")
def residual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Products on tensor cores, with tensor maps."""
    return _compile(_residual(), tmp_path_factory.mktemp("residual") / "model.so")


def _compile(model: onnx.ModelProto, output: Path) -> Path:
    from mlc.compilation import Compilation
    from mlc.options import make_options

    return Compilation(make_options(target="cuda")).run(model, output)


def _command(driver: Path, model: Path, **settings: str) -> Outcome:
    return run_with(driver, [sys.executable, "-m", "mlc.cli.run", model], **settings)


# --- A run ------------------------------------------------------------------------------------------------------------


def test_a_run_uploads_launches_and_waits_once(driver: Path, perceptron: Path) -> None:
    outcome = run_with(driver, [sys.executable, "-c", RUN, perceptron])
    assert outcome.code == 0, outcome.said
    log = outcome.log
    assert not [line for line in log if line.startswith("BREACH")]
    assert log[:5] == ["load cubin"] * 3 + ["alloc 12288", "upload 12288"]  # the weights, once
    assert log.count("upload 12288") == 1 and log.count("upload 256") == 1  # a constant, once
    first = [line for line in log[5:] if not line.startswith(("alloc", "upload"))][:6]
    assert first == [
        "to device 896",
        "launch k0 1 x 128, 9 words",
        "launch k1 1 x 64, 8 words",
        "launch k2 1 x 128, 7 words",
        "to host 448",
        "wait",
    ]
    assert log.count("wait") == 4
    second = log[log.index("wait") + 1 :]
    second = second[: second.index("wait")]
    assert not [line for line in second if line.startswith("alloc")]  # it needs no more memory
    launches = [line for line in first if line.startswith("launch")]
    assert second == ["to device 896", "record", *launches, "executable", "graph of 3 launches", "to host 448"]
    assert log[-1] == "0 blocks, 0 modules, 0 streams, events and graphs left"


def _assembled(case: Case, library: Path, architectures: list[str]) -> set[tuple[str, str]]:
    """Compiles a case for several chips at once, checks what ptxas says, and gives its templates with its type."""
    assembly = assemble(build(case), library, cache=True, emit="library", gpu=",".join(architectures))
    kernels = assembly.description
    assert {kernel.get("architecture", architectures[0]) for kernel in kernels} == set(architectures), case.name
    for kernel in kernels:
        assert kernel["warnings"] == []
        assert kernel["resources"]["spill_stores"] == 0 or case.name in SPILLED, (case.name, kernel["name"])
    dtype = next(iter(case.inputs().values())).dtype.name
    return {(name, dtype) for one in assembly.kernels for name in re.findall(r'template = "(\w+)"', one.kernel.text)}


def _some(every: Sequence[Case]) -> list[Case]:
    """Every third case, and the first of each kind, which is how its name begins."""
    firsts = {case.name.split("_")[0]: case.name for case in reversed(every)}
    return [case for n, case in enumerate(every) if EVERY or n % 3 == 0 or firsts[case.name.split("_")[0]] == case.name]


@pytest.mark.slow
def test_cases_keep_the_rules(driver: Path, tmp_path: Path) -> None:
    """What ptxas says of its kernels, and what is asked of the driver, by sixteen in one process. Every third case, and
    the first of each kind, for Hopper; some for one of the other architectures in turn, and for all of them the first
    with a template in a type: they assemble the same text but for what their schedules say. With MLC_EVERY_CASE=1 each
    case for each of them.
    """
    libraries = []
    seen: set[tuple[str, str]] = set()
    for number, case in enumerate(_some(cases())):
        libraries.append(tmp_path / f"{case.name}.so")
        another = [] if number % 3 else [OTHERS[number // 3 % len(OTHERS)]]
        found = _assembled(case, libraries[-1], ["sm_90a", *another])
        if EVERY or not found <= seen:
            seen |= found
            _assembled(case, tmp_path / "others.so", OTHERS)
    for group in (libraries[i : i + 16] for i in range(0, len(libraries), 16)):
        outcome = run_with(driver, [sys.executable, "-c", RUN_ALL, *group])
        names = [library.stem for library in group]
        assert outcome.code == 0, (names, outcome.said)
        assert not [line for line in outcome.log if line.startswith("BREACH")], names
        assert outcome.log[-1] == "0 blocks, 0 modules, 0 streams, events and graphs left", names


CHANGES = [f"change k{i}" for i in range(3)]


def test_runs_that_come_again_are_graphs(driver: Path, perceptron: Path) -> None:
    """By turns: every shape has a graph of its own, until the arena had to move or too many others have come."""
    script = RUN[: RUN.index("for number")] + (
        "with model.context() as context:\n"
        "    for n in [int(n) for n in sys.argv[2].split(',')]:\n"
        "        context.run({'x': np.ones((n, 32), np.float32)})\n"
    )

    def runs(sizes: str, **settings: str) -> list[str]:
        outcome = run_with(driver, [sys.executable, "-c", script, perceptron, sizes], **settings)
        assert outcome.code == 0, outcome.said
        assert not [line for line in outcome.log if line.startswith("BREACH")]
        assert outcome.log[-1] == "0 blocks, 0 modules, 0 streams, events and graphs left"
        shown = {"record": "R", "graph of 3 launches": "G", "wait": "|", **dict.fromkeys(CHANGES, "C")}
        return "".join(shown.get(line, "") for line in outcome.log).split("|")[:-1]

    assert runs("9,7,9,7,9,7") == ["", "", "RG", "RG", "G", "G"]
    assert runs("7,7,90,7,7") == ["", "RG", "", "CCCG", "G"]  # 90 needs a larger arena, and elsewhere
    assert runs("9,9,1,2,3,4,5,6,7,8,9,9") == ["", "RG", *[""] * 8, "", "RG"]
    assert runs("9,9,9", FAKE_CUDA_FAIL="cuStreamBeginCapture_v2") == ["", "", ""]
    assert runs("9,9,9", FAKE_CUDA_FAIL="cuGraphInstantiateWithFlags") == ["", "R", ""]
    assert runs("9,9,9", MLC_CUDA_SYNC="1") == [""] * 12  # it waits for every launch, too


def test_launches_are_early_unless_the_driver_or_the_caller_says_no(driver: Path, perceptron: Path) -> None:
    refused = {"FAKE_CUDA_FAIL": "cuLaunchKernelEx"}
    assert _command(driver, perceptron, **refused).code == 1
    assert _command(driver, perceptron, **refused, MLC_CUDA_OVERLAP="0").code == 0
    assert _command(driver, perceptron, **refused, FAKE_CUDA_VERSION="12020").code == 0


def test_few_rows_are_launched_with_tiles_for_few(driver: Path, tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(*v) for v in (("x", 16, ["n", 768]), ("w", 16, [768, 3072]))]
    result = helper.make_tensor_value_info("y", 16, ["n", 3072])
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "rows", values, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    library = _compile(model, tmp_path / "model.so")

    def launched(rows: int) -> str:
        command = [sys.executable, "-m", "mlc.cli.run", library, "--dim", f"n={rows}"]
        outcome = run_with(driver, command)
        assert outcome.code == 0 and not [line for line in outcome.log if line.startswith("BREACH")], outcome.said
        return next(line for line in outcome.log if line.startswith("launch")).split()[1]

    assert [launched(rows) for rows in (1, 64, 65, 5000)] == ["k0_64", "k0_64", "k0_128", "k0"]


def test_info_of_a_model_that_does_not_run_here(driver: Path, perceptron: Path) -> None:
    words = [sys.executable, "-m", "mlc.cli.run", perceptron, "--info"]
    outcome = run_with(driver, words, FAKE_CUDA_DEVICES="0")
    assert (outcome.code, outcome.said) == (0, "")
    for text in ("float32[n,32]", "NVIDIA sm_90a", "here: does not run: this model runs on an NVIDIA GPU"):
        assert text in outcome.printed
    assert "here: runs, threads: " in run_with(driver, words).printed


def test_newer_chips_get_ptx(driver: Path, perceptron: Path) -> None:
    outcome = _command(driver, perceptron, FAKE_CUDA_CAPABILITY="10.0")
    assert outcome.code == 0 and outcome.log[:3] == ["load ptx"] * 3


def test_a_driver_that_refuses_machine_code_gets_ptx(driver: Path, perceptron: Path) -> None:
    outcome = _command(driver, perceptron, FAKE_CUDA_FAIL="cuModuleLoadDataEx:0:209")
    assert outcome.code == 0 and outcome.log[0] == "load ptx"


def test_constants_at_one_address_are_two(driver: Path, tmp_path: Path) -> None:
    """What a loop gives out begins with no elements: a constant of 0 bytes, which lies where the next one does."""
    text = """<ir_version: 10, opset_import: ["" : 21]> turns (float[16] x) => (float[16] y, float[n, 16] all)
    <int64 two = {2}, int64 one = {1}, bool go = {1}, float[16] c = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}> {
      z, all = Loop(two, go, x) <body = body (int64 i, bool b, float[16] s) => (bool b2, float[16] t, float[16] u)
        { b2 = Less(i, one) t = Neg(s) u = Identity(t) }>
      y = Add(c, z)
    }"""
    outcome = run_with(driver, [sys.executable, "-c", RUN, _compile(onnx.parser.parse_model(text), tmp_path / "m.so")])
    assert outcome.code == 0, outcome.said
    assert not [line for line in outcome.log if line.startswith("BREACH")]
    assert outcome.log.count("upload 64") == 1


def test_sizes_that_the_host_reads_are_brought_to_it(driver: Path, tmp_path: Path) -> None:
    """A slice up to the largest element: the GPU finds it, the host waits for it and launches with that size."""
    nodes = [
        helper.make_node("ArgMax", ["x"], ["i"], name="largest", axis=0, keepdims=1),
        helper.make_node("Slice", ["x", "zero", "i"], ["a"], name="slice"),
        helper.make_node("Exp", ["a"], ["y"], name="exp"),
    ]
    inputs = [helper.make_tensor_value_info("x", 1, [500])]
    zero = numpy_helper.from_array(np.zeros(1, np.int64), "zero")
    graph = helper.make_graph(nodes, "sizes", inputs, [helper.make_tensor_value_info("y", 1, ["m"])], [zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    outcome = run_with(driver, [sys.executable, "-c", RUN, _compile(model, tmp_path / "sizes.so")])
    assert outcome.code == 0, outcome.said
    assert not [line for line in outcome.log if line.startswith("BREACH")]
    events = [line.split(" x ")[0] for line in outcome.log if not line.startswith(("alloc", "load"))]
    found = events.index("to host 8")
    assert events[found - 1].startswith("launch k0") and events[found + 1] == "wait"
    assert "record" in events and not [line for line in events if line.startswith("graph")]  # tried once, in vain
    assert events.count("record") == 2


def test_what_only_the_host_computes(driver: Path, tmp_path: Path) -> None:
    """Exponentials of float64: no kernel is launched, and the numbers are right although this GPU computes none."""
    graph = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["y"], name="exp")],
        "double",
        [helper.make_tensor_value_info("x", 11, [5])],
        [helper.make_tensor_value_info("y", 11, [5])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    library = _compile(model, tmp_path / "double.so")
    script = RUN.replace("context.run(feeds)", "assert np.allclose(context.run(feeds)['y'], np.exp(feeds['x']))")
    outcome = run_with(driver, [sys.executable, "-c", script, library])
    assert outcome.code == 0, outcome.said
    assert not [line for line in outcome.log if line.startswith(("launch", "BREACH", "to "))]


# --- What goes wrong --------------------------------------------------------------------------------------------------


def test_a_machine_without_a_driver(perceptron: Path, tmp_path: Path) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a driver")
    outcome = _command(tmp_path, perceptron)
    assert outcome.code == 1
    assert "runs on an NVIDIA GPU, but there is no NVIDIA driver: libcuda.so.1" in outcome.said
    assert len(outcome.said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"FAKE_CUDA_DEVICES": "0"}, "none can be used here: cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device"),
        ({"FAKE_CUDA_VERSION": "11040"}, "the NVIDIA driver is too old: it speaks CUDA 11.4, this model needs 12.0"),
        ({"FAKE_CUDA_CAPABILITY": "8.0"}, "GPU 0 (Fake GPU 0) has compute capability 8.0; this model was compiled for"),
        ({"MLC_DEVICE": "3"}, "there is no GPU 3: this process sees 1"),
        ({"FAKE_CUDA_FAIL": "cuModuleLoadDataEx"}, "kernel 'k0' cannot be loaded: cuModuleLoadDataEx: CUDA_ERROR_"),
        ({"FAKE_CUDA_FAIL": "cuMemAlloc_v2:0:2"}, "the 12288 bytes of weights cannot be brought to GPU 0: cuMemAlloc"),
        (
            {"FAKE_CUDA_FAIL": "cuMemAlloc_v2:3:2"},
            "entry 'forward' needs an arena of 320 bytes on the GPU: CUDA_ERROR_",
        ),
        ({"FAKE_CUDA_FAIL": "cuLaunchKernel:1"}, "node 'second' (kernel 'k1'): cuLaunchKernel: CUDA_ERROR_LAUNCH_FAI"),
        (
            {"FAKE_CUDA_FAIL": "cuStreamSynchronize"},
            "between node 'first' (kernel 'k0') and node 'softmax' (kernel 'k2'): cuStreamSynchronize: CUDA_ERROR_",
        ),
        (
            {"FAKE_CUDA_FAIL": "cuStreamSynchronize:1", "MLC_CUDA_SYNC": "1"},
            "node 'second' (kernel 'k1'): cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED",
        ),
        ({"FAKE_CUDA_ERROR": "1:1:77"}, "node 'second': index 77 is out of range"),
    ],
)
def test_one_clear_message(driver: Path, perceptron: Path, settings: dict[str, str], message: str) -> None:
    outcome = _command(driver, perceptron, **settings)
    assert outcome.code == 1
    assert message in outcome.said
    assert len(outcome.said.strip().splitlines()) == 1
    assert not [line for line in outcome.log if line.startswith("BREACH")]
    if outcome.log:  # whatever happened, nothing stays behind
        assert outcome.log[-1] == "0 blocks, 0 modules, 0 streams, events and graphs left"


# --- The library itself -----------------------------------------------------------------------------------------------


def test_the_library_stands_alone(perceptron: Path) -> None:
    needed = subprocess.run(["readelf", "-d", perceptron], capture_output=True, text=True, check=True).stdout
    assert [line for line in needed.splitlines() if "NEEDED" in line and "libc.so.6" not in line] == []
    assert ctypes.CDLL(str(perceptron)).mlc_model_query  # loads without a driver


@pytest.mark.slow
def test_going_on_from_any_phase_gives_the_same_bytes(perceptron: Path, tmp_path: Path) -> None:
    from mlc.compilation import Compilation
    from mlc.options import CUDA_PHASES, make_options

    case = next(c for c in cases() if c.error[0] == 0)
    model = build(case)
    whole = Compilation(make_options(target="cuda", verify_each=True)).run(model, tmp_path / "whole.so").read_bytes()
    for phase in CUDA_PHASES:
        stage = tmp_path / f"{phase}.mlir"
        Compilation(make_options(target="cuda", emit=phase)).run(model, stage)
        again = Compilation(make_options(target="cuda")).run(stage, tmp_path / "again.so").read_bytes()
        assert again == whole, phase


# --- Tensors of the GPU -----------------------------------------------------------------------------------------------

TENSORS = """
import ctypes, sys
import numpy as np
from mlc.runtime import abi
from mlc.runtime.loader import load
driver = ctypes.CDLL("libcuda.so.1")
model = load(sys.argv[1])
context = model.context()

def gpu(nbytes, shift=0):
    address = ctypes.c_uint64()
    driver.cuCtxPushCurrent_v2(ctypes.c_void_p(1))
    driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(nbytes + shift))
    driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
    return address.value + shift

def value(address, shape, kind=2, number=0, strides=None):
    result = abi.Value(ctypes.sizeof(abi.Value), abi.TENSOR)
    result.shape = (ctypes.c_int64 * len(shape))(*shape)
    result.steps = (ctypes.c_int64 * len(shape))(*strides) if strides else None
    tensor = result.tensor
    tensor.data, tensor.device_type, tensor.device_id, tensor.ndim = address, kind, number, len(shape)
    tensor.code, tensor.bits, tensor.lanes = 2, 32, 1
    tensor.shape = ctypes.addressof(result.shape)
    tensor.strides = ctypes.addressof(result.steps) if strides else None
    return result

def run(source, target, stream=None):
    status = abi.new_status()
    many = isinstance(target, list)
    targets = (abi.Value * len(target))(*target) if many else ctypes.byref(target)
    count = len(target) if many else 1
    code = model._library.api.run(
        context._handle, 0, ctypes.byref(source), 1, targets, count, stream, ctypes.byref(status)
    )
    print(code, status.message.decode())
    return code
"""


@pytest.mark.parametrize(
    ("calls", "said", "log"),
    [
        # Both on the GPU: nothing is copied.
        ("run(value(gpu(896), [7, 32]), value(gpu(448), [7, 16]))", "0 ", []),
        # Kernels want addresses that are multiples of 16.
        ("run(value(gpu(896, 4), [7, 32]), value(gpu(448, 8), [7, 16]))", "0 ", ["on device 896", "on device 448"]),
        # A slice of a tensor comes over the host.
        ("run(value(gpu(2000), [7, 32], strides=[40, 1]), value(gpu(448), [7, 16]))", "0 ",
         ["to host 1088", "to device 896"]),
        ("run(value(gpu(896), [7, 32], number=1), value(gpu(448), [7, 16]))",
         "2 input 'x': it is on GPU 1; this model runs on GPU 0", []),
        ("run(value(gpu(896), [7, 32]), value(gpu(448), [7, 16], number=2))", "it is on another GPU", []),
        ("run(value(gpu(896), [7, 32]), value(gpu(2000), [7, 16], strides=[32, 1]))",
         "a buffer on the GPU must be contiguous", []),
        # The caller's stream; an output that the runtime allocates on the GPU.
        ("stream = ctypes.c_void_p(); driver.cuStreamCreate(ctypes.byref(stream), 0)\n"
         "out = abi.Value(ctypes.sizeof(abi.Value)); out.tensor.device_type = 2\n"
         "assert run(value(gpu(896), [7, 32]), out, stream) == 0\n"
         "assert out.tensor.device_type == 2 and out.tensor.data % 16 == 0\n"
         "out.deleter(ctypes.byref(out))", "0 ", []),
    ],
)  # fmt: skip
def test_tensors_of_the_gpu(driver: Path, perceptron: Path, calls: str, said: str, log: list[str]) -> None:
    outcome = run_with(driver, [sys.executable, "-c", TENSORS + calls, perceptron])
    assert outcome.code == 0, outcome.said
    assert said in outcome.printed
    assert not [line for line in outcome.log if line.startswith("BREACH")]
    assert [line for line in outcome.log if line.startswith(("to ", "on "))] == log


def test_tensors_that_have_moved_change_launches_of_the_graph(driver: Path, perceptron: Path) -> None:
    """The first launch reads the input, the last one writes the result: these become others, and no others do. Tensors
    that come again have an executable that is not changed any more.
    """
    buffers = (
        "a, b = (value(gpu(896), [7, 32]) for _ in range(2)); y, z = (value(gpu(448), [7, 16]) for _ in range(2))\n"
    )
    script = TENSORS + buffers + "for x, t in ((a, y), (a, y), (a, y), (b, y), (b, z), (b, z), (a, y), (b, z)): run(x, t)"

    def events(**settings: str) -> list[list[str]]:
        outcome = run_with(driver, [sys.executable, "-c", script, perceptron], **settings)
        assert outcome.code == 0 and outcome.printed == "0 \n" * 8, outcome.said
        assert not [line for line in outcome.log if line.startswith("BREACH")]
        kinds = ("change", "executable", "graph", "launch", "record", "wait")
        runs = "\n".join(line for line in outcome.log if line.startswith(kinds)).split("wait")[:-1]
        return [run.split("\n")[1 if number else 0 : -1] for number, run in enumerate(runs)]

    plain = ["launch k0 1 x 128, 9 words", "launch k1 1 x 64, 8 words", "launch k2 1 x 128, 7 words"]
    graph = "graph of 3 launches"
    recorded = ["record", *plain, "executable", graph]
    moved = [["change k0", graph], ["change k2", graph], [graph]]
    assert events() == [plain, recorded, [graph], *moved, ["executable", graph], [graph]]
    refused = events(FAKE_CUDA_FAIL="cuGraphExecKernelNodeSetParams")
    assert refused == [plain, recorded, [graph], *[plain] * 5]  # and not tried again
    alone = events(FAKE_CUDA_FAIL="cuGraphInstantiateWithFlags:1")  # no second executable: the first is changed
    both = ["change k0", "change k2", graph]
    assert alone == [plain, recorded, [graph], *moved, both, both]


@pytest.mark.parametrize(
    ("sets", "executables", "changes"),
    [
        ("[i % 2 for i in range(40)]", 2, (1, 1)),
        ("[i % 4 for i in range(40)]", 4, (3, 9)),
        ("[i % 9 for i in range(90)]", 4, (70, 88)),  # more than there are executables
        ("[*range(40), *(40 + i % 4 for i in range(40)), *(50 + i % 4 for i in range(40))]", 4, (45, 56)),
        ("[i % 30 for i in range(90)]", 1, (88, 88)),  # none comes again soon
        ("range(90)", 1, (88, 88)),  # none comes again
        ("[i if i % 3 else 0 for i in range(90)]", 2, (58, 64)),  # one of them does
    ],
)
def test_executables_are_for_tensors_that_come_again(
    driver: Path, perceptron: Path, sets: str, executables: int, changes: tuple[int, int]
) -> None:
    script = TENSORS + (
        "known = [(value(gpu(896), [7, 32]), value(gpu(448), [7, 16])) for _ in range(90)]\n"
        f"for i in {sets}: run(*known[i])\n"
        "context.close()\n"
        "for x, t in known:\n"
        "    driver.cuCtxPushCurrent_v2(ctypes.c_void_p(1))\n"
        "    for v in (x, t): driver.cuMemFree_v2(ctypes.c_uint64(v.tensor.data))\n"
    )
    outcome = run_with(driver, [sys.executable, "-c", script, perceptron])
    assert outcome.code == 0 and set(outcome.printed.splitlines()) == {"0 "}, outcome.said
    assert not [line for line in outcome.log if line.startswith("BREACH")]
    assert outcome.log.count("executable") == executables
    assert changes[0] <= outcome.log.count("change k2") <= changes[1]
    assert outcome.log[-1] == "0 blocks, 0 modules, 0 streams, events and graphs left"


def test_a_copy_in_a_graph_is_changed_too(driver: Path, tmp_path: Path) -> None:
    nodes = [helper.make_node("Exp", ["x"], ["y"]), helper.make_node("Identity", ["x"], ["z"])]
    x, y, z = (helper.make_tensor_value_info(name, 1, [64]) for name in "xyz")
    graph = helper.make_graph(nodes, "copied", [x], [y, z])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    library = _compile(model, tmp_path / "model.so")
    buffers = "x = [value(gpu(256), [64]) for _ in range(2)]; y, z = (value(gpu(256), [64]) for _ in range(2))\n"
    script = TENSORS + buffers + "for i in (0, 0, 0, 1, 1): run(x[i], [y, z])"
    outcome = run_with(driver, [sys.executable, "-c", script, library])
    assert outcome.code == 0 and outcome.printed == "0 \n" * 5, outcome.said
    assert not [line for line in outcome.log if line.startswith("BREACH")]
    runs = "\n".join(outcome.log).split("wait")
    assert "change" not in runs[2] and "change k0" in runs[3] and "change a copy of 256" in runs[3]
    assert "change" not in runs[4] and "graph of 2 launches" in runs[4]


def _residual() -> onnx.ModelProto:
    """r = relu(x w) v + x + s, and z = x: of f16 with a dynamic batch. x is read by three launches and a copy."""
    rng = np.random.default_rng(0)
    arrays = {name: (rng.standard_normal((256, 256)) / 16).astype("f2") for name in "wv"}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["c"]),
        helper.make_node("Add", ["c", "x"], ["d"]),
        helper.make_node("Add", ["d", "s"], ["r"]),
        helper.make_node("Identity", ["x"], ["z"]),
    ]
    values = [helper.make_tensor_value_info(name, 10, ["n", 256]) for name in "xsrz"]
    constants = [numpy_helper.from_array(a, n) for n, a in arrays.items()]
    graph = helper.make_graph(nodes, "residual", values[:2], values[2:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


# Runs of (x, s, r, z): numbers of tensors, and how many rows.
TURNS = """
def half(number, rows, shift=0):
    result = value(blocks[number] + shift, [rows, 256])
    result.tensor.bits = 16
    return result

def turn(x, s, r, z, rows=100, shift=0):
    sources = (abi.Value * 2)(half(x, rows, shift), half(s, rows))
    targets = (abi.Value * 2)(half(r, rows), half(z, rows))
    status = abi.new_status()
    code = model._library.api.run(context._handle, 0, sources, 2, targets, 2, None, ctypes.byref(status))
    print(code, status.message.decode())

blocks = [gpu(400 * 512) for _ in range(8)]
"""


@pytest.mark.parametrize(
    "turns",
    [
        # Everything moves at once and each alone.
        "[(0, 1, 2, 3)] * 3 + [(4, 5, 6, 7), (4, 1, 6, 7), (4, 1, 2, 7), (5, 1, 2, 3), (0, 6, 7, 4), (7, 6, 5, 4)]",
        # Two inputs that are one tensor, or overlap, and part again.
        "[(0, 0, 2, 3)] * 3 + [(1, 1, 2, 3), (0, 4, 2, 3), (1, 5, 6, 7), (1, 1, 6, 7, 100, 512), (4, 4, 6, 7)] * 2",
        "[(1, 1, 2, 3, 100, 512)] * 3 + [(5, 5, 6, 7, 100, 512), (4, 4, 6, 7, 100, 1024), (0, 1, 2, 3), (4, 5, 6, 7)]",
        # Other shapes between them, one of which needs a larger arena.
        "[(0, 1, 2, 3)] * 3 + [(4, 5, 6, 7), (0, 1, 2, 3, 300), (4, 1, 2, 7), (0, 1, 2, 3, 300), (7, 5, 6, 4)] * 2",
        # The same way for all of them, and tensors that are not aligned and go by a copy.
        "[(i % 4, (i + 1) % 4, i % 4 + 4, (i + 2) % 4 + 4) for i in range(20)]",
        "[(0, 1, 2, 3)] * 3 + [(0, 1, 2, 3, 100, 2), (4, 1, 2, 3, 100, 2), (4, 5, 6, 7), (4, 5, 6, 7, 100, 2)] * 2",
    ],
)  # fmt: skip
def test_graphs_launch_what_runs_without_them_do(driver: Path, residual: Path, turns: str) -> None:
    """Every word of every launch and copy, wherever the tensors are."""
    script = TENSORS + TURNS + f"for one in {turns}: turn(*one)"

    def words(begin: str) -> tuple[list[str], list[str]]:
        text = script.replace("model.context()", begin)
        outcome = run_with(driver, [sys.executable, "-c", text, residual], FAKE_CUDA_WORDS="1")
        assert outcome.code == 0 and set(outcome.printed.splitlines()) == {"0 "}, outcome.printed + outcome.said
        assert not [line for line in outcome.log if line.startswith("BREACH")]
        return [line for line in outcome.log if line.startswith(("words", "are"))], outcome.log

    plain, log = words("model.context(profile=True)")
    assert not [line for line in log if line.startswith("graph")]
    graphs, log = words("model.context()")
    assert graphs == plain and [line for line in log if line.startswith("change")]


def test_a_stream_that_its_owner_captures(driver: Path, perceptron: Path) -> None:
    """Launches without waiting; whatever needs the host is refused."""
    stream = "stream = ctypes.c_void_p(); driver.cuStreamCreate(ctypes.byref(stream), 0)\n"
    buffers = "x, y = value(gpu(896), [7, 32]), value(gpu(448), [7, 16])\n"
    script = TENSORS + stream + buffers + "run(x, y, stream)\nrun(x, y, stream)"
    outcome = run_with(driver, [sys.executable, "-c", script, perceptron], FAKE_CUDA_CAPTURING="1")
    assert outcome.printed == "0 \n0 \n" and "wait" not in outcome.log and "record" not in outcome.log
    host = "memory = np.ones((7, 32), np.float32); x = value(memory.ctypes.data, [7, 32], kind=1)\n"
    script = TENSORS + stream + buffers + host + "run(x, y, stream)"
    outcome = run_with(driver, [sys.executable, "-c", script, perceptron], FAKE_CUDA_CAPTURING="1")
    assert outcome.printed == "1 the caller's stream is being captured, but not all inputs are on the GPU\n"
    script = TENSORS + stream + buffers + "run(x, abi.Value(ctypes.sizeof(abi.Value)), stream)"
    outcome = run_with(driver, [sys.executable, "-c", script, perceptron], FAKE_CUDA_CAPTURING="1")
    assert outcome.printed.startswith("1 the caller's stream is being captured, but not all outputs are buffers on")
