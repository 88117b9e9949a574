/* What this machine can do at most.
 *
 *   cc -O3 -march=native -ffp-contract=fast -pthread peak.c -o peak
 *   ./peak THREADS fp32          GFLOP/s of fused multiply-adds on registers,
 *                                in each of RUNS pieces of equal work, and the
 *                                seconds of each
 *   ./peak THREADS bf16          the same of bf16 products summed in fp32: on
 *                                matrix tiles where there are any, else by the
 *                                instruction for pairs or by multiply-adds of
 *                                fp32, whichever is faster
 *   ./peak THREADS int8          the same of products of bytes summed in 32
 *                                bits; on AVX2 without VNNI, of pairs of them
 *                                summed in 16 bits
 *   ./peak THREADS copy BYTES    GB/s, read and written, of a copy that touches
 *                                BYTES in all, again and again
 *
 * A multiply-add counts as two. Every number is the sum over the threads.
 * Pieces take a millisecond or so and follow each other without a pause:
 * whatever interrupts a core interrupts some of them.
 *
 * Every value changes in every step, between two numbers with unlike mantissas:
 * a core that multiplies constants needs less power and may clock higher than
 * it does on any real data (by 9% on Zen 4), which would be no peak to compare
 * with.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__AVX2__)
#include <immintrin.h>
#endif
#if defined(__linux__) && defined(__AMX_BF16__) && defined(__AMX_INT8__) &&    \
    defined(__AVX512BF16__) && defined(__AVX512VNNI__)
#define TILES 1
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__AVX512F__)
#define WIDTH 16
#elif defined(__AVX__)
#define WIDTH 8
#else
#define WIDTH 4
#endif

/* Independent chains: more than latency times throughput of any current core,
 * and still within the registers. */
#define CHAINS 12
#define STEPS 400000L
#define RUNS 60
#define MAX_THREADS 256
#define COPY_SECONDS 0.03
#define FLOPS_OF_A_RUN (2.0 * WIDTH * CHAINS * (double)STEPS)

typedef float vec __attribute__((vector_size(WIDTH * sizeof(float))));

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static volatile float sink;

/* What one piece of work reached, in a billion a second. Copies have one. */
struct piece {
  double rate, seconds;
};
static struct piece pieces[MAX_THREADS][RUNS];
static size_t copy_bytes; /* of one thread, both arrays */

/* Seconds of one run. */
static double one_run(void) {
  vec acc[CHAINS], factor, addend;
  for (int lane = 0; lane < WIDTH; ++lane) {
    factor[lane] = -1.0f;
    addend[lane] = 0.37f + 0.618034f * (float)lane;
    for (int i = 0; i < CHAINS; ++i)
      acc[i][lane] = 0.7312f * (float)((i * 31 + lane * 17) % 23);
  }
  double start = now();
  for (long step = 0; step < STEPS; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; ++i)
      acc[i] = acc[i] * factor + addend;
  }
  double elapsed = now() - start;
  float total = 0;
  for (int i = 0; i < CHAINS; ++i)
    total += acc[i][0];
  sink = total;
  return elapsed;
}

static void *fp32(void *result) {
  struct piece *piece = result;
  for (int run = 0; run < RUNS; ++run, ++piece) {
    piece->seconds = one_run();
    piece->rate = FLOPS_OF_A_RUN / piece->seconds * 1e-9;
  }
  return NULL;
}

#if defined(TILES)
#define FLOPS_OF_A_TILE (2.0 * 16 * 16 * 64) /* of bytes; half of bf16 */
#define TILE_STEPS (STEPS / 32)

/* Whether Linux grants this process matrix tiles; then this thread has eight of
 * 16 rows of 64 bytes. */
static int configure_tiles(void) {
  if (syscall(SYS_arch_prctl, 0x1023 /* request permission */, 18) != 0)
    return 0;
  /* Volatile: GCC believes that the instruction reads eight bytes of it. */
  static _Thread_local volatile unsigned char shape[64]
      __attribute__((aligned(64)));
  shape[0] = 1;
  for (int i = 0; i < 8; ++i) {
    shape[16 + 2 * i] = 64;
    shape[48 + i] = 16;
  }
  __asm__ volatile("" ::: "memory");
  _tile_loadconfig((const void *)shape);
  return 1;
}

/* Two steps by four chains, which go up and down again; the operands of `add`
 * are the left ones in tiles 4 and 7, those that raise and lower in 5 and 6. */
#define TWO_STEPS(add)                                                         \
  {                                                                            \
    add(0, 4, 5);                                                              \
    add(1, 7, 5);                                                              \
    add(2, 4, 6);                                                              \
    add(3, 7, 6);                                                              \
    add(0, 4, 6);                                                              \
    add(1, 7, 6);                                                              \
    add(2, 4, 5);                                                              \
    add(3, 7, 5);                                                              \
  }

