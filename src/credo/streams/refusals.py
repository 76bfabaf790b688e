"""Why rows of a stream were not taken in: they were missing, or they were refused, for a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import jax
import numpy as np

from credo.core.types import ArrayLike, PyTree
from credo.metrics import Scores

__all__ = ["FEW", "Reason", "count_refusals", "sentence"]

Reason: TypeAlias = Literal["inputs", "targets", "weights", "labels", "update"]
"""Why a row was refused."""

FEW = 3
"""So many refused rows in a thousand are passed over in silence."""

_WORDS: dict[Reason, str] = {
    "inputs": "inputs that are not finite",
    "targets": "a target that is infinite",
    "weights": "a weight that is not finite",
    "labels": "a label that is none of the classes",
    "update": "an update that would not have been finite, or a target that the likelihood does not allow",
}


def _rows(tree: PyTree, length: int, test: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The rows of which some floating-point number passes a test, booleans (N,)."""
    some = np.zeros(length, bool)
    for leaf in jax.tree.leaves(tree):
        array = np.asarray(leaf)
        if array.dtype.kind == "f":
            some |= test(array).reshape(length, -1).any(axis=1)
    return some


def _labels(ys: PyTree, length: int) -> np.ndarray:
    """The labels as one number a row (N,), or nothing if they are no single numbers."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(ys)]
    return leaves[0].reshape(length) if len(leaves) == 1 and leaves[0].size == length else np.zeros(0)


def count_refusals(
    xs: PyTree, ys: PyTree, weights: ArrayLike | None, ok: np.ndarray, scores: Scores
) -> dict[Reason, int]:
    """How many rows were refused, by reason. A row without a target is missing, and not refused."""
    length = len(ok)
    missing = _rows(ys, length, np.isnan)
    reasons: dict[Reason, np.ndarray] = {
        "inputs": _rows(xs, length, lambda array: ~np.isfinite(array)),
        "targets": _rows(ys, length, np.isinf),
        "weights": _rows(weights, length, lambda array: ~np.isfinite(array)),
    }
    label = _labels(ys, length)
    if scores.probs is not None and label.size:
        if label.dtype.kind != "f":
            missing |= label < 0
        reasons["labels"] = (label < 0) | (label >= scores.probs.shape[1])
    left = ~ok & ~missing
    counts: dict[Reason, int] = {}
    for reason, rows in reasons.items():
        if found := int((left & rows).sum()):
            counts[reason] = found
        left = left & ~rows
    if left.any():
        counts["update"] = int(left.sum())
    return counts


def sentence(refused: Mapping[Reason, int], length: int) -> str:
    """How many of the rows were refused, and why."""
    total = sum(refused.values())
    why = "; ".join(f"{count:,} with {_WORDS[reason]}" for reason, count in refused.items())
    was = "row was" if length == 1 else "rows were"
    return f"{total:,} of {length:,} {was} refused and not learned from: {why}."
