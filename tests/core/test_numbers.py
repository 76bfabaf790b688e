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
from credo.likelihoods.elliptical import NormalPredictive, StudentTPredictive
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.weighted import Either
from credo.recipes.language import Drift
from credo.sessions import Session
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
    "MLP, a width": lambda number: credo.MLP(hidden=(number,)),
    "MLP": lambda number: credo.MLP(hidden=number),
    "CNN": lambda number: credo.CNN(dense=number),
    "CNN, channels": lambda number: credo.CNN(channels=number),
    "CNN, a number of channels": lambda number: credo.CNN(channels=(8, number)),
    "Drift": lambda number: Drift("run-length", (number,)),
    "ray_searcher": lambda number: bandits.optimize.ray_searcher(seed=number),
    "optuna_sampler": lambda number: bandits.optimize.optuna_sampler(seed=number),
}
"""What takes a number, as a function of it."""

PREDICTIVES: dict[str, Predictive] = {
    "normal": LEARNER.forecast(LEARNER.init(START), np.zeros(2)),
    "Student-t": StudentTPredictive(jnp.array(3.0), jnp.zeros(1), jnp.eye(1)),
    "mixture": Either(
        NormalPredictive(jnp.zeros(1), jnp.eye(1)),
        NormalPredictive(jnp.ones(1), jnp.eye(1)),
        jnp.log(jnp.full(2, 0.5)),
    ),
    "rows": LEARNER.forecast_rows(LEARNER.init(START), np.zeros((3, 2))),
}
MEMBERS: dict[str, Callable[[Predictive, Any], object]] = {
    "y": lambda forecast, number: forecast.log_prob(number),
    "y ": lambda forecast, number: forecast.cdf(number),
    "y named": lambda forecast, number: forecast.log_prob(y=number),
    "p": lambda forecast, number: forecast.quantile(number),
    "p of several": lambda forecast, number: forecast.quantile([0.5, number]),  # type: ignore[arg-type]
    "level": lambda forecast, number: forecast.interval(number),
    "shape": lambda forecast, number: forecast.sample(jax.random.key(0), (number,)),
    "shape ": lambda forecast, number: forecast.sample(jax.random.key(0), number),
}
"""What a forecast is asked with a number; the first word of the name is that of the argument."""


def _session(words: Callable[[Any], dict[str, Any]]) -> Callable[[Any], object]:
    """A session that is asked with a number among its arguments."""

    def ask(number: Any) -> object:
        rows = [{"a": float(k % 7), "y": 2.0 * (k % 7)} for k in range(12)]
        session = Session.from_rows(rows, "y", model="linear")
        given = words(number)
        method = session.predict if "levels" in given else session.learn
        return method(rows[:1], **given)

    return ask


SESSIONS: dict[str, Callable[[Any], object]] = {
    "levels": _session(lambda number: {"levels": (number,)}),
    "weights": _session(lambda number: {"weights": [number]}),
    "times": _session(lambda number: {"times": [number]}),
}


@pytest.mark.parametrize("field", SESSIONS)
def test_a_number_that_no_array_can_hold_is_refused_by_a_session(field: str) -> None:
    for number in (*HUGE.values(), *OTHERS.values()):
        with pytest.raises(
            CredoError, match=f"^{field} must be a float or a whole number of at most 64 bits; got"
        ):
            SESSIONS[field](number)


@pytest.mark.parametrize("kind", PREDICTIVES)
@pytest.mark.parametrize("member", MEMBERS)
def test_a_number_that_no_array_can_hold_is_refused_by_a_forecast(kind: str, member: str) -> None:
    for number in (*HUGE.values(), *OTHERS.values()):
        with pytest.raises(CredoError, match=f"^{member.split()[0]} must be .*got ") as caught:
            MEMBERS[member](PREDICTIVES[kind], number)
        assert len(str(caught.value)) < 200


LIKELIHOODS: dict[str, Any] = {
    "Normal": credo.Normal(0.5),
    "Bernoulli": credo.Bernoulli(),
    "Categorical": credo.Categorical(3),
    "OpenCategorical": credo.OpenCategorical(3),
    "Poisson": credo.Poisson(),
    "NegativeBinomial": credo.NegativeBinomial(2.0),
    "StudentT": credo.StudentT(3.0, 1.0),
    "HeteroscedasticNormal": credo.HeteroscedasticNormal(),
    "a function": credo.Likelihood(
        lambda eta, y: -((eta - y) ** 2), mean=lambda eta: eta, cdf=lambda eta, y: y - eta
    ),
}
OUTPUTS = {"Categorical": 3, "OpenCategorical": 3, "HeteroscedasticNormal": 2}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_number_that_no_array_can_hold_is_refused_by_a_likelihood(name: str) -> None:
    likelihood = LIKELIHOODS[name]
    eta = jnp.zeros(OUTPUTS.get(name, 1))
    methods = ["log_prob", "score", "fisher_root", *(["cdf"] if name in ("Normal", "a function") else [])]
    for number in (*HUGE.values(), *OTHERS.values()):
        for method in methods:
            with pytest.raises(
                CredoError, match=r"^y must be a float or a whole number of at most 64 bits; got"
            ):
                getattr(likelihood, method)(eta, number)
            with pytest.raises(CredoError, match=r"^eta must be a float or"):
                getattr(likelihood, method)(number, y=0)
        with pytest.raises(CredoError, match=r"^eta must be a float or"):
            likelihood.mean(eta=number)


def test_what_a_forecast_answered_before_it_answers_still() -> None:
    forecast = PREDICTIVES["normal"]
    low, high = forecast.interval(0.5)
    assert float(forecast.cdf(low)) == pytest.approx(0.25, abs=1e-6)
    assert float(jax.jit(forecast.cdf)(high)) == pytest.approx(0.75, abs=1e-6)
    assert forecast.sample(jax.random.key(0), (2, 3)).shape == (2, 3)
    assert forecast.quantile(np.array([0.1, 0.9])).shape == (2,)


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_a_number_that_no_array_can_hold_is_refused_where_something_is_built(name: str) -> None:
    for number in (*HUGE.values(), *OTHERS.values()):
        with pytest.raises(CredoError, match="got ") as caught:
            CONSTRUCTORS[name](number)
        assert len(str(caught.value)) < 200


def _fit(number: Any) -> object:
    rows = np.linspace(0.0, 1.0, 12)
    return credo.OnlineRegressor(model="linear").fit(rows[:, None], [*rows[1:].tolist(), number])


def _score(number: Any) -> object:
    rows = np.linspace(0.0, 1.0, 12)
    learned = credo.OnlineRegressor(model="linear").fit(rows[:, None], rows)
    return learned.score(rows[:, None], [*rows[1:].tolist(), number])


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
    "OnlineRegressor.score": _score,
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
