#include "dialect.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlc;

//===- Dim ----------------------------------------------------------------===//

std::optional<int64_t> Dim::getConstant() const {
  if (auto constant = dyn_cast_or_null<AffineConstantExpr>(expr))
    return constant.getValue();
  return std::nullopt;
}

namespace mlc {
Dim operator+(const Dim &lhs, const Dim &rhs) {
  return lhs && rhs ? Dim(lhs.expr + rhs.expr) : Dim();
}
Dim operator-(const Dim &lhs, const Dim &rhs) {
  return lhs && rhs ? Dim(lhs.expr - rhs.expr) : Dim();
}
Dim operator*(const Dim &lhs, int64_t rhs) {
  return lhs ? Dim(lhs.expr * rhs) : Dim();
}
Dim operator+(const Dim &lhs, int64_t rhs) {
  return lhs ? Dim(lhs.expr + rhs) : Dim();
}
Dim floorDiv(const Dim &lhs, int64_t rhs) {
  return lhs ? Dim(lhs.expr.floorDiv(rhs)) : Dim();
}
} // namespace mlc

//===- DimEnv -------------------------------------------------------------===//

DimEnv::DimEnv(MLIRContext *context, std::optional<Location> location,
               StringRef opName, ValueRange operands)
    : context(context), location(location), opName(opName) {
  auto symbol = [&](Value value, int64_t dim) {
    symbols.push_back({value, dim});
    return getAffineSymbolExpr(symbols.size() - 1, context);
  };
  for (Value operand : operands) {
    if (shapes.count(operand) || indices.count(operand))
      continue;
    if (auto type = dyn_cast<ShapedType>(operand.getType());
        type && type.hasRank()) {
      Dims dims;
      for (auto [i, extent] : llvm::enumerate(type.getShape()))
        dims.push_back(ShapedType::isDynamic(extent) ? Dim(symbol(operand, i))
                                                     : constant(extent));
      shapes[operand] = std::move(dims);
    } else if (operand.getType().isIndex()) {
      std::optional<int64_t> value = getConstantIntValue(operand);
      indices[operand] =
          value ? getAffineConstantExpr(*value, context) : symbol(operand, -1);
    }
  }
}

DimEnv::DimEnv(Operation *op, ArrayRef<Dims> givenShapes,
               ArrayRef<AffineExpr> givenIndices)
    : context(op->getContext()), location(op->getLoc()),
      opName(op->getName().getStringRef()) {
  for (Value operand : op->getOperands()) {
    if (isa<ShapedType>(operand.getType()) && !givenShapes.empty()) {
      shapes[operand] = givenShapes.front();
      givenShapes = givenShapes.drop_front();
    } else if (operand.getType().isIndex() && !givenIndices.empty()) {
      indices[operand] = givenIndices.front();
      givenIndices = givenIndices.drop_front();
    }
  }
}

const Dims &DimEnv::shape(Value tensor) const {
  static const Dims none;
  auto it = shapes.find(tensor);
  if (it != shapes.end())
    return it->second;
  mistyped = tensor;
  return none;
}

Dim DimEnv::index(Value value) const {
  auto it = indices.find(value);
  if (it != indices.end())
    return Dim(it->second);
  mistyped = value;
  return Dim();
}

LogicalResult DimEnv::mixed(DenseI64ArrayAttr statics, ValueRange dynamic,
                            StringRef what, Dims &out) {
  size_t used = 0;
  for (int64_t entry : list(statics)) {
    if (!ShapedType::isDynamic(entry))
      out.push_back(constant(entry));
    else if (used < dynamic.size())
      out.push_back(index(dynamic[used++]));
    else
      return error("static_" + what + " has more dynamic entries than the " +
                   Twine(dynamic.size()) + " operands of " + what);
  }
  if (used != dynamic.size())
    return error("static_" + what + " has " + Twine(used) +
                 " dynamic entries, but " + what + " has " +
                 Twine(dynamic.size()) + " operands");
  return success();
}

