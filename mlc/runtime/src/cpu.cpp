#include "cpu.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace mlc {

#if defined(__x86_64__)

namespace {
enum Register { EAX, EBX, ECX, EDX };
// Register state that the operating system must save before instructions that
// use it may run: bits of XCR0.
enum State : uint32_t { None = 0, Ymm = 0x6, Zmm = 0xe6, Tile = 0x60000 };

struct Feature {
  const char *name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  State state;
};
} // namespace

// Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E.
static constexpr Feature kFeatures[] = {
    {"sse3", 1, 0, ECX, 0, None},
    {"pclmul", 1, 0, ECX, 1, None},
    {"ssse3", 1, 0, ECX, 9, None},
    {"fma", 1, 0, ECX, 12, Ymm},
    {"cx16", 1, 0, ECX, 13, None},
    {"sse4.1", 1, 0, ECX, 19, None},
    {"sse4.2", 1, 0, ECX, 20, None},
    {"crc32", 1, 0, ECX, 20, None},
    {"movbe", 1, 0, ECX, 22, None},
    {"popcnt", 1, 0, ECX, 23, None},
    {"aes", 1, 0, ECX, 25, None},
    {"xsave", 1, 0, ECX, 26, None},
    {"avx", 1, 0, ECX, 28, Ymm},
    {"f16c", 1, 0, ECX, 29, Ymm},
    {"rdrnd", 1, 0, ECX, 30, None},
    {"cx8", 1, 0, EDX, 8, None},
    {"cmov", 1, 0, EDX, 15, None},
    {"mmx", 1, 0, EDX, 23, None},
    {"fxsr", 1, 0, EDX, 24, None},
    {"sse", 1, 0, EDX, 25, None},
    {"sse2", 1, 0, EDX, 26, None},
    {"fsgsbase", 7, 0, EBX, 0, None},
    {"sgx", 7, 0, EBX, 2, None},
    {"bmi", 7, 0, EBX, 3, None},
    {"avx2", 7, 0, EBX, 5, Ymm},
    {"bmi2", 7, 0, EBX, 8, None},
    {"invpcid", 7, 0, EBX, 10, None},
    {"rtm", 7, 0, EBX, 11, None},
    {"avx512f", 7, 0, EBX, 16, Zmm},
    {"avx512dq", 7, 0, EBX, 17, Zmm},
    {"rdseed", 7, 0, EBX, 18, None},
    {"adx", 7, 0, EBX, 19, None},
    {"avx512ifma", 7, 0, EBX, 21, Zmm},
    {"clflushopt", 7, 0, EBX, 23, None},
    {"clwb", 7, 0, EBX, 24, None},
    {"avx512cd", 7, 0, EBX, 28, Zmm},
    {"sha", 7, 0, EBX, 29, None},
    {"avx512bw", 7, 0, EBX, 30, Zmm},
    {"avx512vl", 7, 0, EBX, 31, Zmm},
    {"avx512vbmi", 7, 0, ECX, 1, Zmm},
    {"pku", 7, 0, ECX, 4, None},
    {"waitpkg", 7, 0, ECX, 5, None},
    {"avx512vbmi2", 7, 0, ECX, 6, Zmm},
    {"shstk", 7, 0, ECX, 7, None},
    {"gfni", 7, 0, ECX, 8, None},
    {"vaes", 7, 0, ECX, 9, Ymm},
    {"vpclmulqdq", 7, 0, ECX, 10, Ymm},
    {"avx512vnni", 7, 0, ECX, 11, Zmm},
    {"avx512bitalg", 7, 0, ECX, 12, Zmm},
    {"avx512vpopcntdq", 7, 0, ECX, 14, Zmm},
    {"rdpid", 7, 0, ECX, 22, None},
    {"kl", 7, 0, ECX, 23, None},
    {"cldemote", 7, 0, ECX, 25, None},
    {"movdiri", 7, 0, ECX, 27, None},
    {"movdir64b", 7, 0, ECX, 28, None},
    {"enqcmd", 7, 0, ECX, 29, None},
    {"uintr", 7, 0, EDX, 5, None},
    {"avx512vp2intersect", 7, 0, EDX, 8, Zmm},
    {"serialize", 7, 0, EDX, 14, None},
    {"tsxldtrk", 7, 0, EDX, 16, None},
    {"pconfig", 7, 0, EDX, 18, None},
    {"amx-bf16", 7, 0, EDX, 22, Tile},
    {"avx512fp16", 7, 0, EDX, 23, Zmm},
    {"amx-tile", 7, 0, EDX, 24, Tile},
    {"amx-int8", 7, 0, EDX, 25, Tile},
    {"sha512", 7, 1, EAX, 0, Ymm},
    {"sm3", 7, 1, EAX, 1, Ymm},
    {"sm4", 7, 1, EAX, 2, Ymm},
    {"raoint", 7, 1, EAX, 3, None},
    {"avxvnni", 7, 1, EAX, 4, Ymm},
    {"avx512bf16", 7, 1, EAX, 5, Zmm},
    {"cmpccxadd", 7, 1, EAX, 7, None},
    {"amx-fp16", 7, 1, EAX, 21, Tile},
    {"hreset", 7, 1, EAX, 22, None},
    {"avxifma", 7, 1, EAX, 23, Ymm},
    {"avxvnniint8", 7, 1, EDX, 4, Ymm},
    {"avxneconvert", 7, 1, EDX, 5, Ymm},
    {"amx-complex", 7, 1, EDX, 8, Tile},
    {"avxvnniint16", 7, 1, EDX, 10, Ymm},
    {"prefetchi", 7, 1, EDX, 14, None},
    {"usermsr", 7, 1, EDX, 15, None},
    {"xsaveopt", 0xd, 1, EAX, 0, None},
    {"xsavec", 0xd, 1, EAX, 1, None},
    {"xsaves", 0xd, 1, EAX, 3, None},
    {"ptwrite", 0x14, 0, EBX, 4, None},
    {"widekl", 0x19, 0, EBX, 2, None},
    {"sahf", 0x80000001, 0, ECX, 0, None},
    {"lzcnt", 0x80000001, 0, ECX, 5, None},
    {"sse4a", 0x80000001, 0, ECX, 6, None},
    {"prfchw", 0x80000001, 0, ECX, 8, None},
    {"xop", 0x80000001, 0, ECX, 11, Ymm},
    {"lwp", 0x80000001, 0, ECX, 15, None},
    {"fma4", 0x80000001, 0, ECX, 16, Ymm},
    {"tbm", 0x80000001, 0, ECX, 21, None},
    {"mwaitx", 0x80000001, 0, ECX, 29, None},
    {"64bit", 0x80000001, 0, EDX, 29, None},
    {"clzero", 0x80000008, 0, EBX, 0, None},
    {"rdpru", 0x80000008, 0, EBX, 4, None},
    {"wbnoinvd", 0x80000008, 0, EBX, 9, None}};

