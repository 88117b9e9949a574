// Numbers in strings: read and printed, the same whatever the locale is.
//
// strtod() and snprintf() use the locale's decimal point. So the text that is
// read is handed on as whole digits and a power of ten, and of what is printed
// only the digits are used.
#include "text.h"

#include <stdio.h>
#include <stdlib.h>

namespace mlc {
namespace {
/// A decimal number: `digits` whole digits and a power of ten.
struct Decimal {
  bool negative = false;
  bool whole = true; // neither a point nor an exponent
  int64_t exponent = 0;
  char *digits; // memory of as many bytes as the text has, and kRoom
  int64_t count = 0;
};

constexpr int64_t kRoom = 32; // 'e', an exponent and the end
constexpr int64_t kFarthest = 1'000'000'000'000'000; // beyond any power of ten
constexpr int kMostDigits = 17;                      // of a double
} // namespace

static bool isSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool isDigit(char c) { return c >= '0' && c <= '9'; }

static View trimmed(View text) {
  while (text.size && isSpace(text.data[0]))
    text = text.from(1);
  while (text.size && isSpace(text.data[text.size - 1]))
    text = text.upTo(text.size - 1);
  return text;
}

static bool isWord(View text, View word) {
  if (text.size != word.size)
    return false;
  for (int64_t i = 0; i < text.size; ++i)
    if ((text.data[i] | 0x20) != word.data[i])
      return false;
  return true;
}

/// The sign in front, which is taken off.
static bool takeSign(View *text) {
  bool negative = text->size && text->data[0] == '-';
  if (negative || (text->size && text->data[0] == '+'))
    *text = text->from(1);
  return negative;
}

/// What follows the 'e'. False when it is no whole number.
static bool readExponent(View text, int64_t *exponent) {
  bool negative = takeSign(&text);
  int64_t value = 0;
  for (int64_t i = 0; i < text.size; ++i) {
    if (!isDigit(text.data[i]))
      return false;
    if (value < kFarthest)
      value = value * 10 + (text.data[i] - '0');
  }
  *exponent += negative ? -value : value;
  return text.size > 0;
}

/// Digits with at most one point, and an exponent. False for anything else.
static bool readDecimal(View text, Decimal *number) {
  bool point = false;
  for (int64_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    if (isDigit(c)) {
      number->digits[number->count++] = c;
      number->exponent -= point;
    } else if (c == '.' && !point) {
      point = true;
      number->whole = false;
    } else if (c == 'e' || c == 'E') {
      number->whole = false;
      return number->count && readExponent(text.from(i + 1), &number->exponent);
    } else {
      return false;
    }
  }
  return number->count > 0;
}

static double toDouble(const Decimal &number) {
  snprintf(number.digits + number.count, kRoom, "e%lld",
           static_cast<long long>(number.exponent));
  double value = strtod(number.digits, nullptr);
  return number.negative ? -value : value;
}

/// A number or one of the words for infinity and NaN. False for other text.
static bool readFloat(View text, char *memory, double *value) {
  Decimal number;
  number.digits = memory;
  text = trimmed(text);
  number.negative = takeSign(&text);
  if (readDecimal(text, &number)) {
    *value = toDouble(number);
    return true;
  }
  if (isWord(text, {"nan", 3})) {
    *value = __builtin_nan("");
    return true;
  }
  *value = number.negative ? -__builtin_inf() : __builtin_inf();
  return isWord(text, {"inf", 3}) || isWord(text, {"infinity", 8});
}

/// A whole number in 64 bits; a fraction is cut off. False for other text and
/// for numbers that do not fit.
static bool readInteger(View text, bool isUnsigned, char *memory,
                        uint64_t *value) {
  Decimal number;
  number.digits = memory;
  text = trimmed(text);
  number.negative = takeSign(&text);
  if (!readDecimal(text, &number))
    return false;
  constexpr uint64_t kHalf = uint64_t(1) << 63;
  uint64_t size = 0;
  if (number.whole) {
    for (int64_t i = 0; i < number.count; ++i)
      if (__builtin_mul_overflow(size, uint64_t(10), &size) ||
          __builtin_add_overflow(size, uint64_t(memory[i] - '0'), &size))
        return false;
  } else {
    double real = toDouble(number);
    real = number.negative ? -real : real;
    if (!(real < 2.0 * static_cast<double>(kHalf)))
      return false;
    size = static_cast<uint64_t>(real);
  }
  *value = number.negative ? 0 - size : size;
  return number.negative ? size <= kHalf : isUnsigned || size < kHalf;
}

static int32_t noNumber(mlc_rt *rt, int64_t node, int64_t index, View text,
                        const char *type) {
  constexpr int64_t kShown = 40;
  int64_t shown = text.size < kShown ? text.size : kShown;
  while (shown && shown < text.size && (text.data[shown] & 0xc0) == 0x80)
    --shown; // not in the middle of a letter
  return rt->fail(MLC_ERROR_RUNTIME,
                  "node '%s': element %lld, '%.*s'%s, is no number of type %s",
                  nodeName(node), static_cast<long long>(index),
                  static_cast<int>(shown), shown ? text.data : "",
                  shown < text.size ? "..." : "", type);
}

/// The `count` digits of a positive number, rounded to nearest; the result is
/// its power of ten.
static int64_t roundedDigits(double value, int count, char *digits) {
  char text[64];
  snprintf(text, sizeof text, "%.*e", count - 1, value);
  const char *end = strchr(text, 'e');
  digits[0] = text[0];
  memcpy(digits + 1, end - (count - 1), count - 1);
  return strtoll(end + 1, nullptr, 10) - (count - 1);
}

static bool readsBack(double value, bool isFloat, char *digits, int count,
                      int64_t exponent) {
  snprintf(digits + count, kRoom, "e%lld", static_cast<long long>(exponent));
  double read = strtod(digits, nullptr);
  return (isFloat ? static_cast<float>(read) : read) == value;
}

/// The next larger number of as many digits. False when they all are nines.
static bool increment(char *digits, int count) {
  for (int i = count; i-- > 0; digits[i] = '0')
    if (digits[i] != '9') {
      ++digits[i];
      return true;
    }
  return false;
}

/// The fewest digits from which a positive number can be read.
static int shortest(double value, bool isFloat, char *digits,
                    int64_t *exponent) {
  for (int count = 1;; ++count) {
    *exponent = roundedDigits(value, count, digits);
    // Powers of two are twice as far from the next larger number as from the
    // next smaller one: there the digits may do that are a little too large.
    if (count == kMostDigits ||
        readsBack(value, isFloat, digits, count, *exponent) ||
        (increment(digits, count) &&
         readsBack(value, isFloat, digits, count, *exponent)))
      return count;
  }
}

/// Plain from 0.0001 to below 1e16, else scientific. Returns the length.
static int64_t printFloat(double value, bool isFloat, char *target) {
  if (value != value)
    return snprintf(target, kRoom, "NaN");
  char *begin = target;
  if (__builtin_signbit(value))
    *target++ = '-';
  value = __builtin_fabs(value);
  if (value == __builtin_inf() || value == 0)
    return target - begin + snprintf(target, kRoom, value == 0 ? "0" : "INF");
  char digits[kMostDigits + kRoom];
  int64_t exponent;
  int count = shortest(value, isFloat, digits, &exponent);
  int64_t leading = exponent + count - 1; // the first digit's power of ten
  if (leading < -4 || leading >= 16) {
    target += snprintf(
        target, kRoom, "%c%s%.*se%c%02lld", digits[0], count > 1 ? "." : "",
        count - 1, digits + 1, leading < 0 ? '-' : '+',
        static_cast<long long>(leading < 0 ? -leading : leading));
    return target - begin;
  }
  for (int64_t place = leading < 0 ? 0 : leading;
       place >= exponent || place >= 0; --place) {
    if (place == -1)
      *target++ = '.';
    bool given = place <= leading && place >= exponent;
    *target++ = given ? digits[leading - place] : '0';
  }
  return target - begin;
}

static int64_t printElement(const void *data, int64_t index, int64_t bits,
                            char type, char *target) {
  if (type == 'f')
    return bits == 32 ? printFloat(static_cast<const float *>(data)[index],
                                   true, target)
                      : printFloat(static_cast<const double *>(data)[index],
                                   false, target);
  auto value = static_cast<const int64_t *>(data)[index];
  return snprintf(target, kRoom, type == 'u' ? "%llu" : "%lld",
                  static_cast<long long>(value));
}
} // namespace mlc

