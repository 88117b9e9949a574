// Sequences, optionals and strings inside a run, and values that outlive one.
#include "context.h"

namespace mlc {

// --- Values that the caller owns
// -------------------------------------------------------------------------------------

namespace {
/// Lays a tree of values out in one block. The first pass, without memory, only
/// measures.
class Exporter {
public:
  explicit Exporter(char *memory) : memory(memory) {}

  void copy(const mlc_value &source, mlc_value *target);
  size_t used() const { return offset; }

private:
  void *place(const void *source, int64_t bytes,
              size_t alignment = kAlignment) {
    offset = alignUp(offset, alignment);
    void *result = memory ? memory + offset : nullptr;
    if (result && bytes && source)
      memcpy(result, source, bytes);
    offset += bytes;
    return result;
  }
  void copyTensor(const mlc_tensor &source, mlc_tensor *target);

  char *memory;
  size_t offset = 0;
};
} // namespace

static void deleteValue(mlc_value *value) {
  auto *owned = static_cast<Owned *>(value->manager);
  *value = {};
  value->struct_size = sizeof *value;
  if (owned)
    owned->drop();
}

static char *allocateOwned(mlc_context &context, size_t bytes) {
  Owned *owned = context.results->take(context.instance->allocator, bytes);
  if (!owned) {
    context.fail(MLC_ERROR_OUT_OF_MEMORY,
                 "out of memory: an output of %lld bytes",
                 static_cast<long long>(bytes));
    return nullptr;
  }
  return reinterpret_cast<char *>(owned + 1);
}

static void adopt(mlc_value &target, char *memory) {
  target.struct_size = sizeof target;
  target.deleter = deleteValue;
  target.manager = reinterpret_cast<Owned *>(memory) - 1;
}

void Exporter::copyTensor(const mlc_tensor &source, mlc_tensor *target) {
  int64_t bytes = 0;
  tensorBytes(dtypeOf(source), source.ndim, source.shape, &bytes);
  void *shape = place(source.shape, source.ndim * sizeof(int64_t));
  void *data = place(source.data, bytes);
  if (target) {
    *target = source;
    target->shape = static_cast<int64_t *>(shape);
    target->data = data;
    target->device.device_type = 1;
  }
  if (dtypeOf(source) != MLC_STRING)
    return;
  auto *strings = static_cast<const mlc_string *>(source.data);
  for (int64_t i = 0; i < bytes / static_cast<int64_t>(sizeof(mlc_string));
       ++i) {
    void *text = place(strings[i].data, strings[i].size, 1);
    if (target)
      static_cast<mlc_string *>(data)[i].data = static_cast<char *>(text);
  }
}

void Exporter::copy(const mlc_value &source, mlc_value *target) {
  if (target) {
    *target = {};
    target->struct_size = sizeof *target;
    target->kind = source.kind;
    target->num_items = source.num_items;
  }
  if (source.kind == MLC_TENSOR)
    return copyTensor(source.tensor, target ? &target->tensor : nullptr);
  auto *items = static_cast<mlc_value *>(place(
      nullptr, source.num_items * static_cast<int64_t>(sizeof(mlc_value))));
  if (target)
    target->items = items;
  for (int64_t i = 0; i < source.num_items; ++i)
    copy(source.items[i], items ? &items[i] : nullptr);
}

bool exportValue(mlc_context &context, const mlc_value &source,
                 mlc_value &target) {
  Exporter measure(nullptr);
  measure.copy(source, nullptr);
  char *memory = allocateOwned(context, measure.used());
  if (!memory)
    return false;
  Exporter(memory).copy(source, &target);
  adopt(target, memory);
  return true;
}

bool allocateTensor(mlc_context &context, int32_t dtype, int64_t rank,
                    const int64_t *dims, mlc_value &target) {
  int64_t bytes = 0;
  tensorBytes(dtype, rank, dims, &bytes);
  size_t shapeBytes = alignUp(rank * sizeof(int64_t), kAlignment);
  if (static_cast<size_t>(bytes) > PTRDIFF_MAX / 2) {
    context.fail(MLC_ERROR_OUT_OF_MEMORY,
                 "out of memory: an output of %lld bytes",
                 static_cast<long long>(bytes));
    return false;
  }
  size_t room = static_cast<size_t>(bytes) < kPaged ? 0 : kPage;
  char *memory = allocateOwned(context, shapeBytes + bytes + room);
  if (!memory)
    return false;
  target = {};
  target.kind = MLC_TENSOR;
  target.tensor.device.device_type = 1;
  target.tensor.ndim = static_cast<int32_t>(rank);
  setDtype(target.tensor, dtype);
  target.tensor.shape = reinterpret_cast<int64_t *>(memory);
  if (rank)
    memcpy(memory, dims, rank * sizeof(int64_t));
  auto data = reinterpret_cast<uintptr_t>(memory + shapeBytes);
  target.tensor.data =
      reinterpret_cast<void *>(room ? alignUp(data, kPage) : data);
  adopt(target, memory);
  return true;
}

// --- Values of a run
// -------------------------------------------------------------------------------------------------

static mlc_value *newValue(mlc_context &context, int32_t kind, int64_t items) {
  auto size = static_cast<int64_t>(sizeof(mlc_value));
  auto *value =
      static_cast<mlc_value *>(takeBlock(context, size * (items + 1)));
  if (!value)
    return nullptr;
  memset(static_cast<void *>(value), 0, size * (items + 1));
  value->struct_size = sizeof *value;
  value->kind = kind;
  value->num_items = items;
  value->items = value + 1;
  return value;
}

/// A position in [0, count) from one that may count from the end; false when
/// out of range (recorded).
static bool position(mlc_context &context, int64_t count, int64_t node,
                     int64_t *index) {
  int64_t given = *index;
  if (given < 0)
    *index += count;
  if (*index >= 0 && *index < count)
    return true;
  context.error[0] = (node + 1) * 16 + MLC_RT_INDEX;
  context.error[1] = given;
  return false;
}

} // namespace mlc

