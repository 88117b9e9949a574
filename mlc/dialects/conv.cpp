#include "windows.h"

using namespace mlir;
using namespace mlc;

static LogicalResult checkOperands(DimEnv &env, Value input, Value filter,
                                   int64_t groups, bool widen = false) {
  const Dims &in = env.shape(input), &weights = env.shape(filter);
  if (in.size() < 3 || in.size() > 5 || weights.size() != in.size())
    return env.error("needs input and filter of one rank from 3 to 5, not " +
                     shapeText(in) + " and " + shapeText(weights));
  if (groups < 1)
    return env.error("groups must be positive, not " + Twine(groups));
  return env.expectFactors(input, filter, widen);
}

static LogicalResult checkBias(DimEnv &env, Value bias, const Dim &channels) {
  if (!bias)
    return success();
  if (failed(env.expectRank(bias, 1, "bias")))
    return failure();
  return env.expectEqual(env.shape(bias)[0], channels,
                         "bias and output channels");
}

LogicalResult ConvOp::inferDims(Adaptor adaptor, DimEnv &env) {
  int64_t groups = number(adaptor.getGroupsAttr(), 1);
  bool widen = adaptor.getWidenAttr() != nullptr;
  if (failed(checkOperands(env, adaptor.getInput(), adaptor.getFilter(), groups,
                           widen)))
    return failure();
  const Dims &in = env.shape(adaptor.getInput()),
             &filter = env.shape(adaptor.getFilter());
  Layout layout{text(adaptor.getLayoutAttr(), "nchw") == "nhwc", in.size()};
  size_t count = layout.numSpatial();
  Windows windows{list(adaptor.getStridesAttr()),
                  list(adaptor.getPaddingAttr()),
                  list(adaptor.getDilationsAttr())};
  if (failed(checkWindows(env, windows, count)))
    return failure();
  Dim channels = layout.channelsLast ? filter.back() : filter[0];
  Dim filterIn = layout.channelsLast ? filter[count] : filter[1];
  std::string shapes =
      " of input " + shapeText(in) + " and filter " + shapeText(filter);
  if (failed(env.expectEqual(in[layout.channel()], filterIn * groups,
                             "input channels" + shapes)))
    return failure();
  if (std::optional<int64_t> constant = channels.getConstant();
      constant && *constant % groups != 0)
    return env.error("groups " + Twine(groups) +
                     " do not divide the output channels " + Twine(*constant));
  if (failed(checkBias(env, adaptor.getBias(), channels)))
    return failure();
  Dims out(in.size());
  out[0] = in[0];
  out[layout.channel()] = channels;
  for (size_t i = 0; i < count; ++i)
    out[layout.spatial() + i] =
        windowExtent(in[layout.spatial() + i],
                     filter[(layout.channelsLast ? 0 : 2) + i], windows, i);
  env.addResult(out, accumulatorType(elementTypeOf(adaptor.getInput()), widen));
  return success();
}

LogicalResult ConvTransposeOp::inferDims(Adaptor adaptor, DimEnv &env) {
  int64_t groups = number(adaptor.getGroupsAttr(), 1);
  if (failed(
          checkOperands(env, adaptor.getInput(), adaptor.getFilter(), groups)))
    return failure();
  const Dims &in = env.shape(adaptor.getInput()),
             &filter = env.shape(adaptor.getFilter());
  size_t count = in.size() - 2;
  Windows windows{list(adaptor.getStridesAttr()),
                  list(adaptor.getPaddingAttr()),
                  list(adaptor.getDilationsAttr())};
  ArrayRef<int64_t> extra = list(adaptor.getOutputPaddingAttr());
  if (failed(checkWindows(env, windows, count)))
    return failure();
  if (extra.size() != count)
    return env.error("needs " + Twine(count) +
                     " entries of output_padding, not " + Twine(extra.size()));
  std::string shapes =
      " of input " + shapeText(in) + " and filter " + shapeText(filter);
  Dim channels = filter[1] * groups;
  if (failed(env.expectEqual(in[1], filter[0], "input channels" + shapes)) ||
      failed(checkBias(env, adaptor.getBias(), channels)))
    return failure();
  Dims out{in[0], channels};
  for (size_t i = 0; i < count; ++i) {
    Dim reach = (filter[2 + i] + -1) * windows.dilations[i] + 1;
    int64_t pads = windows.padding[i] + windows.padding[i + count];
    out.push_back((in[2 + i] + -1) * windows.strides[i] + reach +
                  (extra[i] - pads));
  }
  env.addResult(out, elementTypeOf(adaptor.getInput()));
  return success();
}
