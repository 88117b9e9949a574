"""`torch.compile(…, backend="mlc")`: results are PyTorch's, what is a constant stays right, what cannot be compiled runs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch.nn", reason="PyTorch is an optional dependency: pip install torch==2.13.0")
import torch

from mlc import torch_backend

F = torch.nn.functional
STRICT = {"strict": True}


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    """Inference, and nothing that an earlier test has traced."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that are compiled."""
    programs: list[Any] = []
    compile_model = torch_backend.compile_model

    def counted(program: Any, **options: Any) -> Any:
        programs.append(program)
        return compile_model(program, **options)

    monkeypatch.setattr(torch_backend, "compile_model", counted)
    return programs


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """The function, or module, by the back end of that name; a graph that is left to PyTorch is an error."""
    return torch.compile(function, backend="mlc", options={**STRICT, **options})


def same(got: Any, want: Any) -> None:
    """Nested results are the same, tensors by shape, dtype and value."""
    torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-5, check_stride=False)


class Perceptron(torch.nn.Module):
    """Weights, an update in place, statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.norm.running_mean.uniform_(-1, 1)
        self.last = torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(F.relu(self.norm(self.first(x)), inplace=True))


def test_a_module_with_sizes_that_change_is_two_libraries(compilations: list[Any]) -> None:
    """One for the first size, one for any other, which is what dynamo asks for."""
    module = Perceptron().eval()
    fast = compiled(module)
    for rows in (3, 5, 7, 300):
        x = torch.randn(rows, 8)
        same(fast(x), module(x))
    assert len(compilations) == 2


def test_weights_that_change_are_taken_anew(compilations: list[Any]) -> None:
    module = Perceptron().eval()
    fast, x = compiled(module), torch.randn(3, 8)
    fast(x)
    module.first.weight.mul_(2)
    module.last.load_state_dict({name: value + 1 for name, value in module.last.state_dict().items()})
    same(fast(x), module(x))
    same(fast(x), module(x))
    assert len(compilations) == 2


def test_nothing_is_kept_of_weights_that_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[None] = []
    gc.collect()  # the libraries of other tests
    monkeypatch.setattr(torch_backend._Library, "__del__", lambda _: freed.append(None), raising=False)
    module, x = torch.nn.Linear(8, 4).eval(), torch.randn(3, 8)
    fast = compiled(module)
    for _ in range(3):
        same(fast(x), module(x))
        module.weight.mul_(2)
    gc.collect()
    assert len(freed) == 2


def test_weights_that_are_others_are_taken_anew() -> None:
    module, x = torch.nn.Linear(8, 4).eval(), torch.randn(3, 8)
    fast = compiled(module)
    fast(x)
    module.weight.data = torch.randn(4, 8)
    same(fast(x), module(x))
    module.weight = torch.nn.Parameter(torch.randn(4, 8))
    same(fast(x), module(x))


def test_weights_made_in_inference_mode() -> None:
    with torch.inference_mode():
        module, x = torch.nn.Linear(8, 4).eval(), torch.randn(3, 8)
        fast = compiled(module)
        same(fast(x), module(x))
        same(fast(x), module(x))


def test_numbers_that_are_no_sizes() -> None:
    def power(x: torch.Tensor, count: int, scale: float) -> torch.Tensor:
        return x.repeat(count, 1) * (scale + count)

    x, fast = torch.randn(3, 8), compiled(power)
    for count, scale in ((2, 0.5), (3, 0.25), (4, 1.75), (4, -2.5)):
        same(fast(x, count, scale), power(x, count, scale))


def test_sizes_that_only_seem_to_change(compilations: list[Any]) -> None:
    """Dynamo takes a second module's sizes for dynamic, and finds that its weights allow only one."""
    for module, shape in ((torch.nn.Linear(4, 4), (2, 4)), (torch.nn.Conv2d(3, 8, 3), (2, 3, 9, 9))):
        x = torch.randn(shape)
        same(compiled(module)(x), module(x))
    assert len(compilations) == 2


def test_modules_of_one_code_have_their_own_weights(compilations: list[Any]) -> None:
    layers = [torch.nn.Linear(8, 8).eval() for _ in range(3)]
    fast, x = compiled(lambda layer, x: F.gelu(layer(x))), torch.randn(3, 8)
    for layer in layers * 2:
        same(fast(layer, x), F.gelu(layer(x)))
    assert len(compilations) == 3


