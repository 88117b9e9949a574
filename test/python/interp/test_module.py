"""`mlc.interp.module.run_function`: whole functions with control flow, sizes, weights and calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from mlir import ir

from mlc.compiler_setup import new_context
from mlc.interp import InterpError
from mlc.interp.from_ir import elements
from mlc.interp.module import run_function
from mlc.weights import Store


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with new_context(), ir.Location.unknown():
        yield


def run(text: str, *inputs: Any, store: Store | None = None, name: str = "f") -> list[Any]:
    module = ir.Module.parse(text)
    for op in module.body.operations:
        if ir.StringAttr(op.operation.attributes["sym_name"]).value == name:
            return run_function(op, inputs, store)
    raise AssertionError(name)


def test_dynamic_sizes_and_weights() -> None:
    store = Store()
    w = np.arange(12, dtype=np.float32).reshape(3, 4)
    store.add("w", w)
    text = """
      func.func @f(%x: tensor<?x3xf32>) -> tensor<?xf32> {
        %c0 = arith.constant 0 : index
        %c4 = arith.constant 4 : index
        %n = tensor.dim %x, %c0 : tensor<?x3xf32>
        %m = arith.muli %n, %c4 : index
        %w = mlc.weight "w" : tensor<3x4xf32>
        %0 = mlc.matmul %x, %w : tensor<?x3xf32>, tensor<3x4xf32> -> tensor<?x4xf32>
        %1 = mlc.reshape %0 [%m] : tensor<?x4xf32> -> tensor<?xf32>
        return %1 : tensor<?xf32>
      }"""
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run(text, x, store=store)[0], (x @ w).reshape(-1))
    with pytest.raises(InterpError, match="no weight store was given"):
        run(text, x)
    with pytest.raises(InterpError, match=r"input 0 is float32\[2, 4\], the function takes tensor<\?x3xf32>"):
        run(text, np.ones((2, 4), np.float32), store=store)


def test_one_of_a_stack_of_weights() -> None:
    store = Store()
    stack = np.arange(12, dtype=np.float32).reshape(3, 4)
    store.add("w", stack)
    text = """
      func.func @f(%i: index) -> tensor<4xf32> {
        %w = mlc.weight "w" [%i of 3] : tensor<4xf32>
        return %w : tensor<4xf32>
      }"""
    for number in range(3):
        np.testing.assert_array_equal(run(text, number, store=store)[0], stack[number])
    for number in (-1, 3):
        with pytest.raises(InterpError, match=f"weight {number} of 'w' is wanted, which is a stack of 3"):
            run(text, number, store=store)


def test_loops_and_branches() -> None:
    text = """
      func.func @f(%n: index, %x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<2xf32>) {
          %r = arith.remsi %i, %c2 : index
          %even = arith.cmpi eq, %r, %c0 : index
          %b = scf.if %even -> (tensor<2xf32>) {
            %y = mlc.binary add %a, %x : tensor<2xf32>
            scf.yield %y : tensor<2xf32>
          } else {
            scf.yield %a : tensor<2xf32>
          }
          scf.yield %b : tensor<2xf32>
        }
        %1:2 = scf.while (%k = %c0, %a = %x) : (index, tensor<2xf32>) -> (index, tensor<2xf32>) {
          %go = arith.cmpi slt, %k, %n : index
          scf.condition(%go) %k, %a : index, tensor<2xf32>
        } do {
        ^bb0(%k: index, %a: tensor<2xf32>):
          %y = func.call @double(%a) : (tensor<2xf32>) -> tensor<2xf32>
          %next = arith.addi %k, %c1 : index
          scf.yield %next, %y : index, tensor<2xf32>
        }
        return %0, %1#1 : tensor<2xf32>, tensor<2xf32>
      }
      func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = mlc.binary add %x, %x : tensor<2xf32>
        return %0 : tensor<2xf32>
      }"""
    x = np.float32([1, 2])
    added, doubled = run(text, 5, x)
    np.testing.assert_array_equal(added, 4 * x)
    np.testing.assert_array_equal(doubled, 32 * x)
    for same in run(text, 0, x):
        np.testing.assert_array_equal(same, x)


@pytest.mark.parametrize(
    ("op", "type_", "operands", "want"),
    [
        ("arith.divsi", "index", (-7, 2), -3),
        ("arith.floordivsi", "index", (-7, 2), -4),
        ("arith.ceildivsi", "index", (7, 2), 4),
        ("arith.remsi", "index", (-7, 2), -1),
        ("arith.divui", "i64", (-1, 2), 2**63 - 1),
        ("arith.maxui", "i64", (-1, 2), -1),
        ("arith.addi", "i64", (2**63 - 1, 1), -(2**63)),
        ("arith.minsi", "index", (3, -2), -2),
    ],
)
def test_scalar_arithmetic(op: str, type_: str, operands: Sequence[int], want: int) -> None:
    text = f"""func.func @f(%a: {type_}, %b: {type_}) -> {type_} {{
      %0 = {op} %a, %b : {type_}
      return %0 : {type_}
    }}"""
    assert run(text, *operands) == [want]


def test_conversions_and_elements() -> None:
    text = """
      func.func @f(%x: tensor<3xi64>) -> (tensor<2xi64>, f32, i1) {
        %c1 = arith.constant 1 : index
        %e = tensor.extract %x[%c1] : tensor<3xi64>
        %i = arith.index_cast %e : i64 to index
        %t = arith.trunci %e : i64 to i8
        %w = arith.extui %t : i8 to i64
        %f = arith.sitofp %t : i8 to f32
        %half = arith.constant 5.000000e-01 : f32
        %g = arith.mulf %f, %half : f32
        %small = arith.cmpf olt, %g, %half : f32
        %r = tensor.from_elements %w, %e : tensor<2xi64>
        return %r, %g, %small : tensor<2xi64>, f32, i1
      }"""
    pair, product, small = run(text, np.int64([0, 300 - 512, 9]))
    np.testing.assert_array_equal(pair, [44, -212])
    assert product == 22.0 and small is False


def test_sequences_and_errors_name_the_node() -> None:
    text = """
      func.func @f(%x: tensor<?xf32>, %at: tensor<i64>) -> tensor<?xf32> {
        %s = mlc.sequence_make(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> !mlc.seq<tensor<?xf32>>
        %0 = mlc.sequence_at %s, %at : !mlc.seq<tensor<?xf32>>, tensor<i64> -> tensor<?xf32> loc("net/pick")
        return %0 : tensor<?xf32>
      }"""
    x = np.float32([1, 2, 3])
    np.testing.assert_array_equal(run(text, x, np.array(-1))[0], x)
    with pytest.raises(InterpError, match="at net/pick: sequence position 5 is out of range"):
        run(text, x, np.array(5))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("dense<[1.5, 2.0]> : tensor<2xbf16>", np.array([1.5, 2], ml_dtypes.bfloat16)),
        ("dense<[0x7FC0, 0xFF80]> : tensor<2xbf16>", np.array([np.nan, -np.inf], ml_dtypes.bfloat16)),
        ("dense<[[1, -2], [7, -8]]> : tensor<2x2xi4>", np.array([[1, -2], [7, -8]], ml_dtypes.int4)),
        ("dense<1.5> : tensor<2xf8E5M2>", np.array([1.5, 1.5], ml_dtypes.float8_e5m2)),
        ("dense<true> : tensor<3x7xi1>", np.ones((3, 7), bool)),
        ("dense<-3> : tensor<2xi4>", np.array([-3, -3], ml_dtypes.int4)),
        ("dense<0xFF80> : tensor<2xbf16>", np.array([-np.inf, -np.inf], ml_dtypes.bfloat16)),
        ("dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
        ("dense<> : tensor<0xf32>", np.zeros(0, np.float32)),
        ("dense<-3> : tensor<i64>", np.array(-3)),
    ],
)
def test_elements(text: str, want: np.ndarray) -> None:
    have = elements(ir.Attribute.parse(text))
    assert have.dtype == want.dtype and have.shape == want.shape
    np.testing.assert_array_equal(have.astype(np.float64), want.astype(np.float64))
