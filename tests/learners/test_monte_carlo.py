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
from credo.core.records import replace
from credo.core.trees import ravel
from credo.covariances import Covariance, DiagonalCovariance, LowRankCovariance, RootCovariance
from credo.learners import Curvature, Local, Site
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


@pytest.mark.parametrize(("rank", "rounds", "tolerance"), [(3, 0, 1e-1), (3, 3, 1e-4), (12, 0, 1e-10)])
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
    for key in jax.random.split(KEY, 3):
        local = credo.MonteCarloHessian(1, rank=SIZE).local(
            site(PROBLEM, key), jnp.asarray(PROBLEM.mean), low
        )
        first, _ = jax.random.split(jax.random.fold_in(key, 0))
        bend = jax.jit(jax.hessian(log_prob))(jnp.asarray(PROBLEM.mean) + low.sample(first, (1,))[0])
        close(local.precision(), semi_definite(np.asarray(bend), SIZE))


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


@pytest.mark.parametrize("curvature", [credo.MonteCarloEmpiricalFisher, credo.MonteCarloHessian])
def test_common_keys_draw_the_same_in_each_inner_iteration(curvature: Any) -> None:
    start = jnp.asarray(PROBLEM.mean)
    for common in (True, False):
        etas = [curvature(2, common=common).local(site(PROBLEM, KEY), start, COV, i).eta for i in range(3)]
        for eta in etas[1:]:
            assert bool(jnp.all(eta == etas[0])) == common


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


BATCH = 3
ROWS = np.random.default_rng(8).normal(size=(BATCH, SIZE))
LABELS = jnp.asarray([1.0, 0.0, 1.0])
JOINT = credo.joint(credo.Model(bent, credo.Bernoulli()))
CURVATURES = {
    "mc-ef": (credo.MonteCarloEmpiricalFisher(2), credo.Full()),
    "full": (credo.MonteCarloHessian(2), credo.Full()),
    "diagonal": (credo.MonteCarloHessian(2), credo.Diagonal()),
    "price": (credo.MonteCarloHessian(2, estimator="price"), credo.Diagonal()),
    "low-rank": (credo.MonteCarloHessian(2, rank=2), credo.LowRank(2)),
}


def batch_site(y: Any, weight: Any) -> Site:
    """A mini-batch as a curvature sees it."""
    unravel = site(PROBLEM).unravel
    return Site(JOINT, JOINT.likelihood, unravel, jnp.asarray(ROWS), y, jnp.asarray(weight), KEY)


def bernoulli_slopes(draws: np.ndarray) -> np.ndarray:
    """Gradients (M, B, P) of each row's log-likelihood at each draw."""
    eta = np.tanh(draws) @ ROWS.T
    gap = np.asarray(LABELS) - 1 / (1 + np.exp(-eta))
    result: np.ndarray = gap[:, :, None] * ROWS[None] * (1 - np.tanh(draws) ** 2)[:, None, :]
    return result


@pytest.mark.parametrize("weight", [1.0, np.array([1.0, 0.0, 2.5])], ids=["one", "rows"])
def test_mc_ef_of_a_batch_has_one_row_a_draw_and_observation(weight: Any) -> None:
    local = credo.MonteCarloEmpiricalFisher(2).local(
        batch_site(LABELS, weight), jnp.asarray(PROBLEM.mean), COV
    )
    draws = PROBLEM.mean + np.asarray(COV.sample(jax.random.fold_in(KEY, 0), (2,)))
    slopes, each = bernoulli_slopes(draws), np.broadcast_to(weight, BATCH)
    assert local.rows.shape == (2 * BATCH, SIZE)
    close(local.gradient, np.einsum("mbp,b->p", slopes, each) / 2)
    close(local.precision(), np.einsum("mbp,mbq,b->pq", slopes, slopes, each) / 2)


@pytest.mark.parametrize("name", list(CURVATURES))
def test_missing_rows_and_rows_of_weight_zero_are_left_out(name: str) -> None:
    """The draws do not depend on the rows, so the rows that are left alone give the same update."""
    curvature, family = CURVATURES[name]
    learner = credo.blr(JOINT, family, curvature, learning_rate=0.5, iterations=2)
    keep, ones, gone = np.array([0, 2]), jnp.ones(BATCH), jnp.full(BATCH, jnp.nan)
    cases = {
        "missing": (LABELS.at[1].set(jnp.nan), ones),
        "weightless": (LABELS, jnp.asarray([1.0, 0.0, 1.0])),
        "all": (LABELS, ones),
        "zero": (LABELS, 0.0 * ones),
        "none": (gone, ones),
    }

    def program(x: jax.Array, ys: jax.Array, weights: jax.Array) -> tuple[Any, ...]:
        start = learner.init(jnp.asarray(PROBLEM.mean), var=VAR)
        want = learner.update(start, x[keep], LABELS[keep], key=KEY)
        many = jax.vmap(lambda y, weight: learner.update(start, x, y, weight=weight, key=KEY))(ys, weights)
        return start, want, many

    ys, weights = (jnp.stack(part) for part in zip(*cases.values(), strict=True))
    start, want, many = compiled(program, jnp.asarray(ROWS), ys, weights)
    made = {name: jax.tree.map(lambda leaf: leaf[i], many) for i, name in enumerate(cases)}  # noqa: B023
    for how in ("missing", "weightless"):
        got, info = made[how]
        close(got.mean, want[0].mean)
        close(got.cov.dense(), want[0].cov.dense())
        close(info.log_evidence, want[1].log_evidence)
        assert bool(info.ok)
    assert np.abs(made["all"][0].mean - want[0].mean).max() > 1e-3
    for how, ok in (("zero", True), ("none", False)):
        assert bool(made[how][1].ok) == ok
        np.testing.assert_array_equal(made[how][0].mean, start.mean)
        jax.tree.map(np.testing.assert_array_equal, made[how][0].cov, start.cov)


