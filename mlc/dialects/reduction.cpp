#include "dialect.h"

using namespace mlir;
using namespace mlc;

/// The shape left when `axes` are reduced.
static LogicalResult inferReduced(DimEnv &env, Value input,
                                  ArrayRef<int64_t> axes, bool keepdims,
                                  Type elementType) {
  const Dims &dims = env.shape(input);
  llvm::SmallBitVector reduced(dims.size());
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size()))
      return env.error("axis " + Twine(axis) + " is out of range for shape " +
                       shapeText(dims));
    if (reduced.test(axis))
      return env.error("axis " + Twine(axis) + " is listed twice");
    reduced.set(axis);
  }
  Dims out;
  for (auto [i, dim] : llvm::enumerate(dims))
    if (!reduced.test(i))
      out.push_back(dim);
    else if (keepdims)
      out.push_back(env.constant(1));
  env.addResult(out, elementType);
  return success();
}

LogicalResult ReduceOp::inferDims(Adaptor adaptor, DimEnv &env) {
  return inferReduced(env, adaptor.getInput(), list(adaptor.getAxesAttr()),
                      flag(adaptor.getKeepdimsAttr()),
                      elementTypeOf(adaptor.getInput()));
}

LogicalResult ArgReduceOp::inferDims(Adaptor adaptor, DimEnv &env) {
  return inferReduced(
      env, adaptor.getInput(), {number(adaptor.getAxisAttr(), -1)},
      flag(adaptor.getKeepdimsAttr()), IntegerType::get(env.getContext(), 64));
}

LogicalResult ScanOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(env.expectAxis(adaptor.getAxisAttr(),
                            env.shape(adaptor.getInput()).size())))
    return failure();
  return env.same(adaptor.getInput());
}

LogicalResult StatisticOp::inferDims(Adaptor adaptor, DimEnv &env) {
  return inferReduced(env, adaptor.getInput(), list(adaptor.getAxesAttr()),
                      flag(adaptor.getKeepdimsAttr()),
                      elementTypeOf(adaptor.getInput()));
}

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  return getAxes().empty() && getInput().getType() == getType()
             ? OpFoldResult(getInput())
             : OpFoldResult();
}
