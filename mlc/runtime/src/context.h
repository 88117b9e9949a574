// What an instance and a context hold.
#ifndef MLC_RUNTIME_CONTEXT_H
#define MLC_RUNTIME_CONTEXT_H

#include "pool.h"
#include "results.h"
#include "support.h"

#include <atomic>

#if MLC_RT_CUDA
namespace mlc::gpu {
struct Instance;
struct Context;
} // namespace mlc::gpu
#endif

struct mlc_instance {
  std::atomic<int32_t> references{1}; // the caller's, and one for each context
  mlc::Allocator allocator;
  mlc::Pool *pool = nullptr; // nullptr: one thread, or the caller's threads
  void (*parallelFor)(void *, int64_t, void (*)(void *, int64_t),
                      void *) = nullptr;
  void *user = nullptr;
  int32_t threads = 1;
  const char *weights = nullptr;
  void *mapping = nullptr; // of an external weight file
  size_t mappingSize = 0;
#if MLC_RT_CUDA
  mlc::gpu::Instance *gpu = nullptr;
#endif
};

namespace mlc {

/// A buffer that lives until the end of a run; the data follow the header.
struct alignas(kAlignment) Block {
  Block *next;
  size_t bytes; // header included
  bool used;    // by the current run
};

/// How a result reaches the caller.
struct Output {
  enum Kind : int32_t {
    Missing,  // not produced yet
    Direct,   // the host wrote into the caller's buffer, or into `value` which
              // was allocated for it
    Strided,  // `buffer` must be copied into the caller's strided buffer
    Deferred, // `value` must be copied into memory of its own: sequences,
              // optionals, strings
  };
  Kind kind = Missing;
  bool allocated = false; // the caller's value was empty and now owns memory
  void *buffer = nullptr;
  const mlc_value *value = nullptr;
#if MLC_RT_CUDA
  // A result that is not where the caller wants it: copied at the end of the
  // run from the GPU's memory (`from`) or `buffer`, to the GPU's (`to`) or
  // `buffer`.
  uint64_t from = 0, to = 0;
  int64_t bytes = 0;
  bool onDevice = false; // an allocated one: the caller wants it on the GPU
#endif
};

/// A named dimension during a run.
struct Dim {
  int64_t extent = -1; // -1: no input has it
  int32_t input = -1;  // the input that said so
};

/// What a context knows of a kernel.
struct Kernel {
  // Launches of this many items: on all threads or on one, to try it or as that
  // was the quicker way, for so many more of them; the shortest time each way
  // took (nanoseconds).
  enum Phase : int32_t { Together, Alone, Chosen };
  int64_t items = 0;
  Phase phase = Chosen;
  bool threads = true;
  int32_t left = 0;
  int64_t alone = INT64_MAX, together = INT64_MAX;
  // Since the last profile().
  int64_t calls = 0, total = 0, shortest = 0, totalItems = 0;
};

} // namespace mlc

struct alignas(mlc::kAlignment) mlc_context {
  int64_t error[2] = {0, 0};

  mlc_instance *instance = nullptr;
  void *arena = nullptr;
  size_t arenaBytes = 0;
  bool arenaTaken = false; // handed out in this run
  mlc::Block *blocks = nullptr;
  mlc::Results *results = nullptr;

  // The run in progress.
  std::atomic<uint32_t> busy{0};
  const mlc_rt_entry *entry = nullptr;
  mlc_value *callerOutputs = nullptr;
  mlc_status *status = nullptr;
  int32_t code = MLC_OK;
  mlc::Output *outputs = nullptr; // as many as the entry with the most has
  mlc::Dim *dims = nullptr;       // one for each dim of the program
  int64_t *args = nullptr;

  mlc::Kernel *kernels = nullptr; // by id
  int64_t numKernels = 0;

#if MLC_RT_CUDA
  mlc::gpu::Context *gpu = nullptr;
#endif

