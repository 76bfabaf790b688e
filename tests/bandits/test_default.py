"""The default agent: it learns without settings, and its bits do not depend on who runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo import bandits
from credo.adapt import LossRate
from credo.bandits import environments, evaluation
from credo.bandits.environments import Context, Environment
from credo.core.records import record, static_field
from credo.likelihoods import LatentExpectation


@pytest.fixture(scope="module")
def report() -> Any:
    """The default agent on 150 digits-like points in four clusters, which no linear score separates."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 2)).astype(np.float32)
    labels = (x[:, 0] * x[:, 1] > 0).astype(int)
    world = environments.Classification(jnp.asarray(x), labels)
    return bandits.play(bandits.default_agent(2, 2), world, seeds=2)


@pytest.mark.slow
def test_it_learns_what_is_not_linear(report: Any) -> None:
    assert report.refused == 0
    assert report.regrets[:, -50:].mean() < 0.2


@pytest.mark.slow
def test_waves_are_trusted_where_nothing_is_linear(report: Any) -> None:
    weights = np.exp(np.asarray(report.beliefs.belief.belief.log_weights))
    assert weights.shape == (2, 3)
    np.testing.assert_allclose(weights.sum(1), 1.0, rtol=1e-4)
    assert np.all(weights[:, :2].sum(1) > 0.8)
    assert np.all(weights > 1e-9)  # any member may still take over


@pytest.mark.slow
def test_it_explores_less_where_rewards_have_little_noise(report: Any) -> None:
    """Standard deviations are in units of the errors so far, and those of the first rewards are large."""
    learner: Any = bandits.default_agent(2, 2).agent.learner
    factor = np.asarray(jax.vmap(learner.factor)(report.beliefs.belief))
    errors = np.asarray(report.beliefs.belief.errors.mean)
    np.testing.assert_allclose(factor, np.sqrt(np.minimum(errors / 0.1, 1.0)), rtol=1e-6)
    assert float(learner.factor(bandits.default_agent(2, 2).init(0).belief)) == 1.0
    assert float(bandits.default_agent(2, 2).init(0).belief.errors.mean) == pytest.approx(
        0.5
    )  # five times 0.1
    calm = environments.KnownRewards(jnp.ones((200, 2)), jnp.tile(jnp.array([[0.0, 1.0]]), (200, 1)))
    after = bandits.play(bandits.default_agent(2, 2), calm, seeds=2).beliefs.belief
    assert np.all(np.asarray(jax.vmap(learner.factor)(after)) < 0.8)


def test_every_arm_has_a_chance(report: Any) -> None:
    assert bandits.default_agent(2, 2).agent.policy.floor == 1e-3
    assert bandits.default_agent(100, 2).agent.policy.floor == 1e-4
    assert np.asarray(report.propensities).min() >= 1e-3


