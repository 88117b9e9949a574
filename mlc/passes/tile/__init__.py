"""Phase `tile`: templates expand kernels into memref functions."""