class Cache(torch.nn.Module):
    """Keys that are kept from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(4, 8))

    def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(0, place, x)
        return self.keys @ x.T


def test_buffers_that_a_module_changes(compilations: list[Any]) -> None:
    module, reference = Cache(), Cache()
    fast = compiled(module)
    for step in range(3):
        x, place = torch.randn(1, 8), torch.tensor([step])
        same(fast(x, place), reference(x, place))
    same(module.keys, reference.keys)
    assert len(compilations) == 1


def test_inputs_that_a_function_changes() -> None:
    def change(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        x.add_(1)
        return y + x

    fast, x, y = compiled(change), torch.arange(6.0).view(2, 3), torch.arange(6.0).view(2, 3)
    same(fast(x), change(y))
    same(x, y)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64, torch.bool])
def test_dtypes(dtype: torch.dtype) -> None:
    x = torch.randint(0, 2, (3, 5)).to(dtype)
    function = lambda x: (x, x.max(), torch.cat([x, x]))  # noqa: E731
    same(compiled(function)(x), function(x))


def test_results_of_any_form() -> None:
    def several(x: torch.Tensor, count: int, scale: float) -> dict[str, Any]:
        y = x.T * scale
        return {"y": [y, None, y], "sum": y.sum(), "count": count + x.shape[0], "first": (x[0], 3)}

    for rows, count in ((3, 2), (4, 2), (5, 7), (5, 9)):
        x = torch.randn(rows, 6)[:, ::2]
        same(compiled(several)(x, count, 0.5), several(x, count, 0.5))


@pytest.mark.parametrize(("norm_first", "masks"), [(True, "none"), (False, "queries"), (True, "keys"), (False, "both")])
def test_the_fused_layer_of_an_encoder(norm_first: bool, masks: str) -> None:
    """In evaluation PyTorch calls a layer by one operator, `_transformer_encoder_layer_fwd`."""
    kind = "gelu" if norm_first else "relu"
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=norm_first, activation=kind).eval()
    x, asked = torch.randn(2, 6, 16), {}
    if masks in ("queries", "both"):
        asked["src_mask"] = torch.ones(6, 6, dtype=torch.bool).triu(1)
    if masks in ("keys", "both"):
        asked["src_key_padding_mask"] = torch.arange(6) >= torch.tensor([[6], [4]])
    same(compiled(layer)(x, **asked), layer(x, **asked))


@pytest.mark.parametrize("asked", [{}, {"need_weights": False}, {"average_attn_weights": False}])
def test_fused_attention_with_its_weights(asked: dict[str, bool]) -> None:
    attention = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    x, padding = torch.randn(2, 6, 16), torch.arange(6) >= torch.tensor([[6], [4]])
    same(compiled(attention)(x, x, x, padding, **asked), attention(x, x, x, padding, **asked))


def test_options_choose_how_it_is_computed() -> None:
    linear, x = torch.nn.Linear(256, 64), torch.randn(16, 256)
    difference = (compiled(linear, precision="bf16", threads=1)(x) - linear(x)).abs().max()
    assert 1e-4 < difference < 2e-2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"options": {"precison": "bf16"}}, "no option 'precison' here; it has precision, winograd"),
        ({"options": {**STRICT, "precision": "fp4"}}, "fp4"),
        ({"mode": "max-autotune"}, "mode 'max-autotune' is for Inductor"),
    ],
)
def test_what_is_asked_for_and_does_not_exist_is_named(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=said):
        torch.compile(lambda x: x + 1, backend="mlc", **asked)(torch.zeros(3))


def test_what_cannot_be_compiled_runs_in_pytorch_with_the_reason() -> None:
    def values(x: torch.Tensor) -> torch.Tensor:
        return torch.special.airy_ai(x) + 1

    x = torch.randn(3, 3)
    with pytest.warns(UserWarning, match=r"leaves a graph of \d operations to PyTorch: .*airy_ai"):
        same(torch.compile(values, backend="mlc")(x), values(x))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="there is no importer for this operator"):
        compiled(values)(x)


def test_gradients_are_pytorchs() -> None:
    linear, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    with torch.enable_grad(), pytest.warns(UserWarning, match="gradients are wanted; call it under torch.no_grad"):
        torch.compile(linear, backend="mlc")(x).sum().backward()
    same(linear.weight.grad, x.sum(0).expand(4, 4))
