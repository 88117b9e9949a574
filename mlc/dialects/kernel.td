// The host program of the phases `kernels` to `buffers`: kernel calls and memory.
#ifndef MLC_DIALECTS_KERNEL_TD
#define MLC_DIALECTS_KERNEL_TD

include "base.td"

def Mlc_LaunchOp : Mlc_Op<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a kernel call that writes its results into destinations";
  let description = [{
    On tensors each result is the new value of its destination; on memrefs there are no results.
    ```mlir
    %r = mlc.launch @k0(%x, %w) outs(%out) : (tensor<?x32xf32>, tensor<32x64xf32>) outs(tensor<?x64xf32>) -> tensor<?x64xf32>
    ```
    `mlc.inout` lists the results whose destination's old contents the kernel reads.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$inputs,
                       Variadic<AnyTypeOf<[AnyRankedTensor, AnyMemRef]>>:$outs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` `outs` `(` $outs `)` attr-dict
    `:` custom<LaunchTypes>(type($inputs), type($outs), type($results))
  }];
  let hasVerifier = 1;
}

def Mlc_BufferOp : Mlc_Op<"buffer", [AttrSizedOperandSegments]> {
  let summary = "memory of the host program";
  let description = [{
    `arena` and `weights`: at a byte offset (the operand, else `static_offset`) of the context's arena or the weight
    image; `output`: the buffer of result `number`, the caller's or a new one; `pool`: a buffer of data-dependent size that
    is freed after the run. `sizes` are the dynamic extents of the memref, in order.
    ```mlir
    %0 = mlc.buffer arena offset [%o] (%n) : memref<?x64xf32>
    %1 = mlc.buffer weights {static_offset = 4096 : i64} : memref<32x64xf32>
    %2 = mlc.buffer output (%n) {number = 0 : i64} : memref<?x64xf32>
    ```
  }];
  let arguments = (ins Mlc_Kind<["arena", "output", "pool", "weights"]>:$where, Optional<Index>:$offset,
                       Variadic<Index>:$sizes, OptionalAttr<I64Attr>:$static_offset, OptionalAttr<I64Attr>:$number);
  let results = (outs Res<MemRefOf<[AnyType]>, "", [MemAlloc<DefaultResource>]>:$result);
  let assemblyFormat = [{
    custom<Keyword>($where) (`offset` `[` $offset^ `]`)? (`(` $sizes^ `)`)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

#endif // MLC_DIALECTS_KERNEL_TD
