"""Whole libraries of the GPU cases: compiled on one machine, run on another that has a GPU but not the compiler.

    python -m gpu.libraries compile FOLDER [NAME…]     (with test/ on the module path)
    python -m gpu.libraries run FOLDER                 (and mlc/ there: NumPy and the CUDA driver are enough)

Each case runs three times, plainly, recorded and as a graph, and must give the same bits each time. `gpu/bundle.py` is
about kernels alone, between guard bands.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from models.gpu_cases import Case, cases, differences


def compile_cases(folder: Path, chosen: Sequence[Case]) -> None:
    """Compiles each case to `folder`/NAME.so."""
    from models.gpu_cases import build

    from mlc.compilation import Compilation
    from mlc.options import make_options

    folder.mkdir(parents=True, exist_ok=True)
    for case in chosen:
        Compilation(make_options(target="cuda")).run(build(case), folder / f"{case.name}.so")


def run_case(library: Path, case: Case) -> tuple[float, str]:
    """The largest error of a case relative to its largest expected value, and what is wrong ("": nothing)."""
    from mlc.runtime.errors import ModelError
    from mlc.runtime.loader import load

    inputs = case.inputs()
    runs = []
    with load(library).context() as context:
        for _ in range(3):
            try:
                runs.append(list(context.run(inputs).values()))
            except ModelError as error:
                if not case.error[0]:
                    return float("inf"), str(error)
    if case.error[0]:
        return 0.0, "an error was expected" if runs else ""
    if any(a.tobytes() != b.tobytes() for run in runs[1:] for a, b in zip(runs[0], run, strict=True)):
        return float("inf"), "results differ from run to run"
    worst = 0.0
    for got, expected in zip(runs[0], case.expected(inputs), strict=True):
        want = np.asarray(expected)
        if got.shape != want.shape:
            return float("inf"), f"shape {got.shape} instead of {want.shape}"
        if got.size:
            worst = max(worst, float(differences(got, want).max()))
    return worst, "" if worst <= case.tolerance else f"error {worst:.3g}, at most {case.tolerance:.3g} is allowed"


def run_cases(folder: Path) -> list[str]:
    """Runs every library in `folder`; what was wrong with which."""
    problems = []
    for case in cases():
        library = folder / f"{case.name}.so"
        if library.exists():
            problem = run_case(library, case)[1]
            problems += [f"{case.name}: {problem}"] if problem else []
    return problems


def main() -> None:
    """Compiles or runs; ends with status 1 when a case is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("compile", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="some of the cases, to compile [all]")
    options = parser.parse_args()
    if options.action == "compile":
        compile_cases(options.folder, [case for case in cases() if not options.names or case.name in options.names])
        return
    problems = run_cases(options.folder)
    print("\n".join(problems) or "all cases are right")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
