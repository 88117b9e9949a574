"""Looking at what the compiler decided."""
