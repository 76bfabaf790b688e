"""The flags with which `credo learn` was called, in the words of the library."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from credo.cli.flags import DataFlags, LearnerFlags, RunFlags, SeriesFlags
from credo.core.errors import CredoError, DataError, asking, suggest
from credo.datasets import names
from credo.recipes.options import SeriesOptions

__all__ = ["Request", "is_named", "slug"]


@dataclass(frozen=True)
class Request:
    """The source and the flags with which `credo learn` was called."""

    source: str
    data: DataFlags
    learner: LearnerFlags
    run: RunFlags
    flags_of_series: SeriesFlags = dataclasses.field(default_factory=SeriesFlags)

    @property
    def series(self) -> SeriesOptions | None:
        """The flags about a series as options; None if the rows are no series."""
        flags = self.flags_of_series
        target = self.data.target
        if flags.horizon is None:
            given = [name for name, value in vars(flags).items() if value is not None]
            others = [name for name in given if name not in ("every", "paths") or self.run.resume is None]
            if others:
                raise CredoError(f"{others[0]} is for a series; give --horizon, too.", field=others[0])
            return None
        if flags.time is None or target is None:
            missing = "--time" if flags.time is None else "--target"
            raise CredoError(
                f"{missing} is missing: with --horizon, name the column of times and the target."
            )
        known = flags.known or ()
        return SeriesOptions(flags.time, target, flags.horizon, flags.lags, flags.seasons, known)

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
    nor_file = "" if hint else ", and no such file; `credo datasets` lists the names"
    raise DataError(asking(f"there is no data set {source!r}{nor_file}", hint))


def slug(source: str) -> str:
    """A folder name for a source."""
    if source == "-":
        return "stdin"
    name = Path(source).name.split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name) or "run"
