// RUN: mlc-opt %s --mlc-lower-to-linalg --mlc-plan-parts | FileCheck %s

// Few and long lines, along memory and across it: equal parts of whole accesses, if there are at least half as many as
// are worth it.
// CHECK-LABEL: func.func @scans
// CHECK: mlc.part = 5000 :
// CHECK: mlc.part = 8000 :
// CHECK: mlc.part = 4096 :
// CHECK: mlc.part = 4100 :
// CHECK: mlc.part = 1250 :
func.func @scans(%a: tensor<1000000xf32>, %b: tensor<1000000xf64>, %c: tensor<16x65536xf16>,
                 %d: tensor<1x1000003xf32>, %e: tensor<100000x4xf32>)
    -> (tensor<1000000xf32>, tensor<1000000xf64>, tensor<16x65536xf16>, tensor<1x1000003xf32>, tensor<100000x4xf32>) {
  %0 = mlc.scan sum %a {axis = 0 : i64} : tensor<1000000xf32>
  %1 = mlc.scan sum %b {axis = 0 : i64} : tensor<1000000xf64>
  %2 = mlc.scan prod %c {axis = 1 : i64, exclusive = true} : tensor<16x65536xf16>
  %3 = mlc.scan sum %d {axis = 1 : i64, reverse = true} : tensor<1x1000003xf32>
  %4 = mlc.scan sum %e {axis = 0 : i64} : tensor<100000x4xf32>
  return %0, %1, %2, %3, %4
    : tensor<1000000xf32>, tensor<1000000xf64>, tensor<16x65536xf16>, tensor<1x1000003xf32>, tensor<100000x4xf32>
}

// Many lines, short ones, and those whose extents only a run knows.
// CHECK-LABEL: func.func @others
// CHECK-NOT: mlc.part
// CHECK: return
func.func @others(%a: tensor<64x100000xf32>, %b: tensor<14000xf32>, %c: tensor<4096x4096xf32>, %d: tensor<1x?xf32>)
    -> (tensor<64x100000xf32>, tensor<14000xf32>, tensor<4096x4096xf32>, tensor<1x?xf32>) {
  %0 = mlc.scan sum %a {axis = 1 : i64} : tensor<64x100000xf32>
  %1 = mlc.scan sum %b {axis = 0 : i64} : tensor<14000xf32>
  %2 = mlc.scan sum %c {axis = 0 : i64} : tensor<4096x4096xf32>
  %3 = mlc.scan sum %d {axis = 1 : i64} : tensor<1x?xf32>
  return %0, %1, %2, %3 : tensor<64x100000xf32>, tensor<14000xf32>, tensor<4096x4096xf32>, tensor<1x?xf32>
}

// Of few long lines as many are selected as blocks do at a time; no part has fewer elements than are worth a block, and
// what all of them find is an eighth of the line at most.
// CHECK-LABEL: func.func @selections
// CHECK: mlc.topk %{{.*}}mlc.part = 32064 :
// CHECK: mlc.topk %{{.*}}mlc.part = 4189 :
// CHECK: mlc.topk %{{.*}}mlc.part = 10000 :
// CHECK-NOT: mlc.part
// CHECK: return
func.func @selections(%a: tensor<32x128256xbf16>, %b: tensor<1x50257xf32>, %c: tensor<1x20000xf32>,
                      %d: tensor<100x128256xf32>, %e: tensor<4x8000xf32>, %f: tensor<1x15000xf32>) {
  %k = arith.constant 50 : index
  %many = arith.constant 1000 : index
  %0:2 = mlc.topk %a, %k {axis = 1 : i64} : tensor<32x128256xbf16> -> tensor<32x50xbf16>, tensor<32x50xi64>
  %1:2 = mlc.topk %b, %k {axis = 1 : i64} : tensor<1x50257xf32> -> tensor<1x50xf32>, tensor<1x50xi64>
  %2:2 = mlc.topk %c, %many {axis = 1 : i64} : tensor<1x20000xf32> -> tensor<1x1000xf32>, tensor<1x1000xi64>
  %3:2 = mlc.topk %d, %k {axis = 1 : i64} : tensor<100x128256xf32> -> tensor<100x50xf32>, tensor<100x50xi64>
  %4:2 = mlc.topk %e, %k {axis = 1 : i64} : tensor<4x8000xf32> -> tensor<4x50xf32>, tensor<4x50xi64>
  %5:2 = mlc.topk %f, %many {axis = 1 : i64} : tensor<1x15000xf32> -> tensor<1x1000xf32>, tensor<1x1000xi64>
  return
}
