#include "dialect.h"

using namespace mlir;
using namespace mlc;

//===- Shapes -------------------------------------------------------------===//

static LogicalResult inferBroadcast(DimEnv &env, ArrayRef<Value> operands,
                                    Type elementType) {
  Dims dims = env.shape(operands.front());
  for (Value operand : operands.drop_front()) {
    Dims out;
    if (failed(env.broadcast(dims, env.shape(operand), out)))
      return failure();
    dims = out;
  }
  env.addResult(dims, elementType);
  return success();
}

LogicalResult UnaryOp::inferDims(Adaptor adaptor, DimEnv &env) {
  StringRef kind = text(adaptor.getKindAttr(), "");
  bool isPredicate = kind == "isnan" || kind == "isinf";
  return env.same(adaptor.getInput(),
                  isPredicate ? IntegerType::get(env.getContext(), 1) : Type());
}

LogicalResult BinaryOp::inferDims(Adaptor adaptor, DimEnv &env) {
  return inferBroadcast(env, {adaptor.getLhs(), adaptor.getRhs()},
                        elementTypeOf(adaptor.getLhs()));
}

LogicalResult CompareOp::inferDims(Adaptor adaptor, DimEnv &env) {
  return inferBroadcast(env, {adaptor.getLhs(), adaptor.getRhs()},
                        IntegerType::get(env.getContext(), 1));
}

LogicalResult SelectOp::inferDims(Adaptor adaptor, DimEnv &env) {
  return inferBroadcast(
      env, {adaptor.getCondition(), adaptor.getOnTrue(), adaptor.getOnFalse()},
      elementTypeOf(adaptor.getOnTrue()));
}

LogicalResult CastOp::inferDims(Adaptor adaptor, DimEnv &env) {
  env.addResult(env.shape(adaptor.getInput()), Type());
  return success();
}

LogicalResult BitcastOp::inferDims(Adaptor adaptor, DimEnv &env) {
  env.addResult(env.shape(adaptor.getInput()), Type());
  return success();
}

LogicalResult ActivationOp::inferDims(Adaptor adaptor, DimEnv &env) {
  return env.same(adaptor.getInput());
}

LogicalResult ClampOp::inferDims(Adaptor adaptor, DimEnv &env) {
  return env.same(adaptor.getInput());
}

LogicalResult PreluOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims out;
  if (failed(env.broadcast(env.shape(adaptor.getInput()),
                           env.shape(adaptor.getSlope()), out)))
    return failure();
  return env.same(adaptor.getInput());
}

//===- Verifiers ----------------------------------------------------------===//

static constexpr StringLiteral kIntegerUnary[] = {"abs", "neg", "sign", "not",
                                                  "popcount"};
static constexpr StringLiteral kIntegerOnlyUnary[] = {"not", "popcount"};
static constexpr StringLiteral kIntegerOnlyBinary[] = {"and", "or", "xor",
                                                       "shl", "shr"};

LogicalResult UnaryOp::verify() {
  Type element = elementTypeOf(getInput());
  bool isFloat = isa<FloatType>(element), isInteger = isa<IntegerType>(element);
  if (isFloat && llvm::is_contained(kIntegerOnlyUnary, getKind()))
    return emitOpError() << getKind() << " needs integers, not " << element;
  if (isInteger && !llvm::is_contained(kIntegerUnary, getKind()))
    return emitOpError() << getKind() << " needs floats, not " << element;
  if ((getPositive() || getNegative()) && getKind() != "isinf")
    return emitOpError() << "positive and negative belong to isinf, not to "
                         << getKind();
  return success();
}

LogicalResult BinaryOp::verify() {
  Type left = elementTypeOf(getLhs()), right = elementTypeOf(getRhs());
  if (left != right && getKind() != "pow")
    return emitOpError() << getKind()
                         << " needs operands of one element type, not " << left
                         << " and " << right;
  if (isa<FloatType>(left) && llvm::is_contained(kIntegerOnlyBinary, getKind()))
    return emitOpError() << getKind() << " needs integers, not " << left;
  if (!isa<FloatType>(left) && getKind() == "atan2")
    return emitOpError() << "atan2 needs floats, not " << left;
  return success();
}

