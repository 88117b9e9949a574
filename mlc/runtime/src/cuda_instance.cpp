// A model on a GPU: the device, its kernels, weights and constants.
#include "cuda.h"

#include <new>
#include <stdlib.h>
#include <string.h>

namespace mlc::gpu {

static constexpr int kMajor = 75, kMinor = 76; // CUdevice_attribute
// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
static constexpr int kSharedBytes = 8;

static int32_t fail(const Driver &driver, mlc_status *status, const char *doing,
                    const char *call, int code) {
  char reason[256];
  Text text(reason, sizeof reason);
  describe(driver, text, call, code);
  return setStatus(status, statusOf(code), "%s: %s", doing, reason);
}

/// The GPU's number: the option, else MLC_DEVICE, else 0; -1 for what is no
/// number.
static int deviceNumber(int32_t option) {
  if (option > 0)
    return option - 1;
  const char *said = getenv("MLC_DEVICE");
  if (!said || !*said)
    return 0;
  char *end;
  long number = strtol(said, &end, 10);
  return *end || number < 0 || number > 1023 ? -1 : static_cast<int>(number);
}

static int32_t chooseDevice(Instance &gpu, int32_t option, mlc_status *status) {
  const Driver &driver = *gpu.driver;
  int count = 0;
  if (int code = driver.deviceCount(&count))
    return fail(driver, status, "the GPUs cannot be counted",
                "cuDeviceGetCount", code);
  gpu.number = deviceNumber(option);
  if (gpu.number < 0)
    return setStatus(status, MLC_ERROR_ARGUMENT,
                     "MLC_DEVICE is '%s'; it must be the number of a GPU",
                     getenv("MLC_DEVICE"));
  if (gpu.number >= count)
    return setStatus(status, MLC_ERROR_DEVICE,
                     "there is no GPU %d: this process sees %d", gpu.number,
                     count);
  if (int code = driver.deviceGet(&gpu.device, gpu.number))
    return fail(driver, status, "the GPU cannot be used", "cuDeviceGet", code);
  return MLC_OK;
}

/// What there is for a GPU of the code for an architecture, the worst first.
enum class Code {
  None,
  OneChips, // only PTX, and it may have instructions that no other chip has
  Ptx,      // PTX that the driver's compiler takes
  Machine,  // machine code of an older chip of the family, which runs it
  Exact
};

/// Whether an architecture, as "sm_90a", has instructions that no other has.
static bool isOneChips(const char *arch) {
  return arch[strlen(arch) - 1] == 'a';
}

static int versionOf(int major, int minor) { return major * 16 + minor; }

static Code codeFor(const mlc_rt_gpu &code, int major, int minor) {
  int needed = versionOf(code.major, code.minor);
  if (versionOf(major, minor) < needed)
    return Code::None;
  if (versionOf(major, minor) == needed)
    return Code::Exact;
  if (isOneChips(code.arch))
    return Code::OneChips;
  return major == code.major ? Code::Machine : Code::Ptx;
}

/// No code is for this GPU: it is older than all that there is some for.
static int32_t failCapability(const Instance &gpu, int major, int minor,
                              mlc_status *status) {
  char name[128] = "?", archs[128];
  gpu.driver->deviceName(name, sizeof name, gpu.device);
  Text text(archs, sizeof archs);
  const mlc_rt_gpu *least = mlc_program.gpu;
  for (const mlc_rt_gpu *at = least; at; at = at->next) {
    text.add("%s%s", at == mlc_program.gpu ? "" : ", ", at->arch);
    if (versionOf(at->major, at->minor) < versionOf(least->major, least->minor))
      least = at;
  }
  return setStatus(status, MLC_ERROR_DEVICE,
                   "GPU %d (%s) has compute capability %d.%d; this model was "
                   "compiled for %s and needs %d.%d or newer",
                   gpu.number, name, major, minor, archs, least->major,
                   least->minor);
}

/// Takes the code that is best for this GPU, of equals the latest; an error
/// when not even PTX can be.
static int32_t chooseCode(Instance &gpu, Code *code, mlc_status *status) {
  int major = 0, minor = 0;
  gpu.driver->deviceAttribute(&major, kMajor, gpu.device);
  gpu.driver->deviceAttribute(&minor, kMinor, gpu.device);
  *code = Code::None;
  int64_t number = 0;
  for (const mlc_rt_gpu *at = mlc_program.gpu; at; at = at->next, ++number) {
    Code found = codeFor(*at, major, minor);
    bool later = found == *code && gpu.code &&
                 versionOf(at->major, at->minor) >
                     versionOf(gpu.code->major, gpu.code->minor);
    if (found == Code::None || !(found > *code || later))
      continue;
    *code = found;
    gpu.code = at;
    gpu.architecture = number;
  }
  if (!gpu.code)
    return failCapability(gpu, major, minor, status);
  const char *said = getenv("MLC_CUDA_OVERLAP");
  gpu.overlaps = gpu.driver->launchEx && !(said && *said == '0');
  return checkVersion(gpu.code->driver, status);
}

/// Loads an image; `log` gets what the driver's compiler has to say.
static int loadImage(const Driver &driver, Handle *module, const void *image,
                     char *log, size_t capacity) {
  int names[] = {5, 6}; // CU_JIT_ERROR_LOG_BUFFER, …_SIZE_BYTES
  void *values[] = {log, reinterpret_cast<void *>(capacity)};
  log[0] = 0;
  return driver.loadModule(module, image, 2, names, values);
}

/// Whether PTX is for one chip alone: ".target sm_90a".
static bool isOneChipsPtx(const char *ptx) {
  const char *found = strstr(ptx, ".target ");
  if (!found)
    return false;
  found += strlen(".target ");
  size_t length = strcspn(found, ", \n");
  return length && found[length - 1] == 'a';
}

static int32_t failArchitecture(const Instance &gpu, const char *kernel,
                                mlc_status *status) {
  char name[128] = "?";
  int major = 0, minor = 0;
  gpu.driver->deviceName(name, sizeof name, gpu.device);
  gpu.driver->deviceAttribute(&major, kMajor, gpu.device);
  gpu.driver->deviceAttribute(&minor, kMinor, gpu.device);
  return setStatus(status, MLC_ERROR_DEVICE,
                   "GPU %d (%s) has compute capability %d.%d; kernel '%s' was "
                   "compiled for %s, whose instructions no other chip has: "
                   "compile the model for this GPU",
                   gpu.number, name, major, minor, kernel, gpu.code->arch);
}

static int32_t loadKernel(Instance &gpu, int64_t id, Code available,
                          mlc_status *status) {
  const Driver &driver = *gpu.driver;
  const mlc_rt_gpu_kernel &described = gpu.code->kernels[id];
  Kernel &kernel = gpu.kernels[id];
  if (!described.cubin)
    return MLC_OK; // a kernel of the host
  char log[512], doing[640];
  int code = kNoBinary;
  if (available >= Code::Machine)
    code = loadImage(driver, &kernel.module, described.cubin, log, sizeof log);
  // Another chip, or a driver older than the assembler.
  if (code == kNoBinary || code == kInvalidImage || code == kUnsupportedPtx) {
    if (available == Code::OneChips && isOneChipsPtx(described.ptx))
      return failArchitecture(gpu, described.name, status);
    code = loadImage(driver, &kernel.module, described.ptx, log, sizeof log);
  }
  const char *call = "cuModuleLoadDataEx";
  if (!code) {
    call = "cuModuleGetFunction";
    code = driver.getFunction(&kernel.function, kernel.module, described.name);
  }
  if (!code && described.shared) {
    call = "cuFuncSetAttribute";
    code = driver.setAttribute(kernel.function, kSharedBytes, described.shared);
  }
  if (!code)
    return MLC_OK;
  Text text(doing, sizeof doing);
  text.add("kernel '%s' cannot be loaded%s%s", described.name,
           log[0] ? ": " : "", log);
  return fail(driver, status, doing, call, code);
}

static int32_t loadKernels(Instance &gpu, Code available, mlc_status *status) {
  int64_t count = gpu.code->num_kernels;
  gpu.kernels = static_cast<Kernel *>(calloc(count + 1, sizeof(Kernel)));
  if (!gpu.kernels)
    return setStatus(status, MLC_ERROR_OUT_OF_MEMORY, "out of memory");
  for (int64_t i = 0; i < count; ++i)
    if (int32_t code = loadKernel(gpu, i, available, status))
      return code;
  return MLC_OK;
}

static int32_t uploadWeights(Instance &gpu, const char *weights,
                             mlc_status *status) {
  auto size = static_cast<size_t>(mlc_program.weights_size);
  if (!size)
    return MLC_OK;
  char doing[128];
  Text text(doing, sizeof doing);
  text.add("the %zu bytes of weights cannot be brought to GPU %d", size,
           gpu.number);
  if (int code = gpu.driver->allocate(&gpu.weights, size))
    return fail(*gpu.driver, status, doing, "cuMemAlloc_v2", code);
  if (int code = gpu.driver->upload(gpu.weights, weights, size))
    return fail(*gpu.driver, status, doing, "cuMemcpyHtoD_v2", code);
  return MLC_OK;
}

int32_t openInstance(mlc_instance &instance, int32_t device,
                     mlc_status *status) {
  const Driver *driver = openDriver(status);
  if (!driver)
    return MLC_ERROR_DEVICE;
  void *memory = malloc(sizeof(Instance));
  if (!memory)
    return setStatus(status, MLC_ERROR_OUT_OF_MEMORY, "out of memory");
  Instance &gpu = *new (memory) Instance();
  instance.gpu = &gpu;
  gpu.driver = driver;
  Code available = Code::None;
  if (int32_t code = chooseDevice(gpu, device, status))
    return code;
  if (int32_t code = chooseCode(gpu, &available, status))
    return code;
  if (int code = driver->retain(&gpu.context, gpu.device)) {
    gpu.context = nullptr;
    return fail(*driver, status, "the GPU cannot be used",
                "cuDevicePrimaryCtxRetain", code);
  }
  Scope scope(gpu);
  if (int32_t code = loadKernels(gpu, available, status))
    return code;
  return uploadWeights(gpu, instance.weights, status);
}

void closeInstance(mlc_instance &instance) {
  Instance *gpu = instance.gpu;
  if (!gpu)
    return;
  if (gpu->context) {
    Scope scope(*gpu);
    for (int64_t i = 0; gpu->kernels && i < gpu->code->num_kernels; ++i)
      if (gpu->kernels[i].module)
        gpu->driver->unloadModule(gpu->kernels[i].module);
    for (int64_t i = 0; i < gpu->numConstants; ++i)
      gpu->driver->free(gpu->constants[i].device);
    if (gpu->weights)
      gpu->driver->free(gpu->weights);
  }
  if (gpu->context)
    gpu->driver->release(gpu->device);
  free(gpu->kernels);
  free(gpu->constants);
  free(gpu);
}

/// Uploads a constant; nullptr when out of memory. The instance is locked.
static Constant *addConstant(mlc_context &context, Instance &gpu,
                             const void *data, int64_t bytes) {
  if (gpu.numConstants == gpu.capacity) {
    int64_t capacity = 2 * gpu.capacity + 16;
    void *grown = realloc(gpu.constants, capacity * sizeof(Constant));
    if (!grown) {
      context.fail(MLC_ERROR_OUT_OF_MEMORY, "out of memory");
      return nullptr;
    }
    gpu.constants = static_cast<Constant *>(grown);
    gpu.capacity = capacity;
  }
  Address memory = 0;
  int code = gpu.driver->allocate(&memory, bytes ? bytes : 1);
  if (!code && bytes)
    code = gpu.driver->upload(memory, data, bytes);
  if (code) {
    if (memory)
      gpu.driver->free(memory);
    failCall(context, "uploading a constant", code);
    return nullptr;
  }
  Constant &added = gpu.constants[gpu.numConstants++];
  added = {data, bytes, memory};
  return &added;
}

} // namespace mlc::gpu

using namespace mlc;

void *mlc_rt_gpu_constant(mlc_rt *rt, const void *data, int64_t bytes) {
  gpu::Instance &gpu = *rt->instance->gpu;
  pthread_mutex_lock(&gpu.lock);
  const gpu::Constant *found = nullptr;
  for (int64_t i = 0; i < gpu.numConstants && !found; ++i)
    if (gpu.constants[i].host == data && gpu.constants[i].bytes == bytes)
      found = &gpu.constants[i];
  if (!found)
    found = gpu::addConstant(*rt, gpu, data, bytes);
  gpu::Address memory = found ? found->device : 0;
  pthread_mutex_unlock(&gpu.lock);
  return reinterpret_cast<void *>(memory);
}

const void *mlc_rt_gpu_weights(mlc_rt *rt) {
  return reinterpret_cast<const void *>(rt->instance->gpu->weights);
}
