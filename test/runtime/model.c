/* A model written by hand against the internal ABI (docs/abi.md): what the
 * compiler's output looks like to the runtime.
 *
 *   forward   x float32[batch,4] -> y float32[batch,3]            a kernel over
 * rows, weights at offset 0 of the image select    data float32[n], indices
 * int64[k]
 *             -> picked float32[k], positive int64[?]             an index
 * check, a size known only at run time reverse   items sequence(float32[...]),
 * extra optional(float32[2])
 *             -> sequence(float32[...]), optional(float32[2])
 *   shout     words string[n] -> string[n]
 *   probe     n int64[1] -> state int64[n]                        per item: the
 * thread's FP control word checked   x float32[m,m] (m a multiple of 4) -> y
 * float32[m]  mlc_rt_check with a message, row sums
 *   extend    past float32[n] -> present float32[n], which may be past: 10 more
 * in the first element, and 1 more in the last one when past was copied
 */
#include "program.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifdef MODEL_EXTERNAL_WEIGHTS
#define WEIGHTS 0
#define WEIGHTS_FILE "model.safetensors"
#else
/* In tests without a weight image, two pages of the same content. */
#ifdef MODEL_STATIC_WEIGHTS
__attribute__((aligned(4096)))
const float mlc_weights[2048] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 100};
#else
extern __attribute__((visibility("hidden"))) const float mlc_weights[];
#endif
#define WEIGHTS (const char *)mlc_weights
#define WEIGHTS_FILE 0
#endif

#ifndef MODEL_FEATURES
#define MODEL_FEATURES "+sse2,+cx8"
#endif
#ifndef MODEL_HASH
#define MODEL_HASH {0}
#endif

static float *floats(int64_t word) { return (float *)(uintptr_t)word; }
static int64_t *ints(int64_t word) { return (int64_t *)(uintptr_t)word; }
static int64_t word(const void *pointer) { return (int64_t)(uintptr_t)pointer; }

/* --- forward: y = x w (4x3) + bias
 * ------------------------------------------------------------------------------
 */

static void rowProduct(int64_t *args, int64_t *error, int64_t begin,
                       int64_t end) {
  const float *x = floats(args[0]), *w = floats(args[1]);
  float *y = floats(args[2]);
  (void)error;
  for (int64_t row = begin; row < end; ++row)
    for (int j = 0; j < 3; ++j) {
      float sum = w[12];
      for (int k = 0; k < 4; ++k)
        sum += x[row * 4 + k] * w[k * 3 + j];
      y[row * 3 + j] = sum;
    }
}
static int64_t rowProductGrid(int64_t *args) { return args[3]; }

static void copyFloats(int64_t *args, int64_t *error, int64_t begin,
                       int64_t end) {
  (void)error;
  memcpy(floats(args[1]) + begin, floats(args[0]) + begin,
         sizeof(float) * (size_t)(end - begin));
}
static int64_t copyFloatsGrid(int64_t *args) { return args[2]; }

static int32_t forward(mlc_rt *rt, const int64_t *args) {
  int64_t batch = args[1], dims[2] = {batch, 3};
  float *temporary = mlc_rt_arena(rt, batch * 12);
  float *y = mlc_rt_output(rt, 0, 2, dims);
  if (!temporary || !y)
    return 1;
  int64_t first[] = {args[0], word(mlc_rt_weights(rt)), word(temporary), batch};
  int64_t second[] = {word(temporary), word(y), batch * 3};
  if (mlc_rt_launch(rt, rowProduct, rowProductGrid, first, 0))
    return 1;
  return mlc_rt_launch(rt, copyFloats, copyFloatsGrid, second, 1);
}

/* --- select
 * ------------------------------------------------------------------------------------------------------
 */

static void take(int64_t *args, int64_t *error, int64_t begin, int64_t end) {
  int64_t n = args[3];
  for (int64_t i = begin; i < end; ++i) {
    int64_t given = ints(args[1])[i], index = given < 0 ? given + n : given;
    if (index < 0 || index >= n) {
      /* Several threads may report; any of the errors will do, so the stores
       * are atomic and unordered. */
      __atomic_store_n(&error[1], given, __ATOMIC_RELAXED);
      __atomic_store_n(&error[0], (0 + 1) * 16 + MLC_RT_INDEX,
                       __ATOMIC_RELAXED);
      floats(args[2])[i] = 0;
      continue;
    }
    floats(args[2])[i] = floats(args[0])[index];
  }
}
static int64_t takeGrid(int64_t *args) { return args[4]; }

