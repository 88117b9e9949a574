"""Building operations from Python: inferred types, mixed sizes, constants of every dtype."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest
from mlir import ir
from mlir.dialects import func

from mlc.compiler_setup import new_context
from mlc.dialects import mlc as m
from mlc.dialects.builders import DYNAMIC, element_type, elements


@pytest.fixture
def block() -> Iterator[ir.Block]:
    """The body of a function (tensor<?x4xf32>, tensor<?x4xf32>, index)."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        tensor = ir.Type.parse("tensor<?x4xf32>")
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ([tensor, tensor, ir.IndexType.get()], []))
        body = function.add_entry_block()
        with ir.InsertionPoint(body):
            yield body
            func.ReturnOp([])
        module.operation.verify()
        text = str(module)
        assert str(ir.Module.parse(text)) == text


def test_result_types_are_inferred(block: ir.Block) -> None:
    x, y, n = block.arguments
    values, indices = m.topk(x, n, 1)
    types = [
        (m.unary("exp", x), "tensor<?x4xf32>"),
        (m.unary("isnan", x), "tensor<?x4xi1>"),
        (m.binary("add", x, y), "tensor<?x4xf32>"),
        (m.compare("lt", x, y), "tensor<?x4xi1>"),
        (m.reduce("sum", x, [1]), "tensor<?xf32>"),
        (m.reduce("sum", x, [1], keepdims=True), "tensor<?x1xf32>"),
        (m.arg_reduce("max", x, 0), "tensor<4xi64>"),
        (m.matmul(x, y, transpose_rhs=True), "tensor<?x?xf32>"),
        (m.einsum([x, y], "ij,kj->ik"), "tensor<?x?xf32>"),
        (m.transpose(x, [1, 0]), "tensor<4x?xf32>"),
        (m.concat([x, y], 1), "tensor<?x8xf32>"),
        (m.shape_of(x), "tensor<2xi64>"),
        (m.nonzero(x), "tensor<2x?xi64>"),
        (values, "tensor<?x?xf32>"),
        (indices, "tensor<?x?xi64>"),
        (m.sequence_length(m.sequence_make([x, y], x.type)), "tensor<i64>"),
        (m.optional_get(m.optional_some(x)), "tensor<?x4xf32>"),
    ]
    assert [str(value.type) for value, _ in types] == [expected for _, expected in types]


def test_mixed_sizes(block: ir.Block) -> None:
    x, _, n = block.arguments
    f16, i64 = ir.F16Type.get(), ir.IntegerType.get_signless(64)
    seed = m.constant(np.int64(7))
    types = [
        (m.reshape(x, [n, 2, 2]), "tensor<?x2x2xf32>"),
        (m.reshape(x, [np.int64(8), 4]), "tensor<8x4xf32>"),
        (m.broadcast(x, [3, n, 4]), "tensor<3x?x4xf32>"),
        (m.slice(x, [0, n], [n, 2]), "tensor<?x2xf32>"),
        (m.slice(x, [0, 3], [2, 4], [1, -1]), "tensor<2x4xf32>"),
        (m.pad(x, [0, 1], [0, 2]), "tensor<?x7xf32>"),
        (m.pad(x, [0, 1], [0, n], "edge"), "tensor<?x?xf32>"),
        (m.iota(i64, [n, 4], 1), "tensor<?x4xi64>"),
        (m.random("normal", seed, [n, 3], f16), "tensor<?x3xf16>"),
        (m.cast(x, f16), "tensor<?x4xf16>"),
        (m.bitcast(x, ir.IntegerType.get_signless(32)), "tensor<?x4xi32>"),
    ]
    assert [str(value.type) for value, _ in types] == [expected for _, expected in types]
    assert m.split_mixed([4, n, 8]) == ([n], [4, DYNAMIC, 8])


def test_a_constant_size_operand_gives_a_static_extent(block: ir.Block) -> None:
    from mlir.dialects import arith

    two = arith.constant(ir.IndexType.get(), 2)
    assert str(m.reshape(block.arguments[0], [two, 2]).type) == "tensor<2x2xf32>"


def test_defaults_are_present_and_optional_attributes_absent(block: ir.Block) -> None:
    x = block.arguments[0]
    reduce = m.reduce("sum", x, [1]).owner
    assert not ir.BoolAttr(reduce.attributes["keepdims"]).value
    assert "unsigned" not in reduce.attributes
    isinf = m.unary("isinf", x, positive=False).owner.opview
    assert isinstance(isinf, m.UnaryOp)
    assert isinf.kind.value == "isinf"
    assert not isinf.positive.value
    assert isinf.negative is None
    assert not isinf.unsigned
    assert m.unary("abs", x, unsigned=True).owner.opview.unsigned


