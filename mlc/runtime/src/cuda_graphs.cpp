// Runs as graphs: the launches of a run that comes again, with the same shapes
// and addresses, are handed to the driver in one call.
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
} // namespace

/// A run by its key: the arguments of the entry, with the contents of what the
/// host reads instead of its address.
struct Graph {
  Graph *next = nullptr;
  const mlc_rt_entry *entry = nullptr;
  int64_t *key = nullptr;
  int64_t words = 0;
  State state = State::Seen;
  Handle executable = nullptr;
  Address arena = 0;
  Launch *launches = nullptr;
  int64_t numLaunches = 0;
  Result *results = nullptr; // one for each output
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
    int64_t count = 1, bytes = sizeof(int64_t);
    const void *content = &context.args[i];
    if (!desc.placement) {
      if ((desc.kind && desc.kind != MLC_TENSOR) || desc.dtype == MLC_STRING ||
          !inputBytes(desc, inputs[i], &bytes) || bytes > kHostBytes)
        return -1;
      count = (bytes + 7) / 8;
      content = reinterpret_cast<const void *>(context.args[i]);
    }
    if (key && bytes) {
      key[words + count - 1] = 0;
      memcpy(key + words, content, bytes);
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

static void forget(mlc_context &context, Graph *graph) {
  if (graph->executable)
    context.instance->gpu->driver->destroyExecutable(graph->executable);
  for (int32_t i = 0; graph->results && i < graph->entry->num_outputs; ++i)
    free(graph->results[i].dims);
  free(graph->results);
  free(graph->launches);
  free(graph->key);
  free(graph);
}

/// The graph with the key of this run, moved to the front.
static Graph *lookUp(Context &gpu, const mlc_rt_entry *entry,
                     const int64_t *key, int64_t words) {
  for (Graph **link = &gpu.graphs; *link; link = &(*link)->next) {
    Graph *graph = *link;
    if (graph->entry != entry || graph->words != words ||
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
  graph->words = words;
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
  if (!context.gpu->recording)
    return false;
  context.gpu->broken = true;
  return true;
}

void recordResult(mlc_context &context, int64_t index, int64_t rank,
                  const int64_t *dims, const void *memory) {
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

/// Makes `graph` what it was before it was recorded.
static void reset(mlc_context &context, Graph &graph, State state) {
  if (graph.executable)
    context.instance->gpu->driver->destroyExecutable(graph.executable);
  graph.executable = nullptr;
  for (int32_t i = 0; graph.results && i < graph.entry->num_outputs; ++i)
    free(graph.results[i].dims);
  free(graph.results);
  free(graph.launches);
  graph.results = nullptr;
  graph.launches = nullptr;
  graph.state = state;
}

static bool prepare(mlc_context &context, Graph &graph) {
  Context &gpu = *context.gpu;
  if (!gpu.recorder &&
      context.instance->gpu->driver->createStream(&gpu.recorder, kNonBlocking))
    return false;
  int32_t count = graph.entry->num_outputs;
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
  graph.arena = gpu.arenaTaken ? gpu.arena : 0;
  return true;
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
  if (captured)
    driver.destroyGraph(captured);
  *failed = stopped && !gpu.broken;
  return complete;
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

static int32_t runPlainly(mlc_context &context) {
  context.gpu->arenaTaken = false;
  context.gpu->numLaunches = 0;
  return context.entry->run(&context, context.args);
}

int32_t execute(mlc_context &context, const mlc_value *inputs) {
  Context &gpu = *context.gpu;
  Graph *graph = nullptr;
  if (!context.profile && !gpu.captured && !waitsForLaunches())
    graph = find(context, inputs);
  if (!graph || graph->state == State::Never)
    return runPlainly(context);
  if (graph->state == State::Ready) {
    bool same = !graph->arena || graph->arena == gpu.arena;
    if (same && placeResults(context, *graph))
      return launch(context, *graph);
    if (context.code != MLC_OK)
      return 1;
    reset(context, *graph, State::Seen);
    return runPlainly(context);
  }
  int32_t failed;
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
