// Results: the caller's buffers, or new ones.
#include "context.h"
#if MLC_RT_CUDA
#include "cuda.h"
#endif

namespace mlc {

static bool wantsAllocation(const mlc_value &value) {
  return value.kind == MLC_NONE || (value.kind == MLC_TENSOR &&
                                    !value.tensor.data && !value.tensor.shape);
}

static bool refuse(mlc_context &context, const mlc_rt_value_desc &desc,
                   const mlc_tensor &tensor, const char *what) {
  char expectedText[256], actualText[256];
  Text expected(expectedText, sizeof expectedText),
      actual(actualText, sizeof actualText);
  appendExpected(expected, desc);
  appendActual(actual, tensor);
  context.fail(MLC_ERROR_INPUT,
               "output '%s': the result is %s, the given buffer is %s%s%s",
               desc.name, expectedText, actualText, what ? "; " : "",
               what ? what : "");
  return false;
}

static bool checkBuffer(mlc_context &context, const mlc_rt_value_desc &desc,
                        const mlc_value &value) {
  const mlc_tensor &tensor = value.tensor;
  int32_t kinds = desc.kind ? desc.kind : MLC_TENSOR;
  if (kinds != MLC_TENSOR || value.kind != MLC_TENSOR ||
      desc.dtype == MLC_STRING) {
    context.fail(MLC_ERROR_INPUT,
                 "output '%s': sequences, optionals and strings are always "
                 "allocated; pass a value of kind MLC_NONE",
                 desc.name);
    return false;
  }
#if MLC_RT_CUDA
  bool device = gpu::isDevice(tensor);
  if (device && tensor.device.device_id != context.instance->gpu->number)
    return refuse(context, desc, tensor, "it is on another GPU");
  if (!device && tensor.device.device_type != 1)
    return refuse(context, desc, tensor, "it is neither CPU nor GPU memory");
  if (device && !isContiguous(tensor))
    return refuse(context, desc, tensor,
                  "a buffer on the GPU must be contiguous");
#else
  if (tensor.device.device_type != 1)
    return refuse(context, desc, tensor, "it is not in CPU memory");
#endif
  if (tensor.ndim < 0 || (desc.rank >= 0 && tensor.ndim != desc.rank) ||
      (tensor.ndim && !tensor.shape) || dtypeOf(tensor) != desc.dtype)
    return refuse(context, desc, tensor, nullptr);
  for (int32_t i = 0; i < desc.rank; ++i) {
    int64_t expected = desc.dims[i];
    if (expected < 0 && desc.dim_ids && desc.dim_ids[i] >= 0)
      expected = context.dims[desc.dim_ids[i]].extent;
    if (tensor.shape[i] < 0 || (expected >= 0 && tensor.shape[i] != expected))
      return refuse(context, desc, tensor, nullptr);
  }
  int64_t bytes;
  if (!tensorBytes(desc.dtype, tensor.ndim, tensor.shape, &bytes))
    return refuse(context, desc, tensor, "its size overflows");
  if (bytes && !tensor.data)
    return refuse(context, desc, tensor, "its data pointer is null");
  if (!isAligned(tensor))
    return refuse(context, desc, tensor, "it is not aligned to its elements");
  return true;
}

static bool overlap(const mlc_tensor &a, const mlc_tensor &b) {
  const char *beginA, *endA, *beginB, *endB;
  tensorRange(a, &beginA, &endA);
  tensorRange(b, &beginB, &endB);
  return beginA < endB && beginB < endA;
}

/// Is the buffer of an output all of an input that it may be?
static bool isShared(const mlc_tensor &output, const mlc_tensor &input) {
  bool same = tensorData(output) == tensorData(input) &&
              output.ndim == input.ndim && isContiguous(output) &&
              isContiguous(input);
  for (int32_t i = 0; same && i < output.ndim; ++i)
    same = output.shape[i] == input.shape[i];
  return same;
}

static bool checkOverlap(mlc_context &context, const mlc_value *inputs,
                         int32_t index) {
  const mlc_rt_entry &entry = *context.entry;
  const mlc_tensor &tensor = context.callerOutputs[index].tensor;
  const char *other = nullptr;
  for (int32_t i = 0; i < entry.num_inputs; ++i)
    if (inputs[i].kind == MLC_TENSOR && overlap(tensor, inputs[i].tensor) &&
        !(entry.outputs[index].shares == i + 1 &&
          isShared(tensor, inputs[i].tensor)))
      other = entry.inputs[i].name;
  for (int32_t i = 0; i < index; ++i)
    if (!context.outputs[i].allocated &&
        overlap(tensor, context.callerOutputs[i].tensor))
      other = entry.outputs[i].name;
  if (!other)
    return true;
  context.fail(MLC_ERROR_INPUT, "output '%s': its buffer overlaps that of '%s'",
               entry.outputs[index].name, other);
  return false;
}

bool checkOutputs(mlc_context &context, const mlc_value *inputs) {
  for (int32_t i = 0; i < context.entry->num_outputs; ++i) {
    context.outputs[i] = Output();
    context.outputs[i].allocated = wantsAllocation(context.callerOutputs[i]);
#if MLC_RT_CUDA
    context.outputs[i].onDevice =
        gpu::isDevice(context.callerOutputs[i].tensor);
#endif
  }
  for (int32_t i = 0; i < context.entry->num_outputs; ++i)
    if (!context.outputs[i].allocated &&
        (!checkBuffer(context, context.entry->outputs[i],
                      context.callerOutputs[i]) ||
         !checkOverlap(context, inputs, i)))
      return false;
  return true;
}

bool deliverOutputs(mlc_context &context) {
  for (int32_t i = 0; i < context.entry->num_outputs; ++i) {
    Output &output = context.outputs[i];
    mlc_value &target = context.callerOutputs[i];
    if (output.kind == Output::Strided)
      unpackTensor(target.tensor, output.buffer);
    else if (output.kind == Output::Deferred &&
             !exportValue(context, *output.value, target))
      return false;
    else if (output.kind == Output::Missing) {
      context.fail(MLC_ERROR_RUNTIME, "entry '%s' has not produced output '%s'",
                   context.entry->name, context.entry->outputs[i].name);
      return false;
    }
  }
  return true;
}

void dropOutputs(mlc_context &context) {
  for (int32_t i = 0; i < context.entry->num_outputs; ++i) {
    mlc_value &target = context.callerOutputs[i];
    if (context.outputs[i].allocated && target.deleter)
      target.deleter(&target);
  }
}

/// A string tensor: its elements are filled in by the host, and copied when the
/// run is over.
static void *deferTensor(mlc_context &context, int64_t index, int64_t rank,
                         const int64_t *dims, int64_t bytes) {
  int64_t dimBytes = rank * static_cast<int64_t>(sizeof(int64_t));
  auto *value = static_cast<mlc_value *>(
      takeBlock(context, static_cast<int64_t>(sizeof(mlc_value)) + dimBytes));
  void *data = value ? takeBlock(context, bytes) : nullptr;
  if (!data)
    return nullptr;
  *value = {};
  value->kind = MLC_TENSOR;
  value->tensor.data = memset(data, 0, bytes);
  value->tensor.ndim = static_cast<int32_t>(rank);
  setDtype(value->tensor, context.entry->outputs[index].dtype);
  value->tensor.shape = reinterpret_cast<int64_t *>(value + 1);
  if (dimBytes)
    memcpy(value->tensor.shape, dims, dimBytes);
  context.outputs[index].kind = Output::Deferred;
  context.outputs[index].value = value;
  return data;
}

/// The buffer of the caller for a result whose shape is known by now.
static void *useBuffer(mlc_context &context, int64_t index, int64_t rank,
                       const int64_t *dims, int64_t bytes) {
  const mlc_tensor &tensor = context.callerOutputs[index].tensor;
  Output &output = context.outputs[index];
  bool fits = tensor.ndim == rank;
  for (int64_t i = 0; fits && i < rank; ++i)
    fits = tensor.shape[i] == dims[i];
  if (!fits) {
    mlc_rt_value_desc desc = context.entry->outputs[index];
    desc.rank = static_cast<int32_t>(rank);
    desc.dims = dims;
    refuse(context, desc, tensor, nullptr);
    return nullptr;
  }
#if MLC_RT_CUDA
  if (gpu::isDevice(tensor)) {
    output.kind = Output::Direct;
    return bytes ? tensorData(tensor) : takeBlock(context, 0);
  }
#endif
  if (bytes && isContiguous(tensor)) {
    output.kind = Output::Direct;
    return tensorData(tensor);
  }
  output.kind = Output::Strided;
  return output.buffer = takeBlock(context, bytes);
}

} // namespace mlc

