"""Gamma, error and Bessel functions and their relatives."""

from __future__ import annotations

from mlc.frontends.common import real, special
from mlc.frontends.common.builder import Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call, aten

_OTHER_NAMES = {
    "special_gammaln": "lgamma", "special_psi": "digamma", "special_modified_bessel_i0": "i0",
    "special_modified_bessel_i1": "i1",
}  # fmt: skip
_FUNCTIONS = {name: name for name in special.NAMES} | {f"special_{name}": name for name in special.NAMES} | _OTHER_NAMES


@aten(*_FUNCTIONS)
def special_function(call: Call) -> Tensor:
    """Functions of one element. Source: PyTorch documentation, "torch.special"."""
    return special.unary(call.b, _FUNCTIONS[call.op.removeprefix("aten::").removesuffix("_")], call.tensor(0))


@aten("polygamma", "special_polygamma")
def polygamma(call: Call) -> Tensor:
    """Derivatives of the digamma function, of an order known at import. In place, the order is the second argument."""
    place = call.names.index("n") if "n" in call.names else 0
    order, x = call.int(place), call.tensor(1 - place)
    if order < 0:
        raise NodeError(f"a derivative of order {order}", "the order must be 0 or more")
    if order == 0:
        return special.unary(call.b, "digamma", x)
    return real.apply(call.b, special.polygamma(order), x)
