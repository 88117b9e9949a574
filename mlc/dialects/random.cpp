#include "dialect.h"

using namespace mlir;
using namespace mlc;

LogicalResult RandomOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims sizes;
  if (failed(env.mixed(adaptor.getStaticSizesAttr(), adaptor.getSizes(),
                       "sizes", sizes)))
    return failure();
  env.addResult(sizes, Type());
  return success();
}
