/* Entries, values, and everything that can be wrong about an input or an
 * output. */
#include "harness.h"

static const mlc_model_api *api;
static mlc_instance *instance;
static mlc_context *context;

static void testSignature(void) {
  CHECK(mlc_model_query(MLC_ABI_VERSION + 1) == 0);
  CHECK(strstr(api->metadata(), "hand-written") && api->num_entries() == 7);
  mlc_entry_info entry = {sizeof entry, 0, 0, 0};
  CHECK(api->entry_info(SELECT, &entry) == MLC_OK &&
        !strcmp(entry.name, "select") && entry.num_outputs == 2);
  mlc_value_info value = {sizeof value, 0, 0, 0, 0, 0, 0};
  CHECK(api->input_info(FORWARD, 0, &value) == MLC_OK);
  CHECK(!strcmp(value.name, "x") && value.kind == MLC_TENSOR &&
        value.dtype == MLC_FLOAT32 && value.rank == 2);
  CHECK(value.dims[0] == -1 && value.dims[1] == 4 && value.dim_ids[0] == 0);
  mlc_dim_info dim = {sizeof dim, 0, 0, 0, 0};
  CHECK(api->dim_info(3, &dim) == MLC_OK && !strcmp(dim.name, "m") &&
        dim.multiple == 4 && dim.highest == -1);
  CHECK(api->entry_info(7, &entry) == MLC_ERROR_ARGUMENT &&
        api->output_info(0, 1, &value) == MLC_ERROR_ARGUMENT);
  /* A caller compiled against an older, shorter struct gets what it knows, and
   * nothing behind it is touched. */
  struct {
    mlc_dim_info info;
  } old;
  memset(&old, 0x55, sizeof old);
  old.info.struct_size = offsetof(mlc_dim_info, highest);
  CHECK(api->dim_info(0, &old.info) == MLC_OK && old.info.lowest == 1 &&
        old.info.highest == 0x5555555555555555);
}

static void testForward(void) {
  for (int64_t batch = 1; batch < 70; batch += 3)
    CHECK(checkForward(api, context, batch) == 0);
  CHECK(checkForward(api, context, 4096) == 0);
}

static void testStrides(void) {
  /* A transposed view, written to a strided buffer: every second row of a
   * larger array. */
  float x[4 * 2], y[2 * 2 * 3];
  for (int i = 0; i < 8; ++i)
    x[i] = (float)i;
  int64_t inShape[2] = {2, 4}, inStrides[2] = {1, 2}, outShape[2] = {2, 3},
          outStrides[2] = {6, 1};
  memset(y, 0xff, sizeof y);
  mlc_value in = tensorOf(MLC_FLOAT32, x, 2, inShape),
            out = tensorOf(MLC_FLOAT32, y, 2, outShape);
  in.tensor.strides = inStrides;
  out.tensor.strides = outStrides;
  mlc_status status = newStatus();
  CHECK(api->run(context, FORWARD, &in, 1, &out, 1, 0, &status) == MLC_OK &&
        !out.deleter);
  for (int r = 0; r < 2; ++r)
    for (int j = 0; j < 3; ++j) {
      float expected = 100;
      for (int k = 0; k < 4; ++k)
        expected += x[k * 2 + r] * (float)(k * 3 + j);
      CHECK(y[r * 6 + j] == expected);
    }
  CHECK(y[3] != y[3]); /* the row between is untouched */
}

static void expectInput(int entry, mlc_value *in, int count, int outputs,
                        const char *message) {
  mlc_value out[2] = {none(), none()};
  mlc_status status = newStatus();
  CHECK(api->run(context, entry, in, count, out, outputs, 0, &status) ==
        MLC_ERROR_INPUT);
  CHECK_MESSAGE(status, message);
  CHECK(!out[0].deleter && !out[1].deleter && status.code == MLC_ERROR_INPUT);
}

