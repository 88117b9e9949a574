#include "results.h"

#include <new>
#include <stdlib.h>

namespace mlc {

namespace {
/// Bytes from which on a result takes memory of an earlier one: below, what the
/// C library keeps is as good.
constexpr size_t kKept = size_t{64} << 10;
/// The cache of a decoder grows with each token: blocks are larger by this part
/// than what they are made for,
constexpr size_t kRoom = 8;
/// and take results that are smaller by this factor.
constexpr size_t kMost = 2;

class Locked {
public:
  explicit Locked(pthread_mutex_t &lock) : lock(lock) {
    pthread_mutex_lock(&lock);
  }
  ~Locked() { pthread_mutex_unlock(&lock); }

private:
  pthread_mutex_t &lock;
};
} // namespace

Owned *Owned::create(const Allocator &allocator, size_t bytes, Results *home) {
  void *memory = allocator.get(bytes);
  return memory ? new (memory) Owned{allocator, bytes, home} : nullptr;
}

void Owned::destroy() {
  Allocator copy = allocator;
  copy.put(this, bytes);
}

void Owned::drop() {
  if (home)
    home->giveBack(this);
  else
    destroy();
}

Results *Results::create() {
  void *memory = malloc(sizeof(Results));
  return memory ? new (memory) Results() : nullptr;
}

Owned *Results::take(const Allocator &allocator, size_t bytes) {
  return bytes < kKept
             ? Owned::create(allocator, sizeof(Owned) + bytes, nullptr)
             : takeLarge(allocator, sizeof(Owned) + bytes);
}

Owned *Results::takeLarge(const Allocator &allocator, size_t bytes) {
  Locked locked(lock);
  if (fresh && taken) {
    last = taken;
    taken = 0;
    shrink(last);
  }
  fresh = false;
  Owned *owned = fitting(bytes);
  if (!owned)
    owned = Owned::create(allocator, bytes + bytes / kRoom, this);
  if (owned) {
    taken += owned->bytes;
    references.fetch_add(1, std::memory_order_relaxed);
  }
  return owned;
}

/// The smallest free block that has room for `bytes` without much waste, which
/// is free no more.
Owned *Results::fitting(size_t bytes) {
  Owned **best = nullptr;
  for (Owned **link = &blocks; *link; link = &(*link)->next)
    if ((*link)->bytes >= bytes && (*link)->bytes / kMost <= bytes &&
        (!best || (*link)->bytes < (*best)->bytes))
      best = link;
  if (!best)
    return nullptr;
  Owned *owned = *best;
  *best = owned->next;
  held -= owned->bytes;
  return owned;
}

void Results::giveBack(Owned *owned) {
  pthread_mutex_lock(&lock);
  bool kept = !closed && held + owned->bytes <= (last > taken ? last : taken);
  if (kept) {
    owned->next = blocks;
    blocks = owned;
    held += owned->bytes;
  }
  pthread_mutex_unlock(&lock);
  if (!kept)
    owned->destroy();
  release();
}

/// Frees blocks until at most `most` bytes are held, first those that have been
/// free for longest.
void Results::shrink(size_t most) {
  while (held > most) {
    Owned **link = &blocks;
    while ((*link)->next)
      link = &(*link)->next;
    Owned *owned = *link;
    *link = nullptr;
    held -= owned->bytes;
    owned->destroy();
  }
}

void Results::close() {
  {
    Locked locked(lock);
    closed = true;
    shrink(0);
  }
  release();
}

void Results::release() {
  if (references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  free(this);
}

} // namespace mlc