static uint64_t enabledState() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1))
    return 0;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

/// Linux grants the large tile registers only to processes that ask.
static bool requestTiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

static bool hasFeature(const Feature &feature, uint64_t enabled) {
  uint32_t r[4];
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &r[EAX], &r[EBX],
                         &r[ECX], &r[EDX]))
    return false;
  if (!(r[feature.reg] >> feature.bit & 1))
    return false;
  if ((enabled & feature.state) != feature.state)
    return false;
  return feature.state != Tile || requestTiles();
}

static bool hasFeature(const char *name, size_t length) {
  uint64_t enabled = enabledState();
  for (const Feature &feature : kFeatures)
    if (strlen(feature.name) == length && !memcmp(feature.name, name, length))
      return hasFeature(feature, enabled);
  return false; // unknown: cannot be vouched for
}

#else

// Code for other architectures is compiled for their baseline.
static bool hasFeature(const char *, size_t) { return true; }

#endif

int checkCpu(const char *features, Text &missing) {
  int count = 0;
  for (const char *p = features; p && *p;) {
    size_t length = strcspn(p, ",");
    if (*p == '+' && !hasFeature(p + 1, length - 1))
      missing.add("%s%.*s", count++ ? ", " : "", static_cast<int>(length - 1),
                  p + 1);
    p += length;
    p += *p == ',';
  }
  return count;
}

} // namespace mlc
