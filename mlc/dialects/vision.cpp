#include "dialect.h"

using namespace mlir;
using namespace mlc;

LogicalResult NmsOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(env.expectRank(adaptor.getBoxes(), 3, "boxes")) ||
      failed(env.expectRank(adaptor.getScores(), 3, "scores")))
    return failure();
  const Dims &boxes = env.shape(adaptor.getBoxes()),
             &scores = env.shape(adaptor.getScores());
  std::string shapes =
      " of boxes " + shapeText(boxes) + " and scores " + shapeText(scores);
  if (failed(
          env.expectEqual(boxes[2], env.constant(4), "coordinates" + shapes)) ||
      failed(env.expectEqual(boxes[0], scores[0], "batches" + shapes)) ||
      failed(env.expectEqual(boxes[1], scores[2], "box counts" + shapes)))
    return failure();
  env.addResult({Dim(), env.constant(3)},
                IntegerType::get(env.getContext(), 64));
  return success();
}

LogicalResult SuppressOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(env.expectRank(adaptor.getBoxes(), 3, "boxes")) ||
      failed(env.expectRank(adaptor.getCandidates(), 2, "candidates")))
    return failure();
  const Dims &boxes = env.shape(adaptor.getBoxes()),
             &candidates = env.shape(adaptor.getCandidates());
  std::string shapes = " of boxes " + shapeText(boxes) + " and candidates " +
                       shapeText(candidates);
  if (failed(
          env.expectEqual(boxes[2], env.constant(4), "coordinates" + shapes)) ||
      failed(env.expectEqual(boxes[0], candidates[0], "groups" + shapes)) ||
      failed(env.expectEqual(boxes[1], candidates[1], "box counts" + shapes)))
    return failure();
  return env.same(adaptor.getCandidates());
}

LogicalResult ResizeOp::inferDims(Adaptor adaptor, DimEnv &env) {
  const Dims &in = env.shape(adaptor.getInput());
  Dims sizes;
  if (failed(env.mixed(adaptor.getStaticSizesAttr(), adaptor.getSizes(),
                       "sizes", sizes)))
    return failure();
  if (sizes.size() != in.size())
    return env.error("needs a size for each dimension of " + shapeText(in) +
                     ", not " + Twine(sizes.size()));
  if (failed(env.expectRank(adaptor.getScales(), 1, "scales")) ||
      failed(env.expectEqual(env.shape(adaptor.getScales())[0],
                             env.constant(in.size()), "scales and rank")))
    return failure();
  env.addResult(sizes, elementTypeOf(adaptor.getInput()));
  return success();
}
