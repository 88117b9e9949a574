// The executables of a graph. Tensors that take turns get one each, which is
// launched as it is. For tensors that have not been seen one is changed: the
// entry runs without launching, and what it would launch is compared with the
// recording. From that is learned which words of which launches follow which
// tensor, so that the entry need not run the next time.
#include "cuda_graphs.h"

namespace mlc::gpu {

// --- Places
// ----------------------------------------------------------------------------------------------------

static size_t placeBytes(const Graph &graph) {
  return graph.numPlaces * sizeof(int64_t);
}

static int64_t arenaPlace(const Graph &graph) { return graph.numPlaces - 1; }

/// Notes where inputs and arena of the run at hand are.
static void placeInputs(const mlc_context &context, Graph &graph) {
  for (int32_t i = 0; i < graph.entry->num_inputs; ++i)
    graph.places[i] = graph.entry->inputs[i].placement ? context.args[i] : 0;
  graph.places[arenaPlace(graph)] =
      graph.usesArena ? static_cast<int64_t>(context.gpu->arena) : 0;
}

void placeResult(Graph &graph, int64_t index, const void *memory) {
  graph.places[graph.entry->num_inputs + index] =
      reinterpret_cast<int64_t>(memory);
}

/// Asks for the results again, as they were recorded. False: failed.
static bool placeResults(mlc_context &context, Graph &graph) {
  for (int32_t i = 0; i < graph.entry->num_outputs; ++i) {
    const Result &result = graph.results[i];
    if (result.rank < 0)
      continue;
    const void *memory =
        mlc_rt_gpu_output(&context, i, result.rank, result.dims);
    if (!memory)
      return false;
    placeResult(graph, i, memory);
  }
  return true;
}

static uint64_t hashOf(const Graph &graph) {
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a, a word at a time
  for (int64_t i = 0; i < graph.numPlaces; ++i)
    hash = (hash ^ static_cast<uint64_t>(graph.places[i])) * 0x100000001b3;
  return hash;
}

/// Whether the run at hand has the places of one that was not long ago; it is
/// remembered.
static bool comesAgain(Graph &graph) {
  uint64_t hash = hashOf(graph);
  for (uint64_t recent : graph.recent)
    if (recent == hash)
      return true;
  graph.recent[graph.numRecent++ % kRecent] = hash;
  return false;
}

// --- Variants
// --------------------------------------------------------------------------------------------------

/// Adds a variant, which is as recorded; nullptr when there is no room.
static Variant *addVariant(mlc_context &context, Graph &graph) {
  if (graph.numVariants == graph.mostVariants)
    return nullptr;
  Variant &variant = graph.variants[graph.numVariants];
  size_t bytes = graph.words.size * sizeof(int64_t);
  variant = Variant();
  variant.places = static_cast<int64_t *>(malloc(placeBytes(graph) + bytes));
  if (!variant.places || context.instance->gpu->driver->instantiate(
                             &variant.executable, graph.captured, 0)) {
    free(variant.places);
    graph.mostVariants = graph.numVariants;
    return nullptr;
  }
  variant.words = variant.places + graph.numPlaces;
  memcpy(variant.places, graph.recorded, placeBytes(graph));
  if (bytes)
    memcpy(variant.words, graph.words.data, bytes);
  ++graph.numVariants;
  return &variant;
}

bool openVariants(mlc_context &context, Graph &graph, const mlc_value *inputs) {
  const mlc_rt_entry &entry = *graph.entry;
  graph.usesArena = context.gpu->arenaTaken;
  placeInputs(context, graph);
  memcpy(graph.recorded, graph.places, placeBytes(graph));
  for (int32_t i = 0; i < entry.num_inputs; ++i)
    if (entry.inputs[i].placement &&
        !inputBytes(entry.inputs[i], inputs[i], &graph.bytes[i]))
      return false;
  for (int32_t i = 0; i < entry.num_outputs; ++i)
    graph.bytes[entry.num_inputs + i] = context.outputs[i].bytes;
  comesAgain(graph);
  return addVariant(context, graph) != nullptr;
}

void closeVariants(mlc_context &context, Graph &graph) {
  for (int i = 0; i < graph.numVariants; ++i) {
    context.instance->gpu->driver->destroyExecutable(
        graph.variants[i].executable);
    free(graph.variants[i].places);
  }
  graph.numVariants = 0;
  graph.uses.clear();
}

/// How much is lost with a variant: nothing where the arena has moved, little
/// where its tensors have not come again, or not for long.
static int worthOf(const Graph &graph, const Variant &variant) {
  int64_t arena = arenaPlace(graph);
  if (variant.places[arena] != graph.places[arena])
    return 0;
  if (!variant.cameAgain)
    return 1;
  return graph.numRuns - variant.run > kRecent ? 2 : 3;
}

/// The variant to be changed: of those that are worth least, the one that was
/// launched last the longest ago.
static Variant *leastWorth(Graph &graph) {
  Variant *least = graph.variants;
  for (int i = 1; i < graph.numVariants; ++i) {
    Variant &other = graph.variants[i];
    int difference = worthOf(graph, other) - worthOf(graph, *least);
    if (difference < 0 || (!difference && other.run < least->run))
      least = &other;
  }
  return least;
}

// --- Changes
// ---------------------------------------------------------------------------------------------------

/// Makes a copy one between other addresses. Whether the driver agrees.
static bool changeCopy(const Instance &instance, const Variant &variant,
                       const Step &step) {
  constexpr int kDevice = 2; // CU_MEMORYTYPE_DEVICE
  const int64_t *words = variant.words + step.first;
  auto bytes = static_cast<size_t>(words[2]);
  CopyNode copy = {};
  copy.to.kind = copy.from.kind = kDevice;
  copy.to.device = static_cast<Address>(words[0]);
  copy.from.device = static_cast<Address>(words[1]);
  copy.to.pitch = copy.from.pitch = copy.width = bytes;
  copy.to.height = copy.from.height = copy.height = copy.depth = 1;
  return !instance.driver->setCopy(variant.executable, step.node, &copy,
                                   instance.context);
}

/// Gives a step of `variant` its words. Whether the driver agrees.
static bool change(mlc_context &context, const Graph &graph,
                   const Variant &variant, const Step &step) {
  const Instance &instance = *context.instance->gpu;
  if (step.kernel == kCopy)
    return changeCopy(instance, variant, step);
  const mlc_rt_gpu_kernel &kernel = instance.code->kernels[step.kernel];
  Parameters parameters;
  Recorded recorded = {graph.words.data + step.first,
                       graph.maps.data + step.firstMap};
  if (parameters.set(instance, step.kernel, variant.words + step.first,
                     graph.isOdd ? nullptr : &recorded))
    return false;
  KernelNode changed = {instance.kernels[step.kernel].function,
                        {step.blocks, 1, 1},
                        {static_cast<unsigned>(kernel.threads), 1, 1},
                        static_cast<unsigned>(kernel.shared),
                        parameters.list(),
                        parameters.extra()};
  return !instance.driver->setKernel(variant.executable, step.node, &changed);
}

/// Whether it is known which words follow those places that are elsewhere now.
static bool canFollow(const Graph &graph, const Variant &variant) {
  for (int64_t i = 0; i < graph.numPlaces; ++i)
    if (graph.places[i] != variant.places[i] && !graph.isKnown[i])
      return false;
  return !graph.isOdd;
}

/// Moves words with their places. Whether the driver agrees.
static bool follow(mlc_context &context, const Graph &graph,
                   const Variant &variant) {
  for (int64_t i = 0; i < graph.uses.size;) {
    const Use *use = graph.uses.data + i;
    const Step &step = graph.steps.data[use->step];
    bool isChanged = false;
    for (; i < graph.uses.size && graph.uses.data[i].step == use->step; ++i) {
      const Use &other = graph.uses.data[i];
      int64_t way = graph.places[other.place] - variant.places[other.place];
      variant.words[other.word] += way;
      isChanged |= way != 0;
    }
    if (isChanged && !change(context, graph, variant, step))
      return false;
  }
  return true;
}

// --- What follows what
// -----------------------------------------------------------------------------------------

/// Inserts a use in the order of steps. Whether there was memory.
static bool addUse(Graph &graph, const Use &use) {
  if (!graph.uses.add(1))
    return false;
  int64_t at = graph.uses.size - 1;
  for (; at && graph.uses.data[at - 1].step > use.step; --at)
    graph.uses.data[at] = graph.uses.data[at - 1];
  graph.uses.data[at] = use;
  return true;
}

/// Learns which place a word follows that was `before` and is `now`.
static void learnWord(Graph &graph, int64_t step, int64_t word, int64_t before,
                      int64_t now) {
  int64_t found = -1, count = 0, moved = 0;
  for (int64_t i = 0; i < graph.numPlaces; ++i) {
    int64_t from = graph.patched->places[i], way = graph.places[i] - from;
    if (!way || now - before != way)
      continue;
    ++moved;
    bool isInside = before >= from && before - from < graph.bytes[i];
    if (i == arenaPlace(graph) || !isInside)
      continue;
    ++count;
    found = i;
  }
  graph.isOdd |= !moved;
  if (count != 1)
    graph.isAmbiguous = true;
  else if (!graph.isKnown[found] && !addUse(graph, {found, step, word}))
    graph.isAmbiguous = true;
}

/// Makes the next step of the variant that is being patched this one. Whether
/// it can.
static bool patchNext(mlc_context &context, Graph &graph, int64_t kernel,
                      unsigned blocks, const int64_t *words, int64_t numWords) {
  if (graph.numPatched == graph.steps.size)
    return false;
  int64_t number = graph.numPatched++;
  const Step &step = graph.steps.data[number];
  if (step.kernel != kernel || step.blocks != blocks ||
      step.numWords != numWords)
    return false;
  int64_t *recorded = graph.patched->words + step.first;
  size_t bytes = numWords * sizeof(int64_t);
  if (!memcmp(recorded, words, bytes))
    return true;
  for (int64_t i = 0; i < numWords; ++i)
    if (recorded[i] != words[i])
      learnWord(graph, number, step.first + i, recorded[i], words[i]);
  memcpy(recorded, words, bytes);
  return change(context, graph, *graph.patched, step);
}

int32_t patchStep(mlc_context &context, int64_t kernel, unsigned blocks,
                  const int64_t *words, int64_t numWords) {
  Context &gpu = *context.gpu;
  gpu.broken |=
      !patchNext(context, *gpu.patching, kernel, blocks, words, numWords);
  return gpu.broken;
}

/// Forgets what has been learned of places that are not known.
static void forgetUses(Graph &graph) {
  int64_t kept = 0;
  for (int64_t i = 0; i < graph.uses.size; ++i)
    if (graph.isKnown[graph.uses.data[i].place])
      graph.uses.data[kept++] = graph.uses.data[i];
  graph.uses.size = kept;
}

/// Runs the entry without launching, and changes the launches of `variant` to
/// those of this run. False: they are too different.
static bool patch(mlc_context &context, Graph &graph, Variant &variant,
                  int32_t *failed) {
  Context &gpu = *context.gpu;
  graph.patched = &variant;
  graph.numPatched = 0;
  graph.isAmbiguous = false;
  gpu.patching = &graph;
  gpu.broken = false;
  giveBackResults(context); // the entry asks for them again
  int32_t stopped = runPlainly(context);
  gpu.patching = nullptr;
  *failed = stopped && !gpu.broken;
  if (stopped || gpu.broken || graph.numPatched != graph.steps.size)
    return false;
  placeInputs(context, graph); // the arena may have moved
  if (graph.isAmbiguous)
    forgetUses(graph);
  for (int64_t i = 0; !graph.isAmbiguous && i < arenaPlace(graph); ++i)
    graph.isKnown[i] |= graph.places[i] != variant.places[i];
  return true;
}

/// Brings `variant` to the places of this run.
static bool move(mlc_context &context, Graph &graph, Variant &variant,
                 int32_t *failed) {
  if (!memcmp(variant.places, graph.places, placeBytes(graph)))
    return true;
  if (canFollow(graph, variant) ? !follow(context, graph, variant)
                                : !patch(context, graph, variant, failed))
    return false;
  memcpy(variant.places, graph.places, placeBytes(graph));
  return true;
}

Variant *chooseVariant(mlc_context &context, Graph &graph, int32_t *failed) {
  placeInputs(context, graph);
  *failed = !placeResults(context, graph);
  if (*failed)
    return nullptr;
  Variant *variant = nullptr;
  for (int i = 0; i < graph.numVariants && !variant; ++i)
    if (!memcmp(graph.variants[i].places, graph.places, placeBytes(graph)))
      variant = &graph.variants[i];
  if (variant) {
    variant->cameAgain = true;
  } else {
    Variant *least = leastWorth(graph);
    bool isAgain = comesAgain(graph);
    if (isAgain && worthOf(graph, *least))
      variant = addVariant(context, graph);
    variant = variant ? variant : least;
    if (!move(context, graph, *variant, failed))
      return nullptr;
    variant->cameAgain = isAgain;
  }
  variant->run = ++graph.numRuns;
  return variant;
}

} // namespace mlc::gpu
