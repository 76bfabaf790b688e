"""Several policies side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from credo.bandits.evaluation.estimate import Comparison, Estimate, IntervalName
from credo.bandits.evaluation.evaluate_policy import evaluate
from credo.bandits.evaluation.target_policies import Target, target_pmfs
from credo.bandits.evaluation.terms import ESTIMATORS, KINDS, EstimatorName
from credo.bandits.evaluation.weighed_rows import DirectModel, reward_values, weigh_rows
from credo.bandits.logs import Log
from credo.core.errors import CredoError, require_choice

__all__ = ["compare"]


def compare(
    log: Log,
    policies: Mapping[str, Target],
    *,
    estimator: EstimatorName | Sequence[EstimatorName] = ("ips", "snips", "dr"),
    model: DirectModel | None = None,
    interval: IntervalName = "likelihood",
    level: float = 0.95,
    clip: float | None = None,
    reward_range: tuple[float, float] | None = None,
    seed: int = 0,
) -> Comparison:
    """Evaluate several policies, each by one or more estimators; the direct model is fitted once.

    Arguments:
        log, model, interval, level, reward_range, seed: see `evaluate`.
        policies: each with its name.
        estimator: one or several.
        clip: see `evaluate`; it goes to the estimators that weigh.

    Returns:
        The estimates, which print as a table.

    Raises:
        CredoError, DataError: as `evaluate`.

    Example:
        >>> log = Log(("a", "b"), np.arange(100) % 2, np.arange(100) % 2 * 1.0, np.full(100, 0.5))
        >>> comparison = compare(log, {"always b": "b", "chance": [0.5, 0.5]}, estimator="snips")
        >>> [(name, estimate.value) for (name, _), estimate in comparison.estimates.items()]
        [('always b', 1.0), ('chance', 0.5)]
    """
    names: list[EstimatorName] = [estimator] if isinstance(estimator, str) else list(estimator)
    if not isinstance(policies, Mapping) or not policies or not names:
        raise CredoError("policies must be a dict of one or more policies, by name.", field="policies")
    estimates: dict[tuple[str, EstimatorName], Estimate] = {}
    values: DirectModel | None = model
    for policy_name, policy in policies.items():
        pmfs = target_pmfs(log, policy)
        for name in names:
            require_choice("estimator", name, ESTIMATORS)
            kind = KINDS[name]
            if kind.models and values is None:
                weighed = weigh_rows(log, pmfs)
                values = np.zeros(pmfs.shape)
                values[weighed.mask] = reward_values(weighed, None, before=interval == "sequence", seed=seed)
            estimates[policy_name, name] = evaluate(
                log,
                pmfs,
                estimator=name,
                model=values if kind.models else None,
                interval=interval,
                level=level,
                clip=clip if kind.weighs else None,
                reward_range=reward_range,
                seed=seed,
            )
    return Comparison(estimates)
