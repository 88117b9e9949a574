/* mlc.h - the public interface of a compiled model.
 *
 * A model is one shared library that exports one symbol, `mlc_model_query`.
 * Everything else is reached through the table it returns. Plain C, no
 * dependency but libc. A minimal caller:
 *
 *   void *lib = dlopen("/path/model.so", RTLD_NOW | RTLD_LOCAL);
 *   mlc_model_query_fn query = dlsym(lib, "mlc_model_query");
 *   const mlc_model_api *api = query(MLC_ABI_VERSION);
 *   mlc_status status = {sizeof status};
 *   mlc_instance *instance;
 *   mlc_context *context;
 *   api->instance_create(NULL, &instance, &status);
 *   api->context_create(instance, NULL, &context, &status);
 *
 *   mlc_value in = {sizeof in, MLC_TENSOR}, out = {sizeof out};
 *   in.tensor = ...;                  // DLPack's DLTensor
 *   if (api->run(context, 0, &in, 1, &out, 1, NULL, &status))
 *     puts(status.message);
 *   ...                               // use out.tensor, then:
 *   out.deleter(&out);
 *
 * Every struct begins with its size, set by whoever fills it in; a field beyond
 * the given size is treated as zero. Threads: an instance may be shared,
 * contexts of one instance run concurrently, a context is used by one thread at
 * a time. Nothing here throws or exits; every failure is a code and a message
 * in the caller's `mlc_status`.
 */
#ifndef MLC_H
#define MLC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MLC_ABI_VERSION 1u

/* --- Status --- */

typedef enum mlc_code {
  MLC_OK = 0,
  /* The call itself is wrong: null pointers, counts, options. */
  MLC_ERROR_ARGUMENT = 1,
  /* An input or a caller's output buffer does not fit the signature. */
  MLC_ERROR_INPUT = 2,
  /* Data that the model cannot process: an index out of range, ... */
  MLC_ERROR_RUNTIME = 3,
  MLC_ERROR_OUT_OF_MEMORY = 4,
  /* This machine lacks a feature that the model was compiled for. */
  MLC_ERROR_DEVICE = 5,
  /* The weight file is missing, of another size, or has another hash. */
  MLC_ERROR_WEIGHTS = 6,
  /* The context is already running in another thread. */
  MLC_ERROR_BUSY = 7
} mlc_code;

/* Set struct_size to the size of the whole object; the message buffer is
 * whatever follows the two integers, so a caller may embed the header in a
 * larger buffer. The message is always NUL-terminated. */
typedef struct mlc_status {
  uint32_t struct_size;
  int32_t code; /* mlc_code */
  char message[1016];
} mlc_status;

/* --- Values --- */

/* DLPack's tensor. When dlpack.h was included first its types are used, else
 * equal ones are declared here. */
#ifdef DLPACK_DLPACK_H_
typedef DLTensor mlc_tensor;
#else
typedef struct mlc_device {
  int32_t device_type; /* kDLCPU = 1, kDLCUDA = 2, ... */
  int32_t device_id;
} mlc_device;

typedef struct mlc_data_type {
  uint8_t code; /* kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4,
                   kDLComplex = 5, kDLBool = 6, ... */
  uint8_t bits;
  uint16_t lanes;
} mlc_data_type;

typedef struct mlc_tensor {
  void *data;
  mlc_device device;
  int32_t ndim;
  mlc_data_type dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: contiguous, row-major */
  uint64_t byte_offset;
} mlc_tensor;
#endif

/* An element type as one integer: DLPack's code and width. Types narrower than
 * a byte take one byte an element. */
