#include "dialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlc;

#include "MlcDialect.cpp.inc"
#include "MlcInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "MlcTypes.cpp.inc"

namespace {
/// All operations are ordinary ones: functions that hold them may be inlined.
struct Inliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void MlcDialect::initialize() {
  addInterfaces<Inliner>();
  addTypes<
#define GET_TYPEDEF_LIST
#include "MlcTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "MlcOps.cpp.inc"
      >();
}

Operation *MlcDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                           Type type, Location loc) {
  if (auto elements = dyn_cast<ElementsAttr>(value);
      elements && elements.getType() == type)
    return ConstantOp::create(builder, loc, type, elements);
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

//===- Assembly directives ------------------------------------------------===//

static ParseResult parseKeyword(OpAsmParser &parser, StringAttr &attr) {
  StringRef keyword;
  if (failed(parser.parseKeyword(&keyword)))
    return failure();
  attr = parser.getBuilder().getStringAttr(keyword);
  return success();
}
static void printKeyword(OpAsmPrinter &printer, Operation *, StringAttr attr) {
  printer << attr.getValue();
}

/// `T` where input and result have the same type, else `T -> R`.
static ParseResult parseUnaryType(OpAsmParser &parser, Type &input,
                                  Type &result) {
  if (parser.parseType(input))
    return failure();
  result = input;
  return failed(parser.parseOptionalArrow()) ? ParseResult(success())
                                             : parser.parseType(result);
}
static void printUnaryType(OpAsmPrinter &printer, Operation *, Type input,
                           Type result) {
  printer << input;
  if (input != result)
    printer << " -> " << result;
}

/// `T` where all types are the same, `T -> R` where the operands' are, else `L,
/// R -> O`.
static ParseResult parseBinaryType(OpAsmParser &parser, Type &lhs, Type &rhs,
                                   Type &result) {
  if (parser.parseType(lhs))
    return failure();
  result = rhs = lhs;
  if (succeeded(parser.parseOptionalComma()))
    return failure(parser.parseType(rhs) || parser.parseArrow() ||
                   parser.parseType(result));
  return failed(parser.parseOptionalArrow()) ? ParseResult(success())
                                             : parser.parseType(result);
}
static void printBinaryType(OpAsmPrinter &printer, Operation *, Type lhs,
                            Type rhs, Type result) {
  printer << lhs;
  if (lhs != rhs)
    printer << ", " << rhs;
  if (lhs != rhs || lhs != result)
    printer << " -> " << result;
}

/// `(inputs) outs (destinations) -> results`, where inputs and results may be
/// none.
static ParseResult parseLaunchTypes(OpAsmParser &parser,
                                    SmallVectorImpl<Type> &inputs,
                                    SmallVectorImpl<Type> &outs,
                                    SmallVectorImpl<Type> &results) {
  auto parseList = [&](SmallVectorImpl<Type> &types) {
    return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&] {
      return parser.parseType(types.emplace_back());
    });
  };
  if (parseList(inputs) || parser.parseKeyword("outs") || parseList(outs))
    return failure();
  return parser.parseOptionalArrowTypeList(results);
}
static void printLaunchTypes(OpAsmPrinter &printer, Operation *,
                             TypeRange inputs, TypeRange outs,
                             TypeRange results) {
  printer << "(" << inputs << ") outs(" << outs << ")";
  printer.printOptionalArrowTypeList(results);
}

#define GET_OP_CLASSES
#include "MlcOps.cpp.inc"
