// The GPU side of instances and contexts, in the runtime of artefacts for
// NVIDIA GPUs (libmlc_rt_cuda.a; MLC_RT_CUDA is defined for all of its
// sources).
#ifndef MLC_RUNTIME_CUDA_H
#define MLC_RUNTIME_CUDA_H

#include "context.h"

#include <pthread.h>

namespace mlc::gpu {

// The driver's handles and addresses (cuda.h of the toolkit, which is not
// needed to build).
using Address = unsigned long long;
using Handle = void *;

/// CUDA_KERNEL_NODE_PARAMS_v1: a launch in a graph.
struct KernelNode {
  Handle function;
  unsigned grid[3], block[3], sharedBytes;
  void **parameters, **extra;
};

/// CUDA_MEMCPY3D_v2: a copy in a graph.
struct CopyNode {
  struct Side {
    size_t x, y, z, level;
    int kind;
    const void *host;
    Address device;
    Handle array, reserved;
    size_t pitch, height;
  } from, to;
  size_t width, height, depth;
};

/// CUlaunchAttribute.
struct alignas(8) LaunchAttribute {
  int id;
  char padding[4];
  int value;
  char rest[60];
};

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  Handle stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};

/// Functions of libcuda.so.1, which is opened when the first instance is made.
/// All return 0 or a CUresult.
struct Driver {
  int (*init)(unsigned flags);
  int (*driverVersion)(int *version);
  int (*errorName)(int code, const char **name);
  int (*errorString)(int code, const char **text);
  int (*deviceCount)(int *count);
  int (*deviceGet)(int *device, int number);
  int (*deviceName)(char *name, int capacity, int device);
  int (*deviceAttribute)(int *value, int attribute, int device);
  int (*retain)(Handle *context, int device);
  int (*release)(int device);
  int (*push)(Handle context);
  int (*pop)(Handle *context);
  int (*loadModule)(Handle *module, const void *image, unsigned options,
                    int *names, void **values);
  int (*unloadModule)(Handle module);
  int (*getFunction)(Handle *function, Handle module, const char *name);
  int (*setAttribute)(Handle function, int attribute, int value);
  int (*encodeMap)(void *map, int type, uint32_t rank, void *address,
                   const uint64_t *extents, const uint64_t *strides,
                   const uint32_t *box, const uint32_t *steps, int interleave,
                   int swizzle, int l2Promotion, int outside);
  int (*encodeWindows)(void *map, int type, uint32_t rank, void *address,
                       const uint64_t *extents, const uint64_t *strides,
                       const int *low, const int *high, uint32_t channels,
                       uint32_t pixels, const uint32_t *steps, int interleave,
                       int swizzle, int l2Promotion, int outside);
  int (*allocate)(Address *memory, size_t bytes);
  int (*free)(Address memory);
  int (*allocateHost)(void **memory, size_t bytes, unsigned flags);
  int (*freeHost)(void *memory);
  int (*hostAddress)(Address *address, void *memory, unsigned flags);
  int (*upload)(Address target, const void *source, size_t bytes);
  int (*uploadAsync)(Address target, const void *source, size_t bytes,
                     Handle stream);
  int (*downloadAsync)(void *target, Address source, size_t bytes,
                       Handle stream);
  int (*copyAsync)(Address target, Address source, size_t bytes, Handle stream);
  int (*createStream)(Handle *stream, unsigned flags);
  int (*destroyStream)(Handle stream);
  int (*synchronize)(Handle stream);
  int (*launch)(Handle function, unsigned gridX, unsigned gridY, unsigned gridZ,
                unsigned blockX, unsigned blockY, unsigned blockZ,
                unsigned sharedBytes, Handle stream, void **arguments,
                void **extra);
  int (*launchEx)(const LaunchConfig *config, Handle function, void **arguments,
                  void **extra); // nullptr: the driver is too old
  int (*createEvent)(Handle *event, unsigned flags);
  int (*destroyEvent)(Handle event);
  int (*record)(Handle event, Handle stream);
  int (*waitEvent)(Handle event);
  int (*elapsed)(float *milliseconds, Handle begin, Handle end);
  int (*isCapturing)(Handle stream, int *status);
  int (*captureInfo)(Handle stream, int *status, uint64_t *id, Handle *graph,
                     const Handle **last, size_t *numLast);
  int (*beginCapture)(Handle stream, int mode);
  int (*endCapture)(Handle stream, Handle *graph);
  int (*instantiate)(Handle *executable, Handle graph,
                     unsigned long long flags);
  int (*launchGraph)(Handle executable, Handle stream);
  int (*setKernel)(Handle executable, Handle node, const KernelNode *kernel);
  int (*setCopy)(Handle executable, Handle node, const CopyNode *copy,
                 Handle context);
  int (*destroyExecutable)(Handle executable);
  int (*destroyGraph)(Handle graph);
};

