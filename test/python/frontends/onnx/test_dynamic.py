"""Dynamic dimensions, run-time shapes, control flow and functions, at several extents."""

from __future__ import annotations

import numpy as np
import pytest
from evaluate import run
from harness import imported, parsed, reference, signless

from mlc.frontends.onnx import DimRange

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
RNG = np.random.default_rng(7)


def agree(text: str, *batches: dict[str, np.ndarray], types: str = "") -> None:
    """One import serves every batch of inputs, as onnxruntime has it."""
    model = parsed(text)
    module, store = imported(model)
    assert types in str(module)
    for inputs in batches:
        got = run(module, store, {name: signless(value) for name, value in inputs.items()})
        for value, want in zip(got.values(), reference(model, inputs), strict=True):
            assert value.shape == want.shape
            np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-6)


def floats(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return RNG.standard_normal(shape).astype(np.float32)


def test_reshape_chain_keeps_static_extents() -> None:
    """Shape, Gather, Mul, Concat, Reshape: only the products of dynamic extents are dynamic."""
    text = f"""{HEADER} main (float[N, S, 6] x) => (float[P, 2, 3] y)
    <int64 zero = {{0}}, int64 one = {{1}}, int64[1] at = {{0}}, int64[2] tail = {{2, 3}}> {{
      shape = Shape(x)
      n = Gather(shape, zero)
      s = Gather(shape, one)
      p = Mul(n, s)
      first = Unsqueeze(p, at)
      target = Concat<axis = 0>(first, tail)
      y = Reshape(x, target)
    }}"""
    agree(text, {"x": floats(2, 5, 6)}, {"x": floats(1, 1, 6)}, types="tensor<?x2x3xf32>")


def test_minus_one_cancels_equal_extents() -> None:
    """[N, S, 6] to [N, -1]: the hole is S * 6 and no division is left."""
    text = f"""{HEADER} main (float[N, S, 6] x) => (float[N, P] y)
    <int64[2] target = {{0, -1}}> {{ y = Reshape(x, target) }}"""
    agree(text, {"x": floats(2, 5, 6)}, {"x": floats(3, 1, 6)})
    assert "arith.divsi" not in str(imported(parsed(text))[0])


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(0, 9999, 1), (1, -1, 1), (-3, 9999, 1), (-1, -9999, -1), (5, 1, -2), (2, 3, 2), (7, 2, 1), (-100, 100, 3)],
)
def test_slices_of_dynamic_extents(start: int, end: int, step: int) -> None:
    """Python's wrapping and clamping, for extents that are short and long."""
    text = f"""{HEADER} main (float[2, N] x) => (float[2, M] y)
    <int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, int64[1] a = {{1}}, int64[1] d = {{{step}}}>
    {{ y = Slice(x, s, e, a, d) }}"""
    agree(text, *({"x": floats(2, extent)} for extent in (1, 3, 4, 6, 11)))


@pytest.mark.parametrize("steps", ["", ", , d"])
def test_slices_by_vectors_of_unknown_length(steps: str) -> None:
    """Dimensions for which the vectors have no element are kept, as in what PyTorch exports of EmbeddingBag."""
    text = f"""{HEADER} main (float[N, 5, 4] x, int64[K] s, int64[K] e, int64[K] d) => (float[A, B, C] y)
    {{ y = Slice(x, s, e{steps}) }}"""
    vectors = [([1], [3], [1]), ([0, 1], [9, -1], [1, 1]), ([], [], []), ([2, -1, 0], [4, 9, 3], [1, 1, 2])]
    agree(
        text,
        *({"x": floats(4, 5, 4), **dict(zip("sed", map(np.int64, vector), strict=True))} for vector in vectors),
    )


