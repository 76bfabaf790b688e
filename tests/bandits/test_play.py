"""Agents in environments: seeds, delays, reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo import bandits
from credo.bandits import environments

ARM = credo.BetaBernoulli()
WORLD = environments.BernoulliArms(chances=np.array([0.1, 0.5, 0.8]))
wrong: Any = bandits.play  # what a type checker would refuse
AGENT = bandits.Agent(ARM, 3, "arms")


def test_each_seed_is_a_run_of_its_own() -> None:
    many = bandits.play(AGENT, WORLD, steps=60, seeds=3, key=5)
    assert many.rewards.shape == (3, 60) and len({run.tobytes() for run in many.arms}) == 3
    again = bandits.play(AGENT, WORLD, steps=60, seeds=3, key=5)
    assert np.array_equal(many.arms, again.arms)
    np.testing.assert_allclose(many.regrets, 0.8 - np.array([0.1, 0.5, 0.8])[many.arms], atol=1e-6)
    assert many.mean > 0.55 * 60
    for run in range(3):
        for arm in range(3):
            pulled = many.arms[run] == arm
            wins = many.rewards[run][pulled].sum()
            assert many.beliefs.belief.beliefs.a[run, arm] == pytest.approx(1 + wins)


def test_a_delay_is_a_replay_first_in_first_out() -> None:
    late = bandits.play(AGENT, WORLD, steps=40, seeds=2, key=5, delay=7)
    for run in range(2):
        a = np.ones(3)
        np.add.at(a, late.arms[run, :33], late.rewards[run, :33])
        np.testing.assert_allclose(late.beliefs.belief.beliefs.a[run], a)
    assert int(late.beliefs.t[0]) == 33 and late.refused == 0


def test_reports_can_be_read_and_drawn(tmp_path: Path) -> None:
    report = bandits.play(AGENT, WORLD, steps=50, seeds=3)
    text = report.summary()
    assert "3 runs of 50 decisions" in text and f"{report.worst:,.1f} worst" in text
    assert report.calibration.sum(1)[2] == 3 * 50 * 3
    np.testing.assert_allclose(report.calibration.sum(1)[:2], 150, rtol=1e-5)
    assert report.plot(tmp_path / "play.png").stat().st_size > 10_000


@pytest.mark.parametrize("known", [True, False])
def test_a_drawing_shows_regret_choices_and_frequencies(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = bandits.play(AGENT, WORLD, steps=50, seeds=3)
    if not known:
        report = replace(report, regrets=np.full_like(report.regrets, np.nan))
    figures: list[Any] = []

    def keep(figure: Any) -> bytes:
        figures.append(figure)
        return b""

    monkeypatch.setattr("credo.bandits.play_report.png", keep)
    report.plot(tmp_path / "play.png", title="three arms")
    curve, pulls, claims = figures[0].axes
    assert figures[0].get_suptitle() == "three arms"
    assert curve.get_title("left") == ("Cumulative regret" if known else "Cumulative reward")
    assert [text.get_text() for text in curve.get_legend().get_texts()] == ["80% of runs", "median"]
    curves = np.cumsum(report.regrets if known else report.rewards, axis=1)
    np.testing.assert_allclose(curve.get_lines()[0].get_ydata(), np.median(curves, axis=0), rtol=1e-5)
    shares = [np.mean(report.arms == arm) for arm in range(3)]
    np.testing.assert_allclose([bar.get_height() for bar in pulls.patches], shares, rtol=1e-6)
    diagonal, points = claims.get_lines()
    assert list(diagonal.get_ydata()) == [0, 1]
    claimed, best, count = report.calibration[:, report.calibration[2] > 0]
    np.testing.assert_allclose(points.get_xydata(), np.stack([claimed, best], 1) / count[:, None])


@pytest.mark.slow
def test_a_network_of_its_own_for_each_seed() -> None:
    net = credo.MLP(outputs=3, hidden=(4,))
    learner = credo.lofi(credo.Model(net, credo.Normal(0.1)), rank=2)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(30, 2)), jnp.float32)
    world = environments.Classification(x, jnp.arange(30) % 3)
    one = bandits.Agent(learner, 3, "outputs", scale="online")
    report = bandits.play(one, world, seeds=2, params=lambda key: net.init(key, (2,)), var=0.1)
    means = report.beliefs.belief.mean
    assert report.rewards.shape == (2, 30) and not np.array_equal(means[0], means[1])


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"steps": None}, "steps is missing"),
        ({"steps": 0}, "steps"),
        ({"seeds": 0}, "seeds"),
        ({"delay": -1}, "delay"),
    ],
)
def test_numbers_out_of_range_are_refused(change: Any, word: Any) -> None:
    with pytest.raises(credo.CredoError, match=word):
        bandits.play(AGENT, WORLD, **({"steps": 10} | change))


def test_agents_that_do_not_fit_are_refused() -> None:
    with pytest.raises(credo.CredoError, match="arms of the agent"):
        bandits.play(bandits.Agent(ARM, 2, "arms"), WORLD, steps=10)
    with pytest.raises(credo.CredoError, match="environment must be"):
        wrong(AGENT, "statlog", steps=10)
    with pytest.raises(credo.CredoError, match="design"):
        bandits.play(
            bandits.Agent(credo.extended_kalman(credo.Model(jnp.dot, credo.Normal(1.0))), 3, "actions"),
            WORLD,
            steps=3,
        )


@pytest.mark.slow
def test_what_is_claimed_of_the_best_arm_is_true() -> None:
    """Arms drawn from the prior: P(best) of an exact agent is calibrated."""
    report = bandits.play(AGENT, environments.BernoulliArms(3), steps=15, seeds=400)
    total = report.calibration
    claimed, best, count = total.reshape(3, 5, 4).sum(-1)
    gap = (best - claimed) / np.sqrt(np.maximum(claimed * (1 - claimed / count), 1.0) * 15)
    assert np.all(np.abs(gap) < 4)


@pytest.mark.slow
def test_a_prior_that_is_not_named_has_the_variance_one() -> None:
    learner = credo.extended_kalman(credo.Model(credo.Linear(3), credo.Normal(0.1)))
    x = jnp.asarray(np.random.default_rng(0).normal(size=(6, 2)), jnp.float32)
    world, agent = environments.Classification(x, jnp.arange(6) % 3), bandits.Agent(learner, 3, "outputs")
    params = credo.Linear(3).init(0, (2,))
    plain, one, two = (
        bandits.play(agent, world, seeds=1, params=params, var=var) for var in (None, 1.0, 2.0)
    )
    np.testing.assert_array_equal(plain.log_evidence, one.log_evidence)
    assert not np.array_equal(plain.log_evidence, two.log_evidence)
