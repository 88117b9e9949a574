// RUN: mlc-opt %s --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func @checks
// CHECK-SAME: (%[[C:.*]]: i1, %[[N:.*]]: index)
func.func @checks(%c: i1, %n: index) {
  // CHECK-NOT: "holds"
  // CHECK: mlc.check %{{.*}}, %[[N]], "fails"
  // CHECK: mlc.check %[[C]], %[[N]], "may fail"
  %true = arith.constant true
  %false = arith.constant false
  mlc.check %true, %n, "holds"
  mlc.check %false, %n, "fails"
  mlc.check %c, %n, "may fail"
  return
}