using namespace mlc;

static const mlc_value *shaped(mlc_rt *rt, int64_t dtype,
                               const mlc_tensor &like, const void *data) {
  const mlc_value *item = mlc_rt_tensor(rt, dtype, like.ndim, like.shape, data);
  return item ? mlc_rt_sequence(rt, 1, &item) : nullptr;
}

// Configuration: the type to read, float64, int64 or uint64, and the type that
// the model names.
const mlc_value *mlc_text_parse(mlc_rt *rt, int64_t,
                                const mlc_value *const *items, int64_t node) {
  Strings x(items[0]);
  Config config(items[1]);
  View type = config.text(), wanted = config.text();
  bool isFloat = type.data[0] == 'f';
  int64_t count = x.count(), longest = 0;
  for (int64_t i = 0; i < count; ++i)
    longest = x[i].size > longest ? x[i].size : longest;
  auto *memory = take<char>(rt, longest + kRoom);
  auto *name = take<char>(rt, wanted.size + 1);
  auto *result = take<uint64_t>(rt, count);
  if (!memory || !name || !result)
    return nullptr;
  memcpy(name, wanted.data, wanted.size);
  name[wanted.size] = 0;
  for (int64_t i = 0; i < count; ++i) {
    double real = 0;
    bool found =
        isFloat ? readFloat(x[i], memory, &real)
                : readInteger(x[i], type.data[0] == 'u', memory, &result[i]);
    if (!found) {
      noNumber(rt, node, i, x[i], name);
      return nullptr;
    }
    if (isFloat)
      memcpy(&result[i], &real, sizeof real);
  }
  return shaped(rt, isFloat ? MLC_FLOAT64 : MLC_INT64, x.tensor, result);
}

// Configuration: the type of the numbers, float32, float64, int64 or uint64.
const mlc_value *mlc_text_print(mlc_rt *rt, int64_t,
                                const mlc_value *const *items, int64_t) {
  const mlc_tensor &x = items[0]->tensor;
  Config config(items[1]);
  View type = config.text();
  bool narrow = type == View{"float32", 7};
  int64_t count = Strings(items[0]).count();
  auto *result = take<mlc_string>(rt, count);
  if (!result)
    return nullptr;
  for (int64_t i = 0; i < count; ++i) {
    char text[64];
    int64_t size =
        printElement(x.data, i, narrow ? 32 : 64, type.data[0], text);
    if (!put(rt, &result[i], {text, size}))
      return nullptr;
  }
  return shaped(rt, MLC_STRING, x, result);
}
