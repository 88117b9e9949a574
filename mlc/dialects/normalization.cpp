#include "dialect.h"

using namespace mlir;
using namespace mlc;

/// A parameter with one value per channel (axis 1).
static LogicalResult checkPerChannel(DimEnv &env, Value input, Value parameter,
                                     StringRef what) {
  const Dims &in = env.shape(input), &dims = env.shape(parameter);
  if (in.size() < 2)
    return env.error("needs an input of rank 2 or more, not " + shapeText(in));
  if (failed(env.expectRank(parameter, 1, what)))
    return failure();
  return env.expectEqual(dims[0], in[1],
                         what + " extent and channels of " + shapeText(in));
}

LogicalResult SoftmaxOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(env.expectAxis(adaptor.getAxisAttr(),
                            env.shape(adaptor.getInput()).size())))
    return failure();
  return env.same(adaptor.getInput());
}

LogicalResult BatchNormOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Value input = adaptor.getInput();
  if (failed(checkPerChannel(env, input, adaptor.getScale(), "scale")) ||
      failed(checkPerChannel(env, input, adaptor.getBias(), "bias")) ||
      failed(checkPerChannel(env, input, adaptor.getMean(), "mean")) ||
      failed(checkPerChannel(env, input, adaptor.getVariance(), "variance")))
    return failure();
  return env.same(input);
}

LogicalResult LayerNormOp::inferDims(Adaptor adaptor, DimEnv &env) {
  const Dims &in = env.shape(adaptor.getInput());
  if (failed(env.expectAxis(adaptor.getAxisAttr(), in.size())))
    return failure();
  for (Value parameter : {adaptor.getScale(), adaptor.getBias()}) {
    if (!parameter)
      continue;
    const Dims &dims = env.shape(parameter);
    std::string what = "a parameter of shape " + shapeText(dims) +
                       " does not fit the input " + shapeText(in);
    if (dims.size() > in.size())
      return env.error(what);
    for (auto [dim, extent] :
         llvm::zip(dims, ArrayRef<Dim>(in).take_back(dims.size())))
      if (failed(env.expectStretches(dim, extent, what)))
        return failure();
  }
  return env.same(adaptor.getInput());
}

LogicalResult GroupNormOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Value input = adaptor.getInput();
  if (failed(checkPerChannel(env, input, adaptor.getScale(), "scale")) ||
      failed(checkPerChannel(env, input, adaptor.getBias(), "bias")))
    return failure();
  int64_t groups = number(adaptor.getGroupsAttr(), 1);
  std::optional<int64_t> channels = env.shape(input)[1].getConstant();
  if (groups < 1 || (channels && *channels % groups != 0))
    return env.error("groups " + Twine(groups) +
                     " do not divide the channels of " +
                     shapeText(env.shape(input)));
  return env.same(input);
}

LogicalResult LrnOp::inferDims(Adaptor adaptor, DimEnv &env) {
  return env.same(adaptor.getInput());
}

LogicalResult LpNormalizeOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(env.expectAxis(adaptor.getAxisAttr(),
                            env.shape(adaptor.getInput()).size())))
    return failure();
  return env.same(adaptor.getInput());
}
