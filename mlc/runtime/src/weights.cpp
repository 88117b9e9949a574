// External weights: a safetensors file whose data section is the weight image.
#include "blake2b.h"
#include "context.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mlc {

// The image's hash is BLAKE2b-256 of the concatenated BLAKE2b-256 digests of
// its leaves of this size (the last one may be shorter; an empty image has no
// leaf). A tree, so that all threads can work on it.
static constexpr size_t kLeaf = size_t{1} << 20;

namespace {
struct HashJob {
  const uint8_t *image;
  size_t size;
  uint8_t *digests;
};
} // namespace

static void hashLeaves(void *data, int64_t begin, int64_t end) {
  const HashJob &job = *static_cast<HashJob *>(data);
  for (int64_t i = begin; i < end; ++i) {
    size_t offset = i * kLeaf;
    size_t size = job.size - offset < kLeaf ? job.size - offset : kLeaf;
    blake2b(job.image + offset, size, job.digests + i * kDigestSize);
  }
}

static bool hashImage(mlc_instance &instance, const char *image, size_t size,
                      uint8_t digest[kDigestSize]) {
  size_t leaves = (size + kLeaf - 1) / kLeaf;
  auto *digests = static_cast<uint8_t *>(malloc(leaves * kDigestSize + 1));
  if (!digests)
    return false;
  HashJob job{reinterpret_cast<const uint8_t *>(image), size, digests};
  parallelRanges(instance, hashLeaves, &job, static_cast<int64_t>(leaves));
  blake2b(digests, leaves * kDigestSize, digest);
  free(digests);
  return true;
}

/// The path of mlc_program.weights_file in the folder of this library; false
/// when it is too long.
static bool besideLibrary(char *path, size_t capacity) {
  Dl_info info;
  const char *library = "";
  if (dladdr(&mlc_program, &info) && info.dli_fname)
    library = info.dli_fname;
  const char *slash = strrchr(library, '/');
  size_t folder = slash ? slash - library + 1 : 0;
  size_t file = strlen(mlc_program.weights_file);
  if (folder + file >= capacity)
    return false;
  memcpy(path, library, folder);
  memcpy(path + folder, mlc_program.weights_file, file + 1);
  return true;
}

/// Checks size, alignment and hash of the mapped file and sets
/// instance.weights.
static int32_t adoptMapping(mlc_instance &instance, const char *path,
                            bool checkHash, mlc_status *status) {
  const char *file = static_cast<const char *>(instance.mapping);
  size_t size = instance.mappingSize;
  uint64_t header = 0;
  if (size >= sizeof header)
    memcpy(&header, file, sizeof header);
  bool valid = size >= 8 && header <= size - 8;
  auto expected = static_cast<size_t>(mlc_program.weights_size);
  if (!valid || size - 8 - header != expected)
    return setStatus(status, MLC_ERROR_WEIGHTS,
                     "weight file '%s': expected %llu bytes of data behind its "
                     "header; it was written for another model",
                     path, static_cast<unsigned long long>(expected));
  const char *image = file + 8 + header;
  if (reinterpret_cast<uintptr_t>(image) % kAlignment)
    return setStatus(status, MLC_ERROR_WEIGHTS,
                     "weight file '%s': its data are not aligned to %d bytes; "
                     "write it with this compiler",
                     path, static_cast<int>(kAlignment));
  uint8_t digest[kDigestSize];
  if (checkHash) {
    if (!hashImage(instance, image, expected, digest))
      return setStatus(status, MLC_ERROR_OUT_OF_MEMORY, "out of memory");
    if (memcmp(digest, mlc_program.weights_hash, kDigestSize))
      return setStatus(status, MLC_ERROR_WEIGHTS,
                       "weight file '%s': its contents are not those that the "
                       "model was compiled with (the hash differs)",
                       path);
  }
  instance.weights = image;
  return MLC_OK;
}

int32_t mapWeights(mlc_instance &instance, const char *path, bool checkHash,
                   mlc_status *status) {
  char beside[4096];
  if (!path) {
    if (!besideLibrary(beside, sizeof beside))
      return setStatus(status, MLC_ERROR_WEIGHTS,
                       "the path of the weight file is too long");
    path = beside;
  }
  int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (file < 0 || fstat(file, &info) || info.st_size <= 0) {
    int reason = errno;
    if (file >= 0)
      close(file);
    return setStatus(status, MLC_ERROR_WEIGHTS,
                     "cannot read the weight file '%s': %s", path,
                     file < 0 ? strerror(reason) : "it is empty");
  }
  void *memory = mmap(nullptr, info.st_size, PROT_READ, MAP_SHARED, file, 0);
  int reason = errno;
  close(file);
  if (memory == MAP_FAILED)
    return setStatus(status, MLC_ERROR_WEIGHTS,
                     "cannot map the weight file '%s': %s", path,
                     strerror(reason));
  instance.mapping = memory;
  instance.mappingSize = info.st_size;
  int32_t code = adoptMapping(instance, path, checkHash, status);
  if (code)
    unmapWeights(instance);
  return code;
}

void unmapWeights(mlc_instance &instance) {
  if (instance.mapping)
    munmap(instance.mapping, instance.mappingSize);
  instance.mapping = nullptr;
}

} // namespace mlc
