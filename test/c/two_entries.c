/* Two entries of a model on one mapping of its weights, in eight threads.
 *
 *   ./two_entries model.so weights.safetensors
 *
 * Every thread has a context of its own and runs both entries, in turns, on
 * inputs that depend on its number. Prints, for each thread and entry, the sum
 * of the outputs, then how often the weight file is mapped.
 */
#define _POSIX_C_SOURCE 200809L
#include "mlc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 50, ROWS = 3, COLUMNS = 24 };

typedef struct {
  const mlc_model_api *api;
  mlc_instance *instance;
  int number;
  double sums[2];
  char problem[256];
} job;

static int run_once(job *j, mlc_context *context, int entry, float *data,
                    double *sum) {
  int64_t shape[2] = {ROWS, COLUMNS};
  mlc_status status = {.struct_size = sizeof status};
  mlc_value in = {.struct_size = sizeof in, .kind = MLC_TENSOR};
  mlc_value out = {.struct_size = sizeof out};
  in.tensor.data = data;
  in.tensor.device.device_type = 1;
  in.tensor.ndim = 2;
  in.tensor.shape = shape;
  in.tensor.dtype.code = 2;
  in.tensor.dtype.bits = 32;
  in.tensor.dtype.lanes = 1;
  if (j->api->run(context, entry, &in, 1, &out, 1, NULL, &status)) {
    snprintf(j->problem, sizeof j->problem, "%.200s", status.message);
    return 1;
  }
  int64_t count = out.tensor.shape[0] * out.tensor.shape[1];
  *sum = 0;
  for (int64_t i = 0; i < count; ++i)
    *sum += (double)(i + 1) * ((const float *)out.tensor.data)[i];
  out.deleter(&out);
  return 0;
}

static void *work(void *argument) {
  job *j = argument;
  mlc_status status = {.struct_size = sizeof status};
  mlc_context *context = NULL;
  float data[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; ++i)
    data[i] = (float)((i * 37 + j->number * 11) % 101) / 101.0f - 0.5f;
  if (j->api->context_create(j->instance, NULL, &context, &status)) {
    snprintf(j->problem, sizeof j->problem, "%.200s", status.message);
    return NULL;
  }
  for (int round = 0; round < ROUNDS && !*j->problem; ++round)
    for (int entry = 0; entry < 2; ++entry) {
      double sum;
      if (run_once(j, context, entry, data, &sum))
        break;
      if (round && sum != j->sums[entry])
        snprintf(j->problem, sizeof j->problem, "entry %d: round %d differs",
                 entry, round);
      j->sums[entry] = sum;
    }
  j->api->context_destroy(context);
  return NULL;
}

static int count_mappings(const char *name) {
  char line[4096];
  int count = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    count += strstr(line, name) != NULL;
  if (maps)
    fclose(maps);
  return count;
}

int main(int argc, char **argv) {
  void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library)
    return 2;
  mlc_model_query_fn query;
  *(void **)&query = dlsym(library, "mlc_model_query");
  const mlc_model_api *api = query ? query(MLC_ABI_VERSION) : NULL;
  mlc_status status = {.struct_size = sizeof status};
  mlc_instance_options options = {
      .struct_size = sizeof options, .num_threads = 2, .weights_path = argv[2]};
  mlc_instance *instance = NULL;
  if (!api || api->num_entries() != 2 ||
      api->instance_create(&options, &instance, &status)) {
    fprintf(stderr, "two_entries: %s\n", status.message);
    return 1;
  }

  job jobs[THREADS] = {{0}};
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    jobs[i].api = api;
    jobs[i].instance = instance;
    jobs[i].number = i;
    pthread_create(&threads[i], NULL, work, &jobs[i]);
  }
  int failed = 0;
  for (int i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    if (*jobs[i].problem) {
      fprintf(stderr, "thread %d: %s\n", i, jobs[i].problem);
      failed = 1;
    }
    printf("%.9g %.9g\n", jobs[i].sums[0], jobs[i].sums[1]);
  }
  printf("%d\n", count_mappings(argv[2]));
  api->instance_destroy(instance);
  dlclose(library);
  return failed;
}
