"""Host programs with hand-written kernels: control flow, buffers and results, end to end without a front end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mlc

# out[i] = a[i] + b[i] over [n], and the sum of both extents' product check: one work item per element.
ADD = """
module @add attributes {mlc.kernel} {
  func.func @add(%a: memref<f32> {llvm.noalias}, %b: memref<f32> {llvm.noalias}, %o: memref<f32> {llvm.noalias},
                 %n: index, %m: index, %k: index, %error: memref<2xi64>, %begin: index, %end: index) {
    %c1 = arith.constant 1 : index
    %A = memref.reinterpret_cast %a to offset: [0], sizes: [%n], strides: [1] : memref<f32> to memref<?xf32>
    %B = memref.reinterpret_cast %b to offset: [0], sizes: [%n], strides: [1] : memref<f32> to memref<?xf32>
    %O = memref.reinterpret_cast %o to offset: [0], sizes: [%n], strides: [1] : memref<f32> to memref<?xf32>
    scf.for %i = %begin to %end step %c1 {
      %x = memref.load %A[%i] : memref<?xf32>
      %y = memref.load %B[%i] : memref<?xf32>
      %s = arith.addf %x, %y : f32
      memref.store %s, %O[%i] : memref<?xf32>
    }
    return
  }
  func.func @add_grid(%n: index, %m: index, %k: index) -> index {
    return %n : index
  }
}
"""
CALL = "(tensor<?xf32>, tensor<?xf32>) outs(tensor<?xf32>) -> tensor<?xf32>"


def _compile(tmp_path: Path, function: str, **options: object) -> mlc.runtime.loader.Model:  # type: ignore[name-defined]
    source = tmp_path / "program.mlir"
    source.write_text(f'module attributes {{mlc.phase = "tile"}} {{\n{function}\n{ADD}}}\n')
    return mlc.compile(source, **options)  # type: ignore[arg-type]


def _vector(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


def test_loop_with_carried_values_that_are_exchanged(tmp_path: Path) -> None:
    model = _compile(
        tmp_path,
        f"""
func.func @fibonacci(%a: tensor<?xf32> {{mlc.dims = ["n"]}}, %b: tensor<?xf32> {{mlc.dims = ["n"]}},
                     %times: tensor<i64>)
    -> (tensor<?xf32>, tensor<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tensor.extract %times[] : tensor<i64>
  %count = arith.index_cast %t : i64 to index
  %r:2 = scf.for %i = %c0 to %count step %c1 iter_args(%p = %a, %q = %b) -> (tensor<?xf32>, tensor<?xf32>) {{
    %n = tensor.dim %p, %c0 : tensor<?xf32>
    %e = tensor.empty(%n) : tensor<?xf32>
    %s = mlc.launch @add(%p, %q) outs(%e) : {CALL}
    scf.yield %q, %s : tensor<?xf32>, tensor<?xf32>
  }}
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xf32>
}}""",
    )
    a, b = _vector(100), _vector(100, 1)
    for times in (0, 1, 6):
        got = model(a, b, np.int64(times))
        p, q = a, b
        for _ in range(times):
            p, q = q, p + q
        np.testing.assert_array_equal(got[0], p)
        np.testing.assert_array_equal(got[1], q)


def test_a_loop_that_grows_its_value_and_a_branch(tmp_path: Path) -> None:
    model = _compile(
        tmp_path,
        f"""
func.func @branch(%a: tensor<?xf32> {{mlc.dims = ["n"]}}, %flag: tensor<i1>, %keep: tensor<i64>) -> tensor<?xf32> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %k64 = tensor.extract %keep[] : tensor<i64>
  %k = arith.index_cast %k64 : i64 to index
  %f = tensor.extract %flag[] : tensor<i1>
  %r = scf.if %f -> (tensor<?xf32>) {{
    %e = tensor.empty(%n) : tensor<?xf32>
    %d = mlc.launch @add(%a, %a) outs(%e) : {CALL}
    %g = mlc.launch @add(%d, %d) outs(%e) : {CALL}
    scf.yield %g : tensor<?xf32>
  }} else {{
    scf.yield %a : tensor<?xf32>
  }}
  %w = scf.while (%p = %r) : (tensor<?xf32>) -> tensor<?xf32> {{
    %m = tensor.dim %p, %c0 : tensor<?xf32>
    %more = arith.cmpi sgt, %m, %k : index
    scf.condition(%more) %p : tensor<?xf32>
  }} do {{
  ^bb0(%p: tensor<?xf32>):
    %c2 = arith.constant 2 : index
    %m = tensor.dim %p, %c0 : tensor<?xf32>
    %half = arith.divui %m, %c2 : index
    %e = tensor.empty(%half) : tensor<?xf32>
    %s = tensor.extract_slice %p[0] [%half] [1] : tensor<?xf32> to tensor<?xf32>
    %t = mlc.launch @add(%s, %p) outs(%e) : {CALL}
    scf.yield %t : tensor<?xf32>
  }}
  return %w : tensor<?xf32>
}}""",
    )
    a = _vector(64)
    for flag in (True, False):
        for keep in (64, 10):
            (got,) = model(a, np.bool_(flag), np.int64(keep))
            want = a * 4 if flag else a
            while len(want) > keep:
                want = want[: len(want) // 2] * 2
            np.testing.assert_array_equal(got, want)


def test_returned_inputs_views_and_one_value_twice(tmp_path: Path) -> None:
    model = _compile(
        tmp_path,
        f"""
