// What the routines on strings share: strings as views, configurations, and
// results under construction.
#ifndef MLC_RUNTIME_TEXT_H
#define MLC_RUNTIME_TEXT_H

#include "context.h"

namespace mlc {

/// Bytes that somebody else owns.
struct View {
  const char *data = nullptr;
  int64_t size = 0;

  View from(int64_t begin) const { return {data + begin, size - begin}; }
  View upTo(int64_t end) const { return {data, end}; }
};

bool operator==(View a, View b);

/// The elements of a string tensor.
class Strings {
public:
  explicit Strings(const mlc_value *value) : tensor(value->tensor) {}

  int64_t rank() const { return tensor.ndim; }
  int64_t dim(int64_t axis) const { return tensor.shape[axis]; }
  int64_t count() const;
  View operator[](int64_t index) const;

  const mlc_tensor &tensor;
};

/// The configuration of a routine: fields `length:bytes`, one after the other.
class Config {
public:
  explicit Config(const mlc_value *value);

  bool more() const { return rest.size > 0; }
  View text();
  int64_t number();

private:
  View rest;
};

/// Memory until the end of the run, or nullptr (recorded).
template <typename T> T *take(mlc_rt *rt, int64_t count) {
  return static_cast<T *>(
      mlc_rt_pool(rt, count * static_cast<int64_t>(sizeof(T))));
}

/// A copy of the bytes as an element. False when memory runs out.
bool put(mlc_rt *rt, mlc_string *target, View text);

/// One code point; bytes that are no UTF-8 count as one each. Returns how many
/// bytes it takes.
int64_t decode(View text, uint32_t *letter);

/// Extents of a result and how its elements follow from two broadcast inputs.
class Broadcast {
public:
  /// False when the shapes do not fit (recorded) or memory runs out.
  bool init(mlc_rt *rt, const mlc_tensor &a, const mlc_tensor &b, int64_t node);
  /// The element of `tensor` that belongs to element `index` of the result.
  int64_t source(const mlc_tensor &tensor, int64_t index) const;

  int64_t *dims = nullptr;
  int64_t rank = 0, count = 1;
};

} // namespace mlc

extern "C" __attribute__((visibility("hidden"))) const mlc_value *
mlc_text_match(mlc_rt *rt, int64_t count, const mlc_value *const *items,
               int64_t node);
#endif
