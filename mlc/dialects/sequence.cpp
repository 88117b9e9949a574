#include "dialect.h"

using namespace mlir;
using namespace mlc;

static RankedTensorType scalar(MLIRContext *context, unsigned width) {
  return RankedTensorType::get({}, IntegerType::get(context, width));
}

/// Whether a value of type `value` may be stored where `element` is expected:
/// the same, or less known extents.
static bool fits(Type value, Type element) {
  return value == element || areCompatible(value, element);
}

LogicalResult SequenceMakeOp::verify() {
  Type element = getResult().getType().getElementType();
  for (Type type : getInputs().getTypes())
    if (!fits(type, element))
      return emitOpError() << "holds " << element << ", not " << type;
  return success();
}

LogicalResult SequenceAtOp::verify() {
  Type element = getSequence().getType().getElementType();
  if (!fits(getType(), element))
    return emitOpError() << "gives " << element << ", not " << getType();
  return success();
}

LogicalResult SequenceInsertOp::verify() {
  Type element = getSequence().getType().getElementType();
  if (!fits(getElement().getType(), element))
    return emitOpError() << "holds " << element << ", not "
                         << getElement().getType();
  return success();
}

LogicalResult SequenceLengthOp::inferReturnTypes(MLIRContext *context,
                                                 std::optional<Location>,
                                                 Adaptor,
                                                 SmallVectorImpl<Type> &types) {
  types.push_back(scalar(context, 64));
  return success();
}

LogicalResult OptionalSomeOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location>,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  types.push_back(OptionalType::get(context, adaptor.getValue().getType()));
  return success();
}

LogicalResult OptionalHasOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location>, Adaptor,
                                              SmallVectorImpl<Type> &types) {
  types.push_back(scalar(context, 1));
  return success();
}

LogicalResult OptionalGetOp::inferReturnTypes(MLIRContext *,
                                              std::optional<Location>,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  types.push_back(
      cast<OptionalType>(adaptor.getOptional().getType()).getElementType());
  return success();
}

OpFoldResult OptionalHasOp::fold(FoldAdaptor) {
  Operation *producer = getOptional().getDefiningOp();
  if (!isa_and_nonnull<OptionalSomeOp, OptionalNoneOp>(producer))
    return {};
  return DenseElementsAttr::get(cast<ShapedType>(getType()),
                                isa<OptionalSomeOp>(producer));
}

OpFoldResult OptionalGetOp::fold(FoldAdaptor) {
  auto producer = getOptional().getDefiningOp<OptionalSomeOp>();
  return producer && producer.getValue().getType() == getType()
             ? OpFoldResult(producer.getValue())
             : OpFoldResult();
}

OpFoldResult SequenceAtOp::fold(FoldAdaptor adaptor) {
  auto producer = getSequence().getDefiningOp<SequenceMakeOp>();
  auto position = dyn_cast_or_null<DenseIntElementsAttr>(adaptor.getPosition());
  if (!producer || !position)
    return {};
  int64_t index = (*position.begin()).getSExtValue();
  int64_t length = producer.getInputs().size();
  index += index < 0 ? length : 0;
  if (index < 0 || index >= length ||
      producer.getInputs()[index].getType() != getType())
    return {};
  return producer.getInputs()[index];
}

OpFoldResult SequenceLengthOp::fold(FoldAdaptor) {
  auto producer = getSequence().getDefiningOp<SequenceMakeOp>();
  if (!producer)
    return {};
  int64_t length = producer.getInputs().size();
  return DenseElementsAttr::get(cast<ShapedType>(getType()), length);
}
