"""Off-policy evaluation of slates: what another order of arms would have earned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from credo.bandits.evaluation.estimate import Estimate
from credo.bandits.evaluation.estimate_warnings import effective_rows, log_warnings
from credo.bandits.evaluation.intervals import bootstrap_interval, likelihood_interval, memory_factor
from credo.bandits.evaluation.regression import arm_values
from credo.bandits.evaluation.target_policies import Target, TargetPolicy, target_pmfs
from credo.bandits.evaluation.weighed_rows import Terms, reach_beyond
from credo.bandits.logs import Log
from credo.bandits.logs.json_lines import MARK
from credo.core.errors import CredoError, DataError, require_choice, require_interval
from credo.core.inputs import require_numbers

__all__ = ["SlateEstimatorName", "evaluate_slates"]

SlateEstimatorName: TypeAlias = Literal["sips", "rips", "dr"]
"""The estimators: weights of whole slates, weights down to each place, and these with a direct model."""


class _Slates(NamedTuple):
    """n slates of at most S places. `rows` (n, S) are rows of the log, -1 below the last place of a slate;
    `rewards` (n, S) are weighed and 0 if there are none; `lost` slates had no reward, or lacked a place.
    """

    rows: np.ndarray
    rewards: np.ndarray
    lost: int


def evaluate_slates(
    log: Log,
    policy: Target | Sequence[str],
    *,
    estimator: SlateEstimatorName = "dr",
    places: Sequence[float] | None = None,
    interval: Literal["likelihood", "bootstrap"] = "likelihood",
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Estimate the mean reward of a slate that a policy would have chosen, sum_k a_k r_k over its places.

    With the weight w_k = pi(arm | x, arms above) / p of each place, W_k = w_1 ... w_k, and a direct model q_k
    of what the places from k on will earn under the policy, with V_k = sum_a pi(a | x, arms above) q_k(x, a):

        sips    mean(W_S sum_k a_k r_k)
        rips    mean(sum_k W_k a_k r_k)                                    (McInerney et al. 2020, KDD, eq. 5)
        dr      mean(V_1 + sum_k W_k (a_k r_k + V_(k+1) - q_k(x, arm_k)))  (Kiyohara et al. 2022, WSDM, eq. 9)

    "sips" is unbiased however a reader goes through a slate. "rips" and "dr" are where the reward of a place
    depends on the arms above it, as in a cascade, but not on those below; their variance is far smaller. The
    pseudo-inverse estimator (Swaminathan et al. 2017) is not here: it needs the probability of each arm at
    each place whatever stands above it, which a log of decisions does not have.

    The rows of a slate are found by their ids, "x", "x#2", "x#3", ..., as `Bandit.decide_slate` gives them.
    A place without a reward earned 0 if another place of the slate has one; slates without any are left out.

    Arguments:
        log: the decisions. `propensities` and `allowed` are those of a place, given the places above it.
        policy: as for `evaluate_policy`, asked once a place, with the arms that are left as those allowed;
            or probabilities (K,), from which arms are drawn without replacement; or the names of one slate.
        estimator: "sips", "rips" or "dr".
        places: the weights a_k of the places (S,); None for 1 each.
        interval: "likelihood" or "bootstrap"; see `evaluate_policy`.
        level: the probability with which the interval is to hold the value.
        seed: the seed of the bootstrap and of the regression's parts.

    Returns:
        The value of a slate with its interval; `rows` and `ess` count slates.

    Raises:
        CredoError: an argument is not one of those allowed.
        DataError: the log has no ids, or fewer than two slates with rewards, or shares none with the policy.

    Cost: O(N K), and the regressions O(N d^2).

    Example:
        >>> rng = np.random.default_rng(0)
        >>> first = rng.integers(0, 2, 500)
        >>> chosen = np.stack([first, 1 - first], axis=1).reshape(-1)
        >>> clicked = rng.random(1000) < np.array([0.2, 0.6])[chosen] * np.tile([1.0, 0.5], 500)
        >>> ids = [f"s{n}{mark}" for n in range(500) for mark in ("", "#2")]
        >>> left = np.ones((1000, 2), bool)
        >>> left[np.arange(1, 1000, 2), first] = False
        >>> shares = np.tile([0.5, 1.0], 500)
        >>> log = Log(("red", "blue"), chosen, clicked * 1.0, shares, allowed=left, ids=ids)
        >>> estimate = evaluate_slates(log, ["blue", "red"])
        >>> estimate.low < 0.7 < estimate.high
        True
    """
    if not isinstance(log, Log):
        raise CredoError(f"log must be a Log; got {type(log).__name__}.", field="log")
    require_choice("estimator", estimator, get_args(SlateEstimatorName))
    require_choice("interval", interval, ("likelihood", "bootstrap"))
    require_interval("level", level, 0.0, 1.0, closed=False)
    slates = _slates(log, places)
    target = _pmfs(log, policy, slates.rows)
    there = slates.rows >= 0
    at = np.where(there, slates.rows, 0)
    ratios = target[np.arange(log.rows), log.chosen] / log.propensities
    weights = np.cumprod(np.where(there, ratios[at], 1.0), axis=1)
    whole = weights[:, -1]
    if not whole.any():
        raise DataError(
            "policy shares no slate with the log: its weight is 0 for each of the "
            f"{len(whole):,} slates, so nothing is known of its value.",
            field="policy",
        )
    terms = _terms(log, slates, target, weights, estimator, seed)
    low, high = (
        bootstrap_interval(terms, level, seed) if interval == "bootstrap" else _likelihood(terms, level)
    )
    warnings = list(log_warnings(log))
    if slates.lost:
        warnings.append(f"{slates.lost:,} slates have no reward, or lack a place, and were left out")
    ess = effective_rows(whole)
    if ess < 100 or ess < 0.05 * len(whole):
        warnings.append(
            f"the {len(whole):,} slates count as {ess:,.0f}: the policy and the log rarely choose the same"
            if ess < 0.5 * len(whole)
            else f"there are {len(whole):,} slates only, so that the interval may be too narrow"
        )
    return Estimate(
        value=terms.value,
        low=low,
        high=high,
        level=level,
        ess=ess,
        rows=len(whole),
        weights_max=float(whole.max()),
        on_policy=float(slates.rewards.sum(axis=1).mean()),
        estimator=estimator,
        interval=interval,
        warnings=tuple(warnings),
        unit="slate",
    )


