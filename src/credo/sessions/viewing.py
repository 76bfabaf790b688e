"""One whole state of a session to forecast by, which no learning changes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from numpy.typing import ArrayLike

from credo.core.turns import in_turn
from credo.live.clock import require_times
from credo.live.encoding import Block, Encoding
from credo.live.intake import Rows, blocks_of
from credo.programs.packed import PackedBelief
from credo.sessions.forecasts import Forecasts, forecast_blocks
from credo.tables import Moments

__all__ = ["View", "changing"]

M = TypeVar("M", bound=Callable[..., Any])
"""A method."""


class View(NamedTuple):
    """A belief, how rows are encoded, the labels of the classes (none for numbers), and the moments of the
    targets, None if these are forecast as they come; and the time of the latest row, and whether rows have
    times, None if there are none.
    """

    packed: PackedBelief
    encoding: Encoding
    classes: tuple[str, ...]
    moments: Moments | None
    clock: float | None
    timed: bool | None

    def forecast(
        self, rows: Rows, chunk: int, levels: Sequence[float], times: ArrayLike | None = None
    ) -> Forecasts:
        """Forecast rows in the target's own units."""
        given = rows.times if isinstance(rows, Block) else times
        ahead = require_times(given, self.clock, self.timed, ordered=False)
        blocks = list(blocks_of(rows, self.encoding, learn=False, need_target=False, times=ahead))
        return forecast_blocks(self.packed, blocks, chunk, self.classes, self.moments, levels, self.clock)


def changing(method: M) -> M:
    """A method that changes a session, in its turn, and leaves a `View` to threads that do not wait."""

    @functools.wraps(method)
    def leaving_a_view(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        finally:
            self._look()

    return in_turn(cast(M, leaving_a_view))
