"""PyTorch as a peer: TorchScript, programs of `torch.export` as they are, and the same through `torch.compile`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mlc.bench.job import Feeds, Job, Loaded


def load_torch(job: Job, feeds: Feeds) -> Loaded:
    """TorchScript, frozen and optimised for inference; a program as it is."""
    if not job.torchscript:
        return _inference(_program(job, feeds)[1])
    import torch

    torch.set_num_threads(job.threads)
    module = torch.jit.load(job.torchscript).eval()
    frozen = torch.jit.optimize_for_inference(torch.jit.freeze(module))
    arguments = [torch.from_numpy(value) for value in feeds.values()]
    loaded = _inference(lambda: frozen(*arguments))
    for _ in range(2):  # the executor of TorchScript watches two runs before it compiles
        loaded.run()
    return loaded


def load_inductor(job: Job, feeds: Feeds) -> Loaded:
    """A program through `torch.compile`, for the shapes of `feeds`. What it compiles is kept in the job's folder."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(job.folder) / "inductor")
    import torch

    module, call = _program(job, feeds)
    module.forward = torch.compile(module.forward, dynamic=False)
    loaded = _inference(call)
    loaded.run()
    return loaded


def _program(job: Job, feeds: Feeds) -> tuple[Any, Callable[[], Any]]:
    """The module of a program, and a function that calls it. Tensors take the places of `feeds` in their order; numbers
    are part of the program. Raises ValueError where there are more or fewer of them.
    """
    import torch
    import torch.utils._pytree as pytree

    from mlc.frontends.torch.files import read_program

    torch.set_num_threads(job.threads)
    program = read_program(torch, Path(job.program))
    specs = [spec.arg for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    tensors = [not hasattr(argument, "value") for argument in specs]
    given, buffers = list(feeds)[: sum(tensors)], list(feeds)[sum(tensors) :]
    # Buffers that it changes are inputs of the model, behind the others; the module has them itself.
    if len(given) < sum(tensors) or not set(buffers) <= set(job.state.values()):
        raise ValueError(f"the program takes {sum(tensors)} tensors, the model {len(feeds)}")
    left = (torch.from_numpy(feeds[name]) for name in given)
    flat = [next(left) if own else a.value for a, own in zip(specs, tensors, strict=True)]
    arguments, keywords = pytree.tree_unflatten(flat, program.call_spec.in_spec)
    module = program.module()
    return module, lambda: module(*arguments, **keywords)


def _inference(call: Callable[[], Any]) -> Loaded:
    import torch

    def run() -> Any:
        with torch.inference_mode():
            return call()

    return Loaded(run, _outputs)


def _outputs(result: Any) -> list[Any]:
    """The tensors of a result as mlc orders them: tuples, lists and dictionaries from left to right."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [array for item in result for array in _outputs(item)]
    return [] if result is None else [result.numpy()]
