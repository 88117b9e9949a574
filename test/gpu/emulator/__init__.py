"""A GPU in NumPy: runs PTX as LLVM writes it for mlc's kernels, tensor cores, copy engines and clusters included."""
