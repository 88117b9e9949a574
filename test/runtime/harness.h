/* What the C tests share: checks that say where they failed, and values on top
 * of plain arrays. */
#ifndef MLC_TEST_HARNESS_H
#define MLC_TEST_HARNESS_H

#include "mlc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

#define CHECK_MESSAGE(status, expected)                                        \
  do {                                                                         \
    if (strcmp((status).message, expected)) {                                  \
      fprintf(stderr, "%s:%d: message is\n  %s\nexpected\n  %s\n", __FILE__,   \
              __LINE__, (status).message, expected);                           \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* Entries of model.c. */
enum { FORWARD, SELECT, REVERSE, SHOUT, PROBE, CHECKED, EXTEND };

static inline mlc_status newStatus(void) {
  mlc_status status = {sizeof status, 0, ""};
  return status;
}

static inline mlc_value tensorOf(int dtype, void *data, int rank,
                                 int64_t *shape) {
  mlc_value value = {sizeof value, MLC_TENSOR, {0}, 0, 0, 0, 0};
  value.tensor.data = data;
  value.tensor.device.device_type = 1;
  value.tensor.ndim = rank;
  value.tensor.dtype.code = (uint8_t)(dtype & 255);
  value.tensor.dtype.bits = (uint8_t)(dtype >> 8);
  value.tensor.dtype.lanes = 1;
  value.tensor.shape = shape;
  return value;
}

static inline mlc_value none(void) {
  mlc_value value = {sizeof value, MLC_NONE, {0}, 0, 0, 0, 0};
  return value;
}

static inline const mlc_model_api *queryModel(void) {
  const mlc_model_api *api = mlc_model_query(MLC_ABI_VERSION);
  CHECK(api && api->abi_version == MLC_ABI_VERSION &&
        api->struct_size >= sizeof *api);
  return api;
}

static inline mlc_instance *newInstance(const mlc_model_api *api, int threads) {
  mlc_instance_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.num_threads = threads;
  mlc_status status = newStatus();
  mlc_instance *instance = 0;
  api->instance_create(&options, &instance, &status);
  CHECK_MESSAGE(status, "");
  return instance;
}

static inline mlc_context *newContext(const mlc_model_api *api,
                                      mlc_instance *instance) {
  mlc_status status = newStatus();
  mlc_context *context = 0;
  CHECK(api->context_create(instance, 0, &context, &status) == MLC_OK);
  return context;
}

/* Runs `forward` on `batch` rows of counting numbers and checks every element;
 * -1 when the run failed. */
static inline int checkForward(const mlc_model_api *api, mlc_context *context,
                               int64_t batch) {
  int64_t shape[2] = {batch, 4};
  float *x = malloc((size_t)batch * 16);
  for (int64_t i = 0; i < batch * 4; ++i)
    x[i] = (float)(i % 17);
  mlc_value in = tensorOf(MLC_FLOAT32, x, 2, shape), out = none();
  mlc_status status = newStatus();
  if (api->run(context, FORWARD, &in, 1, &out, 1, 0, &status) != MLC_OK) {
    fprintf(stderr, "%s\n", status.message);
    free(x);
    return -1;
  }
  CHECK(out.tensor.ndim == 2 && out.tensor.shape[0] == batch &&
        out.tensor.shape[1] == 3);
  const float *y = out.tensor.data;
  for (int64_t r = 0; r < batch; ++r)
    for (int j = 0; j < 3; ++j) {
      float expected = 100;
      for (int k = 0; k < 4; ++k)
        expected += x[r * 4 + k] * (float)(k * 3 + j);
      CHECK(y[r * 3 + j] == expected);
    }
  out.deleter(&out);
  CHECK(out.kind == MLC_NONE);
  free(x);
  return 0;
}

#endif
