"""Linear algebra: products, factorizations, and what they solve, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc

pytest.importorskip("torch.nn", reason="PyTorch is an optional dependency: pip install torch==2.13.0")
import torch
from models.functions import Wrapped, results_of
from torch.export import Dim, export

F, L, aten = torch.nn.functional, torch.linalg, torch.ops.aten
Function = Callable[[Any, Any, Any], Any]

# Of any matrices a of [..., n, n], positive definite ones s of [..., n, n], and b of [..., n, 3]. Sizes may be dynamic.
SOLVED: dict[str, Function] = {
    "det": lambda a, s, b: L.det(a),
    "slogdet": lambda a, s, b: L.slogdet(a)[0] * L.slogdet(a)[1],
    "logdet": lambda a, s, b: torch.logdet(a),
    "inv": lambda a, s, b: L.inv(a),
    "inverse": lambda a, s, b: torch.inverse(s),
    "inverse and info": lambda a, s, b: torch.cat([x.flatten() for x in L.inv_ex(a)]),
    "solve": lambda a, s, b: L.solve(a, b),
    "solve for a vector": lambda a, s, b: L.solve(a, b[..., 0]),
    "solve on the right": lambda a, s, b: L.solve(a, b.mT, left=False),
    "solve one matrix for many": lambda a, s, b: L.solve(a[0, 0], b),
    "cholesky": lambda a, s, b: L.cholesky(s),
    "cholesky, upper": lambda a, s, b: torch.cholesky(s, upper=True),
    "cholesky, half of the matrix": lambda a, s, b: L.cholesky(s.tril() + a.triu(1)),
    "solve with the Cholesky factor": lambda a, s, b: torch.cholesky_solve(b, L.cholesky(s)),
    "invert with the Cholesky factor": lambda a, s, b: torch.cholesky_inverse(L.cholesky(s).mT, upper=True),
    "solve, upper triangle": lambda a, s, b: L.solve_triangular(s, b, upper=True),
    "solve, lower triangle on the right": lambda a, s, b: L.solve_triangular(s, b.mT, upper=False, left=False),
    "solve, triangle of ones": lambda a, s, b: L.solve_triangular(a / 4, b, upper=False, unitriangular=True),
    "triangular_solve": lambda a, s, b: torch.triangular_solve(b, s, upper=False, transpose=True)[0],
    "lu_solve": lambda a, s, b: L.lu_solve(*L.lu_factor(a), b),
    "lu_solve, on the right": lambda a, s, b: L.lu_solve(*L.lu_factor(a), b.mT, left=False),
    "lu_solve, transposed": lambda a, s, b: L.lu_solve(*L.lu_factor(a), b, adjoint=True),
    "matrix power": lambda a, s, b: L.matrix_power(a, -2),
    "matrix exponential": lambda a, s, b: L.matrix_exp(a),
    "eigenvalues": lambda a, s, b: L.eigvalsh(a),
    "singular values": lambda a, s, b: L.svdvals(a),
    "pseudo-inverse": lambda a, s, b: L.pinv(a, rtol=1e-6),
    "least squares": lambda a, s, b: L.pinv(b[..., :2]) @ b,
}

# The same, of fixed sizes: the factors themselves.
FACTORS: dict[str, Function] = {
    "lu_factor": lambda a, s, b: L.lu_factor_ex(a),
    "lu_factor, wide": lambda a, s, b: L.lu_factor_ex(b.mT),
    "lu": lambda a, s, b: L.lu(b),
    "lu_unpack": lambda a, s, b: torch.lu_unpack(*L.lu_factor(b)),
    "qr": lambda a, s, b: L.qr(b),
    "qr, wide": lambda a, s, b: L.qr(b.mT),
    "qr, complete": lambda a, s, b: torch.qr(b, some=False),
    "qr, r": lambda a, s, b: L.qr(a, mode="r")[1],
    "qr, zeros": lambda a, s, b: L.qr(torch.zeros_like(a) + torch.eye(4, dtype=a.dtype)),
    "qr, large elements": lambda a, s, b: L.qr(a * 1e30)[0],
    "reflections": lambda a, s, b: torch.geqrf(b),
    "product of reflections": lambda a, s, b: L.householder_product(*torch.geqrf(b)),
    "ormqr": lambda a, s, b: torch.ormqr(*torch.geqrf(b[0]), a[0], left=False, transpose=True),
    "rank": lambda a, s, b: L.matrix_rank(b @ b.mT),
    "condition": lambda a, s, b: L.cond(s),
    "norms": lambda a, s, b: (L.matrix_norm(a, 2), L.matrix_norm(b, "nuc"), L.matrix_norm(a, -2)),
    "pinv of symmetric ones": lambda a, s, b: L.pinv(b @ b.mT, hermitian=True, rtol=1e-3),
    "pinv with a bound each": lambda a, s, b: L.pinv(s, atol=s.new_tensor([0.5, 2, 5])),
    "tensorinv": lambda a, s, b: L.tensorinv(a[0, 0].reshape(4, 2, 2), ind=1),
}

# And products of them.
PRODUCTS: dict[str, Function] = {
    "addbmm": lambda a, s, b: torch.addbmm(b[0, 0], a[0], b[0], beta=0.5, alpha=2),
    "bilinear": lambda a, s, b: F.bilinear(a, s, a[0], s[0, 0, 0, :3]),
    "bilinear, decomposed": lambda a, s, b: aten._trilinear(a[0, 0], a[0], s[0, 0], [1, 3], [0], [1, 2], [2, 3]),
    "pdist": lambda a, s, b: F.pdist(a[0, 0]),
    "pdist, absolute values": lambda a, s, b: F.pdist(a[0, 0], p=1.0),
    "tensordot": lambda a, s, b: torch.tensordot(a, b, dims=([0, 2], [0, 2])),
    "tensordot with copies": lambda a, s, b: torch.tensordot(a[:, :1], b, dims=([0, 1, 3], [0, 1, 2])),
    "tensordot of all": lambda a, s, b: torch.tensordot(a, s[:1], dims=4),
}

# What is unique up to signs, and what PyTorch has on GPUs only: each of these is 0.
RECONSTRUCTED: dict[str, Function] = {
    "eigh": lambda a, s, b: _eigen(*L.eigh(a), a.tril() + a.tril(-1).mT),
    "eigh, upper half": lambda a, s, b: _eigen(*L.eigh(a, UPLO="U"), a.triu() + a.triu(1).mT),
    "eigh, equal values": lambda a, s, b: _eigen(*L.eigh(x := _alternating(a)), x),
    "eigh, zeros": lambda a, s, b: _eigen(*L.eigh(a * 0), a * 0),
    "lu without pivots": lambda a, s, b: (torch.matmul(*L.lu(s, pivot=False)[1:]) - s).abs().amax(),
    "svd": lambda a, s, b: _singular(*L.svd(b, full_matrices=False), b),
    "svd, wide": lambda a, s, b: _singular(*L.svd(b.mT, full_matrices=False), b.mT),
    "svd, full": lambda a, s, b: _singular(*L.svd(b, full_matrices=True), b),
    "svd, full and wide": lambda a, s, b: _singular(*L.svd(b.mT, full_matrices=True), b.mT),
    "svd, deficient": lambda a, s, b: _singular(*L.svd(b @ b.mT), b @ b.mT),
    "svd, large elements": lambda a, s, b: _singular(*L.svd(a * 1e30), a * 1e30) / 1e30,
}


def _alternating(a: Any) -> Any:
    """Symmetric matrices with the eigenvalues 1 and -1, twice each."""
    return torch.eye(4, dtype=a.dtype).flip(0) + a * 0


def _eigen(values: Any, vectors: Any, x: Any) -> Any:
    n = vectors.shape[-1]
    again = (vectors * values[..., None, :]) @ vectors.mT - x
    return again.abs().amax() + (vectors.mT @ vectors - torch.eye(n, dtype=x.dtype)).abs().amax()


def _singular(u: Any, values: Any, vh: Any, x: Any) -> Any:
    k = values.shape[-1]
    again = (u[..., :k] * values[..., None, :]) @ vh[..., :k, :] - x
    drift = [(m.mT @ m - torch.eye(m.shape[-1], dtype=x.dtype)).abs().amax() for m in (u, vh.mT)]
    return again.abs().amax() + sum(drift) * x.abs().amax()


def _inputs(*lead: int, n: int = 4, dtype: Any = torch.float32) -> tuple[Any, Any, Any]:
    torch.manual_seed(7)
    a = torch.randn(*lead, n, n, dtype=dtype)
    return a, a @ a.mT + torch.eye(n, dtype=dtype), torch.randn(*lead, n, 3, dtype=dtype)


def _flat(results: Any) -> list[Any]:
    return list(torch.utils._pytree.tree_leaves(results))


@pytest.mark.parametrize("table", [FACTORS, PRODUCTS], ids=["factors", "products"])
def test_values(tmp_path: Path, table: dict[str, Function]) -> None:
    """Batches of matrices of fixed sizes."""
    inputs = _inputs(2, 3)
    functions = {name: lambda a, s, b, f=f: tuple(_flat(f(a, s, b))) for name, f in table.items()}
    program = export(results_of(functions.values()), inputs)
    want = program.module()(*inputs)
    got = iter(mlc.compile(program, output=tmp_path / "model.so")(*inputs))
    for name, expected in zip(table, want, strict=True):
        for part in expected:
            value = next(got)
            assert str(part.dtype) == f"torch.{value.dtype}", name
            np.testing.assert_allclose(value, part, rtol=1e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed", "dynamic"])
def test_solutions(tmp_path: Path, dynamic: bool) -> None:
    """Equations, determinants and inverses: of float32, and of float64 and sizes that the run tells."""
    dtype = torch.float64 if dynamic else torch.float32
    table = dict(list(SOLVED.items())[: None if dynamic else 14])  # the usual ones, as the sizes matter little
    inputs = _inputs(2, 3, dtype=dtype)
    batch, n = Dim("batch", min=1, max=64), Dim("n", min=3, max=64)
    shapes = ({0: batch, 2: n, 3: n}, {0: batch, 2: n, 3: n}, {0: batch, 2: n}) if dynamic else None
    program = export(results_of(table.values()), inputs, dynamic_shapes=(shapes,) if dynamic else None)
    model = mlc.compile(program, output=tmp_path / "model.so")
    for given in [inputs, *([_inputs(3, 3, n=9, dtype=dtype)] if dynamic else [])]:
        want = program.module()(*given)
        for name, value, expected in zip(table, model(*given), want, strict=True):
            close = {"rtol": 1e-9, "atol": 1e-10} if dynamic else {"rtol": 2e-4, "atol": 5e-5}
            np.testing.assert_allclose(value, expected, err_msg=name, **close)


def test_distances(tmp_path: Path) -> None:
    """Of the pairs of a number of rows that the run tells."""
    program = export(Wrapped(lambda x: F.pdist(x, p=3.0)), (torch.randn(4, 3),), dynamic_shapes=(({0: Dim.AUTO},),))
    model = mlc.compile(program, output=tmp_path / "model.so")
    for count in (3, 9):
        x = torch.randn(count, 3)
        [distances] = model(x)
        np.testing.assert_allclose(distances, F.pdist(x, p=3.0), rtol=1e-5)


def test_reconstructed(tmp_path: Path) -> None:
    """Eigenvectors and singular vectors are orthonormal, and give the matrix again."""
    inputs = _inputs(2, 3)
    model = mlc.compile(export(results_of(RECONSTRUCTED.values()), inputs), output=tmp_path / "model.so")
    for name, value in zip(RECONSTRUCTED, model(*inputs), strict=True):
        assert float(value) < 2e-5, name


def test_many_columns(tmp_path: Path) -> None:
    """Jacobi's rotations of 49 columns, which are an odd number, lose no digits."""
    a = _inputs(n=49)[0]
    functions = [lambda a: L.svdvals(a), lambda a: L.eigvalsh(a), lambda a: _singular(*L.svd(a), a)]
    model = mlc.compile(export(results_of(functions), (a,)), output=tmp_path / "model.so")
    values, eigenvalues, drift = model(a)
    np.testing.assert_allclose(values, L.svdvals(a.double()), rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(eigenvalues, L.eigvalsh(a.double()), rtol=2e-5, atol=2e-5)
    assert float(drift) < 1e-4


def test_singular(tmp_path: Path) -> None:
    """What singular matrices have: no sign, the place of the pivot that is 0, logarithms of 0 and of less."""
    a = torch.tensor([[[1.0, 2], [2, 4]], [[0, 1], [1, 0]], [[0, 0], [0, 0]]])
    functions: list[Callable[[Any], Any]] = [
        lambda a: L.det(a), lambda a: L.slogdet(a)[0], lambda a: L.slogdet(a)[1], lambda a: torch.logdet(a),
        lambda a: L.inv_ex(a)[1], lambda a: L.lu_factor_ex(a)[0], lambda a: L.lu_factor_ex(a)[1],
        lambda a: L.cholesky_ex(a)[1], lambda a: L.matrix_rank(a), lambda a: L.pinv(a), lambda a: L.svdvals(a),
    ]  # fmt: skip
    program = export(results_of(functions), (a,))
    got = mlc.compile(program, output=tmp_path / "model.so")(a)
    for number, (value, expected) in enumerate(zip(got, program.module()(a), strict=True)):
        np.testing.assert_allclose(value, expected, atol=1e-6, err_msg=str(number))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: L.inv(a), "a matrix that is inverted is singular"),
        (lambda a: L.cholesky(a), "not positive definite"),
    ],
    ids=["inv", "cholesky"],
)
def test_refused(tmp_path: Path, function: Callable[[Any], Any], message: str) -> None:
    """A run ends with an error where PyTorch raises one."""
    good, bad = 2 * torch.eye(3)[None], torch.tensor([[[1.0, 0, 0], [0, 0, 0], [0, 0, 1]]])
    model = mlc.compile(export(Wrapped(function), (good,)), output=tmp_path / "model.so")
    [result] = model(good)
    np.testing.assert_allclose(result, function(good), rtol=1e-6)
    with pytest.raises(Exception, match=message):
        model(bad)


def test_empty(tmp_path: Path) -> None:
    """Matrices without elements, and batches without matrices."""
    functions: list[Callable[[Any, Any], Any]] = [
        lambda x, y: L.det(x), lambda x, y: L.inv(x), lambda x, y: L.qr(y)[1], lambda x, y: L.svdvals(y),
        lambda x, y: L.det(y), lambda x, y: L.pinv(y), lambda x, y: L.cholesky(x), lambda x, y: L.eigvalsh(y),
    ]  # fmt: skip
    inputs = torch.zeros(2, 0, 0), torch.zeros(0, 3, 3)
    program = export(results_of([*functions, lambda x, y: x.sum() + y.sum()]), inputs)
    got = mlc.compile(program, output=tmp_path / "model.so")(*inputs)
    for value, expected in zip(got, program.module()(*inputs), strict=True):
        assert tuple(value.shape) == tuple(expected.shape)
        np.testing.assert_array_equal(value, expected)
