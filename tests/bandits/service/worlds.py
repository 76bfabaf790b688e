"""Bandits that the tests of the service share, so that their programs are compiled once."""

from __future__ import annotations

from typing import Any

import numpy as np

import credo
from credo import bandits

COINS = bandits.Agent(credo.BetaBernoulli(), 4, "arms", bandits.Thompson(floor=0.02))
LINE = credo.Linear()
LINEAR = bandits.Agent(
    credo.extended_kalman(credo.Model(LINE, credo.Normal(0.25))), 2, "arms", bandits.Thompson(floor=0.05)
)
XS = np.random.default_rng(0).normal(size=(40, 4))


class Clock:
    """A clock that goes as it is told."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def nameless(decision: bandits.ArmDecision) -> bandits.ArmDecision:
    """A decision without its id, which has a random part where nobody knows what was decided before."""
    return decision._replace(id="")


def coins(**options: Any) -> bandits.Bandit:
    """Four coins at most, three at first."""
    return bandits.Bandit(COINS, ["a", "b", "c"], **options)


def linear(**options: Any) -> bandits.Bandit:
    """Two arms with four inputs each."""
    return bandits.Bandit(LINEAR, ["red", "blue"], features=4, **options)