def test_run_time_shape_operands() -> None:
    """Sizes that are data: Expand, Range, ConstantOfShape, Tile, and a Reshape with codes."""
    text = f"""{HEADER} main (float[N, 1] x, int64[2] sizes, int64[2] codes)
    => (float[A, B] y, int64[C] r, float[D, E] t, float[F, G] z)
    <int64 zero = {{0}}, int64 one = {{1}}> {{
      y = Expand(x, sizes)
      limit = Gather(sizes, zero)
      r = Range(zero, limit, one)
      t = Tile(x, sizes)
      z = Reshape(y, codes)
    }}"""
    agree(
        text,
        {"x": floats(3, 1), "sizes": np.array([3, 4]), "codes": np.array([-1, 2])},
        {"x": floats(1, 1), "sizes": np.array([5, 2]), "codes": np.array([0, -1])},
        {"x": floats(2, 1), "sizes": np.array([1, 6]), "codes": np.array([6, 2])},
    )


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_same_padding_of_dynamic_extents(op: str, mode: str) -> None:
    """The padding follows the extent, and AveragePool does not count it."""
    text = f"""{HEADER} main (float[1, 2, H, W] x) => (float[1, 2, P, Q] y)
    {{ y = {op}<kernel_shape = [3, 2], strides = [2, 2], auto_pad = "{mode}">(x) }}"""
    agree(text, {"x": floats(1, 2, 7, 8)}, {"x": floats(1, 2, 6, 5)})


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_ceil_mode_of_dynamic_extents(op: str) -> None:
    """Rounding up, and dropping a window that starts in the padding."""
    text = f"""{HEADER} main (float[1, 1, W] x) => (float[1, 1, Q] y)
    {{ y = {op}<kernel_shape = [2], strides = [3], pads = [1, 1], ceil_mode = 1>(x) }}"""
    agree(text, *({"x": floats(1, 1, extent)} for extent in (3, 4, 5, 6, 7, 8)))


def test_loops() -> None:
    """A while loop with a run-time condition and scanned values, and a counted one whose carried extent grows."""
    text = f"""{HEADER} main (float x, int64 n, float[1] g) => (float last, float[K] seen, float[M] grown)
    <bool yes = {{1}}, float limit = {{10}}> {{
      last, seen = Loop(n, yes, x) <body = a (int64 i, bool c, float v) => (bool go, float w, float s) {{
        w = Add(v, v)
        s = Identity(w)
        go = Less(w, limit)
      }}>
      grown = Loop(n, yes, g) <body = b (int64 j, bool d, float[L] p) => (bool on, float[M] q) {{
        on = Identity(d)
        q = Concat<axis = 0>(p, g)
      }}>
    }}"""
    batches = [
        {"x": np.array(start, np.float32), "n": np.array(count), "g": floats(1)}
        for start, count in ((1.0, 10), (1.0, 2), (9.0, 5))
    ]
    agree(text, *batches)


def test_a_counted_loop_of_no_iterations() -> None:
    """A negative number of iterations is none."""
    text = f"""{HEADER} main (int64 n, float[2] g) => (float[K, 2] all) <bool yes = {{1}}> {{
      all = Loop(n, yes) <body = a (int64 i, bool c) => (bool go, float[2] s) {{
        go = Identity(c)
        s = Neg(g)
      }}>
    }}"""
    agree(text, *({"n": np.array(count), "g": floats(2)} for count in (3, 0, -3)))


def test_scan_reversed() -> None:
    """Scan over two inputs, one of them backwards, with an output along the second axis, reversed."""
    text = f"""{HEADER} main (float[2] s, float[T, 2] a, float[2, T] b) => (float[2] last, float[2, T] all) {{
      last, all = Scan<num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
                       scan_output_axes = [1], scan_output_directions = [1],
                       body = step (float[2] p, float[2] q, float[2] r) => (float[2] n, float[2] o) {{
        t = Mul(q, r)
        n = Add(p, t)
        o = Identity(n)
      }}>(s, a, b)
    }}"""
    agree(text, *({"s": floats(2), "a": floats(t, 2), "b": floats(2, t)} for t in (1, 4)))


