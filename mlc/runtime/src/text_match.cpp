// Regular expressions: runs the programs of mlc/frontends/common/regex.py, all
// possibilities at once, in time proportional to text times program.
#include "text.h"

namespace mlc {
namespace {
enum { kMatch, kSplit, kSet, kBegin, kEnd, kBoundary, kNoBoundary };

/// The instructions that the match may be at.
class Places {
public:
  bool init(mlc_rt *rt, int64_t count) {
    marks = take<int64_t>(rt, count);
    list = take<int64_t>(rt, count);
    if (marks && list)
      memset(marks, 0, count * sizeof(int64_t));
    return marks && list;
  }
  void clear() {
    ++now;
    size = 0;
  }
  bool add(int64_t place) {
    if (marks[place] == now)
      return false;
    marks[place] = now;
    list[size++] = place;
    return true;
  }

  int64_t *list = nullptr;
  int64_t size = 0;

private:
  int64_t *marks = nullptr, now = 1;
};

class Matcher {
public:
  bool init(mlc_rt *rt, const mlc_value *config);
  bool matches(View text);

private:
  const int64_t *instruction(int64_t place) const {
    return code + starts[place];
  }
  void follow(Places &places, bool begin, bool end, bool boundary);

  const int64_t *starts = nullptr, *code = nullptr;
  Places current, next;
};
} // namespace

bool Matcher::init(mlc_rt *rt, const mlc_value *config) {
  int64_t numbers = 0, i = 0;
  for (Config fields(config); fields.more(); fields.text())
    ++numbers;
  auto *all = take<int64_t>(rt, numbers);
  if (!all)
    return false;
  for (Config fields(config); fields.more();)
    all[i++] = fields.number();
  starts = all + 1;
  code = starts + all[0];
  return current.init(rt, all[0]) && next.init(rt, all[0]);
}

/// Adds what can be reached without taking a character.
void Matcher::follow(Places &places, bool begin, bool end, bool boundary) {
  for (int64_t i = 0; i < places.size; ++i) {
    int64_t place = places.list[i];
    const int64_t *op = instruction(place);
    if (op[0] == kSplit) {
      places.add(op[2]);
      places.add(op[3]);
    } else if ((op[0] == kBegin && begin) || (op[0] == kEnd && end) ||
               (op[0] == kBoundary && boundary) ||
               (op[0] == kNoBoundary && !boundary)) {
      places.add(place + 1);
    }
  }
}

static bool isWord(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (c >= 'a' && c <= 'z');
}

bool Matcher::matches(View text) {
  bool before = false, begin = true;
  current.clear();
  current.add(0);
  while (true) {
    uint32_t letter = 0;
    int64_t size = text.size ? decode(text, &letter) : 0;
    bool after = size && isWord(letter);
    follow(current, begin, !size, before != after);
    if (!size)
      break;
    next.clear();
    for (int64_t i = 0; i < current.size; ++i) {
      const int64_t *op = instruction(current.list[i]);
      if (op[0] != kSet)
        continue;
      for (int64_t j = 0; j < op[1]; j += 2)
        if (letter >= op[2 + j] && letter <= op[3 + j])
          next.add(current.list[i] + 1);
    }
    Places swapped = current;
    current = next;
    next = swapped;
    before = after;
    begin = false;
    text = text.from(size);
  }
  for (int64_t i = 0; i < current.size; ++i)
    if (instruction(current.list[i])[0] == kMatch)
      return true;
  return false;
}
} // namespace mlc

using namespace mlc;

// Configuration: the program. Result: whether it matches all of each string.
const mlc_value *mlc_text_match(mlc_rt *rt, int64_t,
                                const mlc_value *const *items, int64_t) {
  Strings x(items[0]);
  Matcher matcher;
  int64_t count = x.count();
  auto *found = take<uint8_t>(rt, count);
  if (!found || !matcher.init(rt, items[1]))
    return nullptr;
  for (int64_t i = 0; i < count; ++i)
    found[i] = matcher.matches(x[i]);
  const mlc_value *item =
      mlc_rt_tensor(rt, MLC_BOOL, x.rank(), x.tensor.shape, found);
  return item ? mlc_rt_sequence(rt, 1, &item) : nullptr;
}
