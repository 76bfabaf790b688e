"""Refusals of an evaluation, and warnings about an estimate, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from credo.bandits.evaluation.estimate import INTERVALS, IntervalName
from credo.bandits.evaluation.estimator_kinds import ESTIMATORS, KINDS, EstimatorName
from credo.bandits.evaluation.weighed_rows import DirectModel, WeighedRows
from credo.bandits.logs import Log
from credo.core.errors import CredoError, DataError, Named, require_choice, require_interval, require_positive

__all__ = [
    "effective_rows",
    "log_warnings",
    "require_overlap",
    "require_request",
    "span_of_rewards",
    "weight_warnings",
]


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
            what = Named("interval", "sequence") if kind.weighs else Named("estimator", estimator)
            raise CredoError(f"clip must be left out with {what}, which cuts no weights.", field="clip")
    if model is not None and not kind.models:
        others = ", ".join(name for name, kind in KINDS.items() if kind.models)
        raise CredoError(
            f"model must be left out with {Named('estimator', estimator)}, which has no model of the "
            f"rewards; the estimators with one are {others}.",
            field="model",
        )
    if kind.adapts and log.pmfs is None:
        raise CredoError(
            f"estimator={estimator!r} needs the probabilities of all arms (`pmfs`), which this log does not "
            "have: use 'dr'.",
            field="estimator",
        )
    if interval == "sequence" and estimator not in ("ips", "dr"):
        raise CredoError(
            f"interval must be likelihood, bootstrap or bernstein with {Named('estimator', estimator)}; "
            "a sequence is known for ips and dr.",
            field="interval",
        )
    if interval == "sequence" and estimator == "dr" and log.pmfs is None:
        raise CredoError(
            f"interval='sequence' with {Named('estimator', 'dr')} needs the probabilities of all arms "
            f"(`pmfs`), which this log does not have: use {Named('estimator', 'ips')}.",
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
    least = float(log.rewards.min())
    greatest = float(log.rewards.max())
    if stated is None and least == greatest:
        raise CredoError(
            f"reward_range must be given for {Named('interval', interval)} here, as all rewards of the "
            f"log are {least:g}.",
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


_FEW = 100
_SHARE = 0.05


def effective_rows(weights: np.ndarray) -> float:
    """Kish's effective sample size, (sum w)^2 / sum w^2."""
    squares = float((weights**2).sum())
    if squares > 0:
        return float(weights.sum()) ** 2 / squares
    return 0.0


def log_warnings(log: Log) -> Iterator[str]:
    """Whether the recorded propensities can be those by which the arms were drawn.

    If the probabilities of all arms are on record, each arm must have been chosen about as often as its
    own add up to. Otherwise the sum of 1 / p over the rows that chose an arm must not exceed the number of
    rows.
    """
    arms = len(log.arms)
    count = np.bincount(log.chosen, minlength=arms).astype(float)
    if log.pmfs is not None:
        expected = log.pmfs.sum(axis=0)
        spread = np.sqrt((log.pmfs * (1.0 - log.pmfs)).sum(axis=0))
        score = (np.abs(count - expected) - 1.0) / np.maximum(spread, 1e-3)
    else:
        inverse = np.bincount(log.chosen, 1.0 / log.propensities, arms)
        spread = np.sqrt(np.bincount(log.chosen, (1.0 - log.propensities) / log.propensities**2, arms))
        possible = log.allowed.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            score = np.nan_to_num((inverse - possible - 1.0) / np.maximum(spread, 1e-3))
            expected = np.nan_to_num(count * possible / inverse)
    worst = int(np.argmax(score))
    if score[worst] > 5.0:
        yield (
            f"arm {log.arms[worst]!r} was chosen in {count[worst]:,.0f} of {log.rows:,} rows, where its "
            f"propensities allow about {expected[worst]:,.0f}: they are not those by which the arms were "
            "drawn, and every estimate is wrong"
        )
    elif (log.propensities > 0.999).all() and (count > 0).sum() > 1 and log.pmfs is None:
        yield (
            "every propensity is 1, as if nothing had been left to chance: what other arms would have earned "
            "where they were not chosen is not in this log"
        )
    if log.counts is not None:
        yield from log.counts.sentences()


def require_overlap(weighed: WeighedRows) -> None:
    """Refuse, as a `DataError`, a policy that shares no choice with the log: all weights are 0."""
    if not (weighed.weights > 0).any():
        raise DataError(
            "policy must choose, in some rows, the arm that the log chose; it never does, so the log says "
            "nothing about it: log some rows with a policy that gives each arm a chance.",
            field="policy",
        )


def weight_warnings(
    weighed: WeighedRows,
    name: EstimatorName,
    cut: np.ndarray,
    clip: float | None,
    *,
    given: bool,
) -> Iterator[str]:
    """Warnings about the weights of an estimate: no overlap, few effective rows, cut weights, a wrong mean.

    `cut` (n,) are the weights that the estimator uses, and `clip` their bound, which may be `given`.
    """
    log = weighed.log
    weights = weighed.weights
    yield from _support(weighed)
    used = weights if name == "direct" else cut
    ess = effective_rows(used)
    rows = log.rows
    if ess < max(_FEW, _SHARE * rows):
        yield (
            f"the {rows:,} rows count as only {ess:,.0f}, and with so few the interval may be too narrow; "
            "more rows help, and so does a policy nearer to that of the log"
        )
    if clip is not None and name != "direct":
        above = int((weights > clip).sum())
        verb = {"drop": "left out", "shrink": "shrunk"}.get(KINDS[name].cuts or "clip", "cut")
        honest = KINDS[name].tunes is not None and not given
        about = "is that of 'dr', which does not rest on it" if honest else "does not know of it"
        if above:
            yield (
                f"{above:,} of {rows:,} weights are above {clip:.3g} and are {verb}, which biases the "
                f"estimate; the interval {about}"
            )
    spread = weights.std() / np.sqrt(rows)
    off = weights.mean() - 1.0
    if abs(off) > 4.0 * spread + 1e-6 and name != "direct":
        yield (
            f"the weights have the mean {weights.mean():.3g}, where 1 is expected: the propensities are not "
            "those by which the arms were drawn, or the log lacks arms that the policy chooses"
        )
    if name == "direct":
        yield "the interval of 'direct' takes the model of the rewards as exact; 'dr' does not"


def _support(weighed: WeighedRows) -> Iterator[str]:
    log = weighed.log
    every = weighed.all_weights
    if every is not None:
        lost = float(np.where(np.isinf(every), weighed.target, 0.0).sum(axis=1).mean())
        if lost > 1e-6:
            yield (
                f"the policy gives {lost:.2%} of its choices to arms that the log never chooses there; their "
                "rewards are not in the log, and count as 0, or as the model has them"
            )
        return
    count = np.bincount(log.chosen, minlength=len(log.arms))
    share = weighed.target.mean(axis=0)
    lost_arms = np.flatnonzero((count == 0) & (share > 1e-6))
    if lost_arms.size:
        names = ", ".join(log.arms[arm] for arm in lost_arms[:8]) + (", ..." if lost_arms.size > 8 else "")
        yield (
            f"the policy gives {share[lost_arms].sum():.2%} of its choices to arms that the log never chose "
            f"({names}); their rewards are not in the log, and count as 0, or as the model has them"
        )
