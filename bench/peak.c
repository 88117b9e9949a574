/* The arithmetic peak of this machine: fp32 fused multiply-adds on registers,
 * no memory.
 *
 *   cc -O3 -march=native -ffp-contract=fast -pthread peak.c -o peak
 *   ./peak THREADS
 *
 * Prints GFLOP/s (a multiply-add counts as two): the sum over the threads of
 * the mean of 60 runs.
 *
 * Every value changes in every step, between two numbers with unlike mantissas:
 * a core that multiplies constants needs less power and may clock higher than
 * it does on any real data (by 9% on Zen 4), which would be no peak to compare
 * with.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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
#define FLOPS_OF_A_RUN (2.0 * WIDTH * CHAINS * (double)STEPS)

typedef float vec __attribute__((vector_size(WIDTH * sizeof(float))));

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static volatile float sink;

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

static void *worker(void *result) {
  double seconds = 0;
  for (int run = 0; run < RUNS; ++run)
    seconds += one_run();
  *(double *)result = FLOPS_OF_A_RUN * RUNS / seconds * 1e-9;
  return NULL;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  if (threads < 1 || threads > MAX_THREADS) {
    fprintf(stderr, "usage: peak [threads, 1 to %d]\n", MAX_THREADS);
    return 2;
  }
  pthread_t ids[MAX_THREADS];
  double rates[MAX_THREADS], sum = 0;
  for (int i = 0; i < threads; ++i)
    if (pthread_create(&ids[i], NULL, worker, &rates[i]) != 0)
      return 1;
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
    sum += rates[i];
  }
  printf("%.1f\n", sum);
  return 0;
}