LogicalResult DimEnv::broadcast(const Dim &lhs, const Dim &rhs, Dim &out) {
  std::optional<int64_t> left = lhs.getConstant(), right = rhs.getConstant();
  if (lhs == rhs || right == 1) {
    out = lhs;
  } else if (left == 1) {
    out = rhs;
  } else if (left && right) {
    return failure();
  } else if (left || right) { // the unknown one is 1 or equal
    out = left ? lhs : rhs;
  } else {
    Dim both;
    for (const Dim *dim : {&lhs, &rhs}) {
      if (!*dim && dim->broadcast.empty()) { // unknown altogether
        out = Dim();
        return success();
      }
      ArrayRef<AffineExpr> parts =
          *dim ? ArrayRef(dim->expr) : ArrayRef(dim->broadcast);
      for (AffineExpr part : parts)
        if (!llvm::is_contained(both.broadcast, part))
          both.broadcast.push_back(part);
    }
    out = both;
  }
  return success();
}

LogicalResult DimEnv::broadcast(ArrayRef<Dim> lhs, ArrayRef<Dim> rhs,
                                Dims &out) {
  size_t rank = std::max(lhs.size(), rhs.size());
  out.assign(rank, Dim());
  for (size_t i = 0; i < rank; ++i) {
    size_t skipLeft = rank - lhs.size(), skipRight = rank - rhs.size();
    if (i < skipLeft)
      out[i] = rhs[i - skipRight];
    else if (i < skipRight)
      out[i] = lhs[i - skipLeft];
    else if (failed(broadcast(lhs[i - skipLeft], rhs[i - skipRight], out[i])))
      return error("shapes " + shapeText(lhs) + " and " + shapeText(rhs) +
                   " do not broadcast");
  }
  return success();
}

void DimEnv::require(const Dim &lhs, const Dim &rhs, Requirement::Kind kind,
                     const Twine &what) {
  if (lhs && rhs && !(lhs == rhs) && !(lhs.getConstant() && rhs.getConstant()))
    requirements.push_back({lhs, rhs, kind, what.str()});
}

LogicalResult DimEnv::expectEqual(const Dim &lhs, const Dim &rhs,
                                  const Twine &what) {
  std::optional<int64_t> left = lhs.getConstant(), right = rhs.getConstant();
  if (left && right && *left != *right)
    return error(what + " differ: " + Twine(*left) + " and " + Twine(*right));
  require(lhs, rhs, Requirement::Equal, what);
  return success();
}

LogicalResult DimEnv::expectAtMost(const Dim &lhs, const Dim &rhs,
                                   const Twine &what) {
  std::optional<int64_t> left = lhs.getConstant(), right = rhs.getConstant();
  if (left && right && *left > *right)
    return error(what + ": " + Twine(*left) + " is more than " + Twine(*right));
  require(lhs, rhs, Requirement::AtMost, what);
  return success();
}

LogicalResult DimEnv::expectStretches(const Dim &lhs, const Dim &rhs,
                                      const Twine &what) {
  std::optional<int64_t> left = lhs.getConstant(), right = rhs.getConstant();
  if (left && right && *left != 1 && *left != *right)
    return error(what);
  if (!lhs.isOne())
    require(lhs, rhs, Requirement::Stretches, what);
  return success();
}

LogicalResult DimEnv::expectSource(const Dim &count, const Dim &extent,
                                   const Twine &what) {
  if (extent.getConstant().value_or(0) > 0)
    return success();
  // Of one element or more there may be any number.
  return expectAtMost(count, extent * (int64_t(1) << 31), what);
}

LogicalResult DimEnv::expectRank(Value tensor, int64_t rank,
                                 const Twine &what) {
  const Dims &dims = shape(tensor);
  if (static_cast<int64_t>(dims.size()) != rank)
    return error(what + " must have rank " + Twine(rank) +
                 ", but its shape is " + shapeText(dims));
  return success();
}