static void testInputErrors(void) {
  static float data[64 * 64];
  int64_t flat[1] = {4}, wrong[2] = {2, 5}, none_[2] = {0, 4},
          many[2] = {4097, 4}, right[2] = {2, 4};
  int64_t square[2] = {4, 8}, six[2] = {6, 6}, negative[2] = {-1, 4};
  mlc_value in = tensorOf(MLC_FLOAT32, data, 1, flat);
  expectInput(FORWARD, &in, 1, 1,
              "input 'x': expected float32[batch,4], got float32[4]");
  in = tensorOf(MLC_FLOAT32, data, 2, wrong);
  expectInput(FORWARD, &in, 1, 1,
              "input 'x': expected float32[batch,4], got float32[2,5]");
  in = tensorOf(MLC_BFLOAT16, data, 2, right);
  expectInput(FORWARD, &in, 1, 1,
              "input 'x': expected float32[batch,4], got bfloat16[2,4]");
  in = tensorOf(MLC_FLOAT32, data, 2, none_);
  expectInput(FORWARD, &in, 1, 1,
              "input 'x': dimension 'batch' is 0 in float32[0,4]; the model "
              "was compiled for 1 to 4096");
  in = tensorOf(MLC_FLOAT32, data, 2, many);
  expectInput(FORWARD, &in, 1, 1,
              "input 'x': dimension 'batch' is 4097 in float32[4097,4]; the "
              "model was compiled for 1 to 4096");
  in = tensorOf(MLC_FLOAT32, data, 2, negative);
  expectInput(FORWARD, &in, 1, 1,
              "input 'x': expected float32[batch,4], got float32[-1,4]");
  in = tensorOf(MLC_FLOAT32, data, 2, six);
  expectInput(CHECKED, &in, 1, 1,
              "input 'x': dimension 'm' is 6 in float32[6,6]; the model was "
              "compiled for multiples of 4");
  in = tensorOf(MLC_FLOAT32, data, 2, square);
  expectInput(
      CHECKED, &in, 1, 1,
      "input 'x': dimension 'm' is 8 in float32[4,8], but 4 in input 'x'");
  in = tensorOf(MLC_FLOAT32, 0, 2, right);
  expectInput(FORWARD, &in, 1, 1,
              "input 'x': expected float32[batch,4], got float32[2,4]; its "
              "data pointer is null");
  in = tensorOf(MLC_FLOAT32, data, 2, right);
  in.tensor.device.device_type = 2;
  expectInput(FORWARD, &in, 1, 1,
              "input 'x': it is on device type 2 (DLPack); this model runs on "
              "the CPU, copy it there first");
  in = none();
  expectInput(FORWARD, &in, 1, 1,
              "input 'x': expected float32[batch,4], got nothing where a "
              "tensor belongs");
  mlc_value two[2] = {tensorOf(MLC_FLOAT32, data, 1, flat), none()};
  two[1].kind = MLC_OPTIONAL;
  expectInput(REVERSE, two, 2, 2,
              "input 'items': expected sequence(float32[...]), got a tensor "
              "where a sequence belongs");
}

static void testCallErrors(void) {
  float data[8] = {0};
  int64_t shape[2] = {2, 4};
  mlc_value in = tensorOf(MLC_FLOAT32, data, 2, shape), out = none();
  mlc_status status = newStatus();
  CHECK(api->run(context, 7, &in, 1, &out, 1, 0, &status) ==
        MLC_ERROR_ARGUMENT);
  CHECK_MESSAGE(status, "there is no entry 7; the model has 7");
  CHECK(api->run(context, FORWARD, &in, 1, &out, 0, 0, &status) ==
        MLC_ERROR_ARGUMENT);
  CHECK_MESSAGE(
      status,
      "entry 'forward' takes 1 inputs and gives 1 outputs, not 1 and 0");
  CHECK(api->run(0, FORWARD, &in, 1, &out, 1, 0, 0) == MLC_ERROR_ARGUMENT);
  CHECK(api->run(context, FORWARD, &in, 1, &out, 1, data, &status) ==
        MLC_ERROR_ARGUMENT);
  /* A status with a small message buffer, and one without. */
  struct {
    uint32_t size;
    int32_t code;
    char text[8];
    char guard[4];
  } small = {16, 0, "", "abc"};
  CHECK(api->run(context, 7, &in, 1, &out, 1, 0,
                 (mlc_status *)(void *)&small) == MLC_ERROR_ARGUMENT);
  CHECK(!strcmp(small.text, "there i") && !strcmp(small.guard, "abc") &&
        small.code == MLC_ERROR_ARGUMENT);
}