def test_a_shape_mismatch_is_an_error_with_both_shapes(block: ir.Block) -> None:
    x = block.arguments[0]
    other = m.weight("w", ir.Type.parse("tensor<3x5xf32>"))
    with pytest.raises(ir.MLIRError, match="shapes \\?x4 and 3x5 do not broadcast"):
        m.binary("add", x, other)


def test_operands_of_the_wrong_type_are_errors(block: ir.Block) -> None:
    x, _, n = block.arguments
    wrong = [
        lambda: m.unary("exp", n),
        lambda: m.gather(x, n, 0),
        lambda: m.topk(x, x, 1),
        lambda: m.conv(n, n, [], [], []),
    ]
    for build in wrong:
        with pytest.raises(ir.MLIRError, match="ranked tensors for data, index for sizes"):
            build()


def test_host_operations(block: ir.Block) -> None:
    x, y, n = block.arguments
    (result,) = m.launch("k0", [x, n], [y])
    assert result.type == y.type
    memref = ir.Type.parse("memref<?x4xf32>")
    at_operand = m.buffer("arena", memref, [n], offset=n).owner.opview
    assert at_operand.offset == n
    assert at_operand.static_offset is None
    at_constant = m.buffer("weights", ir.Type.parse("memref<4xf32>"), offset=64).owner.opview
    assert at_constant.offset is None
    assert at_constant.static_offset.value == 64
    assert m.launch("k1", [at_operand.result], [m.buffer("output", memref, [n], number=0)]) == []
    first, second = m.extern("upper", [x], [x.type, y.type], config="{}")
    assert first.owner.opview.callee.value == "upper"


def test_sequence_types() -> None:
    with ir.Context():
        element = ir.Type.parse("tensor<?xf32>")
        sequence = m.SeqType.get(element)
        assert str(sequence) == "!mlc.seq<tensor<?xf32>>"
        assert m.SeqType(ir.Type.parse(str(sequence))).element_type == element
        assert m.OptionalType.get(sequence).element_type == sequence
        assert str(m.StrType.get()) == "!mlc.str"
        with pytest.raises(ValueError, match="Cannot cast"):
            m.SeqType(element)


ARRAYS = [
    (np.array([[True, False], [False, True]]), "dense<[[true, false], [false, true]]> : tensor<2x2xi1>"),
    (np.array(True), "dense<true> : tensor<i1>"),
    (np.array([True]), "dense<true> : tensor<1xi1>"),
    (np.array([False] * 9 + [True] * 2), f"dense<[{'false, ' * 9}true, true]> : tensor<11xi1>"),
    (np.array([[0.5, 1], [2, 3]], np.float32), "dense<[[0.5, 1.0], [2.0, 3.0]]> : tensor<2x2xf32>"),
    (np.float64(2.5), "dense<2.5> : tensor<f64>"),
    (np.arange(-2, 2, dtype=np.int8), "dense<[-2, -1, 0, 1]> : tensor<4xi8>"),
    (np.array([2**64 - 1, 0], np.uint64), "dense<[-1, 0]> : tensor<2xi64>"),
    (np.zeros((0, 3), np.float32), "dense<> : tensor<0x3xf32>"),
    (np.array([[1, 2], [3, 4]]).T, "dense<[[1, 3], [2, 4]]> : tensor<2x2xi64>"),
    (np.array([1.5, -2], ml_dtypes.bfloat16), "dense<[1.5, -2.0]> : tensor<2xbf16>"),
    (np.array([1.5, -2], ml_dtypes.float8_e4m3fn), "dense<[1.5, -2.0]> : tensor<2xf8E4M3FN>"),
    (np.array([3, -4], ml_dtypes.int4), "dense<[3, -4]> : tensor<2xi4>"),
    (np.array(["a", 'quo"te']), 'dense<["a", "quo\\22te"]> : tensor<2x!mlc.str>'),
    (np.array([["x"]], object), 'dense<[["x"]]> : tensor<1x1x!mlc.str>'),
]


@pytest.mark.parametrize(("array", "text"), ARRAYS, ids=[text for _, text in ARRAYS])
def test_constants_hold_their_elements(array: np.ndarray, text: str) -> None:
    with ir.Context():
        assert elements(np.asarray(array)) == ir.Attribute.parse(text)


def test_an_unknown_dtype_is_an_error() -> None:
    with ir.Context(), pytest.raises(TypeError, match="dtype datetime64"):
        element_type(np.dtype("datetime64[s]"))
