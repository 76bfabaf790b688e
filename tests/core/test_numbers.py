"""Numbers that no array of JAX can hold are refused in a sentence, wherever they come in."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo import bandits
from credo.core.errors import CredoError, require_integer, require_positive, shown, unrepresentable
from credo.core.keys import as_key
from credo.tables import TargetScaler

HUGE = {
    "a whole number": 10**400,
    "one below 0": -(10**400),
    "one of more digits than Python writes": 10**5000,
}
OTHERS: dict[str, Any] = {
    "one of 71 bits": 2**70,
    "a decimal": Decimal("0.5"),
    "a fraction": Fraction(1, 2),
}
if np.dtype(np.longdouble).itemsize > 8:  # some platforms have no floats of more than 64 bits
    OTHERS["a wide float"] = np.longdouble("0.5")

LINEAR = credo.Linear()
LEARNER = credo.extended_kalman(credo.Model(LINEAR, credo.Normal(0.1)))
START = jax.tree.map(np.zeros_like, LINEAR.init(0, (2,)))
AGENT = bandits.Agent(LEARNER, 2, "arms")

CONSTRUCTORS: dict[str, Callable[[Any], object]] = {
    "Normal": credo.Normal,
    "Normal of several": lambda number: credo.Normal([0.1, number]),
    "StudentT": lambda number: credo.StudentT(3.0, number),
    "NegativeBinomial": credo.NegativeBinomial,
    "InverseGamma": lambda number: credo.InverseGamma(number, 1.0),
    "BetaBernoulli": lambda number: credo.BetaBernoulli(number, 1.0),
    "RandomWalk": credo.RandomWalk,
    "Decay": credo.Decay,
    "LearnedHazard": lambda number: credo.LearnedHazard(number, 1.0),
    "Monitored, hazard": lambda number: credo.Monitored(LEARNER, hazard=number),
    "Monitored, separation": lambda number: credo.Monitored(LEARNER, separation=number),
    "RunLength": lambda number: credo.RunLength(LEARNER, hazard=0.1, separation=number),
    "ChangeProbability, level": lambda number: credo.ChangeProbability(LEARNER, levels=number),
    "ChangeProbability, limit": lambda number: credo.ChangeProbability(LEARNER, limit=number),
    "WeightedPast": lambda number: credo.WeightedPast(LEARNER, penalty=number),
    "Stretched": lambda number: credo.Stretched(LEARNER, [1.0, number]),
    "Agent": lambda number: bandits.Agent(LEARNER, 2, "arms", clip=number),
    "UCB": bandits.UCB,
    "Thompson": lambda number: bandits.Thompson(floor=number),
    "TargetScaler": TargetScaler,
    "init": lambda number: LEARNER.init(START, var=number),
    "auto": lambda number: credo.auto(number),
    "auto, seed": lambda number: credo.auto(2, seed=number),
    "a key": as_key,
}
"""What takes a number, as a function of it."""


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_a_number_that_no_array_can_hold_is_refused_where_something_is_built(name: str) -> None:
    for number in (*HUGE.values(), *OTHERS.values()):
        with pytest.raises(CredoError, match="got ") as caught:
            CONSTRUCTORS[name](number)
        assert len(str(caught.value)) < 200


def _fit(number: Any) -> object:
    rows = np.linspace(0.0, 1.0, 12)
    return credo.OnlineRegressor(model="linear").fit(rows[:, None], [*rows[1:].tolist(), number])


def _log(number: Any) -> object:
    rewards = np.array([0.5, number])
    return bandits.Log(("a", "b"), np.array([0, 1]), rewards, np.array([0.5, 0.5]))


def _context(number: Any) -> object:
    chosen, halves = np.array([0, 1]), np.array([0.5, 0.5])
    return bandits.Log(("a", "b"), chosen, halves, halves, contexts=[[0.5], [number]])


def _reward(number: Any) -> object:
    bandit = bandits.Bandit(bandits.Agent(credo.BetaBernoulli(), 2, "arms"), ["a", "b"])
    return bandit.reward(bandit.decide().id, number)


def _river(number: Any) -> object:
    return credo.RiverRegressor(model="linear").learn_one({"a": 1.0}, number)


def _step(number: Any) -> object:
    return LEARNER.step(LEARNER.init(START), np.zeros(2), number)


def _update(number: Any) -> object:
    belief = AGENT.init(START)
    return AGENT.update(belief, jnp.zeros(2), 1, number)


DOORS = {
    "OnlineRegressor": _fit,
    "RiverRegressor": _river,
    "Log": _log,
    "Log, contexts": _context,
    "Bandit": _reward,
    "step": _step,
    "Agent": _update,
}
"""What takes an observation or a reward, as a function of it."""


@pytest.mark.parametrize("door", DOORS)
def test_an_observation_that_is_no_float_is_refused_in_a_sentence(door: str) -> None:
    for number in HUGE.values():
        with pytest.raises(CredoError, match=r"^(y|rewards?|contexts) must be"):
            DOORS[door](number)


def test_the_first_number_that_no_array_can_hold_is_found_and_others_pass() -> None:
    for value in (1, 2.5, True, None, "text", {"a": 1}, [1, 2.5], np.arange(3), jnp.ones(2), [None, 1.0], 1j):
        assert unrepresentable(value) is None
    for number in (*HUGE.values(), 2**70, Decimal(1), Fraction(1, 3)):
        assert unrepresentable([1.0, number]) is number
        with pytest.raises(CredoError, match=r"^var must be a float or a whole number of at most 64 bits"):
            require_positive("var", number)


def test_a_count_of_more_than_64_bits_is_refused_and_a_long_number_is_cut_off() -> None:
    with pytest.raises(CredoError, match=r"^arms must be a whole number in 1\.\.9223372036854775807; got 1"):
        require_integer("arms", 10**400, 1)
    assert shown(10**5000) == "a number of more than 4,300 digits"
    assert len(shown(10**400)) == 60
    assert shown(12) == "12"
