"""The whole compiler, as lists of passes: one module a target."""