// CUresults that mean something here.
enum : int {
  kOutOfMemory = 2,
  kInvalidImage = 200,
  kNoBinary = 209,
  kUnsupportedPtx = 222
};

/// Whether the driver takes code that needs version `needed`.
int32_t checkVersion(int needed, mlc_status *status);
/// The driver; nullptr when it cannot be used (`status` says why).
const Driver *openDriver(mlc_status *status);
/// "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
void describe(const Driver &driver, Text &text, const char *call, int code);
/// The status code for a CUresult.
int32_t statusOf(int code);

/// A constant of the host that has been uploaded. One of no bytes lies where
/// the next one does.
struct Constant {
  const void *host;
  int64_t bytes;
  Address device;
};

struct Kernel {
  Handle module = nullptr, function = nullptr;
};

/// What an instance has on its GPU.
struct Instance {
  const Driver *driver = nullptr;
  const mlc_rt_gpu *code = nullptr; // the kernels of one architecture,
  int64_t architecture = 0;         // which is the program's this one
  bool overlaps = false;            // may launches begin before the last ends?
  int number = 0, device = 0;
  Handle context = nullptr; // the primary one: shared with other libraries
  Kernel *kernels = nullptr;
  Address weights = 0;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  Constant *constants = nullptr;
  int64_t numConstants = 0, capacity = 0;
};

/// Memory of the GPU until the end of a run.
struct Block {
  Block *next;
  Address data;
  size_t bytes;
  bool used;          // by the current run
  int idle;           // runs since then
  const void *source; // what it is a copy of, on the host
};

/// Since the host has last waited for the GPU.
struct Launch {
  int64_t kernel, node;
};

struct Graph;

constexpr int64_t kLaunches = 1024; // before the host waits and looks at errors
constexpr uint64_t kAddressUnit = 16; // docs/ir.md, section 8

/// What a context has on its instance's GPU.
struct Context {
  Handle own = nullptr, stream = nullptr;
  bool captured = false; // by the caller: nothing happens now
  Address arena = 0;
  size_t arenaBytes = 0;
  bool arenaTaken = false;
  Address workspace = 0; // of one launch at a time
  Block *blocks = nullptr;
  // An error word for each launch, in memory of the host that kernels write to.
  int64_t *errors = nullptr;
  Address errorsAddress = 0;
  Launch launches[kLaunches];
  int64_t numLaunches = 0;
  Handle begin = nullptr, end = nullptr; // events, for the profile
  // Graphs, the one used last first.
  Graph *graphs = nullptr;
  Graph *recording = nullptr; // what is launched goes there
  Graph *patching = nullptr;  // what would be launched is compared with it
  bool broken = false;        // the run cannot be recorded, or is another one
  Handle recorder = nullptr;  // a stream
};

/// Makes the GPU's context current while it lives.
class Scope {
public:
  explicit Scope(const Instance &instance) : driver(*instance.driver) {
    driver.push(instance.context);
  }
  ~Scope() {
    Handle popped;
    driver.pop(&popped);
  }

private:
  const Driver &driver;
};

// --- cuda_instance.cpp ---
int32_t openInstance(mlc_instance &instance, int32_t device,
                     mlc_status *status);
void closeInstance(mlc_instance &instance);

// --- cuda_context.cpp ---
int32_t openContext(mlc_context &context, mlc_status *status);
void closeContext(mlc_context &context);
void beginRun(mlc_context &context, void *stream);
/// For what needs the host in the midst of a run: records that it cannot be
/// done while the caller captures its stream. Nonzero: so it is.
int32_t refuseCapture(mlc_context &context, const char *what);
/// Copies results to where the caller wants them, waits for the GPU and
/// collects its errors.
void finishRun(mlc_context &context, bool failed);
/// Waits for the GPU. Nonzero: something has failed (recorded, or in the error
/// word).
int32_t wait(mlc_context &context);
/// Records a failure of the driver; returns 1.
int32_t failCall(mlc_context &context, const char *call, int code);

