// A stand-in for libcuda.so.1 on machines without a GPU. Memory of the "GPU" is
// memory of the host; kernels are not run.
//
// It checks what a driver cannot: that every address belongs to a living
// allocation, that copies and launches happen in a context, on a stream that
// exists, with aligned tensors. What happens is written to a file, a line each;
// a breach is a line that begins with "BREACH". The environment says:
//
// FAKE_CUDA_LOG=FILE: where to write.
//
// FAKE_CUDA_DEVICES=N: GPUs [1]; 0: cuInit fails as it does without one.
//
// FAKE_CUDA_VERSION=N: what cuDriverGetVersion says [13000].
//
// FAKE_CUDA_CAPABILITY=MAJOR.MINOR: of the GPUs [9.0].
//
// FAKE_CUDA_FAIL=NAME[:N[:CODE]]: call N (from 0) of function NAME fails with
// CODE [719].
//
// FAKE_CUDA_CAPTURING=1: streams are being captured by their owner.
//
// FAKE_CUDA_ERROR=N:CODE:VALUE: launch N (from 0) sets its error word.
//
// FAKE_CUDA_WORDS=1: the words of launches and copies are written, too, as
// BLOCK+OFFSET where they are addresses.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
typedef unsigned long long Address;

enum {
  MAX = 4096,
  OK = 0,
  INVALID_VALUE = 1,
  NO_DEVICE = 100,
  NO_BINARY = 209
};

static struct {
  char *begin;
  size_t bytes;
  int host;
} blocks[MAX];
static struct {
  const char *name;
  int calls;
} functions[64];
static int launches, modules, streams, events, graphs, contexts, depth;
static char kernels[MAX][64];
static int numKernels;

