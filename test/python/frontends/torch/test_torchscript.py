"""TorchScript models compiled and compared with PyTorch, a family of operators at a time, then whole modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc

# (A submodule: pytest makes an empty module of this folder's name.)
pytest.importorskip("torch.nn", reason="PyTorch is an optional dependency: pip install torch==2.13.0")
import torch

F = torch.nn.functional


def ramp(*shape: int) -> Any:
    """A tensor of evenly spaced numbers from −1 to 1; made before tracing, so that it is a constant of the model."""
    return torch.linspace(-1, 1, int(np.prod(shape))).view(shape)


SLOPES, FILTER, DEPTHWISE, LINE, BACK = ramp(6), ramp(4, 6, 3, 3), ramp(6, 1, 3, 3), ramp(2, 6, 2), ramp(6, 2, 3, 3)


TIMES = torch.tensor([2, 0, 1, 3, 1])
ROWS, COLUMNS = torch.tensor([2, 0, 3]), torch.tensor([1, 4, 0])

PLACES, BAGS = torch.arange(24).view(4, 6) * 5 % 7 % 4, torch.tensor([0, 5, 5, 9, 24])
EXPERTS, GROUPS = ramp(2, 8, 8), torch.tensor([1, 3], dtype=torch.int32)


def put(x: Any, places: Any, values: Any) -> Any:
    """A copy of `x` with `values` at `places`."""
    y = x.clone()
    y[places] = values
    return y


class Functions(torch.nn.Module):
    """A module that returns the results of several functions of its input."""

    def __init__(self, functions: Sequence[Callable[[Any], Any]]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, x: Any) -> Any:
        return tuple(function(x) for function in self.functions)


def compile_traced(module: Any, example: Any, shape: Sequence[int | str], path: Path) -> mlc.Model:
    """Trace `module`, save it and compile the file."""
    with torch.no_grad():
        torch.jit.trace(module.eval(), example, check_trace=False).save(str(path / "model.pt"))
    dtype = str(example.dtype).removeprefix("torch.")
    name = "x"
    return mlc.compile(path / "model.pt", output=path / "model.so", inputs={name: list(shape)}, dtypes={name: dtype})


def same(got: Sequence[np.ndarray], want: Sequence[Any], tolerance: float = 2e-5) -> None:
    """Compare results with PyTorch's: shape, dtype, values."""
    assert len(got) == len(want)
    for number, (g, w) in enumerate(zip(got, want, strict=True)):
        expected = w.detach().numpy()
        assert g.shape == expected.shape, f"output {number}"
        assert g.dtype == expected.dtype, f"output {number}"
        np.testing.assert_allclose(g, expected, rtol=tolerance, atol=tolerance, err_msg=f"output {number}")


