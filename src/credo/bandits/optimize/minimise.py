"""A search in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from credo.bandits.optimize.optimizer import Optimizer
from credo.bandits.optimize.promises import AcquisitionName
from credo.bandits.optimize.space import AnyBounds
from credo.core.errors import CredoError, require_integer

__all__ = ["minimize"]


def minimize(
    function: Callable[[Any], Any],
    bounds: AnyBounds,
    evaluations: int = 50,
    *,
    trials: Iterable[tuple[object, float | None]] = (),
    acquisition: AcquisitionName = "ei",
    deterministic: bool = False,
    seed: int = 0,
) -> Optimizer:
    """Search for the point where a function that is costly to try is smallest.

    Arguments:
        function: takes a point, a dict by names or an array (d,), and gives a number. A trial that gives None
            or a number that is not finite has failed: nothing is known there but that.
        bounds: the space, as for `Optimizer`.
        evaluations: how often the function is tried.
        trials: trials that were made before, as for `Optimizer.tell_all`: pairs of a point and its value.
        acquisition: how the next point is chosen, as for `Optimizer`.
        deterministic: whether the function has one value at a point, without noise.
        seed: the seed of all draws.

    Returns:
        The optimiser that was told all values: `best` is the best point with its value, `recommended` the
        point that is expected to be the best, `history` all trials; and it can be asked for more.

    Raises:
        CredoError: a bound or setting is not allowed, or the function gives what is no number.

    Cost: `evaluations` calls of the function, and as many questions, of some 10 ms each.

    Example:
        >>> from credo import bandits
        >>> search = bandits.minimize(lambda x: (x[0] - 0.3) ** 2, [[-1.0, 1.0]], evaluations=12)
        >>> point, value = search.best
        >>> bool(abs(point[0] - 0.3) < 0.01)
        True
    """
    require_integer("evaluations", evaluations, 1)
    search = Optimizer(
        None, bounds, goal="min", acquisition=acquisition, deterministic=deterministic, seed=seed
    )
    search.tell_all(trials)
    for _ in range(evaluations):
        point = search.ask()
        search.tell(point, _number(function(point)))
    return search


def _number(value: object) -> float | None:
    """The value that a function gave: a finite number, or None if its trial failed."""
    if value is None:
        return None
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        raise CredoError(f"function must give a number or None; it gave {value!r}.", field="function")
    number = float(array.reshape(()))
    if np.isfinite(number):
        return number
    return None
