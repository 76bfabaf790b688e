"""Parameters as other packages describe them: how an optimiser sees their values, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Parameter"]


@dataclass(frozen=True)
class Parameter:
    """A range, of which a step may be counted, or options, which stand for their places.

    Attributes:
        low, high: the ends of a range, which belong to it.
        step: the distance of its values, None where any number will do; from `low` on, up to `high`.
        log: whether it is logarithmic. Steps of such a range other than 1 are rounded to.
        options: the options; None for a range.

    Example:
        >>> share = Parameter(0.0, 1.0, step=0.25)
        >>> share.bounds, share.value_of(3), share.seen_as(0.5)
        ((0, 4, 'whole'), 0.75, 2)
    """

    low: Any = 0
    high: Any = 0
    step: Any = None
    log: bool = False
    options: tuple[Any, ...] | None = None

    @property
    def _counted(self) -> bool:
        """Whether steps are counted, because values are not whole numbers next to each other."""
        return self.step is not None and not self.log and not (isinstance(self.low, int) and self.step == 1)

    @property
    def bounds(self) -> Sequence[object]:
        """The bounds that an `Optimizer` takes."""
        if self.options is not None:
            return [f"{place}" for place in range(len(self.options))]
        if self._counted:
            return (0, round((self.high - self.low) / self.step), "whole")
        kinds = [*(["log"] if self.log else []), *(["whole"] if isinstance(self.low, int) else [])]
        return (self.low, self.high, *kinds)

    def value_of(self, seen: Any) -> Any:
        """The value of what an optimiser answered."""
        if self.options is not None:
            return self.options[int(seen)]
        if self._counted:
            return min(self.low + seen * self.step, self.high)
        if self.step is not None and self.step != 1:
            return min(max(round(seen / self.step) * self.step, self.low), self.high)
        return seen

    def seen_as(self, value: Any) -> Any:
        """The form of a value, which is in the range or an option, for an optimiser; NaN may be an option."""
        if self.options is not None:
            same = (one is value or one == value or (one != one and value != value) for one in self.options)
            return f"{list(same).index(True)}"
        if self._counted:
            return round((value - self.low) / self.step)
        return value
