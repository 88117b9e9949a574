#include "pool.h"

#include <linux/futex.h>
#include <new>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mlc {

// How long an idle worker, and a caller that waits for its workers, spin before
// they sleep. Waking a sleeper costs some 50 us, and the kernels between two
// launches on the caller alone rarely take longer than this.
static constexpr int64_t kSpinNanoseconds = 200000;
// With more threads than processors, whoever spins keeps another from working.
static constexpr int64_t kSpinOversubscribed = 2000;

static void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

static void futexWait(std::atomic<uint32_t> &word, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE,
          value, nullptr, nullptr, 0);
}

static void futexWake(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, 1,
          nullptr, nullptr, 0);
}

/// True as soon as done() holds, false when it did not for `limit` nanoseconds.
template <typename Done> static bool spinUntil(Done done, int64_t limit) {
  int64_t deadline = 0;
  for (int round = 1;; ++round) {
    if (done())
      return true;
    relax();
    if (round % 64)
      continue;
    int64_t now = nanoseconds();
    if (!deadline)
      deadline = now + limit;
    else if (now > deadline)
      return false;
  }
}

// --- The list of all pools, for the destructor of the library
// --------------------------------------------------------

namespace {
/// Holds the list's lock. The lock is the holder's process, so that a child
/// process is not stuck when another thread held it during fork().
class ListLock {
public:
  ListLock() {
    int64_t self = getpid(), seen = 0;
    while (
        !holder.compare_exchange_weak(seen, self, std::memory_order_acquire)) {
      if (seen == self) {
        seen = 0;
        sched_yield();
      }
    }
  }
  ~ListLock() { holder.store(0, std::memory_order_release); }

private:
  static std::atomic<int64_t> holder;
};
std::atomic<int64_t> ListLock::holder{0};
} // namespace

static Pool *allPools;

// Unloading the library takes the code away under the workers' feet: they must
// be gone before.
void Pool::joinAll() {
  ListLock lock;
  for (Pool *pool = allPools; pool; pool = pool->next)
    if (pool->process.load() == getpid())
      pool->stop();
}

// --- Life
// ------------------------------------------------------------------------------------------------------------

Pool *Pool::create(int32_t threads) {
  void *memory = nullptr;
  if (posix_memalign(&memory, alignof(Pool), sizeof(Pool)))
    return nullptr;
  Pool *pool = new (memory) Pool();
  pool->limit = threads;
  pool->spinTime =
      threads <= allowedProcessors() ? kSpinNanoseconds : kSpinOversubscribed;
  pool->process = getpid();
  void *slots = nullptr;
  size_t count = threads > 1 ? threads - 1 : 1;
  if (posix_memalign(&slots, alignof(Worker), count * sizeof(Worker))) {
    free(memory);
    return nullptr;
  }
  pool->workers = static_cast<Worker *>(slots);
  ListLock lock;
  pool->next = allPools;
  if (allPools)
    allPools->previous = pool;
  allPools = pool;
  return pool;
}

void Pool::destroy(Pool *pool) {
  {
    ListLock lock;
    (pool->previous ? pool->previous->next : allPools) = pool->next;
    if (pool->next)
      pool->next->previous = pool->previous;
  }
  if (pool->process.load() == getpid())
    pool->stop();
  free(pool->workers);
  free(pool);
}

void Pool::start() {
  triedToStart = true;
  stopping = false;
  // Signals are for the caller's threads; the stack is large enough for kernels
  // whatever the process' limit says.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{8} << 20);
  while (started < limit - 1) {
    Worker *worker = new (&workers[started]) Worker();
    worker->pool = this;
    worker->index = started + 1;
    if (pthread_create(&worker->thread, &attributes, workerMain, worker))
      break;
    ++started;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Pool::stop() {
  stopping = true;
  for (int32_t i = 0; i < started; ++i) {
    workers[i].ticket.fetch_add(1);
    futexWake(workers[i].ticket);
  }
  for (int32_t i = 0; i < started; ++i)
    pthread_join(workers[i].thread, nullptr);
  reset();
}

void Pool::reset() {
  started = 0;
  triedToStart = false;
  stopping = false;
  pending.store(0);
  callerSleeping.store(0);
  busy.store(0);
}

void Pool::checkProcess() {
  int64_t self = getpid(), seen = process.load(std::memory_order_acquire);
  // The first thread of the child that comes here cleans up, others wait: -self
  // marks that it has begun.
  while (seen != self) {
    if (seen != -self && process.compare_exchange_strong(seen, -self)) {
      reset();
      process.store(self, std::memory_order_release);
      return;
    }
    sched_yield();
    seen = process.load(std::memory_order_acquire);
  }
}

// --- Work
// ------------------------------------------------------------------------------------------------------------

void Pool::runRange(int64_t index) {
  body(data, rangeBegin(count, ranges, index),
       rangeBegin(count, ranges, index + 1));
}

void *Pool::workerMain(void *argument) {
  Worker &worker = *static_cast<Worker *>(argument);
  FloatingPointScope floatingPoint;
  worker.pool->work(worker);
  return nullptr;
}

// Exactly one of the worker and the launching thread gets the range of launch
// `ticket`. Who gets it may read the launch: it cannot end before its ranges
// are done.
bool Pool::take(Worker &worker, uint32_t ticket) {
  uint32_t before = ticket - 1;
  return worker.taken.compare_exchange_strong(before, ticket);
}

void Pool::work(Worker &worker) {
  for (uint32_t seen = 0;;) {
    auto called = [&] {
      return worker.ticket.load(std::memory_order_acquire) != seen;
    };
    while (!called()) {
      if (spinUntil(called, spinTime))
        break;
      // Sequentially consistent on both sides: either the launcher sees
      // `sleeping`, or this sees the ticket.
      worker.sleeping.store(1);
      if (worker.ticket.load() == seen)
        futexWait(worker.ticket, seen);
      worker.sleeping.store(0);
    }
    if (stopping.load(std::memory_order_relaxed))
      return;
    seen = worker.ticket.load(std::memory_order_acquire);
    if (!take(worker, seen))
      continue;
    runRange(worker.index);
    if (pending.fetch_sub(1) == 1 && callerSleeping.load())
      futexWake(pending);
  }
}

void Pool::waitForWorkers() {
  auto done = [&] { return pending.load(std::memory_order_acquire) == 0; };
  if (spinUntil(done, spinTime))
    return;
  callerSleeping.store(1);
  while (uint32_t left = pending.load())
    futexWait(pending, left);
  callerSleeping.store(0);
}

void Pool::run(Body task, void *argument, int64_t items) {
  if (items <= 0)
    return;
  if (items == 1 || limit == 1 || busy.exchange(1, std::memory_order_acquire))
    return task(argument, 0, items);
  if (!triedToStart)
    start();
  body = task;
  data = argument;
  count = items;
  ranges = items < started + 1 ? items : started + 1;
  pending.store(static_cast<uint32_t>(ranges - 1), std::memory_order_relaxed);
  for (int64_t i = 0; i < ranges - 1; ++i) {
    workers[i].ticket.fetch_add(1);
    if (workers[i].sleeping.load())
      futexWake(workers[i].ticket);
  }
  runRange(0);
  for (int64_t i = 0; i < ranges - 1; ++i)
    if (take(workers[i], workers[i].ticket.load(std::memory_order_relaxed))) {
      runRange(workers[i].index);
      pending.fetch_sub(1, std::memory_order_relaxed);
    }
  waitForWorkers();
  busy.store(0, std::memory_order_release);
}

} // namespace mlc
