"""A forecast that several ask for in a step is traced once."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import credo
from credo.adapt import Monitored, Stacked
from credo.beliefs import Beta
from credo.core.names import ForecastName
from credo.core.records import record
from credo.core.types import Key, PyTree
from credo.likelihoods import Predictive
from credo.streams.scoring import Row, scored_step

traced: list[type[Any]] = []


@record
class Counted(credo.BetaBernoulli):
    """A learner whose traces are counted."""

    def predictive(
        self, belief: Beta, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        traced.append(type(self))
        return super().predictive(belief, x, method, samples, key)


@record
class Other(Counted):
    """A learner of another class, which has a trace of its own."""


def test_the_forecast_of_a_member_is_traced_once_a_step_whoever_asks_for_it() -> None:
    bank = credo.Experts([Counted(a=1.0), Counted(a=3.0), Other(a=2.0)])
    learner = Monitored(Stacked(bank, credo.Bernoulli()))
    belief = learner.init()
    traced.clear()
    jax.make_jaxpr(lambda belief, y: scored_step(learner, belief, Row(None, y)))(belief, np.float32(1.0))
    # each also makes its own forecast for its evidence, where it learns
    assert traced.count(Counted) <= 2 and traced.count(Other) <= 2
    jax.make_jaxpr(lambda belief: learner.forecast(belief, None))(belief)
    assert traced.count(Counted) <= 2
