"""Numerical checks of passes: a function of `mlc` operations evaluated by `mlc.interp`, and one in linalg form compiled
by an upstream pipeline (one-shot bufferization, loops, JIT)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import mlir.runtime as rt
import numpy as np
from mlir import ir
from mlir.dialects import arith, tensor
from mlir.execution_engine import ExecutionEngine
from mlir.passmanager import PassManager

from mlc import interp

_ARITH = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divui": np.floor_divide,
    "arith.divsi": lambda a, b: int(a / b),
    "arith.floordivsi": np.floor_divide,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.remsi": np.fmod,
    "arith.remui": np.fmod,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
}
_PREDICATES = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]

TO_LOOPS = (
    "builtin.module(canonicalize,cse,one-shot-bufferize{bufferize-function-boundaries=1 "
    "allow-return-allocs-from-loops=1 "
    "function-boundary-type-conversion=identity-layout-map},convert-linalg-to-loops)"
)
TO_LLVM = (
    "builtin.module(expand-strided-metadata,"
    "lower-affine,convert-scf-to-cf,arith-expand{include-bf16=true},func.func(llvm-request-c-wrappers),"
    "math-expand-ops{ops=ctlz,ipowi,fpowi,roundeven,copysign},convert-math-to-llvm,convert-math-to-libm,finalize-memref-to-llvm,convert-index-to-llvm,"
    "convert-arith-to-llvm,convert-cf-to-llvm,convert-func-to-llvm,reconcile-unrealized-casts)"
)


def python_attr(attr: ir.Attribute) -> Any:
    """An attribute as the plain value that `mlc.interp` takes."""
    if isinstance(attr, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr):
        return list(attr)
    if isinstance(attr, ir.UnitAttr):
        return True
    if isinstance(attr, ir.DenseElementsAttr):
        return dense_array(attr)
    if isinstance(attr, ir.ArrayAttr):
        return [python_attr(a) for a in attr]
    return attr.value


def dense_array(attr: ir.DenseElementsAttr) -> np.ndarray:
    """The array of a dense attribute."""
    type_ = ir.RankedTensorType(attr.type)
    if str(type_.element_type) == "bf16":
        values = [v.value if hasattr(v, "value") else v for v in _elements(attr, type_)]
        return np.array(values, ml_dtypes.bfloat16).reshape(type_.shape)
    if attr.is_splat:
        return np.full(type_.shape, attr.get_splat_value().value, interp_dtype(type_.element_type))
    return np.array(attr)


def _elements(attr: ir.DenseElementsAttr, type_: ir.RankedTensorType) -> list[Any]:
    if attr.is_splat:
        return [attr.get_splat_value()] * int(np.prod(type_.shape))
    return list(ir.DenseFPElementsAttr(attr))


def interp_dtype(type_: ir.Type) -> np.dtype:
    from mlc.interp.dtypes import numpy_dtype

    return numpy_dtype(str(type_))


def _result_type(type_: ir.Type) -> interp.ResultType:
    if isinstance(type_, ir.RankedTensorType):
        shape = [-1 if type_.is_dynamic_dim(i) else s for i, s in enumerate(type_.shape)]
        return interp.ResultType(shape, str(type_.element_type))
    return interp.ResultType((), str(type_))


class Interpreter:
    """Evaluates functions of `mlc` operations, size arithmetic and `scf` operation by operation."""

    def run(self, function: ir.Operation, inputs: Sequence[np.ndarray]) -> list[Any]:
        block = function.regions[0].blocks[0]
        return self._block(block, dict(zip(block.arguments, inputs, strict=True)))

    def _block(self, block: ir.Block, env: dict[ir.Value, Any]) -> list[Any]:
        for view in block.operations:
            op = view.operation
            if op.name in ("func.return", "scf.yield"):
                return [env[v] for v in op.operands]
            values = self._op(op, env)
            env.update(zip(op.results, values, strict=True))
        raise AssertionError("a block ends in a terminator")

    def _op(self, op: ir.Operation, env: dict[ir.Value, Any]) -> list[Any]:
        args = [env[v] for v in op.operands]
        if op.name == "mlc.check":
            assert args[0], python_attr(op.attributes["message"])
            return []
        if op.name.startswith("mlc."):
            attrs = {name: python_attr(op.attributes[name]) for name in op.attributes}
            args = [int(a) if isinstance(a, np.integer) else a for a in args]
            return interp.evaluate(op.name, args, attrs, [_result_type(r.type) for r in op.results])
        if op.name == "scf.if":
            return self._block(op.regions[0 if args[0] else 1].blocks[0], env)
        if op.name == "scf.for":
            return self._for(op, args, env)
        return [self._scalar(op, args)]

    def _for(self, op: ir.Operation, args: list[Any], env: dict[ir.Value, Any]) -> list[Any]:
        block, carried = op.regions[0].blocks[0], args[3:]
        for i in range(int(args[0]), int(args[1]), int(args[2])):
            carried = self._block(block, {**env, **dict(zip(block.arguments, [i, *carried], strict=True))})
        return carried

    def _scalar(self, op: ir.Operation, args: list[Any]) -> Any:
        if op.name == "arith.constant":
            return python_attr(op.attributes["value"])
        if op.name == "tensor.dim":
            return args[0].shape[args[1]]
        if op.name == "tensor.cast":
            return args[0]
        if op.name in ("arith.index_cast", "arith.index_castui"):
            return int(args[0])
        if op.name == "arith.select":
            return args[1] if args[0] else args[2]
        if op.name == "arith.cmpi":
            return bool(_PREDICATES[python_attr(op.attributes["predicate"])](*args))
        if op.name == "tensor.extract":
            return args[0][tuple(args[1:])]
        if op.name == "tensor.from_elements":
            shape = list(op.results[0].type.shape)
            return np.array(args, interp_dtype(op.results[0].type.element_type)).reshape(shape)
        return _ARITH[op.name](*args)


def context() -> ir.Context:
    """A context of the compiler."""
    from mlc.compiler_setup import new_context

    return new_context()


def check_lowering(text: str, *inputs: np.ndarray, tolerance: float = 1e-5) -> str:
    """Lowers the function in `text` to linalg, runs it and compares with the interpreter; gives the lowered IR."""
    from mlc.passes.lower.lower_to_linalg import lower_function

    with context(), ir.Location.name("node"):
        module = ir.Module.parse(text)
        expected = interpret(module, inputs)
        lower_function(entry(module))
        assert module.operation.verify()
        lowered = str(module)
        compare(execute(module, inputs), expected, tolerance)
    return lowered


def check_decomposition(text: str, *inputs: np.ndarray, tolerance: float = 1e-5) -> str:
    """Decomposes every composite of the function in `text`; the result, interpreted as well as lowered and run, has to
    agree with the interpreter's composites. Gives the decomposed IR."""
    from mlc.passes.decompose.decompose import decompose_region
    from mlc.passes.lower.lower_to_linalg import lower_function

    with context(), ir.Location.name("node"):
        module = ir.Module.parse(text)
        expected = interpret(module, inputs)
        decompose_region(module.operation)
        assert module.operation.verify()
        decomposed = str(module)
        compare(interpret(module, inputs), expected, tolerance)
        lower_function(entry(module))
        assert module.operation.verify()
        compare(execute(module, inputs), expected, tolerance)
    return decomposed


