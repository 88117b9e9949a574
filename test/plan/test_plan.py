"""The plan of a program's memory against what its tensors say, for both targets (`plan/programs.py`)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import mlir.ir as ir
import onnx
import pytest
from conformance.onnx_loader import load_tests
from models.drawn_graphs import FAMILIES, FLOATS, drawn_graph
from models.gpu_cases import Case, build, cases
from models.zoo import MissingModelError, zoo
from plan.contents import CannotFollowError, PlanError
from plan.programs import BufferProgram, TensorProgram
from spread import EVERY, spread

from mlc.compilation import Compilation
from mlc.compiler_setup import new_context
from mlc.frontends.report import ModelError
from mlc.options import make_options

TARGETS = ("cpu", "cuda")
CASES = cases()
SEED, SAMPLES = 20261121, 40
Texts = tuple[str, str]


def _texts(model: Path, target: str, folder: Path) -> Texts:
    """The program on tensors and the one on buffers."""
    options = make_options(target=target, emit="buffers", dump_ir=folder / "phases", cache=False)
    Compilation(options).run(model, folder / "buffers.mlir")
    tile, buffers = (next((folder / "phases").glob(f"*-{phase}.mlir")) for phase in ("tile", "buffers"))
    return tile.read_text(), buffers.read_text()


def _followed(texts: Texts, extent: int = 3) -> tuple[list[str], list[str]]:
    """How the results of the two programs came about."""
    with new_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        tensors, buffers = (ir.Module.parse(text) for text in texts)
        return TensorProgram(tensors, extent).results(), BufferProgram(buffers, extent).results()


def _check(texts: Texts, extent: int = 3) -> None:
    wanted, found = _followed(texts, extent)
    assert wanted
    assert found == wanted


@pytest.mark.parametrize(
    ("target", "case"), spread(CASES, "cuda", ["cpu"], 2), ids=lambda v: v.name if isinstance(v, Case) else v
)
def test_buffers_hold_what_tensors_say(case: Case, target: str, tmp_path: Path) -> None:
    onnx.save(build(case), tmp_path / "model.onnx")
    texts = _texts(tmp_path / "model.onnx", target, tmp_path)
    # Without an extent that only the run knows, every run is the same.
    for extent in (3, 1, 17) if "?" in "".join(texts) else (3,):
        _check(texts, extent)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "extent"), [("silero_vad", 64), ("ocr_cls", 2)])
def test_real_models(name: str, extent: int, target: str, tmp_path: Path) -> None:
    try:
        model = zoo(name).path
    except MissingModelError as missing:
        pytest.skip(str(missing))
    _check(_texts(model, target, tmp_path), extent)


@pytest.mark.parametrize("target", TARGETS)
def test_a_sample_of_onnx_cases(target: str, tmp_path: Path) -> None:
    chosen = random.Random(SEED).sample(load_tests("node"), SAMPLES)
    left: list[str] = []
    for case in chosen:
        onnx.save(case.model, tmp_path / "model.onnx")
        folder = tmp_path / case.name
        folder.mkdir()
        try:
            _check(_texts(tmp_path / "model.onnx", target, folder))
        except (CannotFollowError, ModelError) as error:
            left.append(f"{case.name}: {error}")
    assert len(left) <= SAMPLES // 5, "\n".join(left)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("families", [FLOATS, tuple(FAMILIES)], ids=["floats", "all"])
@pytest.mark.parametrize("first", range(0, 600 if EVERY else 20, 10))
def test_drawn_graphs(first: int, families: tuple[str, ...], target: str, tmp_path: Path) -> None:
    """Of any operators, one after the other; every third for any extents. A few have what the host computes."""
    left = []
    for seed in range(first, first + 10):
        onnx.save(drawn_graph(seed, seed % 3 == 0, families)[0], tmp_path / "model.onnx")
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            _check(_texts(tmp_path / "model.onnx", target, folder))
        except CannotFollowError as error:
            left.append(f"{seed}: {error}")
    assert len(left) <= (2 if families == FLOATS else 5), "\n".join(left)


def test_what_is_written_over_has_been_read(tmp_path: Path) -> None:
    """A scatter in place, beside another reader of what it updates: that came behind it, in one launch with a third."""
    text = """<ir_version: 9, opset_import: ["" : 20]> scattered (float[17] x) => (float[51] t, float[17] s, float[17] y)
    <int64[1] three = {3}, int64[3] at = {12, 7, 15}, float[3] u = {1.0, 2.0, 3.0}> {
      v = Softmax<axis = 0>(x)
      t = Tile(v, three)
      w = ScatterElements<axis = 0>(v, at, u)
      s = LogSoftmax<axis = 0>(w)
      y = LeakyRelu(w)
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    _check(_texts(tmp_path / "model.onnx", "cuda", tmp_path))


# --- What the interpreter finds -------------------------------------------------------------------------------------


def _chain(tmp_path: Path, target: str) -> Texts:
    """Products whose results live across one another: x -> a -> b, and y = softmax(a b)."""
    from onnx import helper

    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["a"]),
        helper.make_node("MatMul", ["a", "x"], ["b"]),
        helper.make_node("MatMul", ["b", "b"], ["c"]),
        helper.make_node("MatMul", ["a", "c"], ["d"]),
        helper.make_node("Softmax", ["d"], ["y"]),
    ]
    tensor = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", tensor, [32, 32])],
        [helper.make_tensor_value_info("y", tensor, [32, 32])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return _texts(tmp_path / "m.onnx", target, tmp_path)


def _swapped_launches(text: str) -> str:
    lines = text.splitlines()
    first, second = [i for i, line in enumerate(lines) if "mlc.launch" in line][:2]
    between = lines[first + 1 : second]  # buffers that the second wants
    return "\n".join([*lines[:first], *between, lines[second], lines[first], *lines[second + 1 :]])


def _one_place(text: str) -> str:
    """Every buffer at the beginning of the arena."""
    view = re.compile(r"(memref\.view %\S+\[)%c\d+\w*(\]\[)")
    zero = re.search(r"%(c0\w*) = arith\.constant 0 : index", text)
    assert zero and len(view.findall(text)) > 1
    return view.sub(rf"\1%{zero[1]}\2", text)


def _first_launch_dropped(text: str) -> str:
    return re.sub(r"\n *mlc\.launch .*", "", text, count=1)


def _smaller_arena(text: str) -> str:
    def half(match: re.Match[str]) -> str:
        return f"{match[1]}<{int(match[2]) // 2}xi8>"

    return re.sub(r"(memref)<(\d+)xi8>", half, text)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("spoil", [_swapped_launches, _one_place, _first_launch_dropped, _smaller_arena])
def test_a_wrong_plan_is_found(spoil: Callable[[str], str], target: str, tmp_path: Path) -> None:
    tensors, buffers = _chain(tmp_path, target)
    _check((tensors, buffers))
    spoiled = spoil(buffers)
    assert spoiled != buffers
    try:
        wanted, found = _followed((tensors, spoiled))
    except PlanError:
        return
    assert found != wanted


def test_memory_of_the_wrong_side_is_found(tmp_path: Path) -> None:
    tensors, buffers = _chain(tmp_path, "cuda")
    spoiled = buffers.replace('mlc.buffer arena {mlc.space = "device"', 'mlc.buffer arena {mlc.space = "host"')
    assert spoiled != buffers
    with pytest.raises(PlanError, match="a kernel of the device touches arena .* in the host's memory"):
        _followed((tensors, spoiled))
