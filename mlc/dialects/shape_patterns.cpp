// Canonicalizations of data movement.
#include "dialect.h"

using namespace mlir;
using namespace mlc;

namespace {

/// Moves constant operands of a mixed list into its static part. Returns
/// whether there were any.
bool makeStatic(ArrayRef<int64_t> statics, ValueRange dynamic,
                SmallVectorImpl<int64_t> &newStatics,
                SmallVectorImpl<Value> &newDynamic) {
  size_t used = 0;
  for (int64_t entry : statics) {
    if (!ShapedType::isDynamic(entry)) {
      newStatics.push_back(entry);
      continue;
    }
    Value operand = dynamic[used++];
    // kDynamic itself cannot be a static entry.
    std::optional<int64_t> value = getConstantIntValue(operand);
    bool isStatic = value && !ShapedType::isDynamic(*value);
    newStatics.push_back(isStatic ? *value : ShapedType::kDynamic);
    if (!isStatic)
      newDynamic.push_back(operand);
  }
  return newDynamic.size() != dynamic.size();
}

/// Result types keep their declared extents: users see the type that they were
/// built for.
template <typename Op> struct StaticSizes : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    SmallVector<int64_t> statics;
    SmallVector<Value> dynamic;
    if (!makeStatic(op.getStaticSizes(), op.getSizes(), statics, dynamic))
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getSizesMutable().assign(dynamic);
      op.setStaticSizes(statics);
    });
    return success();
  }
};

struct StaticSlice : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<int64_t> offsets, sizes, strides;
    SmallVector<Value> newOffsets, newSizes, newStrides;
    bool changes =
        makeStatic(op.getStaticOffsets(), op.getOffsets(), offsets, newOffsets);
    changes |= makeStatic(op.getStaticSizes(), op.getSizes(), sizes, newSizes);
    changes |=
        makeStatic(op.getStaticStrides(), op.getStrides(), strides, newStrides);
    if (!changes)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getOffsetsMutable().assign(newOffsets);
      op.getSizesMutable().assign(newSizes);
      op.getStridesMutable().assign(newStrides);
      op.setStaticOffsets(offsets);
      op.setStaticSizes(sizes);
      op.setStaticStrides(strides);
    });
    return success();
  }
};

struct StaticPad : OpRewritePattern<PadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PadOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<int64_t> low, high;
    SmallVector<Value> newLow, newHigh;
    bool changes = makeStatic(op.getStaticLow(), op.getLow(), low, newLow);
    changes |= makeStatic(op.getStaticHigh(), op.getHigh(), high, newHigh);
    if (!changes)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getLowMutable().assign(newLow);
      op.getHighMutable().assign(newHigh);
      op.setStaticLow(low);
      op.setStaticHigh(high);
    });
    return success();
  }
};

/// reshape(reshape(x)) -> reshape(x).
struct MergeReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto producer = op.getInput().getDefiningOp<ReshapeOp>();
    if (!producer)
      return failure();
    rewriter.modifyOpInPlace(
        op, [&] { op.getInputMutable().assign(producer.getInput()); });
    return success();
  }
};

/// transpose(transpose(x)) -> transpose(x) with the composed permutation.
struct MergeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto producer = op.getInput().getDefiningOp<TransposeOp>();
    if (!producer)
      return failure();
    SmallVector<int64_t> composed =
        llvm::map_to_vector(op.getPermutation(), [&](int64_t axis) {
          return producer.getPermutation()[axis];
        });
    rewriter.modifyOpInPlace(op, [&] {
      op.getInputMutable().assign(producer.getInput());
      op.setPermutation(composed);
    });
    return success();
  }
};

/// broadcast(broadcast(x)) -> broadcast(x).
struct MergeBroadcasts : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    auto producer = op.getInput().getDefiningOp<BroadcastOp>();
    if (!producer)
      return failure();
    rewriter.modifyOpInPlace(
        op, [&] { op.getInputMutable().assign(producer.getInput()); });
    return success();
  }
};

/// Operands that are concatenations along the same axis are spliced in;
/// operands with nothing in them are dropped.
struct FlattenConcat : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<Value> inputs;
    for (Value input : op.getInputs()) {
      auto type = cast<RankedTensorType>(input.getType());
      auto producer = input.getDefiningOp<ConcatOp>();
      if (producer && producer.getAxis() == op.getAxis() &&
          producer->hasOneUse())
        llvm::append_range(inputs, producer.getInputs());
      else if (type.getDimSize(op.getAxis()) != 0)
        inputs.push_back(input);
    }
    if (inputs.empty() || llvm::equal(inputs, op.getInputs()))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getInputsMutable().assign(inputs); });
    return success();
  }
};

} // namespace

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<StaticSizes<ReshapeOp>, MergeReshapes>(context);
}

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<MergeTransposes>(context);
}

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<StaticSizes<BroadcastOp>, MergeBroadcasts>(context);
}

void ConcatOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<FlattenConcat>(context);
}

void SliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<StaticSlice>(context);
}

void PadOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                        MLIRContext *context) {
  patterns.add<StaticPad>(context);
}

void IotaOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<StaticSizes<IotaOp>>(context);
}
