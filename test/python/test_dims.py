"""`mlc.dims.DimAnalysis`: which extents are known to be equal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mlir import ir

from mlc.compiler_setup import new_context
from mlc.dims import DimAnalysis, constant_of


@pytest.fixture(autouse=True)
def context() -> Iterator[ir.Context]:
    with new_context() as made, ir.Location.unknown():
        yield made


class Analysed:
    """A parsed function with its analysis; values by their SSA name position: (block argument or operation number)."""

    def __init__(self, text: str) -> None:
        self.module = ir.Module.parse(text)
        self.func = next(op for op in self.module.body.operations if op.operation.name == "func.func")
        self.block = self.func.regions[0].blocks[0]
        self.analysis = DimAnalysis(self.func)

    def op(self, number: int) -> ir.Value:
        return self.block.operations[number].operation.results[0]

    def arg(self, number: int) -> ir.Value:
        return self.block.arguments[number]

    def text(self, value: ir.Value) -> list[str]:
        """Extents with symbols by name."""
        return [self.expr_text(d) for d in self.analysis.dims(value)]

    def expr_text(self, expr: ir.AffineExpr) -> str:
        result = str(expr)
        for position in reversed(range(len(self.analysis.symbol_names))):
            result = result.replace(f"s{position}", self.analysis.symbol_names[position])
        return result


def test_named_dimensions_are_shared_and_ranges_are_known() -> None:
    f = Analysed("""
      module attributes {mlc.dim_ranges = {batch = array<i64: 1, -1, 1>, seq = array<i64: 8, 512, 8>}} {
        func.func @f(%x: tensor<?x?x4xf32> {mlc.dims = ["batch", "seq", ""]},
                     %y: tensor<?x?xf32> {mlc.dims = ["batch", ""]}) -> tensor<?x?x4xf32> {
          return %x : tensor<?x?x4xf32>
        }
      }""")
    a, (batch, seq, four), (again, other) = f.analysis, f.analysis.dims(f.arg(0)), f.analysis.dims(f.arg(1))
    assert a.symbol_names[:2] == ["batch", "seq"]
    assert batch == again and not a.equal(other, batch) and constant_of(four) == 4
    assert a.known_range(seq) == (8, 512) and a.known_multiple(seq) == 8
    assert a.known_range(batch) == (1, None) and a.known_range(other) == (0, None)
    expr = a.symbols.add(a.symbols.mul(seq, a.expr(3)), a.expr(4))
    assert a.known_range(expr) == (28, 1540) and a.known_multiple(expr) == 4


def test_mlc_operations_use_the_shape_functions() -> None:
    f = Analysed("""
      func.func @f(%x: tensor<?x4xf32> {mlc.dims = ["n", ""]}, %y: tensor<?x4xf32> {mlc.dims = ["m", ""]}) {
        %0 = mlc.unary exp %x : tensor<?x4xf32>
        %1 = mlc.concat %0, %y {axis = 0 : i64} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
        %2 = mlc.transpose %1 {permutation = array<i64: 1, 0>} : tensor<?x4xf32> -> tensor<4x?xf32>
        %3 = mlc.binary add %x, %y : tensor<?x4xf32>
        %4 = mlc.binary mul %y, %3 : tensor<?x4xf32>
        %5 = mlc.nonzero %x : tensor<?x4xf32> -> tensor<2x?xi64>
        return
      }""")
    assert f.text(f.op(0)) == ["n", "4"]
    assert f.text(f.op(2)) == ["4", "n + m"]
    assert f.text(f.op(3))[0] not in ("n", "m")
    assert f.analysis.dims(f.op(3)) == f.analysis.dims(f.op(4))
    assert f.analysis.symbol_names[:2] == ["n", "m"]
    assert f.analysis.known_range(f.analysis.dims(f.op(5))[1]) == (0, None)


def test_index_arithmetic_sees_through_products_and_quotients() -> None:
    f = Analysed("""
      func.func @f(%x: tensor<?x?x64xf32> {mlc.dims = ["b", "s", ""]}) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c64 = arith.constant 64 : index
        %b = tensor.dim %x, %c0 : tensor<?x?x64xf32>
        %s = tensor.dim %x, %c1 : tensor<?x?x64xf32>
        %bs = arith.muli %b, %s : index
        %sb = arith.muli %s, %b : index
        %all = arith.muli %bs, %c64 : index
        %back = arith.divsi %all, %c64 : index
        %s2 = arith.divui %all, %b : index
        %s3 = arith.muli %s, %c64 : index
        %sum = arith.addi %b, %s : index
        %diff = arith.subi %sum, %b : index
        %max = arith.maxsi %s, %c0 : index
        %cmp = arith.cmpi sge, %sum, %c0 : index
        %sel = arith.select %cmp, %b, %s : index
        %rem = arith.remsi %all, %c64 : index
        %half = arith.ceildivsi %s, %c64 : index
        %apply = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 2)>(%b, %s)
        return
      }""")
    a = f.analysis
    assert a.equal(f.op(5), f.op(6)) and a.equal(f.op(8), f.op(5))
    assert a.equal(f.op(9), f.op(10)) and a.equal(f.op(12), f.op(4)) and a.equal(f.op(13), f.op(4))
    assert a.equal(f.op(15), f.op(3)) and constant_of(a.expr(f.op(16))) == 0
    assert not a.equal(f.op(17), f.op(4)) and a.known_range(f.op(17))[0] == 0
    assert f.expr_text(a.expr(f.op(18))) == "b + s * 2"
    assert a.equal(f.op(4), f.op(12)) and a.equal(3, 3) and not a.equal(f.op(3), 3)


def test_views_and_destinations() -> None:
    f = Analysed("""
      func.func @f(%x: tensor<?x?x8xf32> {mlc.dims = ["b", "s", ""]}, %n: index) {
        %c0 = arith.constant 0 : index
        %b = tensor.dim %x, %c0 : tensor<?x?x8xf32>
        %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
        %1 = tensor.extract_slice %x[0, 0, 0] [1, %n, 8] [1, 1, 1] : tensor<?x?x8xf32> to tensor<?x8xf32>
        %2 = tensor.empty(%b) : tensor<?x3xf32>
        %3 = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [%b, %n, 4, 2]
             : tensor<?x?x8xf32> into tensor<?x?x4x2xf32>
        %4 = tensor.cast %x : tensor<?x?x8xf32> to tensor<?x?x?xf32>
        %cst = arith.constant 0.0 : f32
        %5 = linalg.fill ins(%cst : f32) outs(%2 : tensor<?x3xf32>) -> tensor<?x3xf32>
        %6 = mlc.launch @k(%x) outs(%2) : (tensor<?x?x8xf32>) outs(tensor<?x3xf32>) -> tensor<?x3xf32>
        return
      }
      module @k attributes {mlc.kernel} {
        func.func @k(%a: tensor<?x?x8xf32>, %o: tensor<?x3xf32>) -> tensor<?x3xf32> { return %o : tensor<?x3xf32> }
      }""")
    a = f.analysis
    b, s, _ = a.dims(f.arg(0))
    assert a.dims(f.op(2))[0] == a.symbols.mul(s, b)
    assert a.dims(f.op(3))[0] == a.expr(f.arg(1)) and constant_of(a.dims(f.op(3))[1]) == 8
    assert a.dims(f.op(4))[0] == b and a.dims(f.op(8))[0] == b and a.dims(f.op(9))[0] == b
    assert f.text(f.op(5))[2:] == ["4", "2"] and f.text(f.op(6))[:2] == ["b", "s"] and f.text(f.op(6))[2] == "8"


def test_control_flow_keeps_what_every_path_agrees_on() -> None:
    f = Analysed("""
      func.func @f(%c: i1, %x: tensor<?x?xf32> {mlc.dims = ["b", "s"]}, %n: index) {
        %0 = scf.if %c -> (tensor<?x?xf32>) {
          %y = mlc.unary exp %x : tensor<?x?xf32>
          scf.yield %y : tensor<?x?xf32>
        } else {
          %y = mlc.concat %x, %x {axis = 1 : i64} : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
          scf.yield %y : tensor<?x?xf32>
        }
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %2:2 = scf.for %i = %c0 to %n step %c1 iter_args(%u = %x, %v = %x) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
          %w = mlc.concat %u, %v {axis = 1 : i64} : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
          %z = mlc.unary exp %v : tensor<?x?xf32>
          scf.yield %w, %z : tensor<?x?xf32>, tensor<?x?xf32>
        }
        %3 = scf.while (%a = %x) : (tensor<?x?xf32>) -> tensor<?x?xf32> {
          scf.condition(%c) %a : tensor<?x?xf32>
        } do {
        ^bb0(%a: tensor<?x?xf32>):
          %z = mlc.unary exp %a : tensor<?x?xf32>
          scf.yield %z : tensor<?x?xf32>
        }
        return
      }""")
    a = f.analysis
    b, s = a.dims(f.arg(1))
    assert a.dims(f.op(0))[0] == b and a.dims(f.op(0))[1] != s
    loop = f.block.operations[3].operation
    growing, steady = (a.dims(r) for r in loop.results)
    assert growing[0] == b and growing[1] != s and steady == [b, s]
    assert a.dims(f.op(4)) == [b, s]


def test_a_value_without_extents_is_an_error() -> None:
    f = Analysed("func.func @f(%x: f32) { return }")
    with pytest.raises(ValueError, match="a value of type f32 has neither extents nor an index value"):
        f.analysis.dims(f.arg(0))


def test_dimensions_that_are_sums_of_others() -> None:
    f = Analysed("""
      func.func @f(%mask: tensor<?x?xf32> {mlc.dims = ["past + new", "2*new - 1"]}, %x: tensor<?xf32> {mlc.dims = ["past"]},
                   %y: tensor<?x?xf32> {mlc.dims = ["new", "other + new"]}) -> tensor<?xf32> {
        return %x : tensor<?xf32>
      }""")
    a, (both, twice), (past,), (new, other) = f.analysis, *(f.analysis.dims(f.arg(i)) for i in range(3))
    assert a.symbol_names[:3] == ["past", "new", "other + new"]
    assert a.equal(both, a.symbols.add(new, past)) and a.equal(a.symbols.add(twice, a.expr(1)), a.symbols.add(new, new))
    assert not a.equal(other, new)  # of what no dimension is named
