"""Files of arrays, in and out."""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .errors import ArgumentError


def read_arrays(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    """The array of an .npy file, or the arrays of an .npz file by name. ArgumentError for anything else."""
    if not path.exists():
        raise ArgumentError(f"there is no file '{path}'")
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return content
        with content:
            return {name: content[name] for name in content.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = str(error)
        if isinstance(error, OSError):
            reason = error.strerror or reason
        elif "pickle" in reason:  # what NumPy takes anything for that has no header of its own
            reason = "it holds no arrays of numbers"
        raise ArgumentError(f"'{path}' is not a .npy or .npz file: {reason}") from error


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes an .npz file, which appears when it is complete. Raises OSError that names `path`."""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def check_writable(path: Path) -> None:
    """Raises OSError unless a file can be written at `path`, without touching what is there."""
    if path.exists() and not path.is_file():
        raise OSError(f"'{path}' is no file that can be replaced")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise OSError(f"cannot write to the folder '{path.parent.absolute()}': {error.strerror}") from error
