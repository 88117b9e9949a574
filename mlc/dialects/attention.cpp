#include "dialect.h"

using namespace mlir;
using namespace mlc;

LogicalResult AttentionOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(env.expectRank(adaptor.getQuery(), 4, "query")) ||
      failed(env.expectRank(adaptor.getKey(), 4, "key")) ||
      failed(env.expectRank(adaptor.getValue(), 4, "value")))
    return failure();
  const Dims &query = env.shape(adaptor.getQuery()),
             &key = env.shape(adaptor.getKey()),
             &value = env.shape(adaptor.getValue());
  std::string shapes = " of query " + shapeText(query) + ", key " +
                       shapeText(key) + " and value " + shapeText(value);
  for (const Dim &batch : {key[0], value[0]}) // one is there for all
    if (!batch.isOne() &&
        failed(env.expectEqual(query[0], batch, "batches" + shapes)))
      return failure();
  if (failed(
          env.expectEqual(key[1], value[1], "key and value heads" + shapes)) ||
      failed(env.expectEqual(key[2], value[2],
                             "key and value lengths" + shapes)) ||
      failed(
          env.expectEqual(query[3], key[3], "query and key widths" + shapes)))
    return failure();
  std::optional<int64_t> heads = query[1].getConstant(),
                         shared = key[1].getConstant();
  if (heads && shared && (*shared == 0 || *heads % *shared != 0))
    return env.error("the heads of the key do not divide those of the query, "
                     "given the shapes" +
                     shapes);
  if (Value mask = adaptor.getMask()) {
    const Dims &dims = env.shape(mask);
    Dims scores{query[0], query[1], query[2], key[2]};
    if (dims.size() > 4)
      return env.error("the mask has rank " + Twine(dims.size()) +
                       ", more than 4");
    for (auto [dim, extent] :
         llvm::zip(dims, ArrayRef<Dim>(scores).take_back(dims.size())))
      if (failed(env.expectStretches(dim, extent,
                                     "a mask of shape " + shapeText(dims) +
                                         " does not fit the scores " +
                                         shapeText(scores))))
        return failure();
  }
  env.addResult({query[0], query[1], query[2], value[3]},
                elementTypeOf(adaptor.getQuery()));
  return success();
}
