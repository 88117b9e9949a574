// NVIDIA's driver: found at run time, so that artefacts load on machines that
// have none.
#include "cuda.h"

#include <dlfcn.h>
#include <stdio.h>

namespace mlc::gpu {

namespace {
struct Symbol {
  const char *name;
  size_t offset; // of its pointer in Driver
};
} // namespace

static const Symbol kSymbols[] = {
    {"cuInit", offsetof(Driver, init)},
    {"cuDriverGetVersion", offsetof(Driver, driverVersion)},
    {"cuGetErrorName", offsetof(Driver, errorName)},
    {"cuGetErrorString", offsetof(Driver, errorString)},
    {"cuDeviceGetCount", offsetof(Driver, deviceCount)},
    {"cuDeviceGet", offsetof(Driver, deviceGet)},
    {"cuDeviceGetName", offsetof(Driver, deviceName)},
    {"cuDeviceGetAttribute", offsetof(Driver, deviceAttribute)},
    {"cuDevicePrimaryCtxRetain", offsetof(Driver, retain)},
    {"cuDevicePrimaryCtxRelease_v2", offsetof(Driver, release)},
    {"cuCtxPushCurrent_v2", offsetof(Driver, push)},
    {"cuCtxPopCurrent_v2", offsetof(Driver, pop)},
    {"cuModuleLoadDataEx", offsetof(Driver, loadModule)},
    {"cuModuleUnload", offsetof(Driver, unloadModule)},
    {"cuModuleGetFunction", offsetof(Driver, getFunction)},
    {"cuFuncSetAttribute", offsetof(Driver, setAttribute)},
    {"cuTensorMapEncodeTiled", offsetof(Driver, encodeMap)},
    {"cuTensorMapEncodeIm2col", offsetof(Driver, encodeWindows)},
    {"cuMemAlloc_v2", offsetof(Driver, allocate)},
    {"cuMemFree_v2", offsetof(Driver, free)},
    {"cuMemHostAlloc", offsetof(Driver, allocateHost)},
    {"cuMemFreeHost", offsetof(Driver, freeHost)},
    {"cuMemHostGetDevicePointer_v2", offsetof(Driver, hostAddress)},
    {"cuMemcpyHtoD_v2", offsetof(Driver, upload)},
    {"cuMemcpyHtoDAsync_v2", offsetof(Driver, uploadAsync)},
    {"cuMemcpyDtoHAsync_v2", offsetof(Driver, downloadAsync)},
    {"cuMemcpyDtoDAsync_v2", offsetof(Driver, copyAsync)},
    {"cuStreamCreate", offsetof(Driver, createStream)},
    {"cuStreamDestroy_v2", offsetof(Driver, destroyStream)},
    {"cuStreamSynchronize", offsetof(Driver, synchronize)},
    {"cuLaunchKernel", offsetof(Driver, launch)},
    {"cuEventCreate", offsetof(Driver, createEvent)},
    {"cuEventDestroy_v2", offsetof(Driver, destroyEvent)},
    {"cuEventRecord", offsetof(Driver, record)},
    {"cuEventSynchronize", offsetof(Driver, waitEvent)},
    {"cuEventElapsedTime", offsetof(Driver, elapsed)},
    {"cuStreamIsCapturing", offsetof(Driver, isCapturing)},
    {"cuStreamGetCaptureInfo_v2", offsetof(Driver, captureInfo)},
    {"cuStreamBeginCapture_v2", offsetof(Driver, beginCapture)},
    {"cuStreamEndCapture", offsetof(Driver, endCapture)},
    {"cuGraphInstantiateWithFlags", offsetof(Driver, instantiate)},
    {"cuGraphLaunch", offsetof(Driver, launchGraph)},
    {"cuGraphExecKernelNodeSetParams", offsetof(Driver, setKernel)},
    {"cuGraphExecMemcpyNodeSetParams", offsetof(Driver, setCopy)},
    {"cuGraphExecDestroy", offsetof(Driver, destroyExecutable)},
    {"cuGraphDestroy", offsetof(Driver, destroyGraph)},
};

// The first driver that captures launches that begin before the one in front
// of them is done.
static constexpr int kEarlyLaunches = 12030;

// What drivers may lack.
static const Symbol kOptional[] = {
    {"cuLaunchKernelEx", offsetof(Driver, launchEx)},
};

static Driver driver;
static bool complete;
static char problem[512];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/// Fills in the table; `problem` says why it could not.
static void load() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(problem, sizeof problem,
             "this model runs on an NVIDIA GPU, but there is no NVIDIA driver: "
             "%s",
             dlerror());
    return;
  }
  for (const Symbol &symbol : kOptional) {
    void *function = dlsym(library, symbol.name);
    memcpy(reinterpret_cast<char *>(&driver) + symbol.offset, &function,
           sizeof function);
  }
  for (const Symbol &symbol : kSymbols) {
    void *function = dlsym(library, symbol.name);
    if (!function) {
      snprintf(problem, sizeof problem,
               "the NVIDIA driver is too old: it has no %s; update it",
               symbol.name);
      return;
    }
    memcpy(reinterpret_cast<char *>(&driver) + symbol.offset, &function,
           sizeof function);
  }
  int version = 0;
  driver.driverVersion(&version);
  if (version < kEarlyLaunches)
    driver.launchEx = nullptr;
  complete = true;
}

void describe(const Driver &table, Text &text, const char *call, int code) {
  const char *name = nullptr, *meaning = nullptr;
  table.errorName(code, &name);
  table.errorString(code, &meaning);
  text.add("%s: %s", call, name ? name : "CUDA error");
  if (!name)
    text.add(" %d", code);
  if (meaning)
    text.add(" (%s)", meaning);
}

int32_t statusOf(int code) {
  return code == kOutOfMemory ? MLC_ERROR_OUT_OF_MEMORY : MLC_ERROR_DEVICE;
}

int32_t checkVersion(int needed, mlc_status *status) {
  int version = 0;
  driver.driverVersion(&version);
  if (version >= needed)
    return MLC_OK;
  return setStatus(status, MLC_ERROR_DEVICE,
                   "the NVIDIA driver is too old: it speaks CUDA %d.%d, this "
                   "model needs %d.%d; update the driver",
                   version / 1000, version % 1000 / 10, needed / 1000,
                   needed % 1000 / 10);
}

const Driver *openDriver(mlc_status *status) {
  pthread_once(&once, load);
  if (!complete) {
    setStatus(status, MLC_ERROR_DEVICE, "%s", problem);
    return nullptr;
  }
  int needed = mlc_program.gpu->driver; // the lowest for any of the code
  for (const mlc_rt_gpu *gpu = mlc_program.gpu; gpu; gpu = gpu->next)
    needed = gpu->driver < needed ? gpu->driver : needed;
  if (checkVersion(needed, status))
    return nullptr;
  if (int code = driver.init(0)) {
    char reason[256];
    Text text(reason, sizeof reason);
    describe(driver, text, "cuInit", code);
    setStatus(status, MLC_ERROR_DEVICE,
              "this model runs on an NVIDIA GPU, but none can be used here: %s",
              reason);
    return nullptr;
  }
  return &driver;
}

} // namespace mlc::gpu
