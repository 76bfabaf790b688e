"""Agents: what they expect, how they choose, and that they learn the chosen arm alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.adapt.moments_reference import standardised
from tests.bandits.setups import ARMS, LINEAR, MODEL, NET, NETWORK, NOISE, ROWS, SIZE, XS, agent
from tests.tiers import few

import credo
from credo import bandits
from credo.bandits.agent import draw
from credo.bandits.rewards import Scaler

wrong: Any = bandits.Agent  # what a type checker would refuse
DESIGNS = ["arms", "outputs", "actions"]
PULLED = jnp.asarray(np.random.default_rng(1).integers(0, ARMS, 40), jnp.int32)
REWARDS = jnp.asarray(np.random.default_rng(2).normal(size=40))


def _played(design: str, count: int = 10, **options: Any) -> Any:
    one, belief, contexts = agent(design, **options)
    for x, arm, reward in zip(contexts[:count], PULLED, REWARDS, strict=False):
        belief, _ = one.update(belief, x, int(arm), float(reward))
    return one, belief, contexts


def test_arms_are_batch_regressions_of_their_own_rewards() -> None:
    one, belief, _ = _played("arms", 40)
    for arm in range(ARMS):
        mine = np.asarray(PULLED) == arm
        x, y = np.asarray(XS)[mine], np.asarray(REWARDS)[mine]
        cov = np.linalg.inv(x.T @ x / NOISE + np.eye(SIZE) / 2.0)
        inner = jax.tree.map(lambda leaf, arm=arm: leaf[arm], belief.belief.beliefs)
        np.testing.assert_allclose(inner.mean, cov @ x.T @ y / NOISE, rtol=1e-10)
        np.testing.assert_allclose(inner.cov.dense(), cov, rtol=1e-9, atol=1e-12)
        distribution = one.expect(belief, XS[0])
        np.testing.assert_allclose(distribution.var[arm], XS[0] @ cov @ XS[0], rtol=1e-9)


def test_features_of_actions_are_one_batch_regression() -> None:
    one, belief, _ = _played("actions", 40)
    x = np.asarray(ROWS)[np.arange(40), np.asarray(PULLED)]
    cov = np.linalg.inv(x.T @ x / NOISE + np.eye(SIZE) / 2.0)
    distribution: Any = one.expect(belief, ROWS[3])
    rows = np.asarray(ROWS[3])
    np.testing.assert_allclose(distribution.mean, rows @ cov @ x.T @ np.asarray(REWARDS) / NOISE, rtol=1e-9)
    np.testing.assert_allclose(distribution.cov, rows @ cov @ rows.T, rtol=1e-8, atol=1e-12)


@pytest.mark.slow
def test_outputs_are_observed_one_at_a_time() -> None:
    one, belief, _ = _played("outputs")
    model = credo.Model(lambda params, x: NET(params, x[0])[x[1]], credo.Normal(NOISE))
    learner = credo.lofi(model, rank=3)
    reference = learner.init(NET.init(0, (SIZE,)), var=2.0)
    for row in range(10):
        reference, _ = learner.step(reference, (XS[row], PULLED[row]), REWARDS[row])
    np.testing.assert_allclose(belief.belief.mean, reference.mean, rtol=1e-5, atol=1e-6)
    distribution = one.expect(belief, XS[20])
    for arm in range(ARMS):
        alone = learner.expect(reference, (XS[20], jnp.asarray(arm)))
        np.testing.assert_allclose(
            [distribution.mean[arm], distribution.var[arm]], [alone.mean[0], alone.var[0]], rtol=1e-5
        )


@pytest.mark.slow
def test_large_networks_pick_a_row_of_outer_products() -> None:
    net = credo.MLP(outputs=ARMS, hidden=(300,))
    wide = jnp.ones(30) / 30
    learner = credo.lofi(credo.Model(net, credo.Normal(NOISE)), rank=2)
    assert net.init(0, (30,))[0]["w"].size > 8192
    one = bandits.Agent(learner, ARMS, "outputs")
    belief = one.init(net.init(0, (30,)), var=0.1)
    before: Any = one.expect(belief, wide)
    after, _ = one.update(belief, wide, 2, float(before.mean[2]) + 0.01)
    move = (one.expect(after, wide).mean - before.mean) / 0.01
    np.testing.assert_allclose(move, before.cov[2] / (before.cov[2, 2] + NOISE), atol=2e-3)


@pytest.mark.table
@pytest.mark.parametrize("design", DESIGNS)
def test_choices_come_from_their_pmf_and_teach_nothing(design: Any) -> None:
    one, belief, contexts = _played(design)
    choice = one.decide(belief, contexts[30], key=3)
    assert float(choice.pmf.sum()) == pytest.approx(1.0)
    assert float(choice.propensity) == float(choice.pmf[choice.arm])
    again = one.decide(belief, contexts[30], key=3)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), choice, again))
    allowed = jnp.array([False, True, False, False])
    forced = one.decide(belief, contexts[30], 3, allowed)
    assert int(forced.arm) == 1 and float(forced.propensity) == 1.0


@pytest.mark.optimised
@pytest.mark.parametrize("design", few([*DESIGNS, "pairs"], "arms", "outputs"))
def test_loop_scan_and_chunks_give_the_same_bits(design: Any) -> None:
    one, start, contexts = agent(design, scale="online")

    def body(belief: Any, row: Any) -> Any:
        x, t, reward = row
        choice = one.decide(belief, x, jax.random.key(t))
        belief, info = one.update(belief, x, choice.arm, reward)
        return belief, (choice.arm, choice.propensity, info.log_evidence)

    rows = (contexts, jnp.arange(40), REWARDS)
    half, first = jax.lax.scan(body, start, jax.tree.map(lambda leaf: leaf[:20], rows))
    chunks, second = jax.lax.scan(body, half, jax.tree.map(lambda leaf: leaf[20:], rows))
    loop, seen = start, []
    for row in range(40):
        loop, report = body(loop, jax.tree.map(lambda leaf, row=row: leaf[row], rows))
        seen.append(report)
    each = jax.tree.map(lambda *leaves: np.stack(leaves), *seen)
    trace = jax.tree.map(lambda x, y: np.concatenate([x, y]), first, second)
    for a, b in zip(jax.tree.leaves((loop, each)), jax.tree.leaves((chunks, trace)), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.table
@pytest.mark.parametrize("design", DESIGNS)
def test_what_is_missing_changes_nothing_but_the_clock(design: Any) -> None:
    one, belief, contexts = _played(design, scale="online")
    for x, reward in [(contexts[0], jnp.nan), (contexts[0].at[0].set(jnp.nan), 1.0)]:
        after, info = one.update(belief, x, 1, reward)
        assert not bool(info.ok)
        clock = {id(after.t), id(getattr(after.belief, "t", None))}
        still = [
            np.array_equal(a, b)
            for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(belief), strict=True)
            if id(a) not in clock and a.dtype != jnp.int32
        ]
        assert all(still) and int(after.t) == int(belief.t) + 1


def test_saved_agents_go_on_bitwise(tmp_path: Path) -> None:
    one, belief, contexts = _played("arms", scale="online")
    credo.save(tmp_path / "agent.credo", one.rewards, belief)
    _, loaded = credo.load(tmp_path / "agent.credo", one.rewards)
    for a, b in zip(jax.tree.leaves(belief), jax.tree.leaves(loaded), strict=True):
        assert np.array_equal(a, b)
    assert one.decide(loaded, contexts[30], 5).arm == one.decide(belief, contexts[30], 5).arm


def test_logs_are_learned_by_the_verbs_of_learners() -> None:
    one, start, _ = agent("arms", scale="online")
    _, loop, _ = _played("arms", 40, scale="online")
    whole, trace = credo.run(one.rewards, start, (XS, PULLED), REWARDS)
    for a, b in zip(jax.tree.leaves(loop), jax.tree.leaves(whole), strict=True):
        assert np.array_equal(a, b)
    assert trace.log_evidence.shape == (40,)


def test_standardised_contexts_do_not_depend_on_their_units() -> None:
    one, first, _ = agent("arms", scale="online")
    second = first
    for x, arm, reward in zip(XS[:10], PULLED, REWARDS, strict=False):
        first, _ = one.update(first, x, int(arm), float(reward))
        second, _ = one.update(second, 1e3 * x + 7.0, int(arm), float(reward))
    a, b = one.expect(first, XS[11]), one.expect(second, 1e3 * XS[11] + 7.0)
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-8, atol=1e-10)
    moments = Scaler.start(XS[0], clip=3.0)
    for x in XS[:20]:
        expected = standardised(np.asarray(XS[:20]), 3.0)[int(moments.moments.count[0])]
        np.testing.assert_allclose(moments.apply(x), expected, rtol=1e-8, atol=1e-10)
        moments = moments.observe(x)
    both = Scaler.start(ROWS[0]).observe(ROWS[0]).observe(ROWS[1])
    flat = Scaler.start(XS[0])
    for row in ROWS[:2].reshape(-1, SIZE):
        flat = flat.observe(row)
    np.testing.assert_array_equal(both.moments.values, flat.moments.values)


@pytest.mark.slow
def test_rewards_in_other_units_lead_to_the_same_choices_and_an_absurd_one_to_few_others() -> None:
    one, begin, _ = agent("arms", scale="online", units="online")
    best = np.asarray(XS[:, 0] > 0).astype(int)

    def play(change: Any) -> tuple[list[int], Any]:
        belief, chosen, rng = begin, [], np.random.default_rng(0)
        for step, x in enumerate(XS):
            arm = int(one.decide(belief, x, step).arm)
            reward = float(arm == best[step]) + 0.1 * rng.normal()
            belief, info = one.update(belief, x, arm, change(reward, step))
            assert bool(info.ok)
            chosen.append(arm)
        return chosen, belief

    plain, belief = play(lambda reward, step: reward)
    for factor, shift in [(0.01, 0.0), (100.0, 0.0), (1e5, -1e3)]:
        other, there = play(lambda reward, step, f=factor, s=shift: f * reward + s)
        assert other == plain
        ours, theirs = one.expect(belief, XS[3]), one.expect(there, XS[3])
        np.testing.assert_allclose(theirs.mean, factor * ours.mean + shift, rtol=1e-6, atol=1e-8 * factor)
        np.testing.assert_allclose(theirs.sd, factor * ours.sd, rtol=1e-6)
    _, there = play(lambda reward, step: 1e9 if step == 25 else reward)
    assert np.isfinite(np.asarray(one.expect(there, XS[3]).mean)).all()
    units, former = there.units, belief.units
    assert float(units.scale) == float(former.scale) and float(units.location) == float(former.location)


def test_the_first_rewards_wait_and_are_then_learned_in_their_order() -> None:
    one, belief, _ = agent("arms", units="online")
    raw, plain, _ = agent("arms")
    info = same = None
    rewards = np.random.default_rng(1).normal(3.0, 2.0, size=14)
    for x, arm, reward in zip(XS[:14], PULLED, rewards.tolist(), strict=False):
        belief, info = one.update(belief, x, int(arm), reward)
    location, scale = rewards[:10].mean(), rewards[:10].std(ddof=1) / 0.4
    for x, arm, reward in zip(XS[:14], PULLED, rewards.tolist(), strict=False):
        plain, same = raw.update(plain, x, int(arm), (reward - location) / scale)
    for mine, theirs in zip(jax.tree.leaves(belief.belief), jax.tree.leaves(plain.belief), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-10)
    assert info is not None
    assert same is not None
    np.testing.assert_allclose(info.log_evidence, same.log_evidence - np.log(scale), rtol=1e-9)
    early = agent("arms", units="online")[1]
    waiting, info = one.update(early, XS[0], 1, 5.0)
    assert waiting.units is not None and int(waiting.units.first.filled) == 1
    assert bool(info.ok) and float(info.log_evidence) == 0.0
    after, info = one.update(early, XS[0], 1, float("nan"))
    assert not bool(info.ok) and after.units == early.units


def learned(rewards: list[float]) -> tuple[Any, Any]:
    """The agent's belief before and after the last of some rewards, which makes the units known."""
    one, before, _ = agent("arms", units="online")
    after = before
    for x, arm, reward in zip(XS, PULLED, rewards, strict=False):
        before = after
        assert before.units is not None and float(before.units.known[1]) == 0.0
        after, _ = one.update(before, x, int(arm), reward)
    return before, after


