"""The state of a run, saved every now and then, so that a run that is killed loses little."""

from __future__ import annotations

import contextlib
import shlex
import time

from credo.cli.drift_file import DriftFile
from credo.cli.forecast_file import ForecastFile
from credo.cli.output import Folder
from credo.cli.progress import note
from credo.cli.request import Request
from credo.core.errors import DataError
from credo.sessions import Forecasts, Session
from credo.sessions.places import HEAD, Prefix

__all__ = ["Checkpoints", "go_on"]


class Checkpoints:
    """Saves a session into the folder of its run, after bringing the files that grow with it to the disk."""

    def __init__(
        self, request: Request, session: Session, folder: Folder, record: DriftFile, forecasts: ForecastFile
    ) -> None:
        self.request = request
        self.session = session
        self.folder = folder
        self.record = record
        self.forecasts = forecasts
        self.prefix = Prefix(request.source) if request.rereadable else None
        self.last = time.monotonic()
        self.rows = session.rows_read

    def tick(self) -> None:
        """Save, if it is time and rows have come. What cannot be written now is tried again later."""
        seconds = self.request.run.checkpoint
        if not seconds or time.monotonic() - self.last < seconds or self.rows == self.session.rows_read:
            return
        first = not self.folder.belief.is_file()
        try:
            self.save()
        except DataError as error:
            note(f"credo: the state could not be saved ({str(error).rstrip('.')}); learning continues.")
        else:
            if first:
                note(
                    f"saved in {self.folder.path} every {seconds:g} s; a run that is cut short continues "
                    f"with: {self.command}",
                    self.request.run.quiet,
                )
        self.last = time.monotonic()

    def add(self, made: list[Forecasts]) -> None:
        """Write the forecasts of a chunk that is learned.

        If that fails, the state before these rows is saved, or if none was, that after them.
        """
        try:
            self.forecasts.add(made)
        except DataError:
            if not self.folder.belief.is_file():
                self.save()
            raise

    def save(self) -> None:
        """Save the session, with its place in the source."""
        try:
            self.record.flush()
            self.forecasts.mark()
        except OSError as error:
            raise DataError(f"cannot write {self.folder.path}: {error.strerror or error}.") from None
        self._note_place()
        self.session.save(self.folder.belief)
        self.rows = self.session.rows_read

    def _note_place(self) -> None:
        progress = self.session.progress
        if self.prefix is not None:
            with contextlib.suppress(DataError):  # the file is gone, and cannot be continued
                if self.prefix.line < HEAD:
                    progress.head = self.prefix.upto(min(progress.line, HEAD))
                progress.digest = self.prefix.upto(progress.line)

    def rescue(self, *, torn: bool) -> None:
        """Save once more where learning ends with an error, so that no more is lost than by being killed.

        If the session is `torn` between two rows, the latest state that was saved must do. A run that was
        too short to be saved before writes nothing.
        """
        seconds = self.request.run.checkpoint
        if (
            torn
            or not seconds
            or not (self.folder.belief.is_file() or time.monotonic() - self.last > seconds)
        ):
            return
        with contextlib.suppress(DataError):
            self.save()

    @property
    def command(self) -> str:
        """The command that goes on with the run."""
        return go_on(self.request, self.folder)


def go_on(request: Request, folder: Folder) -> str:
    """The command that goes on with a run."""
    words = ["credo", "learn", request.source, "--resume", str(folder.path)]
    if request.run.predictions is not None:
        words += ["--predictions", request.run.predictions]
        words += ["--keep", request.run.keep] if request.run.keep else []
    return shlex.join(words)
