#include "windows.h"

using namespace mlir;
using namespace mlc;

/// The shape of a pooled tensor; adaptors of both pooling operations have the
/// same attributes.
template <typename Adaptor>
static LogicalResult inferPooled(Adaptor adaptor, DimEnv &env, Dims &out) {
  const Dims &in = env.shape(adaptor.getInput());
  if (in.size() < 3)
    return env.error("needs an input of rank 3 or more, not " + shapeText(in));
  Layout layout{text(adaptor.getLayoutAttr(), "nchw") == "nhwc", in.size()};
  ArrayRef<int64_t> kernel = list(adaptor.getKernelAttr()),
                    extra = list(adaptor.getCeilExtraAttr());
  Windows windows{list(adaptor.getStridesAttr()),
                  list(adaptor.getPaddingAttr()),
                  list(adaptor.getDilationsAttr())};
  size_t count = layout.numSpatial();
  if (failed(checkWindows(env, windows, count)))
    return failure();
  if (kernel.size() != count || (!extra.empty() && extra.size() != count))
    return env.error("needs " + Twine(count) +
                     " entries of kernel and ceil_extra, not " +
                     Twine(kernel.size()) + " and " + Twine(extra.size()));
  out = in;
  for (size_t i = 0; i < count; ++i) {
    Dim &dim = out[layout.spatial() + i];
    dim = windowExtent(dim, env.constant(kernel[i]), windows, i);
  }
  return success();
}

LogicalResult PoolOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims out;
  if (failed(inferPooled(adaptor, env, out)))
    return failure();
  env.addResult(out, elementTypeOf(adaptor.getInput()));
  return success();
}

LogicalResult PoolIndicesOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims out;
  if (failed(inferPooled(adaptor, env, out)))
    return failure();
  env.addResult(out, elementTypeOf(adaptor.getInput()));
  env.addResult(out, IntegerType::get(env.getContext(), 64));
  return success();
}
