"""Weights: a lazy store of named arrays and recipes, files of them, and the image that a model's code reads.

Needs NumPy (and ml_dtypes) only, never MLIR.
"""

from __future__ import annotations

from mlc.weights.image import WeightImage
from mlc.weights.recipe import Recipe, Step
from mlc.weights.store import Store, WeightError, WeightInfo

__all__ = ["Recipe", "Step", "Store", "WeightError", "WeightImage", "WeightInfo"]
