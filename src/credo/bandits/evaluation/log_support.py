"""The support of a policy in a log: rows without weight, effective rows, and the largest weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from credo.bandits.evaluation.estimate_warnings import effective_rows
from credo.bandits.evaluation.target_policies import Target
from credo.bandits.evaluation.weighed_rows import WeighedRows, weigh_rows
from credo.bandits.logs import Log

__all__ = ["Support", "log_support", "support_of"]

LARGEST = 5
"""The number of largest weights that are kept."""


@dataclass(frozen=True)
class Support:
    """The support of a policy in a log: how much the log says about it. It prints as a sentence.

    Attributes:
        rows: the rows with rewards.
        unused: the share of them whose weight is 0, as the policy never chooses their arm there.
        ess: how many rows with equal weights would count as much (Kish).
        largest: the largest weights pi(a | x) / p, from the largest on.
        heaviest: the share of all weight that these carry.
        missing: the share of the policy's choices that the log never makes there; None if the log does not
            have the probabilities of all arms.

    Example:
        >>> print(Support(100, 0.25, 60.0, (4.0, 2.5), 0.065, None))
        100 rows count as 60; 25% have the weight 0; the 2 largest weights, 4 to 2.5, carry 6.5% of all.
    """

    rows: int
    unused: float
    ess: float
    largest: tuple[float, ...]
    heaviest: float
    missing: float | None

    def __str__(self) -> str:
        lost = f" The log never makes {100 * self.missing:.3g}% of its choices." if self.missing else ""
        ends = f"{self.largest[0]:.3g} to {self.largest[-1]:.3g}"
        return (
            f"{self.rows:,} rows count as {self.ess:,.0f}; {100 * self.unused:.3g}% have the weight 0; "
            f"the {len(self.largest)} largest weights, {ends}, carry "
            f"{100 * self.heaviest:.3g}% of all.{lost}"
        )


def log_support(log: Log, policy: Target) -> Support:
    """Say how much of a log speaks about a policy.

    With the weights w = pi(a | x) / p, the rows count as (sum w)^2 / sum w^2 (Kish, 1965). A policy near to
    that of the log has many effective rows; an estimate of it rests on all of them. Exact.

    Cost: O(N K).

    Arguments:
        log: N decisions with propensities. Rows without a reward are left out.
        policy: see `target_pmfs`.

    Returns:
        The shares and weights, which print as a sentence.

    Raises:
        CredoError, DataError: as `evaluate`.

    Example:
        >>> log = Log(("a", "b"), [0, 1, 0, 0], [1.0, 0.0, 1.0, 0.0], [0.5, 0.5, 0.5, 0.5])
        >>> found = log_support(log, "a")
        >>> found.unused, found.ess, found.largest[0]
        (0.25, 3.0, 2.0)
    """
    return support_of(weigh_rows(log, policy))


def support_of(weighed: WeighedRows) -> Support:
    """The support in rows that are weighed already."""
    weights = weighed.weights
    every = weighed.all_weights
    largest = np.sort(weights)[::-1][:LARGEST]
    total = float(weights.sum())
    missing = None
    if every is not None:
        missing = float(np.where(np.isinf(every), weighed.target, 0.0).sum(axis=1).mean())
    return Support(
        rows=weights.size,
        unused=float((weights == 0.0).mean()),
        ess=effective_rows(weights),
        largest=tuple(largest.tolist()),
        heaviest=float(largest.sum() / total) if total > 0.0 else 0.0,
        missing=missing,
    )
