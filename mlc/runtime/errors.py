"""The exceptions of a compiled model, one for each code of `mlc_code` in mlc.h."""

from __future__ import annotations


class MlcError(Exception):
    """Something about a compiled model went wrong; `code` is the runtime's status code, 0 when it has none."""

    code = 0


class LoadError(MlcError, OSError):
    """The file is missing, is no compiled model, or speaks another ABI version."""

    def __str__(self) -> str:
        return str(self.args[0])


class ArgumentError(MlcError, ValueError):
    """The call is wrong: unknown names, wrong counts, bad options."""

    code = 1


class InputError(MlcError, ValueError):
    """An input or an output buffer does not fit the model's signature."""

    code = 2


class ModelError(MlcError, RuntimeError):
    """The model met data that it cannot process, for instance an index out of range."""

    code = 3


class OutOfMemoryError(MlcError, MemoryError):
    """The model's buffers could not be allocated."""

    code = 4


class DeviceError(MlcError, RuntimeError):
    """This machine lacks a feature that the model was compiled for."""

    code = 5


class WeightsError(MlcError, OSError):
    """The external weight file is missing or is not the one that the model was compiled with."""

    code = 6

    def __str__(self) -> str:
        return str(self.args[0])


class BusyError(MlcError, RuntimeError):
    """The context is already running in another thread."""

    code = 7


_CLASSES = {
    error.code: error
    for error in (
        ArgumentError,
        InputError,
        ModelError,
        OutOfMemoryError,
        DeviceError,
        WeightsError,
        BusyError,
    )
}


def error_of(code: int, message: str) -> MlcError:
    """The exception for a status of the runtime."""
    return _CLASSES.get(code, MlcError)(message)
