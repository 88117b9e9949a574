/* Memory of results that the caller has deleted: what is used again, how much
 * of it is kept, and who frees it. */
#include "harness.h"

#include <pthread.h>

enum { LARGE = 40000, HELD = 6 }; /* elements of eight bytes; results */

static const mlc_model_api *api;
static int64_t liveBytes;

static void *allocate(void *user, size_t bytes, size_t alignment) {
  void *memory = 0;
  CHECK(!posix_memalign(&memory, alignment, bytes));
  __atomic_fetch_add((int64_t *)user, (int64_t)bytes, __ATOMIC_RELAXED);
  return memory;
}
static void deallocate(void *user, void *memory, size_t bytes) {
  __atomic_fetch_sub((int64_t *)user, (int64_t)bytes, __ATOMIC_RELAXED);
  free(memory);
}

static mlc_instance *newCounted(void) {
  mlc_instance_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.num_threads = 1;
  options.allocate = allocate;
  options.deallocate = deallocate;
  options.user = &liveBytes;
  mlc_instance *instance = 0;
  CHECK(api->instance_create(&options, &instance, 0) == MLC_OK);
  return instance;
}

/* The positions of `count` positive numbers: a result of 8 * count bytes. */
static mlc_value positions(mlc_context *context, int64_t count) {
  float *data = malloc((size_t)count * sizeof(float));
  for (int64_t i = 0; i < count; ++i)
    data[i] = 1;
  int64_t one = 1, first = 0;
  mlc_value in[2] = {tensorOf(MLC_FLOAT32, data, 1, &count),
                     tensorOf(MLC_INT64, &first, 1, &one)};
  mlc_value out[2] = {none(), none()};
  mlc_status status = newStatus();
  api->run(context, SELECT, in, 2, out, 2, 0, &status);
  CHECK_MESSAGE(status, "");
  free(data);
  out[0].deleter(&out[0]);
  const int64_t *found = out[1].tensor.data;
  CHECK(out[1].tensor.shape[0] == count && found[0] == 0 &&
        found[count - 1] == count - 1);
  return out[1];
}

/* Where the data of a result are that is deleted at once. */
static void *place(mlc_context *context, int64_t count) {
  mlc_value result = positions(context, count);
  void *data = result.tensor.data;
  result.deleter(&result);
  return data;
}

static void testReuse(void) {
  mlc_instance *instance = newCounted();
  mlc_context *context = newContext(api, instance);
  void *first = place(context, LARGE);
  CHECK(place(context, LARGE) == first);
  CHECK(place(context, LARGE + LARGE / 10) == first); /* it has room */
  CHECK(place(context, LARGE * 2 / 3) == first);
  mlc_value held = positions(context, LARGE);
  void *second = place(context, LARGE);
  CHECK(held.tensor.data == first && second != first);
  /* One context's memory is not another's. */
  mlc_context *other = newContext(api, instance);
  CHECK(place(other, LARGE) != second);
  held.deleter(&held);
  api->context_destroy(other);
  api->context_destroy(context);
  api->instance_destroy(instance);
  CHECK(liveBytes == 0);
}

static void testBounds(void) {
  mlc_instance *instance = newCounted();
  mlc_context *context = newContext(api, instance);
  mlc_value held[HELD];
  for (int i = 0; i < HELD; ++i)
    held[i] = positions(context, LARGE);
  int64_t before = liveBytes;
  for (int i = 0; i < HELD; ++i)
    held[i].deleter(&held[i]);
  int64_t each = LARGE * 8, freed = before - liveBytes;
  CHECK(freed >= (HELD - 1) * each && freed < (HELD - 1) * each * 5 / 4);
  /* Runs with small results of that kind give the large memory back. */
  before = liveBytes;
  place(context, LARGE / 4);
  place(context, LARGE / 4);
  CHECK(before - liveBytes > each / 2);
  /* What the caller has outlives context and instance, and frees itself. */
  mlc_value last = positions(context, LARGE), next = positions(context, LARGE);
  api->context_destroy(context);
  api->instance_destroy(instance);
  CHECK(((int64_t *)last.tensor.data)[LARGE - 1] == LARGE - 1);
  last.deleter(&last);
  CHECK(liveBytes >= each && liveBytes < each * 5 / 4);
  next.deleter(&next);
  CHECK(liveBytes == 0);
}

/* One thread runs, another deletes what comes out. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mlc_value waiting[HELD];
static int numWaiting, done;

static void *deleteMany(void *unused) {
  (void)unused;
  for (int finished = 0; !finished;) {
    mlc_value result = none();
    pthread_mutex_lock(&lock);
    if (numWaiting)
      result = waiting[--numWaiting];
    else
      finished = done;
    pthread_mutex_unlock(&lock);
    if (result.deleter)
      result.deleter(&result);
  }
  return 0;
}

static void testThreads(void) {
  mlc_instance *instance = newCounted();
  mlc_context *context = newContext(api, instance);
  pthread_t thread;
  CHECK(!pthread_create(&thread, 0, deleteMany, 0));
  for (int64_t i = 0; i < 300; ++i) {
    mlc_value result = positions(context, LARGE / 4 + i * 37 % LARGE);
    pthread_mutex_lock(&lock);
    int handed = numWaiting < HELD;
    if (handed)
      waiting[numWaiting++] = result;
    pthread_mutex_unlock(&lock);
    if (!handed)
      result.deleter(&result);
  }
  api->context_destroy(context); /* while some wait */
  api->instance_destroy(instance);
  pthread_mutex_lock(&lock);
  done = 1;
  pthread_mutex_unlock(&lock);
  pthread_join(thread, 0);
  CHECK(liveBytes == 0);
}

int main(void) {
  api = queryModel();
  testReuse();
  testBounds();
  testThreads();
  puts("ok");
  return 0;
}
