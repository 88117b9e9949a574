/* Contexts in threads, fork, callbacks, the floating-point environment. */
#include "harness.h"
#include "program.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { THREADS = 8, RUNS = 200 };

static const mlc_model_api *api;
static mlc_instance *instance;

static void *runMany(void *argument) {
  mlc_context *context = newContext(api, instance);
  for (int64_t i = 0; i < RUNS; ++i)
    CHECK(checkForward(api, context,
                       1 + (i * 7 + (int64_t)(intptr_t)argument) % 300) == 0);
  api->context_destroy(context);
  return 0;
}

static void testContexts(void) {
  pthread_t threads[THREADS];
  for (intptr_t i = 0; i < THREADS; ++i)
    CHECK(!pthread_create(&threads[i], 0, runMany, (void *)i));
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], 0);
}

/* One context from two threads: each run either works or is refused as busy. */
static mlc_context *shared;
static void *runShared(void *argument) {
  int64_t *busy = argument;
  float x[64 * 4] = {0};
  int64_t shape[2] = {64, 4};
  mlc_value in = tensorOf(MLC_FLOAT32, x, 2, shape);
  for (int i = 0; i < 500; ++i) {
    mlc_value out = none();
    int32_t code = api->run(shared, FORWARD, &in, 1, &out, 1, 0, 0);
    CHECK(code == MLC_OK || code == MLC_ERROR_BUSY);
    *busy += code == MLC_ERROR_BUSY;
    if (code == MLC_OK)
      out.deleter(&out);
  }
  return 0;
}

static void testBusy(void) {
  shared = newContext(api, instance);
  int64_t busy[2] = {0, 0};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i)
    pthread_create(&threads[i], 0, runShared, &busy[i]);
  for (int i = 0; i < 2; ++i)
    pthread_join(threads[i], 0);
  api->context_destroy(shared);
}

static void testSleep(void) {
  mlc_context *context = newContext(api, instance);
  for (int i = 0; i < 5; ++i) {
    usleep(3000); /* longer than the workers spin: they must be woken */
    CHECK(checkForward(api, context, 200) == 0);
  }
  api->context_destroy(context);
}

static void testFork(void) {
  mlc_context *context = newContext(api, instance);
  CHECK(checkForward(api, context, 100) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20); /* a lost worker would hang the child */
    int ok = checkForward(api, context, 100) == 0 &&
             checkForward(api, context, 50) == 0;
    pid_t grandchild = fork();
    if (grandchild == 0)
      _exit(checkForward(api, context, 100) == 0 ? 0 : 2);
    int state = 1;
    ok &= waitpid(grandchild, &state, 0) == grandchild && state == 0;
    api->context_destroy(context);
    _exit(ok ? 0 : 3);
  }
  int state = 1;
  CHECK(waitpid(child, &state, 0) == child && state == 0);
  CHECK(checkForward(api, context, 100) == 0);
  api->context_destroy(context);
}

/* --- The caller's memory and threads
 * ---------------------------------------------------------------------------
 */

static int64_t liveBytes, allocations, budget = -1;
static void *allocate(void *user, size_t bytes, size_t alignment) {
  CHECK(user == &liveBytes && alignment == 64);
  if (budget == 0)
    return 0;
  --budget;
  void *memory = 0;
  CHECK(!posix_memalign(&memory, alignment, bytes));
  liveBytes += (int64_t)bytes;
  ++allocations;
  return memory;
}
static void deallocate(void *user, void *memory, size_t bytes) {
  CHECK(user == &liveBytes);
  liveBytes -= (int64_t)bytes;
  free(memory);
}
static int64_t parallelCalls;
static void parallelFor(void *user, int64_t count,
                        void (*task)(void *, int64_t), void *data) {
  CHECK(user == &liveBytes && count > 1 && count <= 3);
  ++parallelCalls;
  for (int64_t i = count; i-- > 0;) /* any order */
    task(data, i);
}

