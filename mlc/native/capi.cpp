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

/// The shape function of `op` over the extents and values given; nothing, with
/// a diagnostic, where they do not fit.
static std::optional<mlc::DimEnv> computed(Operation *op,
                                           ArrayRef<intptr_t> ranks,
                                           const MlirAffineExpr *dims,
                                           ArrayRef<MlirAffineExpr> indices) {
  if (failed(checkGiven(op, ranks, indices.size())))
    return std::nullopt;
  SmallVector<mlc::Dims> shapes(ranks.size());
  for (auto [rank, shape] : llvm::zip(ranks, shapes))
    for (intptr_t i = 0; i < rank; ++i)
      shape.push_back(unwrap(*dims++));
  SmallVector<AffineExpr> values;
  for (MlirAffineExpr index : indices)
    values.push_back(unwrap(index));
  mlc::DimEnv env(op, shapes, values);
  if (failed(cast<mlc::DimOpInterface>(op).computeDims(env)))
    return std::nullopt;
  return env;
}

bool mlcInferDims(MlirOperation op, intptr_t numShaped, const intptr_t *ranks,
                  const MlirAffineExpr *dims, intptr_t numIndices,
                  const MlirAffineExpr *indices, MlcDimCallback callback,
                  void *user) {
  auto env = computed(unwrap(op), ArrayRef(ranks, numShaped), dims,
                      ArrayRef(indices, numIndices));
  if (!env)
    return false;
  for (auto [i, result] : llvm::enumerate(env->getResults()))
    for (auto [j, dim] : llvm::enumerate(result.dims))
      callback(user, i, j, wrap(dim.getExpr()));
  return true;
}

static_assert(int(MlcEqual) == mlc::DimEnv::Requirement::Equal &&
              int(MlcAtMost) == mlc::DimEnv::Requirement::AtMost &&
              int(MlcStretches) == mlc::DimEnv::Requirement::Stretches);

bool mlcRequirements(MlirOperation op, intptr_t numShaped,
                     const intptr_t *ranks, const MlirAffineExpr *dims,
                     intptr_t numIndices, const MlirAffineExpr *indices,
                     MlcRequirementCallback callback, void *user) {
  auto env = computed(unwrap(op), ArrayRef(ranks, numShaped), dims,
                      ArrayRef(indices, numIndices));
  if (!env)
    return false;
  for (const mlc::DimEnv::Requirement &needed : env->getRequirements())
    callback(user, wrap(needed.lhs.getExpr()), wrap(needed.rhs.getExpr()),
             static_cast<MlcRequirementKind>(needed.kind), needed.what.c_str());
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
