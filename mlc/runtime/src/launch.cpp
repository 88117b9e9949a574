// Runs kernels, and learns which are too small for more than one thread.
#include "context.h"

#include <stdlib.h>

namespace mlc {

// More kernels than any model has: a wrong id must not allocate without bound.
static constexpr int64_t kMaxKernels = 1 << 20;
// A launch on all threads that is shorter than this may be shorter on one:
// handing over costs about a microsecond, and the caches of several processors
// hold what the next kernel reads and writes. Where those are far from each
// other, on two dies say, or as a system places virtual processors, a line
// takes a tenth of a microsecond from one to the other.
static constexpr int64_t kShortNanoseconds = 50000;
// Launches in a row that one way is tried with: the first ones find nothing in
// the caches, or what they need in another processor's.
static constexpr int32_t kTried = 3;
// Launches the better way before both are tried again: other programs come and
// go, and virtual processors move.
static constexpr int32_t kChosen = 500;
// Kernels of a model are not tried in the same runs, but in so many different
// ones: what one takes depends on where those around it leave their results.
static constexpr int32_t kApart = 61;

namespace {
struct Launch {
  mlc_rt_kernel_fn kernel;
  int64_t *args, *error;
};
} // namespace

static void runKernel(void *data, int64_t begin, int64_t end) {
  const Launch &launch = *static_cast<Launch *>(data);
  launch.kernel(launch.args, launch.error, begin, end);
}

/// Kernel `id`; nullptr when out of memory.
static Kernel *findKernel(mlc_context &context, int64_t id) {
  if (id < 0 || id >= kMaxKernels)
    return nullptr;
  if (id >= context.numKernels) {
    int64_t count =
        id + 1 > 2 * context.numKernels ? id + 1 : 2 * context.numKernels;
    void *grown = realloc(context.kernels, count * sizeof(Kernel));
    if (!grown)
      return nullptr;
    context.kernels = static_cast<Kernel *>(grown);
    for (; context.numKernels < count; ++context.numKernels)
      context.kernels[context.numKernels] = Kernel();
  }
  return &context.kernels[id];
}

/// From now on that many launches on all threads or on one; times of a way that
/// is tried again are forgotten.
static void enter(Kernel &kernel, Kernel::Phase phase, bool threads,
                  int32_t launches) {
  kernel.phase = phase;
  kernel.threads = threads;
  kernel.left = launches;
  if (phase != Kernel::Chosen)
    (threads ? kernel.together : kernel.alone) = INT64_MAX;
}

/// Whether to use all threads for `kernel`: not when one has been quicker for
/// this many items. Never a matter of results, which are the same for any
/// number of threads.
static bool worthThreads(Kernel &kernel, int64_t id, int64_t items) {
  if (kernel.items != items) {
    kernel.items = items;
    enter(kernel, Kernel::Chosen, true,
          kTried + static_cast<int32_t>(id % kApart));
  } else if (!kernel.left) {
    if (kernel.phase == Kernel::Chosen)
      enter(kernel, Kernel::Together, true, kTried);
    else if (kernel.phase == Kernel::Alone)
      enter(kernel, Kernel::Chosen,
            kernel.together <= kernel.alone + kernel.alone / 8, kChosen);
    else if (kernel.together < kShortNanoseconds)
      enter(kernel, Kernel::Alone, false, kTried);
    else
      enter(kernel, Kernel::Chosen, true, kChosen);
  }
  --kernel.left;
  return kernel.threads;
}

/// The shortest time of each way counts: the machine may be doing other things,
/// too.
static void learn(Kernel &kernel, int64_t time) {
  int64_t &known = kernel.threads ? kernel.together : kernel.alone;
  known = time < known ? time : known;
}

static void recordTimes(Kernel &kernel, int64_t time, int64_t items) {
  if (!kernel.calls || time < kernel.shortest)
    kernel.shortest = time;
  ++kernel.calls;
  kernel.total += time;
  kernel.totalItems += items;
}

#if MLC_RT_CUDA
void recordLaunch(mlc_context &context, int64_t id, int64_t time,
                  int64_t items) {
  if (Kernel *kernel = findKernel(context, id))
    recordTimes(*kernel, time, items);
}
#endif

} // namespace mlc

using namespace mlc;

int32_t mlc_rt_launch(mlc_rt *rt, mlc_rt_kernel_fn function,
                      mlc_rt_grid_fn grid, int64_t *args, int64_t kernelId) {
  mlc_instance &instance = *rt->instance;
  bool choice = instance.pool != nullptr;
  Kernel *kernel = choice || rt->profile ? findKernel(*rt, kernelId) : nullptr;
  int64_t begin = kernel ? nanoseconds() : 0;
  int64_t items = grid(args);
  choice = choice && kernel && items > 1;
  bool threads =
      items > 1 && (!choice || worthThreads(*kernel, kernelId, items));
  if (threads) {
    Launch launch{function, args, rt->error};
    parallelRanges(instance, runKernel, &launch, items);
  } else if (items > 0) {
    function(args, rt->error, 0, items);
  }
  if (kernel) {
    int64_t time = nanoseconds() - begin;
    if (choice)
      learn(*kernel, time);
    if (rt->profile)
      recordTimes(*kernel, time, items);
  }
  return rt->error[0] != 0;
}

int32_t mlc_rt_launch_unless_same(mlc_rt *rt, mlc_rt_kernel_fn function,
                                  mlc_rt_grid_fn grid, int64_t *args,
                                  int64_t kernelId, int64_t a, int64_t b) {
  if (args[a] == args[b])
    return rt->error[0] != 0;
  return mlc_rt_launch(rt, function, grid, args, kernelId);
}
