"""A sample of ONNX's backend suite on a GPU: compiled on one machine, run on another that has a GPU but not the compiler.

    python -m gpu.onnx_sample compile FOLDER [COUNT [SEED]]   (with test/ and test/conformance/ on the module path)
    python -m gpu.onnx_sample run FOLDER RESULTS              (test/ and mlc/: NumPy, ml_dtypes and the CUDA driver)
    python -m gpu.onnx_sample judge FOLDER RESULTS            (back on the first machine; status 1 when a case is wrong)

Cases are drawn from the single-node ones that pass on the CPU; the seed is today's date unless given. Each runs three
times in a process of its own, plainly, recorded and as a graph, into outputs full of ones, and must give the same bits.
Results are judged by the rules and tolerances of the suite.
"""

from __future__ import annotations

import datetime
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

WORKERS = 8
PATIENCE = 60.0  # seconds for a case


def packed(value: Any) -> Any:
    """A value without NumPy's types, which other versions of it read differently."""
    if isinstance(value, (list, tuple)):
        return [packed(item) for item in value]
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return ("string", array.shape, [str(item) for item in array.ravel()])
    return (array.dtype.name, array.shape, np.ascontiguousarray(array).tobytes())


def unpacked(value: Any) -> Any:
    """What was packed."""
    from mlc.runtime.dtypes import numpy_dtype

    if value is None or isinstance(value, list):
        return None if value is None else [unpacked(item) for item in value]
    dtype, shape, data = value
    if dtype == "string":
        return np.array(data, object).reshape(shape)
    return np.frombuffer(data, numpy_dtype(dtype)).reshape(shape)


# --- Where the compiler is --------------------------------------------------------------------------------------


def compile_sample(folder: Path, count: int, seed: int) -> None:
    """Compiles `count` cases drawn with `seed` to `folder`/NAME.so, with their inputs and shapes in NAME.case."""
    from onnx_cases import load_cases, load_data
    from onnx_suite import expected_failures

    from mlc.compilation import Compilation
    from mlc.options import make_options

    failing = expected_failures()
    every = sorted(c.name for c in load_cases() if c.kind == "node" and c.name not in failing)
    chosen = set(np.random.default_rng(seed).choice(every, min(count, len(every)), replace=False))
    folder.mkdir(parents=True, exist_ok=True)
    for case in load_cases():
        if case.name in chosen:
            model, data = load_data(case)
            Compilation(make_options(target="cuda")).run(model, folder / f"{case.name}.so")
            sets = [(packed(inputs), packed(wanted)) for inputs, wanted in data]
            (folder / f"{case.name}.case").write_bytes(pickle.dumps(sets))


def judged(folder: Path, results: dict[str, Any]) -> list[str]:
    """What is wrong with which case."""
    from onnx_cases import compare, load_cases, load_data, single_node_model
    from onnx_judge import judge

    problems = []
    for case in load_cases():
        if not (folder / f"{case.name}.case").exists():
            continue
        result = results.get(case.name, "was not run")
        if isinstance(result, str):
            problems.append(f"{case.name}: {result}")
            continue
        model, data = load_data(case)
        for (inputs, wanted), got in zip(data, result, strict=True):
            have = unpacked(got)
            try:
                compare(have, wanted, case.rtol, case.atol)
            except AssertionError as error:
                if not judge(case.name, single_node_model(case, model), inputs, have, wanted):
                    problems.append(f"{case.name}: {' '.join(str(error).split())[:300]}")
    return problems


# --- Where the GPU is -------------------------------------------------------------------------------------------


def run_case(folder: Path, name: str) -> Any:
    """The packed results of a case's data sets, or what went wrong."""
    from mlc.runtime.loader import load

    sets = pickle.loads((folder / f"{name}.case").read_bytes())
    results = []
    with load(folder / f"{name}.so").context() as context:
        for inputs, wanted in sets:
            runs = [_run(context, unpacked(inputs), unpacked(wanted)) for _ in range(3)]
            if runs[1:] != runs[:1] * 2:
                return "results differ from run to run"
            results.append(runs[0])
    return results


def _run(context: Any, inputs: list[Any], wanted: list[Any]) -> Any:
    """One run into buffers full of ones, where outputs are numbers."""
    buffers = []
    for value in wanted:
        if not isinstance(value, np.ndarray) or value.dtype.kind == "O":
            buffers.append(None)
            continue
        buffer = np.empty(value.shape, value.dtype)
        if buffer.dtype.kind != "b" and buffer.size:
            buffer.reshape(-1).view(np.uint8)[:] = 0xFF
        buffers.append(buffer)
    try:
        return packed(list(context.run(inputs, out=buffers).values()))
    except Exception:  # a shape that is not the expected one: the judge says so
        return packed(list(context.run(inputs).values()))


def run_sample(folder: Path, results: Path) -> None:
    """Runs all cases and writes what they gave."""
    names = sorted(path.stem for path in folder.glob("*.case"))

    def one(name: str) -> Any:
        command = [sys.executable, "-m", "gpu.onnx_sample", "one", str(folder), name]
        try:
            done = subprocess.run(command, capture_output=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return "hangs"
        if done.returncode:
            return f"status {done.returncode}: {done.stderr.decode(errors='replace')[-400:]}"
        return pickle.loads(done.stdout)

    with ThreadPoolExecutor(WORKERS) as pool:
        found = dict(zip(names, pool.map(one, names), strict=True))
    results.write_bytes(pickle.dumps(found))
    print(f"{len(found)} cases, {sum(isinstance(result, str) for result in found.values())} without results")


def main() -> None:
    """Compiles, runs or judges."""
    what, folder, *more = sys.argv[1:]
    if what == "compile":
        today = int(datetime.date.today().strftime("%Y%m%d"))
        count, seed = [*map(int, more), *(200, today)[len(more) :]]
        print(f"{count} cases, seed {seed}")
        compile_sample(Path(folder), count, seed)
    elif what == "run":
        run_sample(Path(folder), Path(more[0]))
    elif what == "one":
        os.write(1, pickle.dumps(run_case(Path(folder), more[0])))
    else:
        problems = judged(Path(folder), pickle.loads(Path(more[0]).read_bytes()))
        print("\n".join(problems) or "all cases are right")
        sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
