// Carries out the instructions of Intel's matrix tiles (AMX-TILE, AMX-BF16,
// AMX-INT8) on processors that have none: they trap as illegal, and a handler
// of SIGILL does what the "Intel 64 and IA-32 Architectures Software
// Developer's Manual" says of them, each thread with tiles of its own. What the
// manual calls a fault ends the process with a line that says which. All other
// illegal instructions are left to the handler that was there before.
//
//   tiles_start()        from now on, 0 if all is well
//   tiles_stop()         the handler from before is back
//   tiles_count("...")   how often an instruction ran since the start, -1 for
//                        one that is not known
//   tiles_configured()   whether this thread has tiles: 0 after tilerelease
//
// Instructions have no segment or address-size prefix here: compilers write
// neither for memory that a 64-bit register points to.

#define _GNU_SOURCE
#include <immintrin.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, CONFIG_BYTES = 64 };

typedef struct {
  uint8_t palette;
  uint8_t rows[TILES];
  uint16_t colsb[TILES];
  uint8_t data[TILES][ROWS][ROW_BYTES];
  unsigned start; // of the emulator: what an earlier one left does not count
} State;

static _Thread_local State state;
static unsigned starts;
static struct sigaction before;

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

typedef struct {
  const char *name;
  int is_register, reg, rm, vvvv;
  int has_sib;
  // An operand in memory: base and displacement, and the index times its scale.
  uint64_t address, index;
  const uint8_t *next; // the instruction that follows
} Instruction;

typedef struct {
  const char *name;
  uint8_t opcode, prefix; // of the map 0F38; VEX.pp: none, 66, F3, F2
  int8_t is_register;     // ModRM.mod is 11
  int8_t reg, rm;         // the fields of ModRM that are part of the opcode
  void (*run)(const Instruction *);
  uint64_t count;
} Opcode;

static _Noreturn __attribute__((format(printf, 2, 3))) void
fault(const Instruction *in, const char *format, ...) {
  char line[256];
  size_t size = sizeof line - 1;
  size_t used = (size_t)snprintf(line, size, "tile emulator: %s: ", in->name);
  va_list arguments;
  va_start(arguments, format);
  used += (size_t)vsnprintf(line + used, size - used, format, arguments);
  va_end(arguments);
  line[used++] = '\n';
  if (write(2, line, used) < 0)
    _exit(1);
  abort();
}