  // Profiling.
  bool profile = false;
  int64_t runs = 0, runTime = 0;
  char *report = nullptr;
  size_t reportBytes = 0;

  /// Records the first failure of the run; returns 1, which is what host
  /// functions return.
  int32_t fail(int32_t errorCode, const char *format, ...)
      __attribute__((format(printf, 3, 4)));
};

namespace mlc {

// --- run.cpp ---
/// The model's name of a node, "?" when it is unknown.
const char *nodeName(int64_t node);

// --- memory.cpp ---
/// 64-byte aligned memory until the end of the run; records the failure and
/// returns nullptr when there is none.
void *takeBlock(mlc_context &context, int64_t bytes);
/// After a run: keeps what it used for the next one, frees what it did not.
void recycleBlocks(mlc_context &context);
void freeBlocks(mlc_context &context);

// --- tensors.cpp ---
/// Bytes of a tensor; false when they do not fit 63 bits or an extent is
/// negative.
bool tensorBytes(int32_t dtype, int64_t rank, const int64_t *dims,
                 int64_t *bytes);
char *tensorData(const mlc_tensor &tensor);
bool isContiguous(const mlc_tensor &tensor);
bool isAligned(const mlc_tensor &tensor);
/// Gathers a strided tensor into `packed`, or scatters it back.
void packTensor(const mlc_tensor &tensor, void *packed);
void unpackTensor(const mlc_tensor &tensor, const void *packed);
/// The bytes that a tensor touches, as [*begin, *end).
void tensorRange(const mlc_tensor &tensor, const char **begin,
                 const char **end);

// --- inputs.cpp ---
/// Validates all inputs and fills context.args and context.dims; false when one
/// was refused (recorded).
bool bindInputs(mlc_context &context, const mlc_value *inputs);
/// "float32[batch,3,224,224]".
void appendExpected(Text &text, const mlc_rt_value_desc &desc);
void appendActual(Text &text, const mlc_tensor &tensor);

// --- outputs.cpp ---
/// Checks what can be checked of the caller's buffers before the program runs.
bool checkOutputs(mlc_context &context, const mlc_value *inputs);
/// After the program: hands over what is not yet in the caller's hands.
bool deliverOutputs(mlc_context &context);
/// After a failure: frees what was allocated for the caller.
void dropOutputs(mlc_context &context);

// --- values.cpp ---
/// A deep copy of `source` in one allocation, with its deleter.
bool exportValue(mlc_context &context, const mlc_value &source,
                 mlc_value &target);
/// An empty tensor value that owns its memory.
bool allocateTensor(mlc_context &context, int32_t dtype, int64_t rank,
                    const int64_t *dims, mlc_value &target);

// --- weights.cpp ---
int32_t mapWeights(mlc_instance &instance, const char *path, bool checkHash,
                   mlc_status *status);
void unmapWeights(mlc_instance &instance);

#if MLC_RT_CUDA
// --- api.cpp ---
void releaseInstance(mlc_instance *instance);

// --- launch.cpp ---
void recordLaunch(mlc_context &context, int64_t kernel, int64_t time,
                  int64_t items);

// --- outputs.cpp ---
/// What mlc_rt_output is without a GPU; the caller's buffer may be the GPU's.
void *outputTarget(mlc_context &context, int64_t index, int64_t rank,
                   const int64_t *dims);
#endif

// --- parallel.cpp ---
/// body over disjoint ranges of [0, count), on the instance's threads.
void parallelRanges(mlc_instance &instance, Pool::Body body, void *data,
                    int64_t count);

// --- run.cpp ---
int32_t run(mlc_context *context, int64_t entry, const mlc_value *inputs,
            int64_t numInputs, mlc_value *outputs, int64_t numOutputs,
            void *stream, mlc_status *status);

// --- profile.cpp ---
const char *profile(mlc_context *context);

} // namespace mlc

#endif
