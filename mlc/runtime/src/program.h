// The contract between generated code and the runtime that is linked into the
// same library (docs/abi.md). Plain C: the tests write programs by hand.
// Everything here is hidden; the public side is mlc.h.
#ifndef MLC_RUNTIME_PROGRAM_H
#define MLC_RUNTIME_PROGRAM_H

#include "mlc.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(hidden)

typedef struct mlc_context mlc_rt;

// --- What the generated objects define
// -------------------------------------------------------------------------------

typedef struct mlc_rt_dim {
  const char *name;
  int64_t lowest, highest; // highest -1: no bound
  int64_t multiple;
  // Where the name is a sum of others ("past + 1"): how many they are, the
  // constant, then the number and the factor of each; else null.
  const int64_t *sum;
} mlc_rt_dim;

typedef struct mlc_rt_value_desc {
  const char *name;
  int32_t dtype;       // mlc_dtype
  int32_t rank;        // -1: any
  const int64_t *dims; // -1: dynamic
  const int32_t
      *dim_ids; // index into dim_ranges or -1; equal ids have equal extents
  int32_t kind; // mlc_kind, inner kinds in the next nibbles; 0 means MLC_TENSOR
  int32_t placement; // 1: an input that the program wants in the GPU's memory
  int32_t shares;    // 1 + the input whose memory an output may be; 0: none
} mlc_rt_value_desc;

// args: one word per input (the data pointer of a tensor, an mlc_value pointer
// of anything else), then all dynamic dims of the tensor inputs, in order.
// Returns nonzero when the run has failed.
typedef int32_t (*mlc_rt_run_fn)(mlc_rt *rt, const int64_t *args);

typedef struct mlc_rt_entry {
  const char *name;
  mlc_rt_run_fn run;
  int32_t num_inputs, num_outputs;
  const mlc_rt_value_desc *inputs, *outputs;
} mlc_rt_entry;

// Artefacts for GPUs only.

// A size that depends on a launch: factor times the argument words that are
// not negative.
typedef struct mlc_rt_gpu_size {
  int64_t factor, words[6];
} mlc_rt_gpu_size;

// A tensor map, made for every launch from its arguments.
typedef struct mlc_rt_gpu_map {
  int64_t tensor;  // the argument word with the address
  int64_t type;    // CUtensorMapDataType
  int64_t rank;    // 1 to 5; the contiguous dimension is the first
  int64_t swizzle; // CUtensorMapSwizzle
  mlc_rt_gpu_size extents[5];
  mlc_rt_gpu_size strides[4]; // in bytes, of all but the first
  int64_t box[5];             // negative: as much, or all where there is less
  // Windows of a tensor with channels first and images last (0: none): how many
  // a copy takes, where the first begins and the last, and how far apart.
  int64_t pixels, low[3], high[3], step[3];
} mlc_rt_gpu_map;

typedef struct mlc_rt_gpu_kernel {
  const char *name; // in its images
  const void
      *cubin; // machine code for mlc_rt_gpu.arch; NULL: a kernel of the host
  const char *ptx; // for newer chips, NUL-terminated
  int32_t threads, group;
  int32_t arguments;          // words: addresses of tensors, then sizes
  int32_t shared;             // bytes of dynamic shared memory
  const mlc_rt_gpu_map *maps; // parameters behind the words
  int64_t num_maps;
  // Bytes of the context's workspace that the kernel uses. Where it uses any,
  // its address is one more word. The first 4,096 are 0 before every launch and
  // after it; of the others nothing is known.
  int64_t workspace;
} mlc_rt_gpu_kernel;

typedef struct mlc_rt_gpu {
  uint32_t struct_size;
  int32_t driver;       // the lowest version, as cuDriverGetVersion gives it
  int32_t major, minor; // compute capability of the machine code
  const char *arch;     // "sm_90a"
  const mlc_rt_gpu_kernel *kernels; // by id
  int64_t num_kernels;
  const struct mlc_rt_gpu *next; // the same for another architecture, or NULL
  // By id: may launches begin before the one in front of them is done?
  const int32_t *early;
} mlc_rt_gpu;

