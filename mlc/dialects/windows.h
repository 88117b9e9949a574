// Sliding windows over spatial dimensions, shared by convolution and pooling.
#ifndef MLC_DIALECTS_WINDOWS_H
#define MLC_DIALECTS_WINDOWS_H

#include "dialect.h"

namespace mlc {

/// Where channels and spatial dimensions are in a tensor of `rank` dimensions.
struct Layout {
  bool channelsLast;
  size_t rank;
  size_t channel() const { return channelsLast ? rank - 1 : 1; }
  size_t spatial() const { return channelsLast ? 1 : 2; }
  size_t numSpatial() const { return rank - 2; }
};

struct Windows {
  llvm::ArrayRef<int64_t> strides, padding, dilations;
};

/// Checks that every list has an entry (padding: two) for each of `count`
/// spatial dimensions.
inline llvm::LogicalResult checkWindows(DimEnv &env, const Windows &windows,
                                        size_t count) {
  if (windows.strides.size() != count || windows.dilations.size() != count ||
      windows.padding.size() != 2 * count)
    return env.error("needs " + llvm::Twine(count) +
                     " strides and dilations and " + llvm::Twine(2 * count) +
                     " paddings, not " + llvm::Twine(windows.strides.size()) +
                     ", " + llvm::Twine(windows.dilations.size()) + " and " +
                     llvm::Twine(windows.padding.size()));
  for (size_t i = 0; i < count; ++i)
    if (windows.strides[i] < 1 || windows.dilations[i] < 1)
      return env.error("strides and dilations must be positive");
  return llvm::success();
}

/// floor((in + low + high - ((k - 1) * dilation + 1)) / stride) + 1.
inline Dim windowExtent(const Dim &in, const Dim &kernel,
                        const Windows &windows, size_t i) {
  int64_t pads =
      windows.padding[i] + windows.padding[i + windows.strides.size()];
  Dim reach = (kernel + -1) * windows.dilations[i] + (1 - pads);
  return floorDiv(in - reach, windows.strides[i]) + 1;
}

} // namespace mlc

#endif // MLC_DIALECTS_WINDOWS_H
