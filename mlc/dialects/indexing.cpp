#include "dialect.h"

using namespace mlir;
using namespace mlc;

static Type i64(DimEnv &env) { return IntegerType::get(env.getContext(), 64); }

LogicalResult GatherOp::inferDims(Adaptor adaptor, DimEnv &env) {
  const Dims &in = env.shape(adaptor.getInput());
  if (failed(env.expectAxis(adaptor.getAxisAttr(), in.size())))
    return failure();
  size_t axis = adaptor.getAxisAttr().getInt();
  Dims out(in.begin(), in.begin() + axis);
  out.append(env.shape(adaptor.getIndices()));
  out.append(in.begin() + axis + 1, in.end());
  env.addResult(out, elementTypeOf(adaptor.getInput()));
  return success();
}

/// Indices of elements lie inside of the input but along the axis, where what
/// they say is asked for.
static LogicalResult expectWithin(DimEnv &env, const Dims &indices,
                                  const Dims &in, int64_t axis) {
  std::string shapes = shapeText(indices) + " and " + shapeText(in);
  for (int64_t i = 0; i < static_cast<int64_t>(in.size()); ++i)
    if (i != axis && failed(env.expectAtMost(
                         indices[i], in[i],
                         "indices are longer than the input in " + shapes)))
      return failure();
  return success();
}

LogicalResult GatherElementsOp::inferDims(Adaptor adaptor, DimEnv &env) {
  const Dims &in = env.shape(adaptor.getInput()),
             &indices = env.shape(adaptor.getIndices());
  if (in.size() != indices.size())
    return env.error("needs input and indices of one rank, not " +
                     shapeText(in) + " and " + shapeText(indices));
  if (failed(env.expectAxis(adaptor.getAxisAttr(), in.size())) ||
      failed(expectWithin(env, indices, in, number(adaptor.getAxisAttr(), 0))))
    return failure();
  return env.same(adaptor.getIndices(), elementTypeOf(adaptor.getInput()));
}

LogicalResult GatherNdOp::inferDims(Adaptor adaptor, DimEnv &env) {
  const Dims &in = env.shape(adaptor.getInput()),
             &indices = env.shape(adaptor.getIndices());
  std::string shapes =
      " of input " + shapeText(in) + " and indices " + shapeText(indices);
  int64_t batch = number(adaptor.getBatchDimsAttr(), 0);
  if (indices.empty() || batch < 0 ||
      batch >= static_cast<int64_t>(indices.size()) ||
      batch > static_cast<int64_t>(in.size()))
    return env.error("batch_dims " + Twine(batch) + " does not fit the shapes" +
                     shapes);
  std::optional<int64_t> depth = indices.back().getConstant();
  if (!depth)
    return env.error("needs a static last extent of indices, given the shapes" +
                     shapes);
  if (batch + *depth > static_cast<int64_t>(in.size()))
    return env.error("has coordinates longer than the rank, given the shapes" +
                     shapes);
  for (int64_t i = 0; i < batch; ++i)
    if (failed(env.expectEqual(in[i], indices[i], "batches" + shapes)))
      return failure();
  Dims out(indices.begin(), indices.end() - 1);
  out.append(in.begin() + batch + *depth, in.end());
  env.addResult(out, elementTypeOf(adaptor.getInput()));
  return success();
}

LogicalResult ScatterElementsOp::inferDims(Adaptor adaptor, DimEnv &env) {
  const Dims &in = env.shape(adaptor.getInput()),
             &indices = env.shape(adaptor.getIndices()),
             &updates = env.shape(adaptor.getUpdates());
  std::string shapes =
      shapeText(in) + ", " + shapeText(indices) + " and " + shapeText(updates);
  if (in.size() != indices.size() || in.size() != updates.size())
    return env.error("needs input, indices and updates of one rank, not " +
                     shapes);
  for (auto [index, update] : llvm::zip(indices, updates))
    if (failed(env.expectEqual(index, update,
                               "extents of indices and updates in " + shapes)))
      return failure();
  if (failed(env.expectAxis(adaptor.getAxisAttr(), in.size())) ||
      failed(expectWithin(env, indices, in, number(adaptor.getAxisAttr(), 0))))
    return failure();
  return env.same(adaptor.getInput());
}

LogicalResult ScatterNdOp::inferDims(Adaptor adaptor, DimEnv &env) {
  const Dims &in = env.shape(adaptor.getInput()),
             &indices = env.shape(adaptor.getIndices()),
             &updates = env.shape(adaptor.getUpdates());
  std::string shapes = " of input " + shapeText(in) + ", indices " +
                       shapeText(indices) + " and updates " +
                       shapeText(updates);
  std::optional<int64_t> depth =
      indices.empty() ? std::nullopt : indices.back().getConstant();
  if (!depth)
    return env.error("needs a static last extent of indices, given the shapes" +
                     shapes);
  if (*depth > static_cast<int64_t>(in.size()))
    return env.error("has coordinates longer than the rank, given the shapes" +
                     shapes);
  Dims expected(indices.begin(), indices.end() - 1);
  expected.append(in.begin() + *depth, in.end());
  if (expected.size() != updates.size())
    return env.error("updates must have the shape " + shapeText(expected) +
                     shapes);
  for (auto [left, right] : llvm::zip(expected, updates))
    if (failed(env.expectEqual(left, right, "extents of updates" + shapes)))
      return failure();
  return env.same(adaptor.getInput());
}

