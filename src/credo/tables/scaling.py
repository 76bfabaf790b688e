"""Standardise numbers online: each row by the mean and spread of the rows before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from credo.core.errors import DataError, require_representable
from credo.core.outlying import known_spread
from credo.tables.moments import Moments

__all__ = ["ScaledTarget", "TargetScaler", "shrunk_clip"]


def shrunk_clip(count: np.ndarray, clip: float) -> np.ndarray:
    """The largest size of a standardised value after `count` rows: min(clip, sqrt(count))."""
    limit: np.ndarray = np.minimum(clip, np.sqrt(count))
    return limit


@dataclass(frozen=True)
class ScaledTarget:
    """Regression targets in units of the spread of the targets before them.

    Arguments:
        z: (n,) float64, (y - location) / scale, clipped; 0 while no spread is known.
        location: (n,) float64, the mean of the earlier targets (0 before the first).
        scale: (n,) float64, their standard deviation (1 while none is known); never 0.
        known: (n,) bool, whether at least `warmup` earlier targets with some spread were seen.

    Example:
        >>> one = np.ones(1)
        >>> ScaledTarget(one, 3.0 * one, 2.0 * one, one > 0).inverse(one, one)
        (array([5.]), array([2.]))
    """

    z: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    known: np.ndarray

    def part(self, rows: slice | np.ndarray) -> ScaledTarget:
        """Some of the rows."""
        return ScaledTarget(self.z[rows], self.location[rows], self.scale[rows], self.known[rows])

    def inverse(self, mean: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Turn predictions for these rows, (n,) mean and sd, back into the target's own units."""
        mean = np.asarray(mean, np.float64)
        sd = np.asarray(sd, np.float64)
        return self.location + self.scale * mean, self.scale * sd


class TargetScaler:
    """Standardise a regression target online, each row by the rows before it, in an invertible way.

    Arguments:
        clip: the largest size of a standardised target.
        warmup: how many targets must have been seen before `ScaledTarget.known` is True.

    Raises:
        DataError: `clip` is not above 0.

    Example:
        >>> scaler = TargetScaler()
        >>> state, scaled = scaler.encode(scaler.initial(), np.array([10.0, 20.0, 30.0]))
        >>> scaled.location.tolist(), scaled.z.round(3).tolist()
        ([0.0, 10.0, 15.0], [0.0, 0.0, 1.414])
        >>> [float(part) for part in scaler.inverse(state, 1.0, 0.5)]
        [30.0, 5.0]
    """

    def __init__(self, clip: float = 8.0, warmup: int = 10) -> None:
        require_representable("clip", clip)
        if not clip > 0:
            raise DataError(f"clip must be above 0; got {clip!r}.")
        self.clip = float(clip)
        self.warmup = warmup

    def initial(self) -> Moments:
        """The state before any target."""
        return Moments.empty(1)

    def encode(
        self, state: Moments, y: np.ndarray, *, learn: bool = True, weights: np.ndarray | None = None
    ) -> tuple[Moments, ScaledTarget]:
        """Standardise targets.

        Arguments:
            state: from `initial` or an earlier call.
            y: (n,) float64, finite.
            learn: whether rows are taken into the state; otherwise `state` stays as it is.
            weights: the weights of the rows in the moments; see `Moments.scan`.

        Returns:
            The next state and the standardised targets.

        Raises:
            DataError: a target is not finite.
        """
        y = np.asarray(y, np.float64).reshape(-1, 1)
        if np.count_nonzero(np.isfinite(y)) < len(y):
            raise DataError(f"targets must be finite; row {int(np.argmin(np.isfinite(y)))} of these is not.")
        if learn:
            after, mean, sd, count = state.scan(y, weights)
        else:
            after = state
            shape = y.shape
            mean = np.broadcast_to(state.mean(), shape)
            sd = np.broadcast_to(state.sd(), shape)
            count = np.broadcast_to(state.count, shape)
        spread = known_spread(mean, sd)
        scale = np.where(spread, sd, 1.0)
        limit = shrunk_clip(count, self.clip)
        z = np.where(spread, np.maximum(np.minimum((y - mean) / scale, limit), -limit), 0.0)
        known = spread & (count >= self.warmup)
        return after, ScaledTarget(z[:, 0], mean[:, 0].copy(), scale[:, 0], known[:, 0])

    def inverse(
        self, state: Moments, mean: np.ndarray | float, sd: np.ndarray | float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Turn a prediction for the next row back into the target's own units.

        Arguments:
            state: the state before that row.
            mean, sd: a predicted mean and standard deviation in standardised units, of any one shape.

        Returns:
            The mean and standard deviation in the target's units.
        """
        location = state.mean()[0]
        spread = state.sd()[0]
        scale = spread if known_spread(location, spread) else 1.0
        return location + scale * np.asarray(mean, np.float64), scale * np.asarray(sd, np.float64)
