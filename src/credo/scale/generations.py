"""Who may save into a folder: the latest that has begun there."""

from __future__ import annotations

from pathlib import Path

from credo.core.errors import DataError

__all__ = ["Generation"]


class Generation:
    """A number that nobody else has, taken by creating a file that was not there; the largest may save.

    Arguments:
        folder: the folder, which is made if need be.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.number = self._latest() + 1
            while True:
                try:
                    self._file(self.number).touch(exist_ok=False)
                    break
                except FileExistsError:
                    self.number += 1
        except OSError as error:
            raise DataError(f"cannot write {folder}: {error.strerror or error}.") from None
        for number in self._numbers():
            if number < self.number:
                self._file(number).unlink(missing_ok=True)

    def require_latest(self) -> None:
        """Refuse to go on where another has begun."""
        if self._latest() > self.number:
            raise DataError(f"another run goes on in {self.folder}; this one is older, and may not save.")

    def _file(self, number: int) -> Path:
        return self.folder / f"generation-{number:08d}"

    def _numbers(self) -> list[int]:
        return [int(path.name.partition("-")[2]) for path in self.folder.glob("generation-*")]

    def _latest(self) -> int:
        return max(self._numbers(), default=0)