/// Whether MLC_CUDA_SYNC is set.
bool waitsForLaunches();

constexpr int64_t kMaps = 8; // of a launch
constexpr size_t kMapBytes = 128, kMapAlignment = 64;
constexpr int64_t kParameters = 512; // of 4096 bytes, words at least

/// A tensor map, wherever it lies: the driver gets aligned copies.
struct MapBytes {
  char bytes[kMapBytes];
};

/// Words of a launch: its arguments, the error word, its items, its workspace.
inline int64_t wordsOf(const mlc_rt_gpu_kernel &kernel) {
  return kernel.arguments + 2 + (kernel.workspace != 0);
}

/// A launch that has been before, and its tensor maps.
struct Recorded {
  const int64_t *words;
  const MapBytes *maps;
};

/// What the driver is given with a launch: its words in one buffer, or, where
/// there are tensor maps behind them, each parameter alone (where the driver
/// puts maps depends on the chip).
class Parameters {
public:
  /// For a launch of kernel `id` with `words`, which has been before but for
  /// addresses if there is one `recorded`. Not 0: the driver's refusal.
  int set(const Instance &instance, int64_t id, int64_t *words,
          const Recorded *recorded);
  /// Its tensor maps.
  const MapBytes *mapBytes() const { return maps; }
  void **list() { return hasMaps ? parameters : nullptr; }
  void **extra() { return hasMaps ? nullptr : buffer; }

private:
  bool hasMaps;
  size_t bytes;
  void *buffer[5];
  void *parameters[kParameters];
  alignas(kMapAlignment) MapBytes maps[kMaps];
};

// --- cuda_maps.cpp ---
/// Writes tensor map `map` of a launch with arguments `words`. Not 0: the
/// driver's refusal.
int encodeMap(const Driver &driver, const mlc_rt_gpu_map &map,
              const int64_t *words, void *target);

// --- cuda_graphs.cpp, cuda_variants.cpp ---
/// Runs the entry, as a graph when it has run with the same shapes before.
/// Nonzero: it has given up.
int32_t execute(mlc_context &context, const mlc_value *inputs);
/// What a graph cannot do: the run that is being recorded is given up and begun
/// again without. Whether it is so.
bool breakRecording(mlc_context &context);
/// Notes a launch that has just been recorded, or a copy (no maps).
void recordStep(mlc_context &context, int64_t kernel, unsigned blocks,
                const int64_t *words, int64_t numWords, const MapBytes *maps);
/// Makes the next launch of the graph that is being patched this one. Nonzero:
/// the graph is of another run.
int32_t patchStep(mlc_context &context, int64_t kernel, unsigned blocks,
                  const int64_t *words, int64_t numWords);
constexpr int64_t kCopy = -1; // the kernel of steps that copy
/// Notes where a result of the run that is being recorded or patched lies.
void recordResult(mlc_context &context, int64_t index, int64_t rank,
                  const int64_t *dims, const void *memory);
void freeGraphs(mlc_context &context);

// --- cuda_memory.cpp ---
/// Memory of the GPU until the end of the run; 0 when there is none (recorded).
Address takeBlock(mlc_context &context, int64_t bytes);
/// Ends the use of blocks that results of this run were given.
void giveBackResults(mlc_context &context);
void recycleBlocks(mlc_context &context);
void freeBlocks(mlc_context &context);
/// A tensor of the host in the GPU's memory; 0: failed (recorded).
Address stage(mlc_context &context, const void *data, int64_t bytes);
/// A tensor of the GPU as kernels want it: contiguous and aligned, a copy if
/// need be; 0: failed (recorded).
Address adopt(mlc_context &context, const mlc_tensor &tensor, int64_t bytes);
/// A tensor of the GPU in the host's memory; nullptr: failed (recorded).
const char *fetch(mlc_context &context, const mlc_tensor &tensor,
                  int64_t bytes);
bool isDevice(const mlc_tensor &tensor);
/// An empty tensor in the GPU's memory that owns it.
bool allocateTensor(mlc_context &context, int32_t dtype, int64_t rank,
                    const int64_t *dims, mlc_value &target);

} // namespace mlc::gpu

#endif