static double one_tile_run(const void *left, const void *up, const void *down,
                           int is_bf16) {
  static _Thread_local int sums[256];
  _tile_loadd(4, left, 64);
  _tile_loadd(5, up, 64);
  _tile_loadd(6, down, 64);
  _tile_loadd(7, left, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  double start = now();
  if (is_bf16)
    for (long step = 0; step < TILE_STEPS / 2; ++step)
      TWO_STEPS(_tile_dpbf16ps)
  else
    for (long step = 0; step < TILE_STEPS / 2; ++step)
      TWO_STEPS(_tile_dpbusd)
  double elapsed = now() - start;
  _tile_stored(0, sums, 64);
  sink = (float)sums[1];
  return elapsed;
}

/* Measures all runs on tiles; 0 where there are none. */
static int tiles(struct piece *piece, int is_bf16) {
  static _Thread_local unsigned char left[1024], up[1024], down[1024];
  if (!configure_tiles())
    return 0;
  for (int i = 0; i < 1024; i += is_bf16 ? 2 : 1) {
    int noise = (31 + 17 * i) & 0x7f;
    left[i] = up[i] = (unsigned char)noise;
    down[i] = (unsigned char)(is_bf16 ? noise : -noise);
    if (is_bf16) { /* 1 to 2, and the same with the other sign */
      left[i + 1] = up[i + 1] = 0x3f;
      down[i + 1] = 0xbf;
    }
  }
  double flops = 4 * FLOPS_OF_A_TILE * (is_bf16 ? 0.5 : 1) * TILE_STEPS;
  for (int run = 0; run < RUNS; ++run, ++piece) {
    piece->seconds = one_tile_run(left, up, down, is_bf16);
    piece->rate = flops / piece->seconds * 1e-9;
  }
  _tile_release();
  return 1;
}
#endif

#if defined(__AVX512BF16__)
/* Sums go up and down again: products of two pairs with opposite signs. */
static double one_bf16_run(void) {
  __m512 acc[CHAINS], seed;
  float lanes[16];
  for (int lane = 0; lane < 16; ++lane)
    lanes[lane] = 0.37f + 0.618034f * (float)lane;
  seed = _mm512_loadu_ps(lanes);
  __m512bh left = _mm512_cvtne2ps_pbh(seed, _mm512_mul_ps(seed, seed));
  __m512bh up = _mm512_cvtne2ps_pbh(seed, seed);
  __m512bh down = _mm512_cvtne2ps_pbh(_mm512_sub_ps(_mm512_setzero_ps(), seed),
                                      _mm512_sub_ps(_mm512_setzero_ps(), seed));
  for (int i = 0; i < CHAINS; ++i)
    acc[i] = _mm512_mul_ps(seed, _mm512_set1_ps(0.7312f * (float)(i + 1)));
  double start = now();
  for (long step = 0; step < STEPS / 2; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; ++i)
      acc[i] = _mm512_dpbf16_ps(acc[i], left, up);
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; ++i)
      acc[i] = _mm512_dpbf16_ps(acc[i], left, down);
  }
  double elapsed = now() - start;
  __m512 total = acc[0];
  for (int i = 1; i < CHAINS; ++i)
    total = _mm512_add_ps(total, acc[i]);
  sink = _mm512_reduce_add_ps(total);
  return elapsed;
}

static void *bf16(void *result) {
  struct piece *piece = result;
#if defined(TILES)
  if (tiles(piece, 1))
    return NULL;
#endif
  if (one_bf16_run() > 2 * one_run())
    return fp32(result);
  for (int run = 0; run < RUNS; ++run, ++piece) {
    piece->seconds = one_bf16_run();
    piece->rate = 2 * FLOPS_OF_A_RUN / piece->seconds * 1e-9;
  }
  return NULL;
}
#else
static void *bf16(void *result) { return fp32(result); }
#endif

/* Bytes in vectors: what multiplies them, and how many products an instruction
 * is. */
#if defined(__AVX512VNNI__)
typedef __m512i bytes;
#define BYTE_PRODUCTS 64
#define ADD_PRODUCTS(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
#elif defined(__AVXVNNI__)
typedef __m256i bytes;
#define BYTE_PRODUCTS 32
#define ADD_PRODUCTS(sum, a, b) _mm256_dpbusd_avx_epi32(sum, a, b)
#elif defined(__AVX2__)
typedef __m256i bytes;
#define BYTE_PRODUCTS 32
/* Of the sums themselves: a product that does not change is computed once. In
 * one piece: GCC moves the two instructions apart until it runs out of
 * registers. */
static inline bytes add_products(bytes sum, bytes a, bytes b) {
  __asm__("vpmaddubsw %2, %0, %0\n\tvpaddw %1, %0, %0"
          : "+&x"(sum)
          : "x"(a), "x"(b));
  return sum;
}
#define ADD_PRODUCTS(sum, a, b) add_products(sum, a, b)
#endif

