"""Weight files of libraries that were compiled elsewhere, from arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np


def write_weights(library: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes the weight file of `library`, where it has one, from the model's weights by name."""
    from mlc.runtime.image_hash import ImageHash
    from mlc.runtime.loader import read_metadata
    from mlc.weights.rebuild import rebuild
    from mlc.weights.store import Store

    metadata, store = read_metadata(library), Store()
    if metadata.get("weight_image") is None:
        return
    for name, array in arrays.items():
        store.add(name, array)
    known = metadata["weights"]
    rebuild(metadata["weight_image"], known["size"], store, library.with_name(known["file"]), ImageHash())
