// The arena, and buffers whose sizes depend on data.
#include "context.h"

#include <new>

namespace mlc {

void *takeBlock(mlc_context &context, int64_t bytes) {
  if (bytes < 0 || bytes > PTRDIFF_MAX / 2) {
    context.fail(MLC_ERROR_OUT_OF_MEMORY,
                 "a temporary of %lld bytes cannot be allocated",
                 static_cast<long long>(bytes));
    return nullptr;
  }
  size_t wanted =
      alignUp(static_cast<size_t>(bytes), kAlignment) + sizeof(Block);
  // A block of an earlier run that fits without much waste.
  for (Block *block = context.blocks; block; block = block->next)
    if (!block->used && block->bytes >= wanted && block->bytes / 2 <= wanted) {
      block->used = true;
      return block + 1;
    }
  void *memory = context.instance->allocator.get(wanted);
  if (!memory) {
    context.fail(MLC_ERROR_OUT_OF_MEMORY,
                 "out of memory: a temporary of %lld bytes",
                 static_cast<long long>(bytes));
    return nullptr;
  }
  context.blocks = new (memory) Block{context.blocks, wanted, true};
  return context.blocks + 1;
}

void recycleBlocks(mlc_context &context) {
  for (Block **link = &context.blocks; *link;) {
    Block *block = *link;
    if (block->used) {
      block->used = false;
      link = &block->next;
    } else {
      *link = block->next;
      context.instance->allocator.put(block, block->bytes);
    }
  }
}

void freeBlocks(mlc_context &context) {
  recycleBlocks(context);
  recycleBlocks(context);
}

} // namespace mlc

using namespace mlc;

void *mlc_rt_arena(mlc_rt *rt, int64_t bytes) {
  // A second arena in one run must leave the first alone.
  if (rt->arenaTaken)
    return takeBlock(*rt, bytes);
  const Allocator &allocator = rt->instance->allocator;
  if (bytes < 0 || !rt->arena || static_cast<size_t>(bytes) > rt->arenaBytes) {
    allocator.put(rt->arena, rt->arenaBytes);
    rt->arenaBytes = alignUp(static_cast<size_t>(bytes), kAlignment);
    rt->arena = bytes < 0 ? nullptr : allocator.get(rt->arenaBytes);
    if (!rt->arena) {
      rt->arenaBytes = 0;
      rt->fail(MLC_ERROR_OUT_OF_MEMORY,
               "out of memory: entry '%s' needs an arena of %lld bytes",
               rt->entry->name, static_cast<long long>(bytes));
      return nullptr;
    }
  }
  rt->arenaTaken = true;
  return rt->arena;
}

void *mlc_rt_pool(mlc_rt *rt, int64_t bytes) { return takeBlock(*rt, bytes); }
