// Everything that a caller can get wrong about an input is found here, before
// generated code sees it.
#include "context.h"
#if MLC_RT_CUDA
#include "cuda.h"
#endif

namespace mlc {

static constexpr int32_t kMaxRank = 64;

static void appendDims(Text &text, int64_t rank, const int64_t *dims,
                       const int32_t *ids) {
  text.add("[");
  for (int64_t i = 0; i < rank; ++i) {
    text.add(i ? "," : "");
    if (dims[i] >= 0 || !ids)
      text.add("%lld", static_cast<long long>(dims[i]));
    else if (ids[i] >= 0 && ids[i] < mlc_program.num_dims)
      text.add("%s", mlc_program.dim_ranges[ids[i]].name);
    else
      text.add("?");
  }
  text.add("]");
}

static void appendTensorType(Text &text, const mlc_rt_value_desc &desc) {
  appendDtype(text, desc.dtype);
  if (desc.rank < 0)
    text.add("[...]");
  else
    appendDims(text, desc.rank, desc.dims, desc.dim_ids);
}

void appendExpected(Text &text, const mlc_rt_value_desc &desc) {
  int closing = 0;
  for (int32_t kinds = desc.kind ? desc.kind : MLC_TENSOR; kinds; kinds >>= 4) {
    int32_t kind = kinds & 15;
    if (kind == MLC_TENSOR)
      break;
    text.add("%s(", kind == MLC_SEQUENCE ? "sequence" : "optional");
    ++closing;
  }
  appendTensorType(text, desc);
  while (closing--)
    text.add(")");
}

void appendActual(Text &text, const mlc_tensor &tensor) {
  appendDtype(text, dtypeOf(tensor));
  if (tensor.ndim > kMaxRank || tensor.ndim < 0)
    text.add("[rank %d]", tensor.ndim);
  else
    appendDims(text, tensor.ndim, tensor.shape, nullptr);
}

namespace {
/// Binds one input; every member function is false when it has recorded a
/// failure.
class InputBinder {
public:
  InputBinder(mlc_context &context, int32_t index)
      : context(context), index(index), desc(context.entry->inputs[index]) {}

  /// Fills in *word for the program, and appends the dynamic dims of a tensor
  /// at *dims.
  bool bind(const mlc_value &value, int64_t *word, int64_t **dims);

private:
  bool refuse(const mlc_tensor &tensor, const char *what = nullptr);
  bool refuseKind(int32_t wanted, int32_t kind);
  bool checkTensor(const mlc_tensor &tensor);
  bool bindDims(const mlc_tensor &tensor);
  bool bindDim(const mlc_tensor &tensor, int32_t id, int64_t extent);
  const char *usableData(const mlc_tensor &tensor);
#if MLC_RT_CUDA
  bool checkNumber(const mlc_tensor &tensor);
  const char *placedData(const mlc_tensor &tensor);
#endif
  bool importInto(const mlc_value &value, int32_t kinds, mlc_value &target);

