"""What `--tune` and `--tune-bundle` do before the passes of phase `schedule`: measure, and write what was found."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.codegen.cache import ObjectCache
from mlc.codegen.object import Target
from mlc.options import Options
from mlc.tuning import cache, gpu_search, search
from mlc.tuning.request import tuning_file


def measure_on_cpu(
    module: ir.Module,
    passes: Sequence[str],
    options: Options,
    target: Target,
    registers: int,
    objects: ObjectCache | None,
    step: search.Step,
) -> None:
    """Measures CPU kernels of `module` on this machine, within the seconds that `options` give."""
    path = tuning_file(options)
    assert path is not None and options.tune is not None
    found = search.tune(
        module, passes, target, registers, options.tune, _known(options), jobs=options.jobs, objects=objects, step=step
    )
    cache.write(path, found)


def measure_on_gpu(
    module: ir.Module, passes: Sequence[str], options: Options, compile_library: gpu_search.Compile, step: search.Step
) -> None:
    """The same for GPU kernels; or writes them for a machine that has the GPU."""
    known, path = _known(options), tuning_file(options)
    if options.tune_bundle is not None:
        gpu_search.write_bundle(module, passes, known, options.tune_bundle, compile_library, step)
        return
    assert path is not None and options.tune is not None
    cache.write(path, gpu_search.tune(module, passes, options.tune, known, compile_library, step))


def _known(options: Options) -> dict[str, cache.Entry]:
    """What the file has already."""
    path = tuning_file(options)
    return cache.read(path) if path is not None and path.exists() else {}
