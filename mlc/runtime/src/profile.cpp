// Per-kernel times of a context that was created with `profile`.
#include "context.h"

#include <stdlib.h>

namespace mlc {

// More kernels than any model has: a wrong id must not allocate without bound.
static constexpr int64_t kMaxKernels = 1 << 20;

void recordKernel(mlc_context &context, int64_t kernel, int64_t time,
                  int64_t items) {
  if (kernel < 0 || kernel >= kMaxKernels)
    return;
  if (kernel >= context.numTimes) {
    int64_t count =
        kernel + 1 > 2 * context.numTimes ? kernel + 1 : 2 * context.numTimes;
    void *grown = realloc(context.times, count * sizeof(KernelTimes));
    if (!grown)
      return;
    context.times = static_cast<KernelTimes *>(grown);
    for (; context.numTimes < count; ++context.numTimes)
      context.times[context.numTimes] = KernelTimes();
  }
  KernelTimes &times = context.times[kernel];
  if (!times.calls || time < times.shortest)
    times.shortest = time;
  ++times.calls;
  times.total += time;
  times.items += items;
}

const char *profile(mlc_context *context) {
  if (!context || !context->profile)
    return nullptr;
  constexpr size_t kHead = 128, kLine = 192;
  size_t wanted = kHead + kLine * context->numTimes;
  if (wanted > context->reportBytes) {
    void *grown = realloc(context->report, wanted);
    if (!grown)
      return nullptr;
    context->report = static_cast<char *>(grown);
    context->reportBytes = wanted;
  }
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  Text text(context->report, context->reportBytes);
  text.add("{\"runs\": %lld, \"ns\": %lld, \"kernels\": [",
           number(context->runs), number(context->runTime));
  const char *separator = "";
  for (int64_t i = 0; i < context->numTimes; ++i) {
    KernelTimes &times = context->times[i];
    if (times.calls) {
      text.add("%s{\"id\": %lld, \"calls\": %lld, \"ns\": %lld, \"min_ns\": "
               "%lld, \"items\": %lld}",
               separator, number(i), number(times.calls), number(times.total),
               number(times.shortest), number(times.items));
      separator = ", ";
    }
    times = KernelTimes();
  }
  text.add("]}");
  context->runs = context->runTime = 0;
  return context->report;
}

} // namespace mlc
