"""Importers: a source model becomes one module in the `mlc` dialect plus a weight store."""
