#include "support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

namespace mlc {

// Blocks from this size on are mapped, in units of it, so that the kernel can
// back them with huge pages.
static constexpr size_t kHugePage = size_t{2} << 20;

/// Unless MLC_HUGE_PAGES is 0.
static bool wantsHugePages() {
  const char *text = getenv("MLC_HUGE_PAGES");
  return !text || text[0] != '0' || text[1];
}

void *Allocator::get(size_t bytes) const {
  if (bytes > PTRDIFF_MAX - kHugePage)
    return nullptr;
  if (allocate)
    return allocate(user, bytes ? bytes : 1, kAlignment);
  if (bytes < kHugePage) {
    void *memory = nullptr;
    size_t alignment = bytes < kPaged ? kAlignment : kPage;
    return posix_memalign(&memory, alignment, bytes ? bytes : 1) ? nullptr
                                                                 : memory;
  }
  size_t size = alignUp(bytes, kHugePage);
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  if (wantsHugePages())
    madvise(memory, size, MADV_HUGEPAGE);
  return memory;
}

void Allocator::put(void *memory, size_t bytes) const {
  if (!memory)
    return;
  if (deallocate)
    deallocate(user, memory, bytes ? bytes : 1);
  else if (bytes < kHugePage)
    free(memory);
  else
    munmap(memory, alignUp(bytes, kHugePage));
}

static size_t messageCapacity(const mlc_status *status) {
  size_t header = offsetof(mlc_status, message);
  return status->struct_size > header ? status->struct_size - header : 0;
}

int32_t setStatus(mlc_status *status, int32_t code, const char *format, ...) {
  if (!status || status->struct_size < offsetof(mlc_status, message))
    return code;
  status->code = code;
  if (size_t capacity = messageCapacity(status)) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(status->message, capacity, format, arguments);
    va_end(arguments);
  }
  return code;
}

void clearStatus(mlc_status *status) {
  if (!status || status->struct_size < offsetof(mlc_status, message))
    return;
  status->code = MLC_OK;
  if (messageCapacity(status))
    status->message[0] = 0;
}

void Text::add(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int added = vsnprintf(buffer + used, capacity - used, format, arguments);
  va_end(arguments);
  if (added > 0)
    used += static_cast<size_t>(added) < capacity - used
                ? static_cast<size_t>(added)
                : capacity - used - 1;
}

void appendDtype(Text &text, int32_t dtype) {
  static const struct {
    int32_t dtype;
    const char *name;
  } kNames[] = {{MLC_FLOAT8_E4M3FN, "float8_e4m3fn"},
                {MLC_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz"},
                {MLC_FLOAT8_E5M2, "float8_e5m2"},
                {MLC_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz"},
                {MLC_FLOAT8_E8M0FNU, "float8_e8m0fnu"},
                {MLC_FLOAT4_E2M1FN, "float4_e2m1fn"},
                {MLC_BOOL, "bool"},
                {MLC_STRING, "string"}};
  for (const auto &entry : kNames)
    if (entry.dtype == dtype)
      return text.add("%s", entry.name);
  static const char *const kCodes[] = {"int",   "uint",   "float",
                                       nullptr, "bfloat", "complex"};
  int32_t code = dtype & 0xff, bits = dtype >> 8;
  if (code < 6 && kCodes[code])
    return text.add("%s%d", kCodes[code], bits);
  text.add("dtype(%d, %d)", code, bits);
}

int64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

} // namespace mlc
