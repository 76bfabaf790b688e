"""Every covariance against dense matrices: products, moves, conditioning, sampling."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.covariances.reference import alike, close, dense

from credo.covariances import (
    Covariance,
    DenseCovariance,
    Diagonal,
    DiagonalCovariance,
    Full,
    LowRank,
    LowRankCovariance,
    RootCovariance,
)

P = 5
RNG = np.random.default_rng(7)
ROOT = RNG.normal(size=(P, P)) / 2 + np.eye(P)
ROWS = RNG.normal(size=(3, P))
COVARIANCES = {
    "root": RootCovariance(jnp.asarray(ROOT)),
    "dense": DenseCovariance(jnp.asarray(ROOT @ ROOT.T)),
    "precision": DiagonalCovariance(jnp.asarray(RNG.uniform(0.2, 2.0, P)), "precision"),
    "covariance": DiagonalCovariance(jnp.asarray(RNG.uniform(0.2, 2.0, P)), "covariance"),
    "low-rank": LowRankCovariance(
        jnp.asarray(RNG.uniform(0.5, 2.0, P)), jnp.asarray(RNG.normal(size=(2, P)))
    ),
    "fresh": LowRank(2).init(jnp.asarray(RNG.uniform(0.5, 2.0, P))),
}
EXACT = ["root", "dense"]


@pytest.fixture(params=list(COVARIANCES))
def cov(request: pytest.FixtureRequest) -> Covariance:
    return COVARIANCES[request.param]


def test_products_diagonal_determinant_and_matrix_are_those_of_the_dense_form(cov: Covariance) -> None:
    @jax.jit
    def answers(cov: Covariance, rows: jax.Array) -> tuple[Any, ...]:
        cross, inner = cov.couple(rows)
        some = (cross.dense(), inner, cov.mv(rows), cov.mv(rows[0]), cov.push(rows))
        return *some, cov.diag(), cov.sd, cov.logdet(), cov.dense()

    matrix = dense(cov)
    crossed, pushed, variances = ROWS @ matrix, ROWS @ matrix @ ROWS.T, np.diag(matrix)
    log_det = np.linalg.slogdet(matrix)[1]
    expected = (crossed, pushed, crossed, crossed[0], pushed, variances, np.sqrt(variances), log_det, matrix)
    for got, want in zip(answers(cov, jnp.asarray(ROWS)), expected, strict=True):
        close(got, want)
    assert cov.size == P


def test_pushed_covariances_are_symmetric_and_positive_semi_definite(cov: Covariance) -> None:
    many = np.random.default_rng(0).normal(size=(9, P))
    pushed = np.asarray(cov.push(jnp.asarray(many)))
    np.testing.assert_allclose(pushed, pushed.T, atol=1e-13)
    assert np.linalg.eigvalsh(pushed).min() > -1e-12


@pytest.mark.parametrize("scale", [0.7, 0.0, np.linspace(0.1, 1.2, P)], ids=["number", "zero", "vector"])
@pytest.mark.parametrize("noise", [0.3, np.linspace(0.1, 2.0, P)], ids=["number", "vector"])
def test_affine_is_exact_in_every_family(cov: Covariance, scale: Any, noise: Any) -> None:
    a, d = np.broadcast_to(scale, P), np.broadcast_to(noise, P)
    moved = jax.jit(lambda c, a, d: c.affine(a, d))(cov, jnp.asarray(scale), jnp.asarray(noise))
    close(dense(moved), np.diag(a) @ dense(cov) @ np.diag(a) + np.diag(d))
    assert type(moved) is type(cov)


def test_scaling_and_adding_a_diagonal_precision_are_exact_in_every_family(cov: Covariance) -> None:
    close(dense(cov.scale(jnp.asarray(1.7))), 1.7 * dense(cov))
    added = np.linspace(0.0, 2.0, P)
    close(
        dense(cov.add_precision(jnp.asarray(added))),
        np.linalg.inv(np.linalg.inv(dense(cov)) + np.diag(added)),
    )


def test_mixing_two_covariances_is_exact_where_the_family_can_hold_it() -> None:
    for name, cov in COVARIANCES.items():
        other = cov.scale(jnp.asarray(0.5)).add_precision(jnp.linspace(0.1, 1.0, P))
        want = 0.6**2 * dense(cov) + 0.3 * (dense(other) if name in EXACT else np.diag(np.diag(dense(other))))
        close(dense(cov.mix(jnp.asarray(0.6), other, jnp.asarray(0.3))), want)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_condition_keeps_what_the_family_keeps(k: int) -> None:
    factor = np.random.default_rng(k).normal(size=(k, P))
    for name, cov in COVARIANCES.items():
        exact = np.linalg.inv(dense(cov)) + factor.T @ factor
        got = jax.jit(lambda c, b: c.condition(b))(cov, jnp.asarray(factor))
        if name in EXACT:
            close(dense(got), np.linalg.inv(exact))
        elif name == "covariance":
            close(dense(got), np.diag(np.diag(np.linalg.inv(exact))))
        else:
            close(np.diag(np.linalg.inv(dense(got))), np.diag(exact))
        assert alike(got, cov)


def test_linear_keeps_what_the_family_keeps() -> None:
    rng = np.random.default_rng(3)
    transition, half = rng.normal(size=(P, P)), rng.normal(size=(P, 2))
    noise = half @ half.T + 0.1 * np.eye(P)
    for name, cov in COVARIANCES.items():
        exact = transition @ dense(cov) @ transition.T + noise
        move = jax.jit(lambda c, f, q: c.linear(f, q))
        got = dense(move(cov, jnp.asarray(transition), jnp.asarray(noise)))
        if name in EXACT:
            close(got, exact)
        elif name in ("precision", "covariance"):
            close(np.diag(got), np.diag(exact))
        else:
            close(np.diag(np.linalg.inv(got)), np.diag(np.linalg.inv(exact)))


@pytest.mark.parametrize("family", [Full(), Full("dense"), Diagonal(), Diagonal("covariance"), LowRank(P)])
def test_families_start_diagonal_and_hold_a_dense_covariance_as_well_as_they_can(family: object) -> None:
    var = np.linspace(0.5, 2.0, P)
    close(dense(family.init(jnp.asarray(var))), np.diag(var))  # type: ignore[attr-defined]
    matrix = ROOT @ ROOT.T
    got = dense(family.from_dense(jnp.asarray(matrix)))  # type: ignore[attr-defined]
    if family == Diagonal():
        close(got, np.diag(1 / np.diag(np.linalg.inv(matrix))))
    elif family == Diagonal("covariance"):
        close(got, np.diag(np.diag(matrix)))
    else:
        close(got, matrix)


def test_sample_covariances_agree_within_monte_carlo_error(cov: Covariance) -> None:
    n = 40_000
    draws = np.asarray(jax.jit(lambda c: c.sample(jax.random.key(0), (n,)))(cov))
    matrix = dense(cov)
    assert draws.shape == (n, P)
    standard_error = np.sqrt((matrix**2 + np.outer(np.diag(matrix), np.diag(matrix))) / n)
    assert np.all(np.abs(draws.T @ draws / n - matrix) < 4.5 * standard_error)
    assert np.all(np.abs(draws.mean(0)) < 4.5 * np.sqrt(np.diag(matrix) / n))
    for shape in [(), (2, 3)]:
        assert jax.eval_shape(lambda c, s=shape: c.sample(jax.random.key(0), s), cov).shape == (*shape, P)


@pytest.mark.parametrize("name", list(COVARIANCES))
def test_every_method_keeps_single_precision(name: str) -> None:
    cov = jax.tree.map(lambda v: v.astype(jnp.float32), COVARIANCES[name])
    rows = jnp.asarray(ROWS, jnp.float32)

    def everything(cov: Covariance, rows: jax.Array) -> list[Any]:
        eye = jnp.eye(P, dtype=jnp.float32)
        moved = [
            cov.affine(jnp.asarray(0.5), jnp.asarray(0.5)),
            cov.scale(jnp.asarray(2.0)),
            cov.linear(eye, eye),
        ]
        told = [cov.condition(rows), cov.add_precision(rows[0] ** 2), cov.couple(rows)]
        return [moved, told, cov.sample(jax.random.key(0), (2,)), cov.logdet(), cov.diag(), cov.dense()]

    made = jax.eval_shape(everything, cov, rows)  # dtypes need no compilation
    assert {leaf.dtype for leaf in jax.tree.leaves(made)} == {jnp.dtype(jnp.float32)}
