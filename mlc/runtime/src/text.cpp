// Operators on strings: what generated host code calls by `mlc.extern`. A
// routine gets its inputs and its configuration as tensors and returns the
// sequence of its results. Strings are UTF-8.
#include "text.h"

namespace mlc {

bool operator==(View a, View b) {
  return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
}

int64_t Strings::count() const {
  int64_t result = 1;
  for (int64_t i = 0; i < rank(); ++i)
    result *= dim(i);
  return result;
}

View Strings::operator[](int64_t index) const {
  const mlc_string &item = static_cast<const mlc_string *>(tensor.data)[index];
  return {item.data, item.size};
}

Config::Config(const mlc_value *value)
    : rest{static_cast<const char *>(value->tensor.data),
           value->tensor.shape[0]} {}

View Config::text() {
  int64_t size = 0, at = 0;
  for (; at < rest.size && rest.data[at] != ':'; ++at)
    size = size * 10 + (rest.data[at] - '0');
  View field = rest.from(at + 1).upTo(size);
  rest = rest.from(at + 1 + size);
  return field;
}

int64_t Config::number() {
  View field = text();
  bool negative = field.size && field.data[0] == '-';
  int64_t value = 0;
  for (int64_t i = negative; i < field.size; ++i)
    value = value * 10 + (field.data[i] - '0');
  return negative ? -value : value;
}

bool put(mlc_rt *rt, mlc_string *target, View text) {
  target->data = mlc_rt_text(rt, text.data, text.size);
  target->size = text.size;
  return target->data || !text.size;
}

bool Broadcast::init(mlc_rt *rt, const mlc_tensor &a, const mlc_tensor &b,
                     int64_t node) {
  rank = a.ndim > b.ndim ? a.ndim : b.ndim;
  dims = take<int64_t>(rt, rank);
  if (!dims)
    return false;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t x = i < rank - a.ndim ? 1 : a.shape[i - (rank - a.ndim)];
    int64_t y = i < rank - b.ndim ? 1 : b.shape[i - (rank - b.ndim)];
    if (x != y && x != 1 && y != 1) {
      rt->error[0] = (node + 1) * 16 + MLC_RT_SHAPE;
      rt->error[1] = y;
      return false;
    }
    dims[i] = x == 1 ? y : x;
    count *= dims[i];
  }
  return true;
}

int64_t Broadcast::source(const mlc_tensor &tensor, int64_t index) const {
  int64_t result = 0, stride = 1;
  for (int64_t i = rank; i-- > 0;) {
    int64_t at = index % dims[i], axis = i - (rank - tensor.ndim);
    index /= dims[i];
    if (axis < 0)
      continue;
    if (tensor.shape[axis] != 1)
      result += at * stride;
    stride *= tensor.shape[axis];
  }
  return result;
}

static bool isSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
}

namespace {
/// The parts of a string, as Python's `str.split` finds them.
class Splitter {
public:
  Splitter(View text, View delimiter, int64_t most)
      : rest(text), delimiter(delimiter), left(most) {
    if (!delimiter.size)
      skip();
  }

  /// The next part; false at the end.
  bool next(View *part) {
    if (done || (!delimiter.size && !rest.size))
      return false;
    int64_t end = left == 0 ? -1 : find();
    if (end < 0) {
      *part = rest;
      done = true;
      return true;
    }
    *part = rest.upTo(end);
    rest = rest.from(end + (delimiter.size ? delimiter.size : 1));
    if (left > 0)
      --left;
    if (!delimiter.size)
      skip();
    return true;
  }

private:
  void skip() {
    while (rest.size && isSpace(rest.data[0]))
      rest = rest.from(1);
  }
  int64_t find() const {
    for (int64_t i = 0; i + (delimiter.size ? delimiter.size : 1) <= rest.size;
         ++i)
      if (delimiter.size ? rest.from(i).upTo(delimiter.size) == delimiter
                         : isSpace(rest.data[i]))
        return i;
    return -1;
  }

  View rest, delimiter;
  int64_t left; // parts that may still be cut off; negative: any number
  bool done = false;
};
} // namespace
} // namespace mlc

using namespace mlc;

static const mlc_value *single(mlc_rt *rt, int64_t dtype, int64_t rank,
                               const int64_t *dims, const void *data) {
  const mlc_value *item = mlc_rt_tensor(rt, dtype, rank, dims, data);
  return item ? mlc_rt_sequence(rt, 1, &item) : nullptr;
}

