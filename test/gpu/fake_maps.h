/* Tensor maps in fake_libcuda.c, of which this is a part: what the driver asks
 * of them, and that launches have theirs. */
struct Map {
  uint64_t mark, address;
  char rest[112];
};
static const uint64_t kMap = 0x70616d20726f736e; /* of what has been encoded */

/* Writes a tensor map, and checks that its tensor of `bytes` bytes is alive, if
 * it has any; what the driver refuses of any map. */
static Result encode(const char *name, void *map, const void *address,
                     size_t bytes, uint32_t rank, const uint64_t *strides,
                     int wrong) {
  wrong |= (uintptr_t)map % 64 || (uintptr_t)address % 16 || rank > 5;
  for (uint32_t i = 1; i < rank; ++i)
    wrong |= !strides[i - 1] || strides[i - 1] % 16;
  if (wrong)
    return INVALID_VALUE;
  if (bytes)
    holder(name, address, bytes);
  struct Map written = {kMap, (uint64_t)(uintptr_t)address, ""};
  memcpy(map, &written, sizeof written);
  return OK;
}

Result cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                              const uint64_t *extents, const uint64_t *strides,
                              const uint32_t *box, const uint32_t *steps,
                              int interleave, int swizzle, int promotion,
                              int outside) {
  static const int sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  ENTER("cuTensorMapEncodeTiled");
  size_t last = sizes[type], inner = box[0] * (size_t)sizes[type];
  int wrong = rank < 1 || interleave || outside || promotion < 0 ||
              inner % 16 || (swizzle && inner > 16u << swizzle);
  for (uint32_t i = 0; i < rank; ++i) {
    wrong |= !extents[i] || !box[i] || box[i] > 256 || steps[i] != 1;
    last += (extents[i] - 1) * (i ? strides[i - 1] : (uint64_t)sizes[type]);
  }
  if (last == (size_t)sizes[type])
    last = 0; /* a single element stands for an empty tensor */
  say("map of%s %lld dimensions, %lld x %lld", "", rank, extents[0],
      rank > 1 ? (long long)extents[1] : 1);
  say("box of%s %lld x %lld", "", box[0], rank > 1 ? box[1] : 1, 0);
  return encode("cuTensorMapEncodeTiled", map, address, last, rank, strides,
                wrong);
}

Result cuTensorMapEncodeIm2col(void *map, int type, uint32_t rank,
                               void *address, const uint64_t *extents,
                               const uint64_t *strides, const int *low,
                               const int *high, uint32_t channels,
                               uint32_t pixels, const uint32_t *steps,
                               int interleave, int swizzle, int promotion,
                               int outside) {
  ENTER("cuTensorMapEncodeIm2col");
  int wrong = rank < 3 || interleave || outside || promotion < 0 ||
              channels > 256 || pixels < 1 || pixels > 1024 ||
              (type == 9 && swizzle == 3 && channels > 64);
  for (uint32_t i = 0; i + 2 < rank; ++i)
    wrong |= low[i] < -128 || high[i] > 127 || steps[i + 1] < 1 ||
             steps[i + 1] > 8 || (int64_t)extents[i + 1] - 1 + high[i] < low[i];
  say("windows of%s %lld channels, %lld x %lld pixels", "", extents[0],
      extents[1], rank > 3 ? (long long)extents[2] : 1);
  return encode("cuTensorMapEncodeIm2col", map, address,
                extents[rank - 1] * strides[rank - 2], rank, strides, wrong);
}

/* Whether a launch has `word` as one of its `count` words. */
static int hasWord(const int64_t *words, size_t count, uint64_t word) {
  for (size_t i = 0; i < count; ++i)
    if ((uint64_t)words[i] == word)
      return 1;
  return 0;
}

/* The words of a launch whose parameters are passed one by one; tensor maps of
 * its tensors must be behind them. */
static size_t gatherWords(const char *kernel, void **parameters,
                          int64_t *words) {
  size_t count = 0;
  int found = 0;
  for (; *parameters; ++parameters) {
    const struct Map *map = *parameters;
    int isMap = map->mark == kMap;
    found += isMap;
    if (!isMap && !found)
      words[count++] = *(int64_t *)*parameters;
    else if (!isMap)
      say("BREACH %s: a parameter behind the tensor maps", kernel, 0, 0, 0);
    else if ((uintptr_t)map % 64 || !hasWord(words, count, map->address))
      say("BREACH %s: a map of a tensor of another launch", kernel, 0, 0, 0);
  }
  if (!found)
    say("BREACH %s: no tensor maps", kernel, 0, 0, 0);
  return count;
}