@pytest.mark.parametrize("name", list(CURVATURES))
def test_a_weight_multiplies_the_log_likelihood(name: str) -> None:
    """One weight, or the same for each row: gradient and Hessian are so many times those of weight 1.

    That holds after the first iteration, whose gradient MC-HESS may shorten.
    """
    curvature, family = CURVATURES[name]
    cov = family.init(VAR)

    def one(weight: Any) -> tuple[jax.Array, jax.Array]:
        local = curvature.local(batch_site(LABELS, weight), jnp.asarray(PROBLEM.mean), cov, 1)
        return local.gradient, local.precision()

    g, bend = one(1.0)
    for weight in (2.5, np.full(BATCH, 2.5)):
        more, bent_more = one(weight)
        close(more, 2.5 * np.asarray(g))
        close(bent_more, 2.5 * np.asarray(bend))
    assert np.abs(bend).max() > 1e-3


def test_the_evidence_is_the_mixture_over_the_draws() -> None:
    learner = credo.bong(PROBLEM.model, credo.Full(), credo.MonteCarloEmpiricalFisher(3))
    start = learner.init(jnp.asarray(PROBLEM.mean), cov=PROBLEM.cov)
    _, info = learner.update(start, jnp.asarray(PROBLEM.x), PROBLEM.label, key=KEY)
    one = jax.random.fold_in(jax.random.fold_in(KEY, 0), 0)
    draws = PROBLEM.mean + np.asarray(start.cov.sample(one, (3,)))
    probs = [PROBLEM.jacobian(draw)[0][1] for draw in draws]
    close(info.log_evidence, np.log(np.mean(probs)))


def test_keys_decide_the_draws_and_steps_draw_anew() -> None:
    learner = credo.bong(PROBLEM.model, credo.Diagonal(), credo.MonteCarloEmpiricalFisher(2))
    start = learner.init(jnp.asarray(PROBLEM.mean))
    x = jnp.asarray(PROBLEM.x)
    means = [
        learner.update(belief, x, PROBLEM.label, key=key)[0].mean
        for belief, key in ((start, 0), (start, 0), (start, 1), (replace(start, t=start.t + 1), 0))
    ]
    np.testing.assert_array_equal(means[0], means[1])
    assert np.abs(means[0] - means[2]).max() > 1e-6 and np.abs(means[0] - means[3]).max() > 1e-6
    np.testing.assert_array_equal(
        learner.update(start, x, PROBLEM.label, key=jax.random.key(0))[0].mean, means[0]
    )


def test_draws_of_the_outputs_of_affine_models_have_the_law_of_draws_of_the_parameters() -> None:
    """The mean gradient and the empirical Fisher of many draws, by both ways, within 5 standard errors."""
    mean, x, y = jnp.asarray([0.5, -0.2, 0.1]), jnp.asarray([1.0, 2.0, -1.0]), jnp.asarray(1)
    cov = credo.Full().from_dense(jnp.asarray([[1.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 0.8]]))
    curvature, key = credo.MonteCarloEmpiricalFisher(4000), jax.random.key(0)
    found: list[Local] = []
    for apply in (lambda w, row: row @ w, lambda w, row: jnp.sinh(jnp.arcsinh(row @ w))):
        model = credo.Model(apply, credo.Bernoulli())
        vector, unravel = ravel(mean)
        assert model.affine(vector, unravel, x) == (not found)
        site = Site(model, model.likelihood, unravel, x, y, jnp.ones(()), key)
        found.append(curvature.local(site, vector, cov))
    ours, plain = found
    assert ours.rows.shape == (1, 3) and plain.rows.shape == (4000, 3)
    scores = np.asarray(plain.rows.dense()[:, 0])
    error = 5 * np.std(scores) / np.sqrt(2000)
    np.testing.assert_allclose(ours.gradient[0], plain.gradient[0], atol=error)
    spread = 5 * np.std(scores**2) / np.sqrt(2000)
    np.testing.assert_allclose(ours.precision()[0, 0], plain.precision()[0, 0], atol=spread)


@pytest.mark.parametrize("family", [credo.Diagonal(), credo.LowRank(3)], ids=["diagonal", "low-rank"])
def test_mean_hessians_of_networks_do_not_overshoot(family: Any) -> None:
    """Wide priors: the diagonal or a few directions of the Hessian say too little of the step's curvature."""
    rng = np.random.default_rng(0)
    xs = jnp.asarray(rng.normal(size=(60, 3)), jnp.float32)
    ys = jnp.sin(2 * xs[:, 0])
    network = credo.MLP(1, (10,))
    learner = credo.bong(credo.Model(network, credo.Normal(0.3)), family, credo.MonteCarloHessian(10))
    params = network.init(0, (3,))
    start = learner.init(params, var=network.prior_var(params, 4.0))
    belief, trace = credo.run(learner, start, xs, ys, key=0)
    gaps = jax.vmap(lambda x: network(belief.params, x))(xs)[:, 0] - ys
    assert bool(jnp.all(trace.ok)) and float(jnp.sqrt(jnp.mean(gaps**2))) < 2.0