LogicalResult DimEnv::expectSameElements(Value lhs, Value rhs) {
  Type left = elementTypeOf(lhs), right = elementTypeOf(rhs);
  if (left == right)
    return success();
  std::string text;
  llvm::raw_string_ostream(text) << left << " and " << right;
  return error("needs operands of one element type, not " + text);
}

LogicalResult DimEnv::expectFactors(Value lhs, Value rhs, bool widen) {
  Type left = elementTypeOf(lhs), right = elementTypeOf(rhs);
  if (widen && left.isF32() && isa<FloatType>(right) &&
      right.getIntOrFloatBitWidth() < 32)
    return success();
  return expectSameElements(lhs, rhs);
}

LogicalResult DimEnv::expectAxis(IntegerAttr axis, int64_t rank) {
  if (!axis)
    return error("axis is missing");
  if (axis.getInt() < 0 || axis.getInt() >= rank)
    return error("axis " + Twine(axis.getInt()) + " is out of range for rank " +
                 Twine(rank));
  return success();
}

LogicalResult DimEnv::same(Value tensor, Type elementType) {
  addResult(shape(tensor), elementType ? elementType : elementTypeOf(tensor));
  return success();
}

LogicalResult DimEnv::error(const Twine &message) const {
  if (mistyped) { // the message would be about what follows from that
    std::string type;
    llvm::raw_string_ostream(type) << mistyped.getType();
    return emitOptionalError(
        location, "'", opName, "' op takes no ", type,
        " there: ranked tensors for data, index for sizes");
  }
  return emitOptionalError(location, "'", opName, "' op ", message);
}

static int64_t extentOf(const Dim &dim) {
  std::optional<int64_t> constant = dim.getConstant();
  return constant && *constant >= 0 ? *constant : ShapedType::kDynamic;
}

LogicalResult DimEnv::checkExtents(const Result &result) const {
  for (const Dim &dim : result.dims)
    if (std::optional<int64_t> constant = dim.getConstant();
        constant && *constant < 0)
      return error("the result shape " + shapeText(result.dims) +
                   " has a negative extent");
  return success();
}

LogicalResult DimEnv::resultTypes(SmallVectorImpl<Type> &types) const {
  if (mistyped)
    return error("");
  for (const Result &result : results) {
    if (failed(checkExtents(result)))
      return failure();
    types.push_back(RankedTensorType::get(
        llvm::map_to_vector(result.dims, extentOf), result.elementType));
  }
  return success();
}

//===- Helpers and the users of computeDims -------------------------------===//

Type mlc::elementTypeOf(Value tensor) {
  return getElementTypeOrSelf(tensor.getType());
}

std::string mlc::shapeText(ArrayRef<Dim> dims) {
  if (dims.empty())
    return "[]";
  return llvm::join(llvm::map_range(dims,
                                    [](const Dim &dim) {
                                      std::optional<int64_t> constant =
                                          dim.getConstant();
                                      return constant
                                                 ? std::to_string(*constant)
                                                 : std::string("?");
                                    }),
                    "x");
}

