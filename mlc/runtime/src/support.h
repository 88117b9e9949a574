// Small things that every file needs: memory through the caller's allocator,
// status messages, the FP environment.
#ifndef MLC_RUNTIME_SUPPORT_H
#define MLC_RUNTIME_SUPPORT_H

#include "program.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mlc {

// Every buffer that kernels touch begins at a multiple of this.
constexpr size_t kAlignment = 64;
/// Large buffers begin where a page does. A kernel that writes a little behind
/// what it reads, as the lower bits of addresses go, waits for each of its
/// stores: processors take the next load for one of the same memory until they
/// know the higher bits.
constexpr size_t kPage = 4096;
constexpr size_t kPaged = size_t{16} << 10; // bytes from which on they do

/// Where memory comes from: the caller's callbacks, or mmap and the C library.
/// Copied into every block that must outlive its instance.
struct Allocator {
  void *(*allocate)(void *user, size_t bytes, size_t alignment) = nullptr;
  void (*deallocate)(void *user, void *memory, size_t bytes) = nullptr;
  void *user = nullptr;

  /// 64-byte aligned memory, not cleared; nullptr when there is none. `bytes`
  /// may be 0.
  void *get(size_t bytes) const;
  void put(void *memory, size_t bytes) const;
};

/// a * b in *result; false on overflow or a negative factor.
inline bool multiply(int64_t a, int64_t b, int64_t *result) {
  return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, result);
}

inline size_t alignUp(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Stores code and formatted message (both may be absent) and returns the code.
int32_t setStatus(mlc_status *status, int32_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void clearStatus(mlc_status *status);

/// A bounded text buffer, for messages and the profile.
class Text {
public:
  Text(char *buffer, size_t capacity) : buffer(buffer), capacity(capacity) {
    buffer[0] = 0;
  }
  void add(const char *format, ...) __attribute__((format(printf, 2, 3)));
  const char *str() const { return buffer; }

private:
  char *buffer;
  size_t capacity, used = 0;
};

/// "float32", or "dtype(code, bits)" for what has no name.
void appendDtype(Text &text, int32_t dtype);
/// Bytes of one element; sub-byte types take one.
inline int64_t elementSize(int32_t dtype) { return ((dtype >> 8) + 7) / 8; }

inline int32_t dtypeOf(const mlc_tensor &tensor) {
  return MLC_DTYPE(tensor.dtype.code, tensor.dtype.bits);
}

inline void setDtype(mlc_tensor &tensor, int32_t dtype) {
  tensor.dtype.code = static_cast<uint8_t>(dtype & 0xff);
  tensor.dtype.bits = static_cast<uint8_t>(dtype >> 8);
  tensor.dtype.lanes = 1;
}

/// Round to nearest, no flush to zero, no traps while it lives: kernels must
/// not depend on what the calling thread was doing before, nor the other way
/// round.
class FloatingPointScope {
public:
#if defined(__x86_64__)
  FloatingPointScope() : saved(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~FloatingPointScope() { _mm_setcsr(saved); }

private:
  unsigned saved;
#elif defined(__aarch64__)
  FloatingPointScope() {
    asm volatile("mrs %0, fpcr" : "=r"(saved));
    asm volatile("msr fpcr, %0" ::"r"(static_cast<uint64_t>(0)));
  }
  ~FloatingPointScope() { asm volatile("msr fpcr, %0" ::"r"(saved)); }

private:
  uint64_t saved;
#endif
};

int64_t nanoseconds();

} // namespace mlc

#endif
