// Per-kernel times of a context that was created with `profile`.
#include "context.h"

#include <stdlib.h>

namespace mlc {

const char *profile(mlc_context *context) {
  if (!context || !context->profile)
    return nullptr;
  constexpr size_t kHead = 128, kLine = 192;
  size_t wanted = kHead + kLine * context->numKernels;
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
  for (int64_t i = 0; i < context->numKernels; ++i) {
    Kernel &kernel = context->kernels[i];
    if (kernel.calls) {
      text.add("%s{\"id\": %lld, \"calls\": %lld, \"ns\": %lld, \"min_ns\": "
               "%lld, \"items\": %lld}",
               separator, number(i), number(kernel.calls), number(kernel.total),
               number(kernel.shortest), number(kernel.totalItems));
      separator = ", ";
    }
    kernel.calls = kernel.total = kernel.shortest = kernel.totalItems = 0;
  }
  text.add("]}");
  context->runs = context->runTime = 0;
  return context->report;
}

} // namespace mlc
