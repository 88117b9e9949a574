"""The `mlc` dialect: ODS and C++ per operator family, and Python builders (`from mlc.dialects import mlc as m`)."""
