// Launches and copies of a run on a GPU, and what may go wrong with them.
#include "cuda.h"

#include <new>
#include <stdlib.h>

namespace mlc::gpu {

// One word more than launches: nobody looks at what a captured run sets.
static constexpr size_t kErrorBytes = (kLaunches + 1) * 2 * sizeof(int64_t);

static constexpr size_t kCounterBytes = 4096; // of the workspace

static const char *nodeOf(int64_t node) {
  return node >= 0 && node < mlc_program.num_nodes ? mlc_program.nodes[node]
                                                   : "?";
}

static const char *kernelOf(const mlc_context &context, int64_t kernel) {
  const mlc_rt_gpu &code = *context.instance->gpu->code;
  return kernel >= 0 && kernel < code.num_kernels ? code.kernels[kernel].name
                                                  : "?";
}

int32_t failCall(mlc_context &context, const char *call, int code) {
  char reason[256];
  Text text(reason, sizeof reason);
  describe(*context.instance->gpu->driver, text, call, code);
  return context.fail(statusOf(code), "%s", reason);
}

/// A failure of, or since, the last launch: asynchronous ones are noticed late.
static int32_t failLaunch(mlc_context &context, const char *call, int code) {
  const Context &gpu = *context.gpu;
  char reason[256];
  Text text(reason, sizeof reason);
  describe(*context.instance->gpu->driver, text, call, code);
  if (!gpu.numLaunches)
    return context.fail(statusOf(code), "%s", reason);
  const Launch &last = gpu.launches[gpu.numLaunches - 1];
  const char *node = nodeOf(last.node);
  const char *kernel = kernelOf(context, last.kernel);
  if (gpu.numLaunches == 1)
    return context.fail(statusOf(code), "node '%s' (kernel '%s'): %s", node,
                        kernel, reason);
  const Launch &first = gpu.launches[0];
  return context.fail(statusOf(code),
                      "between node '%s' (kernel '%s') and node '%s' (kernel "
                      "'%s'): %s; MLC_CUDA_SYNC=1 finds the launch",
                      nodeOf(first.node), kernelOf(context, first.kernel), node,
                      kernel, reason);
}

bool waitsForLaunches() {
  const char *said = getenv("MLC_CUDA_SYNC");
  return said && *said && *said != '0';
}

static int createStream(const Driver &driver, Context &gpu, bool profile) {
  // A blocking stream: it waits for work that others have put into the default
  // stream, where the caller's tensors may still be in the making.
  if (int code = driver.createStream(&gpu.own, 0))
    return code;
  if (int code = driver.allocateHost(reinterpret_cast<void **>(&gpu.errors),
                                     kErrorBytes, 2)) // mapped
    return code;
  memset(gpu.errors, 0, kErrorBytes);
  if (int code = driver.hostAddress(&gpu.errorsAddress, gpu.errors, 0))
    return code;
  if (!profile)
    return 0;
  if (int code = driver.createEvent(&gpu.begin, 0))
    return code;
  return driver.createEvent(&gpu.end, 0);
}

/// Memory for the kernel that needs the most, with counters of 0.
static int createWorkspace(const Instance &instance, Context &gpu) {
  static const char zeros[kCounterBytes] = {};
  int64_t most = 0;
  for (int64_t i = 0; i < instance.code->num_kernels; ++i)
    if (instance.code->kernels[i].workspace > most)
      most = instance.code->kernels[i].workspace;
  if (!most)
    return 0;
  size_t bytes = static_cast<size_t>(most);
  if (int code = instance.driver->allocate(
          &gpu.workspace, bytes < kCounterBytes ? kCounterBytes : bytes))
    return code;
  return instance.driver->upload(gpu.workspace, zeros, kCounterBytes);
}

int32_t openContext(mlc_context &context, mlc_status *status) {
  const Instance &instance = *context.instance->gpu;
  void *memory = malloc(sizeof(Context));
  if (!memory)
    return setStatus(status, MLC_ERROR_OUT_OF_MEMORY, "out of memory");
  context.gpu = new (memory) Context();
  Scope scope(instance);
  int code = createStream(*instance.driver, *context.gpu, context.profile);
  if (!code)
    code = createWorkspace(instance, *context.gpu);
  if (!code)
    return MLC_OK;
  char reason[256];
  Text text(reason, sizeof reason);
  describe(*instance.driver, text, "creating a context", code);
  return setStatus(status, statusOf(code), "%s", reason);
}

void closeContext(mlc_context &context) {
  Context *gpu = context.gpu;
  if (!gpu)
    return;
  const Driver &driver = *context.instance->gpu->driver;
  Scope scope(*context.instance->gpu);
  freeGraphs(context);
  freeBlocks(context);
  if (gpu->arena)
    driver.free(gpu->arena);
  if (gpu->workspace)
    driver.free(gpu->workspace);
  if (gpu->begin)
    driver.destroyEvent(gpu->begin);
  if (gpu->end)
    driver.destroyEvent(gpu->end);
  if (gpu->errors)
    driver.freeHost(gpu->errors);
  if (gpu->own)
    driver.destroyStream(gpu->own);
  free(gpu);
}

void beginRun(mlc_context &context, void *stream) {
  Context &gpu = *context.gpu;
  gpu.stream = stream ? stream : gpu.own;
  gpu.arenaTaken = false;
  gpu.numLaunches = 0;
  int status = 0;
  gpu.captured = stream &&
                 !context.instance->gpu->driver->isCapturing(stream, &status) &&
                 status;
}

int32_t refuseCapture(mlc_context &context, const char *what) {
  if (!context.gpu->captured)
    return 0;
  return context.fail(MLC_ERROR_ARGUMENT,
                      "the caller's stream is being captured, but %s", what);
}

/// The first launch that has set its error word; all words are clear
/// afterwards.
static void collectErrors(mlc_context &context) {
  Context &gpu = *context.gpu;
  for (int64_t i = 0; i < gpu.numLaunches; ++i) {
    int64_t *word = gpu.errors + 2 * i;
    if (!word[0])
      continue;
    if (!context.error[0]) {
      context.error[0] = word[0];
      context.error[1] = word[1];
      mlc_rt_failed(&context, gpu.launches[i].node);
    }
    word[0] = word[1] = 0;
  }
}

int32_t wait(mlc_context &context) {
  if (breakRecording(context) ||
      refuseCapture(context, "this run needs results of the GPU on the host"))
    return 1;
  Context &gpu = *context.gpu;
  int code = context.instance->gpu->driver->synchronize(gpu.stream);
  if (code)
    failLaunch(context, "cuStreamSynchronize", code);
  collectErrors(context);
  gpu.numLaunches = 0;
  return context.error[0] || context.code != MLC_OK;
}

/// Results on their way from the memory they were made in to the caller's.
static int deliver(mlc_context &context, const Output &output) {
  bool onHost = !output.to && (output.from || output.buffer);
  if ((onHost || (output.to && !output.from)) &&
      refuseCapture(context, "not all outputs are buffers on the GPU"))
    return 0;
  const Driver &driver = *context.instance->gpu->driver;
  Handle stream = context.gpu->stream;
  auto bytes = static_cast<size_t>(output.bytes);
  if (output.from && output.to)
    return driver.copyAsync(output.to, output.from, bytes, stream);
  if (output.from)
    return driver.downloadAsync(output.buffer, output.from, bytes, stream);
  if (output.to)
    return driver.uploadAsync(output.to, output.buffer, bytes, stream);
  return 0;
}

void finishRun(mlc_context &context, bool failed) {
  failed = failed || context.error[0] || context.code != MLC_OK;
  for (int32_t i = 0; !failed && i < context.entry->num_outputs; ++i)
    if (int code = deliver(context, context.outputs[i])) {
      failLaunch(context, "copying an output", code);
      failed = true;
    }
  if (!context.gpu->captured)
    wait(context);
}

int Parameters::set(const Instance &instance, int64_t id, int64_t *words,
                    const Recorded *recorded) {
  const mlc_rt_gpu_kernel &kernel = instance.code->kernels[id];
  int64_t numWords = wordsOf(kernel);
  hasMaps = kernel.num_maps != 0;
  if (!hasMaps) {
    bytes = numWords * sizeof(int64_t);
    buffer[0] = reinterpret_cast<void *>(1); // a buffer
    buffer[1] = words;
    buffer[2] = reinterpret_cast<void *>(2); // its size
    buffer[3] = &bytes;
    buffer[4] = nullptr;
    return 0;
  }
  if (kernel.num_maps > kMaps || numWords + kMaps >= kParameters)
    return 1; // CUDA_ERROR_INVALID_VALUE
  for (int64_t i = 0; i < numWords; ++i)
    parameters[i] = words + i;
  for (int64_t i = 0; i < kernel.num_maps; ++i) {
    int64_t tensor = kernel.maps[i].tensor;
    parameters[numWords + i] = maps + i;
    if (recorded && recorded->words[tensor] == words[tensor])
      maps[i] = recorded->maps[i];
    else if (int code =
                 encodeMap(*instance.driver, kernel.maps[i], words, maps + i))
      return code;
  }
  parameters[numWords + kernel.num_maps] = nullptr;
  return 0;
}

/// The words behind a launch's arguments.
static void completeWords(const Context &gpu, const mlc_rt_gpu_kernel &kernel,
                          int64_t items, int64_t *words) {
  int64_t word = gpu.captured ? kLaunches : gpu.numLaunches - 1;
  words[kernel.arguments] = static_cast<int64_t>(gpu.errorsAddress) + word * 16;
  words[kernel.arguments + 1] = items;
  if (kernel.workspace)
    words[kernel.arguments + 2] = static_cast<int64_t>(gpu.workspace);
}

/// Blocks of a launch; 0: too many.
static unsigned blocksOf(const mlc_rt_gpu_kernel &kernel, int64_t items) {
  int64_t perBlock = kernel.threads / kernel.group;
  int64_t blocks = (items + perBlock - 1) / perBlock;
  return blocks > INT32_MAX ? 0 : static_cast<unsigned>(blocks);
}

/// A launch of kernel `id`. Its blocks may be on the chip before the launch in
/// front of it is done, where its code waits for that itself before it touches
/// memory.
static int launchBlocks(const Instance &instance, int64_t id, unsigned blocks,
                        Handle stream, Parameters &parameters) {
  constexpr int kEarly = 6; // ..._ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
  const Driver &driver = *instance.driver;
  const mlc_rt_gpu_kernel &kernel = instance.code->kernels[id];
  Handle function = instance.kernels[id].function;
  auto threads = static_cast<unsigned>(kernel.threads);
  auto shared = static_cast<unsigned>(kernel.shared);
  if (!instance.overlaps || !instance.code->early[id])
    return driver.launch(function, blocks, 1, 1, threads, 1, 1, shared, stream,
                         parameters.list(), parameters.extra());
  LaunchAttribute early = {kEarly, {}, 1, {}};
  LaunchConfig config = {blocks, 1,      1,      threads, 1,
                         1,      shared, stream, &early,  1};
  return driver.launchEx(&config, function, parameters.list(),
                         parameters.extra());
}

/// The launch itself.
static int launch(mlc_context &context, int64_t id, int64_t items,
                  int64_t *words) {
  const Instance &instance = *context.instance->gpu;
  const mlc_rt_gpu_kernel &kernel = instance.code->kernels[id];
  const Context &gpu = *context.gpu;
  completeWords(gpu, kernel, items, words);
  unsigned blocks = blocksOf(kernel, items);
  if (!blocks)
    return 1; // CUDA_ERROR_INVALID_VALUE
  Parameters parameters;
  if (int code = parameters.set(instance, id, words, nullptr))
    return code;
  int code = launchBlocks(instance, id, blocks, gpu.stream, parameters);
  if (!code && gpu.recording)
    recordStep(context, id, blocks, words, wordsOf(kernel),
               parameters.mapBytes());
  return code;
}

/// A launch between two events.
static int launchTimed(mlc_context &context, int64_t id, int64_t items,
                       int64_t *words) {
  const Driver &driver = *context.instance->gpu->driver;
  const Context &gpu = *context.gpu;
  driver.record(gpu.begin, gpu.stream);
  if (int code = launch(context, id, items, words))
    return code;
  driver.record(gpu.end, gpu.stream);
  if (int code = driver.waitEvent(gpu.end))
    return code;
  float milliseconds = 0;
  driver.elapsed(&milliseconds, gpu.begin, gpu.end);
  recordLaunch(context, id, static_cast<int64_t>(milliseconds * 1e6F), items);
  return 0;
}

} // namespace mlc::gpu