static void testOutputErrors(void) {
  float data[16] = {0}, y[9] = {0};
  int64_t shape[2] = {2, 4}, bad[2] = {3, 3}, good[2] = {2, 3};
  mlc_value in = tensorOf(MLC_FLOAT32, data, 2, shape),
            out = tensorOf(MLC_FLOAT32, y, 2, bad);
  mlc_status status = newStatus();
  CHECK(api->run(context, FORWARD, &in, 1, &out, 1, 0, &status) ==
        MLC_ERROR_INPUT);
  CHECK_MESSAGE(status, "output 'y': the result is float32[batch,3], the given "
                        "buffer is float32[3,3]");
  out = tensorOf(MLC_FLOAT32, data + 4, 2, good);
  CHECK(api->run(context, FORWARD, &in, 1, &out, 1, 0, &status) ==
        MLC_ERROR_INPUT);
  CHECK_MESSAGE(status, "output 'y': its buffer overlaps that of 'x'");
  /* A size that only the run shows: the caller's buffer for two positions does
   * not fit one. */
  float values[3] = {-1, 5, -1};
  int64_t n = 3, k = 1, index = 0, found[2], two = 2;
  mlc_value ins[2] = {tensorOf(MLC_FLOAT32, values, 1, &n),
                      tensorOf(MLC_INT64, &index, 1, &k)};
  mlc_value outs[2] = {none(), tensorOf(MLC_INT64, found, 1, &two)};
  CHECK(api->run(context, SELECT, ins, 2, outs, 2, 0, &status) ==
        MLC_ERROR_INPUT);
  CHECK_MESSAGE(status, "output 'positive': the result is int64[1], the given "
                        "buffer is int64[2]");
  CHECK(outs[0].kind == MLC_NONE &&
        !outs[0].deleter); /* what had been allocated is gone again */
}

/* An output that may be an input: only all of it, and nothing is copied then.
 */
static void testSharedOutput(void) {
  float past[5] = {1, 2, 3, 4, 5}, present[4];
  int64_t n = 4;
  mlc_value in = tensorOf(MLC_FLOAT32, past, 1, &n),
            out = tensorOf(MLC_FLOAT32, present, 1, &n);
  mlc_status status = newStatus();
  CHECK(api->run(context, EXTEND, &in, 1, &out, 1, 0, &status) == MLC_OK);
  CHECK(present[0] == 11 && present[1] == 2 && present[3] == 5);
  CHECK(past[0] == 1 && past[3] == 4);
  out = tensorOf(MLC_FLOAT32, past, 1, &n);
  CHECK(api->run(context, EXTEND, &in, 1, &out, 1, 0, &status) == MLC_OK);
  CHECK(past[0] == 11 && past[1] == 2 && past[3] == 4 && past[4] == 5);
  out = tensorOf(MLC_FLOAT32, past + 1, 1, &n);
  CHECK(api->run(context, EXTEND, &in, 1, &out, 1, 0, &status) ==
        MLC_ERROR_INPUT);
  CHECK_MESSAGE(status, "output 'present': its buffer overlaps that of 'past'");
  int64_t stride = -1;
  in.tensor.data = past + 3, in.tensor.strides = &stride;
  out = tensorOf(MLC_FLOAT32, past, 1, &n);
  CHECK(api->run(context, EXTEND, &in, 1, &out, 1, 0, &status) ==
        MLC_ERROR_INPUT);
  CHECK(past[0] == 11 && past[3] == 4);
}

