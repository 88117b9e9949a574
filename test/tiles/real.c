// The matrix tiles of a machine that has them: permission to use them, and
// whether a thread has any (Intel, "64 and IA-32 Architectures Software
// Developer's Manual", volume 1, 13.6: XINUSE).

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kRequestPermission = 0x1023, kTileConfig = 17, kTileData = 18 };

/// Lets this process use tiles, of which this thread has none then. Returns 0
/// when it may.
int tiles_start(void) {
  int failed = (int)syscall(SYS_arch_prctl, kRequestPermission, kTileData);
  if (!failed)
    _tile_release();
  return failed;
}

/// Has this thread tiles that are configured?
int tiles_configured(void) { return (int)(_xgetbv(1) >> kTileConfig & 1); }
