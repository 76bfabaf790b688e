"""The callers of a service: one caller, whose requests cannot be grouped, or several."""

from __future__ import annotations

from time import monotonic

__all__ = ["Callers"]

LONELY = 0.1
"""After how many seconds without a request of another caller one is alone."""


class Callers:
    """The callers of a service, noted in one thread and asked about in any."""

    def __init__(self) -> None:
        self._latest: object = None
        self._changed = monotonic()

    def note(self, caller: object) -> None:
        """Take in the address from which a request came."""
        if caller != self._latest:
            self._latest = caller
            self._changed = monotonic()

    @property
    def alone(self) -> bool:
        """Whether all latest requests, for a while, came over one connection."""
        return monotonic() - self._changed > LONELY