using namespace mlc;

#if MLC_RT_CUDA
void *mlc::outputTarget(mlc_context &context, int64_t index, int64_t rank,
                        const int64_t *dims) {
  mlc_context *rt = &context;
#else
void *mlc_rt_output(mlc_rt *rt, int64_t index, int64_t rank,
                    const int64_t *dims) {
#endif
  const mlc_rt_value_desc &desc = rt->entry->outputs[index];
  int64_t bytes;
  bool valid = tensorBytes(desc.dtype, rank, dims, &bytes);
  for (int64_t i = 0; i < rank; ++i)
    valid &= dims[i] >= 0;
  if (!valid) {
    rt->fail(MLC_ERROR_RUNTIME, "output '%s': its size at run time is invalid",
             desc.name);
    return nullptr;
  }
  if (desc.dtype == MLC_STRING)
    return deferTensor(*rt, index, rank, dims, bytes);
  Output &output = rt->outputs[index];
#if MLC_RT_CUDA
  output.bytes = bytes;
#endif
  if (!output.allocated)
    return useBuffer(*rt, index, rank, dims, bytes);
  mlc_value &target = rt->callerOutputs[index];
  // The host may ask again, for instance in both branches of a conditional:
  // same shape, same buffer.
  if (output.kind == Output::Direct) {
    if (target.tensor.ndim == rank &&
        (!rank || !memcmp(target.tensor.shape, dims, rank * sizeof(int64_t))))
      return target.tensor.data;
    target.deleter(&target);
  }
  output.kind = Output::Missing;
#if MLC_RT_CUDA
  if (output.onDevice) {
    if (!gpu::allocateTensor(*rt, desc.dtype, rank, dims, target))
      return nullptr;
    output.kind = Output::Direct;
    return target.tensor.data;
  }
#endif
  if (!allocateTensor(*rt, desc.dtype, rank, dims, target))
    return nullptr;
  output.kind = Output::Direct;
  return target.tensor.data;
}

int32_t mlc_rt_output_value(mlc_rt *rt, int64_t index, const mlc_value *value) {
#if MLC_RT_CUDA
  if (gpu::breakRecording(*rt))
    return 1;
#endif
  rt->outputs[index].kind = Output::Deferred;
  rt->outputs[index].value = value;
  return 0;
}
