// Letters' case, and the operator that filters and normalises words by it.
#include "text.h"

namespace mlc {
namespace {
/// Code points whose lower case is `step` away: every one, or every other one.
struct Letters {
  uint32_t first, last;
  int32_t step;
  bool alternating; // upper and lower case take turns, upper case first
};
} // namespace

// Latin, Greek, Cyrillic, Armenian: the alphabets with simple pairs of case
// (Unicode 15, UnicodeData.txt). What is not here stays as it is.
static const Letters kLetters[] = {
    {0x41, 0x5a, 32, false},   {0xc0, 0xd6, 32, false},
    {0xd8, 0xde, 32, false},   {0x100, 0x12f, 1, true},
    {0x132, 0x137, 1, true},   {0x139, 0x148, 1, true},
    {0x14a, 0x177, 1, true},   {0x178, 0x178, -121, false},
    {0x179, 0x17e, 1, true},   {0x1cd, 0x1dc, 1, true},
    {0x1de, 0x1ef, 1, true},   {0x1f8, 0x21f, 1, true},
    {0x222, 0x233, 1, true},   {0x386, 0x386, 38, false},
    {0x388, 0x38a, 37, false}, {0x38c, 0x38c, 64, false},
    {0x38e, 0x38f, 63, false}, {0x391, 0x3a1, 32, false},
    {0x3a3, 0x3ab, 32, false}, {0x400, 0x40f, 80, false},
    {0x410, 0x42f, 32, false}, {0x460, 0x481, 1, true},
    {0x48a, 0x4bf, 1, true},   {0x4d0, 0x52f, 1, true},
    {0x531, 0x556, 48, false}, {0x1e00, 0x1e95, 1, true},
    {0x1ea0, 0x1eff, 1, true}, {0xff21, 0xff3a, 32, false},
};

static uint32_t changed(uint32_t letter, bool upper) {
  for (const Letters &range : kLetters) {
    uint32_t shift = range.alternating || !upper ? 0 : range.step;
    if (letter - shift < range.first || letter - shift > range.last)
      continue;
    if (!range.alternating)
      return upper ? letter - range.step : letter + range.step;
    bool isUpper = (letter - range.first) % 2 == 0;
    return letter + (isUpper ? !upper : upper ? -1 : 0);
  }
  return upper && letter == 0x3c2 ? 0x3a3 : letter; // a final sigma
}

int64_t decode(View text, uint32_t *letter) {
  auto byte = [&](int64_t i) { return static_cast<uint8_t>(text.data[i]); };
  uint8_t lead = byte(0);
  int64_t size = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  *letter = lead;
  if (size == 1 || size > text.size || lead > 0xf4)
    return 1;
  uint32_t value = lead & (0x7f >> size);
  for (int64_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80)
      return 1;
    value = value << 6 | (byte(i) & 0x3f);
  }
  *letter = value;
  return size;
}

static int64_t encode(uint32_t letter, char *target) {
  if (letter < 0x80) {
    target[0] = static_cast<char>(letter);
    return 1;
  }
  int64_t size = letter < 0x800 ? 2 : letter < 0x10000 ? 3 : 4;
  for (int64_t i = size; i-- > 1; letter >>= 6)
    target[i] = static_cast<char>(0x80 | (letter & 0x3f));
  target[0] =
      static_cast<char>((0xf00 >> size) & 0xff) | static_cast<char>(letter);
  return size;
}

/// The text in upper or lower case, in memory of the run. False: out of memory.
static bool inCase(mlc_rt *rt, View text, bool upper, View *result) {
  // No pair of the table differs by more than one byte in length.
  auto *target = take<char>(rt, 2 * text.size);
  if (!target)
    return false;
  int64_t used = 0;
  while (text.size) {
    uint32_t letter;
    int64_t size = decode(text, &letter);
    uint32_t other =
        size == 1 && letter >= 0x80 ? letter : changed(letter, upper);
    if (other == letter) {
      memcpy(target + used, text.data, size);
      used += size;
    } else {
      used += encode(other, target + used);
    }
    text = text.from(size);
  }
  *result = {target, used};
  return true;
}

static bool isStopword(mlc_rt *rt, const mlc_value *words, View text,
                       bool sensitive, bool *found) {
  Config config(words);
  config.number(), config.number();
  *found = false;
  View plain = text;
  if (!sensitive && !inCase(rt, text, false, &plain))
    return false;
  while (config.more() && !*found) {
    View word = config.text();
    if (!sensitive && !inCase(rt, word, false, &word))
      return false;
    *found = word == plain;
  }
  return true;
}
} // namespace mlc

using namespace mlc;

// Configuration: the case to change to (0 none, 1 lower, 2 upper), whether
// stopwords are sensitive to case, stopwords. At least one string remains: an
// empty one.
const mlc_value *mlc_text_normalize(mlc_rt *rt, int64_t,
                                    const mlc_value *const *items, int64_t) {
  Strings x(items[0]);
  Config config(items[1]);
  int64_t change = config.number(), count = x.count(), kept = 0;
  bool sensitive = config.number() != 0;
  auto *result = take<mlc_string>(rt, count + 1);
  if (!result)
    return nullptr;
  for (int64_t i = 0; i < count; ++i) {
    View text = x[i];
    bool stopword;
    if (!isStopword(rt, items[1], text, sensitive, &stopword))
      return nullptr;
    if (stopword)
      continue;
    if (change && !inCase(rt, text, change == 2, &text))
      return nullptr;
    if (!put(rt, &result[kept++], text))
      return nullptr;
  }
  if (!kept)
    result[kept++] = {nullptr, 0};
  int64_t dims[] = {1, kept};
  int64_t rank = x.rank() == 2 ? 2 : 1;
  const mlc_value *item =
      mlc_rt_tensor(rt, MLC_STRING, rank, dims + 2 - rank, result);
  return item ? mlc_rt_sequence(rt, 1, &item) : nullptr;
}
