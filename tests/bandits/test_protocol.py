"""Every learner and wrapper in every design, and every policy on every kind of distribution that they state.

A policy sees nothing of an agent but its distribution of the expected rewards. So learners x designs are
crossed here with one policy, the kinds of their distributions are collected, and these kinds are crossed with
the policies: together that is learners x designs x policies.

Compiling everything would take minutes, so half of it is traced only: a trace finds whatever is missing or
refused, or has another shape or dtype after a step. A design puts its own model into a learner, and asks it
by the verbs that all learners have; so a learner takes two compiled steps in one design, and is traced in
the others. The base class makes the pmf of every policy sum to 1 and vanish where an arm is forbidden,
whatever the distribution; so policies are traced here. Their numbers stand in `test_policies.py` and
`test_best.py`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bandits.policies.test_policies import POLICIES
from tests.bandits.rewarded import DESIGNS, NAMES, agent_of
from tests.bandits.setups import ARMS

import credo
from credo import bandits
from credo.core.groups import Groups

ALLOWED = jnp.array([True, True, False, True])

KINDS = {
    "arms": ["root", "unknown noise", "logistic", "sgd", "Beta", "Gamma", "run length", "unlike experts"],
    "outputs": ["root", "unknown noise", "sgd", "etkf", "run length", "robust in run length in experts"],
    "pairs": ["run length", "unlike experts", "Beta, changing"],
    "actions": ["root"],
}
KINDS["arms"] += ["Beta, changing", "robust in run length in experts"]
"""Agents that have distributions of all kinds between them."""

DISTRIBUTIONS = {
    *("Latent()", "Latent(noise)", "Drawn()", "Weighted(Latent())", "Weighted(Weighted(Latent()))"),
    *("Weighted(Latent(), Latent())", "Weighted(Independent(Conjugate(Beta)))"),
    *("Independent(Latent())", "Independent(Latent(noise))", "Independent(Drawn())"),
    *("Independent(Conjugate(Beta))", "Independent(Conjugate(Gamma))"),
    *("Independent(Weighted(Latent()))", "Independent(Weighted(Latent(), Latent()))"),
    *("Independent(Weighted(Conjugate(Beta)))", "Independent(Weighted(Weighted(Latent())))"),
}
"""The kinds of distributions that agents state."""


def _two_steps(agent: Any, belief: Any, x: Any, reward: Any) -> Any:
    """Decide and learn twice at one context, in a scan."""

    def step(belief: Any, key: Any) -> Any:
        choice = agent.decide(belief, x, key, ALLOWED)
        later, info = agent.update(belief, x, choice.arm, reward, key=key)
        return later, (choice, info)

    return jax.lax.scan(step, belief, jax.random.split(jax.random.key(0)))


_RUN = jax.jit(_two_steps)


def _kind(distribution: Any) -> str:
    """The classes of a distribution, and whether its noise is known."""
    parts = getattr(distribution, "parts", None)
    inside = parts.parts if isinstance(parts, Groups) else () if parts is None else (parts,)
    words = [_kind(part) for part in inside] + ["noise"] * (getattr(distribution, "noise", None) is not None)
    belief = [type(distribution.belief).__name__] if hasattr(distribution, "belief") else []
    return f"{type(distribution).__name__.removesuffix('Expectation')}({', '.join([*words, *belief])})"


@pytest.mark.table
@pytest.mark.parametrize("name", NAMES)
def test_every_learner_decides_and_learns_in_every_design(name: str) -> None:
    for number, design in enumerate(DESIGNS[name]):
        agent, belief, x, reward = agent_of(name, design, bandits.policies.Greedy(floor=0.1))
        assert _kind(jax.eval_shape(agent.rewards.expect_arms, belief, x)) in DISTRIBUTIONS
        if number:
            jax.eval_shape(_two_steps, agent, belief, x, reward)
            continue
        later, (choice, info) = _RUN(agent, belief, x, reward)
        pmf, mean = np.asarray(choice.pmf), np.asarray(choice.mean)
        arm, again = np.asarray(choice.arm)
        np.testing.assert_allclose(pmf.sum(axis=1), 1.0, atol=1e-12)
        assert np.all(pmf[:, 2] == 0) and np.all(pmf[:, [0, 1, 3]] >= 0.1 - 1e-12)
        assert np.array_equal(choice.propensity, pmf[[0, 1], [arm, again]])
        assert np.all(info.ok) and np.all(np.isfinite(info.log_evidence)) and int(later.t) == 2
        assert np.all(np.isfinite(choice.sd)) and np.all(choice.sd >= 0)
        assert mean[1, arm] > mean[0, arm]  # the reward was above what was expected


@pytest.mark.slow
def test_every_policy_takes_every_distribution() -> None:
    met = set()
    for design, names in KINDS.items():
        for name in names:
            agent, belief, x, _ = agent_of(name, design, bandits.policies.Greedy())
            distribution = jax.eval_shape(agent.rewards.expect_arms, belief, x)
            if _kind(distribution) in met:
                continue
            met.add(_kind(distribution))
            pmfs = jax.eval_shape(_all_pmfs, distribution)
            assert pmfs.shape == (len(POLICIES), ARMS) and pmfs.dtype == jnp.float64, (name, design)
    assert met == DISTRIBUTIONS


def _all_pmfs(distribution: Any) -> jax.Array:
    """The pmf of each policy."""
    key, t = jax.random.key(0), jnp.asarray(5)
    return jnp.stack([policy.pmf(distribution, ALLOWED, t, key) for policy in POLICIES])


def test_learners_of_several_numbers_are_refused() -> None:
    for learner in (credo.DirichletCategorical(3), credo.RunLength(credo.DirichletCategorical(3), 0.1, 2)):
        agent = bandits.Agent(learner, ARMS, "arms")
        with pytest.raises(credo.CredoError, match="one reward"):
            jax.eval_shape(agent.rewards.expect_arms, agent.init(), None)
