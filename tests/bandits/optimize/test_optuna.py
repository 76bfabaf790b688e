"""The sampler for Optuna: it asks for points of the study's space, and learns from all trials."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
import pytest
from tests.needed import needs

import credo
from credo import bandits
from credo.bandits import optimize


@pytest.mark.slow
def test_a_study_is_searched_by_the_sampler() -> None:
    optuna = needs("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: Any) -> float:
        rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
        share = trial.suggest_float("share", 0.0, 1.0, step=0.25)
        depth = trial.suggest_int("depth", 1, 9)
        wide = trial.suggest_int("wide", 10, 50, step=10)
        kind = trial.suggest_categorical("kind", ["a", "b"])
        trial.suggest_int("fixed", 3, 3)
        if depth == 1:
            raise ValueError("a trial that fails")
        if depth == 2:
            raise optuna.TrialPruned
        loss = (rate - 0.01) ** 2 + (share - 0.5) ** 2 + (depth - 4) ** 2 + (wide - 30) ** 2 / 1e3
        return float(loss + (kind == "a"))

    study = optuna.create_study(sampler=optimize.optuna_sampler(seed=1))
    study.optimize(objective, n_trials=18, catch=(ValueError,))
    found = study.best_params
    assert found["depth"] == 4 and found["kind"] == "b" and study.best_value < 0.3
    assert found["share"] in (0.25, 0.5, 0.75) and found["fixed"] == 3
    # maximising the negative asks for the same, to rounding, which grows from trial to trial
    mirror = optuna.create_study(sampler=optimize.optuna_sampler(seed=1), direction="maximize")
    mirror.optimize(lambda trial: -objective(trial), n_trials=5, catch=(ValueError,))
    for one, other in zip(mirror.trials, study.trials[:5], strict=True):
        assert one.params["kind"] == other.params["kind"] and one.params["depth"] == other.params["depth"]
        assert one.params["rate"] == pytest.approx(other.params["rate"], rel=1e-3)
    two = optuna.create_study(sampler=optimize.optuna_sampler(), directions=["minimize", "minimize"])
    with pytest.raises(credo.CredoError, match="one objective for this sampler; it has 2"):
        two.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0), n_trials=2)


@pytest.mark.slow
def test_an_objective_without_noise_is_searched_as_by_an_optimizer_that_knows_it() -> None:
    optuna = needs("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}
    asked = {}
    for deterministic in (False, True):
        study = optuna.create_study(sampler=optimize.optuna_sampler(deterministic=deterministic))
        search = bandits.Optimizer(None, {"x": (0.0, 1.0)}, goal="min", deterministic=deterministic)
        for value in (0.1, 0.35, 0.4, 0.6, 0.7, 0.9):
            loss = math.cos(40.0 * value)
            study.add_trial(optuna.trial.create_trial(params={"x": value}, distributions=space, value=loss))
            search.tell({"x": value}, loss)
        asked[deterministic] = study.ask(space).params["x"]
        point: Any = search.ask()
        assert asked[deterministic] == point["x"]
    assert asked[False] != asked[True]


def test_trials_that_run_are_pending() -> None:
    optuna = needs("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optimize.optuna_sampler(seed=0))
    space = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}
    for value in (0.1, 0.4, 0.6, 0.9):
        params = {"x": value}
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=space, value=(value - 0.5) ** 2)
        )
    asked = [study.ask(space).params["x"] for _ in range(3)]
    assert len({round(x, 3) for x in asked}) == 3


def test_its_absence_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **others: Any) -> Any:
        if name.startswith("optuna"):
            raise ImportError(name)
        return real(name, *rest, **others)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(credo.CredoError, match="package optuna, which is not installed: pip install optuna"):
        optimize.optuna_sampler()


@pytest.mark.slow
def test_a_trial_of_infinite_value_is_one_that_failed() -> None:
    optuna = needs("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optimize.optuna_sampler(seed=0))
    study.optimize(lambda trial: float("inf") if trial.number == 1 else trial.suggest_float("x", 0, 1), 8)
    assert len(study.trials) == 8 and np.isfinite(study.best_value)
