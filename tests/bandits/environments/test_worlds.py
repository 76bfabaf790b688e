"""What holds for every environment: purity, shared data, masks, and rewards that agree."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bandits.environments.worlds import STEPS, WORLDS, run, run_in_a_loop, runs

from credo.bandits import environments


@pytest.mark.optimised
@pytest.mark.parametrize("name", ["bernoulli", "linear", "rows", "chance"])
def test_a_loop_and_a_scan_have_the_same_bits(name: str) -> None:
    world = WORLDS[name]
    # the programs of these keys compile in half the time
    key, arms = jax.random.key(5, impl="unsafe_rbg"), jnp.arange(STEPS) % world.arms
    scanned, looped = run(world, key, arms), run_in_a_loop(world, key, arms)
    for one, other in zip(*map(jax.tree.leaves, (scanned, looped)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.table
@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_played_under_many_keys_at_once(name: str) -> None:
    world = WORLDS[name]
    arms = jnp.arange(STEPS) % world.arms
    keys = jax.random.split(jax.random.key(5), 3)
    steps = runs(world, keys, arms)[1]
    allowed = np.asarray(steps.context.allowed)
    assert allowed.shape == (3, STEPS, world.arms) and allowed.any(axis=-1).all()
    assert (np.asarray(steps.reward[0]) != np.asarray(steps.reward[1])).any()
    chosen = allowed[:, np.arange(STEPS), arms]
    assert (np.asarray(steps.regret)[chosen] >= 0).all() or name == "replay"
    assert (world.design == "actions") == (name == "products")
    if name in ("wheel", "rows"):
        for several, one in zip(*map(jax.tree.leaves, (steps, run(world, keys[1], arms)[1])), strict=True):
            np.testing.assert_allclose(several[1], one, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "rows"])
def test_all_arms_can_be_pulled_where_regret_is_measured(name: str) -> None:
    world = WORLDS[name]
    state = world.start(0)
    rewards = world.pull_all(state, 1)
    assert len(set(rewards.tolist())) == world.arms
    for arm in range(world.arms):
        np.testing.assert_allclose(world.reward(state, arm, 1), rewards[arm], rtol=1e-12)


def test_arms_come_and_go_but_one_is_always_there() -> None:
    world = environments.ArmsByChance(
        environments.BernoulliArms(chances=np.full(3, 0.5)), 0.2, 0.4, present=2
    )
    _, steps = run(world, jax.random.key(0), jnp.zeros(4000, int))
    allowed = np.asarray(steps.context.allowed)
    assert allowed[0].tolist() == [True, True, False]
    assert allowed.any(axis=1).all()
    gone = allowed[:-1, 0] & ~allowed[1:, 0] & (allowed[:-1].sum(1) == 3)
    rows = (allowed[:-1].sum(1) == 3).sum()
    # with three arms there, one goes with probability .4, unless all three would
    chance = 0.4 - 0.4**3
    assert abs(gone.sum() / rows - chance) < 4 * np.sqrt(chance * (1 - chance) / rows)
    assert np.isnan(steps.reward[~allowed[:, 0]]).all() and not np.isnan(steps.reward[allowed[:, 0]]).any()


def test_a_plan_is_followed_and_its_last_row_goes_on() -> None:
    _, steps = run(WORLDS["plan"], jax.random.key(0), jnp.full(STEPS, 2))
    expected = [[True, False, True]] + [[False, True, True]] * (STEPS - 1)
    assert steps.context.allowed.tolist() == expected
    best = jnp.max(steps.means, axis=1, where=steps.context.allowed, initial=-jnp.inf)
    np.testing.assert_allclose(steps.regret, best - steps.means[:, 2])


def test_a_unit_changes_rewards_but_not_regret() -> None:
    wheel, arms = environments.Wheel(0.5), jnp.zeros(STEPS, int)
    key = jax.random.key(0)
    plain, divided = run(wheel, key, arms)[1], run(environments.RewardUnit(wheel, 50.0), key, arms)[1]
    np.testing.assert_allclose(divided.reward * 50, plain.reward)
    np.testing.assert_allclose(divided.regret, plain.regret, atol=1e-12)
    always = environments.RewardUnit(wheel, 50.0).best_constant()
    assert always is not None
    assert float(always.reward) == pytest.approx((0.75 * 50 + 3.25) / 4 / 50)