static int32_t selectPositive(mlc_rt *rt, const int64_t *args) {
  const float *data = floats(args[0]);
  int64_t n = args[2], k = args[3], count = 0;
  float *picked = mlc_rt_output(rt, 0, 1, &k);
  int64_t *found = mlc_rt_pool(rt, n * 8);
  if (!picked || !found)
    return 1;
  int64_t words[] = {args[0], args[1], word(picked), n, k};
  if (mlc_rt_launch(rt, take, takeGrid, words, 2))
    return 1;
  for (int64_t i = 0; i < n; ++i)
    if (data[i] > 0)
      found[count++] = i;
  int64_t *positive = mlc_rt_output(rt, 1, 1, &count);
  if (!positive)
    return 1;
  memcpy(positive, found, (size_t)count * 8);
  return 0;
}

/* --- reverse, shout
 * ----------------------------------------------------------------------------------------------
 */

static int32_t reverse(mlc_rt *rt, const int64_t *args) {
  const mlc_value *items = (const mlc_value *)(uintptr_t)args[0];
  const mlc_value *extra = (const mlc_value *)(uintptr_t)args[1];
  const mlc_value *result = mlc_rt_sequence(rt, 0, 0);
  for (int64_t i = mlc_rt_length(items); result && i-- > 0;) {
    const mlc_value *item = mlc_rt_sequence_at(rt, items, i, 1);
    result = item ? mlc_rt_sequence_insert(rt, result, item,
                                           mlc_rt_length(result), 1)
                  : 0;
  }
  if (!result || mlc_rt_output_value(rt, 0, result))
    return 1;
  const mlc_value *given =
      mlc_rt_length(extra) ? mlc_rt_optional_get(rt, extra, 1) : 0;
  const mlc_value *optional = mlc_rt_optional(rt, given);
  return !optional || mlc_rt_output_value(rt, 1, optional);
}

static int32_t shout(mlc_rt *rt, const int64_t *args) {
  const mlc_string *words = (const mlc_string *)(uintptr_t)args[0];
  mlc_string *result = mlc_rt_output(rt, 0, 1, &args[1]);
  for (int64_t i = 0; result && i < args[1]; ++i) {
    char *text = (char *)mlc_rt_text(rt, words[i].data, words[i].size);
    if (!text)
      return 1;
    for (int64_t j = 0; j < words[i].size; ++j)
      if (text[j] >= 'a' && text[j] <= 'z')
        text[j] -= 32;
    result[i].data = text;
    result[i].size = words[i].size;
  }
  return !result;
}

/* --- probe
 * -------------------------------------------------------------------------------------------------------
 */

static void readState(int64_t *args, int64_t *error, int64_t begin,
                      int64_t end) {
  (void)error;
  for (int64_t i = begin; i < end; ++i)
#if defined(__x86_64__)
    ints(args[0])[i] = _mm_getcsr() & ~0x3f; /* without the sticky flags */
#else
    ints(args[0])[i] = 0x1f80;
#endif
}
static int64_t readStateGrid(int64_t *args) { return args[1]; }

static int32_t probe(mlc_rt *rt, const int64_t *args) {
  int64_t n = ints(args[0])[0];
  int64_t *state = mlc_rt_output(rt, 0, 1, &n);
  int64_t words[] = {word(state), n};
  return !state || mlc_rt_launch(rt, readState, readStateGrid, words, 3);
}

/* --- checked
 * -----------------------------------------------------------------------------------------------------
 */

static int32_t checked(mlc_rt *rt, const int64_t *args) {
  int64_t m = args[1];
  const float *x = floats(args[0]);
  float *y = mlc_rt_output(rt, 0, 1, &m);
  if (!y || mlc_rt_check(rt, x[0] >= 0, 1, 1, (int64_t)x[0]))
    return 1;
  for (int64_t i = 0; i < m; ++i) {
    y[i] = 0;
    for (int64_t j = 0; j < m; ++j)
      y[i] += x[i * m + j];
  }
  return 0;
}

static void copyAndNote(int64_t *args, int64_t *error, int64_t begin,
                        int64_t end) {
  copyFloats(args, error, begin, end);
  if (end == args[2])
    floats(args[1])[end - 1] += 1;
}