LogicalResult InsertOp::inferDims(Adaptor adaptor, DimEnv &env) {
  const Dims &in = env.shape(adaptor.getInput()),
             &update = env.shape(adaptor.getUpdate()),
             &starts = env.shape(adaptor.getStarts());
  std::string shapes = " of input " + shapeText(in) + ", update " +
                       shapeText(update) + " and starts " + shapeText(starts);
  if (in.size() != update.size() || starts.size() != 1 || in.size() < 2)
    return env.error("needs an update of the input's rank, two or more, and a "
                     "start for each entry of the batch, given the shapes" +
                     shapes);
  if (elementTypeOf(adaptor.getInput()) != elementTypeOf(adaptor.getUpdate()))
    return env.error("needs an update of the input's element type");
  if (failed(env.expectAxis(adaptor.getAxisAttr(), in.size())))
    return failure();
  int64_t axis = adaptor.getAxisAttr().getInt();
  if (axis == 0)
    return env.error("cannot insert along the batch, dimension 0");
  if (failed(env.expectEqual(in[0], starts[0], "extents" + shapes)))
    return failure();
  for (int64_t i = 0; i < static_cast<int64_t>(in.size()); ++i)
    if (i != axis &&
        failed(env.expectEqual(in[i], update[i], "extents" + shapes)))
      return failure();
  return env.same(adaptor.getInput());
}

LogicalResult NonzeroOp::inferDims(Adaptor adaptor, DimEnv &env) {
  env.addResult({env.constant(env.shape(adaptor.getInput()).size()), Dim()},
                i64(env));
  return success();
}

/// The extent of the axis that the k best of its parts have.
static LogicalResult selectedOfParts(DimEnv &env, const Dim &dim, Dim k,
                                     int64_t part, Dim &out) {
  std::optional<int64_t> extent = dim.getConstant(), count = k.getConstant();
  if (!extent || !count || part < 1)
    return env.error("needs a positive part, and an extent and a k that are "
                     "known, where lines fall into parts");
  int64_t parts = llvm::divideCeil(*extent, part);
  if (parts > 0 && *extent - (parts - 1) * part < *count)
    return env.error("k = " + Twine(*count) +
                     " is more than the last part of " + Twine(part) + " of " +
                     Twine(*extent) + " elements has");
  out = env.constant(parts * *count);
  return success();
}

LogicalResult TopkOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims out = env.shape(adaptor.getInput());
  if (failed(env.expectAxis(adaptor.getAxisAttr(), out.size())))
    return failure();
  if (adaptor.getPlaces()) {
    const Dims &places = env.shape(adaptor.getPlaces());
    std::string shapes = shapeText(out) + " and " + shapeText(places);
    if (places.size() != out.size())
      return env.error("needs input and places of one rank, not " + shapes);
    for (auto [extent, place] : llvm::zip(out, places))
      if (failed(env.expectEqual(extent, place,
                                 "extents of input and places in " + shapes)))
        return failure();
  }
  Dim &dim = out[adaptor.getAxisAttr().getInt()];
  if (failed(env.expectAtMost(env.index(adaptor.getK()), dim,
                              "k is more than the extent of the axis in " +
                                  shapeText(out))))
    return failure();
  if (!adaptor.getPartAttr())
    dim = env.index(adaptor.getK());
  else if (failed(selectedOfParts(env, dim, env.index(adaptor.getK()),
                                  number(adaptor.getPartAttr(), 0), dim)))
    return failure();
  env.addResult(out, elementTypeOf(adaptor.getInput()));
  env.addResult(out, i64(env));
  return success();
}

LogicalResult SortOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(env.expectAxis(adaptor.getAxisAttr(),
                            env.shape(adaptor.getInput()).size())))
    return failure();
  env.addResult(env.shape(adaptor.getInput()),
                elementTypeOf(adaptor.getInput()));
  env.addResult(env.shape(adaptor.getInput()), i64(env));
  return success();
}

LogicalResult UniqueOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(env.expectRank(adaptor.getInput(), 1, "input")))
    return failure();
  env.addResult({Dim()}, elementTypeOf(adaptor.getInput()));
  env.addResult({Dim()}, i64(env));
  env.addResult(env.shape(adaptor.getInput()), i64(env));
  env.addResult({Dim()}, i64(env));
  return success();
}

LogicalResult OneHotOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims out = env.shape(adaptor.getIndices());
  if (failed(env.expectAxis(adaptor.getAxisAttr(), out.size() + 1)))
    return failure();
  const Dims &values = env.shape(adaptor.getValues());
  if (values.size() != 1 ||
      (values[0].getConstant() && *values[0].getConstant() != 2))
    return env.error("values must have the shape 2, not " + shapeText(values));
  out.insert(out.begin() + adaptor.getAxisAttr().getInt(),
             env.index(adaptor.getDepth()));
  env.addResult(out, elementTypeOf(adaptor.getValues()));
  return success();
}

LogicalResult TriluOp::inferDims(Adaptor adaptor, DimEnv &env) {
  const Dims &in = env.shape(adaptor.getInput());
  if (in.size() < 2)
    return env.error("needs an input of rank 2 or more, not " + shapeText(in));
  return env.same(adaptor.getInput());
}