def compare(got: Sequence[np.ndarray], expected: Sequence[Any], tolerance: float = 1e-5) -> None:
    """Equal shapes and close values; integers and bools exactly."""
    assert len(got) == len(expected)
    for actual, wanted in zip(got, expected, strict=True):
        wanted = np.asarray(wanted)
        assert actual.shape == wanted.shape
        if actual.dtype.kind in "iub":
            np.testing.assert_array_equal(actual, wanted)
        else:
            actual, wanted = actual.astype(np.float64), wanted.astype(np.float64)
            np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)


def entry(module: ir.Module) -> ir.Operation:
    """The first function of a module."""
    return next(o.operation for o in module.body.operations if o.operation.name == "func.func")


def interpret(module: ir.Module, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Results of the first function, by `mlc.interp`."""
    return Interpreter().run(entry(module), inputs)


def _adopt(module: ir.Module) -> None:
    """Constants, checks and updates of one slice in upstream terms."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in ("mlc.constant", "mlc.check", "mlc.scatter_nd"):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in found:
        with ir.InsertionPoint(op), op.location:
            if op.name == "mlc.constant":
                new = ir.Operation.create("arith.constant", [op.results[0].type], [], {"value": op.attributes["value"]})
                op.results[0].replace_all_uses_with(new.results[0])
            elif op.name == "mlc.scatter_nd":
                op.results[0].replace_all_uses_with(_insert_slice(op))
            else:
                message = {"msg": op.attributes["message"]}
                ir.Operation.create("cf.assert", [], [op.operands[0]], message)
        op.erase()


def _insert_slice(op: ir.Operation) -> ir.Value:
    """What a scatter of one slice along the first dimension does."""
    data, positions, updates = op.operands
    assert list(positions.type.shape) == [1, 1]
    assert ir.StringAttr(op.attributes["reduction"]).value == "none"
    zero, index, dynamic = arith.constant(ir.IndexType.get(), 0), ir.IndexType.get(), ir.ShapedType.get_dynamic_size()
    offset = arith.index_cast(index, tensor.extract(positions, [zero, zero]))
    sizes = [tensor.dim(updates, arith.constant(index, i)) for i, s in enumerate(updates.type.shape) if s == dynamic]
    rank = data.type.rank
    return tensor.insert_slice(
        updates, data, [offset], sizes, [], [dynamic, *[0] * (rank - 1)], list(updates.type.shape), [1] * rank
    )


def _byte_memref(type_: ir.Type) -> ir.Type:
    if isinstance(type_, ir.MemRefType) and str(type_.element_type) == "i1":
        return ir.MemRefType.get(type_.shape, ir.IntegerType.get_signless(8), type_.layout)
    return type_


def _retype_global(op: ir.Operation) -> None:
    type_ = ir.TypeAttr(op.attributes["type"]).value
    if _byte_memref(type_) == type_:
        return
    values = np.asarray(dense_array(ir.DenseElementsAttr(op.attributes["initial_value"]))).astype(np.int8)
    op.attributes["type"] = ir.TypeAttr.get(_byte_memref(type_))
    op.attributes["initial_value"] = ir.DenseElementsAttr.get(np.array(values, order="C"))


def _store_bools_as_bytes(module: ir.Module) -> None:
    """LLVM has no memory of `i1`: loads compare a byte with zero, stores extend."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    i8 = ir.IntegerType.get_signless(8)
    for op in found:
        for region in op.regions:
            for argument in (a for b in region.blocks for a in b.arguments):
                argument.set_type(_byte_memref(argument.type))
        if op.name == "func.func":
            type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
            types = [[_byte_memref(t) for t in ts] for ts in (type_.inputs, type_.results)]
            op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
        if op.name == "memref.global":
            _retype_global(op)
        for result in op.results:
            result.set_type(_byte_memref(result.type))
    for op in found:
        with ir.InsertionPoint(op) if op.parent else ir.InsertionPoint(module.body), op.location:
            if op.name == "memref.load" and str(op.results[0].type) == "i1":
                byte = ir.Operation.create("memref.load", [i8], list(op.operands)).results[0]
                zero = arith.constant(i8, 0)
                op.results[0].replace_all_uses_with(arith.cmpi(arith.CmpIPredicate.ne, byte, zero))
                op.erase()
            elif op.name == "memref.store" and str(op.operands[0].type) == "i1":
                op.operands[0] = arith.extui(i8, op.operands[0])


def _reinterpret_expansions(module: ir.Module) -> None:
    """Upstream cannot lower an expansion into several unknown extents; all buffers here are contiguous."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.expand_shape" and len(op.operands) > 2:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in found:
        with ir.InsertionPoint(op), op.location:
            dynamic, sizes = list(op.operands)[1:], []
            for size in op.results[0].type.shape:
                is_known = size != ir.ShapedType.get_dynamic_size()
                sizes.append(arith.constant(ir.IndexType.get(), size) if is_known else dynamic.pop(0))
            strides = [arith.constant(ir.IndexType.get(), 1)]
            for size in reversed(sizes[1:]):
                strides.insert(0, arith.muli(strides[0], size))
            layout = ", ".join("?" * len(sizes))
            shape = "x".join("?" * len(sizes))
            strided = ir.Type.parse(f"memref<{shape}x{op.results[0].type.element_type}, strided<[{layout}]>>")
            unknown = ir.ShapedType.get_dynamic_size()
            attributes = {
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, len(sizes), len(sizes)]),
                "static_offsets": ir.DenseI64ArrayAttr.get([0]),
                "static_sizes": ir.DenseI64ArrayAttr.get([unknown] * len(sizes)),
                "static_strides": ir.DenseI64ArrayAttr.get([unknown] * len(sizes)),
            }
            operands = [op.operands[0], *sizes, *strides]
            new = ir.Operation.create("memref.reinterpret_cast", [strided], operands, attributes)
            cast = ir.Operation.create("memref.cast", [op.results[0].type], [new.results[0]])
            op.results[0].replace_all_uses_with(cast.results[0])
        op.erase()


