"""Real models on a GPU against the CPU: compiled on one machine, run on another that has a GPU but not the compiler.

    python -m gpu.zoo compile FOLDER [NAME…]   (with test/ on the module path: both libraries, and the CPU's results)
    python -m gpu.zoo run FOLDER               (test/ and mlc/: NumPy, ml_dtypes and the CUDA driver; status 1: wrong)

Each model runs three times for each of its inputs, plainly, recorded and as a graph, and must give the same bits.
Models whose filters were drawn travel without their weights, which are drawn again where they run.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gpu.onnx_sample import packed, unpacked

TOLERANCE = 1e-4
"""The most that a result may differ, relative to its norm: fp32 through tens of layers, added in another order."""


def compile_models(folder: Path, names: Sequence[str], target: str = "cuda") -> None:
    """Writes `folder`/NAME.so for each model and, in NAME.case, inputs with what the CPU's library gives for them."""
    from models.zoo import zoo

    from mlc.compilation import Compilation
    from mlc.options import make_options
    from mlc.runtime.loader import load

    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        sample = zoo(name)
        with tempfile.TemporaryDirectory() as scratch:
            model = load(Compilation(make_options()).run(sample.path, Path(scratch) / "cpu.so"))
            order = [info.name for info in model.inputs]
            sets = [[inputs[key] for key in order] for inputs in (sample.inputs, sample.swapped)]
            found = [packed(list(model.context().run(inputs).values())) for inputs in sets]
        _compile(sample.path, folder / f"{name}.so", target)
        (folder / f"{name}.case").write_bytes(pickle.dumps([(packed(a), b) for a, b in zip(sets, found, strict=True)]))


def _compile(source: Path, library: Path, target: str) -> None:
    """Writes the library, and of a model whose weights can be drawn what they are drawn from, instead of them."""
    import onnx
    from models.drawn import compact, is_drawn

    from mlc.compilation import Compilation
    from mlc.options import make_options

    model = onnx.load(source)
    weights = "external" if is_drawn(model) else "embed"
    Compilation(make_options(target=target, weights=weights)).run(source, library)
    if is_drawn(model):
        library.with_suffix(".weights").write_bytes(pickle.dumps(compact(model)))
        library.with_suffix(".safetensors").unlink(missing_ok=True)


def _draw(library: Path) -> None:
    """Writes the weight file of a library that came without it."""
    from models.drawn import expanded

    from mlc.runtime.image_hash import ImageHash
    from mlc.runtime.loader import read_metadata
    from mlc.weights.rebuild import rebuild
    from mlc.weights.store import Store

    metadata, store = read_metadata(library), Store()
    for name, array in expanded(pickle.loads(library.with_suffix(".weights").read_bytes())).items():
        store.add(name, array)
    known = metadata["weights"]
    rebuild(metadata["weight_image"], known["size"], store, library.with_name(known["file"]), ImageHash())


def difference(want: np.ndarray, got: np.ndarray) -> float:
    """||want - got|| / ||want||; infinite where shapes, integers or what is no number differ."""
    if want.shape != got.shape or want.dtype != got.dtype:
        return float("inf")
    if want.dtype.kind not in "fc":
        return 0.0 if np.array_equal(want, got) else float("inf")
    a, b = want.astype(np.float64), got.astype(np.float64)
    if not (np.isfinite(a) == np.isfinite(b)).all():
        return float("inf")
    scale = float(np.linalg.norm(np.where(np.isfinite(a), a, 0))) or 1.0
    return float(np.linalg.norm(np.where(np.isfinite(a), a - b, 0))) / scale


def run_model(folder: Path, name: str) -> tuple[float, str]:
    """The largest difference from the CPU's results, and what is wrong ("": nothing)."""
    from mlc.runtime.loader import load

    worst = 0.0
    if (folder / f"{name}.weights").exists():
        _draw(folder / f"{name}.so")
    with load(folder / f"{name}.so").context() as context:
        for inputs, wanted in pickle.loads((folder / f"{name}.case").read_bytes()):
            runs = [packed(list(context.run(unpacked(inputs)).values())) for _ in range(3)]
            if runs[1:] != runs[:1] * 2:
                return float("inf"), "results differ from run to run"
            pairs = zip(unpacked(wanted), unpacked(runs[0]), strict=True)
            worst = max([worst, *(difference(want, got) for want, got in pairs)])
    return worst, "" if worst <= TOLERANCE else f"differs by {worst:.1e}, at most {TOLERANCE:.0e} is allowed"


def main() -> None:
    """Compiles or runs."""
    what, folder, *names = sys.argv[1:]
    if what == "compile":
        from models.zoo import names as every

        compile_models(Path(folder), names or every())
        return
    wrong = 0
    for path in sorted(Path(folder).glob("*.case")):
        error, problem = run_model(Path(folder), path.stem)
        print(f"{'WRONG' if problem else 'ok   '} {path.stem:28} {error:.1e} {problem}", flush=True)
        wrong += bool(problem)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
