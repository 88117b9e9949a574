"""Phase `llvm`: the host function as calls of the runtime."""
