// Runs as graphs: the launches of a run that comes again with the same shapes
// are handed to the driver in one call. Where tensors have moved meanwhile, the
// entry runs once more, and what it would launch is compared with what has been
// recorded: launches that differ are changed in the graph.
#include "cuda.h"

#include <new>
#include <stdlib.h>

namespace mlc::gpu {

static constexpr int kGraphs = 8;           // of a context; the oldest goes
static constexpr int64_t kHostBytes = 512;  // of an input that the host reads
static constexpr int kRelaxed = 2;          // CU_STREAM_CAPTURE_MODE_RELAXED
static constexpr unsigned kNonBlocking = 1; // CU_STREAM_NON_BLOCKING

namespace {
/// A result of the recorded run.
struct Result {
  int64_t rank = -1; // -1: not asked for
  int64_t *dims = nullptr;
  const void *memory = nullptr;
};

enum class State {
  Seen,  // has run once
  Ready, // can be launched
  Never, // cannot be recorded
};

/// A launch or a copy that has been recorded.
struct Step {
  Handle node;
  int64_t kernel; // kCopy: none
  unsigned blocks;
  int64_t first, numWords; // of the graph's words
};

/// A list that grows.
template <typename T> struct List {
  T *data = nullptr;
  int64_t size = 0, capacity = 0;

  /// Adds `count` elements, whose values are not set; nullptr: out of memory.
  T *add(int64_t count) {
    if (size + count > capacity) {
      int64_t wanted = 2 * (size + count);
      auto *larger = static_cast<T *>(realloc(data, wanted * sizeof(T)));
      if (!larger)
        return nullptr;
      data = larger;
      capacity = wanted;
    }
    size += count;
    return data + size - count;
  }

  void clear() {
    free(data);
    *this = List();
  }
};
} // namespace

/// A run by its key: the shapes of the entry's arguments, and the contents of
/// what the host reads.
struct Graph {
  Graph *next = nullptr;
  const mlc_rt_entry *entry = nullptr;
  int64_t *key = nullptr;
  int64_t keyWords = 0;
  State state = State::Seen;
  Handle executable = nullptr;
  Handle captured = nullptr; // what it was made of: its nodes name launches
  Address arena = 0;
  Launch *launches = nullptr;
  int64_t numLaunches = 0;
  Result *results = nullptr; // one for each output
  int64_t *inputs = nullptr; // their words, as of the last launch
  List<Step> steps;
  List<int64_t> words;
  int64_t numPatched = 0; // steps that the run at hand has come by
};

// --- Keys
// ---------------------------------------------------------------------------------------------------------

/// Bytes of a tensor input.
static bool inputBytes(const mlc_rt_value_desc &desc, const mlc_value &value,
                       int64_t *bytes) {
  const mlc_tensor &tensor = value.tensor;
  return tensorBytes(desc.dtype, tensor.ndim, tensor.shape, bytes);
}

/// Writes the key to `key` unless that is nullptr; the words that it has, or -1
/// for runs that depend on more than a key can hold.
static int64_t writeKey(const mlc_context &context, const mlc_value *inputs,
                        int64_t *key) {
  const mlc_rt_entry &entry = *context.entry;
  int64_t words = 0;
  for (int32_t i = 0; i < entry.num_inputs; ++i) {
    const mlc_rt_value_desc &desc = entry.inputs[i];
    if (desc.placement)
      continue; // wherever it lies
    int64_t bytes;
    if ((desc.kind && desc.kind != MLC_TENSOR) || desc.dtype == MLC_STRING ||
        !inputBytes(desc, inputs[i], &bytes) || bytes > kHostBytes)
      return -1;
    int64_t count = (bytes + 7) / 8;
    if (key && bytes) {
      key[words + count - 1] = 0;
      memcpy(key + words, reinterpret_cast<const void *>(context.args[i]),
             bytes);
    }
    words += count;
  }
  const int64_t *dims = context.args + entry.num_inputs;
  for (int32_t i = 0; i < entry.num_inputs; ++i)
    for (int32_t axis = 0; axis < entry.inputs[i].rank; ++axis)
      if (entry.inputs[i].dims[axis] < 0) {
        if (key)
          key[words] = *dims;
        ++dims;
        ++words;
      }
  return words;
}

/// Makes `graph` what it was before it was recorded.
static void reset(mlc_context &context, Graph &graph, State state) {
  const Driver &driver = *context.instance->gpu->driver;
  if (graph.executable)
    driver.destroyExecutable(graph.executable);
  if (graph.captured)
    driver.destroyGraph(graph.captured);
  for (int32_t i = 0; graph.results && i < graph.entry->num_outputs; ++i)
    free(graph.results[i].dims);
  free(graph.results);
  free(graph.launches);
  free(graph.inputs);
  graph.steps.clear();
  graph.words.clear();
  graph.executable = graph.captured = nullptr;
  graph.results = nullptr;
  graph.launches = nullptr;
  graph.inputs = nullptr;
  graph.state = state;
}

static void forget(mlc_context &context, Graph *graph) {
  reset(context, *graph, State::Never);
  free(graph->key);
  free(graph);
}

/// The graph with the key of this run, moved to the front.
static Graph *lookUp(Context &gpu, const mlc_rt_entry *entry,
                     const int64_t *key, int64_t words) {
  for (Graph **link = &gpu.graphs; *link; link = &(*link)->next) {
    Graph *graph = *link;
    if (graph->entry != entry || graph->keyWords != words ||
        memcmp(graph->key, key, words * sizeof(int64_t)) != 0)
      continue;
    *link = graph->next;
    graph->next = gpu.graphs;
    return gpu.graphs = graph;
  }
  return nullptr;
}

/// Remembers a run that has not been seen; takes the key.
static void remember(mlc_context &context, int64_t *key, int64_t words) {
  Context &gpu = *context.gpu;
  void *memory = malloc(sizeof(Graph));
  if (!memory) {
    free(key);
    return;
  }
  auto *graph = new (memory) Graph();
  graph->entry = context.entry;
  graph->key = key;
  graph->keyWords = words;
  graph->next = gpu.graphs;
  gpu.graphs = graph;
  int count = 0;
  for (Graph **link = &gpu.graphs; *link; link = &(*link)->next)
    if (++count > kGraphs) {
      forget(context, *link);
      *link = nullptr;
      return;
    }
}

/// The graph of a run that has come before; nullptr when it has not.
static Graph *find(mlc_context &context, const mlc_value *inputs) {
  int64_t words = writeKey(context, inputs, nullptr);
  if (words < 0)
    return nullptr;
  auto *key = static_cast<int64_t *>(malloc((words + 1) * sizeof(int64_t)));
  if (!key)
    return nullptr;
  writeKey(context, inputs, key);
  Graph *graph = lookUp(*context.gpu, context.entry, key, words);
  if (graph)
    free(key);
  else
    remember(context, key, words);
  return graph;
}

// --- Recording
// ----------------------------------------------------------------------------------------------------

bool breakRecording(mlc_context &context) {
  if (!context.gpu->recording && !context.gpu->patching)
    return false;
  context.gpu->broken = true;
  return true;
}

/// The node that was captured last.
static Handle lastNode(const Driver &driver, Handle stream) {
  int status = 0;
  uint64_t id = 0;
  Handle graph = nullptr;
  const Handle *last = nullptr;
  size_t count = 0;
  if (driver.captureInfo(stream, &status, &id, &graph, &last, &count) ||
      count != 1)
    return nullptr;
  return last[0];
}

void recordStep(mlc_context &context, int64_t kernel, unsigned blocks,
                const int64_t *words, int64_t numWords) {
  Context &gpu = *context.gpu;
  Graph &graph = *gpu.recording;
  Handle node = lastNode(*context.instance->gpu->driver, gpu.stream);
  int64_t first = graph.words.size;
  Step *step = graph.steps.add(1);
  int64_t *copy = graph.words.add(numWords);
  if (!node || !step || !copy) {
    gpu.broken = true;
    return;
  }
  *step = {node, kernel, blocks, first, numWords};
  memcpy(copy, words, numWords * sizeof(int64_t));
}

/// Makes a recorded copy one between other addresses. Whether the driver
/// agrees.
static bool changeCopy(const Instance &instance, const Graph &graph,
                       const Step &step, const int64_t *words) {
  constexpr int kDevice = 2; // CU_MEMORYTYPE_DEVICE
  auto bytes = static_cast<size_t>(words[2]);
  CopyNode copy = {};
  copy.to.kind = copy.from.kind = kDevice;
  copy.to.device = static_cast<Address>(words[0]);
  copy.from.device = static_cast<Address>(words[1]);
  copy.to.pitch = copy.from.pitch = copy.width = bytes;
  copy.to.height = copy.from.height = copy.height = copy.depth = 1;
  return !instance.driver->setCopy(graph.executable, step.node, &copy,
                                   instance.context);
}

/// Makes a recorded launch one with `words`. Whether the driver agrees.
static bool change(mlc_context &context, const Graph &graph, const Step &step,
                   int64_t *words) {
  const Instance &instance = *context.instance->gpu;
  if (step.kernel == kCopy)
    return changeCopy(instance, graph, step, words);
  const mlc_rt_gpu_kernel &kernel = instance.code->kernels[step.kernel];
  Parameters parameters;
  if (parameters.set(instance, step.kernel, words))
    return false;
  KernelNode changed = {instance.kernels[step.kernel].function,
                        {step.blocks, 1, 1},
                        {static_cast<unsigned>(kernel.threads), 1, 1},
                        static_cast<unsigned>(kernel.shared),
                        parameters.list(),
                        parameters.extra()};
  return !instance.driver->setKernel(graph.executable, step.node, &changed);
}

/// Makes the next step this one. Whether it can.
static bool patchNext(mlc_context &context, Graph &graph, int64_t kernel,
                      unsigned blocks, int64_t *words, int64_t numWords) {
  if (graph.numPatched == graph.steps.size)
    return false;
  const Step &step = graph.steps.data[graph.numPatched++];
  if (step.kernel != kernel || step.blocks != blocks ||
      step.numWords != numWords)
    return false;
  int64_t *recorded = graph.words.data + step.first;
  size_t bytes = numWords * sizeof(int64_t);
  if (!memcmp(recorded, words, bytes))
    return true;
  if (!change(context, graph, step, words))
    return false;
  memcpy(recorded, words, bytes);
  return true;
}

int32_t patchStep(mlc_context &context, int64_t kernel, unsigned blocks,
                  int64_t *words, int64_t numWords) {
  Context &gpu = *context.gpu;
  gpu.broken |=
      !patchNext(context, *gpu.patching, kernel, blocks, words, numWords);
  return gpu.broken;
}

/// A result of the run that is being patched: as it was recorded, but for its
/// place.
static void moveResult(Context &gpu, int64_t index, int64_t rank,
                       const int64_t *dims, const void *memory) {
  Result &result = gpu.patching->results[index];
  if (result.rank != rank ||
      (rank && memcmp(result.dims, dims, rank * sizeof(int64_t)) != 0))
    gpu.broken = true;
  result.memory = memory;
}

void recordResult(mlc_context &context, int64_t index, int64_t rank,
                  const int64_t *dims, const void *memory) {
  if (context.gpu->patching)
    moveResult(*context.gpu, index, rank, dims, memory);
  Graph *graph = context.gpu->recording;
  if (!graph)
    return;
  Result &result = graph->results[index];
  auto *copy = static_cast<int64_t *>(malloc((rank + 1) * sizeof(int64_t)));
  if (result.rank >= 0 || !copy) { // asked for twice: in branches, perhaps
    free(copy);
    context.gpu->broken = true;
    return;
  }
  if (rank)
    memcpy(copy, dims, rank * sizeof(int64_t));
  result.rank = rank;
  result.dims = copy;
  result.memory = memory;
}

static bool prepare(mlc_context &context, Graph &graph) {
  Context &gpu = *context.gpu;
  if (!gpu.recorder &&
      context.instance->gpu->driver->createStream(&gpu.recorder, kNonBlocking))
    return false;
  int32_t count = graph.entry->num_outputs;
  graph.inputs = static_cast<int64_t *>(
      malloc((graph.entry->num_inputs + 1) * sizeof(int64_t)));
  if (!graph.inputs)
    return false;
  graph.results = static_cast<Result *>(malloc((count + 1) * sizeof(Result)));
  for (int32_t i = 0; graph.results && i < count; ++i)
    graph.results[i] = Result();
  return graph.results != nullptr;
}

static bool keepLaunches(Graph &graph, const Context &gpu) {
  size_t bytes = gpu.numLaunches * sizeof(Launch);
  graph.launches = static_cast<Launch *>(malloc(bytes + 1));
  if (!graph.launches)
    return false;
  memcpy(graph.launches, gpu.launches, bytes);
  graph.numLaunches = gpu.numLaunches;
  return true;
}

/// Notes what the launches of `graph` read and where they work.
static void keepPlaces(mlc_context &context, Graph &graph) {
  graph.arena = context.gpu->arenaTaken ? context.gpu->arena : 0;
  memcpy(graph.inputs, context.args, graph.entry->num_inputs * sizeof(int64_t));
}

/// Whether the launches of `graph` may be used as they are: what they read and
/// where they work is where it was. (What the host reads is in the key.)
static bool inPlace(const mlc_context &context, const Graph &graph) {
  for (int32_t i = 0; i < graph.entry->num_inputs; ++i)
    if (graph.entry->inputs[i].placement && graph.inputs[i] != context.args[i])
      return false;
  return !graph.arena || graph.arena == context.gpu->arena;
}

/// Runs the entry into a graph. False: it could not be recorded, and nothing
/// has been launched; *failed says whether the run itself has failed.
static bool record(mlc_context &context, Graph &graph, int32_t *failed) {
  const Driver &driver = *context.instance->gpu->driver;
  Context &gpu = *context.gpu;
  *failed = 0;
  if (!prepare(context, graph) ||
      driver.beginCapture(gpu.recorder, kRelaxed) != 0)
    return false;
  Handle stream = gpu.stream, captured = nullptr;
  gpu.stream = gpu.recorder;
  gpu.recording = &graph;
  gpu.broken = false;
  int32_t stopped = context.entry->run(&context, context.args);
  gpu.recording = nullptr;
  gpu.stream = stream;
  bool complete = driver.endCapture(gpu.recorder, &captured) == 0 && captured &&
                  !stopped && !gpu.broken && keepLaunches(graph, gpu) &&
                  driver.instantiate(&graph.executable, captured, 0) == 0;
  graph.captured = captured;
  if (complete)
    keepPlaces(context, graph);
  *failed = stopped && !gpu.broken;
  return complete;
}

static int32_t runPlainly(mlc_context &context) {
  context.gpu->arenaTaken = false;
  context.gpu->numLaunches = 0;
  return context.entry->run(&context, context.args);
}

/// Changes the launches of `graph` to those of this run. False: they are too
/// different, and nothing has been launched.
static bool patch(mlc_context &context, Graph &graph, int32_t *failed) {
  Context &gpu = *context.gpu;
  graph.numPatched = 0;
  gpu.patching = &graph;
  gpu.broken = false;
  int32_t stopped = runPlainly(context);
  gpu.patching = nullptr;
  *failed = stopped && !gpu.broken;
  if (stopped || gpu.broken || graph.numPatched != graph.steps.size)
    return false;
  keepPlaces(context, graph);
  return true;
}

/// Asks for the results again, in the places of the recording. False: they are
/// elsewhere now.
static bool placeResults(mlc_context &context, const Graph &graph) {
  for (int32_t i = 0; i < graph.entry->num_outputs; ++i) {
    const Result &result = graph.results[i];
    if (result.rank >= 0 && mlc_rt_gpu_output(&context, i, result.rank,
                                              result.dims) != result.memory)
      return false;
  }
  return true;
}

static int32_t launch(mlc_context &context, const Graph &graph) {
  Context &gpu = *context.gpu;
  if (graph.numLaunches)
    memcpy(gpu.launches, graph.launches, graph.numLaunches * sizeof(Launch));
  gpu.numLaunches = graph.numLaunches;
  int code =
      context.instance->gpu->driver->launchGraph(graph.executable, gpu.stream);
  return code ? failCall(context, "cuGraphLaunch", code) : 0;
}

int32_t execute(mlc_context &context, const mlc_value *inputs) {
  Context &gpu = *context.gpu;
  Graph *graph = nullptr;
  int32_t failed = 0;
  if (!context.profile && !gpu.captured && !waitsForLaunches())
    graph = find(context, inputs);
  if (!graph || graph->state == State::Never)
    return runPlainly(context);
  if (graph->state == State::Ready) {
    if (inPlace(context, *graph) && placeResults(context, *graph))
      return launch(context, *graph);
    if (context.code != MLC_OK)
      return 1;
    if (patch(context, *graph, &failed))
      return launch(context, *graph);
    reset(context, *graph, State::Never);
    return failed ? 1 : runPlainly(context);
  }
  if (record(context, *graph, &failed)) {
    graph->state = State::Ready;
    return launch(context, *graph);
  }
  reset(context, *graph, State::Never);
  return failed ? 1 : runPlainly(context);
}

void freeGraphs(mlc_context &context) {
  Context &gpu = *context.gpu;
  while (Graph *graph = gpu.graphs) {
    gpu.graphs = graph->next;
    forget(context, graph);
  }
  if (gpu.recorder)
    context.instance->gpu->driver->destroyStream(gpu.recorder);
}

} // namespace mlc::gpu
