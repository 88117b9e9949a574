"""The passes of the compiler, one folder a phase, one pass a file."""
