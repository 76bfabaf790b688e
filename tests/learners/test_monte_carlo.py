"""Monte Carlo curvatures: unbiased, in common, in batches, weighted, and with gaps."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.grid_reference import Problem, bent, compiled, site
from tests.learners.reference import close, linear

import credo
from credo.covariances import Covariance, DiagonalCovariance, LowRankCovariance, RootCovariance
from credo.learners import Curvature
from credo.learners.curvatures.monte_carlo import MeanHessian

SIZE = 6
PROBLEM = Problem(SIZE, 2)
COV = RootCovariance(jnp.asarray(np.linalg.cholesky(PROBLEM.cov)))
VAR = jnp.linspace(0.2, 0.8, SIZE)
KEY = jax.random.key(4)


def log_prob(vector: jax.Array) -> jax.Array:
    """The log-likelihood of the softmax problem."""
    result: jax.Array = PROBLEM.model.likelihood.log_prob(bent(vector, jnp.asarray(PROBLEM.x)), PROBLEM.label)
    return result


def measured(curvature: Curvature, cov: Covariance, keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The gradients (n, P) and expected Hessians (n, P, P) measured with n keys."""

    def one(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        local = curvature.local(site(PROBLEM, key), jnp.asarray(PROBLEM.mean), cov)
        return local.gradient, -local.precision()

    result: tuple[jax.Array, jax.Array] = compiled(jax.vmap(one), keys)
    return result


def expected(cov: Covariance, draws: int = 200_000) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Means of the gradient, Hessian and outer product over many draws, with their standard errors."""

    def one(vector: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        slope, bend = jax.grad(log_prob)(vector), jax.hessian(log_prob)(vector)
        return slope, bend, jnp.outer(slope, slope)

    @jax.jit
    def many(key: jax.Array) -> list[Any]:
        vectors = jnp.asarray(PROBLEM.mean)[None, :] + cov.sample(key, (draws,))
        made = jax.lax.map(one, vectors, batch_size=1000)
        return [(jnp.mean(v, axis=0), jnp.std(v, axis=0) / np.sqrt(draws)) for v in made]

    return tuple((np.asarray(m), np.asarray(s)) for m, s in many(jax.random.key(77)))


def unbiased(got: Any, want: tuple[Any, Any]) -> None:
    """The mean over the leading axis is what is wanted, to 4.5 standard errors of both."""
    error = np.std(got, axis=0, ddof=1) / np.sqrt(len(got))
    gap = np.abs(np.mean(got, axis=0) - want[0])
    assert np.all(gap < 4.5 * np.hypot(error, want[1]) + 1e-9), np.max(gap / np.hypot(error, want[1]))
    assert np.max(error) < 0.1


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("antithetic", [False, True])
def test_mc_ef_is_the_mean_gradient_and_the_mean_of_outer_products(antithetic: bool) -> None:
    slope, _, outer = expected(COV)
    keys = jax.random.split(KEY, 2000)
    gradients, bends = measured(credo.MonteCarloEmpiricalFisher(4, antithetic), COV, keys)
    unbiased(gradients, slope)
    unbiased(bends, (-outer[0], outer[1]))
    # not the outer product of the mean
    assert np.abs(outer[0] - np.outer(slope[0], slope[0])).max() > 20 * np.max(outer[1])


def test_mc_ef_by_hand() -> None:
    local = credo.MonteCarloEmpiricalFisher(3).local(site(PROBLEM, KEY), jnp.asarray(PROBLEM.mean), COV)
    draws = PROBLEM.mean + np.asarray(COV.sample(jax.random.fold_in(KEY, 0), (3,)))
    slopes = np.stack([PROBLEM.hessian(draw)[0] for draw in draws])
    close(local.gradient, slopes.mean(0))
    close(local.precision(), slopes.T @ slopes / 3)
    close(local.eta, np.tanh(draws) @ PROBLEM.x.T)


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("estimator", ["hutchinson", "price"])
def test_the_diagonal_of_the_hessian_is_estimated_without_bias(estimator: Any) -> None:
    """Before it is cut off at 0, where precision would be taken away."""
    cov, curvature = DiagonalCovariance(VAR), credo.MonteCarloHessian(4, estimator=estimator)
    _, bend, _ = expected(cov)

    def one(key: jax.Array) -> jax.Array:
        first, second = jax.random.split(key)
        draws = jnp.asarray(PROBLEM.mean)[None, :] + cov.sample(first, (4,))
        slope = jax.grad(site(PROBLEM).log_likelihood)
        forms = MeanHessian(curvature, slope, draws, draws, jnp.asarray(PROBLEM.mean), cov, second)
        return jnp.mean(forms.probes()[1], axis=0)

    got = compiled(jax.vmap(one), jax.random.split(KEY, 8000))
    unbiased(got, (np.diagonal(bend[0]), np.diagonal(bend[1])))
    assert np.abs(np.diagonal(bend[0])).max() > 0.1


@pytest.mark.table
@pytest.mark.parametrize("estimator", ["hutchinson", "price"])
def test_the_measured_diagonal_never_takes_precision_away(estimator: Any) -> None:
    cov = DiagonalCovariance(VAR)
    curvature = credo.MonteCarloHessian(2, estimator=estimator)
    _, bends = measured(curvature, cov, jax.random.split(KEY, 200))
    diagonals = np.diagonal(bends, axis1=1, axis2=2)
    assert np.all(diagonals <= 0) and np.any(diagonals == 0) and np.any(diagonals < 0)


def mean_hessian(draws: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean gradient and Hessian over the draws that MC-HESS takes, by a dense Hessian at each."""
    first, _ = jax.random.split(jax.random.fold_in(KEY, 0))
    vectors = jnp.asarray(PROBLEM.mean)[None, :] + COV.sample(first, (draws,))
    slopes, bends = compiled(jax.vmap(lambda v: (jax.grad(log_prob)(v), jax.hessian(log_prob)(v))), vectors)
    return np.mean(slopes, axis=0), np.mean(bends, axis=0)


def semi_definite(bend: np.ndarray, rank: int) -> np.ndarray:
    """The leading `rank` directions of the positive part of -H."""
    values, vectors = np.linalg.eigh(-bend)
    kept = np.maximum(values[-rank:], 0)
    result: np.ndarray = (vectors[:, -rank:] * kept) @ vectors[:, -rank:].T
    return result


@pytest.mark.table
@pytest.mark.parametrize("draws", [1, 5])
def test_mc_hess_of_a_full_belief_is_the_negative_part_of_the_mean_hessian(draws: int) -> None:
    slope, bend = mean_hessian(draws)
    local = credo.MonteCarloHessian(draws).local(site(PROBLEM, KEY), jnp.asarray(PROBLEM.mean), COV)
    close(local.gradient, slope)
    close(local.precision(), semi_definite(bend, SIZE))
    assert np.linalg.eigvalsh(bend).max() > 1e-3  # it is indefinite, so something was cut off


def test_the_full_mean_hessian_is_unbiased_where_it_is_negative() -> None:
    """Linear in the parameters, the softmax is concave and nothing is cut off."""
    flat = Problem(SIZE, 2)
    flat.model = credo.Model(linear, credo.Categorical(3))
    x, start = jnp.asarray(flat.x), jnp.asarray(flat.mean)

    def bend(vector: jax.Array) -> jax.Array:
        result: jax.Array = jax.hessian(lambda v: flat.model.likelihood.log_prob(x @ v, flat.label))(vector)
        return result

    vectors = start[None, :] + COV.sample(jax.random.key(1), (20_000,))
    bends = jax.jit(lambda v: jax.lax.map(bend, v, batch_size=1000))(vectors)
    curvature = credo.MonteCarloHessian(3)

    def one(key: jax.Array) -> jax.Array:
        local = curvature.local(site(flat, key), start, COV)
        result: jax.Array = -local.precision()
        return result

    got = compiled(jax.vmap(one), jax.random.split(KEY, 2000))
    unbiased(got, (np.mean(bends, axis=0), np.std(bends, axis=0) / np.sqrt(len(bends))))


def spiked(size: int, scales: np.ndarray) -> tuple[Problem, np.ndarray]:
    """A linear-Gaussian problem whose Hessian has the eigenvalues -scales^2, and that Hessian."""
    made = Problem(size)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(size, size)))[0]
    made.x = scales[:, None] * turn[: len(scales)]
    made.model, made.label = credo.Model(linear, credo.Normal(1.0)), jnp.zeros(len(scales))
    return made, -made.x.T @ made.x


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "rounds", "tolerance"),
    [
        pytest.param(3, 0, 1e-1, marks=pytest.mark.thorough),
        (3, 3, 1e-4),
        pytest.param(12, 0, 1e-10, marks=pytest.mark.thorough),
    ],
)
def test_mc_hess_of_a_low_rank_belief_finds_the_leading_directions(
    rank: int, rounds: int, tolerance: float
) -> None:
    """Against a dense eigendecomposition; exact where the Hessian has no more directions than are sought."""
    size = 30
    problem, bend = spiked(size, 3.0 * 0.6 ** np.arange(12.0))
    cov = LowRankCovariance(
        jnp.ones(size), jnp.asarray(0.1 * np.random.default_rng(0).normal(size=(2, size)))
    )
    curvature = credo.MonteCarloHessian(2, rank=rank, rounds=rounds)
    local = curvature.local(site(problem, KEY), jnp.asarray(problem.mean), cov)
    best, got = semi_definite(bend, rank), np.asarray(local.precision())
    assert np.linalg.norm(got - best) <= tolerance * np.linalg.norm(best)
    assert np.linalg.matrix_rank(got, tol=1e-8) == rank
    # Ritz values are never above the eigenvalues
    assert np.all(np.linalg.eigvalsh(got) <= np.linalg.eigvalsh(best) + 1e-9)


