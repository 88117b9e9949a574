#include "dialect.h"

using namespace mlir;
using namespace mlc;

LogicalResult MatmulOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims lhs = env.shape(adaptor.getLhs()), rhs = env.shape(adaptor.getRhs());
  if (lhs.size() < 2 || rhs.size() < 2)
    return env.error("needs operands of rank 2 or more, not " + shapeText(lhs) +
                     " and " + shapeText(rhs));
  std::string shapes = " of " + shapeText(lhs) + " and " + shapeText(rhs);
  if (adaptor.getTransposeLhsAttr())
    std::swap(lhs[lhs.size() - 1], lhs[lhs.size() - 2]);
  if (adaptor.getTransposeRhsAttr())
    std::swap(rhs[rhs.size() - 1], rhs[rhs.size() - 2]);
  if (failed(env.expectEqual(lhs.back(), rhs[rhs.size() - 2],
                             "contraction extents" + shapes)))
    return failure();
  Type element = elementTypeOf(adaptor.getLhs());
  bool widen = adaptor.getWidenAttr() != nullptr;
  if (failed(env.expectFactors(adaptor.getLhs(), adaptor.getRhs(), widen)))
    return failure();
  Dims out;
  if (failed(env.broadcast(ArrayRef<Dim>(lhs).drop_back(2),
                           ArrayRef<Dim>(rhs).drop_back(2), out)))
    return failure();
  out.push_back(lhs[lhs.size() - 2]);
  out.push_back(rhs.back());
  env.addResult(out, accumulatorType(element, widen));
  return success();
}

//===- Einsum -------------------------------------------------------------===//

namespace {
/// The labels of one term; `...` stands for a number of leading broadcast
/// dimensions.
struct EinsumTerm {
  std::string before, after; // around the ellipsis, all in `before` without one
  bool hasEllipsis = false;
};
} // namespace

static EinsumTerm parseTerm(StringRef term) {
  EinsumTerm parsed;
  auto [before, after] = term.split("...");
  parsed.hasEllipsis = term.contains("...");
  parsed.before = before.str();
  parsed.after = after.str();
  return parsed;
}

/// The output term of an equation without `->`: the ellipsis, then every label
/// that occurs once, in order.
static EinsumTerm implicitOutput(StringRef inputs) {
  std::map<char, int> counts;
  for (char label : inputs)
    if (isalpha(label))
      ++counts[label];
  EinsumTerm output;
  output.hasEllipsis = inputs.contains("...");
  for (auto [label, count] : counts)
    if (count == 1)
      (output.hasEllipsis ? output.after : output.before) += label;
  return output;
}

/// Unifies the labels of one operand with those seen before.
static LogicalResult bindTerm(DimEnv &env, const EinsumTerm &term,
                              ArrayRef<Dim> dims, StringRef output,
                              std::map<char, Dim> &labels, Dims &ellipsis) {
  size_t named = term.before.size() + term.after.size();
  if (dims.size() < named || (!term.hasEllipsis && dims.size() != named))
    return env.error("term '" + term.before + (term.hasEllipsis ? "..." : "") +
                     term.after + "' does not fit the shape " +
                     shapeText(dims));
  size_t middle = dims.size() - named;
  std::string names = term.before + term.after;
  for (size_t i = 0; i < names.size(); ++i) {
    const Dim &dim = dims[i < term.before.size() ? i : i + middle];
    auto [it, isNew] = labels.try_emplace(names[i], dim);
    if (isNew)
      continue;
    std::string what = "extents of '" + std::string(1, names[i]) +
                       "' in the operand of shape " + shapeText(dims) +
                       " and one before";
    // What is summed over stretches only where an extent is known to be 1.
    bool isSummed = !llvm::is_contained(output, names[i]);
    if (isSummed && !dim.isOne() && !it->second.isOne() &&
        failed(env.expectEqual(it->second, dim, what)))
      return failure();
    if (failed(env.broadcast(Dim(it->second), dim, it->second)))
      return env.error(what + " differ");
  }
  Dims out;
  if (failed(
          env.broadcast(ellipsis, dims.slice(term.before.size(), middle), out)))
    return failure();
  ellipsis = out;
  return success();
}

LogicalResult EinsumOp::inferDims(Adaptor adaptor, DimEnv &env) {
  std::string equation = text(adaptor.getEquationAttr(), "").str();
  llvm::erase(equation, ' ');
  auto [left, right] = StringRef(equation).split("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (adaptor.getInputs().empty() || terms.size() != adaptor.getInputs().size())
    return env.error("equation '" + equation + "' has " + Twine(terms.size()) +
                     " terms for " + Twine(adaptor.getInputs().size()) +
                     " operands");
  EinsumTerm output = StringRef(equation).contains("->") ? parseTerm(right)
                                                         : implicitOutput(left);
  std::map<char, Dim> labels;
  Dims ellipsis;
  for (auto [term, input] : llvm::zip(terms, adaptor.getInputs()))
    if (failed(bindTerm(env, parseTerm(term), env.shape(input),
                        output.before + output.after, labels, ellipsis)))
      return failure();
  Dims out;
  for (char label :
       output.before + (output.hasEllipsis ? "." : "") + output.after) {
    if (label == '.')
      out.append(ellipsis);
    else if (auto it = labels.find(label); it != labels.end())
      out.push_back(it->second);
    else
      return env.error("equation '" + equation +
                       "' has the unknown output label '" + Twine(label) + "'");
  }
  env.addResult(out, elementTypeOf(adaptor.getInputs().front()));
  return success();
}

//===- Canonicalization ---------------------------------------------------===//

namespace {
/// matmul(transpose(x), y) -> matmul(x, y) {transpose_lhs} where the transpose
/// swaps the last two dimensions. The operands of a widening product are in the
/// order that its kernel wants.
struct FoldTransposeIntoMatmul : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  static Value swapped(Value operand) {
    auto transpose = operand.getDefiningOp<TransposeOp>();
    if (!transpose)
      return {};
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    size_t rank = permutation.size();
    for (size_t i = 0; i + 2 < rank; ++i)
      if (permutation[i] != static_cast<int64_t>(i))
        return {};
    bool swapsLast =
        rank >= 2 && permutation[rank - 1] == static_cast<int64_t>(rank) - 2;
    return swapsLast ? transpose.getInput() : Value();
  }

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getWiden())
      return failure();
    Value lhs = swapped(op.getLhs()), rhs = swapped(op.getRhs());
    if (!lhs && !rhs)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      if (lhs) {
        op.getLhsMutable().assign(lhs);
        op.setTransposeLhs(!op.getTransposeLhs());
      }
      if (rhs) {
        op.getRhsMutable().assign(rhs);
        op.setTransposeRhs(!op.getTransposeRhs());
      }
    });
    return success();
  }
};
} // namespace

void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<FoldTransposeIntoMatmul>(context);
}