static int32_t extend(mlc_rt *rt, const int64_t *args) {
  int64_t n = args[1];
  float *y = mlc_rt_output(rt, 0, 1, &n);
  int64_t copy[] = {args[0], word(y), n};
  if (!y ||
      mlc_rt_launch_unless_same(rt, copyAndNote, copyFloatsGrid, copy, 1, 0, 1))
    return 1;
  y[0] += 10;
  return 0;
}

/* --- The program table
 * -------------------------------------------------------------------------------------------
 */

enum { BATCH, N, K, M };
static const mlc_rt_dim dims[] = {
    {"batch", 1, 4096, 1}, {"n", 0, -1, 1}, {"k", 0, -1, 1}, {"m", 4, -1, 4}};

#define D(...)                                                                 \
  (const int64_t[]) { __VA_ARGS__ }
#define I(...)                                                                 \
  (const int32_t[]) { __VA_ARGS__ }
#define SEQUENCE (MLC_SEQUENCE | MLC_TENSOR << 4)
#define OPTIONAL (MLC_OPTIONAL | MLC_TENSOR << 4)
static const mlc_rt_value_desc
    forwardIn[] = {{"x", MLC_FLOAT32, 2, D(-1, 4), I(BATCH, -1), 0, 0}},
    forwardOut[] = {{"y", MLC_FLOAT32, 2, D(-1, 3), I(BATCH, -1), 0, 0}},
    selectIn[] = {{"data", MLC_FLOAT32, 1, D(-1), I(N), 0, 0},
                  {"indices", MLC_INT64, 1, D(-1), I(K), 0, 0}},
    selectOut[] = {{"picked", MLC_FLOAT32, 1, D(-1), I(K), 0, 0},
                   {"positive", MLC_INT64, 1, D(-1), I(-1), 0, 0}},
    reverseIn[] = {{"items", MLC_FLOAT32, -1, 0, 0, SEQUENCE, 0},
                   {"extra", MLC_FLOAT32, 1, D(2), I(-1), OPTIONAL, 0}},
    reverseOut[] = {{"reversed", MLC_FLOAT32, -1, 0, 0, SEQUENCE, 0},
                    {"extra_out", MLC_FLOAT32, 1, D(2), I(-1), OPTIONAL, 0}},
    shoutIn[] = {{"words", MLC_STRING, 1, D(-1), I(N), 0, 0}},
    shoutOut[] = {{"loud", MLC_STRING, 1, D(-1), I(N), 0, 0}},
    probeIn[] = {{"n", MLC_INT64, 1, D(1), I(-1), 0, 0}},
    probeOut[] = {{"state", MLC_INT64, 1, D(-1), I(-1), 0, 0}},
    checkedIn[] = {{"x", MLC_FLOAT32, 2, D(-1, -1), I(M, M), 0, 0}},
    checkedOut[] = {{"y", MLC_FLOAT32, 1, D(-1), I(M), 0, 0}},
    extendIn[] = {{"past", MLC_FLOAT32, 1, D(-1), I(N), 0, 0}},
    extendOut[] = {{"present", MLC_FLOAT32, 1, D(-1), I(N), 0, 0, 1}};

static const mlc_rt_entry entries[] = {
    {"forward", forward, 1, 1, forwardIn, forwardOut},
    {"select", selectPositive, 2, 2, selectIn, selectOut},
    {"reverse", reverse, 2, 2, reverseIn, reverseOut},
    {"shout", shout, 1, 1, shoutIn, shoutOut},
    {"probe", probe, 1, 1, probeIn, probeOut},
    {"checked", checked, 1, 1, checkedIn, checkedOut},
    {"extend", extend, 1, 1, extendIn, extendOut},
};

static const char *const nodes[] = {"encoder/Gather", "encoder/Check"};
static const char *const messages[] = {
    "unused", "the first element must not be negative"};

__attribute__((visibility("hidden"))) const mlc_rt_program mlc_program = {
    sizeof(mlc_rt_program),
    MLC_ABI_VERSION,
    "{\"model\": \"hand-written\", \"kernels\": [{\"name\": \"row_product\", "
    "\"template\": \"loops\", \"nodes\": [\"enc[0]/MatMul\", \"b\", \"c\"]}, "
    "{\"name\": \"copy\"}, "
    "{\"name\": \"take\"}, {\"name\": \"read_state\"}]}",
    MODEL_FEATURES,
    nodes,
    2,
    dims,
    4,
    WEIGHTS,
    8192,
    WEIGHTS_FILE,
    MODEL_HASH,
    entries,
    7,
    messages,
    2,
};