def _slates(log: Log, places: Sequence[float] | None) -> _Slates:
    """The rows of the log by slate and place, and the weighed rewards."""
    if log.ids is None:
        raise DataError("the log must have ids, by which the places of a slate are found.", field="ids")
    found: dict[str, dict[int, int]] = {}
    for row, id in enumerate(log.ids.tolist()):
        base, _, place = id.partition(MARK)
        if place and not (place.isdecimal() and int(place) >= 2):
            raise DataError(
                f"ids of the places of a slate must be like 'x', 'x#2'; row {row} has {id!r}.", field="ids"
            )
        found.setdefault(base, {})[int(place or 1) - 1] = row
    deepest = 1 + max((max(rows) for rows in found.values()), default=0)
    numbers = np.full((len(found), deepest), -1)
    for slate, rows in enumerate(found.values()):
        numbers[slate, list(rows)] = list(rows.values())
    gained = np.where(numbers >= 0, log.rewards[np.maximum(numbers, 0)], np.nan)
    depth = (numbers >= 0).sum(axis=1)
    whole = (numbers >= 0).cumsum(axis=1)[np.arange(len(found)), depth - 1] == depth
    whole &= np.isfinite(gained).any(axis=1)
    if whole.sum() < 2:
        raise DataError(
            f"the log must have two or more slates with rewards; it has {whole.sum()} among {len(found):,}.",
            field="rewards",
        )
    share = np.ones(deepest) if places is None else np.asarray(places, dtype=np.float64)
    if share.shape != (deepest,) or not np.isfinite(share).all():
        raise CredoError(
            f"places must be a finite weight for each of the {deepest} places; got {places!r:.80}.",
            field="places",
        )
    return _Slates(numbers[whole], np.nan_to_num(gained[whole]) * share, int((~whole).sum()))


