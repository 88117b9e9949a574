// The C++ face of the `mlc` dialect.
#ifndef MLC_DIALECTS_DIALECT_H
#define MLC_DIALECTS_DIALECT_H

#include "dim_env.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "MlcDialect.h.inc"
#include "MlcInterfaces.h.inc"
#define GET_TYPEDEF_CLASSES
#include "MlcTypes.h.inc"
#define GET_OP_CLASSES
#include "MlcOps.h.inc"

namespace mlc {

/// Attribute values with their default where the attribute is absent:
/// operations built from Python have their defaults filled in only after type
/// inference.
inline bool flag(mlir::BoolAttr attr, bool byDefault = false) {
  return attr ? attr.getValue() : byDefault;
}
inline int64_t number(mlir::IntegerAttr attr, int64_t byDefault) {
  return attr ? attr.getInt() : byDefault;
}
inline llvm::StringRef text(mlir::StringAttr attr, llvm::StringRef byDefault) {
  return attr ? attr.getValue() : byDefault;
}
inline llvm::ArrayRef<int64_t> list(mlir::DenseI64ArrayAttr attr) {
  return attr ? attr.asArrayRef() : llvm::ArrayRef<int64_t>();
}

} // namespace mlc

#endif // MLC_DIALECTS_DIALECT_H
