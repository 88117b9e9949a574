#include "dialect.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlc;

//===- Shapes -------------------------------------------------------------===//

LogicalResult ReshapeOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims sizes;
  if (failed(env.mixed(adaptor.getStaticSizesAttr(), adaptor.getSizes(),
                       "sizes", sizes)))
    return failure();
  env.addResult(sizes, elementTypeOf(adaptor.getInput()));
  return success();
}

LogicalResult TransposeOp::inferDims(Adaptor adaptor, DimEnv &env) {
  const Dims &in = env.shape(adaptor.getInput());
  ArrayRef<int64_t> permutation = list(adaptor.getPermutationAttr());
  if (permutation.size() != in.size() || !isPermutationVector(permutation))
    return env.error("permutation [" +
                     llvm::join(llvm::map_range(permutation,
                                                [](int64_t axis) {
                                                  return std::to_string(axis);
                                                }),
                                ", ") +
                     "] does not permute the dimensions of " + shapeText(in));
  env.addResult(llvm::map_to_vector<6>(permutation,
                                       [&](int64_t axis) { return in[axis]; }),
                elementTypeOf(adaptor.getInput()));
  return success();
}

LogicalResult BroadcastOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims sizes, out;
  if (failed(env.mixed(adaptor.getStaticSizesAttr(), adaptor.getSizes(),
                       "sizes", sizes)))
    return failure();
  const Dims &in = env.shape(adaptor.getInput());
  if (in.size() > sizes.size())
    return env.error("shape " + shapeText(in) + " does not broadcast to " +
                     shapeText(sizes));
  for (auto [dim, size] :
       llvm::zip(in, ArrayRef<Dim>(sizes).take_back(in.size()))) {
    if (failed(env.expectStretches(dim, size,
                                   "shape " + shapeText(in) +
                                       " does not broadcast to " +
                                       shapeText(sizes))))
      return failure();
  }
  env.addResult(sizes, elementTypeOf(adaptor.getInput()));
  return success();
}

LogicalResult ConcatOp::inferDims(Adaptor adaptor, DimEnv &env) {
  if (adaptor.getInputs().empty())
    return env.error("needs at least one operand");
  Value first = adaptor.getInputs().front();
  Dims out = env.shape(first);
  if (failed(env.expectAxis(adaptor.getAxisAttr(), out.size())))
    return failure();
  size_t axis = adaptor.getAxisAttr().getInt();
  for (Value input : adaptor.getInputs().drop_front()) {
    const Dims &dims = env.shape(input);
    if (dims.size() != out.size() ||
        elementTypeOf(input) != elementTypeOf(first))
      return env.error("needs operands of one rank and element type, not " +
                       shapeText(env.shape(first)) + " and " + shapeText(dims));
    for (size_t i = 0; i < out.size(); ++i) {
      if (i == axis) {
        out[i] = out[i] + dims[i];
        continue;
      }
      std::string shapes =
          " of " + shapeText(env.shape(first)) + " and " + shapeText(dims);
      if (failed(env.expectEqual(out[i], dims[i],
                                 "extents of dimension " + Twine(i) + shapes)))
        return failure();
      if (dims[i].getConstant())
        out[i] = dims[i];
    }
  }
  env.addResult(out, elementTypeOf(first));
  return success();
}

/// A slice lies inside of its input, which only the run can tell. One that goes
/// backwards, or in steps that the run tells, is clamped by who builds it.
static LogicalResult requireWithin(DimEnv &env, const Dim &extent,
                                   const Dim &offset, const Dim &size,
                                   const Dim &stride, size_t dim) {
  std::optional<int64_t> step = stride.getConstant();
  if (!step || *step < 1 || !size || !offset)
    return success();
  std::string what = "a slice of dimension " + std::to_string(dim) +
                     " must lie inside of its input";
  Dim end = offset + size * *step + (1 - *step);
  return success(succeeded(env.expectAtMost(env.constant(0), offset, what)) &&
                 succeeded(env.expectAtMost(end, extent, what)));
}

