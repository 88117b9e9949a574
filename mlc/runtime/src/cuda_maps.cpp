// Tensor maps: what the copy engine is told about the tensors of a launch.
#include "cuda.h"

#include <algorithm>

namespace mlc::gpu {

static constexpr int kRank = 5;
static constexpr int kUnit = 16; // bytes that addresses are multiples of

static int64_t sizeOf(const mlc_rt_gpu_size &size, const int64_t *words) {
  int64_t value = size.factor;
  for (int64_t word : size.words)
    if (word >= 0)
      value *= words[word];
  return value;
}

int encodeMap(const Driver &driver, const mlc_rt_gpu_map &map,
              const int64_t *words, void *target) {
  uint64_t extents[kRank], strides[kRank];
  uint32_t box[kRank], steps[kRank];
  bool isEmpty = false;
  for (int64_t i = 0; i < map.rank; ++i) {
    extents[i] = static_cast<uint64_t>(sizeOf(map.extents[i], words));
    auto most =
        static_cast<uint64_t>(map.box[i] < 0 ? -map.box[i] : map.box[i]);
    bool fits = map.box[i] < 0 && extents[i] < most;
    box[i] = static_cast<uint32_t>(fits ? extents[i] : most);
    steps[i] = 1;
    if (i)
      strides[i - 1] = static_cast<uint64_t>(sizeOf(map.strides[i - 1], words));
    isEmpty = isEmpty || extents[i] == 0;
  }
  auto *address = reinterpret_cast<void *>(words[map.tensor]);
  // No kernel copies anything of an empty tensor, but it has a map of it, and
  // the driver takes none without elements.
  if (isEmpty) {
    std::fill_n(extents, map.rank, 1);
    std::fill_n(box, map.rank, 1);
    box[0] = kUnit;
    std::fill_n(strides, map.rank - 1, kUnit);
    address = address ? address : reinterpret_cast<void *>(kUnit);
  }
  constexpr int kPlain = 0;      // CU_TENSOR_MAP_INTERLEAVE_NONE
  constexpr int kWholeLines = 2; // CU_TENSOR_MAP_L2_PROMOTION_L2_128B
  constexpr int kZeros = 0;      // CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
  if (map.pixels) {
    int low[kRank - 2], high[kRank - 2];
    for (int64_t i = 0; i + 2 < map.rank; ++i) {
      low[i] = static_cast<int>(map.low[i]);
      high[i] = static_cast<int>(map.high[i]);
      steps[i + 1] = static_cast<uint32_t>(map.step[i]);
    }
    return driver.encodeWindows(
        target, static_cast<int>(map.type), static_cast<uint32_t>(map.rank),
        address, extents, strides, low, high, box[0],
        static_cast<uint32_t>(map.pixels), steps, kPlain,
        static_cast<int>(map.swizzle), kWholeLines, kZeros);
  }
  return driver.encodeMap(target, static_cast<int>(map.type),
                          static_cast<uint32_t>(map.rank), address, extents,
                          strides, box, steps, kPlain,
                          static_cast<int>(map.swizzle), kWholeLines, kZeros);
}

} // namespace mlc::gpu
