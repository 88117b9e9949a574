"""`mlc-opt`: mlir-opt with the mlc dialect and every pass of mlc, C++ or Python."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the driver on `argv` (default: the process's arguments) and exits with its code.

    The driver registers its command-line options with LLVM, so it runs once in a process.
    """
    # A reader that has seen enough (`mlc-opt … | head`) ends the process quietly, as that of any filter.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    import mlc.compiler_setup  # noqa: F401
    from mlc import __version__, _native

    words = sys.argv[1:] if argv is None else list(argv)
    if "--version" in words:
        print(f"mlc {__version__}, with", flush=True)
    code = _native.opt_main(["mlc-opt", *words])
    sys.stdout.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
