"""Curvatures by draws: mini-batches, weights, evidence, keys and whole steps of learners."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.grid_reference import Problem, bent, compiled, site
from tests.learners.reference import close
from tests.tiers import few

import credo
from credo.core.records import replace
from credo.core.trees import ravel
from credo.covariances import RootCovariance
from credo.learners import Local, Site

SIZE = 6
PROBLEM = Problem(SIZE, 2)
COV = RootCovariance(jnp.asarray(np.linalg.cholesky(PROBLEM.cov)))
VAR = jnp.linspace(0.2, 0.8, SIZE)
KEY = jax.random.key(4)
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


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("name", few(CURVATURES, *[name for name in CURVATURES if name != "low-rank"]))
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


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("name", list(CURVATURES))
def test_a_weight_multiplies_the_log_likelihood(name: str) -> None:
    """One weight, or the same for each row: gradient and Hessian are so many times those of weight 1.

    That holds after the first iteration, whose gradient MC-HESS may shorten.
    """
    curvature, family = CURVATURES[name]
    cov = family.init(VAR)

    @jax.jit
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


@pytest.mark.slow
def test_draws_of_the_outputs_of_affine_models_have_the_distribution_of_draws_of_the_parameters() -> None:
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


@pytest.mark.slow
@pytest.mark.table
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
