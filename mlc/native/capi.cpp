#include "capi.h"

#include "dialect.h"
#include "mlir/CAPI/AffineExpr.h"
#include "mlir/CAPI/IR.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

using namespace mlir;

//===- Dialect and driver -------------------------------------------------===//

void mlcRegisterDialect(MlirDialectRegistry registry) {
  unwrap(registry)->insert<mlc::MlcDialect>();
}

int mlcOptMain(int argc, char **argv) {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllGPUToLLVMIRTranslations(registry);
  registry.insert<mlc::MlcDialect>();
  return asMainReturnCode(
      MlirOptMain(argc, argv, "mlc optimizer driver\n", registry));
}

//===- Types --------------------------------------------------------------===//

bool mlcTypeIsAStr(MlirType type) { return isa<mlc::StrType>(unwrap(type)); }
MlirType mlcStrTypeGet(MlirContext context) {
  return wrap(mlc::StrType::get(unwrap(context)));
}
bool mlcTypeIsASeq(MlirType type) { return isa<mlc::SeqType>(unwrap(type)); }
MlirType mlcSeqTypeGet(MlirType elementType) {
  Type element = unwrap(elementType);
  return wrap(mlc::SeqType::get(element.getContext(), element));
}
bool mlcTypeIsAOptional(MlirType type) {
  return isa<mlc::OptionalType>(unwrap(type));
}
MlirType mlcOptionalTypeGet(MlirType elementType) {
  Type element = unwrap(elementType);
  return wrap(mlc::OptionalType::get(element.getContext(), element));
}
MlirType mlcElementType(MlirType type) {
  if (auto sequence = dyn_cast<mlc::SeqType>(unwrap(type)))
    return wrap(sequence.getElementType());
  return wrap(cast<mlc::OptionalType>(unwrap(type)).getElementType());
}

//===- Shapes -------------------------------------------------------------===//

bool mlcHasDims(MlirOperation op) {
  return isa<mlc::DimOpInterface>(unwrap(op));
}

/// Whether the caller describes the operands that `op` has.
static LogicalResult checkGiven(Operation *op, ArrayRef<intptr_t> ranks,
                                intptr_t numIndices) {
  auto shaped = llvm::to_vector(llvm::make_filter_range(
      op->getOperandTypes(), llvm::IsaPred<RankedTensorType>));
  intptr_t indices = llvm::count_if(op->getOperandTypes(),
                                    [](Type type) { return type.isIndex(); });
  if (shaped.size() != ranks.size() || indices != numIndices)
    return op->emitOpError()
           << "has " << shaped.size() << " tensor and " << indices
           << " index operands, but " << ranks.size() << " shapes and "
           << numIndices << " values were given";
  for (auto [type, rank] : llvm::zip(shaped, ranks))
    if (cast<RankedTensorType>(type).getRank() != rank)
      return op->emitOpError()
             << "has an operand " << type << ", but a shape of rank " << rank
             << " was given";
  return success();
}

bool mlcInferDims(MlirOperation op, intptr_t numShaped, const intptr_t *ranks,
                  const MlirAffineExpr *dims, intptr_t numIndices,
                  const MlirAffineExpr *indices, MlcDimCallback callback,
                  void *user) {
  auto shaped = cast<mlc::DimOpInterface>(unwrap(op));
  if (failed(checkGiven(unwrap(op), ArrayRef(ranks, numShaped), numIndices)))
    return false;
  SmallVector<mlc::Dims> shapes(numShaped);
  for (intptr_t i = 0; i < numShaped; ++i)
    for (intptr_t j = 0; j < ranks[i]; ++j)
      shapes[i].push_back(unwrap(*dims++));
  SmallVector<AffineExpr> values;
  for (intptr_t i = 0; i < numIndices; ++i)
    values.push_back(unwrap(indices[i]));
  mlc::DimEnv env(unwrap(op), shapes, values);
  if (failed(shaped.computeDims(env)))
    return false;
  for (auto [i, result] : llvm::enumerate(env.getResults()))
    for (auto [j, dim] : llvm::enumerate(result.dims))
      callback(user, i, j, wrap(dim.getExpr()));
  return true;
}

bool mlcReify(MlirOperation op, MlcExtentCallback callback, void *user) {
  auto shaped = dyn_cast<ReifyRankedShapedTypeOpInterface>(unwrap(op));
  if (!shaped)
    return false;
  OpBuilder builder(unwrap(op));
  ReifiedRankedShapedTypeDims shapes;
  if (failed(shaped.reifyResultShapes(builder, shapes)))
    return false;
  for (auto [i, extents] : llvm::enumerate(shapes))
    for (auto [j, extent] : llvm::enumerate(extents)) {
      Value value = dyn_cast<Value>(extent);
      callback(user, i, j, wrap(value),
               value ? 0 : *getConstantIntValue(extent));
    }
  return true;
}
