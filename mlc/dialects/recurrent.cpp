#include "dialect.h"

using namespace mlir;
using namespace mlc;

LogicalResult RecurrentOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(env.expectRank(adaptor.getInput(), 3, "input")) ||
      failed(env.expectRank(adaptor.getWeights(), 3, "weights")) ||
      failed(env.expectRank(adaptor.getRecurrence(), 3, "recurrence")))
    return failure();
  const Dims &input = env.shape(adaptor.getInput()),
             &weights = env.shape(adaptor.getWeights()),
             &recurrence = env.shape(adaptor.getRecurrence());
  StringRef kind = text(adaptor.getKindAttr(), "rnn");
  int64_t gates = kind == "lstm" ? 4 : kind == "gru" ? 3 : 1;
  int64_t directions =
      text(adaptor.getDirectionAttr(), "forward") == "bidirectional" ? 2 : 1;
  Dim hidden = recurrence[2];
  std::string shapes = " of input " + shapeText(input) + ", weights " +
                       shapeText(weights) + " and recurrence " +
                       shapeText(recurrence);
  if (failed(env.expectEqual(weights[0], env.constant(directions),
                             "directions" + shapes)) ||
      failed(env.expectEqual(recurrence[0], env.constant(directions),
                             "directions" + shapes)) ||
      failed(env.expectEqual(weights[1], hidden * gates, "gates" + shapes)) ||
      failed(
          env.expectEqual(recurrence[1], hidden * gates, "gates" + shapes)) ||
      failed(env.expectEqual(weights[2], input[2], "input widths" + shapes)))
    return failure();
  Type element = elementTypeOf(adaptor.getInput());
  Dims state{env.constant(directions), input[1], hidden};
  env.addResult({input[0], env.constant(directions), input[1], hidden},
                element);
  env.addResult(state, element);
  env.addResult(state, element);
  return success();
}
