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

enum { WORDS = 32 }; /* of a launch, at most, that are looked at */

static struct {
  void *stream; /* that is being recorded */
  int64_t words[MAX][WORDS];
  size_t counts[MAX];
  const char *names[MAX];
  int number, first;
  int ends[MAX];    /* of graphs, by their first launch */
  char isGone[MAX]; /* likewise: nodes name none any more */
} recording;

static struct {
  int first, end; /* of the recording */
  int64_t (*words)[WORDS];
} executables[MAX]; /* their handles count from 1 */
static int numExecutables;

static const char kCopyName[] = "a copy";

static int isRecorded(const void *stream) {
  return stream && stream == recording.stream;
}

static void record(const char *kernel, const int64_t *words, size_t count) {
  recording.names[recording.number] = kernel;
  recording.counts[recording.number] = count < WORDS ? count : WORDS;
  memcpy(recording.words[recording.number], words,
         (count < WORDS ? count : WORDS) * sizeof *words);
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
  recording.ends[recording.first] = recording.number;
  ++graphs;
  *graph = (void *)(intptr_t)(recording.first + 1);
  return OK;
}

Result cuGraphInstantiateWithFlags(void **executable, void *graph,
                                   unsigned long long flags) {
  ENTER("cuGraphInstantiateWithFlags");
  (void)flags;
  int first = (int)(intptr_t)graph - 1, number = numExecutables++;
  executables[number].first = first;
  executables[number].end = recording.ends[first];
  size_t bytes = (recording.ends[first] - first) * sizeof *recording.words;
  executables[number].words = malloc(bytes + 1);
  memcpy(executables[number].words, recording.words[first], bytes);
  *executable = (void *)(intptr_t)(number + 1);
  ++graphs;
  say("executable%s", "", 0, 0, 0);
  return OK;
}

/* The words of launch `i` of an executable. */
static int64_t *wordsOf(void *executable, int i) {
  int number = (int)(intptr_t)executable - 1;
  return executables[number].words[i - executables[number].first];
}

Result cuGraphLaunch(void *executable, void *stream) {
  ENTER("cuGraphLaunch");
  onStream("cuGraphLaunch", stream);
  int number = (int)(intptr_t)executable - 1;
  int first = executables[number].first, end = executables[number].end;
  for (int i = first; i < end; ++i) {
    const int64_t *words = wordsOf(executable, i);
    if (recording.names[i] != kCopyName && recording.counts[i] < WORDS)
      checkWords(
          recording.names[i], words,
          withoutWorkspace(recording.names[i], words, recording.counts[i]));
    sayWords(recording.names[i], words, recording.counts[i]);
  }
  say("graph%s of %lld launches", "", end - first, 0, 0);
  return OK;
}

/* The number of a node of `executable`. */
static int nodeOf(const char *name, void *executable, void *node) {
  int of = (int)(intptr_t)executable - 1;
  int first = executables[of].first, end = executables[of].end;
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
  checkWords(kernel->function, words,
             withoutWorkspace(kernel->function, words, count));
  memcpy(wordsOf(executable, number), words,
         (count < WORDS ? count : WORDS) * sizeof *words);
  say("change %s", kernel->function, 0, 0, 0);
  return OK;
}

Result cuGraphExecMemcpyNodeSetParams(void *executable, void *node,
                                      const struct CopyNode *copy,
                                      void *context) {
  ENTER("cuGraphExecMemcpyNodeSetParams");
  int number = nodeOf("cuGraphExecMemcpyNodeSetParams", executable, node);
  if (recording.names[number] != kCopyName || !context || copy->height != 1 ||
      copy->depth != 1)
    say("BREACH %s: a strange copy", "cuGraphExecMemcpyNodeSetParams", 0, 0, 0);
  holder("cuGraphExecMemcpyNodeSetParams", (void *)copy->to.device,
         copy->width);
  holder("cuGraphExecMemcpyNodeSetParams", (void *)copy->from.device,
         copy->width);
  wordsOf(executable, number)[0] = (int64_t)copy->to.device;
  wordsOf(executable, number)[1] = (int64_t)copy->from.device;
  say("change %s of %lld", kCopyName, (long long)copy->width, 0, 0);
  return OK;
}

Result cuGraphExecDestroy(void *executable) {
  free(executables[(intptr_t)executable - 1].words);
  --graphs;
  return OK;
}

Result cuGraphDestroy(void *graph) {
  recording.isGone[(intptr_t)graph - 1] = 1;
  --graphs;
  return OK;
}