using namespace mlc;

int64_t mlc_rt_gpu_architecture(mlc_rt *rt) {
  return rt->instance->gpu->architecture;
}

int32_t mlc_rt_gpu_launch(mlc_rt *rt, int64_t kernel, int64_t node,
                          int64_t items, int64_t *words) {
  if (items <= 0)
    return 0;
  gpu::Context &gpu = *rt->gpu;
  if (gpu.numLaunches == gpu::kLaunches && gpu.captured)
    gpu.numLaunches = 0;
  if (gpu.numLaunches == gpu::kLaunches && gpu::wait(*rt))
    return 1;
  gpu.launches[gpu.numLaunches++] = {kernel, node};
  if (gpu.patching) {
    const mlc_rt_gpu_kernel &launched =
        rt->instance->gpu->code->kernels[kernel];
    gpu::completeWords(gpu, launched, items, words);
    return gpu::patchStep(*rt, kernel, gpu::blocksOf(launched, items), words,
                          gpu::wordsOf(launched));
  }
  int code = rt->profile ? gpu::launchTimed(*rt, kernel, items, words)
                         : gpu::launch(*rt, kernel, items, words);
  if (code) {
    gpu.launches[0] = {kernel, node};
    gpu.numLaunches = 1;
    return gpu::failLaunch(*rt, "cuLaunchKernel", code);
  }
  return gpu::waitsForLaunches() && !gpu.captured ? gpu::wait(*rt) : 0;
}