static void testCallbacks(void) {
  mlc_instance_options options = {
      sizeof options, 3,          0,           0,         0,
      allocate,       deallocate, parallelFor, &liveBytes};
  mlc_instance *other = 0;
  mlc_status status = newStatus();
  CHECK(api->instance_create(&options, &other, &status) == MLC_OK &&
        api->num_threads(other) == 3);
  mlc_context *context = newContext(api, other);
  CHECK(checkForward(api, context, 64) == 0 && allocations > 0 &&
        parallelCalls == 2);
  /* Every allocation of a run may fail: a code, no leak, and the context works
   * afterwards. */
  float data[2] = {1, 2};
  int64_t n = 2, indices[2] = {0, 1};
  for (int failing = 0, code = 1; code; ++failing) {
    mlc_context *fresh = newContext(api, other);
    mlc_value in[2] = {tensorOf(MLC_FLOAT32, data, 1, &n),
                       tensorOf(MLC_INT64, indices, 1, &n)};
    mlc_value out[2] = {none(), none()};
    budget = failing;
    code = api->run(fresh, SELECT, in, 2, out, 2, 0, &status);
    budget = -1;
    CHECK(code == MLC_OK ? failing == 3
                         : code == MLC_ERROR_OUT_OF_MEMORY &&
                               strstr(status.message, "out of memory"));
    for (int i = 0; i < 2 && code == MLC_OK; ++i)
      out[i].deleter(&out[i]);
    api->context_destroy(fresh);
  }
  api->context_destroy(context);
  api->instance_destroy(other);
  CHECK(liveBytes == 0);
  options.deallocate = 0;
  CHECK(api->instance_create(&options, &other, &status) == MLC_ERROR_ARGUMENT &&
        !other);
}

static void testFloatingPoint(void) {
#if defined(__x86_64__)
  mlc_context *context = newContext(api, instance);
  int64_t count = 64, one = 1;
  mlc_value in = tensorOf(MLC_INT64, &count, 1, &one), out = none();
  unsigned before = _mm_getcsr();
  _mm_setcsr(
      before |
      0xe040); /* flush to zero, round towards zero, denormals are zero */
  unsigned given = _mm_getcsr();
  CHECK(api->run(context, PROBE, &in, 1, &out, 1, 0, 0) == MLC_OK);
  CHECK(_mm_getcsr() == given);
  _mm_setcsr(before);
  for (int64_t i = 0; i < count; ++i)
    CHECK(((int64_t *)out.tensor.data)[i] == 0x1f80);
  out.deleter(&out);
  api->context_destroy(context);
#endif
}

static void testDefaults(void) {
  setenv("MLC_NUM_THREADS", "5", 1);
  mlc_instance *other = newInstance(api, 0);
  CHECK(api->num_threads(other) == 5);
  mlc_context *context =
      newContext(api, other); /* more threads than processors */
  for (int i = 0; i < 20; ++i)
    CHECK(checkForward(api, context, 1 + i) == 0);
  api->context_destroy(context);
  api->instance_destroy(other);
  setenv("MLC_NUM_THREADS", "0", 1);
  other = newInstance(api, 0);
  CHECK(api->num_threads(other) >= 1);
  api->instance_destroy(other);
  setenv("MLC_NUM_THREADS", "many", 1);
  mlc_status status = {sizeof status};
  CHECK(api->instance_create(NULL, &other, &status) == MLC_ERROR_ARGUMENT);
  CHECK(strstr(status.message, "MLC_NUM_THREADS is 'many'"));
  unsetenv("MLC_NUM_THREADS");
}

/* --- One thread or all
 * -------------------------------------------------------------------------------------------
 */

enum { ITEMS = 8, PATIENCE = 200000 };

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* args: nanoseconds of a call that has all items, and of one that has some; how
 * many calls of the former kind there were. */
static void slowOneWay(int64_t *args, int64_t *error, int64_t begin,
                       int64_t end) {
  (void)error;
  int all = begin == 0 && end == ITEMS;
  for (int64_t until = now() + args[all ? 0 : 1]; now() < until;)
    ;
  if (all)
    ++args[2];
}

static int64_t itemsGrid(int64_t *args) {
  (void)args;
  return ITEMS;
}

/* A short kernel runs the way that is quicker: sooner or later that is found
 * out, whatever else this machine does, and kept for a while. */
static void testChoice(int64_t nsAll, int64_t nsSome, int64_t wanted) {
  mlc_instance *two = newInstance(api, 2);
  mlc_context *context = newContext(api, two);
  int64_t args[] = {nsAll, nsSome, 0};
  int64_t kept = 0;
  for (int i = 0; i < PATIENCE && kept < 300; ++i) {
    args[2] = 0;
    CHECK(!mlc_rt_launch(context, slowOneWay, itemsGrid, args, 7));
    kept = args[2] == wanted ? kept + 1 : 0;
  }
  CHECK(kept == 300);
  api->context_destroy(context);
  api->instance_destroy(two);
}

int main(int argc, char **argv) {
  api = queryModel();
  instance = newInstance(api, 3);
  testContexts();
  testBusy();
  testSleep();
  if (argc < 2 || strcmp(argv[1], "--no-fork"))
    testFork();
  testCallbacks();
  testFloatingPoint();
  testDefaults();
  testChoice(1000, 6000, 1);
  testChoice(40000, 1000, 0);
  api->instance_destroy(instance);
  puts("ok");
  return 0;
}
