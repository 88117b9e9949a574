// One way to use threads for all parts of the runtime: the pool, or the
// caller's parallel_for.
#include "context.h"

namespace mlc {

namespace {
struct ForeignLaunch {
  Pool::Body body;
  void *data;
  int64_t count, ranges;
};
} // namespace

static void runForeign(void *data, int64_t index) {
  const ForeignLaunch &launch = *static_cast<ForeignLaunch *>(data);
  FloatingPointScope floatingPoint; // the thread is the caller's
  launch.body(launch.data, rangeBegin(launch.count, launch.ranges, index),
              rangeBegin(launch.count, launch.ranges, index + 1));
}

void parallelRanges(mlc_instance &instance, Pool::Body body, void *data,
                    int64_t count) {
  if (count <= 0)
    return;
  if (count == 1 || instance.threads == 1)
    return body(data, 0, count);
  if (!instance.parallelFor)
    return instance.pool->run(body, data, count);
  ForeignLaunch launch{body, data, count,
                       count < instance.threads ? count : instance.threads};
  instance.parallelFor(instance.user, launch.ranges, runForeign, &launch);
}

} // namespace mlc
