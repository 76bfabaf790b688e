"""The flags of the commands, which are made of the settings of the library. Nothing here uses JAX."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import Group, Parameter, Token

from credo.core.errors import CredoError, Named, Sentence
from credo.core.integers import LARGEST_CHUNK
from credo.core.setting import LISTS, Setting, settings_of
from credo.recipes.options import EVERY, PATHS, ColumnOptions, Options, SeriesOptions
from credo.serve.options import ServiceOptions

__all__ = [
    "DATA",
    "DataFlags",
    "LearnerFlags",
    "RunFlags",
    "SeriesFlags",
    "ServeFlags",
    "flag_of",
    "flags",
    "in_flags",
    "names",
    "number",
    "refusal",
    "whole",
]

DATA = Group("Data", sort_key=1)
"""The group of the flags that say what the data are."""

_LEARNER = Group("Learner (all of it has defaults)", sort_key=2)
_RUN = Group("Output and resuming", sort_key=3)
_SERIES = Group("Forecasting a series (of a file whose rows are in time order)", sort_key=4)


_LETTERS = {"quiet": "-q"}
"""The flags that have a second one, of one letter."""

Record = TypeVar("Record")


def names() -> Parameter:
    """A flag for names, separated by commas."""
    return _read_by(Setting(kind=Sequence[str]))


def whole(low: int = 0, high: int | None = None) -> Parameter:
    """A flag for a whole number, such as 1000 or 1e3."""
    return _read_by(Setting(low=low, high=high, kind=int))


def number(low: float = 0, high: float | None = None, *, positive: bool = False) -> Parameter:
    """A flag for a number."""
    return _read_by(Setting(low=low, high=high, positive=positive, kind=float))


def _read_by(setting: Setting) -> Parameter:
    """A flag that is read and checked as a setting says. A negative number reaches the check."""

    def read(_: object, tokens: Sequence[Token]) -> object:
        return setting.read(str(tokens[0].keyword), ",".join(token.value for token in tokens))

    return Parameter(converter=read, allow_leading_hyphen=setting.kind in (int, float))


def flags(group: Group, *, like: type | None = None) -> Callable[[type[Record]], type[Record]]:
    """Make a record of settings one of flags, which have the names of its fields.

    Arguments:
        group: where the help shows them.
        like: a record with the settings of the fields that have none.
    """

    def declare(record: type[Record]) -> type[Record]:
        plain: type = record
        settings = settings_of(like or plain) | settings_of(plain)
        fields = []
        for one in dataclasses.fields(record):  # type: ignore[arg-type]
            setting = settings[one.name]
            switch = setting.kind is bool
            flag = Parameter(alias=_LETTERS.get(one.name)) if switch else _read_by(setting)
            about = Parameter(
                group=group,
                help=setting.help,
                show_default=False if one.default == () else None,
                negative=None if switch and one.default is None else "",
            )
            kind = setting.kind
            if setting.kind in LISTS:
                kind = str | setting.kind
            elif setting.kind is float and setting.choices:
                kind = float | str
            fields.append((one.name, Annotated[kind | None, flag, about], one))
        module = {"__module__": record.__module__}
        made = dataclasses.make_dataclass(
            record.__name__, fields, bases=(record,), frozen=True, namespace=module
        )
        return Parameter(name="*")(made)

    return declare


@flags(DATA)
@dataclass(frozen=True)
class DataFlags(ColumnOptions):
    """The flags about the data."""

    test: Annotated[Path | None, Setting("A file of held-out rows, scored after learning.")] = None
    test_rows: Annotated[
        int | None,
        Setting(
            "How many held-out rows of a named data set are scored; 0 for all, -1 for none. By default 4000 "
            "for images, otherwise all.",
            low=-1,
        ),
    ] = None
    limit: Annotated[
        int | None,
        Setting(
            "The largest number of rows to learn from in this run; 0 for all. By default 2000 for images, "
            "otherwise all."
        ),
    ] = None
    shuffle: Annotated[
        bool | None,
        Setting(
            "Shuffle the rows of a named data set by the seed; this is the default unless it is a stream."
        ),
    ] = None


@flags(_SERIES, like=SeriesOptions)
@dataclass(frozen=True)
class SeriesFlags:
    """The flags about a series, with the names of `credo.Lagged`."""

    horizon: int | None = None
    time: str | None = None
    known: Sequence[str] | None = None
    lags: Sequence[int] | None = None
    seasons: Sequence[int] | None = None
    every: Annotated[int | None, EVERY] = None
    paths: Annotated[int | None, PATHS] = None


@flags(_LEARNER)
@dataclass(frozen=True)
class LearnerFlags(Options):
    """The flags about the learner."""


@flags(_RUN)
@dataclass(frozen=True)
class RunFlags:
    """The flags about where results go, and how a run continues."""

    out: Annotated[
        Path | None,
        Setting(
            "The folder for the results; by default runs/SOURCE, or the next free number, or the folder that "
            "is resumed."
        ),
    ] = None
    save: Annotated[Path | None, Setting("A further file for the saved belief.")] = None
    resume: Annotated[
        Path | None,
        Setting(
            "Continue a saved belief, or the folder of a run, also of one that was killed. The learner "
            "is the one that was saved, and rows that it has learned are skipped."
        ),
    ] = None
    again: Annotated[
        bool, Setting("With --resume: learn from all rows, also from those that it has learned.")
    ] = False
    predictions: Annotated[
        str | None,
        Setting(
            "A file (.jsonl, .csv or .parquet) for the forecast of each row, made before the row was learned "
            "from and written at once (Parquet: at the end); - is JSON lines on standard output."
        ),
    ] = None
    keep: Annotated[
        Sequence[str],
        Setting(
            "Columns of the file that are copied beside --predictions, separated by commas, such as an id."
        ),
    ] = ()
    spreadsheet: Annotated[
        bool,
        Setting(
            "In the CSV of --predictions, write labels that begin with =, +, - or @ so that no "
            "spreadsheet reads them as formulas."
        ),
    ] = False
    importance: Annotated[
        bool | None,
        Setting("Measure which columns matter: on held-out rows (the default with any), or the latest 400."),
    ] = None
    checkpoint: Annotated[
        float,
        Setting(
            "Save the belief after so many seconds, into the folder for the results, so that a run that is "
            "killed loses no more than that; 0 saves it at the end only."
        ),
    ] = 30.0
    chunk: Annotated[
        int | None,
        Setting(
            "Rows per compiled call, and between two looks at the progress; results do not depend on it.",
            low=1,
            high=LARGEST_CHUNK,
        ),
    ] = None
    quiet: Annotated[bool, Setting("Print nothing but the table.")] = False


@flags(Group("Service"))
@dataclass(frozen=True)
class ServeFlags(ServiceOptions):
    """The flags of `credo serve`."""

    host: Annotated[
        str, Setting("Where to listen; other than 127.0.0.1, ::1 and localhost need --tokens.")
    ] = "127.0.0.1"
    port: Annotated[int, Setting("The port; 0 chooses a free one.", high=65_535)] = 8000
    tokens: Annotated[
        Path | None,
        Setting(
            "A file whose lines have the SHA-256 of a token, a blank, and some of read,keep,learn,admin."
        ),
    ] = None
    host_name: Annotated[
        Sequence[str],
        Setting(
            "A name under which the service is reached besides 127.0.0.1 and localhost, such as that of a "
            "proxy; may be repeated. Without --tokens, requests under other names are refused."
        ),
    ] = ()
    verify: Annotated[
        bool,
        Setting("Serve nothing; replay the journal of every model and compare it with its newest snapshot."),
    ] = False


def flag_of(name: str) -> str:
    """The flag of a setting of the library."""
    return f"--{name.replace('_', '-')}"


def _spell(setting: Named) -> str:
    flag = flag_of(setting.name)
    if setting.value is None:
        return flag
    return f"{flag} {setting.value}"


def in_flags(sentence: str) -> str:
    """A sentence in the words of the command line."""
    if isinstance(sentence, Sentence):
        return sentence.spelled(_spell)
    return sentence


def refusal(error: CredoError, flags: Container[str]) -> str:
    """The sentence of an error in the words of a command, whose flags are known."""
    sentence = error.spelled(_spell)
    field = error.field
    if field is None or flag_of(field) not in flags or not sentence.startswith(field):
        return sentence
    return flag_of(field) + sentence.removeprefix(field)
