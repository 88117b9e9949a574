// The GPU's memory: arena, blocks of a run, tensors of the caller.
#include "cuda.h"

#include <stdlib.h>

namespace mlc::gpu {

Address takeBlock(mlc_context &context, int64_t bytes) {
  Context &gpu = *context.gpu;
  if (bytes < 0 || bytes > PTRDIFF_MAX / 2) {
    context.fail(MLC_ERROR_OUT_OF_MEMORY,
                 "a temporary of %lld bytes cannot be allocated",
                 static_cast<long long>(bytes));
    return 0;
  }
  size_t wanted = alignUp(static_cast<size_t>(bytes) + !bytes, 512);
  for (Block *block = gpu.blocks; block; block = block->next)
    if (!block->used && block->bytes >= wanted && block->bytes / 2 <= wanted) {
      block->used = true;
      block->source = nullptr;
      return block->data;
    }
  auto *block = static_cast<Block *>(malloc(sizeof(Block)));
  Address memory = 0;
  int code = block ? context.instance->gpu->driver->allocate(&memory, wanted)
                   : static_cast<int>(kOutOfMemory);
  if (code) {
    free(block);
    char call[96];
    Text text(call, sizeof call);
    text.add("allocating %lld bytes on the GPU", static_cast<long long>(bytes));
    failCall(context, call, code);
    return 0;
  }
  *block = {gpu.blocks, memory, wanted, true, 0, nullptr};
  gpu.blocks = block;
  return memory;
}

void giveBackResults(mlc_context &context) {
  for (int32_t i = 0; i < context.entry->num_outputs; ++i)
    for (Block *block = context.gpu->blocks; block; block = block->next)
      if (block->data == context.outputs[i].from)
        block->used = false;
}

// Runs for which a block waits for one that needs it. Shapes take turns, and
// graphs want the addresses they know.
static constexpr int kPatience = 16;

static void freeIdle(mlc_context &context, int runs) {
  for (Block **link = &context.gpu->blocks; *link;) {
    Block *block = *link;
    block->idle = block->used ? 0 : block->idle + 1;
    block->used = false;
    block->source = nullptr;
    if (block->idle < runs) {
      link = &block->next;
    } else {
      *link = block->next;
      context.instance->gpu->driver->free(block->data);
      free(block);
    }
  }
}

void recycleBlocks(mlc_context &context) { freeIdle(context, kPatience); }

void freeBlocks(mlc_context &context) { freeIdle(context, 0); }

// --- The caller's tensors
// -----------------------------------------------------------------------------------------

bool isDevice(const mlc_tensor &tensor) {
  return tensor.device.device_type == 2; // kDLCUDA
}

Address stage(mlc_context &context, const void *data, int64_t bytes) {
  if (refuseCapture(context, "not all inputs are on the GPU"))
    return 0;
  Address memory = takeBlock(context, bytes);
  if (!memory || !bytes)
    return memory;
  int code = context.instance->gpu->driver->uploadAsync(
      memory, data, static_cast<size_t>(bytes), context.gpu->stream);
  if (code) {
    failCall(context, "copying an input: cuMemcpyHtoDAsync_v2", code);
    return 0;
  }
  context.gpu->blocks->source = nullptr;
  for (Block *block = context.gpu->blocks; block; block = block->next)
    if (block->data == memory)
      block->source = data;
  return memory;
}

const char *fetch(mlc_context &context, const mlc_tensor &tensor,
                  int64_t bytes) {
  void *packed = mlc::takeBlock(context, bytes);
  if (!packed || !bytes)
    return static_cast<const char *>(packed);
  const char *begin, *end;
  tensorRange(tensor, &begin, &end);
  bool contiguous = isContiguous(tensor);
  void *range = contiguous ? packed : mlc::takeBlock(context, end - begin);
  if (!range)
    return nullptr;
  int code = context.instance->gpu->driver->downloadAsync(
      range, reinterpret_cast<Address>(begin), end - begin,
      context.gpu->stream);
  if (code) {
    failCall(context, "copying an input: cuMemcpyDtoHAsync_v2", code);
    return nullptr;
  }
  if (wait(context))
    return nullptr;
  if (!contiguous) {
    mlc_tensor copied = tensor;
    copied.data = static_cast<char *>(range) + (tensorData(tensor) - begin);
    copied.byte_offset = 0;
    packTensor(copied, packed);
  }
  return static_cast<const char *>(packed);
}

Address adopt(mlc_context &context, const mlc_tensor &tensor, int64_t bytes) {
  if (!bytes)
    return takeBlock(context, 0);
  if (!isContiguous(tensor)) {
    const char *packed = fetch(context, tensor, bytes);
    return packed ? stage(context, packed, bytes) : 0;
  }
  auto address = reinterpret_cast<Address>(tensorData(tensor));
  if (address % kAddressUnit == 0)
    return address;
  Address memory = takeBlock(context, bytes);
  if (!memory || mlc_rt_gpu_copy(&context, reinterpret_cast<void *>(memory),
                                 tensorData(tensor), bytes))
    return 0;
  return memory;
}

// --- Results
// ---------------------------------------------------------------------------------------------------------

namespace {
/// Behind a result that owns memory of the GPU.
struct Owned {
  mlc_instance *instance;
  Address memory;
};
} // namespace

static void freeTensor(mlc_value *value) {
  auto *owned = static_cast<Owned *>(value->manager);
  {
    Scope scope(*owned->instance->gpu);
    owned->instance->gpu->driver->free(owned->memory);
  }
  releaseInstance(owned->instance);
  free(owned);
  *value = {};
}

bool allocateTensor(mlc_context &context, int32_t dtype, int64_t rank,
                    const int64_t *dims, mlc_value &target) {
  int64_t bytes = 0;
  tensorBytes(dtype, rank, dims, &bytes);
  auto *owned = static_cast<Owned *>(
      malloc(sizeof(Owned) + (rank + 1) * sizeof(int64_t)));
  Address memory = 0;
  int code = owned ? context.instance->gpu->driver->allocate(
                         &memory, bytes ? static_cast<size_t>(bytes) : 1)
                   : static_cast<int>(kOutOfMemory);
  if (code) {
    free(owned);
    failCall(context, "allocating an output", code);
    return false;
  }
  *owned = {context.instance, memory};
  context.instance->references.fetch_add(1, std::memory_order_relaxed);
  target = {};
  target.struct_size = sizeof target;
  target.kind = MLC_TENSOR;
  target.tensor.device.device_type = 2;
  target.tensor.device.device_id = context.instance->gpu->number;
  target.tensor.ndim = static_cast<int32_t>(rank);
  setDtype(target.tensor, dtype);
  target.tensor.shape = reinterpret_cast<int64_t *>(owned + 1);
  if (rank)
    memcpy(target.tensor.shape, dims, rank * sizeof(int64_t));
  target.tensor.data = reinterpret_cast<void *>(memory);
  target.manager = owned;
  target.deleter = freeTensor;
  return true;
}

} // namespace mlc::gpu