LogicalResult CompareOp::verify() {
  Type left = elementTypeOf(getLhs()), right = elementTypeOf(getRhs());
  if (left != right)
    return emitOpError() << "needs operands of one element type, not " << left
                         << " and " << right;
  return success();
}

LogicalResult SelectOp::verify() {
  Type left = elementTypeOf(getOnTrue()), right = elementTypeOf(getOnFalse());
  if (left != right)
    return emitOpError() << "needs alternatives of one element type, not "
                         << left << " and " << right;
  return success();
}

LogicalResult BitcastOp::verify() {
  Type from = elementTypeOf(getInput()), to = elementTypeOf(getResult());
  if (!from.isIntOrFloat() || !to.isIntOrFloat() ||
      from.getIntOrFloatBitWidth() != to.getIntOrFloatBitWidth())
    return emitOpError() << "reads " << from << " as " << to
                         << ", which has another width";
  return success();
}

LogicalResult ClampOp::verify() {
  Type element = elementTypeOf(getInput());
  for (Value bound : {getLow(), getHigh()}) {
    if (!bound)
      continue;
    auto type = cast<RankedTensorType>(bound.getType());
    if (type.getRank() != 0 || type.getElementType() != element)
      return emitOpError() << "needs bounds of type "
                           << RankedTensorType::get({}, element) << ", not "
                           << type;
  }
  return success();
}

//===- Folders ------------------------------------------------------------===//

/// The value when all elements of a constant are the same float or integer.
static std::optional<double> splatOf(Attribute attr) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(attr);
  if (!elements || !elements.isSplat() ||
      !elements.getElementType().isIntOrFloat())
    return std::nullopt;
  Type type = elements.getElementType();
  unsigned width = type.getIntOrFloatBitWidth();
  if (width > 64)
    return std::nullopt;
  if (isa<FloatType>(type))
    return elements.getSplatValue<APFloat>().convertToDouble();
  if (width == 1)
    return std::nullopt;
  return static_cast<double>(elements.getSplatValue<APInt>().getSExtValue());
}

OpFoldResult UnaryOp::fold(FoldAdaptor) {
  auto producer = getInput().getDefiningOp<UnaryOp>();
  bool cancels = getKind() == "neg" || getKind() == "not";
  bool repeats = llvm::is_contained(
      {"abs", "sign", "floor", "ceil", "round", "trunc"}, getKind());
  if (!producer || producer.getKind() != getKind() ||
      producer.getIsUnsigned() != getIsUnsigned())
    return {};
  if (cancels && producer.getInput().getType() == getType())
    return producer.getInput();
  if (repeats && getInput().getType() == getType())
    return getInput();
  return {};
}

OpFoldResult BinaryOp::fold(FoldAdaptor adaptor) {
  std::optional<double> left = splatOf(adaptor.getLhs()),
                        right = splatOf(adaptor.getRhs());
  StringRef kind = getKind();
  bool isFloat = isa<FloatType>(elementTypeOf(getLhs()));
  // x + 0.0 turns -0.0 into +0.0, x + -0.0 and x - 0.0 never change x.
  bool zeroIsNeutral =
      kind == "sub"
          ? right == 0.0 && !(isFloat && std::signbit(*right))
          : kind == "add" && right == 0.0 && (!isFloat || std::signbit(*right));
  bool oneIsNeutral =
      (kind == "mul" || kind == "div" || kind == "pow") && right == 1.0;
  bool bitsAreNeutral =
      (kind == "or" || kind == "xor" || kind == "shl" || kind == "shr") &&
      right == 0.0;
  if ((zeroIsNeutral || oneIsNeutral || bitsAreNeutral) &&
      getLhs().getType() == getType())
    return getLhs();
  bool leftIsNeutral =
      (kind == "mul" && left == 1.0) ||
      (kind == "add" && left == 0.0 && (!isFloat || std::signbit(*left))) ||
      ((kind == "or" || kind == "xor") && left == 0.0);
  if (leftIsNeutral && getRhs().getType() == getType())
    return getRhs();
  if ((kind == "max" || kind == "min" || kind == "and" || kind == "or") &&
      getLhs() == getRhs() && getLhs().getType() == getType())
    return getLhs();
  return {};
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse() && getOnTrue().getType() == getType())
    return getOnTrue();
  auto condition = dyn_cast_or_null<DenseElementsAttr>(adaptor.getCondition());
  if (!condition || !condition.isSplat())
    return {};
  Value chosen = condition.getSplatValue<bool>() ? getOnTrue() : getOnFalse();
  return chosen.getType() == getType() ? OpFoldResult(chosen) : OpFoldResult();
}

