"""What a log must hold: names of arms, numbers of arms, and rows of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.core.errors import DataError

__all__ = ["NO_PROPENSITY", "arm_names", "arm_numbers", "check_pmfs"]

NO_PROPENSITY = (
    "has no propensity, the probability with which its arm was drawn; without it nothing can be said about "
    "another policy, and it cannot be found out afterwards: record `Choice.propensity` with every decision"
)


def check_pmfs(field: str, pmfs: np.ndarray, allowed: np.ndarray) -> None:
    """Refuse, as a `DataError`, rows (N, K) that are no probabilities, or give some to a forbidden arm."""
    with np.errstate(invalid="ignore"):
        good = (pmfs >= -1e-9).all(axis=1) & (np.abs(pmfs.sum(axis=1) - 1.0) < 1e-4)
    wrong = np.flatnonzero(~good)
    if wrong.size:
        shown = np.array2string(pmfs[wrong[0]], threshold=6, precision=4)
        raise DataError(
            f"{field} must be probabilities that sum to 1; row {wrong[0]} is {shown}.", field=field
        )
    barred = np.flatnonzero((np.where(allowed, 0.0, pmfs) > 1e-6).any(axis=1))
    if barred.size:
        raise DataError(
            f"{field} must be 0 for arms that are not allowed; in {barred.size} of {len(pmfs)} rows they are "
            f"not, first in row {barred[0]}.",
            field=field,
        )


def arm_names(arms: Sequence[Any] | int) -> tuple[str, ...]:
    """The names of arms as text: those given, or the numbers from 0 where only their count is.

    A `DataError` says that there is no arm, or that two have one name.
    """
    if isinstance(arms, str) or (not isinstance(arms, int | np.integer) and not len(arms)):
        raise DataError(f"arms must be the names of one or more arms; got {arms!r}.", field="arms")
    names = tuple(str(arm) for arm in (range(arms) if isinstance(arms, int | np.integer) else arms))
    if len(set(names)) < len(names):
        raise DataError(f"arms must have different names; got {', '.join(names[:8])}.", field="arms")
    return names


def arm_numbers(chosen: Any, arms: tuple[str, ...]) -> np.ndarray:
    """The numbers of chosen arms (N,) int64, from numbers or names; a `DataError` says which is no arm."""
    array = np.asarray(chosen)
    if array.dtype.kind in "USO":
        places = {name: place for place, name in enumerate(arms)}
        array = np.array([places.get(str(name), -1) for name in array.reshape(-1)])
        odd = np.flatnonzero(array < 0)
        if odd.size:
            raise DataError(
                f"chosen must be one of the arms {', '.join(arms[:8])}; row {odd[0]} has "
                f"{str(np.asarray(chosen).reshape(-1)[odd[0]])!r}.",
                field="chosen",
            )
    if array.ndim != 1 or not array.size or (array.dtype.kind == "f" and (array % 1 != 0).any()):
        raise DataError(
            f"chosen must hold the number of one arm for each of one or more decisions; got the "
            f"shape {array.shape}.",
            field="chosen",
        )
    odd = np.flatnonzero((array < 0) | (array >= len(arms)))
    if odd.size:
        raise DataError(
            f"chosen must be in 0..{len(arms) - 1}; row {odd[0]} has {array[odd[0]]}.", field="chosen"
        )
    return array.astype(np.int64)