def execute(module: ir.Module, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Results of the first function of a module in linalg form, compiled and run. The module is used up."""
    _adopt(module)
    function = entry(module)
    name = ir.StringAttr(function.attributes["sym_name"]).value
    types = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results
    descriptors = [_descriptor_type(t) for t in types]
    PassManager.parse(TO_LOOPS, context=module.context).run(module.operation)
    _store_bools_as_bytes(module)
    _reinterpret_expansions(module)
    PassManager.parse(TO_LLVM, context=module.context).run(module.operation)
    engine = ExecutionEngine(module, opt_level=0)

    class Results(ctypes.Structure):
        _fields_ = [(f"r{i}", d) for i, d in enumerate(descriptors)]

    results = Results()
    arrays = [np.array(a, order="C") for a in inputs]  # alive until the call is over
    holders = [rt.get_ranked_memref_descriptor(a) for a in arrays]
    pointers = [ctypes.pointer(ctypes.pointer(h)) for h in holders]
    engine.invoke(name, ctypes.pointer(ctypes.pointer(results)), *pointers)
    pointers = [ctypes.pointer(getattr(results, f"r{i}")) for i in range(len(types))]
    return [_to_numpy(p, t) for p, t in zip(pointers, types, strict=True)]


def _to_numpy(pointer: Any, type_: ir.RankedTensorType) -> np.ndarray:
    if type_.rank:
        return rt.ranked_memref_to_numpy(pointer).copy()
    # The bindings cannot read a descriptor without dimensions.
    array = np.ctypeslib.as_array(pointer[0].aligned, (1,)).copy()
    return rt.to_numpy(array).reshape(())


def _descriptor_type(type_: ir.RankedTensorType) -> Any:
    scalar = rt.as_ctype(interp_dtype(type_.element_type))
    return rt.make_nd_memref_descriptor(type_.rank, scalar) if type_.rank else rt.make_zero_d_memref_descriptor(scalar)
