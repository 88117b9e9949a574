// BLAKE2b (RFC 7693), 256-bit digests without a key.
#ifndef MLC_RUNTIME_BLAKE2B_H
#define MLC_RUNTIME_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

namespace mlc {

constexpr size_t kDigestSize = 32;

void blake2b(const void *data, size_t size, uint8_t digest[kDigestSize]);

} // namespace mlc

#endif