/// Whether every value of `from` is a value of `to`.
static bool isLossless(Type from, bool isUnsignedFrom, Type to,
                       bool isUnsignedTo) {
  if (auto fromFloat = dyn_cast<FloatType>(from)) {
    auto toFloat = dyn_cast<FloatType>(to);
    return toFloat && APFloat::isRepresentableBy(fromFloat.getFloatSemantics(),
                                                 toFloat.getFloatSemantics());
  }
  auto fromInteger = dyn_cast<IntegerType>(from);
  if (!fromInteger)
    return false;
  unsigned bits = fromInteger.getWidth();
  bool isNonNegative = isUnsignedFrom || bits == 1;
  if (auto toInteger = dyn_cast<IntegerType>(to)) {
    if (isNonNegative == isUnsignedTo)
      return toInteger.getWidth() >= bits;
    return isNonNegative && toInteger.getWidth() > bits;
  }
  auto toFloat = dyn_cast<FloatType>(to);
  return toFloat &&
         APFloat::semanticsPrecision(toFloat.getFloatSemantics()) >=
             bits - (isNonNegative ? 0 : 1) &&
         APFloat::semanticsMaxExponent(toFloat.getFloatSemantics()) >=
             static_cast<int>(bits);
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType() && getUnsignedIn() == getUnsignedOut())
    return getInput();
  auto producer = getInput().getDefiningOp<CastOp>();
  if (!producer)
    return {};
  Type source = elementTypeOf(producer.getInput()),
       middle = elementTypeOf(getInput());
  if (middle == elementTypeOf(getResult()) ||
      producer.getUnsignedOut() != getUnsignedIn() ||
      !isLossless(source, producer.getUnsignedIn(), middle,
                  producer.getUnsignedOut()))
    return {};
  if (producer.getInput().getType() == getType() &&
      producer.getUnsignedIn() == getUnsignedOut())
    return producer.getInput();
  // The middle type changes nothing: read the source. Its sign is the one that
  // the producer read it with.
  getInputMutable().assign(producer.getInput());
  setUnsignedIn(producer.getUnsignedIn());
  return getResult();
}

OpFoldResult BitcastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto producer = getInput().getDefiningOp<BitcastOp>()) {
    if (producer.getInput().getType() == getType())
      return producer.getInput();
    getInputMutable().assign(producer.getInput());
    return getResult();
  }
  return {};
}

OpFoldResult ActivationOp::fold(FoldAdaptor) {
  auto producer = getInput().getDefiningOp<ActivationOp>();
  bool isRepeatedRelu =
      producer && getKind() == "relu" && producer.getKind() == "relu";
  return isRepeatedRelu && getInput().getType() == getType()
             ? OpFoldResult(getInput())
             : OpFoldResult();
}

OpFoldResult ClampOp::fold(FoldAdaptor) {
  return !getLow() && !getHigh() && getInput().getType() == getType()
             ? OpFoldResult(getInput())
             : OpFoldResult();
}
