// The plain C interface between the part of `mlc._native` that is compiled as
// MLIR is (no RTTI, no exceptions) and the nanobind module (both).
#ifndef MLC_NATIVE_CAPI_H
#define MLC_NATIVE_CAPI_H

#include "mlir-c/AffineExpr.h"
#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

//--- Dialect and driver -------------------------------------------------------

void mlcRegisterDialect(MlirDialectRegistry registry);
/// mlir-opt with the mlc dialect. Upstream passes must have been registered
/// (importing the MLIR bindings does).
int mlcOptMain(int argc, char **argv);

//--- Types --------------------------------------------------------------------

bool mlcTypeIsAStr(MlirType type);
MlirType mlcStrTypeGet(MlirContext context);
bool mlcTypeIsASeq(MlirType type);
MlirType mlcSeqTypeGet(MlirType elementType);
bool mlcTypeIsAOptional(MlirType type);
MlirType mlcOptionalTypeGet(MlirType elementType);
/// Of a sequence or optional.
MlirType mlcElementType(MlirType type);

//--- Shapes -------------------------------------------------------------------

/// Receives one result extent; a null expression is an extent known only at run
/// time.
typedef void (*MlcDimCallback)(void *user, intptr_t result, intptr_t dim,
                               MlirAffineExpr expr);
/// Derives the result extents of `op` from the extents of its shaped operands
/// (flattened, `ranks[i]` each) and the values of its index operands. Returns
/// false with a diagnostic when the operation is invalid or the extents do not
/// fit its operands.
bool mlcInferDims(MlirOperation op, intptr_t numShaped, const intptr_t *ranks,
                  const MlirAffineExpr *dims, intptr_t numIndices,
                  const MlirAffineExpr *indices, MlcDimCallback callback,
                  void *user);
typedef enum { MlcEqual, MlcAtMost, MlcStretches } MlcRequirementKind;
/// Receives something that `op` needs: that `lhs` and `rhs` are equal, that
/// `lhs` is at most `rhs`, or that it is `rhs` or 1.
typedef void (*MlcRequirementCallback)(void *user, MlirAffineExpr lhs,
                                       MlirAffineExpr rhs,
                                       MlcRequirementKind kind,
                                       const char *what);
/// As mlcInferDims, for what `op` needs of extents and may not have.
bool mlcRequirements(MlirOperation op, intptr_t numShaped,
                     const intptr_t *ranks, const MlirAffineExpr *dims,
                     intptr_t numIndices, const MlirAffineExpr *indices,
                     MlcRequirementCallback callback, void *user);
bool mlcHasDims(MlirOperation op);

/// Receives one reified extent: `value` where it is not null, else `constant`.
typedef void (*MlcExtentCallback)(void *user, intptr_t result, intptr_t dim,
                                  MlirValue value, int64_t constant);
/// Builds the result extents before `op`. Returns false where one is known only
/// when the operation has run.
bool mlcReify(MlirOperation op, MlcExtentCallback callback, void *user);

//--- Code generation ----------------------------------------------------------

typedef enum { MlcEmitObject, MlcEmitAssembly, MlcEmitLLVMIR } MlcEmitKind;
/// Optimizes a module of the LLVM dialect and emits it. Returns a malloc'd
/// buffer of `*length` bytes, or null with a malloc'd `*error`.
char *mlcEmit(MlirOperation module, const char *triple, const char *cpu,
              const char *features, int optLevel, MlcEmitKind kind,
              size_t *length, char **error);
/// "triple\ncpu\n+feature\n-feature…", malloc'd.
char *mlcHostInfo(void);

//--- Passes written in Python -------------------------------------------------

typedef enum {
  MlcOptionString,
  MlcOptionInt,
  MlcOptionBool,
  MlcOptionList,
  MlcOptionFloat
} MlcOptionKind;
typedef struct {
  const char *name, *description, *defaultValue;
  MlcOptionKind kind;
} MlcPassOption;
typedef struct {
  const char *name, *description;
} MlcPassStatistic;
/// The running pass; valid during a run only.
typedef struct MlcPass *MlcPassRef;
typedef struct {
  const char *argument, *summary, *anchor; // anchor "": any operation
  intptr_t numOptions, numStatistics, numDialects;
  const MlcPassOption *options;
  const MlcPassStatistic *statistics;
  const char *const *dialects; // loaded before the pipeline starts: a pass must
                               // not load dialects
  void *user;
  /// Makes one instance for each clone of the pass, that is, each thread.
  /// Values are texts in option order.
  void *(*create)(void *user, const char *const *values, char **error);
  /// Returns whether the pass succeeded; `*error` may be set (malloc'd) when it
  /// did not.
  bool (*run)(void *instance, MlirOperation op, MlcPassRef pass, char **error);
  void (*destroy)(void *instance);
} MlcPassSpec;
/// Copies `spec`. Aborts where the argument is registered already.
void mlcRegisterPass(const MlcPassSpec *spec);
void mlcPassAddStatistic(MlcPassRef pass, intptr_t index, int64_t amount);
void mlcPassPreserveAll(MlcPassRef pass);

#ifdef __cplusplus
}
#endif

#endif // MLC_NATIVE_CAPI_H
