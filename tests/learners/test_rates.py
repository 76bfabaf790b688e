"""Learning rates: schedules, derivatives by them, and what rules and curvatures refuse."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.grid_reference import CURVATURES, FAMILIES, compiled
from tests.learners.reference import linear
from tests.tiers import few

import credo
from credo.core.errors import CredoError

UNTYPED: Any = credo
"""For calls that a type checker would refuse, too."""

P, T = 5, 4
RNG = np.random.default_rng(0)
XS, YS = jnp.asarray(RNG.normal(size=(T, P))), jnp.asarray(RNG.integers(0, 2, T), float)
MODEL = credo.Model(linear, credo.Bernoulli())


def halving(t: Any) -> Any:
    """A rate from the number of the step."""
    return 0.4 / (1.0 + jnp.asarray(t).astype(jnp.float64))


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["blr", "bog", "bbb"])
def test_a_schedule_gives_the_rate_of_each_step(rule: str) -> None:
    """0.4, 0.2, ... from the first observation on; a function, a `Schedule` and numbers by hand agree."""
    make = getattr(credo, rule)
    more = {} if rule == "bog" else {"iterations": 2}

    def spelled(rate: Any) -> Any:
        return make(MODEL, credo.Diagonal(), learning_rate=rate, **more)

    def program(xs: jax.Array, ys: jax.Array) -> list[Any]:
        made = []
        for rate in (halving, credo.Schedule(halving)):
            learner = spelled(rate)
            made.append(credo.run(learner, learner.init(jnp.zeros(P)), xs, ys)[0].mean)
        return made

    by_function, by_schedule = compiled(program, XS, YS)
    belief = spelled(0.4).init(jnp.zeros(P))
    for t in range(T):
        belief, info = spelled(0.4 / (1 + t)).step(belief, XS[t], YS[t])
        assert bool(info.ok)
    for got in (by_function, by_schedule):
        np.testing.assert_allclose(got, belief.mean, rtol=1e-12, atol=1e-12)
    constant, _ = credo.run(spelled(0.4), spelled(0.4).init(jnp.zeros(P)), XS, YS)
    assert np.abs(constant.mean - belief.mean).max() > 1e-3


def test_an_update_without_a_predict_is_the_first_step() -> None:
    learner = credo.bog(MODEL, credo.Diagonal(), learning_rate=halving)
    plain = credo.bog(MODEL, credo.Diagonal(), learning_rate=0.4)
    start = learner.init(jnp.zeros(P))
    got, want = learner.update(start, XS[0], YS[0])[0], plain.update(start, XS[0], YS[0])[0]
    np.testing.assert_array_equal(got.mean, want.mean)


def rates(t: Any) -> Any:
    """1.4 at the second step, -0.1 at the third, 0 at the fourth."""
    return jnp.asarray([0.5, 1.4, -0.1, 0.0])[t]


@pytest.mark.slow
@pytest.mark.parametrize("family", few(FAMILIES, "full"))
def test_a_rate_of_a_schedule_that_a_rule_cannot_take_rejects_the_update(family: str) -> None:
    """BLR takes [0, 1], BBB anything from 0 on; 0 changes nothing."""
    for rule, ok in ((credo.blr, [True, False, False, True]), (credo.bbb, [True, True, False, True])):
        learner = rule(MODEL, FAMILIES[family], learning_rate=rates, iterations=2)
        start = learner.init(jnp.zeros(P))
        (belief, trace), after = compiled(
            lambda xs, ys, learner=learner, start=start: (
                credo.run(learner, start, xs, ys),
                credo.run(learner, start, xs[:1], ys[:1])[0],
            ),
            XS,
            YS,
        )
        assert trace.ok.tolist() == ok
        if rule is credo.blr:
            np.testing.assert_allclose(belief.mean, after.mean, rtol=1e-12)
            np.testing.assert_allclose(belief.cov.dense(), after.cov.dense(), rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize(
    ("curvature", "family"),
    [
        ("lin-hess", "full"),
        ("lin-hess", "diagonal"),
        ("mc-ef", "low-rank"),
        pytest.param("lin-hess", "low-rank", marks=pytest.mark.thorough),
        pytest.param("mc-ef", "full", marks=pytest.mark.thorough),
        ("mc-hess", "full"),
        pytest.param("mc-hess", "low-rank", marks=pytest.mark.thorough),
    ],
)
def test_the_evidence_has_a_derivative_by_the_rate_of_blr(curvature: Any, family: str) -> None:
    """Against finite differences; the same key gives the same draws, so Monte Carlo is smooth too."""
    kept, seen = FAMILIES[family], CURVATURES[curvature]

    @jax.jit
    @jax.value_and_grad
    def total(rate: jax.Array) -> jax.Array:
        learner = credo.blr(MODEL, kept, seen, learning_rate=rate, iterations=2)
        _, trace = credo.run(learner, learner.init(jnp.zeros(P)), XS, YS, key=jax.random.key(0))
        return jnp.sum(trace.log_evidence)

    h = 1e-5
    slope = total(jnp.asarray(0.4))[1]
    difference = (total(jnp.asarray(0.4 + h))[0] - total(jnp.asarray(0.4 - h))[0]) / (2 * h)
    np.testing.assert_allclose(slope, difference, rtol=1e-5, atol=1e-7)
    assert abs(float(slope)) > 1e-3


FULL, DIAGONAL, LOW = credo.Full(), credo.Diagonal(), credo.LowRank(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: credo.blr(MODEL, FULL, learning_rate=0.0),
            "learning_rate must be finite and above 0; got 0",
        ),
        (lambda: credo.blr(MODEL, FULL, learning_rate=1.5), r"learning_rate must be in \[0.*1.*\]; got 1\.5"),
        (lambda: credo.blr(MODEL, FULL, learning_rate=-0.1), "learning_rate must be finite and above 0"),
        (
            lambda: credo.bog(MODEL, FULL, learning_rate=0.0),
            "learning_rate must be finite and above 0; got 0",
        ),
        (lambda: credo.bbb(MODEL, FULL, learning_rate=np.nan), "learning_rate must be finite and above 0"),
        (lambda: credo.blr(MODEL, FULL, iterations=0), "iterations must be a whole number at least 1; got 0"),
        (lambda: UNTYPED.bbb(MODEL, FULL, iterations=1.5), "iterations must be a whole number at least 1"),
        (lambda: UNTYPED.blr(MODEL, FULL, gain="both"), "gain must be one of joint, kept; got 'both'"),
        (
            lambda: UNTYPED.blr(MODEL, FULL, parameters="mean"),
            "parameters must be one of natural, moment; got 'mean'",
        ),
        (
            lambda: UNTYPED.bog(MODEL, FULL, parameters="mean"),
            "parameters must be None, 'natural' or 'moment'; got 'mean'",
        ),
        (
            lambda: UNTYPED.blr(MODEL, FULL, retraction="sure"),
            "retraction must be one of safe, exact; got 'sure'",
        ),
        (
            lambda: UNTYPED.bbb(MODEL, FULL, retraction="sure"),
            "retraction must be one of safe, exact; got 'sure'",
        ),
        (lambda: credo.MonteCarloEmpiricalFisher(0), "samples must be a whole number at least 1; got 0"),
        (
            lambda: credo.MonteCarloEmpiricalFisher(3, antithetic=True),
            "samples must be even for antithetic draws.*got 3",
        ),
        (lambda: credo.MonteCarloHessian(3, True), "samples must be even for antithetic draws.*got 3"),
        (
            lambda: UNTYPED.MonteCarloHessian(estimator="prices"),
            "estimator must be one of hutchinson, price; got 'prices'.*did you mean 'price'",
        ),
        (lambda: credo.MonteCarloHessian(rank=0), "rank must be a whole number at least 1; got 0"),
        (lambda: credo.MonteCarloHessian(rounds=-1), "rounds must be a whole number at least 0; got -1"),
        (lambda: credo.LowRank(2, random=1.0), r"random must be None or at least 0 and below 1; got 1\.0"),
        (lambda: UNTYPED.LowRank(2, base="round"), "base must be one of diagonal, spherical; got 'round'"),
        (
            lambda: UNTYPED.LowRank(2, projection="svds"),
            "projection must be one of svd, whitened, factor-analysis; got 'svds'",
        ),
        (
            lambda: step(credo.blr(MODEL, LOW, parameters="moment")),
            "parameters='moment' needs a Full or Diagonal family, whose moments .* got a LowRankCovariance",
        ),
        (
            lambda: step(credo.bog(MODEL, LOW, parameters="moment")),
            "parameters must be None for a low-rank family.*got 'moment'",
        ),
        (
            lambda: step(credo.bbb(MODEL, LOW, parameters="natural")),
            "parameters must be None for a low-rank family.*got 'natural'",
        ),
        (
            lambda: step(credo.bong(MODEL, DIAGONAL, credo.MonteCarloEmpiricalFisher(2))),
            r"a Monte Carlo curvature draws random numbers: pass key=jax.random.key\(seed\)",
        ),
        (
            lambda: credo.bong(
                credo.Model(linear, credo.Normal(credo.InverseGamma(2.0, 1.0))), FULL, "mc-ef"
            ).init(jnp.zeros(P)),
            "a noise variance can be learned with curvature 'lin-hess' only",
        ),
    ],
)
def test_impossible_rules_and_curvatures_are_refused(make: Any, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        make()


def step(learner: Any) -> Any:
    """One step, traced only."""
    return jax.eval_shape(lambda: learner.step(learner.init(jnp.zeros(P)), XS[0], YS[0]))
