"""What `credo learn` was called with, in the words of the library."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from credo.cli.flags import DataFlags, LearnerFlags, RunFlags, SeriesFlags
from credo.core.errors import CredoError, DataError, require_choice, suggest
from credo.core.integers import read_integer
from credo.datasets import names
from credo.sessions import ColumnOptions, Options, SeriesOptions
from credo.tables.tasks import TARGET_KINDS

__all__ = ["Request", "is_named", "slug"]


@dataclass(frozen=True)
class Request:
    """What `credo learn` was called with."""

    source: str
    data: DataFlags
    learner: LearnerFlags
    run: RunFlags
    flags_of_series: SeriesFlags = dataclasses.field(default_factory=SeriesFlags)

    @property
    def series(self) -> SeriesOptions | None:
        """What the flags say about a series; None if the rows are no series."""
        flags = self.flags_of_series
        target = self.data.target
        if flags.horizon is None:
            given = [
                field.name for field in dataclasses.fields(flags) if getattr(flags, field.name) is not None
            ]
            others = [name for name in given if name not in ("every", "paths") or self.run.resume is None]
            if others:
                raise CredoError(f"--{others[0]} is for a series; give --horizon, too.")
            return None
        if flags.time is None or target is None:
            missing = "--time" if flags.time is None else "--target"
            raise CredoError(
                f"{missing} is missing: with --horizon, name the column of times and the target."
            )
        lags = _numbers("--lags", flags.lags)
        seasons = _numbers("--seasons", flags.seasons)
        return SeriesOptions(flags.time, target, flags.horizon, lags, seasons, tuple(_words(flags.known)))

    @property
    def columns(self) -> ColumnOptions:
        """What the flags say about the columns of the table."""
        data = self.data
        return ColumnOptions(
            data.target,
            None if data.task is None else require_choice("task", data.task, TARGET_KINDS),
            _words(data.classes) or None,
            _words(data.drop),
            _words(data.categorical),
            data.strict,
        )

    @property
    def options(self) -> Options:
        """What the flags say about the learner."""
        return Options(**dataclasses.asdict(self.learner))

    @property
    def named(self) -> bool:
        """Whether the source is a named data set."""
        return is_named(self.source)

    @property
    def rereadable(self) -> bool:
        """Whether the source is a file that can be read twice."""
        return not self.named and self.source != "-" and Path(self.source).is_file()

    @property
    def output_name(self) -> str:
        """The name of the output folder, if none is given."""
        if self.named:
            return self.source
        return slug(self.source)


def _words(text: str | None) -> list[str]:
    if text:
        return [part.strip() for part in text.split(",") if part.strip()]
    return []


def _numbers(flag: str, text: str | None) -> list[int] | None:
    if text is None:
        return None
    numbers = [read_integer(word) for word in _words(text)]
    if None in numbers or not numbers:
        raise CredoError(f"{flag} must be whole numbers separated by commas; got {text!r}.")
    return [number for number in numbers if number is not None]


def is_named(source: str) -> bool:
    """Whether a SOURCE is the name of a data set, rather than a file."""
    if source == "-":
        return False
    known = names()
    if source in known:
        return True
    path = Path(source)
    if path.exists() or path.suffix or "/" in source:
        return False
    hint = suggest(source, known)
    more = f": {hint}" if hint else ", and no such file; `credo datasets` lists the names"
    raise DataError(f"there is no data set {source!r}{more}".rstrip("?.") + ("?" if hint else "."))


def slug(source: str) -> str:
    """A folder name for a source."""
    if source == "-":
        return "stdin"
    name = Path(source).name.split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name) or "run"