def test_model_functions_with_attributes() -> None:
    """A function that calls another one with an attribute of its own."""
    text = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    main (float[N] x) => (float[N] y) { y = own.outer<slope = 0.25>(x) }
    <domain: "own", opset_import: ["" : 17, "own" : 1]>
    outer <slope>(x) => (z) { t = own.inner<alpha: float = @slope>(x) z = Add(t, x) }
    <domain: "own", opset_import: ["" : 17]>
    inner <alpha>(x) => (z) { z = LeakyRelu<alpha: float = @alpha>(x) }
    """
    agree(text, {"x": floats(5)}, {"x": floats(1)})
    assert 'loc("own.outer' not in str(imported(parsed(text))[0])


def test_explicit_broadcast_of_old_opsets() -> None:
    """Before opset 7 an axis says where the second operand lines up."""
    model = parsed("""<ir_version: 3, opset_import: ["" : 6]>
    main (float[2, 3, N] x, float[3] b) => (float[2, 3, N] y) { y = Add<broadcast = 1, axis = 1>(x, b) }""")
    module, store = imported(model)
    x, b = floats(2, 3, 5), floats(3)
    np.testing.assert_array_equal(run(module, store, {"x": x, "b": b})["y"], x + b[:, None])


@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align_sample_counts(ratio: int) -> None:
    """Without a sampling ratio each region takes as many samples as it has pixels in a cell."""
    text = f"""{HEADER} main (float[N, 2, H, W] x, float[R, 4] rois, int64[R] batch) => (float[R, 2, 3, 2] y)
    {{ y = RoiAlign<output_height = 3, output_width = 2, sampling_ratio = {ratio},
                    spatial_scale = 0.5>(x, rois, batch) }}"""
    rois = np.array([[0, 0, 8, 20], [3, 5, 4.5, 6], [-4, 2, 30, 12.5]], np.float32)
    agree(text, {"x": floats(2, 2, 12, 11), "rois": rois, "batch": np.array([0, 1, 1])})


def test_ranges_fix_extents() -> None:
    """A range of one extent makes a dimension static; the others are recorded."""
    model = parsed(f"{HEADER} main (float[N, K] x) => (float[N, K] y) {{ y = Neg(x) }}")
    module, _ = imported(model, dims={"N": DimRange(4, 4), "K": DimRange(8, None, 8)})
    text = str(module)
    assert "tensor<4x?xf32>" in text
    assert "mlc.dim_ranges = {K = array<i64: 8, -1, 8>}" in text


def test_any_value_can_be_an_output() -> None:
    """Outputs are chosen by name and nothing else is imported."""
    model = parsed(f"{HEADER} main (float[4] x) => (float[4] z) {{ y = Neg(x) z = Nonsense(y) }}")
    module, store = imported(model, outputs=["y"])
    np.testing.assert_array_equal(run(module, store, {"x": np.ones(4, np.float32)})["y"], -np.ones(4))


def test_squeeze_without_axes_keeps_what_the_run_tells() -> None:
    """Extents that are unknown are taken for larger ones than 1, and a run with a 1 fails and says why."""
    text = f"{HEADER} main (float[N, 1, M, 1] x) => (float[N, M] y) {{ y = Squeeze(x) }}"
    agree(text, {"x": floats(3, 1, 2, 1)}, {"x": floats(2, 1, 5, 1)}, types="mlc.check")
    module, store = imported(parsed(text))
    with pytest.raises(AssertionError, match="dimension 2 was compiled as one that stays: give axes to Squeeze"):
        run(module, store, {"x": floats(3, 1, 1, 1)})
    # Known extents need no check.
    module, _ = imported(parsed(text), input_shapes={"x": [1, 1, 4, 1]})
    assert "mlc.check" not in str(module)


def test_channels_that_the_scale_knows() -> None:
    """A normalization of any number of channels with three scales has three channels."""
    text = f"""{HEADER} main (float[N, C, W] x) => (float[N, C, W] y)
    <float[3] scale = {{1.0, 0.5, 2.0}}, float[3] bias = {{0.0, 1.0, 2.0}}> {{
      y = InstanceNormalization(x, scale, bias)
    }}"""
    agree(text, {"x": floats(2, 3, 5)}, {"x": floats(1, 3, 8)})
    with pytest.raises(Exception, match="different numbers of channels"):
        agree(text, {"x": floats(2, 4, 5)})
