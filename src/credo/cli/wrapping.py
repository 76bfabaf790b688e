"""Drifts that are a wrapper around the learner: run lengths, a mixture of experts, soft resets."""

from __future__ import annotations

from typing import Any

import credo
from credo.adapt import Experts, RunLength, SoftReset
from credo.cli import defaults
from credo.cli.options import RULES, WRAPPED, parse_drift, parse_posterior
from credo.core.errors import CredoError
from credo.core.records import replace
from credo.learners import Learner

__all__ = ["require_memory", "require_wrapping", "wrap"]


def wrap(drift: str, learner: Any) -> Learner:
    """The learner, in the wrapper that a `--drift` asks for, if any."""
    name, numbers = parse_drift(drift)
    if name == "run-length":
        return RunLength(learner, numbers[0], int(numbers[1]), threshold=defaults.ALARM)
    if name == "mixture":
        bank = [replace(learner, dynamics=credo.RandomWalk(q)) for q in defaults.MIXTURE]
        return Experts(bank, numbers[0])
    return SoftReset(learner, numbers[0]) if name == "soft-reset" else learner


def require_wrapping(drift: str, method: str) -> None:
    """Refuse wrappers that need a posterior for methods that keep none."""
    name, _ = parse_drift(drift)
    if name in WRAPPED and name != "run-length" and method not in RULES:
        raise CredoError(
            f"--drift {name} does not fit --method {method}, which keeps no uncertainty; "
            f"use --method {', '.join(RULES[:-1])} or {RULES[-1]}, or --drift run-length."
        )


def require_memory(posterior: str, size: int, drift: str) -> None:
    """Refuse a belief that would not fit in memory.

    Arguments:
        posterior: the family, or "none".
        size: the number P of parameters.
        drift: some keep several beliefs.
    """
    kind, numbers = parse_drift(drift)
    copies = {"run-length": 1 + int(numbers[-1]) if numbers else 1, "mixture": len(defaults.MIXTURE)}.get(
        kind, 1
    )
    name, rank = ("none", None) if posterior == "none" else parse_posterior(posterior)
    floats = size**2 if name == "full" else size * (1 + (rank or 1))
    total = 4 * floats * copies
    if total <= defaults.MEMORY_LIMIT:
        return
    gib = f"{total / 2**30:.0f} GiB" if total > 2**33 else f"{total / 2**30:.1f} GiB"
    if name == "full":
        held = f"a {size} x {size} covariance" if copies == 1 else f"{copies} covariances of {size} x {size}"
        with_drift = "" if copies == 1 else f" with --drift {drift}"
        raise CredoError(
            f"--posterior full would keep {held}{with_drift}, {gib}; use low-rank:10 or diagonal."
        )
    if copies > 1:
        raise CredoError(
            f"--drift {drift} would keep {copies:,} beliefs of {size:,} parameters, {gib}; "
            "use a smaller CAPACITY."
        )