const mlc_value *mlc_text_equal(mlc_rt *rt, int64_t,
                                const mlc_value *const *items, int64_t node) {
  Strings a(items[0]), b(items[1]);
  Broadcast shape;
  if (!shape.init(rt, a.tensor, b.tensor, node))
    return nullptr;
  auto *equal = take<uint8_t>(rt, shape.count);
  if (!equal)
    return nullptr;
  for (int64_t i = 0; i < shape.count; ++i)
    equal[i] = a[shape.source(a.tensor, i)] == b[shape.source(b.tensor, i)];
  return single(rt, MLC_BOOL, shape.rank, shape.dims, equal);
}

const mlc_value *mlc_text_concat(mlc_rt *rt, int64_t,
                                 const mlc_value *const *items, int64_t node) {
  Strings a(items[0]), b(items[1]);
  Broadcast shape;
  if (!shape.init(rt, a.tensor, b.tensor, node))
    return nullptr;
  auto *result = take<mlc_string>(rt, shape.count);
  if (!result)
    return nullptr;
  for (int64_t i = 0; i < shape.count; ++i) {
    View left = a[shape.source(a.tensor, i)],
         right = b[shape.source(b.tensor, i)];
    auto *text = take<char>(rt, left.size + right.size);
    if (!text)
      return nullptr;
    if (left.size)
      memcpy(text, left.data, left.size);
    if (right.size)
      memcpy(text + left.size, right.data, right.size);
    result[i] = {text, left.size + right.size};
  }
  return single(rt, MLC_STRING, shape.rank, shape.dims, result);
}

// Configuration: the delimiter (empty: white space), the most cuts (negative:
// any number). Results: the parts, and how many each string has.
const mlc_value *mlc_text_split(mlc_rt *rt, int64_t,
                                const mlc_value *const *items, int64_t) {
  Strings x(items[0]);
  Config config(items[1]);
  View delimiter = config.text(), part;
  int64_t most = config.number(), count = x.count(), width = 0;
  auto *counts = take<int64_t>(rt, count);
  auto *dims = take<int64_t>(rt, x.rank() + 1);
  if (!counts || !dims)
    return nullptr;
  for (int64_t i = 0; i < count; ++i) {
    counts[i] = 0;
    for (Splitter parts(x[i], delimiter, most); parts.next(&part);)
      ++counts[i];
    width = counts[i] > width ? counts[i] : width;
  }
  auto *result = take<mlc_string>(rt, count * width);
  if (!result)
    return nullptr;
  memset(result, 0, count * width * sizeof(mlc_string));
  for (int64_t i = 0; i < count; ++i) {
    mlc_string *target = result + i * width;
    for (Splitter parts(x[i], delimiter, most); parts.next(&part); ++target)
      if (!put(rt, target, part))
        return nullptr;
  }
  for (int64_t i = 0; i < x.rank(); ++i)
    dims[i] = x.dim(i);
  dims[x.rank()] = width;
  const mlc_value *both[] = {
      mlc_rt_tensor(rt, MLC_STRING, x.rank() + 1, dims, result),
      mlc_rt_tensor(rt, MLC_INT64, x.rank(), dims, counts)};
  return both[0] && both[1] ? mlc_rt_sequence(rt, 2, both) : nullptr;
}

// Configuration: keys. Result: the number of the first key that is equal, or
// how many keys there are.
const mlc_value *mlc_text_lookup(mlc_rt *rt, int64_t,
                                 const mlc_value *const *items, int64_t) {
  Strings x(items[0]);
  int64_t count = x.count();
  auto *places = take<int64_t>(rt, count);
  if (!places)
    return nullptr;
  for (int64_t i = 0; i < count; ++i) {
    Config keys(items[1]);
    for (places[i] = 0; keys.more() && !(keys.text() == x[i]); ++places[i])
      ;
  }
  return single(rt, MLC_INT64, x.rank(), x.tensor.shape, places);
}

// Configuration: the strings of the result.
const mlc_value *mlc_text_table(mlc_rt *rt, int64_t,
                                const mlc_value *const *items, int64_t) {
  int64_t count = 0;
  for (Config config(items[0]); config.more(); config.text())
    ++count;
  auto *result = take<mlc_string>(rt, count);
  if (!result)
    return nullptr;
  Config config(items[0]);
  for (int64_t i = 0; i < count; ++i)
    if (!put(rt, &result[i], config.text()))
      return nullptr;
  return single(rt, MLC_STRING, 1, &count, result);
}
