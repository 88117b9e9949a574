#include "pool.h"

#include <initializer_list>
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
// Nor does anybody know how many threads other pools and processes have: who
// has spun for this long lets them have the processor while it goes on.
static constexpr int64_t kPoliteNanoseconds = 5000;
// Workers that are steered to other processors when they wake up: it takes the
// caller a microsecond or two for each.
static constexpr int32_t kSteered = 8;
// Chunks of a thread's range, at most: what others can take over.
static constexpr int64_t kChunks = 64;
// Who takes work takes this part of the chunks that a range has left. Threads
// are never equally fast: the first pieces cost few calls, and the last ones
// are so small that all threads end at about the same time.
static constexpr uint32_t kPart = 4;
// How many other ranges a worker looks at: reading those of all threads would
// cost more than it brings. The caller does look at all.
static constexpr int64_t kReach = 7;

static uint32_t chunksOf(int64_t items) {
  return static_cast<uint32_t>(items < kChunks ? items : kChunks);
}

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
    else if (now > deadline - limit + kPoliteNanoseconds)
      sched_yield();
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

template <typename T> static T *allocate(int32_t count) {
  void *memory = nullptr;
  if (posix_memalign(&memory, alignof(T), count * sizeof(T)))
    return nullptr;
  for (int32_t i = 0; i < count; ++i)
    new (static_cast<T *>(memory) + i) T();
  return static_cast<T *>(memory);
}

Pool *Pool::create(int32_t threads) {
  void *memory = nullptr;
  if (posix_memalign(&memory, alignof(Pool), sizeof(Pool)))
    return nullptr;
  Pool *pool = new (memory) Pool();
  pool->limit = threads;
  pool->spinTime =
      threads <= allowedProcessors() ? kSpinNanoseconds : kSpinOversubscribed;
  pool->process = getpid();
  pool->workers = allocate<Worker>(threads);
  pool->seats = allocate<Seat>(threads);
  if (!pool->workers || !pool->seats) {
    free(pool->workers);
    free(pool->seats);
    free(memory);
    return nullptr;
  }
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
  free(pool->seats);
  free(pool);
}

