// The public table: instances, contexts, the signature.
#include "context.h"
#include "cpu.h"
#if MLC_RT_CUDA
#include "cuda.h"
#endif

#include <new>
#include <stdlib.h>

namespace mlc {

/// The caller's options, with zeros for what its version of the struct does not
/// have.
template <typename T> static T readOptions(const T *options) {
  T result = {};
  if (options) {
    size_t size =
        options->struct_size < sizeof(T) ? options->struct_size : sizeof(T);
    memcpy(static_cast<void *>(&result), options, size);
  }
  return result;
}

/// Copies as much of `source` as the caller's struct holds.
template <typename T> static void writeInfo(T *target, T source) {
  uint32_t given = target->struct_size;
  memcpy(static_cast<void *>(target), &source,
         given < sizeof(T) ? given : sizeof(T));
  target->struct_size = given;
}

// --- Signature
// -------------------------------------------------------------------------------------------------------

static const char *metadata() { return mlc_program.metadata; }

static int64_t numEntries() { return mlc_program.num_entries; }

static int64_t numDims() { return mlc_program.num_dims; }

static const mlc_rt_entry *findEntry(int64_t entry) {
  return entry >= 0 && entry < mlc_program.num_entries
             ? &mlc_program.entries[entry]
             : nullptr;
}

static int32_t entryInfo(int64_t index, mlc_entry_info *info) {
  const mlc_rt_entry *entry = findEntry(index);
  if (!entry || !info)
    return MLC_ERROR_ARGUMENT;
  writeInfo(info, mlc_entry_info{sizeof *info, entry->num_inputs, entry->name,
                                 entry->num_outputs});
  return MLC_OK;
}

static int32_t valueInfo(const mlc_rt_value_desc *values, int32_t count,
                         int64_t index, mlc_value_info *info) {
  if (index < 0 || index >= count || !info)
    return MLC_ERROR_ARGUMENT;
  const mlc_rt_value_desc &desc = values[index];
  writeInfo(info,
            mlc_value_info{sizeof *info, desc.kind ? desc.kind : MLC_TENSOR,
                           desc.name, desc.dtype, desc.rank, desc.dims,
                           desc.dim_ids});
  return MLC_OK;
}

static int32_t inputInfo(int64_t entry, int64_t index, mlc_value_info *info) {
  const mlc_rt_entry *found = findEntry(entry);
  return found ? valueInfo(found->inputs, found->num_inputs, index, info)
               : static_cast<int32_t>(MLC_ERROR_ARGUMENT);
}

static int32_t outputInfo(int64_t entry, int64_t index, mlc_value_info *info) {
  const mlc_rt_entry *found = findEntry(entry);
  return found ? valueInfo(found->outputs, found->num_outputs, index, info)
               : static_cast<int32_t>(MLC_ERROR_ARGUMENT);
}

static int32_t dimInfo(int64_t dim, mlc_dim_info *info) {
  if (dim < 0 || dim >= mlc_program.num_dims || !info)
    return MLC_ERROR_ARGUMENT;
  const mlc_rt_dim &range = mlc_program.dim_ranges[dim];
  writeInfo(info, mlc_dim_info{sizeof *info, range.name, range.lowest,
                               range.highest, range.multiple});
  return MLC_OK;
}

// --- Instances
// -------------------------------------------------------------------------------------------------------

static void release(mlc_instance *instance) {
  if (instance->references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (instance->pool)
    Pool::destroy(instance->pool);
  unmapWeights(*instance);
#if MLC_RT_CUDA
  gpu::closeInstance(*instance);
#endif
  free(instance);
}

#if MLC_RT_CUDA
void releaseInstance(mlc_instance *instance) { release(instance); }
#endif

static int32_t checkMachine(mlc_status *status) {
  char names[256];
  Text missing(names, sizeof names);
  if (!checkCpu(mlc_program.cpu_features, missing))
    return MLC_OK;
  return setStatus(status, MLC_ERROR_DEVICE,
                   "this processor (or its operating system) lacks %s, which "
                   "the model was compiled for; compile it with a smaller "
                   "--cpu",
                   names);
}

static int32_t setUp(mlc_instance &instance,
                     const mlc_instance_options &options, mlc_status *status) {
  if (!options.allocate != !options.deallocate)
    return setStatus(status, MLC_ERROR_ARGUMENT,
                     "allocate and deallocate come together");
  if (options.num_threads < 0 || options.num_threads > 1024)
    return setStatus(status, MLC_ERROR_ARGUMENT,
                     "num_threads is %d; it must be 0 (default) to 1024",
                     options.num_threads);
  instance.allocator = {options.allocate, options.deallocate, options.user};
  instance.parallelFor = options.parallel_for;
  instance.user = options.user;
  instance.threads =
      options.num_threads ? options.num_threads : defaultThreads();
  if (instance.threads < 0)
    return setStatus(status, MLC_ERROR_ARGUMENT,
                     "MLC_NUM_THREADS is '%s'; it must be a number, 0 for as "
                     "many as there are cores",
                     getenv("MLC_NUM_THREADS"));
  if (instance.threads > 1 && !instance.parallelFor) {
    instance.pool = Pool::create(instance.threads);
    if (!instance.pool)
      return setStatus(status, MLC_ERROR_OUT_OF_MEMORY, "out of memory");
  }
  instance.weights = mlc_program.weights;
  if (mlc_program.weights_size && !instance.weights)
    return mapWeights(instance, options.weights_path,
                      !options.skip_weights_hash, status);
  return MLC_OK;
}

static int32_t instanceCreate(const mlc_instance_options *options,
                              mlc_instance **result, mlc_status *status) {
  clearStatus(status);
  if (!result)
    return setStatus(status, MLC_ERROR_ARGUMENT,
                     "the instance pointer is null");
  *result = nullptr;
  if (int32_t code = checkMachine(status))
    return code;
  void *memory = malloc(sizeof(mlc_instance));
  if (!memory)
    return setStatus(status, MLC_ERROR_OUT_OF_MEMORY, "out of memory");
  auto *instance = new (memory) mlc_instance();
  if (int32_t code = setUp(*instance, readOptions(options), status)) {
    release(instance);
    return code;
  }
#if MLC_RT_CUDA
  if (int32_t code =
          gpu::openInstance(*instance, readOptions(options).device, status)) {
    release(instance);
    return code;
  }
#endif
  *result = instance;
  return MLC_OK;
}

static void instanceDestroy(mlc_instance *instance) {
  if (instance)
    release(instance);
}

static int32_t numThreads(const mlc_instance *instance) {
  return instance ? instance->threads : 0;
}

// --- Contexts
// --------------------------------------------------------------------------------------------------------

/// Words of the largest argument array, and the most outputs, of any entry.
static void measureEntries(int64_t *args, int64_t *outputs) {
  *args = *outputs = 1;
  for (int64_t e = 0; e < mlc_program.num_entries; ++e) {
    const mlc_rt_entry &entry = mlc_program.entries[e];
    int64_t words = entry.num_inputs;
    for (int32_t i = 0; i < entry.num_inputs; ++i)
      words += entry.inputs[i].rank > 0 ? entry.inputs[i].rank : 0;
    *args = words > *args ? words : *args;
    *outputs = entry.num_outputs > *outputs ? entry.num_outputs : *outputs;
  }
}

static void contextDestroy(mlc_context *context) {
  if (!context)
    return;
#if MLC_RT_CUDA
  gpu::closeContext(*context);
#endif
  context->instance->allocator.put(context->arena, context->arenaBytes);
  freeBlocks(*context);
  if (context->results)
    context->results->close();
  free(context->args);
  free(context->outputs);
  free(context->dims);
  free(context->kernels);
  free(context->report);
  release(context->instance);
  free(context);
}

static int32_t contextCreate(mlc_instance *instance,
                             const mlc_context_options *options,
                             mlc_context **result, mlc_status *status) {
  clearStatus(status);
  if (!instance || !result)
    return setStatus(status, MLC_ERROR_ARGUMENT,
                     "the instance or the context pointer is null");
  *result = nullptr;
  void *memory = nullptr;
  if (posix_memalign(&memory, alignof(mlc_context), sizeof(mlc_context)))
    return setStatus(status, MLC_ERROR_OUT_OF_MEMORY, "out of memory");
  auto *context = new (memory) mlc_context();
  instance->references.fetch_add(1, std::memory_order_relaxed);
  context->instance = instance;
  context->profile = readOptions(options).profile != 0;
  int64_t words, outputs;
  measureEntries(&words, &outputs);
  context->args = static_cast<int64_t *>(malloc(words * sizeof(int64_t)));
  context->outputs = static_cast<Output *>(malloc(outputs * sizeof(Output)));
  context->dims =
      static_cast<Dim *>(malloc((mlc_program.num_dims + 1) * sizeof(Dim)));
  context->results = Results::create();
  if (!context->args || !context->outputs || !context->dims ||
      !context->results) {
    contextDestroy(context);
    return setStatus(status, MLC_ERROR_OUT_OF_MEMORY, "out of memory");
  }
#if MLC_RT_CUDA
  if (int32_t code = gpu::openContext(*context, status)) {
    contextDestroy(context);
    return code;
  }
#endif
  *result = context;
  return MLC_OK;
}

} // namespace mlc

// The compiler writes these tables without seeing this header
// (mlc/codegen/program.py).
#if MLC_RT_CUDA
static constexpr size_t kProgramBytes = 152;
static_assert(sizeof(mlc_rt_gpu) == 56 && sizeof(mlc_rt_gpu_kernel) == 64 &&
              sizeof(mlc_rt_gpu_map) == 82 * sizeof(int64_t));
#else
static constexpr size_t kProgramBytes = 144;
#endif
static_assert(sizeof(mlc_rt_program) == kProgramBytes &&
              sizeof(mlc_rt_value_desc) == 48 && sizeof(mlc_rt_entry) == 40 &&
              sizeof(mlc_rt_dim) == 40);

// No initialiser that runs: the table must be complete for the first of several
// threads that ask.
static constexpr mlc_model_api kApi = {
    sizeof(mlc_model_api), MLC_ABI_VERSION,      mlc::metadata,
    mlc::numEntries,       mlc::numDims,         mlc::entryInfo,
    mlc::inputInfo,        mlc::outputInfo,      mlc::dimInfo,
    mlc::instanceCreate,   mlc::instanceDestroy, mlc::numThreads,
    mlc::contextCreate,    mlc::contextDestroy,  mlc::run,
    mlc::profile};

const mlc_model_api *mlc_model_query(uint32_t version) {
  return version == MLC_ABI_VERSION ? &kApi : nullptr;
}