def test_mc_hess_of_a_low_rank_belief_leaves_positive_directions_out() -> None:
    low = LowRankCovariance(1 / VAR, jnp.zeros((2, SIZE)))

    @jax.jit
    def precision(key: Any) -> Any:
        local = credo.MonteCarloHessian(1, rank=SIZE).local(
            site(PROBLEM, key), jnp.asarray(PROBLEM.mean), low
        )
        return local.precision()

    hessian = jax.jit(jax.hessian(log_prob))
    for key in jax.random.split(KEY, 3):
        first, _ = jax.random.split(jax.random.fold_in(key, 0))
        bend = hessian(jnp.asarray(PROBLEM.mean) + low.sample(first, (1,))[0])
        close(precision(key), semi_definite(np.asarray(bend), SIZE))


def test_antithetic_draws_cancel_odd_noise() -> None:
    """On a linear-Gaussian model the gradient is linear in the draw, so pairs give that at the mean."""
    problem, bend = spiked(SIZE, np.array([2.0, 1.0]))
    start = jnp.asarray(problem.mean)
    for curvature in (credo.MonteCarloEmpiricalFisher, credo.MonteCarloHessian):

        def gradients(antithetic: bool, curvature: Any = curvature) -> np.ndarray:
            def one(key: jax.Array) -> jax.Array:
                result: jax.Array = curvature(4, antithetic).local(site(problem, key), start, COV).gradient
                return result

            return np.asarray(compiled(jax.vmap(one), jax.random.split(KEY, 50)))

        close(gradients(True), np.broadcast_to(bend @ problem.mean, (50, SIZE)))
        assert gradients(False).std(axis=0).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("form", ["full", "low-rank", "diagonal"])
