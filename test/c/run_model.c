/* A caller of a compiled model in plain C11: nothing but mlc.h, dlopen and
 * libc.
 *
 *   cc -std=c11 -I mlc/runtime/include run_model.c -o run_model -ldl
 *   ./run_model ./model.so [extent of the dynamic dimensions]
 *
 * (dlopen looks for a name without a slash where the system's libraries are.)
 * Prints the model's signature, runs its first entry on made-up inputs
 * (float32, int32 and int64 are filled, element i with a value that only
 * depends on i), and prints every element of every output, one a line.
 */
#define _POSIX_C_SOURCE 200809L
#include "mlc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_VALUES = 16, MAX_RANK = 8 };

static int fail(const char *what, const char *why) {
  fprintf(stderr, "run_model: %s: %s\n", what, why);
  return 1;
}

static int64_t count_elements(const mlc_tensor *tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor->ndim; ++i)
    count *= tensor->shape[i];
  return count;
}

static void print_info(const char *what, const mlc_value_info *info) {
  printf("%s %s", what, info->name);
  for (int i = 0; i < info->rank; ++i)
    printf(" %lld", (long long)info->dims[i]);
  printf("\n");
}

/* Allocates and fills an input of the described type. Returns 0, or 1 for a
 * type that this program does not make. */
static int make_input(const mlc_value_info *info, int64_t dynamic,
                      int64_t *shape, mlc_value *value) {
  mlc_tensor *tensor = &value->tensor;
  value->struct_size = sizeof *value;
  value->kind = MLC_TENSOR;
  tensor->device.device_type = 1; /* CPU */
  tensor->ndim = info->rank;
  tensor->shape = shape;
  tensor->dtype.code = (uint8_t)(info->dtype & 0xff);
  tensor->dtype.bits = (uint8_t)(info->dtype >> 8);
  tensor->dtype.lanes = 1;
  for (int i = 0; i < info->rank; ++i)
    shape[i] = info->dims[i] < 0 ? dynamic : info->dims[i];

  int64_t count = count_elements(tensor);
  tensor->data = calloc((size_t)count + 1, (size_t)tensor->dtype.bits / 8);
  if (!tensor->data)
    return 1;
  for (int64_t i = 0; i < count; ++i) {
    if (info->dtype == MLC_FLOAT32)
      ((float *)tensor->data)[i] = (float)(i * 37 % 101) / 101.0f - 0.5f;
    else if (info->dtype == MLC_INT32)
      ((int32_t *)tensor->data)[i] = (int32_t)(i % 7);
    else if (info->dtype == MLC_INT64)
      ((int64_t *)tensor->data)[i] = i % 7;
    else
      return 1;
  }
  return 0;
}

static void print_output(const mlc_value *value) {
  const mlc_tensor *tensor = &value->tensor;
  int64_t count = count_elements(tensor);
  int32_t dtype = MLC_DTYPE(tensor->dtype.code, tensor->dtype.bits);
  printf("shape");
  for (int i = 0; i < tensor->ndim; ++i)
    printf(" %lld", (long long)tensor->shape[i]);
  printf("\n");
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == MLC_FLOAT32)
      printf("%.9g\n", ((const float *)tensor->data)[i]);
    else if (dtype == MLC_INT32)
      printf("%d\n", ((const int32_t *)tensor->data)[i]);
    else if (dtype == MLC_INT64)
      printf("%lld\n", (long long)((const int64_t *)tensor->data)[i]);
    else
      printf("?\n");
  }
}

static int run_entry(const mlc_model_api *api, mlc_context *context,
                     int64_t dynamic) {
  mlc_status status = {.struct_size = sizeof status};
  mlc_entry_info entry = {.struct_size = sizeof entry};
  if (api->entry_info(0, &entry))
    return fail("entry_info", "no entry 0");
  if (entry.num_inputs > MAX_VALUES || entry.num_outputs > MAX_VALUES)
    return fail(entry.name, "more inputs or outputs than this program handles");

  mlc_value inputs[MAX_VALUES] = {{0}}, outputs[MAX_VALUES] = {{0}};
  int64_t shapes[MAX_VALUES][MAX_RANK];
  int result = 0;
  for (int i = 0; i < entry.num_inputs && !result; ++i) {
    mlc_value_info info = {.struct_size = sizeof info};
    api->input_info(0, i, &info);
    print_info("input", &info);
    if (info.rank > MAX_RANK ||
        make_input(&info, dynamic, shapes[i], &inputs[i]))
      result = fail(info.name, "this program cannot make such an input");
  }
  for (int i = 0; i < entry.num_outputs; ++i)
    outputs[i].struct_size =
        sizeof outputs[i]; /* kind MLC_NONE: the model allocates it */

  if (!result && api->run(context, 0, inputs, entry.num_inputs, outputs,
                          entry.num_outputs, NULL, &status))
    result = fail(entry.name, status.message);
  for (int i = 0; i < entry.num_outputs && !result; ++i) {
    mlc_value_info info = {.struct_size = sizeof info};
    api->output_info(0, i, &info);
    print_info("output", &info);
    print_output(&outputs[i]);
    outputs[i].deleter(&outputs[i]);
  }
  for (int i = 0; i < entry.num_inputs; ++i)
    free(inputs[i].tensor.data);
  return result;
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3)
    return fail("usage",
                "run_model MODEL.so [extent of the dynamic dimensions]");
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(argv[1], dlerror());

  mlc_model_query_fn query;
  *(void **)&query = dlsym(library, "mlc_model_query");
  const mlc_model_api *api = query ? query(MLC_ABI_VERSION) : NULL;
  if (!api)
    return fail(argv[1], "not a compiled model, or one of another ABI version");

  mlc_status status = {.struct_size = sizeof status};
  mlc_instance *instance = NULL;
  mlc_context *context = NULL;
  if (api->instance_create(NULL, &instance, &status))
    return fail("instance_create", status.message);
  if (api->context_create(instance, NULL, &context, &status))
    return fail("context_create", status.message);
  int result = run_entry(api, context, argc == 3 ? atoll(argv[2]) : 1);
  api->context_destroy(context);
  api->instance_destroy(instance);
  dlclose(library);
  return result;
}
