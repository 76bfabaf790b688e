"""Identities between the rules, and BLR against naive dense references."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.grid_reference import (
    CURVATURES,
    FAMILIES,
    Problem,
    compiled,
    diagonal_moments,
    diagonal_steps,
    low_rank_steps,
    natural_moments,
    natural_steps,
)
from tests.learners.reference import arrays, close, linear, regression, ridge, stream
from tests.tiers import few

import credo

SIZE = 9
PROBLEM = Problem(SIZE)
VAR = np.linspace(0.5, 1.5, SIZE)
KEY = jax.random.key(11)


def same(left: tuple[Any, Any], right: tuple[Any, Any]) -> None:
    """Two updates gave the same belief and evidence, and took the observation in."""
    (a, told), (b, also) = left, right
    assert bool(told.ok) and bool(also.ok)
    close(a.mean, b.mean)
    close(a.cov.dense(), b.cov.dense())
    close(told.log_evidence, also.log_evidence)


@pytest.mark.table
@pytest.mark.parametrize("curvature", list(CURVATURES))
@pytest.mark.parametrize("family", list(FAMILIES))
def test_one_iteration_of_blr_at_rate_one_is_bong_and_one_of_bbb_is_bog(curvature: Any, family: str) -> None:
    """The same key gives the same draws, so this is exact for the Monte Carlo curvatures too."""
    kept, seen = FAMILIES[family], CURVATURES[curvature]
    bong, blr, bog, bbb = PROBLEM.updates(
        [
            credo.bong(PROBLEM.model, kept, seen),
            credo.blr(PROBLEM.model, kept, seen, learning_rate=1.0, iterations=1),
            credo.bog(PROBLEM.model, kept, seen, learning_rate=0.02),
            credo.bbb(PROBLEM.model, kept, seen, learning_rate=0.02, iterations=1),
        ],
        KEY,
        var=VAR,
    )
    same(bong, blr)
    same(bog, bbb)
    assert np.abs(bog[0].mean - bong[0].mean).max() > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("family", few(["diagonal", "low-rank"], "low-rank"))
def test_iterated_bong_is_blr_at_rate_one_with_the_gain_of_what_is_kept(family: str) -> None:
    def learners(iterations: int) -> list[Any]:
        kept = FAMILIES[family]
        bong = credo.bong(PROBLEM.model, kept, gain="kept", iterations=iterations)
        return [bong, credo.blr(PROBLEM.model, kept, learning_rate=1.0, iterations=iterations, gain="kept")]

    one, two, three, four = PROBLEM.updates(learners(1) + learners(3), var=VAR)
    same(one, two)
    same(three, four)
    assert np.abs(one[0].mean - three[0].mean).max() > 1e-4


@pytest.mark.table
@pytest.mark.parametrize(("iterations", "form"), [(2, "root"), (5, "root"), (5, "dense")])
def test_blr_at_rate_one_is_the_iterated_ekf(iterations: int, form: Any) -> None:
    """Also `BONGRule(iterations)` without step control, with either gain, as a full covariance keeps all."""
    full, whole = credo.Full(form), credo.learners.LinearizedGaussNewton(step_control=False)
    blr, joint, kept = PROBLEM.updates(
        [
            credo.blr(PROBLEM.model, full, learning_rate=1.0, iterations=iterations),
            credo.bong(PROBLEM.model, full, whole, iterations=iterations),
            credo.bong(PROBLEM.model, full, whole, iterations=iterations, gain="kept"),
        ]
    )
    same(blr, joint)
    same(blr, kept)
    # the textbook iterated EKF, in information form
    prior, here, cov = np.linalg.inv(PROBLEM.cov), PROBLEM.mean, PROBLEM.cov
    for _ in range(iterations):
        g, bend = PROBLEM.hessian(here)
        cov = np.linalg.inv(prior - bend)
        here = PROBLEM.mean + cov @ (g - bend @ (here - PROBLEM.mean))
    close(blr[0].mean, here)
    close(blr[0].cov.dense(), cov)


@pytest.mark.table
@pytest.mark.parametrize("parameters", ["natural", "moment"])
@pytest.mark.parametrize(
    ("curvature", "iterations", "form"),
    [("lin-hess", 2, "root"), ("lin-hess", 4, "root"), ("lin-hess", 4, "dense"), ("lin-ef", 4, "root")],
)
def test_blr_full_is_the_dense_recursion(curvature: Any, iterations: int, form: Any, parameters: Any) -> None:
    """Two iterations of three rows are held by rows, four (12 > P = 9) by one matrix."""
    measure = PROBLEM.hessian if curvature == "lin-hess" else PROBLEM.fisher
    rate = 0.3 if parameters == "natural" else 0.05
    learner = credo.blr(
        PROBLEM.model,
        credo.Full(form),
        curvature,
        learning_rate=rate,
        iterations=iterations,
        parameters=parameters,
        retraction="exact",
    )
    belief, info = PROBLEM.update(learner)
    steps = natural_steps if parameters == "natural" else natural_moments
    mean, cov = steps(PROBLEM.mean, PROBLEM.cov, measure, rate, iterations)
    assert bool(info.ok)
    close(belief.mean, mean)
    close(belief.cov.dense(), cov)


@pytest.mark.table
@pytest.mark.parametrize("gain", ["joint", "kept", "moment"])
@pytest.mark.parametrize("curvature", ["lin-hess", "lin-ef"])
def test_blr_diagonal_is_the_elementwise_recursion(curvature: Any, gain: Any) -> None:
    measure = PROBLEM.hessian if curvature == "lin-hess" else PROBLEM.fisher
    make = functools.partial(
        credo.blr, PROBLEM.model, credo.Diagonal(), curvature, learning_rate=0.2, iterations=3
    )
    if gain == "moment":
        learner = make(parameters="moment", retraction="exact")
        mean, var = diagonal_moments(PROBLEM.mean, VAR, measure, 0.2, 3)
    else:
        learner = make(gain=gain)
        mean, var = diagonal_steps(PROBLEM.mean, VAR, measure, 0.2, 3, gain)
    belief, info = PROBLEM.update(learner, var=VAR)
    assert bool(info.ok)
    close(belief.mean, mean)
    close(belief.var, var)


def test_blr_on_marginal_variances_conditions_what_it_has_blended() -> None:
    learner = credo.blr(PROBLEM.model, credo.Diagonal("covariance"), learning_rate=0.3, iterations=3)
    belief, _ = PROBLEM.update(learner, var=VAR)
    here, precision = PROBLEM.mean, 1 / VAR
    for _ in range(3):
        g, bend = PROBLEM.hessian(here)
        blended = 0.7 * precision + 0.3 / VAR
        whole = np.linalg.inv(np.diag(blended) - 0.3 * bend)
        # what was kept is not what moved the mean: d = L m with the L that was kept
        source = 0.7 * precision * (here - PROBLEM.mean) + 0.3 * (g - bend @ (here - PROBLEM.mean))
        here, precision = PROBLEM.mean + whole @ source, 1 / np.diag(whole)
    close(belief.mean, here)
    close(belief.var, 1 / precision)


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("gain", ["joint", "kept"])
@pytest.mark.parametrize("curvature", ["lin-hess", "lin-ef"])
def test_blr_low_rank_is_the_dense_recursion_that_forgets_at_every_iteration(
    curvature: Any, gain: Any
) -> None:
    """Projections by dense eigendecompositions; five rows of rank four (or four of one) into two."""
    measure = PROBLEM.hessian if curvature == "lin-hess" else PROBLEM.fisher
    learner = credo.blr(
        PROBLEM.model, credo.LowRank(2), curvature, learning_rate=0.3, iterations=4, gain=gain
    )
    belief, info = PROBLEM.update(learner, var=VAR)
    none = np.zeros((2, SIZE))
    mean, precision = low_rank_steps(PROBLEM.mean, 1 / VAR, none, measure, 0.3, 4, gain)
    assert bool(info.ok)
    close(belief.mean, mean)
    close(belief.cov.dense(), np.linalg.inv(precision))


@pytest.mark.slow
@pytest.mark.parametrize("projection", few(["svd", "whitened"], "svd"))
def test_low_rank_of_rank_p_is_full(projection: Any) -> None:
    def learners(family: Any) -> list[Any]:
        return [
            credo.bong(PROBLEM.model, family),
            credo.blr(PROBLEM.model, family, learning_rate=0.4, iterations=3),
            credo.blr(PROBLEM.model, family, learning_rate=0.4, iterations=3, gain="kept"),
        ]

    ranked = PROBLEM.updates(learners(credo.LowRank(SIZE, projection=projection)), var=VAR)
    for low, full in zip(ranked, PROBLEM.updates(learners(credo.Full()), var=VAR), strict=True):
        same(low, full)


def exact(rows: int, size: int) -> dict[str, Any]:
    """Every rule path that is Bayes' rule on a linear-Gaussian model."""
    model, sampled = regression(), credo.MonteCarloHessian(2, antithetic=True, rank=rows)
    low = credo.LowRank(size)
    return {
        "iterated": credo.bong(model, low, iterations=3),
        "kept": credo.bong(model, low, gain="kept", iterations=2),
        "blr-rows": credo.blr(model, credo.Full(), learning_rate=1.0, iterations=2),
        "blr-matrix": credo.blr(model, credo.Full("dense"), learning_rate=1.0, iterations=6),
        "blr-low-rank": credo.blr(model, low, learning_rate=1.0, iterations=2),
        "blr-slow": credo.blr(model, credo.Full(), learning_rate=0.6, iterations=40),
        "blr-kept": credo.blr(model, low, learning_rate=0.6, iterations=40, gain="kept"),
        "mc-hess": credo.bong(model, credo.Full(), sampled),
        "mc-hess-low-rank": credo.bong(model, low, sampled),
        "blr-mc-hess": credo.blr(model, credo.Full(), sampled, learning_rate=1.0, iterations=2),
    }