#if defined(BYTE_PRODUCTS)
/* Sums go up and down again, as those of bf16 do. */
static double one_int8_run(void) {
  signed char noise[sizeof(bytes)];
  bytes acc[CHAINS], left, up, down;
  for (int i = 0; i <= CHAINS; ++i) {
    for (int lane = 0; lane < (int)sizeof(bytes); ++lane)
      noise[lane] = (signed char)(31 + 17 * lane + 7 * i);
    memcpy(&left, noise, sizeof(bytes));
    if (i < CHAINS)
      acc[i] = left;
  }
  for (int lane = 0; lane < (int)sizeof(bytes); ++lane)
    noise[lane] &= 0x7f;
  memcpy(&up, noise, sizeof(bytes));
  for (int lane = 0; lane < (int)sizeof(bytes); ++lane)
    noise[lane] = (signed char)-noise[lane];
  memcpy(&down, noise, sizeof(bytes));
  double start = now();
  for (long step = 0; step < STEPS / 2; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; ++i)
      acc[i] = ADD_PRODUCTS(acc[i], left, up);
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; ++i)
      acc[i] = ADD_PRODUCTS(acc[i], left, down);
  }
  double elapsed = now() - start;
  for (int i = 1; i < CHAINS; ++i)
    acc[0] ^= acc[i];
  memcpy(noise, &acc[0], sizeof(bytes));
  sink = (float)noise[0];
  return elapsed;
}

static void *int8(void *result) {
  struct piece *piece = result;
#if defined(TILES)
  if (tiles(piece, 0))
    return NULL;
#endif
  for (int run = 0; run < RUNS; ++run, ++piece) {
    piece->seconds = one_int8_run();
    piece->rate = 2.0 * BYTE_PRODUCTS * CHAINS * STEPS / piece->seconds * 1e-9;
  }
  return NULL;
}
#else
static void *int8(void *result) {
  (void)result; /* zeros */
  return NULL;
}
#endif

/* Memory as models have it: from 2 MB on in huge pages where the system grants
 * them. A copy takes up to 1.4 times as long without. */
static void *tensor(size_t bytes) {
  size_t huge = (size_t)2 << 20, alignment = bytes < huge ? 64 : huge;
  size_t size = (bytes + alignment - 1) / alignment * alignment;
  void *memory = aligned_alloc(alignment, size);
#if defined(__linux__)
  if (memory && bytes >= huge)
    madvise(memory, size, MADV_HUGEPAGE);
#endif
  return memory;
}

static void *copy(void *result) {
  size_t vectors = copy_bytes / 2 / sizeof(vec);
  vec *from = tensor(vectors * sizeof(vec));
  vec *to = tensor(vectors * sizeof(vec));
  if (from && to && vectors) {
    memset(from, 1, vectors * sizeof(vec));
    memset(to, 2, vectors * sizeof(vec));
    long passes = 0;
    double start = now(), elapsed = 0;
    do {
      for (size_t i = 0; i < vectors; ++i)
        to[i] = from[i];
      __asm__ volatile("" ::: "memory");
      ++passes;
      elapsed = now() - start;
    } while (elapsed < COPY_SECONDS);
    double touched = 2.0 * (double)(vectors * sizeof(vec)) * (double)passes;
    *(struct piece *)result = (struct piece){touched / elapsed * 1e-9, elapsed};
  }
  free(from);
  free(to);
  return NULL;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  const char *what = argc > 2 ? argv[2] : "fp32";
  void *(*worker)(void *) = !strcmp(what, "fp32")   ? fp32
                            : !strcmp(what, "bf16") ? bf16
                            : !strcmp(what, "int8") ? int8
                            : !strcmp(what, "copy") ? copy
                                                    : NULL;
  if (threads < 1 || threads > MAX_THREADS || !worker ||
      (worker == copy) != (argc > 3)) {
    fprintf(stderr, "usage: peak THREADS fp32|bf16|int8|copy BYTES\n");
    return 2;
  }
  if (worker == copy)
    copy_bytes = strtoull(argv[3], NULL, 10) / (size_t)threads;
  pthread_t ids[MAX_THREADS];
  for (int i = 0; i < threads; ++i)
    if (pthread_create(&ids[i], NULL, worker, pieces[i]) != 0)
      return 1;
  for (int i = 0; i < threads; ++i)
    pthread_join(ids[i], NULL);
  for (int run = 0; run < (worker == copy ? 1 : RUNS); ++run) {
    double sum = 0;
    for (int i = 0; i < threads; ++i)
      sum += pieces[i][run].rate;
    printf("%.1f %.6f\n", sum, pieces[0][run].seconds);
  }
  return 0;
}
