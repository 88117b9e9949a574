"""The compiler for CPUs: its phases in order, and the passes of each.

A phase ends where its last pass ends; `docs/ir.md` says what the IR may contain there. `import` is done by a front end
and has only clean-up here. After `tile` nothing touches a kernel until code generation turns each one, on its own, into
an object: clean-up passes of the later phases are anchored at the host's functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.targets.cpu import CpuTarget

Phase = tuple[str, list[str]]


NARROWING = "mlc-narrow-contractions"
RECURRING = "mlc-plan-recurrences"
# Filters that are transformed, or packed with zeros up to whole panels and steps, may be many times as large as before.
HOISTING = f"mlc-hoist-weights{{limit={1 << 40}}}"
JOINING = "mlc-join-groups{line=64 apart=true}"  # a row of a tile
# From how many elements on tensors between kernels are stored rounded. A CPU gains where the second cache does not hold
# them, 1 MB of f32; where products take a tenth of the time, on tiles, what they store counts earlier. Sequences of 128
# tokens keep the sums of their residual stream, which many layers add to, in f32.
NARROW = 1 << 18
NARROW_TILES = 1 << 17
NARROW_WINDOWS = 3 << 17  # of those that depthwise convolutions read

# Recurrent weights that work items stream from the second level of cache in every step; where one item would do all of
# it, those of a step that is shorter than what threads wait for each other.
RECURRENT, RECURRENT_ALONE = 5 << 18, 1 << 17


def _widening(target: CpuTarget, precision: str) -> str:
    """The pass that computes halves in f32. Weights stay halves where their elements cost nothing to widen."""
    return "mlc-widen-halves" if precision != "bf16" and target.widens_f16 else "mlc-widen-halves{weights=true}"


def _narrowing(target: CpuTarget, precision: str) -> list[str]:
    """The passes that round operands of contractions."""
    if precision != "bf16":
        return []
    return [NARROWING if target.bf16_dot or target.bf16_tiles else f"{NARROWING}{{weights-only=true}}", "cse"]


def _recurring(target: CpuTarget, precision: str) -> str:
    """The pass that makes recurrent layers kernels: of f32 unless there are units for bf16."""
    narrow = precision == "bf16" and (target.bf16_dot or target.bf16_tiles)
    return f"{RECURRING}{{f16=true narrow={str(narrow).lower()} bytes={RECURRENT} alone={RECURRENT_ALONE}}}"


def _storing(target: CpuTarget, precision: str) -> list[str]:
    """The pass that narrows what is stored between kernels, where operands are narrow."""
    if precision != "bf16":
        return []
    return [f"mlc-narrow-stores{{fewest={NARROW_TILES if target.bf16_tiles else NARROW} depthwise={NARROW_WINDOWS}}}"]


def _grouping(target: CpuTarget, precision: str) -> list[str]:
    """The passes for convolutions in groups of few channels."""
    spanning = f"mlc-span-groups{{lanes={target.vector_bits // 32}}}"
    return [JOINING, spanning] if precision == "bf16" and target.bf16_tiles else [spanning]


def _assign_schedules(target: CpuTarget) -> str:
    """The pass that gives kernels their schedules, with what it must know of the target."""
    flags = {"bf16-dot": target.bf16_dot, "int8-dot": target.int8_dot, "int16-dot": target.int16_dot}
    flags |= {"halves": target.halves, "claims": target.claims, "fractions": target.fractions}
    flags |= {"subnormals": target.subnormals, "widens-beside": target.widens_beside}
    flags |= {"distant": target.distant}
    flags |= {"bf16-tiles": target.bf16_tiles, "int8-tiles": target.int8_tiles}
    options = [f"vector-bits={target.vector_bits}", f"vector-registers={target.vector_registers}"]
    options += [f"{name}={str(value).lower()}" for name, value in flags.items()]
    return f"mlc-assign-schedules{{{' '.join(options)}}}"


# MLIR gives a loop the types of its first values, and casts what it carries on to them: wrong where a tensor grows. The
# names are what compilers call the pattern, GCC and Clang.
CANONICALIZE = (
    "canonicalize{disable-patterns={"
    "'{anonymous}::ForOpTensorCastFolder','(anonymous namespace)::ForOpTensorCastFolder'}}"
)


def _codes(target: CpuTarget) -> int:
    """How many bits codes of a weight may have that are multiplied by codes of rows, by instructions for bytes; vectors
    of 128 bits may come without one."""
    return 8 if target.int8_dot else 4 if target.int16_dot and target.vector_bits > 128 else 0


def _integers(target: CpuTarget, row_bits: int) -> list[str]:
    """Contractions of quantized operands on the integers themselves."""
    streamed = f"codes={_codes(target)} lanes={target.vector_bits // 32} rows={row_bits}"
    return [
        f"mlc-plan-integers{{tiles={str(target.int8_tiles).lower()} words={str(not target.int8_dot).lower()}}}",
        "mlc-drop-signs",
        "mlc-integer-contractions",
        CANONICALIZE,
        "cse",
        "mlc-fold-requantization",
        f"mlc-stream-weights{{{streamed}}}",
    ]


def _simplify(integers: Sequence[str]) -> list[str]:
    """The passes of phase `simplify`; `integers` are those for quantized contractions."""
    return [
        CANONICALIZE,
        "mlc-scalarize-shapes",
        "mlc-fold-constants",
        CANONICALIZE,
        "cse",
        "mlc-fold-positions",
        "mlc-hide-keys",
        "mlc-check-shapes",
        "mlc-narrow-inputs",
        "mlc-refine-types",
        CANONICALIZE,
        "cse",
        "mlc-group-gathers",
        "mlc-index-stacks",
        "cse",
        "mlc-cancel-quantization",
        *integers,
        "mlc-resolve-dims",
        CANONICALIZE,
        "cse",
        "mlc-refine-types",
        "mlc-guard-softmax",
        "mlc-group-channels",
        "mlc-split-softmax",
        "mlc-turn-attention",
        "mlc-group-heads",
        "mlc-drop-units",
        "mlc-scale-channels",
        "mlc-fold-batch-norm",
        "mlc-lift-gathers",
        "mlc-hoist-weights",
        CANONICALIZE,
        "cse",
    ]


def phases(
    target: CpuTarget, precision: str = "fp32", *, integers: bool = True, winograd: int = 0, row_bits: int = 0
) -> list[Phase]:
    """All phases with their passes for `target`; `precision` is that of the operands of contractions, `integers` says
    whether quantized operands are multiplied as integers, `winograd` is the tile of convolutions by minimal filtering,
    or 0 for none of them, `row_bits` what rows that a weight of few bits multiplies may be rounded to (0: as the model
    says).
    """
    rates = target.rates
    options = f"tile={winograd} arithmetic={rates.arithmetic} near={rates.near} memory={rates.memory}"
    planned = [f"mlc-plan-winograd{{{options}}}"] if winograd else []
    transformed = [HOISTING] if winograd else []
    lower = ["mlc-strings-to-records", "mlc-lower-to-linalg", *transformed, CANONICALIZE, "cse"]
    lower += ["mlc-invert-scales", "cse"] if target.fused else []
    layout = ["mlc-sink-moves{joins=true}", "mlc-propagate-layout", *planned, "mlc-merge-contractions"]
    layout += [*_grouping(target, precision), "mlc-hoist-weights", CANONICALIZE, "cse"]
    decompose = ["mlc-plan-norms", _recurring(target, precision), "mlc-decompose", _widening(target, precision)]
    decompose += [CANONICALIZE, "mlc-fold-constants", CANONICALIZE, "cse"]
    decompose += ["mlc-scale-products", "mlc-lift-reductions", "mlc-move-factors", *_narrowing(target, precision)]
    return [
        ("import", []),
        ("simplify", _simplify(_integers(target, row_bits) if integers else [])),
        ("decompose", decompose),
        ("layout", layout),
        ("linalg", lower),
        (
            "kernels",
            [
                *("mlc-count-nonzero", "mlc-fold-views", "mlc-plan-splits{threads=true}"),
                *("mlc-split-reductions", "mlc-plan-fusion", *_storing(target, precision)),
                *("mlc-outline-kernels", "mlc-dedupe-kernels", "mlc-share-kernels", "mlc-insert-in-place"),
            ],
        ),
        (
            "schedule",
            [
                _assign_schedules(target),
                *("mlc-pack-weights", "mlc-read-panels", HOISTING),
                f"func.func({CANONICALIZE},cse)",
                HOISTING,
                "mlc-share-sums",
                "mlc-plan-in-place",
                "mlc-write-in-place",
                "mlc-share-inputs",
            ],
        ),
        ("tile", ["mlc-expand-kernels"]),
        (
            "buffers",
            [
                "mlc-place-weights",
                "mlc-bufferize-host",
                f"func.func({CANONICALIZE},cse)",
                "mlc-plan-arena",
                "mlc-materialize-buffers",
                f"func.func({CANONICALIZE},cse)",
            ],
        ),
        ("llvm", ["mlc-isolate-host", "mlc-host-to-cfg", "mlc-lower-host", "mlc-convert-host"]),
    ]