FAMILIES: dict[str, tuple[tuple[int, ...], list[Callable[[Any], Any]]]] = {
    "elementwise": (
        (4, 6),
        [
            lambda x: x * 2 + 1 - x / 3,
            lambda x: 2 - x,
            lambda x: torch.add(x, x, alpha=0.5),
            lambda x: x.exp() + x.abs().sqrt() + torch.rsqrt(x.abs() + 1),
            lambda x: torch.sin(x) * torch.erf(x) + torch.tanh(x),
            lambda x: torch.where(x > 0, x, -x),
            lambda x: x.masked_fill(x < 0, 3.0),
            lambda x: x.clamp(-0.5, 0.5) + x.clamp_min(0.1),
            lambda x: (x > 0) & (x < 1),
            lambda x: x.to(torch.int64),
            lambda x: (x * 10).long() // 3,
            lambda x: (x * 10).int() % 7,
            lambda x: x.pow(2) + torch.pow(2.0, x),
            lambda x: torch.div(x, 0.3, rounding_mode="floor"),
            lambda x: torch.addcmul(x, x, x, value=0.5),
        ],
    ),
    "activations": (
        (4, 6),
        [
            F.relu, F.silu, F.gelu, F.softplus, F.elu, F.leaky_relu, F.hardtanh, F.hardsigmoid, F.hardswish, F.mish,
            F.relu6, F.selu, F.softsign, lambda x: F.gelu(x, approximate="tanh"), lambda x: F.celu(x, 0.7),
            lambda x: F.hardshrink(x, 0.3), lambda x: F.softshrink(x, 0.3), lambda x: F.threshold(x, 0.2, 0.1),
            lambda x: F.prelu(x, SLOPES), torch.sigmoid,
        ],
    ),
    "reduction": (
        (3, 5, 7),
        [
            lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.mean((0, 2), keepdim=True), lambda x: x.amax(-1),
            lambda x: x.max(1)[0], lambda x: x.max(1)[1], lambda x: x.argmax(), lambda x: x.argmin(2, keepdim=True),
            lambda x: x.cumsum(1), lambda x: x.var(2), lambda x: x.std(0, unbiased=False), lambda x: (x > 0).any(1),
            lambda x: (x > -5).all(), lambda x: x.prod(2), lambda x: torch.logsumexp(x, 1), lambda x: x.norm(dim=2),
            lambda x: (x > 0).sum(),
        ],
    ),
    "shape": (
        (3, 4, 6),
        [
            lambda x: x.view(3, -1), lambda x: x.reshape(-1, 2, 12), lambda x: x.permute(2, 0, 1), lambda x: x.flatten(1),
            lambda x: x.transpose(0, 2), lambda x: x.unsqueeze(1).squeeze(1), lambda x: torch.cat([x, x * 2], 1),
            lambda x: torch.stack([x, x], -1), lambda x: x[:, 1:3, ::2], lambda x: x[-1], lambda x: x.chunk(2, 1)[1],
            lambda x: x.split([1, 3], 1)[1], lambda x: x.unbind(0)[2], lambda x: x[:, :1].expand(3, 4, 6),
            lambda x: x.repeat(2, 1, 3), lambda x: x.flip(1), lambda x: F.pad(x, (1, 2)), lambda x: x.roll(1, 2),
            lambda x: F.pad(x, (2, 1), mode="reflect"), lambda x: torch.zeros_like(x) + torch.ones(6),
            lambda x: x + torch.arange(6), lambda x: x.narrow(1, 1, 2), lambda x: torch.full((2, 3), 4.0) + x[0, 0, 0],
            lambda x: x.repeat_interleave(2, 1), lambda x: x.size(0) * x,
        ],
    ),
    "indexing": (
        (5, 6),
        [
            lambda x: x.index_select(0, torch.tensor([0, 3, -1 + 5])), lambda x: x.gather(1, (x > 0).long()),
            lambda x: x[torch.tensor([1, -1])], lambda x: F.embedding((x > 0).long(), torch.arange(12.0).view(4, 3)),
            lambda x: x.topk(3, 1)[0], lambda x: x.topk(2, 0, largest=False)[1], lambda x: x.sort(1, descending=True)[0],
            lambda x: x.argsort(0), lambda x: x.tril(1), lambda x: x.triu(), torch.nonzero,
            lambda x: x.scatter(0, torch.zeros(1, 6, dtype=torch.long), 9.0), lambda x: x.masked_select(x > 0),
            lambda x: F.one_hot((x > 0).long(), 3),
        ],
    ),
    "advanced indexing": (
        (4, 5, 6),
        [
            lambda x: x[ROWS, COLUMNS], lambda x: x[:, ROWS, COLUMNS], lambda x: x[ROWS, :, COLUMNS],
            lambda x: x[ROWS[:, None], COLUMNS], lambda x: x[ROWS[:, None, None], COLUMNS[:, None], ROWS],
            lambda x: x[:, COLUMNS[None]], lambda x: x[x > 0], lambda x: x[(x > 0).any(-1)],
            lambda x: x[:, (x > 0.8)[0, :, 0]], lambda x: x[..., -ROWS - 1], lambda x: x[[0, -1], 1:, [1, 2]],
            lambda x: x[(x[:, :, 0] > 0)] * 2, lambda x: torch.where(x > 0.5)[1],
        ],
    ),
    "writes by index": (
        (4, 5, 6),
        [
            lambda x: x.index_put((ROWS, COLUMNS), x[0, :3]), lambda x: x.index_put((x > 0,), torch.tensor(7.0)),
            lambda x: x.index_put((ROWS, COLUMNS), torch.tensor(1.0), accumulate=True),
            lambda x: x.clone().index_put_((ROWS[:1], COLUMNS[:, None]), x[1, 1]),
            lambda x: x.index_add(1, ROWS, x[:, :3], alpha=2), lambda x: x.index_fill(2, ROWS, -1.0),
            lambda x: x.index_copy(0, ROWS[:2], x[2:]), lambda x: x.masked_scatter(x > 0, torch.arange(120.0)),
            lambda x: put(x, (slice(None), ROWS, COLUMNS), x[:, :3, 0]), lambda x: put(x, (ROWS, slice(1, 3), COLUMNS), 5.0),
            lambda x: put(x, x > 0, x[x > 0] * 3), lambda x: put(x, (slice(None), 0), x[:, 1]),
            lambda x: put(x, (slice(None), (x > 0)[0, :, 0]), 2), lambda x: put(x, (Ellipsis, COLUMNS), x[..., :3]),
        ],
    ),
    "scatter": (
        (4, 6),
        [
            lambda x: x.scatter(1, PLACES, x * 2), lambda x: x.scatter(1, PLACES[:2, :3], 2.0),
            lambda x: x.scatter(1, PLACES, x * 2, reduce="add"), lambda x: x.scatter(0, PLACES, 3.0, reduce="multiply"),
            lambda x: x.scatter_add(1, PLACES[:2, :3], x), lambda x: x.scatter_reduce(1, PLACES, x * 3, "sum"),
            lambda x: x.scatter_reduce(1, PLACES, x * 3, "prod"), lambda x: x.scatter_reduce(1, PLACES, x * 3, "amax"),
            lambda x: x.scatter_reduce(1, PLACES, x + 2, "amin", include_self=False),
            lambda x: x.scatter_reduce(1, PLACES, x, "mean"),
            lambda x: x.scatter_reduce(1, PLACES[:2, :3], x, "mean", include_self=False),
            lambda x: (x * 9).long().scatter_reduce(1, PLACES, (x * 7).long(), "mean"),
            lambda x: torch.select_scatter(x, x[:, 0], 1, -2), lambda x: torch.slice_scatter(x, x[:, :2], 1, 2, 6, 2),
            lambda x: F.embedding_bag(PLACES, x, mode="mean"), lambda x: F.embedding_bag(PLACES, x, mode="max", padding_idx=1),
            lambda x: F.embedding_bag(PLACES.flatten(), x, BAGS, mode="sum", include_last_offset=True),
            lambda x: F.embedding_bag(PLACES.flatten(), x, BAGS, mode="max"),
            lambda x: F.embedding_bag(PLACES, x, mode="sum", per_sample_weights=x),
            lambda x: torch.histc(x, 5, -1, 1), lambda x: torch.histc(PLACES.to(x.dtype) + 0 * x, 4, 0, 3),
        ],
    ),
    "distances": (
        (3, 4, 6),
        [
            lambda x: torch.cov(x[0]) + torch.corrcoef(x[1]), lambda x: torch.cov(x[0].mT, correction=0),
            lambda x: torch.stack([torch.cov(x[0, 0]), torch.corrcoef(x[0, 1])]),
            lambda x: torch.cdist(x, x[:, :2] + 1), lambda x: torch.cdist(x[0], x[1], p=1.0), lambda x: torch.dist(x, x * 2, 3),
            lambda x: F.pairwise_distance(x, x * 2), lambda x: torch.cross(x[..., :3], x[..., 3:], dim=2),
            lambda x: torch.linalg.cross(x[..., :3], x[:1, :, 3:]), lambda x: torch.trace(x[0]),
            lambda x: torch.kthvalue(x, 2, 1)[0], lambda x: torch.nansum(x / (x > 0), 1), lambda x: torch.nanmean(x / (x > 0), 1),
            lambda x: torch.linalg.vector_norm(x.relu(), 0, 1), lambda x: torch.erfc(x), lambda x: torch.rad2deg(x) + torch.deg2rad(x),
            lambda x: torch.fmax(x / (x > 0), x), lambda x: torch.isclose(x, x + 1e-7), lambda x: torch.sgn(x),
            lambda x: torch.isclose(x / (x > 0), x / (x > 0), equal_nan=True), lambda x: torch.tril_indices(4, 5, 1) + x.size(0),
            lambda x: F.unfold(x[None], (2, 3), padding=(1, 0), stride=(1, 2), dilation=(2, 1)),
            lambda x: F.fold(F.unfold(x, 2, padding=1), (4, 6), 2, padding=1),
            lambda x: F.adaptive_max_pool2d(x.round(), (3, 4), return_indices=True)[1], lambda x: F.adaptive_max_pool2d(x, (3, 4)),
            lambda x: F.adaptive_max_pool3d(x[None], (2, 3, 5)), lambda x: F.adaptive_avg_pool2d(x[..., :5], (4, 2)),
            lambda x: (x * 5).long() * 1.5, lambda x: (x * 5).long() + 0.5, lambda x: (x * 5).int() / 1.5 - 2.5,
            lambda x: torch.ops.aten._grouped_mm(x.view(9, 8).bfloat16(), EXPERTS.bfloat16(), offs=GROUPS).float()[:3],
        ],
    ),
    "special": (
        (4, 6),
        [
            lambda x: torch.isfinite(x / (x > 0)), lambda x: torch.nan_to_num(x / (x > 0).float(), neginf=-5.0),
            lambda x: torch.log10(x.abs()), lambda x: torch.frac(x * 5), torch.sinc, F.logsigmoid, F.glu,
            lambda x: torch.lerp(x, x * 2, 0.3), lambda x: torch.logaddexp(x, -x), lambda x: torch.hypot(x, x + 1),
            lambda x: (x * 100).int() << 2, lambda x: (x * 100).long() >> torch.tensor([0, 1, 2, 3, 40, 70]),
            lambda x: torch.isin((x * 3).long(), torch.tensor([1, -1])), lambda x: torch.bucketize(x, SLOPES),
            lambda x: torch.searchsorted(SLOPES, x, right=True), lambda x: torch.diff(x, dim=0),
            lambda x: torch.diff(x, n=2, prepend=x[:, :1]), lambda x: torch.meshgrid(x[0], x[1], indexing="xy")[0],
            lambda x: torch.cat([x, (x > 0).long(), (x > 1)], 1), lambda x: torch.stack([x[0].long(), x[1] > 0]),
            lambda x: x.tensor_split(4, 1)[1], lambda x: x.tensor_split((1, -2), 1)[1], lambda x: x.unfold(1, 3, 2),
            lambda x: x.diagonal(1), lambda x: x.diagonal(-2), lambda x: torch.diag(x[0], 1), torch.diag,
            lambda x: x[None].movedim(0, -1), lambda x: torch.hstack([x, x]) + torch.vstack([x[0], x[1]])[0].repeat(2),
            lambda x: torch.linspace(0, 1, 6) + x, lambda x: torch.eye(4, 6) * x, lambda x: x.view_as(x.t()).mT,
            lambda x: torch.arange(x.size(0), 0, -1), lambda x: torch.arange(0, 1, 0.3), lambda x: x.new_empty(2).fill_(3),
            lambda x: torch._weight_norm(x, x[:, :1].abs(), 0), lambda x: torch.broadcast_tensors(x, x[:1])[1],
        ],
    ),
    "images": (
        (2, 4, 6, 5),
        [
            lambda x: F.interpolate(x, scale_factor=2), lambda x: F.interpolate(x, (4, 9)),
            lambda x: F.interpolate(x, (9, 4), mode="bilinear"), lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"),
            lambda x: F.interpolate(x, (9, 3), mode="bilinear", align_corners=True), lambda x: F.interpolate(x, (1, 1), mode="bilinear"),
            lambda x: F.interpolate(x, scale_factor=(1.5, 2.5), mode="bicubic"), lambda x: F.interpolate(x, (7, 7), mode="nearest-exact"),
            lambda x: F.interpolate(x[0], 9, mode="linear"), lambda x: F.interpolate(x[None], (8, 3, 4), mode="trilinear"),
            lambda x: F.interpolate(x, (3, 2), mode="bilinear", antialias=True),
            lambda x: F.interpolate(x, (3, 8), mode="bicubic", antialias=True), lambda x: F.pixel_shuffle(x, 2),
            lambda x: F.pixel_unshuffle(x[:, :, :, :4], 2), lambda x: F.channel_shuffle(x, 2),
            lambda x: F.grid_sample(x, x[:, :2, :, :2], align_corners=False),
            lambda x: F.grid_sample(x, x[:, :2, :, :2] * 2, mode="bicubic", padding_mode="reflection", align_corners=True),
            lambda x: F.affine_grid(x[:, 0, :2, :3], (2, 1, 3, 4), align_corners=False),
        ],
    ),
    "beside the usual": (
        (5, 7),
        [
            lambda x: (x * 10).long().clamp(0.5, 2.5), lambda x: torch.repeat_interleave(x, TIMES, 0), lambda x: x.roll(3),
            lambda x: torch.repeat_interleave(x, 2, 0, output_size=10),
            lambda x: torch.repeat_interleave(x, 2), lambda x: torch.roll(x, (1, -9), (0, 1)), lambda x: F.max_pool1d(x, 2),
            lambda x: F.max_pool2d(x[None], 2), lambda x: F.avg_pool2d(x[None], 2, 1, ceil_mode=True),
            lambda x: F.adaptive_avg_pool2d(x[None, None], (3, None)), lambda x: F.adaptive_avg_pool1d(x[None], 3),
            lambda x: torch.norm(x, 3), lambda x: torch.linalg.norm(x, float("inf"), dim=1), torch.linalg.norm,
            lambda x: F.normalize(x, dim=-1), lambda x: F.cosine_similarity(x, x[:1] * 2 + 1, dim=1),
            lambda x: torch.tensordot(x, x, dims=([0], [0])), lambda x: torch.std_mean(x, 1)[0],
            lambda x: torch.count_nonzero(x > 0, 1), lambda x: torch.aminmax(x, dim=1)[1], lambda x: torch.max(x, (x > 0).long()),
            lambda x: torch.take_along_dim(x, x.argsort(1), 1), lambda x: torch.take(x, TIMES), lambda x: torch.logit(x, 0.1),
            lambda x: F.scaled_dot_product_attention(x, x, x), lambda x: torch.arange(x.size(0), x.size(0) + x.size(1)),
            lambda x: torch.full((2,), x.size(0)), lambda x: x.masked_fill(x > 0, x.size(0)),
            lambda x: F.max_pool2d(x[None, None].repeat(2, 3, 1, 1), 2, return_indices=True)[1],
            lambda x: F.adaptive_max_pool2d(x[None, :4, :6].repeat(3, 1, 1), (2, 3), return_indices=True)[1],
        ],
    ),
    "linalg": (
        (4, 6),
        [
            lambda x: x @ x.t(), lambda x: F.linear(x, torch.ones(3, 6), torch.arange(3.0)),
            lambda x: torch.addmm(torch.ones(4), x, x.t(), alpha=0.5, beta=2), lambda x: torch.bmm(x[None], x.t()[None]),
            lambda x: torch.einsum("ij,kj->ik", x, x), lambda x: torch.outer(x[0], x[1]), lambda x: torch.outer(x[0].double(), x[1]), lambda x: torch.mv(x, x[0]),
        ],
    ),
    "normalization": (
        (2, 6, 5, 5),
        [
            lambda x: F.softmax(x, 1), lambda x: F.log_softmax(x, -1), lambda x: F.layer_norm(x, (5, 5)),
            lambda x: F.group_norm(x, 3), lambda x: F.instance_norm(x), lambda x: F.rms_norm(x, (5,)),
            lambda x: F.batch_norm(x, torch.arange(6.0), torch.arange(6.0) + 1),
        ],
    ),
    "conv and pool": (
        (2, 6, 9, 9),
        [
            lambda x: F.conv2d(x, FILTER, torch.ones(4), 2, 1),
            lambda x: F.conv2d(x, DEPTHWISE, padding="same", groups=6),
            lambda x: F.conv1d(x[:, :, 0], LINE),
            lambda x: F.conv_transpose2d(x, BACK, stride=2),
            lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 3, 2, 1), lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True),
            lambda x: F.adaptive_avg_pool2d(x, 1), lambda x: F.adaptive_avg_pool2d(x, 3),
        ],
    ),
    "attention": (
        (2, 3, 5, 8),
        [
            lambda x: F.scaled_dot_product_attention(x, x, x),
            lambda x: F.scaled_dot_product_attention(x, x * 2, x, is_causal=True),
            lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(5, 5).tril().bool(), scale=0.3),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_operators(tmp_path: Path, family: str) -> None:
    shape, functions = FAMILIES[family]
    module = Functions(functions)
    torch.manual_seed(3)
    model = compile_traced(module, torch.randn(shape), shape, tmp_path)
    x = torch.randn(shape)
    same(model(x.numpy()), module(x))


class Encoder(torch.nn.Module):
    """A transformer block with an embedding, as tracing records it: shapes read from tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 32)
        self.attention = torch.nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm = torch.nn.LayerNorm(32)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32))

    def forward(self, ids: Any) -> Any:
        x = self.embedding(ids)
        b, s, d = x.size(0), x.size(1), x.size(2)
        q = x.view(b, s, 4, d // 4).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, q, q).transpose(1, 2).reshape(b, s, d)
        x = self.norm(x + y)
        return self.norm(x + self.mlp(x)).mean(1)


def test_one_artefact_serves_every_batch_and_length(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Encoder().eval()
    with torch.no_grad():
        torch.jit.trace(module, torch.randint(0, 50, (2, 7))).save(str(tmp_path / "m.pt"))
        model = mlc.compile(
            tmp_path / "m.pt", output=tmp_path / "m.so", inputs={"ids": ["batch", "seq"]}, dtypes={"ids": "int64"}
        )
        for batch, seq in ((1, 1), (2, 7), (3, 33)):
            ids = torch.randint(0, 50, (batch, seq))
            same(model(ids.numpy()), [module(ids)])


def test_convolutional_network(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 16, 3, padding=1, groups=16), torch.nn.Conv2d(16, 24, 1), torch.nn.Hardswish(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(24, 5),
    )  # fmt: skip
    with torch.no_grad():
        module[1].running_mean.uniform_(-1, 1)
        module[1].running_var.uniform_(0.5, 2)
    with torch.no_grad():
        torch.jit.trace(module.eval(), torch.randn(2, 3, 16, 16)).save(str(tmp_path / "m.pt"))
        model = mlc.compile(tmp_path / "m.pt", output=tmp_path / "m.so", inputs={"input": ["n", 3, 16, 16]})
        for n in (1, 5):
            x = torch.randn(n, 3, 16, 16)
            same(model(x.numpy()), [module(x)])


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(tmp_path: Path, kind: str) -> None:
    class Tagger(torch.nn.Module):
        """Two layers in both directions, then one with a given state and without biases."""

        def __init__(self) -> None:
            super().__init__()
            layer = getattr(torch.nn, kind)
            self.first = layer(6, 8, 2, bidirectional=True, batch_first=True)
            self.second = layer(16, 5, bias=False)

        def forward(self, x: Any) -> Any:
            y, _ = self.first(x)
            start = y[:1, :, :5].contiguous() * 0.5
            z, end = self.second(y, (start, start + 1) if kind == "LSTM" else start)
            return y, z, *(end if kind == "LSTM" else [end])

    torch.manual_seed(0)
    model = compile_traced(Tagger(), torch.randn(2, 7, 6), ["batch", "seq", 6], tmp_path)
    tagger = torch.jit.load(str(tmp_path / "model.pt"))
    for batch, seq in ((2, 7), (1, 3)):
        x = torch.randn(batch, seq, 6)
        with torch.no_grad():
            same(model(x.numpy()), tagger(x))


def test_positions_and_turns_of_any_size(tmp_path: Path) -> None:
    functions = [
        lambda x: torch.roll(x, (1, -9), (0, 1)), lambda x: x.roll(3), lambda x: torch.arange(x.size(0), 2 * x.size(1)),
        lambda x: torch.repeat_interleave(x, (x[:, 0] > 0).long() * 2, 0), lambda x: (x * 9).long().clamp(max=x.size(1) - 1),
        lambda x: F.max_pool2d(x[None, None].repeat(2, 3, 1, 1), 2, return_indices=True)[1],
    ]  # fmt: skip
    module = Functions(functions)
    model = compile_traced(module, torch.randn(5, 7), ["rows", "columns"], tmp_path)
    for rows, columns in ((5, 7), (3, 4)):
        x = torch.randn(rows, columns)
        same(model(x.numpy()), module(x))


def test_images_of_any_size(tmp_path: Path) -> None:
    functions = [
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        lambda x: F.interpolate(x[:, :, 1:], size=x.shape[2:], mode="bicubic"),
        lambda x: F.interpolate(x, size=(x.size(2) // 2, x.size(3) + 3)),
        lambda x: x[torch.arange(x.size(0))[:, None], :, torch.arange(x.size(2))],
    ]
    module = Functions(functions)
    model = compile_traced(module, torch.randn(1, 2, 6, 8), [1, 2, "height", "width"], tmp_path)
    for height, width in ((6, 8), (5, 3)):
        x = torch.randn(1, 2, height, width)
        same(model(x.numpy()), torch.jit.load(str(tmp_path / "model.pt"))(x))


class Sizes(torch.nn.Module):
    """Numbers that are made of extents, as tensors and as sizes."""

    def forward(self, x: Any) -> Any:
        rows, columns = x.shape
        scaled = x * rows + x / columns - x.size(1) ** -0.5
        half = x[: int(rows / 2)]
        mean = x.sum() / (rows * columns) + x.new_tensor(1.5)
        return scaled, half, mean, torch.where(x > 0, x, float(3)) * (columns / 4), torch.full_like(x, 2.0) + columns


def test_numbers_made_of_extents(tmp_path: Path) -> None:
    model = compile_traced(Sizes(), torch.randn(5, 4), ["rows", "columns"], tmp_path)
    for rows, columns in ((5, 4), (1, 3), (8, 1)):
        x = torch.randn(rows, columns)
        same(model(x.numpy()), torch.jit.load(str(tmp_path / "model.pt"))(x))


class Decides(torch.nn.Module):
    """Branches on what the run finds, loops, lists and numbers of a script."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        if x.sum() > 0:
            y = x * 2
            if not bool(x.max() > 1):
                y = y[:, 1:]
        else:
            y = x - 1
        total = torch.zeros_like(x)
        parts: list[torch.Tensor] = []
        for i in range(3):
            total = total + x * i
            total[0] = 7.0
            parts.append(total)
        mean = float(x.mean()) * min(x.size(0), x.size(1), 4)
        return {"chosen": y, "first": parts[0], "last": parts[2], "moved": x + mean}


class Repeats(torch.nn.Module):
    """Loops as often as the input says."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(x.size(0)):
            x = x * 2
        return x


def test_decisions_of_a_script(tmp_path: Path) -> None:
    torch.jit.script(Decides()).save(str(tmp_path / "m.pt"))
    model = mlc.compile(tmp_path / "m.pt", output=tmp_path / "m.so", inputs={"x": ["rows", "columns"]})
    for x in (torch.rand(3, 4) * 0.5, torch.rand(2, 5) + 0.5, -torch.rand(4, 2)):
        want = Decides()(x)
        assert [info.name for info in model.outputs] == list(want)
        same(model(x.numpy()), list(want.values()))


class Many(torch.nn.Module):
    """A module whose inputs have no names of their own; the trace names them after parameters of what is called."""

    def forward(self, *inputs: Any) -> Any:
        return F.triplet_margin_with_distance_loss(*inputs, distance_function=torch.nn.PairwiseDistance())


def test_inputs_of_one_name_are_numbered(tmp_path: Path) -> None:
    torch.manual_seed(2)
    inputs = [torch.randn(4, 5) for _ in range(3)]
    with torch.no_grad():
        script = torch.jit.trace(Many(), tuple(inputs), check_trace=False)
    shapes = {name: ["n", 5] for name in ("x1", "x2", "x2_2")}
    model = mlc.compile(script, output=tmp_path / "model.so", inputs=shapes)
    got = model(*(x.numpy() for x in inputs))[0]
    np.testing.assert_allclose(got, Many()(*inputs).numpy(), rtol=1e-5, atol=1e-6)


def test_numbers_of_dtypes(tmp_path: Path) -> None:
    """A file has dtypes as numbers, those of complex numbers too, which operators without an importer get as well."""

    class Converted(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            pairs = torch.view_as_real(torch.flipud(x.to(torch.complex64) * 2))
            return pairs, torch.nansum(x, 1, dtype=torch.float64), torch.nanquantile(x.sum(1, dtype=torch.float64), 0.3)

    model = compile_traced(Converted(), torch.randn(3, 5), ["n", 5], tmp_path)
    x = torch.randn(4, 5)
    for value, expected in zip(model(x.numpy()), Converted()(x), strict=True):
        assert value.dtype == expected.numpy().dtype
        np.testing.assert_allclose(value, expected.numpy(), rtol=1e-6, atol=1e-6)


def test_a_loop_of_unknown_length(tmp_path: Path) -> None:
    from mlc.frontends.report import ModelError

    torch.jit.script(Repeats()).save(str(tmp_path / "m.pt"))
    with pytest.raises(ModelError, match=r"Loop.*how often it is repeated is known at run time only"):
        mlc.compile(tmp_path / "m.pt", inputs={"x": ["rows"]})
    model = mlc.compile(tmp_path / "m.pt", output=tmp_path / "m.so", inputs={"x": [3]})
    same(model(np.ones(3, np.float32)), [torch.full((3,), 8.0)])


class Unknown(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.special.airy_ai(x) + torch.special.bessel_y0(x)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    from mlc.frontends.report import ModelError

    torch.jit.trace(Unknown(), torch.randn(2)).save(str(tmp_path / "m.pt"))
    with pytest.raises(ModelError) as error:
        mlc.compile(tmp_path / "m.pt", inputs={"x": [2]})
    assert "airy_ai" in str(error.value)
    assert "bessel_y0" in str(error.value)
    with pytest.raises(ModelError, match=r"--input x=SHAPE:DTYPE"):
        mlc.compile(tmp_path / "m.pt")
    with pytest.raises(ModelError, match='no input "y"'):
        mlc.compile(tmp_path / "m.pt", inputs={"x": [2], "y": [1]})


def test_an_argument_that_no_importer_reads() -> None:
    """It is refused by its name, unless it is what it is by default: without it the numbers would be others."""
    from mlc.frontends.report import NodeError
    from mlc.frontends.torch.registry import Call
    from mlc.frontends.torch.schema import Schema

    schema = Schema.of(torch.ops.aten.linalg_vector_norm.default._schema)
    assert schema.names == ["self", "ord", "dim", "keepdim", "dtype"]
    for keepdim, dtype, refused in ((False, "float64", "'dtype' is float64"), (True, None, "'keepdim' is True")):
        call = Call(None, "aten::linalg_vector_norm", [None, 2, [0], keepdim, dtype], schema.names)  # type: ignore[arg-type]
        assert call[:3] == [None, 2, [0]]
        with pytest.raises(NodeError, match=refused):
            schema.check_read(call)
    call = Call(None, "aten::linalg_vector_norm", [None, 2, [0], False, None], schema.names)  # type: ignore[arg-type]
    assert call[:3] == [None, 2, [0]]
    schema.check_read(call)


def test_what_is_read_of_other_arguments_is_read() -> None:
    """An importer that is given others, as for scalars and inputs without a batch, hides nothing that it leaves out."""
    from mlc.frontends.torch.registry import Call, called

    call = Call(None, "aten::roll", ["x", 1, 2], ["self", "shifts", "dims"])  # type: ignore[arg-type]
    assert called(call, lambda inner: inner[1], ["y", *call.given()[1:]]) == 1
    assert call.unread() == [0, 2]


def test_a_file_that_is_no_torchscript(tmp_path: Path) -> None:
    from mlc.frontends.report import ModelError

    torch.save(torch.nn.Linear(2, 2).state_dict(), tmp_path / "weights.pt")
    with pytest.raises(ModelError, match=r"pickle of torch\.save.*torch\.export\.export"):
        mlc.compile(tmp_path / "weights.pt", inputs={"x": [2]})
    torch.jit.trace(torch.nn.ReLU(), torch.ones(2)).save(str(tmp_path / "relu.pt"))
    with pytest.raises(ModelError, match='input "input": there is no dtype "float"'):
        mlc.compile(tmp_path / "relu.pt", inputs={"input": [2]}, dtypes={"input": "float"})
    (tmp_path / "m.pt").write_bytes(b"not a zip file")
    with pytest.raises(ModelError, match="no TorchScript file"):
        mlc.compile(tmp_path / "m.pt", inputs={"x": [2]})