@pytest.mark.table
@pytest.mark.parametrize("name", list(exact(2, 5)))
def test_every_natural_path_is_the_kalman_filter_and_batch_ridge_regression(name: str) -> None:
    """The Hessian is constant here and antithetic draws average to the mean, so MC-HESS is exact too."""
    size, start = 5, np.linspace(-1, 1, 5)
    xs, ys = stream(size, 4, 2)

    def program(learner: Any, xs: jax.Array, ys: jax.Array) -> tuple[Any, ...]:
        begin = learner.init(jnp.asarray(start), var=VAR[:size])
        belief, trace = credo.run(learner, begin, xs, ys, key=KEY)
        return belief.mean, belief.cov.dense(), trace

    got, dense, trace = compiled(program, exact(2, size)[name], *arrays(xs, ys))
    mean, cov, evidence = ridge(start, np.diag(VAR[:size]), xs, ys, 0.09)
    close(got, mean)
    close(dense, cov)
    assert bool(trace.ok.all())
    if "mc" not in name:
        close(trace.log_evidence.sum(), evidence)


@pytest.mark.table
@pytest.mark.parametrize(
    ("likelihood", "family", "gain"),
    [
        ("normal", "full", "joint"),
        ("categorical", "full", "joint"),
        ("categorical", "diagonal", "joint"),
        ("categorical", "diagonal", "kept"),
        ("categorical", "low-rank", "joint"),
        ("normal", "low-rank", "kept"),
    ],
)
def test_the_fixed_point_of_blr_does_not_depend_on_its_rate(likelihood: str, family: str, gain: Any) -> None:
    """It solves L0 (mu - mu0) = g and L = what is kept of L0 - G, both measured at mu."""
    x, start, var = 0.4 * jnp.asarray(PROBLEM.x), 0.3 * jnp.asarray(PROBLEM.mean), 0.3 * jnp.asarray(VAR)
    if likelihood == "normal":
        model, y = credo.Model(linear, credo.Normal(0.5)), jnp.ones(3)
    else:
        model, y = PROBLEM.model, PROBLEM.label

    @jax.jit
    def settle(rate: jax.Array) -> tuple[Any, ...]:
        learner = credo.blr(model, FAMILIES[family], learning_rate=rate, iterations=150, gain=gain)
        belief, _ = learner.update(learner.init(start, var=var), x, y)
        eta, pull = jax.vjp(lambda w: model.apply(w, x), belief.mean)
        slope = pull(model.likelihood.score(eta, y))[0]
        root = jax.jacobian(lambda w: model.apply(w, x))(belief.mean).T @ model.likelihood.fisher_root(eta, y)
        return belief.mean, belief.cov.dense(), slope, root @ root.T

    mean, cov, slope, bend = settle(jnp.asarray(0.7))
    for one, two in zip((mean, cov), settle(jnp.asarray(0.25))[:2], strict=True):
        close(one, two)
    close((mean - start) / var, slope)
    assert np.abs(slope).max() > 1e-2
    added = np.linalg.inv(cov) - np.diag(1 / var)
    close(np.diag(added), np.diag(bend))
    if family == "full":
        close(added, bend)


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("gain", ["joint", "kept"])
@pytest.mark.parametrize("rule", ["bong", "blr"])
def test_a_measured_diagonal_hessian_moves_the_mean_exactly(rule: str, gain: Any) -> None:
    """MC-HESS gives `Diagonal` a diagonal Hessian: nothing is forgotten, so both gains are the elementwise
    step. On a linear model with orthogonal inputs the estimates of it are exact.
    """
    turn = np.diag([2.0, -1.0, 0.5])
    sampled = credo.MonteCarloHessian(2, antithetic=True)
    var, start, noise, target = np.array([0.5, 1.0, 2.0]), np.array([0.3, -0.2, 0.1]), 0.4, np.ones(3)

    def measure(mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return turn @ (target - turn @ mean) / noise, -(turn**2) / noise

    model, rate, iterations = regression(noise), 0.3, 4
    if rule == "bong":
        rate, iterations = 1.0, 3
        learner = credo.bong(model, credo.Diagonal(), sampled, gain=gain, iterations=iterations)
    else:
        learner = credo.blr(
            model, credo.Diagonal(), sampled, learning_rate=rate, iterations=iterations, gain=gain
        )
    mean, after = diagonal_steps(start, var, measure, rate, iterations, "kept")
    belief, info = learner.update(
        learner.init(jnp.asarray(start), var=var), jnp.asarray(turn), jnp.asarray(target), key=KEY
    )
    assert bool(info.ok)
    close(belief.mean, mean)
    close(belief.var, after)
