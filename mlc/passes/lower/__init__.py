"""Lowering of the primitive operations to linalg, tensor, arith, math and scf."""