int32_t mlc_rt_gpu_copy(mlc_rt *rt, void *target, const void *source,
                        int64_t bytes) {
  if (bytes <= 0)
    return 0;
  int64_t words[] = {reinterpret_cast<int64_t>(target),
                     reinterpret_cast<int64_t>(source), bytes};
  if (rt->gpu->patching)
    return gpu::patchStep(*rt, gpu::kCopy, 0, words, 3);
  int code = rt->instance->gpu->driver->copyAsync(
      static_cast<gpu::Address>(words[0]), static_cast<gpu::Address>(words[1]),
      bytes, rt->gpu->stream);
  if (code)
    return gpu::failCall(*rt, "cuMemcpyDtoDAsync_v2", code);
  if (rt->gpu->recording)
    gpu::recordStep(*rt, gpu::kCopy, 0, words, 3, nullptr);
  return 0;
}

int32_t mlc_rt_gpu_to_device(mlc_rt *rt, void *target, const void *source,
                             int64_t bytes) {
  if (bytes <= 0)
    return 0;
  if (gpu::breakRecording(*rt))
    return 1;
  int code = rt->instance->gpu->driver->uploadAsync(
      reinterpret_cast<gpu::Address>(target), source, bytes, rt->gpu->stream);
  return code ? gpu::failCall(*rt, "cuMemcpyHtoDAsync_v2", code) : 0;
}

int32_t mlc_rt_gpu_to_host(mlc_rt *rt, void *target, const void *source,
                           int64_t bytes) {
  if (bytes <= 0)
    return 0;
  if (gpu::breakRecording(*rt))
    return 1;
  auto from = reinterpret_cast<gpu::Address>(source);
  // The caller's own tensor, which has been staged, is still here.
  for (const gpu::Block *block = rt->gpu->blocks; block; block = block->next)
    if (block->used && block->source && block->data == from) {
      memcpy(target, block->source, bytes);
      return 0;
    }
  int code = rt->instance->gpu->driver->downloadAsync(target, from, bytes,
                                                      rt->gpu->stream);
  if (code)
    return gpu::failCall(*rt, "cuMemcpyDtoHAsync_v2", code);
  return gpu::wait(*rt);
}
