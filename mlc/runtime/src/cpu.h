// What this processor, and the operating system on it, can do.
#ifndef MLC_RUNTIME_CPU_H
#define MLC_RUNTIME_CPU_H

#include "support.h"

namespace mlc {

/// Checks "+avx2,+fma,..." (LLVM's names; what does not begin with '+' is
/// ignored) against this machine. Appends the names that are missing to
/// `missing`, separated by ", ", and returns how many there are.
int checkCpu(const char *features, Text &missing);

} // namespace mlc

#endif
