// How many threads an instance uses when nobody says so.
#include "pool.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

namespace mlc {

static constexpr int kMaxCpus = 8192;
static constexpr int32_t kMaxThreads = 1024;

/// The first `capacity - 1` bytes of a small file; false when it cannot be
/// read.
static bool readFile(const char *path, char *buffer, size_t capacity) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  ssize_t size = read(file, buffer, capacity - 1);
  close(file);
  buffer[size > 0 ? size : 0] = 0;
  return size > 0;
}

/// A decimal number at *text, which is moved behind it; -1 when there is none.
/// (strtol and sscanf would bind to newer symbol versions of the C library.)
static int64_t parseNumber(const char **text) {
  int64_t value = -1;
  for (; **text >= '0' && **text <= '9' && value < (int64_t{1} << 50); ++*text)
    value = (value < 0 ? 0 : value * 10) + (**text - '0');
  return value;
}

/// Processors per thread set are counted once: two hyperthreads of a core share
/// its vector units.
static int32_t countCores(const cpu_set_t *allowed, size_t bytes) {
  cpu_set_t *seen = CPU_ALLOC(kMaxCpus);
  if (!seen)
    return CPU_COUNT_S(bytes, allowed);
  CPU_ZERO_S(bytes, seen);
  int32_t cores = 0;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (!CPU_ISSET_S(cpu, bytes, allowed))
      continue;
    char path[96], siblings[64];
    snprintf(path, sizeof path,
             "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    int64_t first = cpu;
    const char *position = siblings;
    if (readFile(path, siblings, sizeof siblings)) {
      first = parseNumber(&position);
      if (first < 0 || first >= kMaxCpus)
        first = cpu;
    }
    if (CPU_ISSET_S(static_cast<int>(first), bytes, seen))
      continue;
    CPU_SET_S(static_cast<int>(first), bytes, seen);
    ++cores;
  }
  CPU_FREE(seen);
  return cores;
}

/// Whole processors that the control group (version 2) grants; 0 when there is
/// no quota.
static int32_t quota() {
  char text[64];
  if (!readFile("/sys/fs/cgroup/cpu.max", text, sizeof text))
    return 0;
  const char *position = text;
  int64_t granted = parseNumber(&position);
  if (granted < 0 || *position != ' ')
    return 0; // "max 100000"
  ++position;
  int64_t period = parseNumber(&position);
  return period > 0 ? static_cast<int32_t>((granted + period - 1) / period) : 0;
}

/// count(set, bytes) of the processors this process may run on; 1 when they are
/// unknown.
static int32_t withAffinity(int32_t (*count)(const cpu_set_t *, size_t)) {
  int32_t result = 1;
  size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  if (cpu_set_t *allowed = CPU_ALLOC(kMaxCpus)) {
    CPU_ZERO_S(bytes, allowed);
    if (!sched_getaffinity(0, bytes, allowed))
      result = count(allowed, bytes);
    CPU_FREE(allowed);
  }
  return result;
}

int32_t allowedProcessors() {
  return withAffinity([](const cpu_set_t *allowed, size_t bytes) {
    return static_cast<int32_t>(CPU_COUNT_S(bytes, allowed));
  });
}

int32_t defaultThreads() {
  const char *text = getenv("MLC_NUM_THREADS");
  if (text && *text) {
    int64_t asked = parseNumber(&text);
    if (asked < 0 || *text)
      return -1;
    if (asked > 0)
      return asked < kMaxThreads ? static_cast<int32_t>(asked) : kMaxThreads;
  }
  int32_t threads = withAffinity(countCores);
  int32_t limit = quota();
  if (limit > 0 && limit < threads)
    threads = limit;
  return threads < 1 ? 1 : threads < kMaxThreads ? threads : kMaxThreads;
}

} // namespace mlc