#define MLC_DTYPE(code, bits) ((code) | (bits) << 8)
typedef enum mlc_dtype {
  MLC_INT2 = MLC_DTYPE(0, 2),
  MLC_INT4 = MLC_DTYPE(0, 4),
  MLC_INT8 = MLC_DTYPE(0, 8),
  MLC_INT16 = MLC_DTYPE(0, 16),
  MLC_INT32 = MLC_DTYPE(0, 32),
  MLC_INT64 = MLC_DTYPE(0, 64),
  MLC_UINT2 = MLC_DTYPE(1, 2),
  MLC_UINT4 = MLC_DTYPE(1, 4),
  MLC_UINT8 = MLC_DTYPE(1, 8),
  MLC_UINT16 = MLC_DTYPE(1, 16),
  MLC_UINT32 = MLC_DTYPE(1, 32),
  MLC_UINT64 = MLC_DTYPE(1, 64),
  MLC_FLOAT16 = MLC_DTYPE(2, 16),
  MLC_FLOAT32 = MLC_DTYPE(2, 32),
  MLC_FLOAT64 = MLC_DTYPE(2, 64),
  MLC_BFLOAT16 = MLC_DTYPE(4, 16),
  MLC_COMPLEX64 = MLC_DTYPE(5, 64),
  MLC_COMPLEX128 = MLC_DTYPE(5, 128),
  MLC_BOOL = MLC_DTYPE(6, 8),
  MLC_FLOAT8_E4M3FN = MLC_DTYPE(10, 8),
  MLC_FLOAT8_E4M3FNUZ = MLC_DTYPE(11, 8),
  MLC_FLOAT8_E5M2 = MLC_DTYPE(12, 8),
  MLC_FLOAT8_E5M2FNUZ = MLC_DTYPE(13, 8),
  MLC_FLOAT8_E8M0FNU = MLC_DTYPE(14, 8),
  MLC_FLOAT4_E2M1FN = MLC_DTYPE(17, 4),
  MLC_STRING = MLC_DTYPE(240, 128) /* elements are mlc_string */
} mlc_dtype;

/* One element of a string tensor: bytes (UTF-8 by convention), not
 * NUL-terminated. */
typedef struct mlc_string {
  const char *data;
  int64_t size;
} mlc_string;

typedef enum mlc_kind {
  MLC_NONE = 0, /* as an output: "allocate it for me" */
  MLC_TENSOR = 1,
  MLC_SEQUENCE = 2, /* items[0 .. num_items) */
  MLC_OPTIONAL = 3  /* num_items is 0 (empty) or 1 */
} mlc_kind;

typedef struct mlc_value {
  uint32_t struct_size;
  int32_t kind; /* mlc_kind */
  mlc_tensor tensor;
  struct mlc_value *items;
  int64_t num_items;
  /* Set by the runtime on values that it allocated. The caller calls it once,
   * at any time before the library is unloaded (also after the context and the
   * instance are gone); it frees everything and makes the value MLC_NONE. A
   * context that is still there keeps large memory for the results of its next
   * run, at most as much as those of one run had. */
  void (*deleter)(struct mlc_value *self);
  void *manager;
} mlc_value;

/* --- Signature --- */

typedef struct mlc_dim_info {
  uint32_t struct_size;
  const char *name;
  int64_t lowest;
  int64_t highest;  /* -1: no bound */
  int64_t multiple; /* extents are multiples of this */
} mlc_dim_info;

typedef struct mlc_value_info {
  uint32_t struct_size;
  /* mlc_kind; nested kinds in the next four bits each: MLC_OPTIONAL |
   * MLC_SEQUENCE << 4 | MLC_TENSOR << 8. */
  int32_t kind;
  const char *name;
  int32_t dtype;       /* mlc_dtype, of the innermost tensors */
  int32_t rank;        /* -1: any */
  const int64_t *dims; /* -1: dynamic */
  /* Per dimension: a number for dim_info, or -1. Equal numbers have equal
   * extents. */
  const int32_t *dim_ids;
} mlc_value_info;

typedef struct mlc_entry_info {
  uint32_t struct_size;
  int32_t num_inputs;
  const char *name;
  int32_t num_outputs;
} mlc_entry_info;

/* --- Options --- */

typedef struct mlc_instance mlc_instance;
typedef struct mlc_context mlc_context;

