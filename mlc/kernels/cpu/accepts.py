"""The CPU templates' answers to the fusion planner, by the kind of the kernel's root."""

from __future__ import annotations

from mlc.kernels.common.fusion import Accepts, accepts_pointwise, accepts_rows, refuses_all
from mlc.kernels.cpu import attention_fusion, contraction_fusion

ACCEPTS: dict[str, Accepts] = {
    "attention": attention_fusion.accepts,
    "contraction": contraction_fusion.accepts,
    "rows": accepts_rows,
    "reduction": accepts_pointwise,
    "elementwise": accepts_pointwise,
    "opaque": refuses_all,
}
