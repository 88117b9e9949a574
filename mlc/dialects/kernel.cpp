#include "dialect.h"

using namespace mlir;
using namespace mlc;

LogicalResult LaunchOp::verify() {
  SmallVector<Type> expected = llvm::filter_to_vector(
      getOuts().getTypes(), llvm::IsaPred<RankedTensorType>);
  if (!expected.empty() && expected.size() != getOuts().size())
    return emitOpError(
        "needs destinations that are all tensors or all memrefs");
  if (TypeRange(expected) != getResultTypes())
    return emitOpError() << "must have one result for each of "
                         << expected.size()
                         << " tensor destinations, with its type";
  return success();
}

void LaunchOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : getInputsMutable())
    if (isa<BaseMemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand,
                           SideEffects::DefaultResource::get());
  auto inout = (*this)->getAttrOfType<DenseI64ArrayAttr>("mlc.inout");
  for (auto [i, operand] : llvm::enumerate(getOutsMutable())) {
    if (!isa<BaseMemRefType>(operand.get().getType()))
      continue;
    if (inout &&
        llvm::is_contained(inout.asArrayRef(), static_cast<int64_t>(i)))
      effects.emplace_back(MemoryEffects::Read::get(), &operand,
                           SideEffects::DefaultResource::get());
    effects.emplace_back(MemoryEffects::Write::get(), &operand,
                         SideEffects::DefaultResource::get());
  }
}

LogicalResult BufferOp::verify() {
  auto type = cast<MemRefType>(getType());
  if (getSizes().size() != static_cast<size_t>(type.getNumDynamicDims()))
    return emitOpError() << "needs a size for each of "
                         << type.getNumDynamicDims()
                         << " dynamic dimensions of " << type << ", not "
                         << getSizes().size();
  bool hasOffset = getOffset() || getStaticOffset(),
       takesOffset = getWhere() == "arena" || getWhere() == "weights";
  if (getOffset() && getStaticOffset())
    return emitOpError("has both an offset operand and a static_offset");
  if (hasOffset && !takesOffset)
    return emitOpError() << getWhere() << " takes no offset";
  if (getNumber().has_value() != (getWhere() == "output"))
    return emitOpError("has a number exactly when it is an output");
  return success();
}