using namespace mlc;

void *mlc_rt_gpu_arena(mlc_rt *rt, int64_t bytes) {
  gpu::Context &gpu = *rt->gpu;
  if (gpu.arenaTaken)
    return mlc_rt_gpu_pool(rt, bytes);
  const gpu::Driver &driver = *rt->instance->gpu->driver;
  if (bytes < 0 || !gpu.arena || static_cast<size_t>(bytes) > gpu.arenaBytes) {
    if (gpu.arena)
      driver.free(gpu.arena);
    gpu.arena = 0;
    gpu.arenaBytes = bytes > 0 ? static_cast<size_t>(bytes) : 1;
    int code = bytes < 0 ? static_cast<int>(gpu::kOutOfMemory)
                         : driver.allocate(&gpu.arena, gpu.arenaBytes);
    if (code) {
      gpu.arena = gpu.arenaBytes = 0;
      char call[256];
      Text text(call, sizeof call);
      text.add("entry '%s' needs an arena of %lld bytes on the GPU",
               rt->entry->name, static_cast<long long>(bytes));
      gpu::failCall(*rt, call, code);
      return nullptr;
    }
  }
  gpu.arenaTaken = true;
  return reinterpret_cast<void *>(gpu.arena);
}

void *mlc_rt_gpu_pool(mlc_rt *rt, int64_t bytes) {
  if (gpu::breakRecording(*rt))
    return nullptr;
  return reinterpret_cast<void *>(gpu::takeBlock(*rt, bytes));
}

/// The result that the host has made or will make in `buffer`, or the GPU in
/// `from`, goes to `target`.
static void deliverLater(mlc_context &context, int64_t index, void *target,
                         bool toDevice, void *buffer, gpu::Address from) {
  Output &output = context.outputs[index];
  output.from = from;
  output.to = toDevice ? reinterpret_cast<gpu::Address>(target) : 0;
  output.buffer = toDevice ? buffer : target;
}

/// Whether the buffer that `outputTarget` gave for a result is the GPU's.
static bool targetIsDevice(const mlc_context &context, int64_t index) {
  return gpu::isDevice(context.callerOutputs[index].tensor) &&
         context.outputs[index].kind == Output::Direct;
}

void *mlc_rt_output(mlc_rt *rt, int64_t index, int64_t rank,
                    const int64_t *dims) {
  if (gpu::breakRecording(*rt))
    return nullptr;
  void *target = outputTarget(*rt, index, rank, dims);
  Output &output = rt->outputs[index];
  output.from = output.to = 0;
  if (!target || !targetIsDevice(*rt, index))
    return target;
  void *buffer = takeBlock(*rt, output.bytes);
  if (buffer)
    deliverLater(*rt, index, target, output.bytes > 0, buffer, 0);
  return buffer;
}

/// The memory that the GPU writes a result to.
static void *gpuOutput(mlc_rt *rt, int64_t index, int64_t rank,
                       const int64_t *dims) {
  void *target = outputTarget(*rt, index, rank, dims);
  Output &output = rt->outputs[index];
  output.from = output.to = 0;
  if (!target)
    return nullptr;
  bool device = targetIsDevice(*rt, index);
  if (device && reinterpret_cast<gpu::Address>(target) % gpu::kAddressUnit == 0)
    return target;
  gpu::Address memory = gpu::takeBlock(*rt, output.bytes);
  if (memory && output.bytes)
    deliverLater(*rt, index, target, device, nullptr, memory);
  return reinterpret_cast<void *>(memory);
}

void *mlc_rt_gpu_output(mlc_rt *rt, int64_t index, int64_t rank,
                        const int64_t *dims) {
  void *memory = gpuOutput(rt, index, rank, dims);
  if (memory)
    gpu::recordResult(*rt, index, rank, dims, memory);
  return memory;
}
