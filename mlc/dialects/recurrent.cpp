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

LogicalResult RecurrenceOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (failed(env.expectRank(adaptor.getInputs(), 3, "inputs")))
    return failure();
  const Dims &inputs = env.shape(adaptor.getInputs()),
             &recurrence = env.shape(adaptor.getRecurrence());
  StringRef kind = text(adaptor.getKindAttr(), "tanh");
  int64_t gates = kind == "lstm" ? 4 : kind == "gru" ? 3 : 1;
  int64_t directions =
      text(adaptor.getDirectionAttr(), "forward") == "bidirectional" ? 2 : 1;
  std::optional<int64_t> width = inputs[2].getConstant();
  std::string shapes = " of inputs " + shapeText(inputs) + " and recurrence " +
                       shapeText(recurrence);
  if (!width || *width % (directions * gates))
    return env.error("needs inputs for " + Twine(directions * gates) +
                     " gates of a known size, not those" + shapes);
  Dim hidden = env.constant(*width / (directions * gates));
  bool isPacked = recurrence.size() > 3;
  if (!isPacked &&
      (failed(env.expectRank(adaptor.getRecurrence(), 3, "recurrence")) ||
       failed(
           env.expectEqual(recurrence[1], hidden * gates, "gates" + shapes)) ||
       failed(env.expectEqual(recurrence[2], hidden, "hidden" + shapes))))
    return failure();
  if (failed(env.expectEqual(recurrence[0], env.constant(directions),
                             "directions" + shapes)))
    return failure();
  Type element = elementTypeOf(adaptor.getInputs());
  Dims state{env.constant(directions), inputs[1], hidden};
  env.addResult({inputs[0], inputs[1], env.constant(directions), hidden},
                element);
  env.addResult(state, element);
  env.addResult(state, element);
  return success();
}