Type mlc::accumulatorType(Type element, bool widen) {
  if (element.isInteger(8))
    return IntegerType::get(element.getContext(), 32);
  if (widen && isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(element.getContext());
  return element;
}

bool mlc::areCompatible(TypeRange lhs, TypeRange rhs) {
  if (lhs.size() != rhs.size())
    return false;
  return llvm::all_of(llvm::zip(lhs, rhs), [](auto pair) {
    auto [left, right] = pair;
    auto leftShaped = dyn_cast<RankedTensorType>(left),
         rightShaped = dyn_cast<RankedTensorType>(right);
    if (!leftShaped || !rightShaped)
      return left == right;
    return leftShaped.getElementType() == rightShaped.getElementType() &&
           succeeded(verifyCompatibleShape(leftShaped.getShape(),
                                           rightShaped.getShape()));
  });
}

LogicalResult mlc::verifyShapes(Operation *op) {
  DimEnv env(op->getContext(), op->getLoc(), op->getName().getStringRef(),
             op->getOperands());
  if (failed(cast<DimOpInterface>(op).computeDims(env)))
    return failure();
  for (auto [result, derived] :
       llvm::zip_equal(op->getResults(), env.getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    if (failed(env.checkExtents(derived)))
      return failure();
    Type element =
        derived.elementType ? derived.elementType : type.getElementType();
    auto expected = RankedTensorType::get(
        llvm::map_to_vector(derived.dims, extentOf), element);
    if (!areCompatible(expected, type))
      return op->emitOpError() << "has a result of type " << type
                               << " where its operands give " << expected;
  }
  return success();
}

namespace {
/// Turns affine expressions into index arithmetic before an operation.
class Expander {
public:
  Expander(OpBuilder &builder, Location loc, ArrayRef<DimEnv::Symbol> symbols)
      : builder(builder), loc(loc), symbols(symbols) {}

  OpFoldResult expand(AffineExpr expr) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return builder.getIndexAttr(constant.getValue());
    return value(expr);
  }

  Value value(AffineExpr expr) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return arith::ConstantIndexOp::create(builder, loc, constant.getValue());
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
      const DimEnv::Symbol &source = symbols[symbol.getPosition()];
      return source.dim < 0
                 ? source.value
                 : tensor::DimOp::create(builder, loc, source.value, source.dim)
                       .getResult();
    }
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value lhs = value(binary.getLHS()), rhs = value(binary.getRHS());
    switch (expr.getKind()) {
    case AffineExprKind::Add:
      return arith::AddIOp::create(builder, loc, lhs, rhs);
    case AffineExprKind::Mul:
      return arith::MulIOp::create(builder, loc, lhs, rhs);
    case AffineExprKind::FloorDiv:
      return arith::FloorDivSIOp::create(builder, loc, lhs, rhs);
    case AffineExprKind::CeilDiv:
      return arith::CeilDivSIOp::create(builder, loc, lhs, rhs);
    default: // extents are not negative: the remainder is the modulus
      return arith::RemSIOp::create(builder, loc, lhs, rhs);
    }
  }

  /// The extent that several unknown ones broadcast to: the first that is not 1
  /// (0 wins over 1, unlike a maximum).
  Value broadcast(ArrayRef<AffineExpr> parts) {
    Value extent = value(parts.front());
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    for (AffineExpr part : parts.drop_front()) {
      Value other = value(part);
      Value isOne = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::eq, extent, one);
      extent = arith::SelectOp::create(builder, loc, isOne, other, extent);
    }
    return extent;
  }

private:
  OpBuilder &builder;
  Location loc;
  ArrayRef<DimEnv::Symbol> symbols;
};
} // namespace

LogicalResult mlc::reifyShapes(Operation *op, OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  DimEnv env(op->getContext(), std::nullopt, op->getName().getStringRef(),
             op->getOperands());
  if (failed(cast<DimOpInterface>(op).computeDims(env)))
    return failure();
  Expander expander(builder, op->getLoc(), env.getSymbols());
  for (auto [result, derived] :
       llvm::zip_equal(op->getResults(), env.getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<OpFoldResult> extents;
    for (auto [i, dim] : llvm::enumerate(derived.dims)) {
      if (!type.isDynamicDim(i))
        extents.push_back(builder.getIndexAttr(type.getDimSize(i)));
      else if (dim)
        extents.push_back(expander.expand(dim.getExpr()));
      else if (!dim.getBroadcast().empty())
        extents.push_back(expander.broadcast(dim.getBroadcast()));
      else // known only when the operation has run
        return failure();
    }
    shapes.push_back(std::move(extents));
  }
  return success();
}
