"""A sampler for Optuna, which asks an optimiser for the parameters of each trial."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from credo.bandits.optimize.optimizer import Optimizer
from credo.bandits.optimize.promises import AcquisitionName
from credo.bandits.optimize.search import GoalName
from credo.bandits.optimize.variables import Parameter
from credo.core.errors import CredoError, require_integer

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

__all__ = ["optuna_sampler"]


def optuna_sampler(
    *, acquisition: AcquisitionName = "ei", deterministic: bool = False, seed: int = 0
) -> BaseSampler:
    """A sampler for `optuna.create_study(sampler=...)`, by Bayesian optimisation without settings.

    Parameters that every trial of the study has had so far, with one distribution, are chosen together by an
    `Optimizer` that was told all finished trials; others, and all of the first trial, are chosen at random.
    Trials that failed are points to keep away from, trials that were pruned are left out, and trials that run
    are pending.

    Arguments:
        acquisition: how the next point is chosen, as for `Optimizer`.
        deterministic: whether the objective has one value at a point, without noise.
        seed: the seed of all draws.

    Returns:
        The sampler, an `optuna.samplers.BaseSampler`, for studies of one objective.

    Raises:
        CredoError: the seed is not allowed, Optuna is not installed, or (later) the study has several
            objectives.

    Example:
        >>> from credo import bandits
        >>> sampler = bandits.optimize.optuna_sampler(seed=1)  # doctest: +SKIP
        >>> study = optuna.create_study(sampler=sampler)  # doctest: +SKIP
        >>> study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=20)  # doctest: +SKIP
    """
    require_integer("seed", seed, 0, 2**32 - 1)
    try:
        import optuna
    except ImportError as error:
        raise CredoError(
            "optuna_sampler needs the package optuna, which is not installed: pip install optuna."
        ) from error
    states = optuna.trial.TrialState

    class Sampler(optuna.samplers.BaseSampler):
        """Asks an optimiser that was told all that the study knows."""

        def __init__(self) -> None:
            self._common = optuna.search_space.IntersectionSearchSpace()
            self._random = optuna.samplers.RandomSampler(seed=seed)

        def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
            common = self._common.calculate(study)
            return {name: one for name, one in common.items() if not one.single()}

        def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
            if len(study.directions) > 1:
                raise CredoError(
                    f"a study must have one objective for this sampler; it has {len(study.directions)}."
                )
            if not search_space:
                return {}
            goal: GoalName = "max" if study.direction == optuna.study.StudyDirection.MAXIMIZE else "min"
            bounds = {name: _parameter(one).bounds for name, one in search_space.items()}
            search = Optimizer(
                None, bounds, goal=goal, acquisition=acquisition, deterministic=deterministic, seed=seed
            )
            wanted = (states.COMPLETE, states.FAIL, states.RUNNING)
            for past in study.get_trials(deepcopy=False, states=wanted):
                point = _point(past, search_space)
                if point is None or past.number == trial.number:
                    continue
                if past.state == states.RUNNING:
                    search.wait_for(point)
                else:
                    # Optuna takes infinity for the value of a trial; here it is a trial that failed
                    value = past.value if past.state == states.COMPLETE else None
                    search.tell(point, value if value is not None and math.isfinite(value) else None)
            answer: Any = search.ask()
            return {name: _parameter(one).value_of(answer[name]) for name, one in search_space.items()}

        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            return self._random.sample_independent(study, trial, param_name, param_distribution)

    return Sampler()


def _parameter(distribution: Any) -> Parameter:
    """The parameter of a distribution."""
    if hasattr(distribution, "choices"):
        return Parameter(options=tuple(distribution.choices))
    return Parameter(distribution.low, distribution.high, distribution.step, distribution.log)


def _point(trial: Any, space: Mapping[str, Any]) -> dict[str, Any] | None:
    """The point of a trial; None if it lacks a parameter, or one is outside its distribution."""
    point: dict[str, Any] = {}
    for name, one in space.items():
        if name not in trial.params or not one._contains(one.to_internal_repr(trial.params[name])):
            return None
        point[name] = _parameter(one).seen_as(trial.params[name])
    return point
