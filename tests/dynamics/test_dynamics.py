"""Dynamics against naive matrices, closed forms and the semigroup law, in every covariance family."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate as integrate
import scipy.linalg as sl

import credo
from credo.beliefs import Anchor
from credo.core.errors import CredoError
from credo.covariances import Covariance

P = 3
RNG = np.random.default_rng(5)
HALF = RNG.normal(size=(P, P))
MATRIX = HALF @ HALF.T + np.eye(P)
PRIOR = np.array([0.5, 1.0, 2.0])
MEAN, CENTRE = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.1, -0.4])
FAMILIES: dict[str, Any] = {
    "root": credo.Full(),
    "dense": credo.Full("dense"),
    "precision": credo.Diagonal(),
    "covariance": credo.Diagonal("covariance"),
    "low-rank": credo.LowRank(P),
}
DRIFT = np.array([[-0.5, 0.2, 0.0], [0.0, -0.3, 0.4], [0.1, 0.0, -0.2]])
DIFFUSION = np.array([[0.3, 0.1, 0.0], [0.1, 0.2, 0.0], [0.0, 0.0, 0.1]])
MOVING: dict[str, Any] = {
    "walk": credo.RandomWalk(0.3),
    "decay": credo.Decay(0.8, 0.2),
    "still": credo.Decay(1.0, 0.2),
    "ou": credo.OrnsteinUhlenbeck(0.7),
    "simple": credo.Inflation(0.2, "simple"),
    "hybrid": credo.Inflation(0.2, "hybrid"),
    "bayesian": credo.Inflation(0.2, "bayesian"),
    "sde": credo.LinearGaussian(
        jnp.asarray(DRIFT), jnp.asarray([0.1, 0.2, 0.3]), jnp.asarray(DIFFUSION), True
    ),
}
MOVE = jax.jit(lambda dynamics, mean, cov, anchor, t, dt: dynamics.move(mean, cov, anchor, t, dt))


def start(family: Any) -> tuple[Covariance, Anchor]:
    """A covariance, and a diagonal prior to return to."""
    return family.from_dense(jnp.asarray(MATRIX)), Anchor(
        jnp.asarray(CENTRE), family.init(jnp.asarray(PRIOR))
    )


def naive(name: str, mean: np.ndarray, cov: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """The closed form of every dynamics over dt, in dense matrices."""
    eye, prior = np.eye(P), np.diag(PRIOR)
    if name == "walk":
        return mean, cov + 0.3 * dt * eye
    if name == "decay":
        gamma = 0.8**dt
        return gamma * mean, gamma**2 * cov + 0.2 * (1 - gamma**2) / (1 - 0.64) * eye
    if name == "still":
        return mean, cov + 0.2 * dt * eye
    if name == "ou":
        gamma = 0.7**dt
        return CENTRE + gamma * (mean - CENTRE), gamma**2 * cov + (1 - gamma**2) * prior
    if name == "sde":
        step = sl.expm(DRIFT * dt)
        noise = integrate.quad_vec(lambda s: sl.expm(DRIFT * s) @ DIFFUSION @ sl.expm(DRIFT * s).T, 0, dt)[0]
        moved = integrate.quad_vec(lambda s: sl.expm(DRIFT * s) @ np.array([0.1, 0.2, 0.3]), 0, dt)[0]
        return step @ mean + moved, step @ cov @ step.T + noise
    growth = 1.2**dt
    old, base = np.linalg.inv(cov), np.linalg.inv(prior)
    if name == "simple":
        return mean, growth * cov
    new = np.linalg.inv((old + (growth - 1) * base) / growth)
    if name == "hybrid":
        return mean, new
    return new @ (old @ mean / growth + (1 - 1 / growth) * base @ CENTRE), new


@pytest.mark.table
@pytest.mark.parametrize("name", list(MOVING))
@pytest.mark.parametrize("dt", [None, 0.4, 2.5])
def test_a_step_is_the_closed_form_in_every_family(name: str, dt: float | None) -> None:
    for kind, family in FAMILIES.items():
        if name == "sde" and kind not in ("root", "precision"):
            continue  # one compilation of the matrix exponential takes seconds
        cov, anchor = start(family)
        got_mean, got = MOVE(MOVING[name], jnp.asarray(MEAN), cov, anchor, 0, dt)
        mean, want = naive(name, MEAN, np.asarray(cov.dense()), 1.0 if dt is None else dt)
        np.testing.assert_allclose(got_mean, mean, atol=1e-10)
        if name == "sde" and kind in ("precision", "covariance"):
            want = np.diag(np.diag(want))
        np.testing.assert_allclose(got.dense(), want, atol=1e-9 if name == "sde" else 1e-10)


@pytest.mark.table
@pytest.mark.parametrize("name", list(MOVING))
def test_two_half_steps_are_one_step(name: str) -> None:
    for kind, family in FAMILIES.items():
        if name == "sde" and kind != "low-rank":
            continue  # forgetting correlations half-way is not forgetting them at the end
        cov, anchor = start(family)
        one = MOVE(MOVING[name], jnp.asarray(MEAN), cov, anchor, 0, 1.4)
        half = MOVE(MOVING[name], jnp.asarray(MEAN), cov, anchor, 0, 0.7)
        two = MOVE(MOVING[name], *half, anchor, 1, 0.7)
        np.testing.assert_allclose(two[0], one[0], atol=1e-10)
        np.testing.assert_allclose(two[1].dense(), one[1].dense(), atol=1e-10)


@pytest.mark.slow
def test_discrete_linear_gaussian_steps_in_every_family() -> None:
    transition, offset = RNG.normal(size=(P, P)), np.array([0.1, 0.2, 0.3])
    for noise in (DIFFUSION, np.array([0.1, 0.2, 0.3]), np.asarray(0.4)):
        full = noise if noise.ndim == 2 else np.diag(np.broadcast_to(noise, P))
        dynamics = credo.LinearGaussian(jnp.asarray(transition), jnp.asarray(offset), jnp.asarray(noise))
        for kind, family in FAMILIES.items():
            cov, _ = start(family)
            mean, got = MOVE(dynamics, jnp.asarray(MEAN), cov, None, 0, None)
            want = transition @ np.asarray(cov.dense()) @ transition.T + full
            np.testing.assert_allclose(mean, transition @ MEAN + offset, atol=1e-12)
            if kind in ("precision", "covariance"):
                np.testing.assert_allclose(got.diag(), np.diag(want), atol=1e-10)
            else:
                np.testing.assert_allclose(got.dense(), want, rtol=1e-9, atol=1e-9)


def test_low_rank_linear_gaussian_keeps_the_diagonal_of_the_precision() -> None:
    transition = RNG.normal(size=(P, P))
    cov = credo.LowRank(1).init(jnp.asarray(PRIOR)).condition(jnp.ones((1, P)))
    dynamics = credo.LinearGaussian(jnp.asarray(transition), 0.0, jnp.asarray(DIFFUSION))
    _, got = MOVE(dynamics, jnp.asarray(MEAN), cov, None, 0, None)
    want = transition @ np.asarray(cov.dense()) @ transition.T + DIFFUSION
    np.testing.assert_allclose(np.diag(got.precision()), np.diag(np.linalg.inv(want)), atol=1e-10)


@pytest.mark.parametrize("form", ["root", "dense"])
def test_ornstein_uhlenbeck_has_even_a_dense_prior_as_its_fixed_point(form: Any) -> None:
    family = credo.Full(form)
    cov = family.from_dense(jnp.asarray(MATRIX))
    mean, got = MOVE(
        credo.OrnsteinUhlenbeck(0.7), jnp.asarray(MEAN), cov, Anchor(jnp.asarray(MEAN), cov), 0, 0.3
    )
    np.testing.assert_allclose(mean, MEAN, atol=1e-12)
    np.testing.assert_allclose(got.dense(), MATRIX, atol=1e-12)


@pytest.mark.slow
def test_noise_may_differ_by_parameter() -> None:
    q = jnp.asarray([0.1, 0.0, 0.5])
    for dynamics in (credo.RandomWalk(q), credo.Decay(1.0, q)):
        for family in FAMILIES.values():
            cov, _ = start(family)
            _, got = MOVE(dynamics, jnp.asarray(MEAN), cov, None, 0, 2.0)
            np.testing.assert_allclose(got.dense(), cov.dense() + np.diag(2 * q), atol=1e-10)


def test_shrink_and_perturb_draws_what_the_covariance_adds() -> None:
    dynamics = credo.ShrinkPerturb(0.9, 0.5, seed=3)
    cov, _ = start(credo.Full())
    steps = jnp.arange(20_000)
    means, moved = jax.jit(jax.vmap(lambda t: dynamics.move(jnp.asarray(MEAN), cov, None, t, 2.0)))(steps)
    added = 0.25 * (1 + 0.81)
    np.testing.assert_allclose(moved.root[0] @ moved.root[0].T, 0.9**4 * MATRIX + added * np.eye(P))
    assert np.all(np.abs(means.mean(0) - 0.81 * MEAN) < 4.5 * np.sqrt(added / len(steps)))
    assert np.all(np.abs(means.var(0) - added) < 4.5 * added * np.sqrt(2 / len(steps)))


@pytest.mark.parametrize("name", list(MOVING))
def test_the_mean_of_a_point_belief_moves_without_a_covariance(name: str) -> None:
    anchor = Anchor(jnp.asarray(CENTRE), None)
    mean, cov = MOVE(MOVING[name], jnp.asarray(MEAN), None, anchor, 0, 1.0)
    assert cov is None
    if name == "bayesian":
        np.testing.assert_allclose(mean, MEAN + (1 - 1 / 1.2) * (CENTRE - MEAN), atol=1e-12)
    else:
        np.testing.assert_allclose(mean, naive(name, MEAN, MATRIX, 1.0)[0], atol=1e-12)


WRONG: Any = "bayes"


def test_static_returns_the_very_same_arrays() -> None:
    cov, _ = start(credo.Full())
    mean = jnp.asarray(MEAN)
    assert credo.Static().move(mean, cov, None, jnp.asarray(0), 3.0) == (mean, cov)


def test_extreme_factors_stand_still_or_reset() -> None:
    cov, anchor = start(credo.Full())
    mean, got = MOVE(credo.OrnsteinUhlenbeck(0.0), jnp.asarray(MEAN), cov, anchor, 0, None)
    np.testing.assert_allclose(mean, CENTRE, atol=1e-12)
    np.testing.assert_allclose(got.dense(), np.diag(PRIOR), atol=1e-12)
    for dynamics in (
        credo.OrnsteinUhlenbeck(1.0),
        credo.Decay(1.0, 0.0),
        credo.RandomWalk(0.0),
        credo.Inflation(0.0),
    ):
        mean, got = MOVE(dynamics, jnp.asarray(MEAN), cov, anchor, 0, 0.7)
        np.testing.assert_allclose(mean, MEAN, atol=1e-12)
        np.testing.assert_allclose(got.dense(), MATRIX, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: credo.RandomWalk(-1e-4), "var must be finite and at least 0; got -0.0001"),
        (lambda: credo.Decay(1.2), r"forgetting must be in \[0, 1\]; got 1\.2"),
        (lambda: credo.OrnsteinUhlenbeck(-0.1), r"forgetting must be in \[0, 1\]; got -0\.1"),
        (lambda: credo.Inflation(-1.0), "rate must be finite and at least 0"),
        (lambda: credo.Inflation(0.1, WRONG), "kind must be one of simple, hybrid, bayesian; got 'bayes'"),
        (lambda: credo.ShrinkPerturb(1.1), r"shrink must be in \[0, 1\]"),
        (lambda: credo.ShrinkPerturb(0.9, -1.0), "sd must be finite and at least 0"),
        (lambda: credo.LinearGaussian(jnp.ones((2, 3))), r"transition must be a square matrix \(P, P\)"),
        (
            lambda: credo.LinearGaussian(jnp.eye(2)).move(jnp.zeros(3), None, None, jnp.asarray(0), None),
            r"transition must be \(P, P\) = \(3, 3\); got shape \(2, 2\)",
        ),
        (
            lambda: credo.LinearGaussian(jnp.eye(2)).move(jnp.zeros(2), None, None, jnp.asarray(0), 0.5),
            r"dt needs LinearGaussian\(\.\.\., continuous=True\)",
        ),
    ],
)
def test_impossible_dynamics_are_refused(make: Any, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        make()


@pytest.mark.parametrize("inner", [credo.RandomWalk(0.3), credo.Inflation(0.2, "simple")])
def test_a_bound_keeps_variances_within_the_prior_and_correlations_as_they_are(inner: Any) -> None:
    for family in FAMILIES.values():
        cov, anchor = start(family)
        mean, moved = MOVE(inner, jnp.asarray(MEAN), cov, None, 0, 1.4)
        shrink = np.sqrt(np.minimum(1.0, PRIOR / np.asarray(moved.diag())))
        got_mean, got = MOVE(credo.PriorBound(inner), jnp.asarray(MEAN), cov, anchor, 0, 1.4)
        np.testing.assert_array_equal(got_mean, mean)
        np.testing.assert_allclose(
            got.dense(), shrink[:, None] * np.asarray(moved.dense()) * shrink, atol=1e-10
        )
        half = MOVE(credo.PriorBound(inner), jnp.asarray(MEAN), cov, anchor, 0, 0.7)
        two = MOVE(credo.PriorBound(inner), *half, anchor, 1, 0.7)[1]
        np.testing.assert_allclose(two.diag(), got.diag(), atol=1e-10)
        if isinstance(inner, credo.Inflation):
            np.testing.assert_allclose(two.dense(), got.dense(), atol=1e-10)


def test_a_bound_around_dynamics_that_are_not_affine_shrinks_what_these_give() -> None:
    inner = credo.Inflation(0.2, "simple")
    cov, anchor = start(credo.Full("dense"))
    assert inner.affine(jnp.asarray(MEAN), None) is None
    mean, moved = inner.move(jnp.asarray(MEAN), cov, None, jnp.asarray(0), None)
    assert moved is not None
    got_mean, got = credo.PriorBound(inner).move(jnp.asarray(MEAN), cov, anchor, jnp.asarray(0), None)
    assert got is not None
    shrink = np.sqrt(np.minimum(1.0, PRIOR / np.asarray(moved.diag())))
    np.testing.assert_array_equal(got_mean, mean)
    np.testing.assert_allclose(got.dense(), shrink[:, None] * np.asarray(moved.dense()) * shrink, atol=1e-10)


def test_a_bounded_step_is_made_at_once_and_leaves_a_dense_covariance_symmetric_to_the_last_bit() -> None:
    root = np.random.default_rng(3).normal(size=(P, P))
    matrix = jnp.asarray(root @ root.T, jnp.float32)
    symmetric = credo.Full("dense").from_dense(0.5 * (matrix + matrix.T))
    ends = ((0.6, 1.3), (0.0, 1.0), (1.0, 9.0))
    scale, noise, limit = (jnp.linspace(*pair, P, dtype=jnp.float32) for pair in ends)
    moved = symmetric.affine(scale, noise)
    by_parts = moved.rescale(jnp.sqrt(jnp.minimum(limit / moved.diag(), 1.0))).dense()
    at_once = symmetric.affine_within(scale, noise, limit).dense()
    np.testing.assert_allclose(at_once, by_parts, rtol=1e-5)
    np.testing.assert_array_equal(at_once, at_once.T)


def test_a_belief_carries_of_its_prior_only_what_its_dynamics_need() -> None:
    model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
    for dynamics in (credo.PriorBound(credo.RandomWalk(0.1)), credo.Inflation(0.1)):
        anchor = (
            credo.extended_kalman(model, dynamics=dynamics).init(jnp.zeros(P), var=jnp.asarray(PRIOR)).anchor
        )
        assert anchor is not None and anchor.cov is not None
        assert sum(leaf.size for leaf in jax.tree.leaves(anchor)) == 2 * P
        np.testing.assert_allclose(anchor.cov.diag(), PRIOR)
