// What a context knows of a run that it has recorded.
#ifndef MLC_RUNTIME_CUDA_GRAPHS_H
#define MLC_RUNTIME_CUDA_GRAPHS_H

#include "cuda.h"

#include <stdlib.h>

namespace mlc::gpu {

constexpr int kVariants = 4; // of a graph
constexpr int kRecent = 16;  // sets of tensors that a graph remembers

/// A result of the recorded run.
struct Result {
  int64_t rank = -1; // -1: not asked for
  int64_t *dims = nullptr;
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
  int64_t firstMap;        // of the graph's maps
};

/// A word of a step that is an address inside of the tensor of a place.
struct Use {
  int64_t place, step, word; // the word among all of the graph's
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

/// A graph in the hands of the driver, for tensors in certain places.
struct Variant {
  Handle executable = nullptr;
  int64_t *places = nullptr;
  int64_t *words = nullptr; // of all steps
  int64_t run = 0;          // the number of the last one
  bool cameAgain = false;   // those places have
};

/// A run by its key: the shapes of the entry's arguments, and the contents of
/// what the host reads.
struct Graph {
  Graph *next = nullptr;
  const mlc_rt_entry *entry = nullptr;
  int64_t *key = nullptr;
  int64_t keyWords = 0;
  State state = State::Seen;
  Handle captured = nullptr; // what the variants are made of
  Launch *launches = nullptr;
  int64_t numLaunches = 0;
  Result *results = nullptr; // one for each output
  // As recorded.
  List<Step> steps;
  List<int64_t> words;
  List<MapBytes> maps;
  // Where inputs, outputs and, last, the arena are; 0 for what launches do not
  // touch.
  int64_t numPlaces = 0;
  bool usesArena = false;
  int64_t *recorded = nullptr; // as recorded
  int64_t *places = nullptr;   // of the run at hand
  int64_t *bytes = nullptr;    // of inputs and outputs
  // The words that follow inputs and outputs, by step; of those that have been
  // elsewhere by now.
  List<Use> uses;
  bool *isKnown = nullptr; // by place
  bool isOdd = false;      // words change that follow no place
  Variant variants[kVariants];
  int numVariants = 0, mostVariants = kVariants;
  int64_t numRuns = 0;
  uint64_t recent[kRecent] = {}; // hashes of places, round and round
  int64_t numRecent = 0;
  // The run at hand, whose launches are compared with those of a variant.
  Variant *patched = nullptr;
  int64_t numPatched = 0;   // steps that it has come by
  bool isAmbiguous = false; // what words follow cannot be told from it
};

// --- cuda_variants.cpp ---
/// Makes the places, as recorded and at hand, of a graph that has been
/// captured, and its first variant. Whether that could be done.
bool openVariants(mlc_context &context, Graph &graph, const mlc_value *inputs);
void closeVariants(mlc_context &context, Graph &graph);
/// Notes where a result of the run at hand lies.
void placeResult(Graph &graph, int64_t index, const void *memory);
/// The variant for this run, whose results are placed; it is changed if need
/// be. nullptr when that is impossible: nothing has been launched, and *failed
/// says whether the run itself has failed.
Variant *chooseVariant(mlc_context &context, Graph &graph, int32_t *failed);

// --- cuda_graphs.cpp ---
int32_t runPlainly(mlc_context &context);
/// Bytes of a tensor input.
bool inputBytes(const mlc_rt_value_desc &desc, const mlc_value &value,
                int64_t *bytes);

} // namespace mlc::gpu

#endif