static void testRunTimeErrors(void) {
  float values[3] = {1, -2, 3};
  int64_t n = 3, k = 2, indices[2] = {-3, 7};
  mlc_value in[2] = {tensorOf(MLC_FLOAT32, values, 1, &n),
                     tensorOf(MLC_INT64, indices, 1, &k)};
  mlc_value out[2] = {none(), none()};
  mlc_status status = newStatus();
  CHECK(api->run(context, SELECT, in, 2, out, 2, 0, &status) ==
        MLC_ERROR_RUNTIME);
  CHECK_MESSAGE(status, "node 'encoder/Gather': index 7 is out of range");
  indices[1] = 2;
  CHECK(api->run(context, SELECT, in, 2, out, 2, 0, &status) == MLC_OK);
  CHECK_MESSAGE(status, "");
  const float *picked = out[0].tensor.data;
  const int64_t *positive = out[1].tensor.data;
  CHECK(picked[0] == 1 && picked[1] == 3 && out[1].tensor.shape[0] == 2 &&
        positive[0] == 0 && positive[1] == 2);
  out[0].deleter(&out[0]);
  out[1].deleter(&out[1]);
  float square[16] = {-5};
  int64_t shape[2] = {4, 4};
  mlc_value x = tensorOf(MLC_FLOAT32, square, 2, shape);
  CHECK(api->run(context, CHECKED, &x, 1, out, 1, 0, &status) ==
        MLC_ERROR_RUNTIME);
  CHECK_MESSAGE(status, "node 'encoder/Check': the first element must not be "
                        "negative (value -5)");
}

static void testEmpty(void) {
  int64_t zero = 0;
  mlc_value in[2] = {tensorOf(MLC_FLOAT32, 0, 1, &zero),
                     tensorOf(MLC_INT64, 0, 1, &zero)};
  mlc_value out[2] = {none(), none()};
  mlc_status status = newStatus();
  api->run(context, SELECT, in, 2, out, 2, 0, &status);
  CHECK_MESSAGE(status, "");
  CHECK(out[0].tensor.shape[0] == 0 && out[1].tensor.shape[0] == 0);
  out[0].deleter(&out[0]);
  out[1].deleter(&out[1]);
}

static void testMisaligned(void) {
  char bytes[4 * 8 + 1];
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  memcpy(bytes + 1, x, sizeof x);
  int64_t shape[2] = {2, 4};
  mlc_value in = tensorOf(MLC_FLOAT32, bytes, 2, shape), out = none();
  in.tensor.byte_offset = 1;
  mlc_status status = newStatus();
  CHECK(api->run(context, FORWARD, &in, 1, &out, 1, 0, &status) == MLC_OK);
  CHECK(((float *)out.tensor.data)[0] == 100 + 2 * 3 + 3 * 6 + 4 * 9);
  out.deleter(&out);
}

static void testLargeOutputs(void) {
  /* They begin at a page, and all of them is there to be written. */
  int64_t shape[2] = {4096, 4};
  float *x = calloc(4096 * 4, sizeof *x);
  CHECK(x != 0);
  mlc_value in = tensorOf(MLC_FLOAT32, x, 2, shape), out[2] = {none(), none()};
  for (int i = 0; i < 2; ++i) {
    CHECK(api->run(context, FORWARD, &in, 1, &out[i], 1, 0, 0) == MLC_OK);
    CHECK((uintptr_t)out[i].tensor.data % 4096 == 0);
    CHECK(((float *)out[i].tensor.data)[4096 * 3 - 1] == 100);
  }
  out[0].deleter(&out[0]);
  out[1].deleter(&out[1]);
  free(x);
}

