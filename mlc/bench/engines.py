"""What can run a model: mlc and its peers. A peer is optional, and imported in its worker process only.

An engine takes a job and gives a function that runs the model once and another that makes NumPy arrays of what the
first one gave, which is not timed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlc.bench.job import Feeds, Job, Loaded
from mlc.bench.torch_engines import load_inductor, load_torch


@dataclass(frozen=True)
class Engine:
    """An engine by name. `modules` must be importable; `packages` are what to install, and the first one's version is
    shown. `reads` are the fields of a job of which it needs one. `bf16`: whether it computes in bf16 when asked to.
    """

    name: str
    modules: tuple[str, ...]
    packages: tuple[str, ...]
    reads: tuple[str, ...]
    bf16: bool
    load: Callable[[Job, Feeds], Loaded]

    @property
    def installed(self) -> bool:
        """Whether its modules can be imported."""
        return all(_findable(module) for module in self.modules)

    @property
    def version(self) -> str:
        """The version of its package; empty when it is not known."""
        try:
            return importlib.metadata.version(self.packages[0])
        except importlib.metadata.PackageNotFoundError:
            return ""

    def source(self, files: Mapping[str, str]) -> str:
        """The file that it reads, of those by field; empty when it can read none."""
        return next((files[field] for field in self.reads if files.get(field)), "")

    def precision(self, asked: str) -> str:
        """The precision that it computes contractions in."""
        return asked if self.bf16 else "fp32"


def _findable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # its parent package is missing or broken
        return False


# --- Engines ----------------------------------------------------------------------------------------------------


def load_mlc(job: Job, feeds: Feeds) -> Loaded:
    """The compiled library."""
    import mlc

    model = mlc.load(job.library, threads=job.threads, weights=job.weights or None)
    context = model.context()
    files = [Path(job.library)]
    if name := model.metadata.get("weights", {}).get("file"):
        files.append(Path(job.weights or Path(job.library).with_name(name)))
    out = {output: feeds[source] for output, source in job.shared.items()} or None

    def returned(outputs: Mapping[str, Any]) -> list[Any]:
        return [value for name, value in outputs.items() if name not in job.state]

    return Loaded(lambda: context.run(feeds, out=out), returned, tuple(files))


def load_onnxruntime(job: Job, feeds: Feeds) -> Loaded:
    """onnxruntime's CPU provider with all graph optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job.threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(job.onnx, options, providers=["CPUExecutionProvider"])
    if not job.shared:
        return Loaded(lambda: session.run(None, feeds), list)
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        if output.name in job.shared:
            binding.bind_ortvalue_output(output.name, values[job.shared[output.name]])
        else:
            binding.bind_output(output.name)
    return Loaded(lambda: session.run_with_iobinding(binding), lambda _: binding.copy_outputs_to_cpu())


def load_openvino(job: Job, feeds: Feeds) -> Loaded:
    """OpenVINO's CPU device: one stream, tuned for latency, arrays shared and not copied."""
    import numpy as np
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": job.threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,  # no other engine is tied to a core, which may be a busy one
        "INFERENCE_PRECISION_HINT": "bf16" if job.precision == "bf16" else "f32",
    }
    model = core.compile_model(_openvino_model(core, job), "CPU", settings)
    request = model.create_infer_request()
    # A program's inputs have other names there, and its buffers are no inputs.
    given = feeds if job.onnx else dict(enumerate(list(feeds.values())[: len(model.inputs)]))
    return Loaded(
        lambda: request.infer(given, share_inputs=True, share_outputs=True),
        lambda results: [np.array(results[port]) for port in model.outputs],
    )


def _openvino_model(core: Any, job: Job) -> Any:
    """The ONNX file, or the program of `torch.export`, where numbers among its inputs are constants."""
    if job.onnx:
        return core.read_model(job.onnx)
    import openvino
    import torch

    from mlc.frontends.torch.files import read_program

    program = read_program(torch, Path(job.program))
    model = openvino.convert_model(program)
    specs = [spec.arg for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    for parameter, argument in zip(list(model.get_parameters()), specs, strict=True):
        if hasattr(argument, "value"):
            if argument.value is not None:
                parameter.output(0).replace(openvino.opset13.constant(argument.value).output(0))
            model.remove_parameter(parameter)
    return model


def load_iree(job: Job, feeds: Feeds) -> Loaded:
    """IREE, compiled for this CPU with data tiling. One file serves all thread counts."""
    import iree.runtime as runtime

    path = _compile_iree(job)
    if job.threads == 1:
        device = runtime.get_device("local-sync")
    else:
        count = f"task_topology_max_group_count={job.threads}", f"task_topology_group_count={job.threads}"
        runtime.flags.parse_flags(*(f"--{flag}" for flag in count))
        device = runtime.get_device("local-task")
    context = runtime.SystemContext(config=runtime.Config(device=device))
    module = runtime.VmModule.mmap(context.instance, str(path))
    context.add_vm_module(module)
    names = [n for n in module.function_names if not n.startswith("__") and not n.endswith("$async")]
    function = context.modules[module.name][names[0]]
    arrays = [runtime.asdevicearray(device, value) for value in feeds.values()]
    return Loaded(lambda: function(*arrays), lambda result: [v.to_host() for v in _listed(result)], (path,))


def _listed(result: Any) -> Sequence[Any]:
    return result if isinstance(result, (list, tuple)) else [result]


def _compile_iree(job: Job) -> Path:
    """The compiled module, made unless an earlier worker has."""
    from iree.compiler import tools

    result, imported = Path(job.folder) / "iree.vmfb", Path(job.folder) / "iree.mlir"
    if result.exists():
        return result
    command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", job.onnx, "-o", str(imported)]
    done = subprocess.run([*command, "--opset-version", "17"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the importer of IREE: {_last_line(done.stderr)}")
    extra = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    extra += ["--iree-opt-level=O3", "--iree-llvmcpu-target-cpu=host", "--iree-opt-data-tiling"]
    partial = result.with_suffix(".partial")
    tools.compile_file(str(imported), input_type="auto", output_file=str(partial), extra_args=extra)
    imported.unlink()
    partial.rename(result)
    return result


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it failed without a word"


def load_onnx(job: Job, feeds: Feeds) -> Loaded:
    """The reference evaluator of the onnx package: slow, for comparison only."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(job.onnx)
    return Loaded(lambda: evaluator.run(None, dict(feeds)), list)


_IREE_PACKAGES = ("iree-base-compiler", "iree-base-runtime")

#: All engines that can be timed, in the order of tables.
ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine("mlc", ("mlc",), ("mlc",), ("library",), True, load_mlc),
        Engine("onnxruntime", ("onnxruntime",), ("onnxruntime",), ("onnx",), False, load_onnxruntime),
        Engine("openvino", ("openvino",), ("openvino",), ("onnx", "program"), True, load_openvino),
        Engine("iree", ("iree.compiler", "iree.runtime"), _IREE_PACKAGES, ("onnx",), False, load_iree),
        Engine("torch", ("torch",), ("torch",), ("torchscript", "program"), False, load_torch),
        Engine("inductor", ("torch",), ("torch",), ("program",), False, load_inductor),
    )
}
PEERS = tuple(name for name in ENGINES if name != "mlc")

#: What gives reference results, best first.
REFERENCES: dict[str, Engine] = {
    "onnxruntime": ENGINES["onnxruntime"],
    "torch": ENGINES["torch"],
    "onnx": Engine("onnx", ("onnx",), ("onnx",), ("onnx",), False, load_onnx),
}