func.func @results(%a: tensor<?xf32> {{mlc.dims = ["n"], mlc.name = "a"}})
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x1xf32>, tensor<3xi1>) {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %s = mlc.launch @add(%a, %a) outs(%e) : {CALL}
  %t = mlc.launch @add(%s, %a) outs(%e) : {CALL}
  %v = tensor.expand_shape %t [[0, 1]] output_shape [%n, 1] : tensor<?xf32> into tensor<?x1xf32>
  %c = mlc.constant dense<[true, false, true]> : tensor<3xi1>
  return %a, %s, %s, %v, %c : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x1xf32>, tensor<3xi1>
}}""",
    )
    a = _vector(50)
    same, twice, again, thrice, flags = model(a)
    np.testing.assert_array_equal(same, a)
    np.testing.assert_array_equal(twice, a + a)
    np.testing.assert_array_equal(again, a + a)
    np.testing.assert_array_equal(thrice, (a + a + a)[:, None])
    assert flags.dtype == np.bool_ and flags.tolist() == [True, False, True]
    assert same is not a and not np.shares_memory(twice, again)


def test_results_without_elements_that_nothing_writes(tmp_path: Path) -> None:
    model = _compile(
        tmp_path,
        """
func.func @empty(%a: tensor<?xf32> {mlc.dims = ["n"]}) -> (tensor<0x3xf32>, tensor<?x0xi64>, tensor<2x0xi1>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %e = tensor.empty() : tensor<0x3xf32>
  %f = tensor.empty(%n) : tensor<?x0xi64>
  %g = tensor.empty() : tensor<0xi1>
  %v = tensor.expand_shape %g [[0, 1]] output_shape [2, 0] : tensor<0xi1> into tensor<2x0xi1>
  return %e, %f, %v : tensor<0x3xf32>, tensor<?x0xi64>, tensor<2x0xi1>
}""",
    )
    shapes = [(v.shape, v.dtype) for v in model(_vector(5))]
    assert shapes == [((0, 3), np.float32), ((5, 0), np.int64), ((2, 0), np.bool_)]


@pytest.mark.parametrize("opt_level", [0, 3])
def test_a_chain_reuses_memory_and_stays_right(tmp_path: Path, opt_level: int) -> None:
    lines = [f"%v{i + 1} = mlc.launch @add(%v{i}, %v{max(i - 1, 0)}) outs(%e) : {CALL}" for i in range(30)]
    model = _compile(
        tmp_path,
        f"""
func.func @chain(%v0: tensor<?xf32> {{mlc.dims = ["n"], mlc.name = "v"}}) -> tensor<?xf32> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %v0, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  {chr(10).join(lines)}
  return %v30 : tensor<?xf32>
}}""",
        opt_level=opt_level,
    )
    # Three values are in use at a time: 3 * 4 bytes an element, in units of 64.
    assert eval(model.metadata["memory"]["chain"], {"n": 1}) <= 3 * 64
    v = [_vector(1000)]
    for i in range(30):
        v.append(v[i] + v[max(i - 1, 0)])
    np.testing.assert_array_equal(model(v[0])[0], v[30])


def test_a_check_stops_the_run(tmp_path: Path) -> None:
    model = _compile(
        tmp_path,
        f"""
func.func @checked(%a: tensor<?xf32> {{mlc.dims = ["n"]}}) -> tensor<?xf32> {{
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %ok = arith.cmpi slt, %n, %c9 : index
  mlc.check %ok, %n, "fewer than nine, please" loc("the/node")
  %e = tensor.empty(%n) : tensor<?xf32>
  %s = mlc.launch @add(%a, %a) outs(%e) : {CALL}
  return %s : tensor<?xf32>
}}""",
    )
    assert model(_vector(8))[0].shape == (8,)
    with pytest.raises(RuntimeError, match=r"node 'the/node': fewer than nine, please \(value 9\)"):
        model(_vector(9))