typedef struct mlc_instance_options {
  uint32_t struct_size;
  /* 0: MLC_NUM_THREADS, else the physical cores this process may use. Includes
   * the caller. */
  int32_t num_threads;
  /* External weights: the file to map; NULL: the recorded name beside the
   * library. */
  const char *weights_path;
  /* 1: trust an external weight file of the right size. */
  int32_t skip_weights_hash;
  /* Of models for GPUs: 1 + the number of the GPU; 0: MLC_DEVICE, else 0. */
  int32_t device;
  /* Caller's memory for arenas, temporaries and outputs. Both or none.
   * Thread-safe. `allocate` returns NULL when it fails; the alignment is 64. */
  void *(*allocate)(void *user, size_t bytes, size_t alignment);
  void (*deallocate)(void *user, void *memory, size_t bytes);
  /* Caller's threads: call task(data, i) once for each i in [0, count), in any
   * order, on any threads, and return when all have returned. count is at most
   * num_threads. */
  void (*parallel_for)(void *user, int64_t count,
                       void (*task)(void *data, int64_t index), void *data);
  void *user; /* handed to the three callbacks */
} mlc_instance_options;

typedef struct mlc_context_options {
  uint32_t struct_size;
  int32_t profile; /* 1: time every kernel; see profile() */
} mlc_context_options;

/* --- The interface --- */

/* Functions that return int32_t return an mlc_code, also stored in the status
 * (which may be NULL). */
typedef struct mlc_model_api {
  uint32_t struct_size;
  uint32_t abi_version;

  /* JSON: entries, dimensions, target, compiler version, source hash, kernels.
   * Lives as long as the library. */
  const char *(*metadata)(void);
  int64_t (*num_entries)(void);
  int64_t (*num_dims)(void);
  /* Fill in *info (struct_size set by the caller). */
  int32_t (*entry_info)(int64_t entry, mlc_entry_info *info);
  int32_t (*input_info)(int64_t entry, int64_t index, mlc_value_info *info);
  int32_t (*output_info)(int64_t entry, int64_t index, mlc_value_info *info);
  int32_t (*dim_info)(int64_t dim, mlc_dim_info *info);

  /* Checks the CPU, maps the weights. options may be NULL. An instance lives
   * until it and its contexts are destroyed. */
  int32_t (*instance_create)(const mlc_instance_options *options,
                             mlc_instance **instance, mlc_status *status);
  void (*instance_destroy)(mlc_instance *instance);
  int32_t (*num_threads)(const mlc_instance *instance);

  int32_t (*context_create)(mlc_instance *instance,
                            const mlc_context_options *options,
                            mlc_context **context, mlc_status *status);
  void (*context_destroy)(mlc_context *context);

  /* Runs an entry. Inputs are validated first and never written, unless their
   * memory is an output's too; a non-contiguous or misaligned one is copied. An
   * output of kind MLC_NONE is allocated and returned with its deleter; an
   * output of kind MLC_TENSOR with data is the caller's buffer, of the right
   * dtype and shape, and may not overlap an input, but be all of the one that
   * it "shares" (metadata). After a failure nothing is allocated and caller's
   * buffers have unspecified contents. stream: NULL (CPU).
   *
   * A model for GPUs takes tensors of the CPU and of its GPU (kDLCUDA), inputs
   * and buffers alike; an output of kind MLC_NONE is allocated on the GPU when
   * its tensor.device says so. stream is the CUstream to launch in, in whose
   * order inputs are read; NULL: one of the context's own, which waits for the
   * default stream. The call returns when the outputs are there, unless the
   * caller is capturing the stream into a graph: then all inputs and buffers
   * must be on the GPU, and one run without capture comes first. */
  int32_t (*run)(mlc_context *context, int64_t entry, const mlc_value *inputs,
                 int64_t num_inputs, mlc_value *outputs, int64_t num_outputs,
                 void *stream, mlc_status *status);

  /* Totals since the last call: {"runs": n, "ns": n, "kernels": [{"id": i,
   * "calls": n, "ns": n, "min_ns": n, "items": n}, ...]}. Kernel ids index
   * "kernels" of the metadata. Lives until the next call on this context; NULL
   * when the context was not created with `profile`. */
  const char *(*profile)(mlc_context *context);
} mlc_model_api;

/* NULL when the library does not speak this version. */
typedef const mlc_model_api *(*mlc_model_query_fn)(uint32_t abi_version);
__attribute__((visibility("default"))) const mlc_model_api *
mlc_model_query(uint32_t abi_version);

#ifdef __cplusplus
}
#endif
#endif
