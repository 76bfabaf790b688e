"""Generators draw what they say, within four standard errors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bandits.environments.worlds import run

import credo
from credo.bandits import environments
from credo.core.errors import CredoError

N = 4000


def seen(world: environments.AnyEnvironment, arm: int = 0) -> Any:
    return run(world, jax.random.key(1), jnp.full(N, arm))[1]


def near(sample: np.ndarray, mean: float) -> bool:
    """Whether the mean of independent draws is within four standard errors of what it should be."""
    return bool(abs(sample.mean() - mean) < 4 * sample.std() / np.sqrt(len(sample)))


@pytest.mark.slow
def test_rewards_have_the_means_that_regret_is_counted_from() -> None:
    worlds: list[environments.AnyEnvironment] = [
        environments.BernoulliArms(chances=jnp.array([0.3, 0.8]), motion=environments.Drifts(0.01)),
        environments.GaussianArms(2, var=4.0, prior_mean=3.0, motion=environments.Jumps(0.05)),
        environments.ContextualArms(2, 3, likelihood=credo.Bernoulli()),
        environments.Products(2, 3, likelihood=credo.Poisson(), prior_var=0.1),
        environments.Wheel(0.7, sd=0.5),
    ]
    for world in worlds:
        steps = seen(world, 1)
        assert near(np.asarray(steps.reward - steps.means[:, 1]), 0.0), world


def test_drift_walks_with_its_variance_and_chances_stay_between_0_and_1() -> None:
    moves = np.diff(
        seen(environments.GaussianArms(5, motion=environments.Drifts(0.04))).means, axis=0
    ).ravel()
    assert near(moves**2, 0.04)
    assert near(moves[1:] * moves[:-1], 0.0)
    chances = np.asarray(seen(environments.BernoulliArms(5, motion=environments.Drifts(0.003))).means)
    assert chances.min() == 0 and chances.max() == 1
    inside = (chances > 0.3) & (chances < 0.7)
    assert near(np.diff(chances, axis=0)[inside[:-1]] ** 2, 0.003)


def test_jumps_come_with_their_hazard_to_each_arm_or_to_all() -> None:
    changed = np.diff(seen(environments.BernoulliArms(4, motion=environments.Jumps(0.1))).means, axis=0) != 0
    assert near(changed.ravel(), 0.1)
    assert near(changed.all(axis=1), 0.1**4) or not changed.all(axis=1).any()
    together = (
        np.diff(
            seen(environments.GaussianArms(4, motion=environments.Jumps(0.1, together=True))).means, axis=0
        )
        != 0
    )
    assert near(together[:, 0], 0.1)
    assert (together == together[:, :1]).all()


def test_what_arms_are_worth_is_drawn_with_its_variance_at_the_start() -> None:
    keys = jax.random.split(jax.random.key(5), N)
    worlds: list[Any] = [
        environments.ContextualArms(2, 3, prior_var=4.0),
        environments.Products(2, 3, prior_var=4.0),
        environments.GaussianArms(6, prior_var=4.0, prior_mean=-1.0),
    ]
    for world in worlds:
        states = jax.vmap(world.start)(keys)
        worth = np.asarray(getattr(states, "weights", states)).reshape(N, -1)
        centre = -1.0 * (world.arms == 6)
        assert worth.shape[1] in (3, 6) and near(worth.ravel() > centre, 0.5), world
        assert near(np.abs(worth - centre).ravel() < 2.0, 0.682689), world  # within a standard deviation


def test_contexts_are_drawn_by_their_distribution_and_products_are_replaced() -> None:
    x = np.asarray(seen(environments.ContextualArms(2, 3)).context.x)
    assert near(x.ravel(), 0.0) and near(x.ravel() ** 2, 1.0)
    products = np.asarray(seen(environments.Products(2, 3, turnover=0.25, distribution="sphere")).context.x)
    np.testing.assert_allclose(np.linalg.norm(products, axis=2), 1)
    assert near((np.diff(products, axis=0) != 0).all(axis=2).ravel(), 0.25)


def test_the_wheel_has_its_regions_and_its_oracle() -> None:
    delta = 0.9
    steps = seen(environments.Wheel(delta))
    x, means = np.asarray(steps.context.x), np.asarray(steps.means)
    rim = (x**2).sum(axis=1) > delta**2
    assert near(rim, 1 - delta**2)
    assert near((x**2).sum(axis=1), 0.5)
    quadrant = 2 * (x[:, 0] <= 0) + (x[:, 1] <= 0)
    np.testing.assert_array_equal(means.argmax(axis=1), np.where(rim, quadrant, 4))
    assert all(near(quadrant == arm, 0.25) for arm in range(4))
    assert near(means.max(axis=1), 50 * (1 - delta**2) + 1.2 * delta**2)
    assert near(np.asarray(steps.reward) - means[:, 0], 0.0)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: environments.BernoulliArms(), "arms must be a whole number at least 1; got 0"),
        (lambda: environments.BernoulliArms(chances=np.array([0.5, 1.5])), r"chances must be in \[0, 1\]"),
        (
            lambda: environments.BernoulliArms(3, chances=np.array([0.5])),
            r"chances must have the shape \(3,\)",
        ),
        (lambda: environments.GaussianArms(2, var=np.ones(3)), r"var must be a number or \(2,\).*\(3,\)"),
        (
            lambda: environments.GaussianArms(2, initial=np.ones((2, 1))),
            r"initial must have the shape \(2,\)",
        ),
        (lambda: environments.Drifts(-1.0), "var must be finite and at least 0; got -1.0"),
        (lambda: environments.Jumps(2.0), r"hazard must be in \[0, 1\]; got 2.0"),
        (
            lambda: environments.ContextualArms(distribution="cube"),  # type: ignore[arg-type]
            "distribution must be one of normal, sphere; got 'cube'",
        ),
        (lambda: environments.ContextualArms(likelihood="normal"), "likelihood must be one of credo's"),  # type: ignore[arg-type]
        (lambda: environments.Products(likelihood=credo.Categorical(3)), "3 outputs; this one has 1"),
        (lambda: environments.BernoulliArms(2, motion="drift"), "motion must be Still"),  # type: ignore[arg-type]
        (lambda: environments.Wheel(1.5), r"delta must be in \[0, 1\]; got 1.5"),
        (lambda: environments.RewardUnit(environments.Wheel(), 0.0), "divisor must be finite and above 0"),
        (lambda: environments.RewardUnit("wheel", 2.0), "environment must be an Environment"),  # type: ignore[arg-type]
        (
            lambda: environments.Intercept(environments.BernoulliArms(2)),
            r"environment must have one vector \(d,\)",
        ),
        (
            lambda: environments.ArmsByChance(environments.Wheel(), present=6),
            "present must be a whole number in 1..5",
        ),
        (
            lambda: environments.ArmsByPlan(environments.Wheel(), np.ones((3, 2))),
            r"plan must have the shape \(T, 5\)",
        ),
        (
            lambda: environments.ArmsByPlan(environments.Wheel(), np.eye(6, 5)),
            "step 5 .counted from 0. has none",
        ),
    ],
)
def test_what_makes_no_world_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(CredoError, match=sentence):
        make()
