"""Conjugate learners against closed forms, with forgetting and with bad data."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special as ss
import scipy.stats
from tests.learners.reference import close

import credo
from credo.core.errors import CredoError

st: Any = scipy.stats  # its annotations are those of another distribution in places


def test_beta_bernoulli_counts_and_its_evidence_is_the_beta_function() -> None:
    ys = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    learner = credo.BetaBernoulli(2.0, 3.0)
    belief, trace = credo.run(learner, learner.init(), None, jnp.asarray(ys))
    close([belief.a, belief.b], [6.0, 5.0])
    close(trace.log_evidence.sum(), ss.betaln(6.0, 5.0) - ss.betaln(2.0, 3.0))
    frozen = st.beta(6.0, 5.0)
    close([belief.mean, belief.var], [frozen.mean(), frozen.var()])
    close(learner.forecast(belief, None).probs, [5 / 11, 6 / 11])
    close(belief.params, belief.mean)


def test_dirichlet_categorical_counts_and_its_evidence_is_the_polya_distribution() -> None:
    ys = np.array([0, 2, 2, 1, 2])
    learner = credo.DirichletCategorical(3, 0.5)
    belief, trace = credo.run(learner, learner.init(), None, jnp.asarray(ys))
    prior, after = np.full(3, 0.5), np.array([1.5, 1.5, 3.5])
    close(belief.counts, after)

    def log_beta(counts: np.ndarray) -> float:
        result: float = ss.gammaln(counts).sum() - ss.gammaln(counts.sum())
        return result

    close(trace.log_evidence.sum(), log_beta(after) - log_beta(prior))
    close(learner.forecast(belief, None).probs, after / after.sum())
    close([belief.mean, belief.var], [st.dirichlet(after).mean(), st.dirichlet(after).var()])


def test_gamma_poisson_adds_events_and_exposure_and_its_evidence_is_negative_binomial() -> None:
    ys, xs = np.array([3.0, 0.0, 5.0]), np.array([1.0, 0.5, 2.0])
    learner = credo.GammaPoisson(2.0, 1.5)
    belief, trace = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    close([belief.shape, belief.per], [10.0, 5.0])
    shape, per, expected = 2.0, 1.5, []
    for x, y in zip(xs, ys, strict=True):
        expected.append(st.nbinom(shape, per / (per + x)).logpmf(y))
        shape, per = shape + y, per + x
    close(trace.log_evidence, expected)
    close([belief.mean, belief.var], [2.0, 0.4])
    forecast = learner.forecast(belief, 2.0)
    close([forecast.mean, forecast.var], [4.0, st.nbinom(10.0, 5 / 7).var()])
    unit, _ = learner.step(learner.init(), None, 4)
    close([unit.shape, unit.per], [6.0, 2.5])


@pytest.mark.parametrize("dt", [None, 0.5, 3.0])
def test_forgetting_pulls_the_evidence_back_to_the_prior(dt: float | None) -> None:
    keep = 0.9 ** (1.0 if dt is None else dt)
    beta = credo.BetaBernoulli(2.0, 3.0, forgetting=0.9)
    moved = beta.predict(credo.Beta(*map(jnp.asarray, (6.0, 5.0, 0))), dt)
    close([moved.a, moved.b], [keep * 6 + (1 - keep) * 2, keep * 5 + (1 - keep) * 3])
    counts = credo.DirichletCategorical(2, 1.0, 0.9)
    later = counts.predict(credo.Dirichlet(jnp.asarray([4.0, 7.0]), jnp.asarray(0)), dt)
    close(later.counts, keep * np.array([4.0, 7.0]) + (1 - keep))
    gamma = credo.GammaPoisson(2.0, 1.0, 0.9)
    rate = gamma.predict(credo.Gamma(*map(jnp.asarray, (6.0, 5.0, 0))), dt)
    close([rate.shape, rate.per, rate.t], [keep * 6 + (1 - keep) * 2, keep * 5 + (1 - keep), 1])


LEARNERS: dict[str, tuple[Any, Any, list[Any]]] = {
    "beta": (credo.BetaBernoulli(), 1.0, [jnp.nan, 2.0, -1.0, jnp.inf, 0.5]),
    "dirichlet": (credo.DirichletCategorical(3), 1, [-1, 3, jnp.nan]),
    "gamma": (credo.GammaPoisson(), 3.0, [jnp.nan, -1.0, 2.5, jnp.inf]),
}


@pytest.mark.parametrize("name", list(LEARNERS))
def test_bad_data_and_weights_give_the_belief_back_bitwise(name: str) -> None:
    learner, good, bad = LEARNERS[name]
    start, _ = learner.update(learner.init(), None, good)
    for y in bad:
        belief, info = learner.update(start, None, y)
        assert belief == start and not bool(info.ok) and float(info.log_evidence) == 0.0, y
    for weight in (jnp.nan, -1.0, jnp.inf):
        belief, info = learner.update(start, None, good, weight=weight)
        assert belief == start and not bool(info.ok), weight
    belief, info = learner.update(start, None, good, weight=0.0)
    assert belief == start and bool(info.ok) and float(info.log_evidence) == 0.0
    twice, _ = learner.update(start, None, good, weight=2.0)
    once, _ = learner.update(learner.update(start, None, good)[0], None, good)
    assert twice == once


def test_an_exposure_must_be_one_number() -> None:
    learner = credo.GammaPoisson()
    with pytest.raises(CredoError, match="x must be the exposure, one number above 0; got shape"):
        learner.step(learner.init(), jnp.ones(4), 2.0)


def test_a_bad_exposure_counts_as_missing() -> None:
    learner = credo.GammaPoisson()
    for x in (0.0, -1.0, jnp.nan):
        belief, info = learner.update(learner.init(), x, 1.0)
        assert belief == learner.init() and not bool(info.ok)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LEARNERS))
def test_draws_have_the_beliefs_mean(name: str) -> None:
    learner, good, _ = LEARNERS[name]
    belief, _ = learner.step(learner.init(), None, good)
    n = 4000
    draws = np.asarray(learner.sample(belief, 0, (n,)))
    assert np.all(np.abs(draws.mean(0) - belief.mean) < 4.5 * np.sqrt(np.asarray(belief.var) / n))


@pytest.mark.slow
def test_impossible_priors_and_methods_are_refused() -> None:
    for make, message in [
        (lambda: credo.BetaBernoulli(a=0.0), "a must be finite and above 0"),
        (lambda: credo.BetaBernoulli(forgetting=0.0), "forgetting must be in"),
        (lambda: credo.DirichletCategorical(1), "classes must be a whole number at least 2"),
        (lambda: credo.GammaPoisson(per=-1.0), "per must be finite and above 0"),
        (
            lambda: credo.BetaBernoulli().forecast(credo.BetaBernoulli().init(), None, method="mc"),
            "closed form",
        ),
    ]:
        with pytest.raises(CredoError, match=message):
            make()  # type: ignore[no-untyped-call]
