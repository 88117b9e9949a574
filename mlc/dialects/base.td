// The `mlc` dialect: its types, the attribute helpers and the op base classes that every family file uses.
#ifndef MLC_DIALECTS_BASE_TD
#define MLC_DIALECTS_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Mlc_Dialect : Dialect {
  let name = "mlc";
  let cppNamespace = "::mlc";
  let summary = "Tensor-level deep learning operations, one union of what ONNX and ATen mean";
  let description = [{
    Builtin tensors with signless integers; see docs/ir.md for the conventions shared by all operations.
    Runtime sizes are mixed lists (`[4, %n, 8]`), operation variants are keywords (`mlc.unary exp %x`).
  }];
  let hasConstantMaterializer = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

//===- Types --------------------------------------------------------------===//

class Mlc_Type<string cppName, string keyword, list<Trait> traits = []> : TypeDef<Mlc_Dialect, cppName, traits> {
  let mnemonic = keyword;
}

def Mlc_StrType : Mlc_Type<"Str", "str", [MemRefElementTypeInterface]> {
  let summary = "a string: element type of tensors in host functions";
}

def Mlc_SeqType : Mlc_Type<"Seq", "seq"> {
  let summary = "a sequence of values, a runtime handle in host functions";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
}

def Mlc_OptionalType : Mlc_Type<"Optional", "optional"> {
  let summary = "a value or nothing, a runtime handle in host functions";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
}

def Mlc_Tensor : AnyTypeOf<[AnyRankedTensor], "ranked tensor", "::mlir::RankedTensorType">;
def Mlc_BoolTensor : AnyTypeOf<[RankedTensorOf<[I1]>], "ranked tensor of i1", "::mlir::RankedTensorType">;
def Mlc_I64Tensor : AnyTypeOf<[RankedTensorOf<[I64]>], "ranked tensor of i64", "::mlir::RankedTensorType">;
def Mlc_IndexTensor : AnyTypeOf<[RankedTensorOf<[I32, I64]>], "ranked tensor of i32 or i64",
                                "::mlir::RankedTensorType">;
def Mlc_FloatTensor : AnyTypeOf<[RankedTensorOf<[AnyFloat]>], "ranked tensor of floats", "::mlir::RankedTensorType">;
class Mlc_Scalar<list<Type> elements, string what>
    : AnyTypeOf<[0DTensorOf<elements>], "rank-0 tensor of " # what, "::mlir::RankedTensorType">;

//===- Attributes ---------------------------------------------------------===//

// A string out of a fixed set. Operations print it as a bare keyword where it names their variant.
class Mlc_Kind<list<string> names>
    : ConfinedAttr<StrAttr,
                   [AttrConstraint<CPred<"::llvm::is_contained(std::initializer_list<::llvm::StringRef>{\"" #
                                         !interleave(names, "\", \"") #
                                         "\"}, ::llvm::cast<::mlir::StringAttr>($_self).getValue())">,
                                   "one of " # !interleave(names, ", ")>]>;

// `unsigned` cannot be a C++ member name: ODS says `is_unsigned`, and the build renames the attribute in the generated
// code (cmake/RenameAttributes.cmake), so that IR and Python see `unsigned`.

//===- Operation base classes ---------------------------------------------===//

def Mlc_DimOpInterface : OpInterface<"DimOpInterface"> {
  let cppNamespace = "::mlc";
  let description = "Result extents as affine expressions over operand extents; the one source of all shape logic.";
  let methods = [InterfaceMethod<"Derives the results in `env`", "::llvm::LogicalResult", "computeDims",
                                 (ins "::mlc::DimEnv &":$env)>];
  let verify = "return ::mlc::verifyShapes($_op);";
}

defvar Mlc_DimDeclarations = [{
  /// Derives result extents and element types; shared by type inference, reification and dimension analysis.
  static ::llvm::LogicalResult inferDims(Adaptor adaptor, ::mlc::DimEnv &env);
  ::llvm::LogicalResult computeDims(::mlc::DimEnv &env) { return inferDims(Adaptor(*this), env); }
  ::llvm::LogicalResult reifyResultShapes(::mlir::OpBuilder &builder, ::mlir::ReifiedRankedShapedTypeDims &shapes) {
    return ::mlc::reifyShapes(getOperation(), builder, shapes);
  }
}];

class Mlc_Op<string mnemonic, list<Trait> traits = []> : Op<Mlc_Dialect, mnemonic, traits>;

// A pure operation whose result shapes follow from its operands but whose element type is chosen by the result type.
class Mlc_TypedOp<string mnemonic, list<Trait> traits = []>
    : Mlc_Op<mnemonic, !listconcat([Pure, ReifyRankedShapedTypeOpInterface, Mlc_DimOpInterface], traits)> {
  let extraClassDeclaration = Mlc_DimDeclarations;
}

// A pure operation whose result types follow from its operands and attributes.
class Mlc_InferOp<string mnemonic, list<Trait> traits = []>
    : Mlc_Op<mnemonic, !listconcat([Pure, InferTypeOpInterface, ReifyRankedShapedTypeOpInterface, Mlc_DimOpInterface],
                                   traits)> {
  let extraClassDeclaration = Mlc_DimDeclarations # [{
    static ::llvm::LogicalResult inferReturnTypes(::mlir::MLIRContext *context, std::optional<::mlir::Location> location,
                                                  ::mlir::ValueRange operands, ::mlir::DictionaryAttr attributes,
                                                  ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
                                                  ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      ::mlc::DimEnv env(context, location, getOperationName(), operands);
      if (::mlir::failed(inferDims(Adaptor(operands, attributes, properties, regions), env)))
        return ::mlir::failure();
      return env.resultTypes(types);
    }
    /// Used by the verifier of InferTypeOpInterface only, whose work DimOpInterface does with better messages.
    static ::llvm::LogicalResult refineReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location>,
                                                   ::mlir::ValueRange, ::mlir::DictionaryAttr, ::mlir::OpaqueProperties,
                                                   ::mlir::RegionRange, ::llvm::SmallVectorImpl<::mlir::Type> &) {
      return ::mlir::success();
    }
    static bool isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs) {
      return ::mlc::areCompatible(lhs, rhs);
    }
  }];
}

#endif // MLC_DIALECTS_BASE_TD
