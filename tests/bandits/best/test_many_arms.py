"""More arms than parameters: draws and variances come from the parameters, and all else is the same."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo import bandits
from credo.bandits.best import probability_best
from credo.likelihoods import LatentExpectation

ARMS, SIZE = 12, 3
RNG = np.random.default_rng(7)
ROWS = jnp.asarray(RNG.normal(size=(ARMS, SIZE)))


def distribution(noise: Any, link: bool = False) -> LatentExpectation:
    """What a learner of three weights believes of twelve rows."""
    likelihood = credo.Bernoulli() if link else credo.Normal(noise)
    learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, likelihood))
    agent = bandits.Agent(learner, ARMS, "actions")
    belief = agent.init(jnp.zeros(SIZE), var=1.0)
    for arm in (0, 3, 5, 3):
        belief, _ = agent.update(belief, ROWS, arm, 1.0)
    found = agent.expect(belief, ROWS)
    assert isinstance(found, LatentExpectation)
    return found


LAWS = {
    "known noise": lambda: distribution(0.5),
    "unknown noise": lambda: distribution(credo.InverseGamma(3.0, 1.0)),
    "labels": lambda: distribution(None, link=True),
}


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("name", LAWS)
def test_the_distribution_is_that_of_the_covariance(name: str) -> None:
    many = LAWS[name]()
    assert many.factor is not None and many.factor.shape == (ARMS, SIZE)
    plain = credo.replace(many, factor=None)
    np.testing.assert_allclose(many.factor @ many.factor.T, many.cov, atol=1e-12)
    np.testing.assert_allclose(many.mean, plain.mean, atol=1e-10)
    np.testing.assert_allclose(many.sd, plain.sd, atol=1e-10)
    count = 40_000
    draws = many.sample(jax.random.key(1), (count,))
    # five standard errors of a mean of numbers that are about normal, and of their products
    sds = np.std(draws, axis=0)
    np.testing.assert_allclose(np.mean(draws, axis=0), many.mean, atol=5 * sds.max() / count**0.5)
    other = plain.sample(jax.random.key(2), (count,))
    far = 5 * 2.0 * sds.max() ** 2 * (2 / count) ** 0.5
    np.testing.assert_allclose(np.cov(draws.T), np.cov(other.T), atol=far * (4 if many.noise else 1))


@pytest.mark.table
@pytest.mark.parametrize("name", LAWS)
def test_thompson_chooses_arms_as_often_as_by_the_covariance(name: str) -> None:
    many = LAWS[name]()
    allowed = jnp.arange(ARMS) != 2
    keys, draws = jax.random.split(jax.random.key(3), 300), 64

    def often(one: LatentExpectation) -> np.ndarray:
        ask = jax.jit(jax.vmap(lambda key: probability_best(one, allowed, key=key, draws=draws)))
        return np.asarray(ask(keys))

    first, second = often(many), often(credo.replace(many, factor=None))
    gap = first.mean(axis=0) - second.mean(axis=0)
    error = np.sqrt((first.var(axis=0) + second.var(axis=0)) / len(keys))
    assert first[:, 2].max() == 0 and np.all(np.abs(gap) <= 4.5 * error)
    assert np.count_nonzero(first.mean(axis=0) > 0.01) >= 4 and error.max() < 6e-3


@pytest.mark.table
@pytest.mark.parametrize("policy", [bandits.Thompson(), bandits.UCB(1.0)])
@pytest.mark.parametrize("several", [False, True])
def test_nothing_of_all_pairs_of_arms_is_computed(policy: bandits.policies.Policy, several: bool) -> None:
    one = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.5)))
    learner = credo.Experts([one, one]) if several else one
    agent = bandits.Agent(learner, 150, "actions", policy)
    belief, rows = agent.init(jnp.zeros(SIZE)), jnp.ones((150, SIZE))
    decide = jax.jit(lambda belief, rows, key: agent.decide(belief, rows, key))
    text = decide.lower(belief, rows, jax.random.key(0)).compile().as_text() or ""
    assert not re.search(r"150,150\]", text) and "potrf" not in text
    assert re.search(r"f64\[(2,)?150,3\]", text)


def test_an_expert_whose_variances_overflow_is_left_out() -> None:
    one = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.5)))
    agent = bandits.Agent(credo.Experts([one, one]), ARMS, "actions", bandits.UCB(1.0))
    belief = agent.init(jnp.zeros(SIZE))
    inner: Any = belief.belief
    root = inner.beliefs.cov.root.at[1].multiply(1e200)
    sick = credo.replace(
        inner, beliefs=credo.replace(inner.beliefs, cov=credo.replace(inner.beliefs.cov, root=root))
    )
    assert np.all(np.isfinite(agent.expect(credo.replace(belief, belief=sick), ROWS).sd))
