// The pool by itself: every item exactly once, whatever the count, the number
// of threads and who else is launching.
#include "pool.h"

#include <initializer_list>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

using mlc::Pool;

// Generated code brings the program; the pool does not look at it.
extern "C" const mlc_rt_program mlc_program = {};

static constexpr int64_t kMost = 5000;
// Calls for a range: a quarter of what is left of 64 chunks, again and again.
static constexpr int32_t kCalls = 13;

struct Counters {
  std::atomic<int32_t> items[kMost];
  std::atomic<int32_t> calls{0};
  int64_t count = 0;
  int32_t slow = 0;   // microseconds in the first item
  int64_t ranges = 0; // in whose last calls there is little left; 0: not known
};

static void countItems(void *data, int64_t begin, int64_t end) {
  auto &counters = *static_cast<Counters *>(data);
  CHECK(0 <= begin && begin < end && end <= counters.count);
  ++counters.calls;
  for (int64_t i = 0; i < counters.ranges; ++i) {
    int64_t first = mlc::rangeBegin(counters.count, counters.ranges, i),
            behind = mlc::rangeBegin(counters.count, counters.ranges, i + 1);
    CHECK(end != behind || end - begin <= (behind - first + 63) / 64);
  }
  if (begin == 0 && counters.slow)
    usleep(counters.slow);
  for (int64_t i = begin; i < end; ++i)
    ++counters.items[i];
}

static void launch(Pool &pool, Counters &counters, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    counters.items[i] = 0;
  counters.calls = 0;
  counters.count = count;
  pool.run(countItems, &counters, count);
  for (int64_t i = 0; i < count; ++i)
    CHECK(counters.items[i] == 1);
  CHECK(counters.calls <= kCalls * pool.threads());
}

static void testCounts(int32_t threads) {
  Pool *pool = Pool::create(threads);
  auto *counters = new (malloc(sizeof(Counters))) Counters();
  pool->checkProcess();
  for (int64_t count = 0; count < kMost;
       count = count < 70 ? count + 1 : count * 3 / 2) {
    counters->ranges = threads == 1 ? 0 : count < threads ? count : threads;
    launch(*pool, *counters, count);
  }
  counters->ranges = 0;
  counters->slow = 2000; // others take over what the slow thread has not begun,
                         // and sleep meanwhile
  for (int i = 0; i < 3; ++i)
    launch(*pool, *counters, 100);
  free(counters);
  Pool::destroy(pool);
}

struct Client {
  Pool *pool;
  int64_t seed;
};

static void *launchMany(void *argument) {
  const Client &client = *static_cast<Client *>(argument);
  auto *counters = new (malloc(sizeof(Counters))) Counters();
  for (int64_t i = 0; i < 300; ++i)
    launch(*client.pool, *counters, 1 + (client.seed + i * 37) % 200);
  free(counters);
  return nullptr;
}

static void testClients() {
  Pool *pool = Pool::create(3);
  Client clients[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    clients[i] = {pool, i * 1000};
    CHECK(!pthread_create(&threads[i], nullptr, launchMany, &clients[i]));
  }
  for (pthread_t thread : threads)
    pthread_join(thread, nullptr);
  Pool::destroy(pool);
}

static void testRanges() {
  for (int64_t ranges = 1; ranges < 9; ++ranges)
    for (int64_t count = 0; count < 40; ++count) {
      CHECK(mlc::rangeBegin(count, ranges, 0) == 0 &&
            mlc::rangeBegin(count, ranges, ranges) == count);
      for (int64_t i = 0; i < ranges; ++i) {
        int64_t size = mlc::rangeBegin(count, ranges, i + 1) -
                       mlc::rangeBegin(count, ranges, i);
        CHECK(size == count / ranges || size == count / ranges + 1);
        CHECK(size == mlc::rangeSize(count, ranges, i));
      }
    }
  CHECK(mlc::rangeBegin(INT64_MAX, 1024, 1024) == INT64_MAX);
}

static thread_local volatile sig_atomic_t handled;

static void onFault(int) { ++handled; }

static void raiseFaults(void *data, int64_t, int64_t) {
  bool isCaller =
      pthread_equal(pthread_self(), *static_cast<pthread_t *>(data));
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  CHECK(sigismember(&blocked, SIGINT) == !isCaller);
  handled = 0;
  for (int number : {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV})
    raise(number);
  CHECK(handled == 5);
  usleep(1000); // so that workers have their share
}

// A program's handler sees the faults of workers, and no other signals there.
static void testSignals() {
  for (int number : {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV})
    signal(number, onFault);
  Pool *pool = Pool::create(3);
  pthread_t caller = pthread_self();
  pool->checkProcess();
  for (int i = 0; i < 20; ++i)
    pool->run(raiseFaults, &caller, 3);
  Pool::destroy(pool);
  for (int number : {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV})
    signal(number, SIG_DFL);
}

struct Stuck {
  pid_t process;
  std::atomic<int32_t> begun{0};
  std::atomic<bool> goOn{false};
};

static void waitInside(void *data, int64_t, int64_t) {
  auto &stuck = *static_cast<Stuck *>(data);
  CHECK(getpid() == stuck.process);
  ++stuck.begun;
  while (!stuck.goOn)
    usleep(100);
}

struct StuckLaunch {
  Pool *pool;
  Stuck *stuck;
};

static void *launchStuck(void *argument) {
  auto &launch = *static_cast<StuckLaunch *>(argument);
  launch.pool->run(waitInside, launch.stuck, 1000);
  return nullptr;
}

// What another thread's launch has left over in the parent is not the child's.
static void testForkInLaunch() {
  constexpr int32_t kThreads = 8;
  Pool *pool = Pool::create(kThreads);
  pool->checkProcess();
  Stuck stuck{getpid()};
  StuckLaunch argument{pool, &stuck};
  pthread_t thread;
  CHECK(!pthread_create(&thread, nullptr, launchStuck, &argument));
  while (stuck.begun < kThreads)
    usleep(100);
  bool good = true; // asked for when no thread waits any more
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(20); // a lost worker would hang the child
      pool->checkProcess();
      auto *counters = new (malloc(sizeof(Counters))) Counters();
      launch(*pool, *counters, 100 + i);
      launch(*pool, *counters, 100 - i);
      _exit(0);
    }
    int state = 1;
    good &= waitpid(child, &state, 0) == child && state == 0;
  }
  stuck.goOn = true;
  pthread_join(thread, nullptr);
  Pool::destroy(pool);
  CHECK(good);
}

int main(int argc, char **argv) {
  testRanges();
  for (int32_t threads : {1, 2, 3, 8, 40})
    testCounts(threads);
  testClients();
  testSignals();
  if (argc < 2 || strcmp(argv[1], "--no-fork"))
    testForkInLaunch();
  puts("ok");
  return 0;
}
