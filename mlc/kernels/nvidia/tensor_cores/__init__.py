"""What kernels on the tensor cores of all chips share: tiles, operands, epilogues, scores and their softmax."""
