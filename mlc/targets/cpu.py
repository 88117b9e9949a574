"""CPU targets: what LLVM is told, what the artefact checks before it runs, and what schedules are made for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_V1 = ("cmov", "cx8", "fxsr", "mmx", "sse", "sse2")
_V2 = (*_V1, "crc32", "cx16", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_VNNI = (*_V4, "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512vnni", "avx512vpopcntdq")
_TILES = ("amx-tile", "amx-bf16", "amx-int8")
# The levels of the x86-64 psABI, and the vector extensions of common CPUs on top of them. Code for a named CPU uses
# these features and no others, so the run-time check is exact.
NAMED: dict[str, tuple[str, tuple[str, ...]]] = {
    "x86-64": ("x86-64", _V1),
    "x86-64-v2": ("x86-64-v2", _V2),
    "x86-64-v3": ("x86-64-v3", _V3),
    "x86-64-v4": ("x86-64-v4", _V4),
    "haswell": ("x86-64-v3", _V3),
    "znver3": ("x86-64-v3", _V3),
    "skylake-avx512": ("x86-64-v4", _V4),
    "cascadelake": ("x86-64-v4", (*_V4, "avx512vnni")),
    "icelake-server": ("x86-64-v4", _VNNI),
    "sapphirerapids": ("x86-64-v4", (*_VNNI, "avx512bf16", "avx512fp16", *_TILES)),
    "znver4": ("x86-64-v4", (*_VNNI, "avx512bf16")),
    "znver5": ("x86-64-v4", (*_VNNI, "avx512bf16")),
}
# What generated code may contain; the rest of what a host has (virtualisation, random numbers) need not be checked.
_CODE = {*_VNNI, *_TILES, "avx512bf16", "avx512fp16", "avxvnni", "avxifma", "avxvnniint8", "avxneconvert", "gfni"}


# Intel's cores that have matrix tiles, whether a machine hides them or not.
_WITH_TILES = {"sapphirerapids", "emeraldrapids", "graniterapids"}
# Names of cores before those, and features that none of these has. LLVM names a CPU by its family and model, which
# virtual machines may change: one with the cores of Granite Rapids was found to say that it is a Rocket Lake.
_BEFORE_TILES = {
    *("skylake-avx512", "cascadelake", "cooperlake", "icelake-client", "icelake-server", "rocketlake", "tigerlake"),
}
_SINCE_TILES = {"+avx512fp16", "+amx-tile"}

_TRAITS = {
    # CPUs with arithmetic units of half the width of their vectors (AMD, "Software Optimization Guide for the AMD Zen4
    # Microarchitecture", 2.11).
    "halves": {"znver4"},
    # CPUs on which `vdpbf16ps` does twice the arithmetic of multiply-adds of f32. Measured on Zen 4 and 5; of Cooper
    # Lake Intel says so ("Empowering PyTorch on Intel Xeon Scalable processors with Bfloat16", 2022). On Intel's cores
    # since Sapphire Rapids, which have matrix tiles for it, a vector takes four times as long as a multiply-add
    # (measured on Emerald and Granite Rapids; the same is seen in libxsmm/tpp-mlir, pull request 1025). CPUs that are
    # not named here, and levels of the psABI, multiply in f32, which takes no more than twice as long anywhere.
    "fast_bf16": {"cooperlake", "znver4", "znver5"},
    # CPUs on which stores wait for the lines they write to, so long that a transposition whose results begin anywhere
    # takes half of the time when it fetches them before; rows of a softmax gain a tenth. Measured on Emerald Rapids,
    # whose cores are Sapphire Rapids'.
    "claims": _WITH_TILES,
    # CPUs on which `vreduceps`, which takes what lies behind the point, costs no more than `vrndscaleps`, so that there
    # is nothing to subtract. Measured on Emerald and Granite Rapids.
    "fractions": _WITH_TILES,
    # CPUs that add and multiply subnormal numbers as fast as others. Measured on Zen 4 (products, sums, `vscalefps`).
    "subnormals": {"znver4"},
    # CPUs that widen halves beside multiply-adds: products with a weight of f16 have 99% of the speed of f32 there. On
    # Emerald Rapids a conversion takes the place of a multiply-add: 74% with 512 bits, 86% with 256.
    "widens_beside": {"znver4"},
    # CPUs on which what the second level of cache lacks is so far away that two rows gain from fetching the next panel
    # of a weight, which four tiles of rows do everywhere. Measured on the cores of Granite Rapids (2 to 20 rows by
    # 768x3072 take 0.72 to 0.9 of the time, one row 1.08 to 1.22); on Zen 4 two tiles lose a tenth.
    "distant": _WITH_TILES,
}

CODE = ("triple", "cpu", "features", "required")
"""What code is generated with and checks, as attributes of a target."""
TRAITS = tuple(_TRAITS)
"""What is known of a CPU by its name, beside its features: attributes of a target that are true or false."""


@dataclass(frozen=True)
class Rates:
    """What one core does in a second, in units of 10^9, where two ways of computing the same are compared."""

    arithmetic: int  # operations of contractions; multiply-adds count twice
    near: int  # bytes that were just written, read again from the first levels of cache
    memory: int  # bytes that come from memory


@dataclass(frozen=True)
class CpuTarget:
    """A CPU to generate code for.

    `cpu` and `features` are what LLVM gets; `required` is what the artefact checks (`+avx2,+fma,…`).
    """

    triple: str
    cpu: str
    features: str
    required: str
    halves: bool = False
    """Does a core compute on its widest vectors in two halves, so that vectors of half the width take half the time?"""
    fast_bf16: bool = False
    """Does the instruction that sums products of pairs of bf16 pay, where there is one?"""
    claims: bool = False
    """Do stores gain where the lines of the cache that they write to were fetched before?"""
    fractions: bool = False
    """Does the instruction that takes fractions cost no more than the one that rounds, where there are both?"""
    subnormals: bool = False
    """Does arithmetic take no longer for subnormal numbers than for others?"""
    widens_beside: bool = False
    """Do units that multiply-adds leave free make f32 of f16?"""
    distant: bool = False
    """Do two rows gain from fetching the panel of a weight that comes next?"""

    @property
    def vector_bits(self) -> int:
        """The width of a vector register."""
        names = set(self.required.split(","))
        return 512 if "+avx512f" in names else 256 if "+avx" in names else 128

    @property
    def vector_registers(self) -> int:
        """How many vector registers there are."""
        return 32 if self.vector_bits == 512 else 16

    @property
    def rates(self) -> Rates:
        """Of a core at some 3.5 GHz that multiplies and adds two vectors of 256 bits a cycle, as on Zen 4. What
        does more at a time does so with what it reads as well: ratios matter, and those are alike.
        """
        return Rates(100, 200, 30) if self.vector_bits > 128 else Rates(50, 100, 30)

    @property
    def fused(self) -> bool:
        """Is there an instruction that multiplies and adds with one rounding?"""
        return self.triple.startswith("aarch64") or "+fma" in self.required.split(",")

    @property
    def widens_f16(self) -> bool:
        """Is there an instruction that makes f32 of f16?"""
        return self.triple.startswith("aarch64") or not {"+f16c", "+avx512f"}.isdisjoint(self.required.split(","))

    @property
    def bf16_dot(self) -> bool:
        """Is there an instruction that sums products of pairs of bf16 (`vdpbf16ps`), and faster than multiply-adds?"""
        return self.fast_bf16 and "+avx512bf16" in self.required.split(",")

    @property
    def bf16_tiles(self) -> bool:
        """Are there matrix tiles that multiply bf16 (`tdpbf16ps`)?"""
        return "+amx-bf16" in self.features.split(",")

    @property
    def int8_tiles(self) -> bool:
        """Are there matrix tiles that multiply 8-bit integers (`tdpbusd`)?"""
        return "+amx-int8" in self.features.split(",")

    @property
    def int8_dot(self) -> bool:
        """Is there an instruction that sums products of quads of 8-bit integers (`vpdpbusd`)?"""
        names = self.required.split(",")
        return "+avx512vnni" in names or "+avxvnni" in names and self.vector_bits == 256

    @property
    def int16_dot(self) -> bool:
        """Is there an instruction for whole vectors that sums products of pairs of 16-bit integers (`vpmaddwd`)?"""
        wanted = {512: "+avx512bw", 256: "+avx2", 128: "+sse2"}[self.vector_bits]
        return wanted in self.required.split(",")


def beyond_level(cpu: str, required: str) -> list[str]:
    """What code with the features `required` needs that not every CPU of the level `cpu` has: `x86-64-v4` may stand for
    a Zen 4. Nothing for a CPU that is no level.
    """
    level, names = NAMED.get(cpu, ("", ()))
    return [name for name in required.replace("+", "").split(",") if name not in names] if level == cpu else []


def known_names() -> list[str]:
    """What `resolve` accepts."""
    return ["native", *NAMED]


def resolve(cpu: str, host: dict[str, object]) -> CpuTarget:
    """The target `cpu` names; `host` is what `mlc._native.host_info` says of this machine.

    Raises ValueError for an unknown name.
    """
    triple = str(host["triple"])
    if cpu == "native":
        features = [str(f) for f in host["features"] if f[1:] in _CODE]  # type: ignore[attr-defined]
        required = [f for f in features if f[0] == "+"]
        name = _core_name(str(host["cpu"]), features)
        return _target(triple, cpu=name, features=features, required=required, name=name)
    if cpu not in NAMED:
        raise ValueError(f"unknown CPU '{cpu}'; known are {', '.join(known_names())}")
    level, names = NAMED[cpu]
    listed = [f"+{name}" for name in names]
    return _target(triple, cpu=level, features=listed, required=listed, name=cpu)


def _core_name(cpu: str, features: Sequence[str]) -> str:
    """The name of the cores of a CPU that says it is `cpu`, by its `features` (`+avx512f`, `-amx-tile`, ...)."""
    return "sapphirerapids" if cpu in _BEFORE_TILES and not _SINCE_TILES.isdisjoint(features) else cpu


def _target(triple: str, *, cpu: str, features: Sequence[str], required: Sequence[str], name: str) -> CpuTarget:
    """The target with what is known of the CPU `name`."""
    traits = {trait: name in names for trait, names in _TRAITS.items()}
    return CpuTarget(triple, cpu, ",".join(features), ",".join(required), **traits)
