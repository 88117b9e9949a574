"""Releases of ptxas that are known to turn right PTX into wrong code, of the kind that this compiler writes.

`refused` ones are not used. Others stay in use where what they get wrong has been looked for in our kernels on a GPU,
or needs instructions that only chips have on which nothing of ours has run: `mlc-doctor` names them.
"""

from __future__ import annotations

from dataclasses import dataclass

Version = tuple[int, int, int]
"""As in "release 13.0, V13.0.88"."""


@dataclass(frozen=True)
class Fault:
    """What is wrong in the releases from `first` on, up to `fixed` (not included; None: no release is known to be
    right), for chips with one of the prefixes `architectures`; `source` says who has found out."""

    first: Version
    fixed: Version | None
    architectures: tuple[str, ...]
    what: str
    source: str
    refused: bool

    def has(self, version: Version) -> bool:
        """Is a release one of these?"""
        return self.first <= version and (self.fixed is None or version < self.fixed)


_ALL, _HOPPER, _BLACKWELL = ("sm_",), ("sm_90",), ("sm_100",)
FAULTS = (
    Fault((0, 0, 0), (11, 1, 0), _ALL, "wrong results and invalid addresses in compiled tensor programs",
          "https://github.com/google/flax/issues/2249 (a warning of XLA's)", refused=True),
    Fault((11, 3, 0), (11, 7, 0), _ALL, "parts of values are zero in code of LLVM's NVPTX back end",
          "https://github.com/llvm/llvm-project/issues/54633", refused=True),
    Fault((12, 0, 0), (12, 6, 85), _HOPPER, "NVIDIA's bug 4826023, fixed in CUDA 12.6.3",
          "https://github.com/openxla/xla/pull/19927", refused=True),
    Fault((12, 0, 0), (12, 4, 131), _ALL, "a logical operation loses its predicate (NVIDIA's bug 4474599)",
          "https://github.com/triton-lang/triton/issues/2941", refused=True),
    Fault((12, 3, 0), (12, 3, 107), _ALL, "12.3.1 is refused by XLA",
          "https://github.com/openxla/xla/pull/7344", refused=True),
    Fault((12, 8, 0), (13, 0, 0), _HOPPER, "wrong sums where wgmma has operands in registers, as in attention",
          "https://github.com/fla-org/flash-linear-attention/pull/1262 and https://github.com/triton-lang/triton/pull/11781",
          refused=True),
    Fault((13, 0, 0), (13, 3, 0), _HOPPER, "registers that wgmma still reads may be written again, as in attention: "
          "with 13.0.88 every check of ours on an H200 was right, and 13.3 has no such fault",
          "https://github.com/triton-lang/triton/issues/9433", refused=False),
    Fault((13, 0, 0), (13, 1, 81), _BLACKWELL, "illegal instructions in products of pairs of f32",
          "https://github.com/glfs-book/glfs/issues/360", refused=False),
    Fault((12, 8, 0), None, _BLACKWELL, "the larger of an absolute integer and another number",
          "https://github.com/pytorch/pytorch/issues/190973", refused=False),
)  # fmt: skip


def faults_of(version: Version, *, refused: bool) -> list[Fault]:
    """What is known to be wrong in a release: for which it is refused, or not."""
    return [fault for fault in FAULTS if fault.refused == refused and fault.has(version)]
