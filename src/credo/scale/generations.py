"""Generations of runs in a folder: only the latest may save into it."""

from __future__ import annotations

from credo.core.errors import DataError
from credo.core.files import claim
from credo.core.places import Place

__all__ = ["Generation"]


class Generation:
    """A number that nobody else has, taken by creating a file that was not there; the largest may save.

    Arguments:
        folder: the folder, which is made if need be, or its address.
    """

    def __init__(self, folder: Place) -> None:
        self.folder = folder
        self.number = claim(folder, _name, self._latest() + 1)
        for number in self._numbers():
            if number < self.number:
                (folder / _name(number)).unlink(missing_ok=True)

    def require_latest(self) -> None:
        """Refuse to go on where another has begun."""
        if self._latest() > self.number:
            raise DataError(f"another run goes on in {self.folder}; this one is older, and may not save.")

    def _numbers(self) -> list[int]:
        return [int(path.name.partition("-")[2]) for path in self.folder.glob("generation-*")]

    def _latest(self) -> int:
        return max(self._numbers(), default=0)


def _name(number: int) -> str:
    return f"generation-{number:08d}"