static void say(const char *format, const char *text, long long a, long long b,
                long long c) {
  const char *path = getenv("FAKE_CUDA_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file)
    return;
  fprintf(file, format, text, a, b, c);
  fputc('\n', file);
  fclose(file);
}

static long long setting(const char *name, long long otherwise) {
  const char *text = getenv(name);
  return text && *text ? atoll(text) : otherwise;
}

/* Whether this call of `name` is to fail, and how. */
static Result failure(const char *name) {
  int i = 0;
  while (functions[i].name && strcmp(functions[i].name, name))
    ++i;
  functions[i].name = name;
  int call = functions[i].calls++;
  const char *wanted = getenv("FAKE_CUDA_FAIL");
  size_t length = strlen(name);
  if (!wanted || strncmp(wanted, name, length) ||
      (wanted[length] && wanted[length] != ':'))
    return OK;
  int number = 0, code = 719;
  if (wanted[length])
    sscanf(wanted + length + 1, "%d:%d", &number, &code);
  return call == number ? code : OK;
}

#define ENTER(name)                                                            \
  do {                                                                         \
    Result failed = failure(name);                                             \
    if (failed)                                                                \
      return failed;                                                           \
  } while (0)

static void inContext(const char *name) {
  if (!depth)
    say("BREACH %s without a context", name, 0, 0, 0);
}

/* The number of the allocation that holds [address, address + bytes); -1 and a
 * breach when there is none. */
static int holder(const char *name, const void *address, size_t bytes) {
  const char *begin = address;
  for (int i = 0; i < MAX; ++i)
    if (blocks[i].begin && begin >= blocks[i].begin &&
        begin + bytes <= blocks[i].begin + blocks[i].bytes)
      return i;
  say("BREACH %s touches %lld bytes outside of every allocation", name,
      (long long)bytes, 0, 0);
  return -1;
}

static void *reserve(size_t bytes, int host) {
  for (int i = 0; i < MAX; ++i)
    if (!blocks[i].begin) {
      if (posix_memalign((void **)&blocks[i].begin, 512, bytes ? bytes : 1))
        return NULL;
      memset(blocks[i].begin, 0xCD, bytes);
      blocks[i].bytes = bytes;
      blocks[i].host = host;
      return blocks[i].begin;
    }
  return NULL;
}

static Result give_back(const char *name, void *memory, int host) {
  for (int i = 0; i < MAX; ++i)
    if (blocks[i].begin && blocks[i].begin == memory &&
        blocks[i].host == host) {
      free(blocks[i].begin);
      blocks[i].begin = NULL;
      return OK;
    }
  say("BREACH %s of what was not allocated", name, 0, 0, 0);
  return INVALID_VALUE;
}

Result cuInit(unsigned flags) {
  ENTER("cuInit");
  (void)flags;
  return setting("FAKE_CUDA_DEVICES", 1) ? OK : NO_DEVICE;
}

Result cuDriverGetVersion(int *version) {
  *version = (int)setting("FAKE_CUDA_VERSION", 13000);
  return OK;
}

Result cuGetErrorName(Result code, const char **name) {
  static const struct {
    Result code;
    const char *name;
  } known[] = {{1, "CUDA_ERROR_INVALID_VALUE"},
               {2, "CUDA_ERROR_OUT_OF_MEMORY"},
               {100, "CUDA_ERROR_NO_DEVICE"},
               {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
               {719, "CUDA_ERROR_LAUNCH_FAILED"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (known[i].code == code) {
      *name = known[i].name;
      return OK;
    }
  *name = NULL;
  return INVALID_VALUE;
}

Result cuGetErrorString(Result code, const char **text) {
  *text = code == NO_DEVICE ? "no CUDA-capable device is detected"
                            : "as was wished";
  return OK;
}

Result cuDeviceGetCount(int *count) {
  *count = (int)setting("FAKE_CUDA_DEVICES", 1);
  return OK;
}

Result cuDeviceGet(int *device, int number) {
  *device = number;
  return OK;
}

Result cuDeviceGetName(char *name, int capacity, int device) {
  snprintf(name, capacity, "Fake GPU %d", device);
  return OK;
}

Result cuDeviceGetAttribute(int *value, int attribute, int device) {
  int major = 9, minor = 0;
  (void)device;
  if (getenv("FAKE_CUDA_CAPABILITY"))
    sscanf(getenv("FAKE_CUDA_CAPABILITY"), "%d.%d", &major, &minor);
  *value = attribute == 75 ? major : attribute == 76 ? minor : 0;
  return OK;
}

Result cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER("cuDevicePrimaryCtxRetain");
  *context = &contexts;
  ++contexts;
  (void)device;
  return OK;
}

Result cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  if (--contexts)
    return OK;
  int left = 0;
  for (int i = 0; i < MAX; ++i)
    left += blocks[i].begin != NULL;
  say("%s%lld blocks, %lld modules, %lld streams, events and graphs left", "",
      left, modules, streams + events + graphs);
  return OK;
}

Result cuCtxPushCurrent_v2(void *context) {
  ++depth;
  return context ? OK : INVALID_VALUE;
}

Result cuCtxPopCurrent_v2(void **context) {
  *context = &contexts;
  --depth;
  return OK;
}

/* Images are ELF files or PTX; a kernel is known by the name that is asked for.
 */
Result cuModuleLoadDataEx(void **module, const void *image, unsigned count,
                          int *names, void **values) {
  ENTER("cuModuleLoadDataEx");
  inContext("cuModuleLoadDataEx");
  (void)count, (void)names, (void)values;
  int elf = !memcmp(image, "\177ELF", 4);
  say("load %s",
      elf                                ? "cubin"
      : strstr(image, ".visible .entry") ? "ptx"
                                         : "BREACH",
      0, 0, 0);
  ++modules;
  *module = (void *)image;
  return OK;
}

Result cuModuleUnload(void *module) {
  (void)module;
  --modules;
  return OK;
}

Result cuModuleGetFunction(void **function, void *module, const char *name) {
  ENTER("cuModuleGetFunction");
  (void)module;
  snprintf(kernels[numKernels], sizeof *kernels, "%s", name);
  *function = kernels[numKernels++];
  return OK;
}

static int sharedBytes[MAX]; /* that kernels have asked for */

Result cuFuncSetAttribute(void *function, int attribute, int value) {
  ENTER("cuFuncSetAttribute");
  inContext("cuFuncSetAttribute");
  if (attribute != 8 || value < 0 || value > 227 * 1024)
    return INVALID_VALUE;
  sharedBytes[((char *)function - kernels[0]) / sizeof *kernels] = value;
  say("shared %s %lld", function, value, 0, 0);
  return OK;
}

#include "fake_maps.h"

Result cuMemAlloc_v2(Address *memory, size_t bytes) {
  ENTER("cuMemAlloc_v2");
  inContext("cuMemAlloc_v2");
  if (!bytes)
    return INVALID_VALUE;
  *memory = (Address)reserve(bytes, 0);
  say("alloc%s %lld", "", (long long)bytes, 0, 0);
  return *memory ? OK : 2;
}

Result cuMemFree_v2(Address memory) {
  inContext("cuMemFree_v2");
  return give_back("cuMemFree_v2", (void *)memory, 0);
}

Result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  ENTER("cuMemHostAlloc");
  (void)flags;
  *memory = reserve(bytes, 1);
  return *memory ? OK : 2;
}

Result cuMemFreeHost(void *memory) {
  return give_back("cuMemFreeHost", memory, 1);
}

Result cuMemHostGetDevicePointer_v2(Address *address, void *memory,
                                    unsigned flags) {
  (void)flags;
  *address = (Address)memory;
  return OK;
}

Result cuMemcpyHtoD_v2(Address target, const void *source, size_t bytes) {
  ENTER("cuMemcpyHtoD_v2");
  inContext("cuMemcpyHtoD_v2");
  if (holder("cuMemcpyHtoD_v2", (void *)target, bytes) >= 0)
    memcpy((void *)target, source, bytes);
  say("upload%s %lld", "", (long long)bytes, 0, 0);
  return OK;
}

static int isRecorded(const void *stream);

static void onStream(const char *name, void *stream) {
  inContext(name);
  if (!stream)
    say("BREACH %s on the default stream", name, 0, 0, 0);
}

Result cuMemcpyHtoDAsync_v2(Address target, const void *source, size_t bytes,
                            void *stream) {
  ENTER("cuMemcpyHtoDAsync_v2");
  onStream("cuMemcpyHtoDAsync_v2", stream);
  if (holder("cuMemcpyHtoDAsync_v2", (void *)target, bytes) >= 0)
    memcpy((void *)target, source, bytes);
  say("to device%s %lld", "", (long long)bytes, 0, 0);
  return OK;
}

Result cuMemcpyDtoHAsync_v2(void *target, Address source, size_t bytes,
                            void *stream) {
  ENTER("cuMemcpyDtoHAsync_v2");
  onStream("cuMemcpyDtoHAsync_v2", stream);
  if (holder("cuMemcpyDtoHAsync_v2", (void *)source, bytes) >= 0)
    memcpy(target, (void *)source, bytes);
  say("to host%s %lld", "", (long long)bytes, 0, 0);
  return OK;
}

Result cuStreamCreate(void **stream, unsigned flags) {
  ENTER("cuStreamCreate");
  (void)flags;
  static char identities[MAX];
  *stream = &identities[++streams];
  return OK;
}

Result cuStreamDestroy_v2(void *stream) {
  (void)stream;
  --streams;
  return OK;
}

Result cuStreamSynchronize(void *stream) {
  onStream("cuStreamSynchronize", stream);
  if (isRecorded(stream))
    say("BREACH %s of a stream that is recorded", "cuStreamSynchronize", 0, 0,
        0);
  say("wait%s", "", 0, 0, 0);
  ENTER("cuStreamSynchronize");
  return OK;
}

/* The words of a launch but for the last one when that is the workspace, which
 * must have counters of 0. */
static size_t withoutWorkspace(const char *kernel, const int64_t *words,
                               size_t count) {
  const char *workspace = (const char *)words[count - 1];
  int isThere = 0; // a number of items is no address where a block begins
  for (int i = 0; i < MAX; ++i)
    isThere |= workspace && blocks[i].begin == workspace;
  if (!isThere || holder(kernel, workspace, 4096) < 0)
    return count;
  for (int i = 0; i < 4096; ++i)
    if (workspace[i])
      say("BREACH %s: counter %lld is not 0", kernel, (long long)i / 4, 0, 0);
  say("workspace of %s", kernel, 0, 0, 0);
  return count - 1;
}

/* The words of a launch: addresses, sizes, the error word, the items. Tensors
 * must be aligned and alive. */
static void checkWords(const char *kernel, const int64_t *words, size_t count) {
  if (holder(kernel, (void *)words[count - 2], 16) < 0)
    say("BREACH %s: the error word is not there", kernel, 0, 0, 0);
  for (size_t i = 0; i + 2 < count && words[i] > (1ll << 32); ++i) {
    if (words[i] % 16)
      say("BREACH %s: word %lld is a misaligned address", kernel, (long long)i,
          0, 0);
    holder(kernel, (void *)words[i], 1);
  }
}

/* Writes the words of a launch or a copy that takes place. */
static void sayWords(const char *name, const int64_t *words, size_t count) {
  char text[1024];
  size_t used = 0;
  text[0] = 0;
  for (size_t i = 0; i < count && used + 64 < sizeof text; ++i) {
    const char *address = (const char *)words[i];
    int block = 0;
    while (block < MAX &&
           !(blocks[block].begin && address >= blocks[block].begin &&
             address < blocks[block].begin + blocks[block].bytes))
      ++block;
    used += block < MAX
                ? snprintf(text + used, 64, " %d+%lld", block,
                           (long long)(address - blocks[block].begin))
                : snprintf(text + used, 64, " %lld", (long long)words[i]);
  }
  if (!setting("FAKE_CUDA_WORDS", 0))
    return;
  say("words of %s", name, 0, 0, 0);
  say("are%s", text, 0, 0, 0);
}

#include "fake_graphs.h"

Result cuMemcpyDtoDAsync_v2(Address target, Address source, size_t bytes,
                            void *stream) {
  ENTER("cuMemcpyDtoDAsync_v2");
  onStream("cuMemcpyDtoDAsync_v2", stream);
  int64_t words[] = {(int64_t)target, (int64_t)source};
  int isAlive = holder("cuMemcpyDtoDAsync_v2", (void *)source, bytes) >= 0 &&
                holder("cuMemcpyDtoDAsync_v2", (void *)target, bytes) >= 0;
  if (isRecorded(stream))
    record(kCopyName, words, 2);
  else if (isAlive)
    memcpy((void *)target, (void *)source, bytes);
  if (!isRecorded(stream))
    sayWords(kCopyName, words, 2);
  say("on device%s %lld", "", (long long)bytes, 0, 0);
  return OK;
}

Result cuLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned shared, void *stream,
                      void **arguments, void **extra);

