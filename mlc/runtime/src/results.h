// Memory of large results, which later runs use again.
#ifndef MLC_RUNTIME_RESULTS_H
#define MLC_RUNTIME_RESULTS_H

#include "support.h"

#include <atomic>
#include <pthread.h>

namespace mlc {

class Results;

/// In front of everything that one output owns; knows how to free itself after
/// context and instance are gone.
struct alignas(kAlignment) Owned {
  Allocator allocator;
  size_t bytes;          // this header included
  Results *home;         // of large ones
  Owned *next = nullptr; // while it is free

  /// nullptr when there is no memory.
  static Owned *create(const Allocator &allocator, size_t bytes, Results *home);
  void destroy();
  /// The caller has deleted the result.
  void drop();
};

/// A context's large results. The system gives memory out with a fault and
/// zeros for each page, which is a fifth of the time that a decoder with caches
/// of some megabytes takes for a token; so what the caller deletes is kept for
/// the next run: at most as much as one run's results were, and nothing once
/// the context is gone. Results may be deleted by any thread.
class Results {
public:
  /// nullptr when there is no memory.
  static Results *create();

  /// The next result is the first one of another run.
  void beginRun() { fresh = true; }
  /// Memory for `bytes`, the header not included, which is used again if there
  /// are many; nullptr when there is none.
  Owned *take(const Allocator &allocator, size_t bytes);
  void giveBack(Owned *owned);
  /// The context is gone; the last result frees what is left.
  void close();

private:
  Owned *fitting(size_t bytes);
  Owned *takeLarge(const Allocator &allocator, size_t bytes);
  void shrink(size_t most);
  void release();

  bool fresh = false; // only the thread that runs sees it

  std::atomic<int32_t> references{1}; // the context's, and one for each result
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  Owned *blocks = nullptr;    // free ones; what came back last is the first
  size_t held = 0;            // bytes of those
  size_t last = 0, taken = 0; // bytes of the last run's results, and this one's
  bool closed = false;
};

} // namespace mlc

#endif