typedef struct mlc_rt_program {
  uint32_t struct_size, abi_version;
  const char *metadata; // JSON, NUL-terminated
  const char
      *cpu_features; // "+avx2,+fma,...": checked when an instance is created
  const char *const *nodes; // node id -> source node name
  int64_t num_nodes;
  const mlc_rt_dim *dim_ranges;
  int64_t num_dims;
  const char *weights; // the embedded image, or NULL
  int64_t weights_size;
  const char *weights_file; // external: file name beside the artefact, or NULL
  uint8_t weights_hash[32]; // tree hash of the image, see weights.cpp
  const mlc_rt_entry *entries;
  int64_t num_entries;
  const char *const *messages; // texts of mlc_rt_check
  int64_t num_messages;
#if MLC_RT_CUDA
  const mlc_rt_gpu *gpu;
#endif
} mlc_rt_program;

extern const mlc_rt_program mlc_program;

// --- What the runtime gives to generated code
// ------------------------------------------------------------------------

typedef void (*mlc_rt_kernel_fn)(int64_t *args, int64_t *error, int64_t begin,
                                 int64_t end);
typedef int64_t (*mlc_rt_grid_fn)(int64_t *args);

// Codes of the error word: error[0] = (node id + 1) * 16 + code, or the code
// alone, which mlc_rt_failed completes; error[1] = the offending value.
enum {
  MLC_RT_INDEX = 1,
  MLC_RT_DIVISION = 2,
  MLC_RT_SHAPE = 3,
  MLC_RT_OTHER = 4
};

// 64-byte aligned; reused between runs. NULL: out of memory, the host function
// returns 1.
void *mlc_rt_arena(mlc_rt *rt, int64_t bytes);
// The caller's buffer (its shape is checked) or a new one for result `index`.
// NULL: failed.
void *mlc_rt_output(mlc_rt *rt, int64_t index, int64_t rank,
                    const int64_t *dims);
// A buffer of data-dependent size, 64-byte aligned, freed at the end of the
// run. NULL: out of memory.
void *mlc_rt_pool(mlc_rt *rt, int64_t bytes);
const void *mlc_rt_weights(mlc_rt *rt);
// Runs the items [0, grid(args)) on the pool. Nonzero: a kernel has set the
// error word, stop.
int32_t mlc_rt_launch(mlc_rt *rt, mlc_rt_kernel_fn kernel, mlc_rt_grid_fn grid,
                      int64_t *args, int64_t kernel_id);
// The same where the arguments a and b are not one address: a kernel that would
// write over a tensor what that holds already.
int32_t mlc_rt_launch_unless_same(mlc_rt *rt, mlc_rt_kernel_fn kernel,
                                  mlc_rt_grid_fn grid, int64_t *args,
                                  int64_t kernel_id, int64_t a, int64_t b);
// ok == 0: records messages[message] with the node and the value, returns
// nonzero.
int32_t mlc_rt_check(mlc_rt *rt, int64_t ok, int64_t node, int64_t message,
                     int64_t value);
// Nonzero when the error word is set.
int32_t mlc_rt_poll(mlc_rt *rt);
// Called before the host function gives up after a launch. Kernels are shared
// between nodes and may set a bare code (less than 16): the launch knows whose
// it is. A negative node changes nothing.
void mlc_rt_failed(mlc_rt *rt, int64_t node);

// --- The GPU, in artefacts for one
// ------------------------------------------------------------------------------------
// Memory of the GPU, otherwise like the functions above.

void *mlc_rt_gpu_arena(mlc_rt *rt, int64_t bytes);
void *mlc_rt_gpu_output(mlc_rt *rt, int64_t index, int64_t rank,
                        const int64_t *dims);
