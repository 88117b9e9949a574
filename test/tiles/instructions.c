// Every instruction of matrix tiles, as compilers and assemblers encode it, for
// test_emulator.py.

#include <immintrin.h>
#include <stdint.h>

void configure(const void *config) { _tile_loadconfig(config); }
void stored_configuration(void *config) { _tile_storeconfig(config); }
void release(void) { _tile_release(); }

/// D = C + A * B in tiles that are configured: 0 is C, 1 is A, 2 is B.
#define PRODUCT(NAME, INSTRUCTION)                                             \
  void NAME(const void *c, long cs, const void *a, long as, const void *b,     \
            long bs, void *d, long ds) {                                       \
    _tile_loadd(0, c, cs);                                                     \
    _tile_loadd(1, a, as);                                                     \
    _tile_stream_loadd(2, b, bs);                                              \
    INSTRUCTION(0, 1, 2);                                                      \
    _tile_stored(0, d, ds);                                                    \
  }

PRODUCT(tdpbf16ps, _tile_dpbf16ps)
PRODUCT(tdpbssd, _tile_dpbssd)
PRODUCT(tdpbsud, _tile_dpbsud)
PRODUCT(tdpbusd, _tile_dpbusd)
PRODUCT(tdpbuud, _tile_dpbuud)

/// The same where rounding is upwards and denormals count; whether MXCSR is as
/// it was.
int rounding_up(const void *c, long cs, const void *a, long as, const void *b,
                long bs, void *d, long ds) {
  unsigned before = _mm_getcsr(), mine = 0x1f80 | _MM_ROUND_UP;
  _mm_setcsr(mine);
  tdpbf16ps(c, cs, a, as, b, bs, d, ds);
  unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  return after == mine;
}

/// The product in tiles of other numbers: 7 is C, 3 is A, 5 is B.
void other_tiles(const void *c, long cs, const void *a, long as, const void *b,
                 long bs, void *d, long ds) {
  _tile_loadd(7, c, cs);
  _tile_loadd(3, a, as);
  _tile_loadd(5, b, bs);
  _tile_dpbf16ps(7, 3, 5);
  _tile_stored(7, d, ds);
}

/// Tile 0 to memory after something else was in it.
void zeros(const void *from, void *to, long stride) {
  _tile_loadd(0, from, stride);
  _tile_zero(0);
  _tile_stored(0, to, stride);
}

/// Whether vector and general registers keep what they have.
int registers(const void *from, void *to, long stride) {
  uint64_t general = 0x0123456789abcdef, vector = 0;
  __asm__ volatile("vmovq %[g], %%xmm9\n\t"
                   "vbroadcastsd %%xmm9, %%ymm9\n\t"
                   "tileloadd (%[from], %[stride]), %%tmm0\n\t"
                   "tdpbf16ps %%tmm2, %%tmm1, %%tmm0\n\t"
                   "tilestored %%tmm0, (%[to], %[stride])\n\t"
                   "vextractf128 $1, %%ymm9, %%xmm9\n\t"
                   "vmovq %%xmm9, %[v]"
                   : [g] "+r"(general), [v] "=r"(vector)
                   : [from] "r"(from), [to] "r"(to), [stride] "r"(stride)
                   : "xmm9", "memory");
  return general == 0x0123456789abcdef && vector == general;
}

//===----------------------------------------------------------------------===//
// Addresses: copies through tile 0 whose load is written in another way each.
// `stride` are bytes.
//===----------------------------------------------------------------------===//

#define COPY(NAME, SETUP, OPERAND)                                             \
  void NAME(const char *from, char *to, long stride) {                         \
    register const char *base __asm__("rsi") = from;                           \
    register long step __asm__("rdx") = stride;                                \
    __asm__ volatile(SETUP "tileloadd " OPERAND ", %%tmm0\n\t"                 \
                           "tilestored %%tmm0, (%[to], %[step])"               \
                     :                                                         \
                     : [to] "r"(to), [step] "r"(step), "r"(base)               \
                     : "memory", "rax", "rbx", "rcx", "r8", "r9", "r11",       \
                       "r12", "r13", "r14");                                   \
  }