/// The general register that instructions call `number`.
static uint64_t generalRegister(const ucontext_t *context, int number) {
  static const int order[16] = {
      REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return (uint64_t)context->uc_mcontext.gregs[order[number]];
}

static int32_t read32(const uint8_t *p) {
  int32_t value;
  memcpy(&value, p, sizeof value);
  return value;
}

/// Decodes the operand in memory that ModRM, at `p`, describes. `x` and `b`
/// extend the numbers of index and base.
static void decodeMemory(Instruction *in, const ucontext_t *context,
                         const uint8_t *p, int x, int b) {
  int mod = *p >> 6, rm = *p & 7, base = rm;
  ++p;
  in->has_sib = rm == 4;
  if (in->has_sib) {
    int scale = *p >> 6, index = (*p >> 3 & 7) | x;
    base = *p++ & 7;
    in->index = index == 4 ? 0 : generalRegister(context, index) << scale;
  }
  if (mod == 0 && base == 5) { // no base: the next instruction or nothing
    in->next = p + 4;
    in->address = (uint64_t)(int64_t)read32(p);
    if (!in->has_sib)
      in->address += (uint64_t)in->next;
    return;
  }
  in->address = generalRegister(context, base | b);
  if (mod == 1)
    in->address += (uint64_t)(int64_t)(int8_t)*p;
  if (mod == 2)
    in->address += (uint64_t)(int64_t)read32(p);
  in->next = p + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static Opcode *findOpcode(const uint8_t *p);

/// Decodes what is at the instruction pointer; null if that is no instruction
/// of tiles.
static Opcode *decode(Instruction *in, const ucontext_t *context) {
  // C4, then R X B and the map, then W vvvv L pp; R, X, B, vvvv inverted.
  const uint8_t *p = (const uint8_t *)context->uc_mcontext.gregs[REG_RIP];
  if (p[0] != 0xc4 || (p[1] & 0x1f) != 2 || (p[2] & 0x84))
    return NULL;
  Opcode *opcode = findOpcode(p);
  if (!opcode)
    return NULL;
  int r = p[1] & 0x80 ? 0 : 8, x = p[1] & 0x40 ? 0 : 8;
  int b = p[1] & 0x20 ? 0 : 8;
  *in = (Instruction){.name = opcode->name,
                      .is_register = p[4] >> 6 == 3,
                      .reg = (p[4] >> 3 & 7) | r,
                      .rm = (p[4] & 7) | b,
                      .vvvv = ~p[2] >> 3 & 15,
                      .next = p + 5};
  if (!in->is_register)
    decodeMemory(in, context, p + 4, x, b);
  return opcode;
}

//===----------------------------------------------------------------------===//
// Configuration
//===----------------------------------------------------------------------===//

static void checkNoThirdOperand(const Instruction *in) {
  if (in->vvvv)
    fault(in, "VEX.vvvv is %d, not unused", in->vvvv);
}

static void expectZeros(const Instruction *in, const uint8_t *bytes, int from,
                        int to) {
  for (int i = from; i < to; ++i)
    if (bytes[i])
      fault(in, "reserved byte %d of the configuration is %d", i, bytes[i]);
}

static void release(void) {
  unsigned start = state.start;
  memset(&state, 0, sizeof state);
  state.start = start;
}

static void ldtilecfg(const Instruction *in) {
  checkNoThirdOperand(in);
  uint8_t bytes[CONFIG_BYTES];
  memcpy(bytes, (const void *)(in->address + in->index), sizeof bytes);
  if (bytes[0] > 1)
    fault(in, "there is no palette %d", bytes[0]);
  release();
  if (bytes[0] == 0)
    return;
  // The processor allows a row to start with, for loads that an interrupt cut
  // off; code that asks for one has overwritten its configuration.
  if (bytes[1])
    fault(in, "the configuration starts in row %d", bytes[1]);
  expectZeros(in, bytes, 2, 16);
  expectZeros(in, bytes, 32, 48);
  expectZeros(in, bytes, 56, 64);
  for (int t = 0; t < TILES; ++t) {
    int colsb = bytes[16 + 2 * t] | bytes[17 + 2 * t] << 8;
    int rows = bytes[48 + t];
    if (colsb > ROW_BYTES)
      fault(in, "tile %d has %d bytes a row, more than 64", t, colsb);
    if (rows > ROWS)
      fault(in, "tile %d has %d rows, more than 16", t, rows);
    if (!colsb != !rows)
      fault(in, "tile %d has %d rows of %d bytes", t, rows, colsb);
    state.colsb[t] = (uint16_t)colsb;
    state.rows[t] = (uint8_t)rows;
  }
  state.palette = bytes[0];
}

static void sttilecfg(const Instruction *in) {
  checkNoThirdOperand(in);
  uint8_t bytes[CONFIG_BYTES] = {state.palette};
  for (int t = 0; t < TILES; ++t) {
    bytes[16 + 2 * t] = (uint8_t)state.colsb[t];
    bytes[48 + t] = state.rows[t];
  }
  memcpy((void *)(in->address + in->index), bytes, sizeof bytes);
}

static void tilerelease(const Instruction *in) {
  checkNoThirdOperand(in);
  release();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Tile `number`, which has to be configured.
static int validTile(const Instruction *in, int number) {
  if (!state.palette)
    fault(in, "no tiles are configured");
  if (number >= TILES)
    fault(in, "there is no tile %d", number);
  if (!state.rows[number])
    fault(in, "tile %d is not configured", number);
  return number;
}

static void checkWholeElements(const Instruction *in, int tile) {
  if (state.colsb[tile] % 4)
    fault(in, "tile %d has %d bytes a row, no multiple of 4", tile,
          state.colsb[tile]);
}

static void tilezero(const Instruction *in) {
  checkNoThirdOperand(in);
  memset(state.data[validTile(in, in->reg)], 0, sizeof state.data[0]);
}

/// The tile of an instruction that walks through memory in strides.
static int walkingTile(const Instruction *in) {
  checkNoThirdOperand(in);
  if (!in->has_sib)
    fault(in, "the operand in memory has no SIB byte");
  int tile = validTile(in, in->reg);
  checkWholeElements(in, tile);
  return tile;
}

static void tileload(const Instruction *in) {
  int tile = walkingTile(in);
  memset(state.data[tile], 0, sizeof state.data[tile]);
  for (int row = 0; row < state.rows[tile]; ++row)
    memcpy(state.data[tile][row], (const void *)(in->address + row * in->index),
           state.colsb[tile]);
}

static void tilestored(const Instruction *in) {
  int tile = walkingTile(in);
  for (int row = 0; row < state.rows[tile]; ++row)
    memcpy((void *)(in->address + row * in->index), state.data[tile][row],
           state.colsb[tile]);
}

//===----------------------------------------------------------------------===//
// Products: C = ModRM.reg, rows x columns; A = ModRM.rm, rows x depth;
// B = VEX.vvvv, depth x columns; all counted in elements of four bytes
//===----------------------------------------------------------------------===//

typedef struct {
  uint8_t (*c)[ROW_BYTES];
  uint8_t (*a)[ROW_BYTES];
  uint8_t (*b)[ROW_BYTES];
  int rows, columns, depth;
} Product;

static Product product(const Instruction *in) {
  int c = validTile(in, in->reg), a = validTile(in, in->rm);
  int b = validTile(in, in->vvvv);
  if (c == a || c == b || a == b)
    fault(in, "tile %d stands for two operands", c == a || c == b ? c : a);
  const int tiles[3] = {c, a, b};
  for (int i = 0; i < 3; ++i)
    checkWholeElements(in, tiles[i]);
  if (state.rows[c] != state.rows[a])
    fault(in, "C has %d rows, A has %d", state.rows[c], state.rows[a]);
  if (state.colsb[c] != state.colsb[b])
    fault(in, "C has %d bytes a row, B has %d", state.colsb[c], state.colsb[b]);
  if (state.colsb[a] / 4 != state.rows[b])
    fault(in, "A has %d bytes a row, B has %d rows", state.colsb[a],
          state.rows[b]);
  return (Product){state.data[c], state.data[a],      state.data[b],
                   state.rows[c], state.colsb[c] / 4, state.rows[b]};
}

static float element(const uint8_t *row, int number) {
  float value;
  memcpy(&value, row + 4 * number, sizeof value);
  return value;
}

/// A bfloat16 of a row.
static float half(const uint8_t *row, int number) {
  uint16_t bits;
  memcpy(&bits, row + 2 * number, sizeof bits);
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/// First and second elements of pairs are summed on their own, in order, by
/// fused multiply-adds; then the two sums, and these with C.
static void tdpbf16ps(const Instruction *in) {
  Product p = product(in);
  for (int m = 0; m < p.rows; ++m) {
    float sums[ROW_BYTES / 2] = {0};
    for (int k = 0; k < p.depth; ++k)
      for (int n = 0; n < p.columns; ++n)
        for (int i = 0; i < 2; ++i)
          sums[2 * n + i] = fmaf(half(p.a[m], 2 * k + i),
                                 half(p.b[k], 2 * n + i), sums[2 * n + i]);
    for (int n = 0; n < p.columns; ++n) {
      float sum = element(p.c[m], n) + (sums[2 * n] + sums[2 * n + 1]);
      memcpy(p.c[m] + 4 * n, &sum, sizeof sum);
    }
  }
}

/// Sums, that wrap around, of products of four bytes of A and of B.
static inline __attribute__((always_inline)) void
sumQuads(const Instruction *in, int signed_a, int signed_b) {
  Product p = product(in);
  for (int m = 0; m < p.rows; ++m) {
    uint32_t sums[ROW_BYTES / 4];
    memcpy(sums, p.c[m], sizeof sums);
    for (int k = 0; k < p.depth; ++k)
      for (int n = 0; n < p.columns; ++n)
        for (int i = 0; i < 4; ++i) {
          uint8_t a = p.a[m][4 * k + i], b = p.b[k][4 * n + i];
          sums[n] += (uint32_t)((signed_a ? (int8_t)a : a) *
                                (signed_b ? (int8_t)b : b));
        }
    memcpy(p.c[m], sums, sizeof sums);
  }
}

static void tdpbssd(const Instruction *in) { sumQuads(in, 1, 1); }
static void tdpbsud(const Instruction *in) { sumQuads(in, 1, 0); }
static void tdpbusd(const Instruction *in) { sumQuads(in, 0, 1); }
static void tdpbuud(const Instruction *in) { sumQuads(in, 0, 0); }

//===----------------------------------------------------------------------===//
// The handler
//===----------------------------------------------------------------------===//

enum { NONE, P66, PF3, PF2, ANY = -1 };

static Opcode opcodes[] = {
    {"ldtilecfg", 0x49, NONE, 0, 0, ANY, ldtilecfg, 0},
    {"sttilecfg", 0x49, P66, 0, 0, ANY, sttilecfg, 0},
    {"tilerelease", 0x49, NONE, 1, 0, 0, tilerelease, 0},
    {"tilezero", 0x49, PF2, 1, ANY, 0, tilezero, 0},
    {"tileloadd", 0x4b, PF2, 0, ANY, ANY, tileload, 0},
    {"tileloaddt1", 0x4b, P66, 0, ANY, ANY, tileload, 0},
    {"tilestored", 0x4b, PF3, 0, ANY, ANY, tilestored, 0},
    {"tdpbf16ps", 0x5c, PF3, 1, ANY, ANY, tdpbf16ps, 0},
    {"tdpbssd", 0x5e, PF2, 1, ANY, ANY, tdpbssd, 0},
    {"tdpbsud", 0x5e, PF3, 1, ANY, ANY, tdpbsud, 0},
    {"tdpbusd", 0x5e, P66, 1, ANY, ANY, tdpbusd, 0},
    {"tdpbuud", 0x5e, NONE, 1, ANY, ANY, tdpbuud, 0},
};
enum { OPCODES = sizeof opcodes / sizeof *opcodes };

static Opcode *findOpcode(const uint8_t *p) {
  for (Opcode *o = opcodes; o != opcodes + OPCODES; ++o)
    if (o->opcode == p[3] && o->prefix == (p[2] & 3) &&
        o->is_register == (p[4] >> 6 == 3) &&
        (o->reg == ANY || o->reg == (p[4] >> 3 & 7)) &&
        (o->rm == ANY || o->rm == (p[4] & 7)))
      return o;
  return NULL;
}

static void passOn(int number, siginfo_t *info, void *context) {
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(number, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(number);
  else // the instruction traps once more, and that ends the process
    signal(number, SIG_DFL);
}

static void handle(int number, siginfo_t *info, void *opaque) {
  ucontext_t *context = opaque;
  Instruction instruction;
  Opcode *opcode = decode(&instruction, context);
  if (!opcode) {
    passOn(number, info, opaque);
    return;
  }
  if (state.start != starts) {
    release();
    state.start = starts;
  }
  // Denormals are zeros and rounding is to nearest even, whatever the program
  // says; its own MXCSR comes back with its other registers.
  _mm_setcsr(0x1f80 | _MM_DENORMALS_ZERO_ON | _MM_FLUSH_ZERO_ON);
  opcode->run(&instruction);
  __atomic_fetch_add(&opcode->count, 1, __ATOMIC_RELAXED);
  context->uc_mcontext.gregs[REG_RIP] = (greg_t)instruction.next;
}

int tiles_start(void) {
  for (Opcode *o = opcodes; o != opcodes + OPCODES; ++o)
    o->count = 0;
  ++starts;
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
  return sigaction(SIGILL, &action, &before);
}

int tiles_stop(void) { return sigaction(SIGILL, &before, NULL); }

int64_t tiles_count(const char *name) {
  for (Opcode *o = opcodes; o != opcodes + OPCODES; ++o)
    if (!strcmp(o->name, name))
      return (int64_t)__atomic_load_n(&o->count, __ATOMIC_RELAXED);
  return -1;
}

int tiles_configured(void) {
  return state.start == starts && state.palette != 0;
}