@pytest.mark.slow
def test_it_follows_a_world_that_turns() -> None:
    """Rewards are linear, and at row 300 each changes its sign."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3)).astype(np.float32)
    sign = np.where(np.arange(400) < 300, 1.0, -1.0)[:, None]
    rewards = sign * x @ rng.normal(size=(3, 2)) + 0.1 * rng.normal(size=(400, 2))
    world = environments.KnownRewards(jnp.asarray(x), jnp.asarray(rewards, jnp.float32), shuffle=False)
    report = bandits.play(bandits.default_agent(2, 3), world, seeds=2)
    assert report.regrets[:, 200:300].mean() < 0.05
    assert report.regrets[:, 350:].mean() < 0.15


@pytest.mark.slow
def test_every_door_takes_it_as_it_is(tmp_path: Path) -> None:
    start = bandits.default_agent(2, 2, policy=bandits.Thompson(floor=0.1))
    x = np.array([0.3, -1.0], np.float32)
    one = bandits.Bandit(start, ["a", "b"])
    other = bandits.Bandit(
        start.agent, ["a", "b"], belief=start.init(), params=start.params(jax.random.key(0)), var=start.var
    )
    assert one.decide(x) == other.decide(x) and one.explain("0-0").prior_sd == other.explain("0-0").prior_sd
    assert one.reward("0-0", 1.0) and bandits.Bandit.load(one.save(tmp_path / "b.credo"), start).version == 1
    assert bandits.Bandit(start).decide({"age": 3.0}).id == "0-0"  # by name, in as many places
    allowed = np.ones((1, 2), bool)
    pmfs = [
        evaluation.AgentPolicy(agent, start.init()).pmfs(x[None], allowed) for agent in (start, start.agent)
    ]
    np.testing.assert_array_equal(pmfs[0], pmfs[1])


@pytest.mark.parametrize("wrong", [None, "default", bandits.default_agent, credo.BetaBernoulli()])
def test_what_is_no_agent_is_refused(wrong: Any, tmp_path: Path) -> None:
    world = environments.BernoulliArms(chances=np.array([0.1, 0.5]))
    saved = bandits.Bandit(bandits.Agent(credo.BetaBernoulli(), 2, "arms")).save(tmp_path / "b.credo")
    doors: list[Any] = [
        lambda: bandits.play(wrong, world, steps=2),
        lambda: bandits.Bandit(wrong),
        lambda: evaluation.AgentPolicy(wrong, None),
        lambda: wrong is None or bandits.Bandit.load(saved, wrong),
    ]
    for door in doors[: 3 if wrong is None else 4]:
        with pytest.raises(credo.CredoError, match=r"agent must be a bandits\.Agent, or what"):
            door()


def test_wide_contexts_have_no_covariance_over_them() -> None:
    start = bandits.default_agent(3, 1000)
    assert np.shape(start.params(jax.random.key(0))) == (401, 1)


@pytest.mark.slow
def test_a_reward_among_many_arms_learns_in_one() -> None:
    bandit = bandits.Bandit(bandits.default_agent(40, 2))
    assert bandit.agent.learner.learner.size == 3  # type: ignore[attr-defined]
    assert bandit.reward(bandit.decide(np.ones(2)).id, 1.0)
    tell = bandit._engine.programs._tell
    assert tell is not None and tell.arm is not None  # the line walks in all arms, and waves in one


@pytest.mark.parametrize(
    ("arms", "waves", "var"), [(2, 128, 0.3), (18, 128, 0.72), (75, 63, 1.0), (1000, 32, 1.0)]
)
def test_many_arms_have_few_waves_and_a_wide_prior(arms: int, waves: int, var: float) -> None:
    start = bandits.default_agent(arms, 5)
    assert np.shape(jax.tree.leaves(start.params(jax.random.key(0)))[0])[0] == waves + 5 + 1
    assert jax.tree.leaves(start.var)[0] == pytest.approx(var)


def test_waves_and_lines_take_over_as_rarely_from_each_other() -> None:
    learner: Any = bandits.default_agent(3, 2).agent.learner.learner  # type: ignore[attr-defined]
    rates = np.asarray(learner.switching)
    np.testing.assert_allclose(rates.sum(axis=1), 1.0, atol=1e-7)
    np.testing.assert_allclose([*rates[1:, 0], rates[0, 1:].sum()], 1e-4, rtol=1e-3)
    assert rates[1, 2] == rates[2, 1] > 1e-4
    assert isinstance(learner.learning_rate, LossRate)


def test_time_moves_the_lines_of_all_arms_without_decompositions() -> None:
    start = bandits.default_agent(3, 2)
    rewards = start.agent.rewards
    moved = jax.make_jaxpr(lambda belief: rewards.time_update(belief, None))(start.init(0))
    assert "qr" not in str(moved)  # two for each arm took most of the time of a decision among many


@pytest.mark.slow
def test_features_of_actions() -> None:
    start = bandits.default_agent(3, 2, design="actions")
    belief = start.init(0)
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2)), jnp.float32)
    choice = start.agent.decide(belief, rows, 0)
    belief, info = start.agent.update(belief, rows, choice.arm, 1.0)
    assert bool(info.ok)


@record
class OneContext(Environment[jax.Array]):
    """Three arms that pay .35, .45 and .6, in a context that never changes."""

    arms: int = static_field(default=3)

    def start(self, key: Any) -> jax.Array:
        return jnp.asarray([0.35, 0.45, 0.6])

    def context(self, state: jax.Array) -> Context:
        return Context(jnp.ones(1), jnp.ones(3, bool))

    def means(self, state: jax.Array) -> jax.Array:
        return state

    def reward(self, state: jax.Array, arm: Any, key: Any) -> jax.Array:
        return jax.random.bernoulli(key, state[arm]).astype(state.dtype)

    def advance(self, state: jax.Array, arm: Any, key: Any) -> jax.Array:
        return state


def test_the_default_tries_an_arm_again_once_another_is_far_better_known() -> None:
    """An unlucky arm has a mean of 0.3 after ten rewards, and one of 0.45 is tried more and more often."""
    policies = [bandits.default_agent(2, inputs).agent.policy for inputs in (1, 3)]
    mean = jnp.array([[0.3], [0.45]])
    chosen: list[list[int]] = []
    for policy in (*policies, bandits.UCB(0.7, floor=1e-3)):
        row = []
        for count in (10, 40, 1000):
            known = LatentExpectation(
                credo.Normal(0.25), mean, jnp.diag(jnp.array([0.25 / 10, 0.25 / count]))
            )
            row.append(int(np.argmax(policy.pmf(known))))
        chosen.append(row)
    # in contexts of three numbers arms that are tried equally often are known as unequally as 3 to 1
    assert chosen == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


@pytest.mark.thorough
def test_an_arm_that_was_unlucky_at_first_is_tried_again() -> None:
    """With a fixed width, three runs in twenty stay with a wrong arm."""
    widths = {"default": None, "fixed": bandits.UCB(0.7, floor=1e-3)}
    lost = {
        name: bandits.play(
            bandits.default_agent(3, 1, policy=policy), OneContext(), steps=1500, seeds=16, key=7
        ).regrets.sum(axis=1)
        for name, policy in widths.items()
    }
    thompson = bandits.Agent(credo.BetaBernoulli(), 3, "arms")
    world = environments.BernoulliArms(chances=np.array([0.35, 0.45, 0.6]))
    lost["thompson"] = bandits.play(thompson, world, steps=1500, seeds=16, key=7).regrets.sum(axis=1)
    assert np.median(lost["fixed"]) < 10 and lost["fixed"].max() > 200
    assert lost["default"].mean() < lost["thompson"].mean() and lost["default"].max() < 120


def test_without_contexts_there_is_a_default_too(tmp_path: Path) -> None:
    start = bandits.default_agent(2, 0)
    world = environments.GaussianArms(initial=np.array([0.0, 1.0]), var=0.1)
    report = bandits.play(start, world, steps=60, seeds=2)
    assert report.arms[:, 30:].mean() > 0.9
    bandit = bandits.Bandit(start, ["a", "b"])
    assert bandit.reward(bandit.decide().id, 1.0)
    again = bandits.Bandit.load(bandit.save(tmp_path / "b.credo"))
    assert again.decide().mean == bandit.decide().mean


@pytest.mark.parametrize(("factor", "shift"), [(0.25, 0.0), (1024.0, 0.0), (1.0, 100.0)])
def test_without_contexts_the_units_of_rewards_do_not_matter(factor: float, shift: float) -> None:
    start = bandits.default_agent(3, 0)
    coins = np.random.default_rng(0).random((40, 3)) < [0.2, 0.5, 0.8]

    def choices(factor: float, shift: float) -> list[int]:
        belief = start.init()
        chosen = []
        for step, coin in enumerate(coins):
            arm = int(start.agent.decide(belief, np.zeros(0), step).arm)
            belief, info = start.agent.update(belief, np.zeros(0), arm, factor * float(coin[arm]) + shift)
            assert info.ok
            chosen.append(arm)
        return chosen

    plain = choices(1.0, 0.0)
    assert len(set(plain)) > 1
    assert choices(factor, shift) == plain


@pytest.mark.parametrize("change", [{"arms": 1}, {"inputs": -1}, {"design": "rows"}])
def test_what_cannot_be_is_refused(change: Any) -> None:
    with pytest.raises(credo.CredoError, match="inputs"):
        bandits.default_agent(3, 0, design="actions")
    with pytest.raises(credo.CredoError, match=next(iter(change))):
        bandits.default_agent(**({"arms": 3, "inputs": 2} | change))


def test_a_wrapper_around_designs_takes_a_row_as_that_of_the_first_arm() -> None:
    context, arm = bandits.default_agent(2, 2).agent.rewards.inputs_of(np.ones(2))
    assert np.shape(context) == (2,) and int(arm) == 0  # by which a saved agent is checked when it is loaded