@pytest.mark.parametrize(
    ("rewards", "scale"),
    [
        ([0.0, 1.0] * 5, np.std([0.0, 1.0] * 5, ddof=1) / 0.4),  # 1.3, which is more than the gap
        ([0.0] * 9 + [1.0], 1.0),
        ([0.0] * 8 + [0.5, 1.0], np.std([0.0] * 8 + [0.5, 1.0], ddof=1) / 0.4),  # three values
    ],
)
def test_the_unit_of_rewards_of_two_values_is_no_less_than_the_gap_between_them(
    rewards: list[float], scale: float
) -> None:
    _, belief = learned(rewards)
    np.testing.assert_allclose(belief.units.known, np.array([np.mean(rewards), scale]), rtol=1e-10)


LATER = [5.2, 4.0, 7.0, 5.5, 6.0, 4.5, 5.0, 3.0, 6.5, 5.0]


@pytest.mark.parametrize(
    ("later", "scale", "waited"),
    [
        (LATER, np.std(LATER, ddof=1) / 0.4, 9),  # those that were alike are left out
        ([7.0] + [5.0] * 9, 2.0, 19),  # two values, of which one is rare
        ([7.0] * 10, 2.0, 19),
    ],
)
def test_ten_first_rewards_that_are_all_alike_say_nothing_of_units(
    later: list[float], scale: float, waited: int
) -> None:
    before, belief = learned([5.0] * 14 + later)
    assert int(before.units.first.filled) == 19 and int(belief.units.first.filled) == 0
    np.testing.assert_allclose(belief.units.known, np.array([np.mean(later), scale]), rtol=1e-10)
    raw, plain, _ = agent("arms")
    learnt = slice(24 - 1 - waited, 24)
    rewards = ([5.0] * 14 + later)[learnt]
    for x, arm, reward in zip(XS[learnt], PULLED[learnt], rewards, strict=True):
        plain, _ = raw.update(plain, x, int(arm), (reward - np.mean(later)) / scale)
    np.testing.assert_allclose(belief.belief.beliefs.mean, plain.belief.beliefs.mean, rtol=1e-8, atol=1e-10)
    _, other = learned([0.01 * reward - 40.0 for reward in [5.0] * 14 + later])
    # rewards of 40 that differ by 0.01 have lost four digits
    np.testing.assert_allclose(other.belief.beliefs.mean, plain.belief.beliefs.mean, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_a_reward_that_does_not_count_ends_no_run_of_rewards_that_are_alike(weight: float) -> None:
    one, before = agent("arms", units="online")[0], learned([5.0] * 12)[1]
    after, _ = one.update(before, XS[0], 1, 7.0, weight=weight)
    units = after.units
    assert units is not None and float(units.known[1]) == 0.0
    assert int(units.first.filled) == 10 + int(weight)


@pytest.mark.slow
def test_a_choice_says_what_is_expected_in_units_of_the_rewards() -> None:
    start = bandits.default_agent(ARMS, 2)
    one, belief = start.agent, start.init(0)
    for step in range(14):
        x, reward = jnp.asarray([1.0, step % 3]), 1000.0 + 50.0 * (step % 4)
        belief, _ = one.update(belief, x, step % ARMS, reward)
    distribution, choice = one.expect(belief, jnp.ones(2)), one.decide(belief, jnp.ones(2), key=0)
    np.testing.assert_allclose(choice.mean, distribution.mean, rtol=1e-9)
    np.testing.assert_allclose(choice.sd, distribution.sd, rtol=1e-9)
    assert choice.mean.min() > 900 and choice.sd.min() > 1


def test_draws_stay_inside_the_support() -> None:
    pmf = jnp.array([0.0, 0.3, 0.0, 0.7, 0.0])
    arms = jax.vmap(lambda key: draw(pmf, key))(jax.random.split(jax.random.key(0), 20000))
    counts = np.bincount(np.asarray(arms), minlength=5) / 20000
    np.testing.assert_allclose(counts, pmf, atol=5 * np.sqrt(0.21 / 20000))
    assert counts[0] == counts[2] == counts[4] == 0


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: wrong("ekf", 3), "learner"),
        (lambda: bandits.Agent(LINEAR, 1), "arms"),
        (lambda: wrong(LINEAR, 3, "output"), "design"),
        (lambda: wrong(LINEAR, 3, policy="ts"), "policy"),
        (lambda: wrong(LINEAR, 3, scale=True), "scale"),
        (lambda: agent("arms")[0].update(agent("arms")[1], XS[0], 4, 1.0), "arm"),
        (lambda: agent("arms")[0].update(agent("arms")[1], XS[0], 1.5, 1.0), "arm"),
        (lambda: agent("arms")[0].decide(agent("arms")[1], XS[0], 0, np.zeros(4, bool)), "allowed"),
        (lambda: agent("arms")[0].decide(agent("arms")[1], "x", 0), "x must"),
        (lambda: bandits.Agent(LINEAR, ARMS, "arms", scale="online").init(jnp.zeros(SIZE)), "context"),
        (lambda: bandits.Agent(NETWORK, 3).decide(
            bandits.Agent(NETWORK, 3).init(NET.init(0, (SIZE,))), XS[0], 0), "arms must"),
        (lambda: bandits.Agent(credo.BetaBernoulli(), 3).decide(
            bandits.Agent(credo.BetaBernoulli(), 3).init(), None, 0), "design='arms'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_a_sentence(call: Any, word: Any) -> None:
    with pytest.raises(credo.CredoError, match=word):
        call()


@pytest.mark.slow
def test_wrappers_are_agents_too() -> None:
    inner = credo.extended_kalman(MODEL, dynamics=credo.RandomWalk(1e-2))
    one = bandits.Agent(credo.RunLength(inner, 0.05, 3), ARMS, "arms")
    belief = one.init(jnp.zeros(SIZE))
    belief, info = one.update(belief, XS[0], 1, 1.0)
    assert bool(info.ok) and float(one.expect(belief, XS[0]).mean[1]) > 0
    assert float(one.decide(belief, XS[0], 0).pmf.sum()) == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("wrapped", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_a_thompson_agent_over_particles_finds_the_best_arm(wrapped: bool) -> None:
    learner: Any = credo.particle_filter(
        credo.Model(lambda z, x: z, credo.Bernoulli()), 100, credo.RandomWalk(1e-3)
    )
    learner = credo.RunLength(learner, 0.005, 2) if wrapped else learner
    agent = bandits.Agent(learner, 3, "arms", bandits.Thompson())
    world = bandits.environments.BernoulliArms(chances=jnp.array([0.1, 0.5, 0.9]))
    report = bandits.play(agent, world, steps=120, seeds=2, params=jnp.zeros(()), var=2.0)
    assert np.all(report.totals > 80)  # 60 by chance, and 108 by always pulling the best


def test_a_name_that_lies_in_a_room_says_so() -> None:
    with pytest.raises(AttributeError, match=r"'Wheel'; it is credo.bandits.environments.Wheel$"):
        getattr(bandits, "Wheel")  # noqa: B009
    with pytest.raises(AttributeError, match=r"no attribute 'wheel'$"):
        getattr(bandits, "wheel")  # noqa: B009
