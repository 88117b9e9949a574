// One run of an entry, and what the host program calls during it.
#include "context.h"
#if MLC_RT_CUDA
#include "cuda.h"
#endif

#include <stdarg.h>
#include <stdio.h>

int32_t mlc_context::fail(int32_t errorCode, const char *format, ...) {
  if (code != MLC_OK)
    return 1;
  code = errorCode;
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  mlc::setStatus(status, errorCode, "%s", message);
  return 1;
}

namespace mlc {

const char *nodeName(int64_t node) {
  return node >= 0 && node < mlc_program.num_nodes ? mlc_program.nodes[node]
                                                   : "?";
}

/// Turns the error word into a message.
static void reportErrorWord(mlc_context &context) {
  int64_t word = context.error[0];
  auto value = static_cast<long long>(context.error[1]);
  const char *node = nodeName(word / 16 - 1);
  switch (word % 16) {
  case MLC_RT_INDEX:
    context.fail(MLC_ERROR_RUNTIME, "node '%s': index %lld is out of range",
                 node, value);
    return;
  case MLC_RT_DIVISION:
    context.fail(MLC_ERROR_RUNTIME, "node '%s': integer division by zero",
                 node);
    return;
  case MLC_RT_SHAPE:
    context.fail(MLC_ERROR_RUNTIME,
                 "node '%s': shapes do not fit at run time (extent %lld)", node,
                 value);
    return;
  default:
    context.fail(MLC_ERROR_RUNTIME, "node '%s': invalid value %lld", node,
                 value);
  }
}

static int32_t runEntry(mlc_context &context, const mlc_value *inputs) {
  if (context.instance->pool)
    context.instance->pool->checkProcess();
  context.error[0] = context.error[1] = 0;
  context.arenaTaken = false;
  if (!bindInputs(context, inputs) || !checkOutputs(context, inputs))
    return context.code;
  int64_t begin = context.profile ? nanoseconds() : 0;
#if MLC_RT_CUDA
  int32_t failed = gpu::execute(context, inputs);
  gpu::finishRun(context, failed != 0);
#else
  int32_t failed = context.entry->run(&context, context.args);
#endif
  if (context.error[0])
    reportErrorWord(context);
  else if (failed)
    context.fail(MLC_ERROR_RUNTIME, "entry '%s' failed with code %d",
                 context.entry->name, failed);
  else
    deliverOutputs(context);
  if (context.code != MLC_OK)
    dropOutputs(context);
  if (context.profile) {
    context.runTime += nanoseconds() - begin;
    ++context.runs;
  }
  return context.code;
}

static int32_t checkCall(int64_t entry, const mlc_value *inputs,
                         int64_t numInputs, const mlc_value *outputs,
                         int64_t numOutputs, mlc_status *status) {
  if (entry < 0 || entry >= mlc_program.num_entries)
    return setStatus(status, MLC_ERROR_ARGUMENT,
                     "there is no entry %lld; the model has %lld",
                     static_cast<long long>(entry),
                     static_cast<long long>(mlc_program.num_entries));
  const mlc_rt_entry &e = mlc_program.entries[entry];
  if (numInputs != e.num_inputs || numOutputs != e.num_outputs)
    return setStatus(
        status, MLC_ERROR_ARGUMENT,
        "entry '%s' takes %d inputs and gives %d outputs, not %lld and %lld",
        e.name, e.num_inputs, e.num_outputs, static_cast<long long>(numInputs),
        static_cast<long long>(numOutputs));
  if ((numInputs && !inputs) || (numOutputs && !outputs))
    return setStatus(status, MLC_ERROR_ARGUMENT,
                     "the array of inputs or outputs is null");
  return MLC_OK;
}

int32_t run(mlc_context *context, int64_t entry, const mlc_value *inputs,
            int64_t numInputs, mlc_value *outputs, int64_t numOutputs,
            void *stream, mlc_status *status) {
  clearStatus(status);
  if (!context)
    return setStatus(status, MLC_ERROR_ARGUMENT, "the context is null");
#if !MLC_RT_CUDA
  if (stream)
    return setStatus(status, MLC_ERROR_ARGUMENT,
                     "this model runs on the CPU: the stream must be null");
#endif
  if (int32_t code =
          checkCall(entry, inputs, numInputs, outputs, numOutputs, status))
    return code;
  if (context->busy.exchange(1, std::memory_order_acquire))
    return setStatus(status, MLC_ERROR_BUSY,
                     "the context is running in another thread; use a context "
                     "for each thread");
  context->entry = &mlc_program.entries[entry];
  context->callerOutputs = outputs;
  context->status = status;
  context->code = MLC_OK;
  context->results->beginRun();
  int32_t code;
  {
    FloatingPointScope floatingPoint;
#if MLC_RT_CUDA
    gpu::Scope scope(*context->instance->gpu);
    gpu::beginRun(*context, stream);
#endif
    code = runEntry(*context, inputs);
#if MLC_RT_CUDA
    gpu::recycleBlocks(*context);
#endif
  }
  recycleBlocks(*context);
  context->status = nullptr;
  context->busy.store(0, std::memory_order_release);
  return code;
}

} // namespace mlc

using namespace mlc;

const void *mlc_rt_weights(mlc_rt *rt) { return rt->instance->weights; }

int32_t mlc_rt_check(mlc_rt *rt, int64_t ok, int64_t node, int64_t message,
                     int64_t value) {
  if (ok)
    return 0;
  bool known = message >= 0 && message < mlc_program.num_messages;
  return rt->fail(MLC_ERROR_RUNTIME, "node '%s': %s (value %lld)",
                  nodeName(node),
                  known ? mlc_program.messages[message] : "a check failed",
                  static_cast<long long>(value));
}

int32_t mlc_rt_poll(mlc_rt *rt) { return rt->error[0] != 0; }

void mlc_rt_failed(mlc_rt *rt, int64_t node) {
  if (node >= 0 && rt->error[0] > 0 && rt->error[0] < 16)
    rt->error[0] += (node + 1) * 16;
}
