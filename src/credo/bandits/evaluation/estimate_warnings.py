"""What speaks against an estimate, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from credo.bandits.evaluation.weighed_rows import EstimatorName, WeighedRows
from credo.bandits.logs import Log
from credo.core.errors import DataError

__all__ = ["effective_rows", "log_warnings", "require_overlap", "weight_warnings"]

_FEW, _SHARE = 100, 0.05


def effective_rows(weights: np.ndarray) -> float:
    """Kish's effective sample size, (sum w)^2 / sum w^2."""
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def log_warnings(log: Log) -> Iterator[str]:
    """Whether the recorded propensities can be those by which the arms were drawn.

    Where the probabilities of all arms are on record, each arm must have been chosen about as often as its
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
    weighed: WeighedRows, name: EstimatorName, cut: np.ndarray, clip: float | None
) -> Iterator[str]:
    """What the weights say against an estimate: no overlap, few effective rows, cut weights, a wrong mean.

    `cut` (n,) are the weights that the estimator uses, and `clip` their bound.
    """
    log, weights = weighed.log, weighed.weights
    yield from _support(weighed)
    used = weights if name == "direct" else cut
    ess, rows = effective_rows(used), log.rows
    if ess < max(_FEW, _SHARE * rows):
        yield (
            f"the {rows:,} rows count as only {ess:,.0f}, and with so few the interval may be too narrow; "
            "more rows help, and so does a policy nearer to that of the log"
        )
    if clip is not None and name != "direct":
        above = int((weights > clip).sum())
        verb = "are left out" if name == "switch" else "are cut"
        if above:
            yield (
                f"{above:,} of {rows:,} weights are above {clip:g} and {verb}, which biases the estimate; "
                "the interval does not know of it"
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
    log, every = weighed.log, weighed.all_weights
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
