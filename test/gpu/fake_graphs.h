/* Graphs in fake_libcuda.c, of which this is a part. A graph is the launches
 * between the two ends of its recording; they are checked again whenever it is
 * launched. */
struct KernelNode { /* CUDA_KERNEL_NODE_PARAMS_v1 */
  void *function;
  unsigned grid[3], block[3], shared;
  void **parameters, **extra;
};

struct CopyNode { /* CUDA_MEMCPY3D_v2 */
  struct {
    size_t x, y, z, level;
    int kind;
    const void *host;
    Address device;
    void *array, *reserved;
    size_t pitch, height;
  } from, to;
  size_t width, height, depth;
};

static struct {
  void *stream; /* that is being recorded */
  int64_t words[MAX][32];
  size_t counts[MAX];
  const char *names[MAX];
  int number, first;
  char isGone[MAX]; /* by its first launch: nodes name none any more */
} recording;

static int isRecorded(const void *stream) {
  return stream && stream == recording.stream;
}

static void record(const char *kernel, const int64_t *words, size_t count) {
  recording.names[recording.number] = kernel;
  recording.counts[recording.number] = count < 32 ? count : 32;
  if (count)
    memcpy(recording.words[recording.number], words,
           (count < 32 ? count : 32) * sizeof *words);
  ++recording.number;
}

Result cuStreamIsCapturing(void *stream, int *status) {
  *status = (int)setting("FAKE_CUDA_CAPTURING", 0) || isRecorded(stream);
  return OK;
}

Result cuStreamBeginCapture_v2(void *stream, int mode) {
  ENTER("cuStreamBeginCapture_v2");
  onStream("cuStreamBeginCapture_v2", stream);
  (void)mode;
  recording.stream = stream;
  recording.first = recording.number;
  say("record%s", "", 0, 0, 0);
  return OK;
}

Result cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *id,
                                 void **graph, void *const **last,
                                 size_t *count) {
  static void *node;
  ENTER("cuStreamGetCaptureInfo_v2");
  if (!isRecorded(stream))
    say("BREACH %s of a stream that is not recorded",
        "cuStreamGetCaptureInfo_v2", 0, 0, 0);
  *status = 1;
  *id = 1;
  *graph = NULL;
  node = (void *)(intptr_t)recording.number; /* of the last launch, from 1 */
  *last = &node;
  *count = recording.number > recording.first;
  return OK;
}

Result cuStreamEndCapture(void *stream, void **graph) {
  if (!isRecorded(stream))
    say("BREACH %s of a stream that is not recorded", "cuStreamEndCapture", 0,
        0, 0);
  recording.stream = NULL;
  ++graphs;
  *graph = (void *)(intptr_t)(recording.first + 1);
  return OK;
}

Result cuGraphInstantiateWithFlags(void **executable, void *graph,
                                   unsigned long long flags) {
  ENTER("cuGraphInstantiateWithFlags");
  (void)flags;
  int64_t first = (intptr_t)graph - 1;
  *executable = (void *)(intptr_t)(first << 20 | recording.number);
  ++graphs;
  return OK;
}

Result cuGraphLaunch(void *executable, void *stream) {
  ENTER("cuGraphLaunch");
  onStream("cuGraphLaunch", stream);
  int first = (int)((intptr_t)executable >> 20),
      end = (int)((intptr_t)executable & 0xfffff);
  for (int i = first; i < end; ++i)
    if (recording.counts[i] && recording.counts[i] < 32)
      checkWords(recording.names[i], recording.words[i], recording.counts[i]);
  say("graph%s of %lld launches", "", end - first, 0, 0);
  return OK;
}

/* The number of a node of `executable`. */
static int nodeOf(const char *name, void *executable, void *node) {
  int first = (int)((intptr_t)executable >> 20),
      end = (int)((intptr_t)executable & 0xfffff);
  int number = (int)(intptr_t)node - 1;
  if (number < first || number >= end || recording.isGone[first])
    say("BREACH %s: node %lld is of another graph", name, number, 0, 0);
  return number;
}

Result cuGraphExecKernelNodeSetParams(void *executable, void *node,
                                      const struct KernelNode *kernel) {
  ENTER("cuGraphExecKernelNodeSetParams");
  int number = nodeOf("cuGraphExecKernelNodeSetParams", executable, node);
  int64_t gathered[MAX];
  int64_t *words = kernel->extra ? kernel->extra[1] : gathered;
  size_t count = kernel->extra ? *(size_t *)kernel->extra[3] / sizeof(int64_t)
                               : gatherWords(kernel->function,
                                             kernel->parameters, gathered);
  if (kernel->function != recording.names[number] || !kernel->grid[0] ||
      !kernel->block[0])
    say("BREACH %s: a node becomes a strange launch", kernel->function, 0, 0,
        0);
  checkWords(kernel->function, words, count);
  recording.counts[number] = count < 32 ? count : 32;
  memcpy(recording.words[number], words,
         (count < 32 ? count : 32) * sizeof *words);
  say("change %s", kernel->function, 0, 0, 0);
  return OK;
}

Result cuGraphExecMemcpyNodeSetParams(void *executable, void *node,
                                      const struct CopyNode *copy,
                                      void *context) {
  ENTER("cuGraphExecMemcpyNodeSetParams");
  int number = nodeOf("cuGraphExecMemcpyNodeSetParams", executable, node);
  if (strcmp(recording.names[number], "a copy") || !context ||
      copy->height != 1 || copy->depth != 1)
    say("BREACH %s: a strange copy", "cuGraphExecMemcpyNodeSetParams", 0, 0, 0);
  holder("cuGraphExecMemcpyNodeSetParams", (void *)copy->to.device,
         copy->width);
  holder("cuGraphExecMemcpyNodeSetParams", (void *)copy->from.device,
         copy->width);
  say("change %s of %lld", "a copy", (long long)copy->width, 0, 0);
  return OK;
}

Result cuGraphExecDestroy(void *executable) {
  (void)executable;
  --graphs;
  return OK;
}

Result cuGraphDestroy(void *graph) {
  recording.isGone[(intptr_t)graph - 1] = 1;
  --graphs;
  return OK;
}