  mlc_context &context;
  int32_t index;
  const mlc_rt_value_desc &desc;
};
} // namespace

bool InputBinder::refuse(const mlc_tensor &tensor, const char *what) {
  char expectedText[256], actualText[256];
  Text expected(expectedText, sizeof expectedText),
      actual(actualText, sizeof actualText);
  appendExpected(expected, desc);
  appendActual(actual, tensor);
  context.fail(MLC_ERROR_INPUT, "input '%s': expected %s, got %s%s%s",
               desc.name, expectedText, actualText, what ? "; " : "",
               what ? what : "");
  return false;
}

bool InputBinder::refuseKind(int32_t wanted, int32_t kind) {
  static const char *const kKinds[] = {"nothing", "a tensor", "a sequence",
                                       "an optional"};
  char expectedText[256];
  Text expected(expectedText, sizeof expectedText);
  appendExpected(expected, desc);
  context.fail(MLC_ERROR_INPUT,
               "input '%s': expected %s, got %s where %s belongs", desc.name,
               expectedText,
               kind >= 0 && kind <= MLC_OPTIONAL ? kKinds[kind]
                                                 : "a value of unknown kind",
               kKinds[wanted]);
  return false;
}

bool InputBinder::checkTensor(const mlc_tensor &tensor) {
  constexpr int32_t kCpu = 1, kCudaHost = 3, kRocmHost = 11, kManaged = 13;
  int32_t device = tensor.device.device_type;
#if MLC_RT_CUDA
  if (!checkNumber(tensor))
    return false;
  if (gpu::isDevice(tensor))
    device = kCpu; // any of both is right
#endif
  if (device != kCpu && device != kCudaHost && device != kRocmHost &&
      device != kManaged) {
    context.fail(MLC_ERROR_INPUT,
                 "input '%s': it is on device type %d (DLPack); this model "
                 "runs on the CPU, copy it there first",
                 desc.name, device);
    return false;
  }
  if (tensor.ndim < 0 || tensor.ndim > kMaxRank ||
      (tensor.ndim && !tensor.shape) ||
      (desc.rank >= 0 && tensor.ndim != desc.rank) ||
      dtypeOf(tensor) != desc.dtype)
    return refuse(tensor);
  if (tensor.dtype.lanes != 1)
    return refuse(tensor, "vector elements (lanes) are not supported");
  for (int32_t i = 0; i < tensor.ndim; ++i)
    if (tensor.shape[i] < 0 || (desc.rank >= 0 && desc.dims[i] >= 0 &&
                                tensor.shape[i] != desc.dims[i]))
      return refuse(tensor);
  int64_t bytes;
  if (!tensorBytes(desc.dtype, tensor.ndim, tensor.shape, &bytes))
    return refuse(tensor, "its size overflows");
  if (bytes && !tensor.data)
    return refuse(tensor, "its data pointer is null");
  return true;
}

bool InputBinder::bindDim(const mlc_tensor &tensor, int32_t id,
                          int64_t extent) {
  const mlc_rt_dim &range = mlc_program.dim_ranges[id];
  Dim &bound = context.dims[id];
  char actualText[256];
  Text actual(actualText, sizeof actualText);
  appendActual(actual, tensor);
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  if (bound.extent >= 0) {
    if (bound.extent == extent)
      return true;
    context.fail(MLC_ERROR_INPUT,
                 "input '%s': dimension '%s' is %lld in %s, but %lld in input "
                 "'%s'",
                 desc.name, range.name, number(extent), actualText,
                 number(bound.extent), context.entry->inputs[bound.input].name);
    return false;
  }
  if (extent < range.lowest || (range.highest >= 0 && extent > range.highest)) {
    char bounds[64];
    Text text(bounds, sizeof bounds);
    text.add(range.highest >= 0 ? "%lld to %lld" : "%lld or more",
             number(range.lowest), number(range.highest));
    context.fail(MLC_ERROR_INPUT,
                 "input '%s': dimension '%s' is %lld in %s; the model was "
                 "compiled for %s",
                 desc.name, range.name, number(extent), actualText, bounds);
    return false;
  }
  if (range.multiple > 1 && extent % range.multiple) {
    context.fail(MLC_ERROR_INPUT,
                 "input '%s': dimension '%s' is %lld in %s; the model was "
                 "compiled for multiples of %lld",
                 desc.name, range.name, number(extent), actualText,
                 number(range.multiple));
    return false;
  }
  bound.extent = extent;
  bound.input = index;
  return true;
}

bool InputBinder::bindDims(const mlc_tensor &tensor) {
  for (int32_t i = 0; i < desc.rank; ++i)
    if (desc.dim_ids && desc.dim_ids[i] >= 0 &&
        !bindDim(tensor, desc.dim_ids[i], tensor.shape[i]))
      return false;
  return true;
}

/// The tensor's elements, contiguous and aligned; a copy when the caller's are
/// not. Never nullptr but for a failure.
const char *InputBinder::usableData(const mlc_tensor &tensor) {
  int64_t bytes = 0;
  tensorBytes(desc.dtype, tensor.ndim, tensor.shape, &bytes);
#if MLC_RT_CUDA
  if (gpu::isDevice(tensor))
    return gpu::fetch(context, tensor, bytes);
#endif
  if (bytes && isContiguous(tensor) && isAligned(tensor))
    return tensorData(tensor);
  void *copy = takeBlock(context, bytes);
  if (copy && bytes)
    packTensor(tensor, copy);
  return static_cast<const char *>(copy);
}

#if MLC_RT_CUDA
bool InputBinder::checkNumber(const mlc_tensor &tensor) {
  int number = context.instance->gpu->number;
  if (!gpu::isDevice(tensor) || tensor.device.device_id == number)
    return true;
  context.fail(MLC_ERROR_INPUT,
               "input '%s': it is on GPU %d; this model runs on GPU %d",
               desc.name, tensor.device.device_id, number);
  return false;
}

/// The tensor's elements in the memory where the program wants them.
const char *InputBinder::placedData(const mlc_tensor &tensor) {
  if (!desc.placement)
    return usableData(tensor);
  int64_t bytes = 0;
  tensorBytes(desc.dtype, tensor.ndim, tensor.shape, &bytes);
  gpu::Address address = 0;
  if (gpu::isDevice(tensor))
    address = gpu::adopt(context, tensor, bytes);
  else if (const char *data = usableData(tensor))
    address = gpu::stage(context, data, bytes);
  return reinterpret_cast<const char *>(address);
}
#endif

bool InputBinder::importInto(const mlc_value &value, int32_t kinds,
                             mlc_value &target) {
  int32_t kind = kinds & 15;
  if (value.kind != kind)
    return refuseKind(kind, value.kind);
  target = {};
  target.struct_size = sizeof target;
  target.kind = kind;
  if (kind == MLC_TENSOR) {
    if (!checkTensor(value.tensor))
      return false;
    target.tensor = value.tensor;
    target.tensor.data = const_cast<char *>(usableData(value.tensor));
    target.tensor.strides = nullptr;
    target.tensor.byte_offset = 0;
    return target.tensor.data != nullptr;
  }
  if (value.num_items < 0 || (value.num_items && !value.items) ||
      (kind == MLC_OPTIONAL && value.num_items > 1)) {
    context.fail(MLC_ERROR_INPUT,
                 "input '%s': a value with %lld items is malformed", desc.name,
                 static_cast<long long>(value.num_items));
    return false;
  }
  target.num_items = value.num_items;
  target.items = static_cast<mlc_value *>(takeBlock(
      context, value.num_items * static_cast<int64_t>(sizeof(mlc_value))));
  if (!target.items)
    return false;
  for (int64_t i = 0; i < value.num_items; ++i)
    if (!importInto(value.items[i], kinds >> 4, target.items[i]))
      return false;
  return true;
}

bool InputBinder::bind(const mlc_value &value, int64_t *word, int64_t **dims) {
  int32_t kinds = desc.kind ? desc.kind : MLC_TENSOR;
  if (kinds != MLC_TENSOR) {
    void *copy = takeBlock(context, sizeof(mlc_value));
    if (!copy || !importInto(value, kinds, *static_cast<mlc_value *>(copy)))
      return false;
    *word = reinterpret_cast<int64_t>(copy);
    return true;
  }
  if (value.kind != MLC_TENSOR)
    return refuseKind(MLC_TENSOR, value.kind);
  if (!checkTensor(value.tensor) || !bindDims(value.tensor))
    return false;
#if MLC_RT_CUDA
  const char *data = placedData(value.tensor);
#else
  const char *data = usableData(value.tensor);
#endif
  *word = reinterpret_cast<int64_t>(data);
  for (int32_t i = 0; i < desc.rank; ++i)
    if (desc.dims[i] < 0)
      *(*dims)++ = value.tensor.shape[i];
  return data != nullptr;
}

/// Sets `total` to what a dimension's sum is for the extents that inputs have;
/// false where this entry has no such input. What is too large wraps around, as
/// it does in compiled code.
static bool sumOf(const mlc_context &context, const int64_t *sum,
                  int64_t &total) {
  uint64_t found = static_cast<uint64_t>(sum[1]);
  for (int64_t i = 0; i < sum[0]; ++i) {
    int64_t extent = context.dims[sum[2 + 2 * i]].extent;
    if (extent < 0)
      return false;
    found +=
        static_cast<uint64_t>(extent) * static_cast<uint64_t>(sum[3 + 2 * i]);
  }
  total = static_cast<int64_t>(found);
  return true;
}

/// Dimensions that are sums of others are so: compiled code counts on it.
static bool checkSums(mlc_context &context) {
  for (int64_t id = 0; id < mlc_program.num_dims; ++id) {
    const mlc_rt_dim &dim = mlc_program.dim_ranges[id];
    const Dim &bound = context.dims[id];
    int64_t wanted;
    if (!dim.sum || bound.extent < 0 || !sumOf(context, dim.sum, wanted) ||
        wanted == bound.extent)
      continue;
    char buffer[512];
    Text others(buffer, sizeof buffer);
    for (int64_t i = 0; i < dim.sum[0]; ++i) {
      int64_t part = dim.sum[2 + 2 * i];
      others.add("%s'%s' is %lld in input '%s'", i ? ", " : "",
                 mlc_program.dim_ranges[part].name,
                 static_cast<long long>(context.dims[part].extent),
                 context.entry->inputs[context.dims[part].input].name);
    }
    const char *name = context.entry->inputs[bound.input].name;
    context.fail(MLC_ERROR_INPUT,
                 "input '%s': dimension '%s' is %lld, and not %lld: %s; if it "
                 "may be another, compile with another name for it (--input)",
                 name, dim.name, static_cast<long long>(bound.extent),
                 static_cast<long long>(wanted), buffer);
    return false;
  }
  return true;
}

bool bindInputs(mlc_context &context, const mlc_value *inputs) {
  for (int64_t i = 0; i < mlc_program.num_dims; ++i)
    context.dims[i] = Dim();
  int64_t *dims = context.args + context.entry->num_inputs;
  for (int32_t i = 0; i < context.entry->num_inputs; ++i)
    if (!InputBinder(context, i).bind(inputs[i], &context.args[i], &dims))
      return false;
  return checkSums(context);
}

} // namespace mlc