void *mlc_rt_gpu_pool(mlc_rt *rt, int64_t bytes);
const void *mlc_rt_gpu_weights(mlc_rt *rt);
// A constant of the host on the GPU, uploaded once per instance. NULL: failed.
void *mlc_rt_gpu_constant(mlc_rt *rt, const void *data, int64_t bytes);
// Which architecture's kernels the instance has: 0 for those of
// mlc_rt_program.gpu, 1 for its next, and so on.
int64_t mlc_rt_gpu_architecture(mlc_rt *rt);
// Launches `items` items of a kernel and does not wait. `words` are the
// kernel's arguments with room for three more. Nonzero: failed.
int32_t mlc_rt_gpu_launch(mlc_rt *rt, int64_t kernel, int64_t node,
                          int64_t items, int64_t *words);
// Copies inside of the GPU's memory, and to and from it. The first two do not
// wait; mlc_rt_gpu_to_host waits for all that was launched, and is nonzero when
// a kernel has set its error word.
int32_t mlc_rt_gpu_copy(mlc_rt *rt, void *target, const void *source,
                        int64_t bytes);
int32_t mlc_rt_gpu_to_device(mlc_rt *rt, void *target, const void *source,
                             int64_t bytes);
int32_t mlc_rt_gpu_to_host(mlc_rt *rt, void *target, const void *source,
                           int64_t bytes);

// --- Sequences, optionals and strings
// --------------------------------------------------------------------------------
// Handles are pointers to immutable values that live until the end of the run.
// Functions that make one return NULL when memory runs out or an index is out
// of range (recorded; the host function returns 1).

const mlc_value *mlc_rt_tensor(mlc_rt *rt, int64_t dtype, int64_t rank,
                               const int64_t *dims, const void *data);
const mlc_value *mlc_rt_sequence(mlc_rt *rt, int64_t count,
                                 const mlc_value *const *items);
const mlc_value *mlc_rt_sequence_at(mlc_rt *rt, const mlc_value *sequence,
                                    int64_t index, int64_t node);
// index == count appends; negative indices count from the end.
const mlc_value *mlc_rt_sequence_insert(mlc_rt *rt, const mlc_value *sequence,
                                        const mlc_value *item, int64_t index,
                                        int64_t node);
const mlc_value *mlc_rt_sequence_erase(mlc_rt *rt, const mlc_value *sequence,
                                       int64_t index, int64_t node);
int64_t mlc_rt_length(const mlc_value *sequence_or_optional);
const mlc_value *mlc_rt_optional(mlc_rt *rt,
                                 const mlc_value *item); // NULL item: empty
const mlc_value *mlc_rt_optional_get(mlc_rt *rt, const mlc_value *optional,
                                     int64_t node);
const void *mlc_rt_data(const mlc_value *tensor);
int64_t mlc_rt_rank(const mlc_value *tensor);
int64_t mlc_rt_dim_of(const mlc_value *tensor, int64_t axis);
// A copy of `size` bytes that lives until the end of the run, for elements of
// string tensors.
const char *mlc_rt_text(mlc_rt *rt, const char *data, int64_t size);
// Operators on strings (text.cpp): inputs and a configuration as tensors, to
// the sequence of results. Linked in when used. NULL: failed.
const mlc_value *mlc_text_equal(mlc_rt *rt, int64_t count,
                                const mlc_value *const *items, int64_t node);
const mlc_value *mlc_text_concat(mlc_rt *rt, int64_t count,
                                 const mlc_value *const *items, int64_t node);
const mlc_value *mlc_text_split(mlc_rt *rt, int64_t count,
                                const mlc_value *const *items, int64_t node);
const mlc_value *mlc_text_lookup(mlc_rt *rt, int64_t count,
                                 const mlc_value *const *items, int64_t node);
const mlc_value *mlc_text_table(mlc_rt *rt, int64_t count,
                                const mlc_value *const *items, int64_t node);
const mlc_value *mlc_text_normalize(mlc_rt *rt, int64_t count,
                                    const mlc_value *const *items,
                                    int64_t node);
const mlc_value *mlc_text_parse(mlc_rt *rt, int64_t count,
                                const mlc_value *const *items, int64_t node);
const mlc_value *mlc_text_print(mlc_rt *rt, int64_t count,
                                const mlc_value *const *items, int64_t node);
// Makes `value` result `index`. Nonzero: failed.
int32_t mlc_rt_output_value(mlc_rt *rt, int64_t index, const mlc_value *value);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
