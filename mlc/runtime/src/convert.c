/* Conversions between float, double and the 16-bit formats, under the names
 * that LLVM calls where the processor has no instruction for them. Weak, so
 * that a compiler's own copy in the same link wins or loses without a clash.
 * All round to nearest even; NaNs stay NaNs with their payload's top bits. */
#include <stdint.h>
#include <string.h>

#define BUILTIN __attribute__((weak, visibility("hidden")))

/* The 16 bits in the register where the ABI puts them; the arithmetic is on
 * integers only. */
typedef _Float16 half_bits;

static half_bits fromBits(uint16_t bits) {
  half_bits value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint64_t doubleBits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static double doubleFromBits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* A double rounded once to a format with `mantissa` explicit bits whose
 * exponents are biased by `bias`. Its largest exponent is 2 * bias + 1
 * (infinity and NaN). A float converts to double exactly, so one routine serves
 * both. */
static uint16_t narrow(double value, int mantissa, int bias) {
  uint64_t bits = doubleBits(value);
  uint16_t sign = (uint16_t)(bits >> 63 << 15);
  uint16_t infinity = (uint16_t)((2 * bias + 1) << mantissa);
  int64_t exponent = (int64_t)(bits >> 52 & 0x7ff) - 1023;
  uint64_t fraction = bits & 0xfffffffffffffull;
  if (exponent == 1024) { /* keep a NaN quiet, and a NaN */
    uint16_t payload = (uint16_t)(fraction >> (52 - mantissa));
    uint16_t quiet = (uint16_t)(1 << (mantissa - 1));
    return sign | infinity | (fraction ? payload | quiet : 0);
  }
  if (exponent < -bias - mantissa) /* below half of the smallest subnormal */
    return sign;
  int shift = 52 - mantissa;
  uint64_t significand = fraction | 1ull << 52;
  int64_t biased = exponent + bias;
  if (biased < 1) {
    shift += (int)(1 - biased);
    biased = 0;
  }
  uint64_t kept = significand >> shift,
           rest = significand & ((1ull << shift) - 1);
  uint64_t half = 1ull << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1));
  /* The implicit bit of a normal number adds one to the exponent field, a carry
   * another. */
  uint64_t result = kept + (biased ? (uint64_t)(biased - 1) << mantissa : 0);
  return sign | (uint16_t)(result < infinity ? result : infinity);
}

static double widen(uint16_t bits) {
  uint64_t sign = (uint64_t)(bits >> 15) << 63;
  int exponent = bits >> 10 & 31;
  uint64_t fraction = bits & 1023;
  if (exponent == 31)
    return doubleFromBits(sign | 0x7ffull << 52 | fraction << 42 |
                          (fraction ? 1ull << 51 : 0));
  if (exponent)
    return doubleFromBits(sign | (uint64_t)(exponent + 1008) << 52 |
                          fraction << 42);
  double subnormal = (double)fraction * 0x1p-24;
  return sign ? -subnormal : subnormal;
}

BUILTIN float __extendhfsf2(half_bits value) {
  uint16_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (float)widen(bits);
}

BUILTIN double __extendhfdf2(half_bits value) {
  uint16_t bits;
  memcpy(&bits, &value, sizeof bits);
  return widen(bits);
}

BUILTIN half_bits __truncsfhf2(float value) {
  return fromBits(narrow((double)value, 10, 15));
}

BUILTIN half_bits __truncdfhf2(double value) {
  return fromBits(narrow(value, 10, 15));
}

BUILTIN half_bits __truncsfbf2(float value) {
  return fromBits(narrow((double)value, 7, 127));
}

BUILTIN half_bits __truncdfbf2(double value) {
  return fromBits(narrow(value, 7, 127));
}

/* The names that older ABIs use, with the bits in an integer register. */
BUILTIN float __gnu_h2f_ieee(uint16_t bits) { return (float)widen(bits); }

BUILTIN uint16_t __gnu_f2h_ieee(float value) {
  return narrow((double)value, 10, 15);
}
