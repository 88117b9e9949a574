/* What LLVM calls for operations that have no instruction on the oldest
 * processors: compiler-rt's names, weak as those in convert.c. */
#include <stdint.h>

#define BUILTIN __attribute__((weak, visibility("hidden")))

BUILTIN double __powidf2(double base, int exponent) {
  unsigned left = exponent < 0 ? 0u - (unsigned)exponent : (unsigned)exponent;
  double result = 1;
  for (; left; left >>= 1, base *= base)
    if (left & 1)
      result *= base;
  return exponent < 0 ? 1 / result : result;
}

BUILTIN float __powisf2(float base, int exponent) {
  unsigned left = exponent < 0 ? 0u - (unsigned)exponent : (unsigned)exponent;
  float result = 1;
  for (; left; left >>= 1, base *= base)
    if (left & 1)
      result *= base;
  return exponent < 0 ? 1 / result : result;
}

BUILTIN int __popcountdi2(int64_t value) {
  int count = 0;
  for (uint64_t bits = (uint64_t)value; bits; bits &= bits - 1)
    ++count;
  return count;
}

BUILTIN int __popcountsi2(int32_t value) {
  return __popcountdi2((uint32_t)value);
}
