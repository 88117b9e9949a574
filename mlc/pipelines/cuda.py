"""The compiler for NVIDIA GPUs: its phases in order, and the passes of each.

Up to `kernels` it is the CPU's compiler, with what the GPU claims kept whole. `schedule` gives every kernel its place
first: the GPU, or the host for arithmetic on shapes. The host program is the CPU's too, with buffers in both memories
(`buffers`). `nvvm` leaves each kernel of the GPU as a module of the LLVM dialect, which `mlc/codegen/ptx.py` turns into
PTX and machine code, and the host as calls of the runtime.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.pipelines import cpu
from mlc.targets.cpu import CpuTarget
from mlc.targets.nvidia import NvidiaTarget

Phase = tuple[str, list[str]]
SHARED = ("import", "simplify", "decompose", "layout", "linalg", "kernels")
FEW_ELEMENTS = 1 << 21  # which are moved to rows and back while a kernel more would be launched
LONGEST_SHARED = 3 << 16  # elements of a row that the blocks of a cluster keep between them, in few enough registers
# In code of thousands of operations with branches, one pattern of MLIR's compares all pairs of a block's arguments,
# again for each other change: more than half of the time of a kernel's passes, for nothing. It runs once, when
# branches are made. The names are what compilers call it, GCC and Clang.
_DUPLICATE_ARGUMENTS = "RemoveDuplicateSuccessorInputUses"
CANONICALIZE = (
    "canonicalize{disable-patterns={"
    f"'{{anonymous}}::{_DUPLICATE_ARGUMENTS}','(anonymous namespace)::{_DUPLICATE_ARGUMENTS}'}}}}"
)
HOST_ONLY = ("mlc-group-gathers",)  # for loops of the host
WITH_OPTIONS = {
    "mlc-merge-contractions": "mlc-merge-contractions{even=true}",
    "mlc-move-factors": "mlc-move-factors{narrow=true}",
    "mlc-plan-norms": f"mlc-plan-norms{{rows={FEW_ELEMENTS}}}",
    "mlc-scale-products": "mlc-scale-products{even=8}",  # rows of 16 bytes
}
NOT_HERE = ("mlc-widen-halves", cpu.RECURRING)  # tensor cores read halves; layers are planned for these
# Bytes of recurrent weights that a block, and a cluster of them, have in every step sooner than kernels are launched,
# and of those of all rows.
RECURRENT, RECURRENT_SHARED, RECURRENT_WORK = 5 << 17, 9 << 18, 1 << 30
ASKING = ("mlc-fold-views", "mlc-plan-fusion")  # the templates of the target


def phases(targets: Sequence[NvidiaTarget], host: CpuTarget, precision: str = "fp32") -> list[Phase]:
    """All phases with their passes for `targets`, which share everything but schedules; `host` is the CPU that launches
    the kernels, `precision` that of the operands of contractions.
    """
    of_cpu = dict(cpu.phases(host, precision, integers=False))
    asked = ("cuda" if all(t.has_wgmma for t in targets) else "cuda-mma") + ("-tf32" if precision == "tf32" else "")
    f32 = "{f32=true}" if precision == "tf32" else ""
    channels = [f"mlc-unfold-windows{f32}", f"mlc-pad-channels{f32}", "mlc-extend-channels"]
    channels += ["mlc-align-products", "mlc-sink-moves{joins=true}"]
    narrowing = f"{cpu.NARROWING}{{bytes=true}}"
    decomposed = [p for p in of_cpu["decompose"] if not p.startswith(NOT_HERE)]
    decomposed = [narrowing if p.startswith(cpu.NARROWING) else WITH_OPTIONS.get(p, p) for p in decomposed]
    decomposed = _before(decomposed, "mlc-decompose", [_recurring(targets, precision)])
    place = decomposed.index("mlc-fold-constants") + 1
    native = str(all(t.has_wgmma for t in targets)).lower()
    floats8 = f"mlc-float8-contractions{{native={native}}}"
    simplify = [p for p in of_cpu["simplify"] if p not in HOST_ONLY]
    simplify = _before(simplify, "mlc-resolve-dims", [floats8])
    of_cpu["simplify"] = _before(simplify, "mlc-drop-units", ["mlc-turn-products", "mlc-sum-products"])
    shortest = f"{{shortest={LONGEST_SHARED + 1}}}" if all(t.has_clusters for t in targets) else ""
    splitting = {"mlc-plan-splits{threads=true}": ["mlc-recompute-producers", f"mlc-plan-splits{shortest}"]}
    splitting["mlc-plan-fusion"] = ["mlc-plan-parts", "mlc-split-scans", "mlc-split-selections", "mlc-plan-fusion"]
    moves = ["mlc-slice-gathers", "mlc-fold-factors"]
    of_cpu["decompose"] = [*decomposed[:place], *moves, *decomposed[place:], "mlc-order-scatters"]
    layout = [p for p in of_cpu["layout"] if p != cpu.JOINING and not p.startswith("mlc-sink-moves")]
    layout = [WITH_OPTIONS.get(p, p) for p in layout]
    if all(t.has_wgmma for t in targets):
        channels.insert(0, f"mlc-join-groups{f32}")
    of_cpu["layout"] = ["mlc-sink-moves", *_before(layout, "mlc-hoist-weights", channels)]
    kernels = ["mlc-narrow-stores" if p.startswith("mlc-narrow-stores") else p for p in of_cpu["kernels"]]
    kernels = [next((name for name in ASKING if p.startswith(name)), p) for p in kernels]
    kernels.remove("mlc-share-kernels")  # numbers in the code are free there; registers that hold them are not
    of_cpu["kernels"] = [p for name in kernels for p in splitting.get(name, [name])]
    shared = [(name, [f"{p}{{target={asked}}}" if p in ASKING else p for p in of_cpu[name]]) for name in SHARED]
    for_host = [p for p in of_cpu["schedule"] if p.startswith("mlc-assign-schedules")]
    turned = "mlc-turn-weights" if precision == "tf32" else "mlc-turn-weights{exact=true}"
    for_gpu = [turned, "mlc-hoist-weights"]
    for_gpu.append(f"mlc-add-variants{{precision={precision}}}")
    for_gpu += ["mlc-add-architectures"] if len(targets) > 1 else []
    for_gpu.append(f"mlc-assign-gpu-schedules{{precision={precision}}}")
    placed = ["mlc-assign-placement", "mlc-scatter-in-place"]
    if all(t.has_wgmma for t in targets):
        placed += [f"mlc-plan-twins{{precision={precision}}}", "mlc-join-twins"]
    placed += ["mlc-plan-joins", "mlc-join-launches"]
    return [
        *shared,
        ("schedule", [*placed, *for_gpu, *for_host, "mlc-note-constants"]),
        ("tile", ["mlc-expand-gpu-kernels", f"builtin.module({CANONICALIZE},cse)"]),
        ("buffers", ["mlc-insert-transfers", *of_cpu["buffers"]]),
        (
            "nvvm",
            [
                "mlc-add-gpu-entries",
                "mlc-convert-gpu-kernels",
                "mlc-lower-to-nvvm",
                *of_cpu["llvm"],
                "mlc-move-grids",
            ],
        ),
    ]


def _recurring(targets: Sequence[NvidiaTarget], precision: str) -> str:
    """The pass that makes recurrent layers kernels, whose products are those of tensor cores."""
    options = {"f32": precision != "fp32", "f16": True, "bf16": True, "narrow": precision == "bf16"}
    flags = " ".join(f"{name}={str(value).lower()}" for name, value in options.items())
    most = RECURRENT_SHARED if all(t.has_clusters for t in targets) else RECURRENT
    return f"{cpu.RECURRING}{{{flags} bytes={most} alone={most} work={RECURRENT_WORK} multiple=16}}"


def _before(passes: list[str], other: str, added: list[str]) -> list[str]:
    """`passes` with those `added` in front of the pass `other`."""
    place = passes.index(other)
    return [*passes[:place], *added, *passes[place:]]
