"""What may be asked of an evaluation, and the range of the rewards."""

from __future__ import annotations

import numpy as np

from credo.bandits.evaluation.estimate import INTERVALS, IntervalName
from credo.bandits.evaluation.weighed_rows import ESTIMATORS, KINDS, DirectModel, EstimatorName
from credo.bandits.logs import Log
from credo.core.errors import CredoError, require_choice, require_interval, require_positive

__all__ = ["require_request", "span_of_rewards"]


def require_request(
    log: Log,
    estimator: EstimatorName,
    interval: IntervalName,
    level: float,
    clip: float | None,
    reward_range: tuple[float, float] | None,
    model: DirectModel | None,
) -> None:
    """Refuse, as a `CredoError`, what `evaluate` cannot do."""
    if not isinstance(log, Log):
        raise CredoError(
            f"log must be a Log; got {type(log).__name__}: read a file with `Log.read`.", field="log"
        )
    require_choice("estimator", estimator, ESTIMATORS)
    require_choice("interval", interval, INTERVALS)
    require_interval("level", level, 0.0, 1.0, closed=False)
    kind = KINDS[estimator]
    if clip is not None:
        require_positive("clip", clip)
        if not kind.weighs or interval == "sequence":
            what = f"estimator={estimator!r}" if not kind.weighs else "interval='sequence'"
            raise CredoError(f"clip must be left out with `{what}`, which cuts no weights.", field="clip")
    if model is not None and not kind.models:
        raise CredoError(
            f"model must be left out with `estimator={estimator!r}`, which has no model of the rewards; the "
            "estimators with one are direct, dr, switch and sn-dr.",
            field="model",
        )
    if interval == "sequence" and estimator not in ("ips", "dr"):
        raise CredoError(
            f"interval must be likelihood, bootstrap or bernstein with `estimator={estimator!r}`; a sequence "
            "is known for ips and dr.",
            field="interval",
        )
    if interval == "sequence" and estimator == "dr" and log.pmfs is None:
        raise CredoError(
            "interval='sequence' with `estimator='dr'` needs the probabilities of all arms (`pmfs`), which "
            "this log does not have: use `estimator='ips'`.",
            field="interval",
        )
    if reward_range is not None and not (
        np.shape(reward_range) == (2,)
        and np.isfinite(reward_range).all()
        and reward_range[0] < reward_range[1]
    ):
        raise CredoError(
            f"reward_range must be the least and the greatest reward that can occur; got {reward_range!r}.",
            field="reward_range",
        )


def span_of_rewards(
    log: Log, stated: tuple[float, float] | None, interval: IntervalName
) -> tuple[float, float]:
    """The least and the greatest reward that can occur: as stated, or those of the log.

    A `CredoError` says where a reward is outside of what was stated, or where all are the same and nothing
    was.
    """
    least, greatest = float(log.rewards.min()), float(log.rewards.max())
    if stated is None and least == greatest:
        raise CredoError(
            f"reward_range must be given for `interval={interval!r}` here, as all rewards of the log are "
            f"{least:g}.",
            field="reward_range",
        )
    if stated is None:
        return least, greatest
    if least < stated[0] or greatest > stated[1]:
        raise CredoError(
            f"reward_range must hold all rewards; it is {stated[0]:g} to {stated[1]:g}, and they are "
            f"{least:g} to {greatest:g}.",
            field="reward_range",
        )
    return float(stated[0]), float(stated[1])
