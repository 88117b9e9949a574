"""The program table as the compiler writes it, against the C structs that read it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mlc
from mlc.codegen.link import link_library
from mlc.codegen.program import Dim, Entry, Program, Value, emit_program, program_module
from mlc.codegen.weights_segment import BytesImage

from .conftest import IMAGE, compile_c

pytest.importorskip("mlc._native")

HOST = """
#include "program.h"
int32_t add_bias(mlc_rt *rt, const int64_t *args) {
  int64_t dims[2] = {args[2], 2};
  const float *x = (const float *)(uintptr_t)args[0], *w = mlc_rt_weights(rt);
  float *y = mlc_rt_output(rt, 0, 2, dims);
  for (int64_t i = 0; y && i < dims[0] * 2; ++i) y[i] = x[i] + w[12];
  return !y || mlc_rt_check(rt, x[0] >= 0, 1, 1, (int64_t)x[0]);
}
int32_t nothing(mlc_rt *rt, const int64_t *args) {
  (void)args;
  return mlc_rt_output_value(rt, 0, mlc_rt_optional(rt, mlc_rt_sequence(rt, 0, 0)));
}
"""
PROGRAM = Program(
    entries=[
        Entry(
            "forward",
            "add_bias",
            (Value("x", "float32", ("batch", 2)), Value("flags", "bool", ("n", None))),
            (Value("y", "float32", ("batch", 2)),),
        ),
        Entry("other", "nothing", (), (Value("s", "bfloat16", None, ("optional", "sequence", "tensor")),)),
    ],
    dims=[Dim("batch", 1, 64, 2)],
    metadata={"producer": 'quotes " and \\ and é and \x01', "kernels": [{"name": "k0"}]},
    nodes=["", "encoder/Ünïcode"],
    messages=["first", "must not be negative"],
    cpu_features="+sse2",
    weights_size=len(IMAGE),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, runtime: Path) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "host.c").write_text(HOST)
    host = compile_c(folder / "host.c", folder / "host.o")
    link_library([emit_program(PROGRAM), host], folder / "m.so", BytesImage(IMAGE), runtime=runtime)
    return folder / "m.so"


def test_signature(path: Path) -> None:
    model = mlc.load(path)
    assert list(model.entries) == ["forward", "other"]
    assert [str(i) for i in model.inputs] == ["float32[batch,2]", "bool[n,?]"]
    assert str(model.entry("other").outputs[0]) == "optional(sequence(bfloat16[...]))"
    batch, n = model.dims["batch"], model.dims["n"]
    assert (batch.lowest, batch.highest, batch.multiple, n.lowest, n.highest, n.multiple) == (1, 64, 2, 0, -1, 1)
    assert model.metadata == json.loads(PROGRAM.metadata_json())
    assert model.metadata["producer"] == PROGRAM.metadata["producer"]
    assert model.metadata["entries"][0]["inputs"][0] == {
        "name": "x", "kind": ["tensor"], "dtype": "float32", "dims": ["batch", 2],
    }  # fmt: skip


def test_run(path: Path) -> None:
    model = mlc.load(path)
    x, flags = np.arange(4, dtype=np.float32).reshape(2, 2), np.zeros((3, 1), bool)
    np.testing.assert_array_equal(model(x, flags)[0], x + 100)
    assert model.entry("other")() == [[]]
    with pytest.raises(mlc.runtime.ModelError, match="node 'encoder/Ünïcode': must not be negative .value -1"):
        model(x - 1, flags)
    with pytest.raises(mlc.runtime.InputError, match="multiples of 2"):
        model(np.zeros((3, 2), np.float32), flags)


def test_equal_descriptions_give_equal_objects() -> None:
    assert emit_program(PROGRAM) == emit_program(PROGRAM)


def test_bad_descriptions() -> None:
    entry = Entry("e", "e", (Value("x", "float31", (1,)),), ())
    with pytest.raises(ValueError, match="value 'x': dtype 'float31' cannot cross the artefact's interface"):
        program_module(Program([entry]))
    with pytest.raises(ValueError, match="32 bytes"):
        program_module(Program([], weights_hash=b"short"))