def test_evenly_spread_draws_of_every_family_are_less_noisy(form: Any) -> None:
    """The mean gradient of 32 draws, over keys: as many draws, an average without bias, less noise."""
    cov = {
        "full": COV,
        "low-rank": LowRankCovariance(1 / VAR, jnp.ones((1, SIZE))),
        "diagonal": DiagonalCovariance(VAR),
    }[form]
    start, made = jnp.asarray(PROBLEM.mean), {}
    for quasi in (False, True):

        def one(key: jax.Array, quasi: bool = quasi) -> jax.Array:
            result: jax.Array = (
                credo.MonteCarloEmpiricalFisher(32, quasi=quasi)
                .local(site(PROBLEM, key), start, cov)
                .gradient
            )
            return result

        made[quasi] = np.asarray(compiled(jax.vmap(one), jax.random.split(KEY, 100)))
    noise = made[False].std(axis=0, ddof=1)
    gap = np.abs(made[True].mean(axis=0) - made[False].mean(axis=0))
    assert np.all(gap < 5 * noise / 10)
    assert np.mean(made[True].std(axis=0, ddof=1)) < 0.75 * np.mean(noise)


@pytest.mark.table
@pytest.mark.parametrize("curvature", [credo.MonteCarloEmpiricalFisher, credo.MonteCarloHessian])
def test_common_keys_draw_the_same_in_each_inner_iteration(curvature: Any) -> None:
    start = jnp.asarray(PROBLEM.mean)
    for common in (True, False):
        etas = [curvature(2, common=common).local(site(PROBLEM, KEY), start, COV, i).eta for i in range(3)]
        for eta in etas[1:]:
            assert bool(jnp.all(eta == etas[0])) == common


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("family", ["rows", "matrix", "diagonal"])
def test_with_draws_in_common_the_iterations_settle(family: str) -> None:
    """They then follow one objective; with new draws each time they do not settle."""
    size = 40 if family == "rows" else 10
    problem = Problem(size, 5)
    problem.x = 0.5 * problem.x
    kept = credo.Diagonal() if family == "diagonal" else credo.Full()

    def mean(iterations: int, common: bool) -> np.ndarray:
        curvature = credo.MonteCarloEmpiricalFisher(2, common=common)
        learner = credo.blr(problem.model, kept, curvature, learning_rate=0.8, iterations=iterations)
        return np.asarray(problem.update(learner, KEY, var=0.1)[0].mean)

    assert np.abs(mean(17, True) - mean(18, True)).max() < 1e-7
    if family == "diagonal":
        assert np.abs(mean(17, False) - mean(18, False)).max() > 1e-4
