// The threads of an instance.
#ifndef MLC_RUNTIME_POOL_H
#define MLC_RUNTIME_POOL_H

#include "support.h"

#include <atomic>
#include <pthread.h>

namespace mlc {

/// Where range `index` of `ranges` ranges of nearly equal size begins in [0,
/// count).
inline int64_t rangeBegin(int64_t count, int64_t ranges, int64_t index) {
  int64_t rest = count % ranges;
  return count / ranges * index + (index < rest ? index : rest);
}

/// How many items that range has.
inline int64_t rangeSize(int64_t count, int64_t ranges, int64_t index) {
  return count / ranges + (index < count % ranges);
}

/// Runs a range of work items on a fixed number of threads, the caller being
/// one of them.
///
/// Each thread has a contiguous range of its own, cut into chunks, of which it
/// takes the fewer at a time the fewer are left; who is done takes chunks of
/// others in the same way. So threads of unlike speed end together, a worker
/// that wakes up late, or that the system has taken the processor from, costs
/// little, and the caller alone finishes a launch that no worker comes to. Idle
/// workers spin for a moment, then sleep on a futex; they wake up on another
/// processor than the caller's. Each has a mailbox of its own, so a launch that
/// needs three threads of sixty-four touches few cache lines. One launch has
/// the workers at a time; a launch from another context meanwhile runs on its
/// caller alone. Workers start at the first parallel launch; a child process of
/// fork() starts its own. A pool that could not start all its threads works
/// with those it has.
class Pool {
public:
  using Body = void (*)(void *data, int64_t begin, int64_t end);

  /// nullptr when out of memory. `threads` counts the caller.
  static Pool *create(int32_t threads);
  /// Joins the workers. Not to be called during a launch.
  static void destroy(Pool *pool);

  /// Calls body(data, begin, end) for disjoint ranges that cover [0, count), at
  /// most one per thread, and returns when all have returned. Ranges are
  /// contiguous, in order and of equal size, but for rounding.
  void run(Body body, void *data, int64_t count);

  /// Must be called before the launches of a run: forgets threads that a fork()
  /// left in the parent.
  void checkProcess();

  int32_t threads() const { return limit; }

private:
  /// What a launch writes for a thread, in one line of the cache.
  struct alignas(64) Seat {
    /// Chunks: the launch they belong to in the upper half, how many of them
    /// nobody has taken in the lower.
    std::atomic<uint64_t> left{0};
    std::atomic<uint32_t> ticket{0}; // the last launch that it has to do with
    std::atomic<uint32_t> sleeping{0};
  };

  /// Processors, as the system has them: a bit for each of the first 1024.
  struct Processors {
    uint64_t bits[16];
  };

  struct alignas(64) Worker {
    std::atomic<uint32_t> steered{0}; // may not run everywhere it is `allowed`
    std::atomic<int32_t> id{0};       // the system's; 0 before it has begun
    Processors allowed{};
    Pool *pool = nullptr;
    int64_t index = 0; // of its seat
    pthread_t thread{};
  };

  static void *workerMain(void *argument);
  static void joinAll() __attribute__((destructor));
  void work(Worker &worker);
  static void steer(Worker &worker);
  static void release(Worker &worker);
  void start();
  void stop();
  void reset();
  uint32_t runChunks(uint32_t number, int64_t range);
  uint32_t runRanges(uint32_t number, int64_t first, int64_t reach);
  void call();
  void waitForWorkers();

  // Written by the launching thread before the tickets are handed out.
  Body body = nullptr;
  void *data = nullptr;
  int64_t count = 0, ranges = 0;
  std::atomic<bool> stopping{false};

  alignas(64) std::atomic<uint32_t> pending{0};
  std::atomic<uint32_t> callerSleeping{0};
  alignas(64) std::atomic<uint32_t> busy{0};
  std::atomic<int64_t> process{0};
  int32_t limit = 1, started = 0;
  int64_t spinTime = 0;
  bool triedToStart = false;
  uint32_t launch = 0; // number of the last one
  Worker *workers = nullptr;
  Seat *seats = nullptr; // one for each thread, the caller's first
  Pool *next = nullptr, *previous = nullptr;
};

/// Processors this process may run on.
int32_t allowedProcessors();

/// MLC_NUM_THREADS, else the number of physical cores among the processors this
/// process may run on, at most what the control group's quota allows. -1 when
/// the variable is no number.
int32_t defaultThreads();

} // namespace mlc

#endif
