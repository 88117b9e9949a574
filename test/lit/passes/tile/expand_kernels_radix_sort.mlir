// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules)' | FileCheck %s --check-prefix=SCHEDULE
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules,mlc-expand-kernels,canonicalize,cse)' | FileCheck %s

// SCHEDULE: module @few {{.*}}template = "sort"
// SCHEDULE: module @many {{.*}}digit = 8 : i64, least = 128 : i64, template = "radix_sort"
// SCHEDULE: module @long {{.*}}digit = 11 : i64, {{.*}}template = "radix_sort"
// SCHEDULE: module @any {{.*}}digit = 8 : i64, least = 128 : i64, template = "radix_sort"

// A heap of keys.
// CHECK-LABEL: module @few
// CHECK-NOT: memref.alloca
// CHECK: scf.while
module @few attributes {mlc.kernel} {
  func.func @few(%x: tensor<4x100xf32>, %v: tensor<4x100xf32>, %i: tensor<4x100xi64>) -> (tensor<4x100xf32>, tensor<4x100xi64>) {
    %r:2 = mlc.sort %x {axis = 1 : i64, descending = true} : tensor<4x100xf32> -> tensor<4x100xf32>, tensor<4x100xi64>
    return %r#0, %r#1 : tensor<4x100xf32>, tensor<4x100xi64>
  }
}

// Two digits of numbers of 16 bits: counted together, then positions are moved, from one half of a word to the other.
// CHECK-LABEL: module @many
// CHECK: %[[COUNTS:.*]] = memref.alloca() {{.*}} : memref<512xi32>
// CHECK: scf.for {{.*}} to %c512
// CHECK: scf.for {{.*}} to %c200
// CHECK-COUNT-2: memref.store {{.*}}, %[[COUNTS]]
// CHECK: %[[SHARED:[0-9]+]]:2 = scf.for {{.*}} to %c256 {{.*}} iter_args
// CHECK: %[[HALF:.*]] = arith.select %[[SHARED]]#1, %c0_i64, %c32_i64
// CHECK: scf.if %[[SHARED]]#1
// CHECK: scf.for {{.*}} to %c200
// CHECK: %[[OTHER:[0-9]+]]:2 = scf.for {{.*}} to %c256 {{.*}} iter_args
// CHECK: scf.if %[[OTHER]]#1
// CHECK: scf.yield %[[HALF]]
// CHECK: arith.xori %[[HALF]], %c32
// CHECK-NOT: scf.while
module @many attributes {mlc.kernel} {
  func.func @many(%x: tensor<200x4xi16>, %v: tensor<200x4xi16>, %i: tensor<200x4xi64>) -> (tensor<200x4xi16>, tensor<200x4xi64>) {
    %r:2 = mlc.sort %x {axis = 0 : i64, descending = false} : tensor<200x4xi16> -> tensor<200x4xi16>, tensor<200x4xi64>
    return %r#0, %r#1 : tensor<200x4xi16>, tensor<200x4xi64>
  }
}

// Three digits of eleven bits and fewer.
// CHECK-LABEL: module @long
// CHECK: memref.alloca() {{.*}} : memref<6144xi32>
module @long attributes {mlc.kernel} {
  func.func @long(%x: tensor<9000xf32>, %v: tensor<9000xf32>, %i: tensor<9000xi64>) -> (tensor<9000xf32>, tensor<9000xi64>) {
    %r:2 = mlc.sort %x {axis = 0 : i64, descending = false} : tensor<9000xf32> -> tensor<9000xf32>, tensor<9000xi64>
    return %r#0, %r#1 : tensor<9000xf32>, tensor<9000xi64>
  }
}

// The run decides.
// CHECK-LABEL: module @any
// CHECK: %[[IS_IN:.*]] = arith.cmpi ult
// CHECK: scf.if %[[IS_IN]]
// CHECK: } else {
// CHECK: scf.while
module @any attributes {mlc.kernel} {
  func.func @any(%x: tensor<?xf32>, %v: tensor<?xf32>, %i: tensor<?xi64>) -> (tensor<?xf32>, tensor<?xi64>) {
    %r:2 = mlc.sort %x {axis = 0 : i64, descending = false} : tensor<?xf32> -> tensor<?xf32>, tensor<?xi64>
    return %r#0, %r#1 : tensor<?xf32>, tensor<?xi64>
  }
}
