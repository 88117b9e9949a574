// Shape logic shared by type inference, verification, reification and the
// Python dimension analysis. Every operation derives its result extents once,
// over affine expressions of its operands' extents; the four users differ only
// in what the symbols stand for.
#ifndef MLC_DIALECTS_DIM_ENV_H
#define MLC_DIALECTS_DIM_ENV_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace mlc {

/// One extent: an affine expression, or unknown (null). An unknown extent may
/// still be the broadcast of known ones.
class Dim {
public:
  Dim() = default;
  Dim(mlir::AffineExpr expr) : expr(expr) {}

  explicit operator bool() const { return static_cast<bool>(expr); }
  mlir::AffineExpr getExpr() const { return expr; }
  std::optional<int64_t> getConstant() const;
  bool isOne() const { return getConstant() == 1; }
  /// The extents whose broadcast this is; empty for any other unknown extent.
  llvm::ArrayRef<mlir::AffineExpr> getBroadcast() const { return broadcast; }

  friend bool operator==(const Dim &lhs, const Dim &rhs) {
    return lhs.expr && lhs.expr == rhs.expr;
  }
  friend Dim operator+(const Dim &lhs, const Dim &rhs);
  friend Dim operator-(const Dim &lhs, const Dim &rhs);
  friend Dim operator*(const Dim &lhs, int64_t rhs);
  friend Dim operator+(const Dim &lhs, int64_t rhs);
  friend Dim floorDiv(const Dim &lhs, int64_t rhs);

private:
  friend class DimEnv;
  mlir::AffineExpr expr;
  llvm::SmallVector<mlir::AffineExpr, 0> broadcast;
};
using Dims = llvm::SmallVector<Dim, 6>;

/// What is known about the operands of one operation, and the result extents
/// derived from it.
class DimEnv {
public:
  /// Every unknown extent and every `index` operand that is no constant becomes
  /// a symbol of its own.
  DimEnv(mlir::MLIRContext *context, std::optional<mlir::Location> location,
         llvm::StringRef opName, mlir::ValueRange operands);
  /// Takes the extents of shaped operands and the values of `index` operands
  /// from the caller, in operand order.
  DimEnv(mlir::Operation *op, llvm::ArrayRef<Dims> shapes,
         llvm::ArrayRef<mlir::AffineExpr> indices);

  struct Symbol {
    mlir::Value value;
    int64_t dim; // -1: the value itself, an index
  };
  struct Result {
    Dims dims;
    mlir::Type elementType; // null: the declared one
  };
  /// What an operation needs of extents that may not have it: that two are
  /// equal, that the left one is at most the right one, or that it is the right
  /// one or 1.
  struct Requirement {
    enum Kind { Equal, AtMost, Stretches };
    Dim lhs, rhs;
    Kind kind;
    std::string what;
  };

  mlir::MLIRContext *getContext() const { return context; }
  llvm::ArrayRef<Symbol> getSymbols() const { return symbols; }
  llvm::ArrayRef<Result> getResults() const { return results; }
  /// Those that the extents given do not show to hold.
  llvm::ArrayRef<Requirement> getRequirements() const { return requirements; }

  /// The extents of a tensor operand. Operations are inferred before they are
  /// verified: for an operand of another type there are none, and resultTypes
  /// reports it.
  const Dims &shape(mlir::Value tensor) const;
  Dim index(mlir::Value value) const;
  Dim constant(int64_t value) const {
    return Dim(mlir::getAffineConstantExpr(value, context));
  }
  /// The entries of a mixed list; null (with an error) where the list and its
  /// operands do not match.
  llvm::LogicalResult mixed(mlir::DenseI64ArrayAttr statics,
                            mlir::ValueRange dynamic, llvm::StringRef what,
                            Dims &out);

  /// The extent both broadcast to; an error where two constants differ and
  /// neither is 1.
  llvm::LogicalResult broadcast(const Dim &lhs, const Dim &rhs, Dim &out);
  /// NumPy broadcasting of whole shapes.
  llvm::LogicalResult broadcast(llvm::ArrayRef<Dim> lhs,
                                llvm::ArrayRef<Dim> rhs, Dims &out);
  /// An error that names both values unless they may be equal; where only the
  /// run tells, a requirement.
  llvm::LogicalResult expectEqual(const Dim &lhs, const Dim &rhs,
                                  const llvm::Twine &what);
  /// The same for the left one not to be larger than the right one.
  llvm::LogicalResult expectAtMost(const Dim &lhs, const Dim &rhs,
                                   const llvm::Twine &what);
  /// The same for the left one to be the right one or 1.
  llvm::LogicalResult expectStretches(const Dim &lhs, const Dim &rhs,
                                      const llvm::Twine &what);
  /// The same for `count` elements to be made of some that are there: none of
  /// none.
  llvm::LogicalResult expectSource(const Dim &count, const Dim &extent,
                                   const llvm::Twine &what);
  llvm::LogicalResult expectRank(mlir::Value tensor, int64_t rank,
                                 const llvm::Twine &what);
  /// An error that names both element types unless they are the same.
  llvm::LogicalResult expectSameElements(mlir::Value lhs, mlir::Value rhs);
  /// Of a contraction; one that widens may read narrower floats on the right.
  llvm::LogicalResult expectFactors(mlir::Value lhs, mlir::Value rhs,
                                    bool widen);
  llvm::LogicalResult expectAxis(mlir::IntegerAttr axis, int64_t rank);

  void addResult(Dims dims, mlir::Type elementType) {
    results.push_back({std::move(dims), elementType});
  }
  llvm::LogicalResult same(mlir::Value tensor, mlir::Type elementType = {});

  llvm::LogicalResult error(const llvm::Twine &message) const;
  /// An error where an extent is negative.
  llvm::LogicalResult checkExtents(const Result &result) const;
  llvm::LogicalResult
  resultTypes(llvm::SmallVectorImpl<mlir::Type> &types) const;

private:
  void require(const Dim &lhs, const Dim &rhs, Requirement::Kind kind,
               const llvm::Twine &what);

  mlir::MLIRContext *context;
  std::optional<mlir::Location> location;
  llvm::StringRef opName;
  llvm::DenseMap<mlir::Value, Dims> shapes;
  llvm::DenseMap<mlir::Value, mlir::AffineExpr> indices;
  llvm::SmallVector<Symbol> symbols;
  mutable mlir::Value mistyped; // asked for as what it is not
  llvm::SmallVector<Result> results;
  llvm::SmallVector<Requirement, 0> requirements;
};

/// The element type of a tensor (any other type is its own), and text such as
/// `2x?x3` for messages.
mlir::Type elementTypeOf(mlir::Value tensor);

/// What a contraction of `element` gives: `i32` for `i8`, and with `widen`
/// `f32` for floats narrower than that.
mlir::Type accumulatorType(mlir::Type element, bool widen);
std::string shapeText(llvm::ArrayRef<Dim> dims);

/// Types of the same kind whose extents agree wherever both are static.
bool areCompatible(mlir::TypeRange lhs, mlir::TypeRange rhs);

/// Checks the declared result types of `op` against its derived shapes.
llvm::LogicalResult verifyShapes(mlir::Operation *op);

/// Builds the result extents of `op` as index values or attributes before it.
llvm::LogicalResult reifyShapes(mlir::Operation *op, mlir::OpBuilder &builder,
                                mlir::ReifiedRankedShapedTypeDims &shapes);

} // namespace mlc

#endif // MLC_DIALECTS_DIM_ENV_H
