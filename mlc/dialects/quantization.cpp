#include "dialect.h"

using namespace mlir;
using namespace mlc;

/// A scale for each block of the axis, and as many as there are of the rest.
static LogicalResult checkBlocks(DimEnv &env, const Dims &in,
                                 const Dims &scales, size_t axis,
                                 int64_t blockSize) {
  std::string what = "scales of shape " + shapeText(scales) +
                     " for blocks of " + std::to_string(blockSize) + " in " +
                     shapeText(in) + " are too few";
  for (size_t i = 0; i < in.size(); ++i) {
    if (i != axis && failed(env.expectStretches(scales[i], in[i], what)))
      return failure();
    Dim blocks = floorDiv(in[i] + (blockSize - 1), blockSize);
    if (i == axis && failed(env.expectAtMost(blocks, scales[i], what)))
      return failure();
  }
  return success();
}

static LogicalResult checkScale(DimEnv &env, Value input, Value scale,
                                Value zeroPoint, IntegerAttr axisAttr,
                                int64_t blockSize) {
  const Dims &in = env.shape(input), &scales = env.shape(scale);
  size_t zeroRank = zeroPoint ? env.shape(zeroPoint).size() : 0;
  if (zeroRank != 0 && zeroRank != scales.size())
    return env.error("scale " + shapeText(scales) + " and zero_point " +
                     shapeText(env.shape(zeroPoint)) + " differ");
  if (scales.empty())
    return success();
  int64_t axis = number(axisAttr, 0);
  if (axis < 0 || axis >= static_cast<int64_t>(in.size()))
    return env.error("axis " + Twine(axis) + " is out of range for shape " +
                     shapeText(in));
  if (blockSize > 0 && scales.size() != in.size())
    return env.error("blocks need a scale of the input's rank, not " +
                     shapeText(scales) + " for " + shapeText(in));
  for (size_t i = 0; i < zeroRank; ++i)
    if (failed(env.expectEqual(env.shape(zeroPoint)[i], scales[i],
                               "extents of zero_point and scale")))
      return failure();
  if (blockSize > 0)
    return checkBlocks(env, in, scales, axis, blockSize);
  if (scales.size() == 1 && !scales[0].isOne())
    return env.expectEqual(scales[0], in[axis],
                           "scales and axis extents of " + shapeText(scales) +
                               " and " + shapeText(in));
  return success();
}

LogicalResult QuantizeOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(checkScale(env, adaptor.getInput(), adaptor.getScale(),
                        adaptor.getZeroPoint(), adaptor.getAxisAttr(),
                        number(adaptor.getBlockSizeAttr(), 0))))
    return failure();
  env.addResult(env.shape(adaptor.getInput()), Type());
  return success();
}

LogicalResult DequantizeOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(checkScale(env, adaptor.getInput(), adaptor.getScale(),
                        adaptor.getZeroPoint(), adaptor.getAxisAttr(),
                        number(adaptor.getBlockSizeAttr(), 0))))
    return failure();
  return env.same(adaptor.getInput(), elementTypeOf(adaptor.getScale()));
}

LogicalResult UnpackOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims dims = env.shape(adaptor.getInput());
  int64_t bits = number(adaptor.getBitsAttr(), 0);
  if (bits != 2 && bits != 4 && bits != 8)
    return env.error("codes of " + Twine(bits) +
                     " bits; there are codes of 2, 4 and 8");
  if (dims.size() < 3 || dims.back().getConstant() != 4)
    return env.error("input of shape " + shapeText(dims) +
                     "; words are [..., words, columns, 4]");
  if (!elementTypeOf(adaptor.getInput()).isInteger(8))
    return env.error("words of other elements than bytes");
  dims.pop_back();
  Dim &depth = dims[dims.size() - 2];
  depth = depth * (32 / bits);
  env.addResult(std::move(dims), elementTypeOf(adaptor.getInput()));
  return success();
}