typedef struct {
  int id;
  char padding[4];
  int value;
  char rest[60];
} LaunchAttribute;

typedef struct {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, shared;
  void *stream;
  LaunchAttribute *attributes;
  unsigned count;
} LaunchConfig;

Result cuLaunchKernelEx(const LaunchConfig *config, void *function,
                        void **arguments, void **extra) {
  ENTER("cuLaunchKernelEx");
  if (config->count != 1 || config->attributes->id != 6 ||
      config->attributes->value != 1)
    say("BREACH %s: strange attributes", function, 0, 0, 0);
  return cuLaunchKernel(function, config->gridX, config->gridY, config->gridZ,
                        config->blockX, config->blockY, config->blockZ,
                        config->shared, config->stream, arguments, extra);
}

Result cuLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned shared, void *stream,
                      void **arguments, void **extra) {
  ENTER("cuLaunchKernel");
  onStream("cuLaunchKernel", stream);
  int64_t gathered[MAX];
  int64_t *words = extra ? extra[1] : gathered;
  size_t count = extra ? *(size_t *)extra[3] / sizeof(int64_t)
                       : gatherWords(function, arguments, gathered);
  say("launch %s %lld x %lld, %lld words", function, gridX, blockX,
      (long long)count);
  int number = (int)(((char *)function - kernels[0]) / sizeof *kernels);
  if (!arguments == !extra || gridY != 1 || gridZ != 1 || blockY != 1 ||
      blockZ != 1 || (int)shared != sharedBytes[number] || !gridX || !blockX)
    say("BREACH %s: a strange launch", function, 0, 0, 0);
  size_t known = withoutWorkspace(function, words, count);
  checkWords(function, words, known);
  if (isRecorded(stream)) {
    record(function, words, count);
    return OK;
  }
  sayWords(function, words, count);
  int code, value;
  const char *wanted = getenv("FAKE_CUDA_ERROR");
  if (wanted && sscanf(wanted, "%d:%d:%d", &number, &code, &value) == 3 &&
      number == launches) {
    ((int64_t *)words[known - 2])[0] = code;
    ((int64_t *)words[known - 2])[1] = value;
  }
  ++launches;
  return OK;
}

Result cuEventCreate(void **event, unsigned flags) {
  (void)flags;
  ++events;
  *event = &events;
  return OK;
}

Result cuEventDestroy_v2(void *event) {
  (void)event;
  --events;
  return OK;
}

Result cuEventRecord(void *event, void *stream) {
  (void)event, (void)stream;
  return OK;
}

Result cuEventSynchronize(void *event) {
  (void)event;
  return OK;
}

Result cuEventElapsedTime(float *milliseconds, void *begin, void *end) {
  (void)begin, (void)end;
  *milliseconds = 0.5F;
  return OK;
}
