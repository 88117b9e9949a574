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
  const Dims &in = env.shape(adaptor.getInput());
  if (failed(env.expectAxis(adaptor.getAxisAttr(), in.size())))
    return failure();
  int64_t part = number(adaptor.getPartAttr(), 0);
  if (adaptor.getPartAttr() ? part < 1 : bool(adaptor.getBefore()))
    return env.error("needs a positive part where lines fall into parts");
  if (!adaptor.getBefore())
    return env.same(adaptor.getInput());
  const Dims &before = env.shape(adaptor.getBefore());
  size_t axis = adaptor.getAxisAttr().getInt();
  std::string shapes = shapeText(in) + " and " + shapeText(before);
  if (before.size() != in.size())
    return env.error("needs input and before of one rank, not " + shapes);
  for (size_t i = 0; i < in.size(); ++i) {
    std::optional<int64_t> extent = in[i].getConstant(),
                           count = before[i].getConstant();
    if (i != axis) {
      if (failed(env.expectEqual(in[i], before[i],
                                 "extents of input and before in " + shapes)))
        return failure();
    } else if (extent && count) {
      int64_t parts = llvm::divideCeil(*extent, part);
      if (*count != parts && *count != parts - 1)
        return env.error("has " + Twine(parts) + " parts of " + Twine(part) +
                         " elements, and before of " + shapes + " " +
                         Twine(*count));
    }
  }
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