using namespace mlc;

const mlc_value *mlc_rt_tensor(mlc_rt *rt, int64_t dtype, int64_t rank,
                               const int64_t *dims, const void *data) {
  mlc_value *value = newValue(*rt, MLC_TENSOR, 0);
  int64_t bytes = 0;
  tensorBytes(static_cast<int32_t>(dtype), rank, dims, &bytes);
  auto *shape = static_cast<int64_t *>(
      value ? takeBlock(*rt, rank * static_cast<int64_t>(sizeof(int64_t)))
            : nullptr);
  // A copy: the arena may use the tensor's place for something else while the
  // sequence lives.
  void *copy = shape ? takeBlock(*rt, bytes) : nullptr;
  if (!copy)
    return nullptr;
  if (rank)
    memcpy(shape, dims, rank * sizeof(int64_t));
  if (bytes)
    memcpy(copy, data, bytes);
  value->items = nullptr;
  value->tensor.data = copy;
  value->tensor.device.device_type = 1;
  value->tensor.ndim = static_cast<int32_t>(rank);
  setDtype(value->tensor, static_cast<int32_t>(dtype));
  value->tensor.shape = shape;
  return value;
}

const mlc_value *mlc_rt_sequence(mlc_rt *rt, int64_t count,
                                 const mlc_value *const *items) {
  mlc_value *value = newValue(*rt, MLC_SEQUENCE, count);
  for (int64_t i = 0; value && i < count; ++i)
    value->items[i] = *items[i];
  return value;
}

const mlc_value *mlc_rt_sequence_at(mlc_rt *rt, const mlc_value *sequence,
                                    int64_t index, int64_t node) {
  return position(*rt, sequence->num_items, node, &index)
             ? &sequence->items[index]
             : nullptr;
}

const mlc_value *mlc_rt_sequence_insert(mlc_rt *rt, const mlc_value *sequence,
                                        const mlc_value *item, int64_t index,
                                        int64_t node) {
  int64_t count = sequence->num_items;
  if (index != count && !position(*rt, count, node, &index))
    return nullptr;
  mlc_value *value = newValue(*rt, MLC_SEQUENCE, count + 1);
  for (int64_t i = 0; value && i <= count; ++i)
    value->items[i] = i < index    ? sequence->items[i]
                      : i == index ? *item
                                   : sequence->items[i - 1];
  return value;
}

const mlc_value *mlc_rt_sequence_erase(mlc_rt *rt, const mlc_value *sequence,
                                       int64_t index, int64_t node) {
  int64_t count = sequence->num_items;
  if (!position(*rt, count, node, &index))
    return nullptr;
  mlc_value *value = newValue(*rt, MLC_SEQUENCE, count - 1);
  for (int64_t i = 0; value && i < count - 1; ++i)
    value->items[i] = sequence->items[i < index ? i : i + 1];
  return value;
}

int64_t mlc_rt_length(const mlc_value *value) { return value->num_items; }

const mlc_value *mlc_rt_optional(mlc_rt *rt, const mlc_value *item) {
  mlc_value *value = newValue(*rt, MLC_OPTIONAL, item != nullptr);
  if (value && item)
    value->items[0] = *item;
  return value;
}

const mlc_value *mlc_rt_optional_get(mlc_rt *rt, const mlc_value *optional,
                                     int64_t node) {
  if (optional->num_items == 1)
    return &optional->items[0];
  rt->error[0] = (node + 1) * 16 + MLC_RT_OTHER;
  rt->error[1] = 0;
  return nullptr;
}

const void *mlc_rt_data(const mlc_value *tensor) { return tensor->tensor.data; }

int64_t mlc_rt_rank(const mlc_value *tensor) { return tensor->tensor.ndim; }

int64_t mlc_rt_dim_of(const mlc_value *tensor, int64_t axis) {
  return tensor->tensor.shape[axis];
}

const char *mlc_rt_text(mlc_rt *rt, const char *data, int64_t size) {
  void *copy = takeBlock(*rt, size);
  if (copy && size)
    memcpy(copy, data, size);
  return static_cast<const char *>(copy);
}
