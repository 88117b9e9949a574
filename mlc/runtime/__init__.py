"""Loading and running compiled models. Needs NumPy only, never the compiler."""
