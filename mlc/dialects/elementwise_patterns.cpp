// Canonicalizations of elementwise operations.
#include "dialect.h"

using namespace mlir;
using namespace mlc;

namespace {

/// op(broadcast(x), y) -> op(x, y) where y alone makes the result as large:
/// elementwise operations broadcast themselves.
template <typename Op> struct AbsorbBroadcast : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!type.hasStaticShape())
      return failure();
    for (OpOperand &operand : op->getOpOperands()) {
      auto broadcast = operand.get().template getDefiningOp<BroadcastOp>();
      if (!broadcast || !isMadeByOthers(op, operand.getOperandNumber(),
                                        broadcast.getInput(), type))
        continue;
      rewriter.modifyOpInPlace(op, [&] { operand.set(broadcast.getInput()); });
      return success();
    }
    return failure();
  }

private:
  /// Whether the result keeps its shape when operand `number` is `replacement`.
  static bool isMadeByOthers(Op op, unsigned number, Value replacement,
                             RankedTensorType type) {
    SmallVector<Value> operands(op->getOperands());
    operands[number] = replacement;
    DimEnv env(op.getContext(), std::nullopt, op->getName().getStringRef(),
               operands);
    Dims dims = env.shape(operands.front());
    for (Value operand : ArrayRef(operands).drop_front()) {
      Dims out;
      if (failed(env.broadcast(dims, env.shape(operand), out)))
        return false;
      dims = out;
    }
    return dims.size() == static_cast<size_t>(type.getRank()) &&
           llvm::all_of(llvm::zip(dims, type.getShape()), [](auto pair) {
             return std::get<0>(pair).getConstant() == std::get<1>(pair);
           });
  }
};

/// Constants stand on the right of commutative operations.
struct ConstantRight : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const override {
    static constexpr StringLiteral commutative[] = {"add", "mul", "max", "min",
                                                    "and", "or",  "xor"};
    bool isMisplaced = matchPattern(op.getLhs(), m_Constant()) &&
                       !matchPattern(op.getRhs(), m_Constant());
    if (!isMisplaced || !llvm::is_contained(commutative, op.getKind()))
      return failure();
    Value lhs = op.getLhs(), rhs = op.getRhs();
    rewriter.modifyOpInPlace(op, [&] {
      op.getLhsMutable().assign(rhs);
      op.getRhsMutable().assign(lhs);
    });
    return success();
  }
};

} // namespace

void BinaryOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<AbsorbBroadcast<BinaryOp>, ConstantRight>(context);
}

void CompareOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<AbsorbBroadcast<CompareOp>>(context);
}

void SelectOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<AbsorbBroadcast<SelectOp>>(context);
}
