// Shapes, strides and copies of DLPack tensors.
#include "context.h"

namespace mlc {

bool tensorBytes(int32_t dtype, int64_t rank, const int64_t *dims,
                 int64_t *bytes) {
  int64_t total = elementSize(dtype);
  bool empty = false;
  for (int64_t i = 0; i < rank; ++i) {
    if (dims[i] == 0)
      empty = true;
    else if (!multiply(total, dims[i], &total))
      return false;
  }
  *bytes = empty ? 0 : total;
  return true;
}

char *tensorData(const mlc_tensor &tensor) {
  return static_cast<char *>(tensor.data) + tensor.byte_offset;
}

bool isContiguous(const mlc_tensor &tensor) {
  if (!tensor.strides)
    return true;
  int64_t expected = 1;
  bool dense = true;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] == 0)
      return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected)
      dense = false;
    expected *= tensor.shape[i];
  }
  return dense;
}

bool isAligned(const mlc_tensor &tensor) {
  int64_t size = elementSize(dtypeOf(tensor));
  uintptr_t alignment = size < 8 ? static_cast<uintptr_t>(size) : 8;
  return alignment < 2 ||
         reinterpret_cast<uintptr_t>(tensorData(tensor)) % alignment == 0;
}

/// Walks the dimensions outside in; `Pack` says in which direction bytes flow.
template <bool Pack>
static char *copyDim(const mlc_tensor &tensor, int32_t axis, int64_t size,
                     char *strided, char *packed) {
  if (axis == tensor.ndim) {
    memcpy(Pack ? packed : strided, Pack ? strided : packed, size);
    return packed + size;
  }
  for (int64_t i = 0; i < tensor.shape[axis]; ++i)
    packed = copyDim<Pack>(tensor, axis + 1, size,
                           strided + i * tensor.strides[axis] * size, packed);
  return packed;
}

void packTensor(const mlc_tensor &tensor, void *packed) {
  int64_t size = elementSize(dtypeOf(tensor)), bytes = 0;
  tensorBytes(dtypeOf(tensor), tensor.ndim, tensor.shape, &bytes);
  if (isContiguous(tensor)) {
    if (bytes)
      memcpy(packed, tensorData(tensor), bytes);
    return;
  }
  copyDim<true>(tensor, 0, size, tensorData(tensor),
                static_cast<char *>(packed));
}

void unpackTensor(const mlc_tensor &tensor, const void *packed) {
  int64_t size = elementSize(dtypeOf(tensor)), bytes = 0;
  tensorBytes(dtypeOf(tensor), tensor.ndim, tensor.shape, &bytes);
  if (isContiguous(tensor)) {
    if (bytes)
      memcpy(tensorData(tensor), packed, bytes);
    return;
  }
  copyDim<false>(tensor, 0, size, tensorData(tensor),
                 const_cast<char *>(static_cast<const char *>(packed)));
}

void tensorRange(const mlc_tensor &tensor, const char **begin,
                 const char **end) {
  int64_t size = elementSize(dtypeOf(tensor)), low = 0, high = 0, bytes = 0;
  tensorBytes(dtypeOf(tensor), tensor.ndim, tensor.shape, &bytes);
  *begin = *end = tensorData(tensor);
  if (bytes == 0)
    return;
  for (int32_t i = 0; tensor.strides && i < tensor.ndim; ++i) {
    int64_t reach = (tensor.shape[i] - 1) * tensor.strides[i] * size;
    (reach < 0 ? low : high) += reach;
  }
  *begin += low;
  *end += tensor.strides ? high + size : bytes;
}

} // namespace mlc