COPY(plain, "", "(%%rsi, %%rdx)")
COPY(scale_8, "mov %%rdx, %%rax; sar $3, %%rax;", "(%%rsi, %%rax, 8)")
COPY(scale_4_r9, "mov %%rdx, %%r9; sar $2, %%r9;", "(%%rsi, %%r9, 4)")
COPY(scale_2_r12, "mov %%rdx, %%r12; sar $1, %%r12;", "(%%rsi, %%r12, 2)")
COPY(base_r12, "mov %%rsi, %%r12;", "(%%r12, %%rdx)")
COPY(base_r13, "mov %%rsi, %%r13;", "(%%r13, %%rdx)")
COPY(base_and_index, "mov %%rsi, %%r14; mov %%rdx, %%r11;", "(%%r14, %%r11)")
COPY(near, "lea -64(%%rsi), %%r8;", "64(%%r8, %%rdx)")
COPY(near_below, "lea 128(%%rsi), %%rcx;", "-128(%%rcx, %%rdx)")
COPY(far, "lea -4096(%%rsi), %%rbx;", "4096(%%rbx, %%rdx)")
COPY(far_below, "lea 65536(%%rsi), %%r13;", "-65536(%%r13, %%rdx)")

/// On the stack: the first row only, as there is no index.
void no_index(const char *from, char *to) {
  __asm__ volatile("mov %0, %%rbx\n\ttileloadd (%%rbx), %%tmm0\n\t"
                   "mov %1, %%r12\n\ttilestored %%tmm0, (%%r12)"
                   :
                   : "r"(from), "r"(to)
                   : "rbx", "r12", "memory");
}

static const uint8_t kSmall[64] = {[0] = 1, [16] = 8, [48] = 3};
static uint8_t written[64];

/// Configurations relative to the next instruction, with a base, an index and
/// a displacement, and with an index only.
void relative(void *config) {
  __asm__ volatile("ldtilecfg %1\n\tsttilecfg %0"
                   : "=m"(written)
                   : "m"(kSmall));
  __asm__ volatile("mov $3, %%ecx\n\tsttilecfg 8(%0, %%rcx, 8)\n\t"
                   "tilerelease\n\tldtilecfg 0(, %1, 1)"
                   :
                   : "r"((char *)config - 32), "r"(config)
                   : "rcx", "memory");
}

/// What `relative` left in the place next to the instruction.
const void *what_was_written(void) { return written; }

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

/// The product of tiles 0, 1 and 2.
void multiply(void) { _tile_dpbssd(0, 1, 2); }
void multiply_floats(void) { _tile_dpbf16ps(0, 1, 2); }
void zero_7(void) { _tile_zero(7); }
void load_7(void) { _tile_loadd(7, written, 0); }
void store_7(void) { _tile_stored(7, written, 0); }
// tileloadd (%rax, %rcx), %tmm8: no assembler writes one
void load_8(void) { __asm__ volatile(".byte 0xc4, 0x62, 0x7b, 0x4b, 4, 8"); }
// tdpbssd %tmm8, %tmm1, %tmm0
void multiply_8(void) {
  __asm__ volatile(".byte 0xc4, 0xe2, 0x3b, 0x5e, 0xc1");
}
// tdpbssd %tmm1, %tmm1, %tmm0: no assembler writes that either
void same_operands(void) {
  __asm__ volatile(".byte 0xc4, 0xe2, 0x73, 0x5e, 0xc1");
}
// tileloadd (%rax), %tmm0 without SIB
void no_sib(void) { __asm__ volatile(".byte 0xc4, 0xe2, 0x7b, 0x4b, 0x00"); }
// tilezero %tmm0 with VEX.vvvv = 1
void third_operand(void) {
  __asm__ volatile(".byte 0xc4, 0xe2, 0x73, 0x49, 0xc0");
}
// tdpfp16ps %tmm2, %tmm1, %tmm0, of AMX-FP16
void another_extension(void) {
  __asm__ volatile(".byte 0xc4, 0xe2, 0x6b, 0x5c, 0xc1");
}
void undefined(void) { __asm__ volatile("ud2"); }
