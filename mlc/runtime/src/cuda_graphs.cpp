// Runs as graphs: the launches of a run that comes again with the same shapes
// are handed to the driver in one call.
#include "cuda_graphs.h"

#include <new>

namespace mlc::gpu {

static constexpr int kGraphs = 8;           // of a context; the oldest goes
static constexpr int64_t kHostBytes = 512;  // of an input that the host reads
static constexpr int kRelaxed = 2;          // CU_STREAM_CAPTURE_MODE_RELAXED
static constexpr unsigned kNonBlocking = 1; // CU_STREAM_NON_BLOCKING

// --- Keys
// ---------------------------------------------------------------------------------------------------------

bool inputBytes(const mlc_rt_value_desc &desc, const mlc_value &value,
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
  closeVariants(context, graph);
  if (graph.captured)
    context.instance->gpu->driver->destroyGraph(graph.captured);
  for (int32_t i = 0; graph.results && i < graph.entry->num_outputs; ++i)
    free(graph.results[i].dims);
  free(graph.results);
  free(graph.launches);
  free(graph.recorded);
  graph.steps.clear();
  graph.words.clear();
  graph.maps.clear();
  graph.captured = nullptr;
  graph.results = nullptr;
  graph.launches = nullptr;
  graph.recorded = nullptr;
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
                const int64_t *words, int64_t numWords, const MapBytes *maps) {
  Context &gpu = *context.gpu;
  Graph &graph = *gpu.recording;
  int64_t numMaps =
      maps ? context.instance->gpu->code->kernels[kernel].num_maps : 0;
  Handle node = lastNode(*context.instance->gpu->driver, gpu.stream);
  int64_t first = graph.words.size, firstMap = graph.maps.size;
  Step *step = graph.steps.add(1);
  int64_t *copy = graph.words.add(numWords);
  MapBytes *copies = graph.maps.add(numMaps);
  if (!node || !step || !copy || (numMaps && !copies)) {
    gpu.broken = true;
    return;
  }
  *step = {node, kernel, blocks, first, numWords, firstMap};
  memcpy(copy, words, numWords * sizeof(int64_t));
  if (numMaps)
    memcpy(copies, maps, numMaps * sizeof(MapBytes));
}

/// A result of the run that is being patched: as it was recorded, but for its
/// place.
static void moveResult(Context &gpu, int64_t index, int64_t rank,
                       const int64_t *dims, const void *memory) {
  const Result &result = gpu.patching->results[index];
  if (result.rank != rank ||
      (rank && memcmp(result.dims, dims, rank * sizeof(int64_t)) != 0))
    gpu.broken = true;
  placeResult(*gpu.patching, index, memory);
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
  placeResult(*graph, index, memory);
}

/// Memory for the places of `graph`, all of them nowhere.
static bool makePlaces(Graph &graph) {
  graph.numPlaces = graph.entry->num_inputs + graph.entry->num_outputs + 1;
  graph.recorded = static_cast<int64_t *>(
      calloc(graph.numPlaces, 3 * sizeof(int64_t) + sizeof(bool)));
  if (!graph.recorded)
    return false;
  graph.places = graph.recorded + graph.numPlaces;
  graph.bytes = graph.places + graph.numPlaces;
  graph.isKnown = reinterpret_cast<bool *>(graph.bytes + graph.numPlaces);
  return true;
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
  return graph.results && makePlaces(graph);
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

/// Runs the entry into a graph. False: it could not be recorded, and nothing
/// has been launched; *failed says whether the run itself has failed.
static bool record(mlc_context &context, Graph &graph, const mlc_value *inputs,
                   int32_t *failed) {
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
                  !stopped && !gpu.broken && keepLaunches(graph, gpu);
  graph.captured = captured;
  *failed = stopped && !gpu.broken;
  return complete && openVariants(context, graph, inputs);
}

int32_t runPlainly(mlc_context &context) {
  context.gpu->arenaTaken = false;
  context.gpu->numLaunches = 0;
  return context.entry->run(&context, context.args);
}

static int32_t launch(mlc_context &context, const Graph &graph,
                      const Variant &variant) {
  Context &gpu = *context.gpu;
  if (graph.numLaunches)
    memcpy(gpu.launches, graph.launches, graph.numLaunches * sizeof(Launch));
  gpu.numLaunches = graph.numLaunches;
  int code = context.instance->gpu->driver->launchGraph(variant.executable,
                                                        gpu.stream);
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
  const Variant *variant = nullptr;
  if (graph->state == State::Ready)
    variant = chooseVariant(context, *graph, &failed);
  else if (record(context, *graph, inputs, &failed))
    variant = graph->variants;
  if (variant) {
    graph->state = State::Ready;
    return launch(context, *graph, *variant);
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
