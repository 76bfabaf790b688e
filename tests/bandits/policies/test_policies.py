"""Every policy: probabilities that sum to 1, match what it says it does, and keep their floors."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import credo
from credo.bandits import UCB, Thompson
from credo.bandits.policies import (
    BayesUCB,
    Boltzmann,
    EpsilonGreedy,
    Fixed,
    Greedy,
    Guarded,
    InformationDirected,
    Policy,
    SquareCB,
    TopTwo,
    Uniform,
)
from credo.bandits.policies.guarded import nearest_between
from credo.bandits.policies.thompson import information_ratio
from credo.likelihoods import LatentExpectation

MEAN = jnp.array([0.0, 0.4, 0.5, 0.1])
COV = jnp.diag(jnp.array([1.0, 0.04, 0.09, 0.25]))
LAW = LatentExpectation(credo.Normal(1.0), MEAN[:, None], COV)
ALL = jnp.ones(4, bool)
POLICIES: list[Policy] = [
    Thompson(),
    UCB(1.0),
    BayesUCB(),
    EpsilonGreedy(0.3, decay=0.5),
    Greedy(),
    SquareCB(10.0),
    TopTwo(beta=0.6),
    InformationDirected(draws=512),
    Boltzmann(0.2),
    Uniform(),
    Fixed(2),
    Guarded(Thompson(), floors=0.05, caps=jnp.array([1.0, 0.6, 0.6, 1.0]), holdout=0.1, baseline=1),
]


@jax.jit
def _pmf(policy: Policy, allowed: jax.Array, t: jax.Array, key: jax.Array) -> jax.Array:
    return policy.pmf(LAW, allowed, t, key)


def _at(policy: Policy, t: int = 3, allowed: jax.Array = ALL) -> np.ndarray:
    return np.asarray(_pmf(policy, allowed, jnp.asarray(t), jax.random.key(0)))


def _agree(pmf: np.ndarray, choices: np.ndarray) -> None:
    """Chi-square against 10^5 choices, at a level that a right policy fails once in 10^4 keys."""
    counts, kept = np.bincount(choices, minlength=4), pmf > 0
    assert counts[~kept].sum() == 0
    if kept.sum() > 1:
        expected = pmf[kept] / pmf[kept].sum() * len(choices)
        assert scipy.stats.chisquare(counts[kept], expected).pvalue > 1e-4


@pytest.mark.table
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_probabilities_sum_to_one_mask_and_keep_the_floor(policy: Policy) -> None:
    policy = credo.replace(policy, floor=0.03)
    pmf = _at(policy)
    np.testing.assert_allclose(pmf.sum(), 1.0, atol=1e-12)
    assert pmf.min() >= 0.03 - 1e-12
    masked = _at(policy, allowed=jnp.array([True, False, True, True]))
    np.testing.assert_allclose(masked.sum(), 1.0, atol=1e-12)
    assert masked[1] == 0.0 and masked[[0, 2, 3]].min() >= 0.03 - 1e-12
    np.testing.assert_array_equal(_at(policy, allowed=jnp.zeros(4, bool)), 0.0)
    choices = jax.random.categorical(jax.random.key(1), jnp.log(jnp.asarray(pmf)), shape=(100_000,))
    _agree(pmf, np.asarray(choices))


def test_thompson_and_top_two_choose_as_their_draws_would() -> None:
    draws = np.random.default_rng(0).normal(MEAN, np.sqrt(np.diag(COV)), (300_000, 4))
    best = draws.argmax(axis=1)
    _agree(_at(Thompson()), best[:100_000])
    leaders, again, rest = np.split(best, 3)
    coin = np.random.default_rng(1).random(100_000) < 0.6
    shares = np.bincount(rest, minlength=4) / len(rest)
    # the challenger: draws until one differs from the leader, that is, from the shares of the others
    others = np.where(np.arange(4)[None] == leaders[:, None], 0.0, shares[None])
    others /= others.sum(axis=1, keepdims=True)
    pick = (np.random.default_rng(2).random(100_000)[:, None] > np.cumsum(others, axis=1)).sum(axis=1)
    challengers = np.where(again != leaders, again, np.minimum(pick, 3))
    expected = np.bincount(np.where(coin, leaders, challengers), minlength=4) / 100_000
    np.testing.assert_allclose(_at(TopTwo(beta=0.6)), expected, atol=0.008)


def test_the_width_of_ucb_grows_for_arms_that_are_known_less_than_the_best_known_one() -> None:
    mean = np.array([0.6, 0.3, 0.2, 0.1])
    var = np.array([1e-4, 4e-3, 1e-3, 2e-2])
    distribution = LatentExpectation(
        credo.Normal(1.0), jnp.asarray(mean)[:, None], jnp.diag(jnp.asarray(var))
    )

    def scores(growth: float, slack: float, least: float) -> np.ndarray:
        log_ratio = np.log(var / (slack * least))
        width = np.sqrt(0.7**2 + growth * np.maximum(0.0, log_ratio))
        return np.asarray(mean + width * np.sqrt(var))

    chosen = []
    for growth, slack in ((0.0, 1.0), (1.5, 1.0), (8.0, 1.0), (8.0, 20.0), (8.0, 300.0)):
        policy = UCB(0.7, growth, slack)
        wanted = np.argmax(scores(growth, slack, var.min()))
        np.testing.assert_array_equal(policy.pmf(distribution), np.arange(4) == wanted)
        chosen.append(int(wanted))
    assert chosen == [0, 0, 3, 3, 0]
    # the best known arm is one of those that are allowed
    allowed = jnp.array([False, True, True, True])
    wanted = np.argmax(np.where(allowed, scores(8.0, 2.0, 1e-3), -np.inf))
    np.testing.assert_array_equal(UCB(0.7, 8.0, 2.0).pmf(distribution, allowed), np.arange(4) == wanted)
    # a mean that is known exactly leaves the width as it is
    known = LatentExpectation(credo.Normal(1.0), jnp.asarray(mean)[:, None], jnp.zeros((4, 4)))
    np.testing.assert_array_equal(UCB(0.7, 1.5).pmf(known), [1.0, 0.0, 0.0, 0.0])


@pytest.mark.slow
def test_policies_have_their_formulas() -> None:
    mean, sd = np.asarray(MEAN), np.sqrt(np.diag(COV))
    np.testing.assert_array_equal(_at(UCB(1.0)), np.arange(4) == np.argmax(mean + sd))
    level = 1 - 1 / 4.0
    bound = scipy.stats.norm.ppf(level, mean, sd)
    np.testing.assert_array_equal(_at(BayesUCB()), np.arange(4) == np.argmax(bound))
    gamma = 10.0 * np.sqrt(4.0)
    inverse = 1 / (4 + gamma * (0.5 - mean[[0, 1, 3]]))
    np.testing.assert_allclose(_at(SquareCB(10.0))[[0, 1, 3]], inverse, atol=1e-12)
    np.testing.assert_allclose(_at(EpsilonGreedy(0.3, decay=0.5)), [0.0375, 0.0375, 0.8875, 0.0375])
    weights = np.exp(mean / 0.2)
    np.testing.assert_allclose(_at(Boltzmann(0.2)), weights / weights.sum(), atol=1e-12)
    # with nothing to tell arms apart, ties are shared
    tied = LatentExpectation(credo.Normal(1.0), jnp.zeros((4, 1)), jnp.eye(4))
    for policy in (Greedy(), UCB(2.0), SquareCB(5.0), Thompson()):
        np.testing.assert_allclose(policy.pmf(tied), 0.25, atol=1e-9)


def test_information_directed_sampling_is_best_over_all_pairs() -> None:
    values = LAW.sample(jax.random.key(0), (512,))
    regret, gain = (np.asarray(part) for part in information_ratio(values, ALL))
    best = np.argmax(np.asarray(values), axis=1)
    centre = np.asarray(values).mean(axis=0)
    moved = [
        np.mean(best == b) * (np.asarray(values)[best == b].mean(axis=0) - centre) ** 2 for b in range(4)
    ]
    np.testing.assert_allclose(gain, np.sum(moved, axis=0), atol=1e-12)
    shares = np.linspace(0.0, 1.0, 20_001)
    least = min(
        np.min(((q := shares) * regret[i] + (1 - q) * regret[j]) ** 2 / (q * gain[i] + (1 - q) * gain[j]))
        for i, j in product(range(4), repeat=2)
    )
    pmf = _at(InformationDirected(draws=512))
    found = (pmf @ regret) ** 2 / (pmf @ gain)
    assert found <= least * (1 + 1e-9)
    assert (pmf > 0).sum() <= 2


def test_bounds_are_met_by_the_nearest_probabilities() -> None:
    rng = np.random.default_rng(0)
    project = jax.jit(nearest_between)
    for _ in range(20):
        wanted, low, high = rng.dirichlet(np.ones(5)), rng.uniform(0, 0.15, 5), rng.uniform(0.2, 0.9, 5)
        found = np.asarray(project(jnp.asarray(wanted), jnp.asarray(low), jnp.asarray(high)))
        np.testing.assert_allclose(found.sum(), 1.0, atol=1e-12)
        assert np.all(found >= low - 1e-12) and np.all(found <= high + 1e-12)
        # the least-squares projection, by a general solver
        solved = scipy.optimize.minimize(
            lambda p, wanted=wanted: np.sum((p - wanted) ** 2),
            np.full(5, 0.2),
            jac=lambda p, wanted=wanted: 2 * (p - wanted),
            bounds=list(zip(low, high, strict=True)),
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        assert np.sum((found - wanted) ** 2) <= solved.fun + 1e-9


def test_a_guard_keeps_bounds_holdout_and_forbidden_arms() -> None:
    guard = Guarded(Greedy(), floors=jnp.array([0.1, 0.0, 0.0, 0.0]), caps=0.7, forbidden=(3,))
    np.testing.assert_allclose(_at(guard), [0.15, 0.15, 0.7, 0.0], atol=1e-12)
    np.testing.assert_allclose(_at(Guarded(Fixed(2), holdout=0.2)), [0.05, 0.05, 0.85, 0.05], atol=1e-12)
    held = _at(Guarded(Fixed(2), holdout=0.2, baseline=0))
    np.testing.assert_allclose(held, [0.2, 0.0, 0.8, 0.0], atol=1e-12)
    # where a step allows too few arms for the caps, they rise just enough
    few = _at(Guarded(Greedy(), caps=0.3), allowed=jnp.array([True, True, False, False]))
    np.testing.assert_allclose(few, [0.5, 0.5, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"floors": 0.3}, "floors must sum to at most 1"),
        ({"caps": 0.2}, "caps must sum to at least 1"),
        ({"floors": 0.2, "caps": jnp.array([1.0, 0.1, 1.0, 1.0])}, "floors must not be above"),
        ({"floors": jnp.zeros(3)}, "floors must be a number or 4 numbers"),
        ({"forbidden": (4,)}, "forbidden must be in"),
        ({"forbidden": (0, 1, 2, 3)}, "forbidden must leave"),
        ({"forbidden": (1,), "baseline": 1}, "baseline must not be forbidden"),
        ({"holdout": 1.5}, "holdout must be in"),
    ],
)
def test_impossible_bounds_are_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(credo.CredoError, match=sentence):
        Guarded(Uniform(), **settings).pmf(LAW)  # type: ignore[arg-type]


def test_bad_settings_are_refused() -> None:
    for make in (
        lambda: Thompson(floor=1.5),
        lambda: Thompson(draws=0),
        lambda: UCB(-1.0),
        lambda: UCB(1.0, -1.0),
        lambda: UCB(1.0, 1.0, 0.5),
        lambda: EpsilonGreedy(1.5),
        lambda: SquareCB(-1.0),
        lambda: TopTwo(beta=2.0),
        lambda: InformationDirected(draws=1),
        lambda: Boltzmann(0.0),
        lambda: Fixed(-1),
        lambda: Fixed(9).pmf(LAW),
        lambda: BayesUCB(exponent=-1.0),
        lambda: BayesUCB(draws=0),
    ):
        with pytest.raises(credo.CredoError):
            make()
    assert BayesUCB(draws=1).draws == 1


@pytest.mark.slow
def test_policies_map_over_their_numbers() -> None:
    widths = jnp.array([0.0, 1.0, 5.0])
    pmfs = jax.vmap(lambda width: UCB(width).pmf(LAW))(widths)
    np.testing.assert_array_equal(np.argmax(pmfs, axis=1), [2, 0, 0])
    slope = jax.grad(lambda temperature: Boltzmann(temperature).pmf(LAW)[2])(jnp.asarray(0.2))
    assert float(slope) < 0
