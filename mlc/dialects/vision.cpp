#include "dialect.h"

using namespace mlir;
using namespace mlc;

/// Boxes `[batches, n, 4]` and their scores `[batches, classes, n]`.
static LogicalResult expectBoxes(DimEnv &env, Value boxesValue,
                                 Value scoresValue) {
  if (failed(env.expectRank(boxesValue, 3, "boxes")) ||
      failed(env.expectRank(scoresValue, 3, "scores")))
    return failure();
  const Dims &boxes = env.shape(boxesValue), &scores = env.shape(scoresValue);
  std::string shapes =
      " of boxes " + shapeText(boxes) + " and scores " + shapeText(scores);
  if (failed(
          env.expectEqual(boxes[2], env.constant(4), "coordinates" + shapes)) ||
      failed(env.expectEqual(boxes[0], scores[0], "batches" + shapes)))
    return failure();
  return env.expectEqual(boxes[1], scores[2], "box counts" + shapes);
}

LogicalResult NmsOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(expectBoxes(env, adaptor.getBoxes(), adaptor.getScores())))
    return failure();
  env.addResult({Dim(), env.constant(3)},
                IntegerType::get(env.getContext(), 64));
  return success();
}

LogicalResult SuppressOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(expectBoxes(env, adaptor.getBoxes(), adaptor.getScores())))
    return failure();
  Dims scores = env.shape(adaptor.getScores());
  Type i64 = IntegerType::get(env.getContext(), 64);
  env.addResult(scores, i64);
  scores.pop_back();
  env.addResult(scores, i64);
  return success();
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
  for (size_t i = 0; i < in.size(); ++i)
    if (failed(env.expectSource(sizes[i], in[i],
                                "dimension " + Twine(i) +
                                    " has no elements to be resized")))
      return failure();
  env.addResult(sizes, elementTypeOf(adaptor.getInput()));
  return success();
}
