"""Off-policy evaluation: what one policy, or each of several, would have earned, from the log of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from credo.bandits.evaluation.confidence_sequences import bounds_of
from credo.bandits.evaluation.estimate import Comparison, Estimate, IntervalName
from credo.bandits.evaluation.estimate_warnings import (
    effective_rows,
    log_warnings,
    require_overlap,
    require_request,
    span_of_rewards,
    weight_warnings,
)
from credo.bandits.evaluation.estimator_kinds import ESTIMATORS, KINDS, EstimatorKind, EstimatorName
from credo.bandits.evaluation.intervals import (
    bernstein_interval,
    bootstrap_interval,
    few_rows_factor,
    likelihood_interval,
    memory_factor,
)
from credo.bandits.evaluation.target_policies import Target, target_pmfs
from credo.bandits.evaluation.weighed_rows import (
    DirectModel,
    Terms,
    WeighedRows,
    bound_of,
    design_of,
    reach_beyond,
    reward_values,
    term_width,
    terms_of,
    unseen_corners,
    weigh_rows,
)
from credo.bandits.logs import Log
from credo.core.errors import CredoError, require_choice

__all__ = ["compare", "evaluate_policy"]


def evaluate_policy(  # noqa: PLR0913 - settings, each by its name
    log: Log,
    policy: Target,
    *,
    estimator: EstimatorName = "dr",
    model: DirectModel | None = None,
    interval: IntervalName = "likelihood",
    level: float = 0.95,
    clip: float | None = None,
    reward_range: tuple[float, float] | None = None,
    seed: int = 0,
) -> Estimate:
    """Estimate the mean reward that a policy would have had in the rows of a log.

    With w = pi(a | x) / p and a direct model q, the estimators are "ips" mean(w r) (Horvitz & Thompson,
    1952), "snips" sum(w r) / sum(w), "clipped" mean(min(w, c) r) (Ionides, 2008), "direct" mean(sum_k pi q),
    "dr" direct + mean(w (r - q)) (Dudik et al., 2011), "sn-dr" direct + sum(w (r - q)) / sum(w), and
    "switch", which is dr without the rows of w > c (Wang et al., 2017). "switch-slope" lets the log choose
    that c by SLOPE (Su et al., 2020b); so do "dr-ps" and "dr-os" by their estimated errors, which are dr with
    the weights min(w, c) and c^2 w / (w^2 + c^2) (Su et al., 2020a). "dr-adaptive" is sum(h (V + w (r - q)))
    / sum(h) with weights h of rows, by what earlier rows let expect of their variance (Hadad et al., 2021).

    ips is unbiased where the propensities are right; so is dr, whatever the model. snips, sn-dr, and in a
    world that stays dr-adaptive, are consistent; those that cut weights trade bias for variance. Where the
    log chooses the bound, the interval is that of dr, which does not rest on it, and holds the estimate, too.

    The intervals: "likelihood" (Karampatziakis et al., 2020) and "bootstrap" (BCa) have the nominal rate for
    many rows; the former comes much nearer to it where few rows carry the weight, and knows what the
    probabilities of all arms say of rare weights, and contexts with a memory; around a direct model it has
    the quantile of Student's t for the effective number of rows. "bernstein" (Maurer & Pontil,
    2009) holds for any number of independent rows, if the rewards are in `reward_range` and the log knows all
    its pmfs; it is wide. "sequence" holds at all times together, without a bound of the weights; it is for
    ips and dr.

    Cost: O(N K), with a regression O(N d^2); the bootstrap takes 1,000 draws of at most 10,000 rows.

    Arguments:
        log: N decisions with propensities. Rows without a reward are left out.
        policy: see `target_pmfs`: probabilities (N, K) or (K,), a function of a context and the allowed arms,
            an object with `pmfs`, or the name of an arm.
        estimator: one of those above.
        model: q: a function of the contexts that gives (N, K), or these numbers, fitted on other data; None
            fits ridge regressions on other rows of the log (`arm_values`).
        interval: "likelihood", "bootstrap", "bernstein" or "sequence".
        level: the probability with which the interval is to hold the value.
        clip: c, the bound of the weights; None is sqrt(N) for "clipped" and "switch", what the log chooses
            for "switch-slope", "dr-ps" and "dr-os", and no bound for others.
        reward_range: the least and the greatest reward that can occur; None takes those of the log.
        seed: the seed of the bootstrap and of the regression's parts.

    Returns:
        The value with its interval, its effective number of rows and warnings. It prints as a sentence.

    Raises:
        CredoError: an argument is not one of those allowed.
        DataError: the log has fewer than two rewards, or shares no choice with the policy.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> chosen = rng.integers(0, 2, 1000)
        >>> rewards = (rng.random(1000) < np.array([0.2, 0.6])[chosen]).astype(float)
        >>> log = Log(("red", "blue"), chosen, rewards, np.full(1000, 0.5))
        >>> estimate = evaluate_policy(log, "blue")
        >>> estimate.low < 0.6 < estimate.high
        True
    """
    require_request(log, estimator, interval, level, clip, reward_range, model)
    kind = KINDS[estimator]
    weighed = weigh_rows(log, policy)
    if kind.weighs:
        require_overlap(weighed)
    values = None
    if kind.models:
        values = reward_values(weighed, model, before=interval == "sequence", seed=seed)
    given = clip is not None
    clip = bound_of(weighed, kind, values, clip)
    terms = terms_of(weighed, kind, values, clip)
    bound = None if kind.tunes is not None and not given else clip
    whole = terms if bound == clip else terms_of(weighed, kind, values, None)
    warnings = [*log_warnings(log), *_missing(log, weighed)]
    warnings += weight_warnings(weighed, estimator, terms.weights, clip, given=given)
    if interval in ("likelihood", "bootstrap"):
        low, high = (
            bootstrap_interval(whole, level, seed)
            if interval == "bootstrap"
            else _likelihood(weighed, whole, kind, values, bound, reward_range, level)
        )
        if low == high:
            warnings.append(
                f"the {interval} sees no spread in these rows, so its interval is a point; 'bernstein' with "
                "`reward_range` has one for any rewards"
            )
    else:
        ends = span_of_rewards(weighed.log, reward_range, interval)
        if interval == "sequence":
            bounds = bounds_of(weighed, values, ends, level)
            low = float(bounds.low[-1])
            high = float(bounds.high[-1])
        else:
            width = (
                float(np.ptp(whole.influence))
                if kind.normalises
                else term_width(weighed, kind, values, bound, ends)
            )
            low, high = bernstein_interval(whole.influence, width, level)
            low = max(low, ends[0])
            high = min(high, ends[1])
        warnings += _approximations(weighed, kind.normalises, interval, ends, reward_range)
    if whole is not terms:
        low = min(low, terms.value)
        high = max(high, terms.value)
    used = terms.weights if kind.weighs else weighed.weights
    return Estimate(
        value=terms.value,
        low=low,
        high=high,
        level=level,
        ess=effective_rows(used),
        rows=weighed.log.rows,
        weights_max=float(weighed.weights.max()),
        on_policy=float(weighed.log.rewards.mean()),
        estimator=estimator,
        interval=interval,
        warnings=tuple(warnings),
        clip=clip,
    )


def _likelihood(
    weighed: WeighedRows,
    terms: Terms,
    kind: EstimatorKind,
    values: np.ndarray | None,
    clip: float | None,
    stated: tuple[float, float] | None,
    level: float,
) -> tuple[float, float]:
    """The interval of empirical likelihood, widened where it does not hold the estimate itself.

    Its nats are multiplied for contexts with a memory, for rare weights, and for a variance from few rows.
    """
    inflation = memory_factor(terms.direct, terms.influence)
    if terms.shares is not None:
        numbers = terms.influence
        ends = terms.value + reach_beyond(numbers) * (np.array([numbers.min(), numbers.max()]) - terms.value)
        weights = None
        corners = np.stack([np.ones(2), ends], axis=1)
    else:
        span = None if stated is None else span_of_rewards(weighed.log, stated, "likelihood")
        corners = unseen_corners(weighed, kind, values, clip, span)
        weights = weighed.weights if kind.weighs else None
        numbers = terms.direct + terms.correction
        inflation += design_of(weighed, kind, values, clip) - 1.0
    if kind.weighs and kind.models:  # ips knows the mean of the weights, which makes up for few rows
        inflation *= few_rows_factor(effective_rows(terms.weights), level)
    low, high = likelihood_interval(numbers, weights, corners, level, inflation)
    return float(min(low, terms.value)), float(max(high, terms.value))


def _missing(log: Log, weighed: WeighedRows) -> list[str]:
    lost = log.rows - weighed.log.rows
    if not lost:
        return []
    return [
        f"{lost:,} of {log.rows:,} decisions have no reward and are left out, which is right only if rewards "
        "go missing whatever they are; where a missing reward means 0, write the 0"
    ]


def _approximations(
    weighed: WeighedRows,
    normalises: bool,
    interval: IntervalName,
    ends: tuple[float, float],
    stated: tuple[float, float] | None,
) -> list[str]:
    said = []
    if stated is None:
        said.append(
            f"the interval takes rewards to be in {ends[0]:g} to {ends[1]:g}, as in this log; give "
            "`reward_range` to make sure"
        )
    if interval == "bernstein" and normalises:
        said.append("the interval is approximate, since weights that are divided by their sum are linearised")
    elif interval == "bernstein" and weighed.all_weights is None:
        said.append(
            "the interval is approximate, as the greatest weight that can be is taken from the chosen arms; "
            "a log with the probabilities of all arms (`pmfs`) says it exactly"
        )
    return said


def compare(  # noqa: PLR0913 - settings, each by its name
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
        log, model, interval, level, reward_range, seed: see `evaluate_policy`.
        policies: each with its name.
        estimator: one or several.
        clip: see `evaluate_policy`; it goes to the estimators that weigh.

    Returns:
        The estimates, which print as a table.

    Raises:
        CredoError, DataError: as `evaluate_policy`.

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
            estimates[policy_name, name] = evaluate_policy(
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