LogicalResult SliceOp::inferDims(Adaptor adaptor, DimEnv &env) {
  size_t rank = env.shape(adaptor.getInput()).size();
  Dims offsets, sizes, strides;
  if (failed(env.mixed(adaptor.getStaticOffsetsAttr(), adaptor.getOffsets(),
                       "offsets", offsets)) ||
      failed(env.mixed(adaptor.getStaticSizesAttr(), adaptor.getSizes(),
                       "sizes", sizes)) ||
      failed(env.mixed(adaptor.getStaticStridesAttr(), adaptor.getStrides(),
                       "strides", strides)))
    return failure();
  if (offsets.size() != rank || sizes.size() != rank || strides.size() != rank)
    return env.error("needs an offset, a size and a stride for each of " +
                     Twine(rank) + " dimensions, not " + Twine(offsets.size()) +
                     ", " + Twine(sizes.size()) + " and " +
                     Twine(strides.size()));
  for (size_t i = 0; i < rank; ++i) {
    std::optional<int64_t> extent =
                               env.shape(adaptor.getInput())[i].getConstant(),
                           offset = offsets[i].getConstant(),
                           size = sizes[i].getConstant(),
                           stride = strides[i].getConstant();
    if (stride == 0)
      return env.error("the stride of dimension " + Twine(i) + " is 0");
    if (!extent || !offset || !size || !stride) {
      if (failed(requireWithin(env, env.shape(adaptor.getInput())[i],
                               offsets[i], sizes[i], strides[i], i)))
        return failure();
      continue;
    }
    if (*size == 0)
      continue;
    int64_t last = *offset + (*size - 1) * *stride;
    if (std::min(*offset, last) < 0 || std::max(*offset, last) >= *extent)
      return env.error("dimension " + Twine(i) + " reads positions " +
                       Twine(*offset) + " to " + Twine(last) + " of " +
                       Twine(*extent));
  }
  env.addResult(sizes, elementTypeOf(adaptor.getInput()));
  return success();
}

/// What is repeated at the edge of a dimension is there: one element, or as
/// many as are reflected.
static LogicalResult requireSource(DimEnv &env, StringRef mode,
                                   const Dim &extent, const Dim &low,
                                   const Dim &high, size_t dim) {
  std::string where = "dimension " + std::to_string(dim);
  for (const Dim &width : {low, high}) {
    if (width.getConstant() == 0)
      continue;
    if (failed(mode == "reflect"
                   ? env.expectAtMost(width + 1, extent,
                                      where + " reflects more elements than it "
                                              "has behind one")
                   : env.expectSource(width, extent,
                                      where + " has no elements to be padded "
                                              "with")))
      return failure();
  }
  return success();
}

LogicalResult PadOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims out = env.shape(adaptor.getInput()), low, high;
  if (failed(env.mixed(adaptor.getStaticLowAttr(), adaptor.getLow(), "low",
                       low)) ||
      failed(env.mixed(adaptor.getStaticHighAttr(), adaptor.getHigh(), "high",
                       high)))
    return failure();
  if (low.size() != out.size() || high.size() != out.size())
    return env.error("needs low and high padding for each of " +
                     Twine(out.size()) + " dimensions, not " +
                     Twine(low.size()) + " and " + Twine(high.size()));
  StringRef mode = text(adaptor.getModeAttr(), "constant");
  for (size_t i = 0; i < out.size(); ++i) {
    if (mode != "constant" &&
        failed(requireSource(env, mode, out[i], low[i], high[i], i)))
      return failure();
    out[i] = out[i] + low[i] + high[i];
  }
  env.addResult(out, elementTypeOf(adaptor.getInput()));
  return success();
}

LogicalResult ShapeOfOp::inferDims(Adaptor adaptor, DimEnv &env) {
  env.addResult({env.constant(env.shape(adaptor.getInput()).size())},
                IntegerType::get(env.getContext(), 64));
  return success();
}