static void testSequences(void) {
  float a[6] = {1, 2, 3, 4, 5, 6}, b[1] = {7};
  int64_t shapeA[2] = {2, 3}, stridesA[2] = {1, 2}, shapeB[1] = {1}, two = 2;
  mlc_value items[2] = {tensorOf(MLC_FLOAT32, a, 2, shapeA),
                        tensorOf(MLC_FLOAT32, b, 1, shapeB)};
  items[0].tensor.strides = stridesA;
  mlc_value extra = tensorOf(MLC_FLOAT32, a, 1, &two);
  mlc_value in[2] = {none(), none()}, out[2] = {none(), none()};
  in[0].kind = MLC_SEQUENCE, in[0].items = items, in[0].num_items = 2;
  in[1].kind = MLC_OPTIONAL, in[1].items = &extra, in[1].num_items = 1;
  mlc_status status = newStatus();
  api->run(context, REVERSE, in, 2, out, 2, 0, &status);
  CHECK_MESSAGE(status, "");
  CHECK(out[0].kind == MLC_SEQUENCE && out[0].num_items == 2 &&
        out[0].items[1].tensor.ndim == 2);
  CHECK(((float *)out[0].items[0].tensor.data)[0] == 7);
  const float *first =
      out[0].items[1].tensor.data; /* packed: columns of `a` in order */
  CHECK(first[0] == 1 && first[1] == 3 && first[2] == 5 && first[3] == 2);
  CHECK(out[1].kind == MLC_OPTIONAL && out[1].num_items == 1 &&
        ((float *)out[1].items[0].tensor.data)[1] == 2);
  out[0].deleter(&out[0]);
  out[1].deleter(&out[1]);
  in[0].num_items = in[1].num_items = 0;
  CHECK(api->run(context, REVERSE, in, 2, out, 2, 0, &status) == MLC_OK);
  CHECK(out[0].num_items == 0 && out[1].num_items == 0);
  out[0].deleter(&out[0]);
  out[1].deleter(&out[1]);
}

static void testStrings(void) {
  mlc_string words[3] = {{"hello", 5}, {"", 0}, {"w\0rld", 5}};
  int64_t n = 3;
  mlc_value in = tensorOf(MLC_STRING, words, 1, &n), out = none();
  mlc_status status = newStatus();
  api->run(context, SHOUT, &in, 1, &out, 1, 0, &status);
  CHECK_MESSAGE(status, "");
  const mlc_string *loud = out.tensor.data;
  CHECK(loud[0].size == 5 && !memcmp(loud[0].data, "HELLO", 5) &&
        loud[1].size == 0);
  CHECK(loud[2].size == 5 && !memcmp(loud[2].data, "W\0RLD", 5));
  out.deleter(&out);
}

static void testProfile(void) {
  mlc_context_options options = {sizeof options, 1};
  mlc_context *profiled = 0;
  CHECK(api->context_create(instance, &options, &profiled, 0) == MLC_OK &&
        !api->profile(context));
  for (int i = 0; i < 5; ++i)
    CHECK(checkForward(api, profiled, 8) == 0);
  const char *text = api->profile(profiled);
  CHECK(strstr(text, "{\"runs\": 5,") &&
        strstr(text, "{\"id\": 1, \"calls\": 5,") &&
        strstr(text, "\"items\": 40}"));
  CHECK(strstr(api->profile(profiled), "{\"runs\": 0,") &&
        !strstr(api->profile(profiled), "calls"));
  api->context_destroy(profiled);
}

static void testOutliving(void) {
  /* An output and a context keep what they need when the instance goes. */
  mlc_instance *other = newInstance(api, 2);
  mlc_context *last = newContext(api, other);
  api->instance_destroy(other);
  float x[8] = {1};
  int64_t shape[2] = {2, 4};
  mlc_value in = tensorOf(MLC_FLOAT32, x, 2, shape), out = none();
  CHECK(api->run(last, FORWARD, &in, 1, &out, 1, 0, 0) == MLC_OK);
  api->context_destroy(last);
  CHECK(((float *)out.tensor.data)[2] == 102);
  out.deleter(&out);
}

int main(void) {
  api = queryModel();
  instance = newInstance(api, 2);
  context = newContext(api, instance);
  testSignature();
  testForward();
  testStrides();
  testInputErrors();
  testCallErrors();
  testOutputErrors();
  testSharedOutput();
  testRunTimeErrors();
  testEmpty();
  testMisaligned();
  testLargeOutputs();
  testSequences();
  testStrings();
  testProfile();
  testOutliving();
  api->context_destroy(context);
  api->instance_destroy(instance);
  puts("ok");
  return 0;
}
