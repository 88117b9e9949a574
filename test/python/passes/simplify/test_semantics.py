"""Every simplification leaves the function's results as they were: interpreted before and after the passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from mlir import ir

from mlc.compiler_setup import new_context
from mlc.interp.module import run_function
from mlc.passes.base import run_pipeline
from mlc.passes.simplify.weight_recipes import read_recipes, store_of, write_recipes
from mlc.pipelines.cpu import phases
from mlc.targets.cpu import CpuTarget
from mlc.weights import Store, WeightError, registry

RNG = np.random.default_rng(5)
SIMPLIFY = dict(phases(CpuTarget("", "", "", "")))["simplify"]


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with new_context(), ir.Location.unknown():
        yield


def rand(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def entry(module: ir.Module) -> Any:
    return next(op for op in module.body.operations if op.operation.name == "func.func")


def names(module: ir.Module) -> list[str]:
    """Names of all operations."""
    found: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def check(
    text: str, inputs: list[list[Any]], weights: dict[str, np.ndarray] | None = None, tolerance: float = 1e-5
) -> ir.Module:
    """Interprets the function for each list of inputs before and after simplification; gives the simplified module."""
    module, store = ir.Module.parse(text), Store("test-semantics")
    for name, array in (weights or {}).items():
        store.add(name, array)
    registry.register(store)
    module.operation.attributes["mlc.store"] = ir.StringAttr.get(store.key)
    before = [run_function(entry(module), values, store) for values in inputs]
    run_pipeline(module, SIMPLIFY)
    simplified_store = store_of(module)
    for values, want in zip(inputs, before, strict=True):
        have = run_function(entry(module), values, simplified_store)
        for one, other in zip(have, want, strict=True):
            np.testing.assert_allclose(
                np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=tolerance, atol=tolerance
            )
    registry.release(store.key)
    return module


def test_shape_chain_of_a_split_into_heads() -> None:
    module = check(
        """
      func.func @f(%x: tensor<?x?x12xf32>) -> tensor<?x?x?x?xf32> {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c3 = arith.constant 3 : index
        %shape = mlc.shape_of %x : tensor<?x?x12xf32> -> tensor<3xi64>
        %front = mlc.slice %shape [0] [2] [1] : tensor<3xi64> -> tensor<2xi64>
        %tail = mlc.constant dense<[3, -1]> : tensor<2xi64>
        %last = mlc.slice %shape [2] [1] [1] : tensor<3xi64> -> tensor<1xi64>
        %three = mlc.constant dense<[3]> : tensor<1xi64>
        %width = mlc.binary div %last, %three : tensor<1xi64>
        %head = mlc.slice %tail [0] [1] [1] : tensor<2xi64> -> tensor<1xi64>
        %all = mlc.concat %front, %head, %width {axis = 0 : i64}
          : tensor<2xi64>, tensor<1xi64>, tensor<1xi64> -> tensor<4xi64>
        %e0 = tensor.extract %all[%c0] : tensor<4xi64>
        %e1 = tensor.extract %all[%c1] : tensor<4xi64>
        %e2 = tensor.extract %all[%c2] : tensor<4xi64>
        %e3 = tensor.extract %all[%c3] : tensor<4xi64>
        %n0 = arith.index_cast %e0 : i64 to index
        %n1 = arith.index_cast %e1 : i64 to index
        %n2 = arith.index_cast %e2 : i64 to index
        %n3 = arith.index_cast %e3 : i64 to index
        %r = mlc.reshape %x [%n0, %n1, %n2, %n3] : tensor<?x?x12xf32> -> tensor<?x?x?x?xf32>
        %t = mlc.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf32>
        return %t : tensor<?x?x?x?xf32>
      }""",
        [[rand(2, 5, 12)], [rand(1, 1, 12)], [rand(0, 3, 12)]],
    )
    assert "tensor<?x3x?x4xf32>" in str(entry(module).operation.attributes["function_type"])
    assert not {"mlc.shape_of", "mlc.concat", "tensor.extract"} & set(names(module))


@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div", "mod", "fmod", "max", "min"])
def test_scalar_arithmetic_has_the_signs_of_the_tensor_operations(kind: str) -> None:
    module = check(
        f"""
      func.func @f(%x: tensor<2xi64>) -> (index, index) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %k = mlc.constant dense<[3, -4]> : tensor<2xi64>
        %0 = mlc.binary {kind} %x, %k : tensor<2xi64>
        %a = tensor.extract %0[%c0] : tensor<2xi64>
        %b = tensor.extract %0[%c1] : tensor<2xi64>
        %i = arith.index_cast %a : i64 to index
        %j = arith.index_cast %b : i64 to index
        return %i, %j : index, index
      }}""",
        [[np.int64([7, 9])], [np.int64([-7, -9])], [np.int64([0, 1])]],
    )
    assert "mlc.binary" not in names(module)


@pytest.mark.parametrize(("dtype", "tolerance"), [("f32", 1e-4), ("f64", 1e-9), ("f16", 2e-2)])
@pytest.mark.parametrize("op", ["conv", "conv_transpose"])
def test_batch_norm_and_arithmetic_fold_into_convolutions(op: str, dtype: str, tolerance: float) -> None:
    numpy = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[dtype]
    filter_shape, extra = ("6x2x3", "") if op == "conv" else ("4x3x3", "output_padding = array<i64: 0>,")
    module = check(
        f"""
      func.func @f(%x: tensor<?x4x8x{dtype}>) -> tensor<?x6x?x{dtype}> {{
        %w = mlc.weight "w" : tensor<{filter_shape}x{dtype}>
        %b = mlc.weight "b" : tensor<6x{dtype}>
        %s = mlc.weight "s" : tensor<6x{dtype}>
        %m = mlc.weight "m" : tensor<6x{dtype}>
        %v = mlc.weight "v" : tensor<6x{dtype}>
        %k = mlc.weight "k" : tensor<1x6x1x{dtype}>
        %two = mlc.constant dense<2.0> : tensor<{dtype}>
        %0 = mlc.{op} %x, %w bias(%b : tensor<6x{dtype}>) {{strides = array<i64: 1>, padding = array<i64: 0, 0>, {extra}
          dilations = array<i64: 1>, groups = 2 : i64}}
          : tensor<?x4x8x{dtype}>, tensor<{filter_shape}x{dtype}> -> tensor<?x6x?x{dtype}>
        %1 = mlc.batch_norm %0, %s, %b, %m, %v {{epsilon = 1.0e-3 : f64}} : tensor<?x6x?x{dtype}>, tensor<6x{dtype}>,
          tensor<6x{dtype}>, tensor<6x{dtype}>, tensor<6x{dtype}> -> tensor<?x6x?x{dtype}>
        %2 = mlc.binary mul %k, %1 : tensor<1x6x1x{dtype}>, tensor<?x6x?x{dtype}> -> tensor<?x6x?x{dtype}>
        %3 = mlc.binary sub %2, %two : tensor<?x6x?x{dtype}>, tensor<{dtype}> -> tensor<?x6x?x{dtype}>
        %4 = mlc.binary div %3, %two : tensor<?x6x?x{dtype}>, tensor<{dtype}> -> tensor<?x6x?x{dtype}>
        return %4 : tensor<?x6x?x{dtype}>
      }}""",
        [[rand(3, 4, 8, dtype=numpy)]],
        {
            "w": rand(*[int(n) for n in filter_shape.split("x")], dtype=numpy),
            "b": rand(6, dtype=numpy),
            "s": rand(6, dtype=numpy),
            "m": rand(6, dtype=numpy),
            "v": np.abs(rand(6, dtype=numpy)) + numpy(0.5),
            "k": rand(1, 6, 1, dtype=numpy),
        },
        tolerance,
    )
    assert [n for n in names(module) if n.startswith("mlc.")] == ["mlc.weight", "mlc.weight", f"mlc.{op}"]


def test_weight_subgraphs_share_and_chain() -> None:
    module = check(
        """
      func.func @f(%x: tensor<4x5xf32>) -> (tensor<4x3xf32>, tensor<3x5xf32>) {
        %k = arith.constant 1 : index
        %w = mlc.weight "w" : tensor<5x3xf32>
        %v, %i = mlc.topk %w, %k {axis = 1 : i64} : tensor<5x3xf32> -> tensor<5x1xf32>, tensor<5x1xi64>
        %s = mlc.binary sub %w, %v : tensor<5x3xf32>, tensor<5x1xf32> -> tensor<5x3xf32>
        %p = mlc.pad constant %s low [0, 0] high [0, 0] : tensor<5x3xf32> -> tensor<5x3xf32>
        %t = mlc.transpose %p {permutation = array<i64: 1, 0>} : tensor<5x3xf32> -> tensor<3x5xf32>
        %0 = mlc.matmul %x, %p : tensor<4x5xf32>, tensor<5x3xf32> -> tensor<4x3xf32>
        return %0, %t : tensor<4x3xf32>, tensor<3x5xf32>
      }""",
        [[rand(4, 5)]],
        {"w": rand(5, 3)},
    )
    assert len(read_recipes(module)) == 2
    assert not {"mlc.topk", "mlc.binary", "mlc.transpose"} & set(names(module))


def test_loops_and_branches_on_shapes() -> None:
    text = """
      func.func @f(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> (tensor<?x3xf32>, index) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %shape = mlc.shape_of %x : tensor<?x3xf32> -> tensor<2xi64>
        %limit = mlc.constant dense<2> : tensor<i64>
        %first = mlc.constant dense<0> : tensor<i64>
        %n = mlc.gather %shape, %first {axis = 0 : i64} : tensor<2xi64>, tensor<i64> -> tensor<i64>
        %small = mlc.compare lt %n, %limit : tensor<i64>, tensor<i64> -> tensor<i1>
        %c = tensor.extract %small[] : tensor<i1>
        %e = tensor.extract %n[] : tensor<i64>
        %count = arith.index_cast %e : i64 to index
        %0 = scf.if %c -> (tensor<?x3xf32>) {
          scf.yield %y : tensor<?x3xf32>
        } else {
          %r = scf.for %i = %c0 to %count step %c1 iter_args(%h = %x) -> (tensor<?x3xf32>) {
            %z = mlc.binary add %h, %x : tensor<?x3xf32>
            scf.yield %z : tensor<?x3xf32>
          }
          scf.yield %r : tensor<?x3xf32>
        }
        %both = mlc.concat %0, %y {axis = 0 : i64} : tensor<?x3xf32>, tensor<?x3xf32> -> tensor<?x3xf32>
        %d = tensor.dim %both, %c0 : tensor<?x3xf32>
        return %0, %d : tensor<?x3xf32>, index
      }"""
    check(text, [[rand(1, 3), rand(4, 3)], [rand(5, 3), rand(4, 3)]])


def test_constants_of_every_kind_fold_to_what_the_operations_give() -> None:
    module = check(
        """
      func.func @f() -> (tensor<4xf32>, tensor<2xi64>, tensor<3xi64>, tensor<i1>) {
        %k = arith.constant 2 : index
        %a = mlc.constant dense<[[1.5, -2.0], [0.25, 8.0]]> : tensor<2x2xf32>
        %0 = mlc.reshape %a [4] : tensor<2x2xf32> -> tensor<4xf32>
        %1 = mlc.activation gelu %0 : tensor<4xf32>
        %v, %i = mlc.topk %1, %k {axis = 0 : i64} : tensor<4xf32> -> tensor<2xf32>, tensor<2xi64>
        %j = mlc.iota [3] {axis = 0 : i64} : tensor<3xi64>
        %z = mlc.compare lt %v, %v : tensor<2xf32>, tensor<2xf32> -> tensor<2xi1>
        %any = mlc.reduce or %z {axes = array<i64: 0>} : tensor<2xi1> -> tensor<i1>
        return %1, %i, %j, %any : tensor<4xf32>, tensor<2xi64>, tensor<3xi64>, tensor<i1>
      }""",
        [[]],
    )
    assert {n for n in names(module) if n.startswith("mlc.")} == {"mlc.constant"}


def test_recipes_survive_printing_and_parsing() -> None:
    text = """
      func.func @f() -> tensor<3x2xbf16> {
        %w = mlc.weight "a \\"quoted\\" name" : tensor<2x3xbf16>
        %b = mlc.constant dense<[1.5, 2.5, -3.0]> : tensor<3xbf16>
        %s = mlc.slice %w [0, 2] [2, 3] [1, -1] : tensor<2x3xbf16> -> tensor<2x3xbf16>
        %r = mlc.statistic mean %s {axes = array<i64: 0>, keepdims = true} : tensor<2x3xbf16> -> tensor<1x3xbf16>
        %0 = mlc.binary add %s, %r : tensor<2x3xbf16>, tensor<1x3xbf16> -> tensor<2x3xbf16>
        %1 = mlc.binary mul %0, %b : tensor<2x3xbf16>, tensor<3xbf16> -> tensor<2x3xbf16>
        %t = mlc.transpose %1 {permutation = array<i64: 1, 0>} : tensor<2x3xbf16> -> tensor<3x2xbf16>
        return %t : tensor<3x2xbf16>
      }"""
    module = ir.Module.parse(text)
    run_pipeline(module, "mlc-hoist-weights")
    recipes = read_recipes(module)
    again = read_recipes(ir.Module.parse(str(module)))
    assert len(recipes) == 1 and {n: r.digest() for n, r in recipes.items()} == {
        n: r.digest() for n, r in again.items()
    }
    assert {n: r.to_json() for n, r in recipes.items()} == {n: r.to_json() for n, r in again.items()}
    write_recipes(module, {})
    assert "mlc.recipes" not in module.operation.attributes


def test_a_module_without_its_store_is_an_error() -> None:
    module = ir.Module.parse('module attributes {mlc.store = "nowhere"} {}')
    with pytest.raises(WeightError, match='no weight store is loaded for the module\'s mlc.store = "nowhere"'):
        store_of(module)