LogicalResult IotaOp::inferDims(Adaptor adaptor, DimEnv &env) {
  Dims sizes;
  if (failed(env.mixed(adaptor.getStaticSizesAttr(), adaptor.getSizes(),
                       "sizes", sizes)) ||
      failed(env.expectAxis(adaptor.getAxisAttr(), sizes.size())))
    return failure();
  env.addResult(sizes, Type());
  return success();
}

//===- Verifiers ----------------------------------------------------------===//

LogicalResult WeightOp::verify() {
  if (static_cast<bool>(getIndex()) != getCount().has_value())
    return emitOpError("has an index or a count of weights, but not both");
  if (getCount() && *getCount() < 1)
    return emitOpError() << "is one of " << *getCount() << " weights";
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto from = cast<RankedTensorType>(getInput().getType()),
       to = cast<RankedTensorType>(getType());
  if (from.hasStaticShape() && to.hasStaticShape() &&
      from.getNumElements() != to.getNumElements())
    return emitOpError() << "changes the number of elements from "
                         << from.getNumElements() << " (" << from << ") to "
                         << to.getNumElements() << " (" << to << ")";
  return success();
}

LogicalResult PadOp::verify() {
  if (!getValue())
    return success();
  auto expected = RankedTensorType::get({}, elementTypeOf(getInput()));
  if (getMode() != "constant")
    return emitOpError() << "takes a value in mode constant only, not "
                         << getMode();
  if (getValue().getType() != expected)
    return emitOpError() << "needs a value of type " << expected << ", not "
                         << getValue().getType();
  return success();
}

//===- Folders ------------------------------------------------------------===//

static bool isIdentity(ArrayRef<int64_t> permutation) {
  return llvm::all_of(llvm::enumerate(permutation), [](auto entry) {
    return static_cast<int64_t>(entry.index()) == entry.value();
  });
}

static bool isAll(ArrayRef<int64_t> values, int64_t value) {
  return llvm::all_of(values, [=](int64_t entry) { return entry == value; });
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  auto from = cast<RankedTensorType>(getInput().getType()),
       to = cast<RankedTensorType>(getType());
  // One unknown extent follows from the others, unless one of those is 0.
  bool isDetermined =
      to.hasStaticShape() ||
      (to.getNumDynamicDims() == 1 && !llvm::is_contained(to.getShape(), 0));
  if (from == to && isDetermined)
    return getInput();
  if (auto elements =
          dyn_cast_or_null<DenseIntOrFPElementsAttr>(adaptor.getInput());
      elements && to.hasStaticShape())
    return elements.reshape(to);
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (isIdentity(getPermutation()) && getInput().getType() == getType())
    return getInput();
  auto elements =
      dyn_cast_or_null<DenseIntOrFPElementsAttr>(adaptor.getInput());
  if (elements && elements.isSplat() &&
      cast<RankedTensorType>(getType()).hasStaticShape())
    return elements.resizeSplat(cast<ShapedType>(getType()));
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  auto type = cast<RankedTensorType>(getType());
  return getInput().getType() == type && type.hasStaticShape()
             ? OpFoldResult(getInput())
             : OpFoldResult();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 && getInputs()[0].getType() == getType()
             ? OpFoldResult(getInputs()[0])
             : OpFoldResult();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  auto type = cast<RankedTensorType>(getType());
  bool isWhole = isAll(getStaticOffsets(), 0) && isAll(getStaticStrides(), 1) &&
                 type.hasStaticShape();
  return isWhole && getInput().getType() == type ? OpFoldResult(getInput())
                                                 : OpFoldResult();
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  bool isEmpty = isAll(getStaticLow(), 0) && isAll(getStaticHigh(), 0);
  return isEmpty && getInput().getType() == getType() ? OpFoldResult(getInput())
                                                      : OpFoldResult();
}

OpFoldResult ShapeOfOp::fold(FoldAdaptor) {
  auto input = cast<RankedTensorType>(getInput().getType()),
       type = cast<RankedTensorType>(getType());
  if (!input.hasStaticShape() || !type.hasStaticShape())
    return {};
  return DenseIntElementsAttr::get(type, input.getShape());
}