def _pmfs(log: Log, policy: Target | Sequence[str], rows: np.ndarray) -> np.ndarray:
    """The probabilities of arms at every row of the log (N, K), given the places above it."""
    if callable(policy) or isinstance(policy, TargetPolicy):
        return target_pmfs(log, policy)
    even = log.allowed / log.allowed.sum(axis=1, keepdims=True)
    names = [policy] if isinstance(policy, str) else list(np.asarray(policy, dtype=object).reshape(-1))
    if names and all(isinstance(name, str) for name in names):
        if len(names) != rows.shape[1] or len(set(names)) < len(names) or set(names) - set(log.arms):
            raise CredoError(
                f"policy must name {rows.shape[1]} different arms of the log, from the top; got "
                f"{names!r:.80}.",
                field="policy",
            )
        return _named(log, [log.arms.index(name) for name in names], rows, even)
    shares = np.asarray(policy, dtype=np.float64)
    if shares.shape != (len(log.arms),):
        return target_pmfs(log, shares)
    require_numbers("policy", shares)
    if not (np.isfinite(shares).all() and (shares >= 0).all() and abs(shares.sum() - 1.0) < 1e-4):
        raise CredoError(f"policy must be probabilities that sum to 1; got {policy!r:.80}.", field="policy")
    left = log.allowed * shares
    total = left.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, left / np.where(total > 0, total, 1.0), even))


def _named(log: Log, arms: Sequence[int], rows: np.ndarray, even: np.ndarray) -> np.ndarray:
    """The probabilities (N, K) of one slate. Below another arm than its own a slate has no weight any more,
    so that any probabilities will do there.
    """
    pmfs = np.array(even)
    for place, arm in enumerate(arms):
        here = rows[rows[:, place] >= 0]
        above = log.chosen[np.maximum(here[:, :place], 0)]
        at = here[:, place]
        barred = ~log.allowed[at, arm]
        if (barred & ~(above == arm).any(axis=1)).any():
            raise DataError(
                f"policy must name arms that may be chosen; {log.arms[arm]!r} may not be in some slates: "
                "evaluate a function of the context and the allowed arms instead.",
                field="policy",
            )
        pmfs[at[~barred]] = np.eye(len(log.arms))[arm]
    return pmfs


def _terms(
    log: Log, slates: _Slates, target: np.ndarray, weights: np.ndarray, estimator: str, seed: int
) -> Terms:
    """The terms of an estimator, one a slate."""
    count, depth = slates.rows.shape
    if estimator == "sips":
        return Terms(np.zeros(count), weights[:, -1] * slates.rewards.sum(axis=1), weights[:, -1], False)
    if estimator == "rips":
        return Terms(np.zeros(count), (weights * slates.rewards).sum(axis=1), weights[:, -1], False)
    correction = np.zeros(count)
    rest = np.zeros(count)
    for place in reversed(range(depth)):
        here = np.flatnonzero(slates.rows[:, place] >= 0)
        rows = slates.rows[here, place]
        gained = slates.rewards[here, place] + rest[here]
        values = arm_values(replace(log.take(rows), rewards=gained), seed=seed)
        errors = gained - values[np.arange(len(here)), log.chosen[rows]]
        correction[here] += weights[here, place] * errors
        rest[here] = (target[rows] * values).sum(axis=1)
    return Terms(rest, correction, weights[:, -1], False)


def _likelihood(terms: Terms, level: float) -> tuple[float, float]:
    """The interval of empirical likelihood for the mean of the slates' terms."""
    numbers = terms.influence
    ends = terms.value + reach_beyond(numbers) * (np.array([numbers.min(), numbers.max()]) - terms.value)
    corners = np.stack([np.ones(2), ends], axis=1)
    inflation = memory_factor(terms.direct, numbers)
    low, high = likelihood_interval(numbers, None, corners, level, inflation)
    return min(low, terms.value), max(high, terms.value)