void Pool::start() {
  triedToStart = true;
  stopping = false;
  // Signals are for the caller's threads, but faults are a worker's own: the
  // handler of one that is blocked never runs, the process just ends. The stack
  // is large enough for kernels whatever the process' limit says.
  sigset_t all, before;
  sigfillset(&all);
  for (int fault : {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{8} << 20);
  while (started < limit - 1) {
    // A child of fork() has the seats of its parent, perhaps of a launch that
    // another thread was in.
    new (&seats[started + 1]) Seat();
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
  stopping.store(true);
  for (int32_t i = 1; i <= started; ++i) {
    seats[i].ticket.store(launch + 1);
    futexWake(seats[i].ticket);
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

// Takes and runs chunks of one range until none is left; returns how many.
// Whoever has taken a chunk may read the launch: it cannot end before its
// chunks are done. Chunks of another launch are left alone.
uint32_t Pool::runChunks(uint32_t number, int64_t range) {
  std::atomic<uint64_t> &share = seats[range].left;
  uint32_t done = 0;
  for (uint64_t seen = share.load(std::memory_order_acquire);;) {
    auto left = static_cast<uint32_t>(seen);
    if (seen >> 32 != number || !left)
      return done;
    uint32_t size = (left + kPart - 1) / kPart;
    if (!share.compare_exchange_weak(seen, seen - size,
                                     std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      continue;
    int64_t first = rangeBegin(count, ranges, range);
    int64_t items = rangeSize(count, ranges, range);
    int64_t chunks = chunksOf(items), next = chunks - left;
    body(data, first + rangeBegin(items, chunks, next),
         first + rangeBegin(items, chunks, next + size));
    done += size;
    seen -= size;
  }
}

// The chunks of range `first`, then what is left of the `reach` ranges behind
// it.
uint32_t Pool::runRanges(uint32_t number, int64_t first, int64_t reach) {
  uint32_t done = 0;
  int64_t threads = started + 1;
  for (int64_t i = 0; i <= reach && i < threads; ++i)
    done += runChunks(number, (first + i) % threads);
  return done;
}

// A system on virtual processors takes those that are halted for busy, and puts
// a worker that wakes up on its caller's processor, where it waits for
// milliseconds while the other one is idle. So until it has run, it may not go
// there.
void Pool::steer(Worker &worker) {
  int32_t id = worker.id.load(std::memory_order_acquire);
  unsigned here = 0;
  if (!id || worker.steered.load(std::memory_order_acquire) ||
      syscall(SYS_getcpu, &here, nullptr, nullptr) || here >= 1024)
    return;
  Processors &allowed = worker.allowed = Processors();
  if (syscall(SYS_sched_getaffinity, id, sizeof allowed, &allowed) <= 0)
    return;
  Processors others = allowed;
  others.bits[here / 64] &= ~(uint64_t{1} << here % 64);
  // Refused when no other processor is left.
  if (!syscall(SYS_sched_setaffinity, id, sizeof others, &others))
    worker.steered.store(1, std::memory_order_release);
}

void Pool::release(Worker &worker) {
  if (!worker.steered.load(std::memory_order_acquire))
    return;
  syscall(SYS_sched_setaffinity, 0, sizeof worker.allowed, &worker.allowed);
  worker.steered.store(0, std::memory_order_release);
}

void *Pool::workerMain(void *argument) {
  Worker &worker = *static_cast<Worker *>(argument);
  worker.id.store(static_cast<int32_t>(syscall(SYS_gettid)),
                  std::memory_order_release);
  FloatingPointScope floatingPoint;
  worker.pool->work(worker);
  return nullptr;
}

void Pool::work(Worker &worker) {
  Seat &seat = seats[worker.index];
  for (uint32_t seen = 0;;) {
    auto called = [&] {
      return seat.ticket.load(std::memory_order_acquire) != seen;
    };
    while (!called()) {
      if (spinUntil(called, spinTime))
        break;
      // Sequentially consistent on both sides: either the launcher sees
      // `sleeping`, or this sees the ticket (`call`).
      seat.sleeping.store(1);
      if (seat.ticket.load() == seen)
        futexWait(seat.ticket, seen);
      seat.sleeping.store(0);
    }
    if (stopping.load(std::memory_order_relaxed))
      return;
    seen = seat.ticket.load(std::memory_order_acquire);
    uint32_t done = runRanges(seen, worker.index, kReach);
    if (done && pending.fetch_sub(done) == done && callerSleeping.load())
      futexWake(pending);
    release(worker);
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

// Gives every thread its range, and wakes up those that sleep. The lines of all
// seats are on their way at the same time: a store that waited for its line, or
// a look at a sleeper between two of them, would take the caller as long as
// that many transfers between cores.
void Pool::call() {
  int64_t items = count, parts = ranges; // divided by once, before the stores
  uint32_t chunks = 0;
  for (int64_t i = 0; i < parts; ++i)
    chunks += chunksOf(rangeSize(items, parts, i));
  pending.store(chunks, std::memory_order_relaxed);
  for (int64_t i = 0; i < parts; ++i) {
    uint64_t left = chunksOf(rangeSize(items, parts, i));
    seats[i].left.store(uint64_t{launch} << 32 | left,
                        std::memory_order_release);
    seats[i].ticket.store(launch, std::memory_order_release);
  }
  // Either this sees `sleeping`, or the worker sees its ticket.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int64_t i = 1; i < parts; ++i) {
    if (!seats[i].sleeping.load(std::memory_order_relaxed))
      continue;
    if (started <= kSteered)
      steer(workers[i - 1]);
    futexWake(seats[i].ticket);
  }
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
  ++launch;
  call();
  uint32_t done = runRanges(launch, 0, started);
  if (pending.fetch_sub(done) != done)
    waitForWorkers();
  busy.store(0, std::memory_order_release);
}

} // namespace mlc
