"""Times of rows: which times can be, and the lengths of the steps between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from credo.core.errors import CredoError, require_representable
from credo.core.inputs import require_finite

__all__ = ["require_times", "steps_after", "steps_between"]


def require_times(
    times: ArrayLike | None, latest: float | None, timed: bool | None, *, ordered: bool = True
) -> np.ndarray | None:
    """Times (n,) that may follow the `latest`, each from the one before on if `ordered`. A CredoError refuses
    others, and all where earlier rows had none: `timed` says whether they had, None that there are none.
    """
    if times is None:
        return None
    require_representable("times", times)
    clock = np.asarray(times, np.float64)
    if timed is False:
        raise CredoError(
            "times must be given for all rows or for none; the earlier rows had none.", field="times"
        )
    if clock.ndim != 1:
        raise CredoError(f"times must be one a row; got the shape {clock.shape}.", field="times")
    require_finite("times", clock)
    start = -np.inf if latest is None else latest
    before = np.concatenate([[start], clock[:-1]]) if ordered else np.full(len(clock), start)
    back = clock < before
    if back.any():
        row = int(np.argmax(back))
        raise CredoError(
            f"times must not go back; got {clock[row]:g} after {before[row]:g} at row {row}.", field="times"
        )
    return clock


def steps_between(times: np.ndarray, latest: float | None) -> np.ndarray:
    """The time since the row before, for rows that are learned one after the other (n,); 0 at the first."""
    return np.diff(times, prepend=times[0] if latest is None else latest)


def steps_after(times: np.ndarray, latest: float | None) -> np.ndarray:
    """The time since the latest row that was learned, for rows to forecast (n,); 0 if there is none."""
    if latest is None:
        return np.zeros(len(times))
    return times - latest
