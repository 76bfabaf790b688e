"""The flags of `credo learn`, and their names in the library. Nothing here uses JAX."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Group, Parameter, Token

from credo.core.errors import CredoError
from credo.core.integers import read_integer

__all__ = [
    "DATA",
    "DataFlags",
    "LearnerFlags",
    "RunFlags",
    "SeriesFlags",
    "in_flags",
    "refusal",
    "whole_number",
]

DATA = Group("Data", sort_key=1)
"""The group of the flags that say what the data are."""

_LEARNER = Group("Learner (all of it has defaults)", sort_key=2)
_RUN = Group("Output and resuming", sort_key=3)
_SERIES = Group("Forecasting a series (of a file whose rows are in time order)", sort_key=4)


def whole_number(_: object, tokens: Sequence[Token]) -> int:
    """Read a whole number, such as 1000 or 1e3."""
    number = read_integer(tokens[0].value)
    if number is None:
        raise CredoError(f"{tokens[0].keyword} must be a whole number; got {tokens[0].value!r}.")
    return number


def _number(_: object, tokens: Sequence[Token]) -> float:
    try:
        return float(tokens[0].value)
    except ValueError:
        raise CredoError(f"{tokens[0].keyword} must be a number; got {tokens[0].value!r}.") from None


def _number_or_input(hint: object, tokens: Sequence[Token]) -> float | str:
    if tokens[0].value.strip().lower() == "input":
        return "input"
    try:
        return _number(hint, tokens)
    except CredoError as error:
        raise CredoError(str(error).replace("a number;", "a number, or input;")) from None


_Reader: TypeAlias = Callable[[object, Sequence[Token]], object]


def _flag(group: Group, help: str, read: _Reader | None = None) -> Parameter:
    """A flag. A negative number reaches the check that refuses it in words."""
    return Parameter(group=group, help=help, converter=read, allow_leading_hyphen=read is not None)


_data, _learner, _run, _series = (
    functools.partial(_flag, group) for group in (DATA, _LEARNER, _RUN, _SERIES)
)


@Parameter(name="*")
@dataclass(frozen=True)
class DataFlags:
    """The flags about the data, with the names of `credo.sessions.ColumnOptions`."""

    target: Annotated[str | None, _data("The column to predict; needed for files.")] = None
    task: Annotated[
        str | None,
        _data(
            "classification, regression or count; by default one of the first two is inferred and reported."
        ),
    ] = None
    classes: Annotated[
        str | None,
        _data("All class labels, separated by commas, if the first rows may not contain all of them."),
    ] = None
    drop: Annotated[str | None, _data("Columns to leave out, separated by commas.")] = None
    categorical: Annotated[
        str | None, _data("Columns that are categories although they look like numbers, separated by commas.")
    ] = None
    test: Annotated[Path | None, _data("A file of held-out rows, scored after learning.")] = None
    test_rows: Annotated[
        int | None,
        _data(
            "How many held-out rows of a named data set are scored; 0 for all, -1 for none. By default 4000 "
            "for images, otherwise all.",
            whole_number,
        ),
    ] = None
    limit: Annotated[
        int | None,
        _data(
            "The largest number of rows to learn from in this run; 0 for all. By default 2000 for images, "
            "otherwise all.",
            whole_number,
        ),
    ] = None
    shuffle: Annotated[
        bool | None,
        _data("Shuffle the rows of a named data set by the seed; this is the default unless it is a stream."),
    ] = None
    strict: Annotated[
        bool,
        Parameter(
            group=DATA,
            negative="",
            help="Stop at the first bad row; by default bad rows are counted, reported and skipped.",
        ),
    ] = False


@Parameter(name="*")
@dataclass(frozen=True)
class SeriesFlags:
    """The flags about a series, with the names of `credo.Lagged`."""

    horizon: Annotated[
        int | None,
        _series("How many steps ahead are forecast. Rows then get lags and calendar features.", whole_number),
    ] = None
    time: Annotated[
        str | None, _series("The column of times: ISO dates or timestamps, or numbers with a common step.")
    ] = None
    known: Annotated[
        str | None,
        _series(
            "Other columns that are known in advance, separated by commas; all others are left out. Rows "
            "without a target at the end of the file have their values for the steps to come."
        ),
    ] = None
    lags: Annotated[
        str | None,
        _series(
            "The lags of the target that a row gets, in steps, such as 1,2,24; by default they fit the times."
        ),
    ] = None
    seasons: Annotated[
        str | None,
        _series("The seasons in steps, such as 24,168; by default day, week or year, as fits the times."),
    ] = None
    every: Annotated[
        int | None,
        _series(
            "The number of rows between two forecasts that are scored; by default the horizon.", whole_number
        ),
    ] = None
    paths: Annotated[
        int | None, _series("The number of sample paths of a forecast; 100 by default.", whole_number)
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class LearnerFlags:
    """The flags about the learner, with the names of `credo.sessions.Options`."""

    budget: Annotated[
        str | None,
        _learner(
            "fast (one learner), default (a bank of learners, weighted by evidence as rows come) or "
            "thorough (a wider bank). The flags below describe one learner."
        ),
    ] = None
    model: Annotated[
        str | None, _learner("linear, mlp:WIDTH,WIDTH,..., cnn, features:NUMBER, bank or wide-bank.")
    ] = None
    posterior: Annotated[str | None, _learner("full, diagonal, low-rank:RANK or particles:NUMBER.")] = None
    method: Annotated[
        str | None,
        _learner(
            "A posterior by natural gradients: bong (one step for each row; the default) or blr (several); "
            "by plain gradients: bog or bbb. Or a gradient baseline without a posterior: "
            "sgd, momentum, adam, replay."
        ),
    ] = None
    curvature: Annotated[
        str | None,
        _learner(
            "How a row's information is measured: lin-hess (the model linearised; the default), lin-ef "
            "(cheaper, and over-confident if predictions are bad), or with draws from the posterior: "
            "mc-hess (slow on networks), mc-ef."
        ),
    ] = None
    drift: Annotated[
        str | None,
        _learner(
            "How the world may change. Gradually: none, walk:Q, ou:GAMMA, inflation:ALPHA, decay:GAMMA or "
            "shrink-perturb:SHRINK,SD. Abruptly, only for rows in time order (files, streams): "
            "run-length:HAZARD,CAPACITY keeps the likeliest times of the latest change and reports changes "
            "(by default 0.005,5), soft-reset:HAZARD goes back towards the prior as far as a row demands "
            "(0.05). mixture:SWITCHING weights experts that walk at different speeds (0.01)."
        ),
    ] = None
    prior_var: Annotated[
        float | None,
        _learner("The scale of the prior variances: a weight's variance is this over its fan-in.", _number),
    ] = None
    noise_var: Annotated[
        float | str | None,
        _learner(
            "The noise variance of a regression, in units of the target's variance, or input, for one that "
            "follows the inputs; by default one number is learned.",
            _number_or_input,
        ),
    ] = None
    learning_rate: Annotated[
        float | None,
        _learner(
            "The learning rate of blr (at most 1; 0.5 by default), bog (0.01), bbb (0.001) and baselines.",
            _number,
        ),
    ] = None
    iterations: Annotated[
        int | None,
        _learner(
            "Steps for each row, of blr and bbb (5 by default), or relinearisations of bong (1).",
            whole_number,
        ),
    ] = None
    seed: Annotated[
        int | None,
        _learner(
            "The seed of the initial weights, the order of the rows and all draws; 0 by default.",
            whole_number,
        ),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class RunFlags:
    """The flags about where results go, and how a run continues."""

    out: Annotated[
        Path | None,
        _run(
            "The folder for the results; by default runs/SOURCE, or the next free number, or the folder that "
            "is resumed."
        ),
    ] = None
    save: Annotated[Path | None, _run("A further file for the saved belief.")] = None
    resume: Annotated[
        Path | None,
        _run(
            "Continue a saved belief, or the folder of a run, also of one that was killed. The learner "
            "is the one that was saved, and rows that it has learned are skipped."
        ),
    ] = None
    again: Annotated[
        bool,
        Parameter(
            group=_RUN,
            negative="",
            help="With --resume: learn from all rows, also from those that it has learned.",
        ),
    ] = False
    predictions: Annotated[
        str | None,
        _run(
            "A file (.jsonl, .csv or .parquet) for the forecast of each row, made before the row was learned "
            "from and written at once (Parquet: at the end); - is JSON lines on standard output."
        ),
    ] = None
    keep: Annotated[
        str | None,
        _run("Columns of the file that are copied beside --predictions, separated by commas, such as an id."),
    ] = None
    spreadsheet: Annotated[
        bool,
        Parameter(
            group=_RUN,
            negative="",
            help="In the CSV of --predictions, write labels that begin with =, +, - or @ so that no "
            "spreadsheet reads them as formulas.",
        ),
    ] = False
    importance: Annotated[
        bool | None,
        _run("Measure which columns matter: on held-out rows (the default with any), or the latest 400."),
    ] = None
    checkpoint: Annotated[
        float,
        _run(
            "Save the belief after so many seconds, into the folder for the results, so that a run that is "
            "killed loses no more than that; 0 saves it at the end only."
        ),
    ] = 30.0
    chunk: Annotated[
        int | None,
        _run(
            "Rows per compiled call, and between two looks at the progress; results do not depend on it.",
            whole_number,
        ),
    ] = None
    quiet: Annotated[
        bool, Parameter(name=["--quiet", "-q"], group=_RUN, negative="", help="Print nothing but the table.")
    ] = False


_FLAGS = {
    field.name: f"--{field.name.replace('_', '-')}"
    for kind in (DataFlags, LearnerFlags, RunFlags, SeriesFlags)
    for field in dataclasses.fields(kind)
}
_FLAGS |= {
    name: f"--{name.replace('_', '-')}"
    for name in (
        *("agent", "policy", "seeds", "steps", "delay", "divisor", "arms", "window", "timeout", "on_missing"),
        *("estimator", "interval", "level", "clip", "reward_range", "format"),
        *("key", "scale", "follow", "shards", "workers", "ray", "tile", "evict", "batch"),
    )
}
"""The flag of each setting of the library."""

_SETTING = re.compile(r"`(\w+)(?:=(?:'([^'`]*)'|([^`]*)))?`")


def in_flags(sentence: str) -> str:
    """A sentence of the library in the words of the command line: settings in backquotes become flags."""

    def flag(match: re.Match[str]) -> str:
        name, text, number = match.groups()
        if name not in _FLAGS:
            return match[0]
        value = text if text is not None else number
        if value is None:
            return _FLAGS[name]
        return f"{_FLAGS[name]} {value}"

    return _SETTING.sub(flag, sentence)


def refusal(error: CredoError) -> str:
    """The sentence of an error in the words of the command line."""
    sentence = str(error)
    field = error.field
    if field in _FLAGS and sentence.startswith(field):
        sentence = _FLAGS[field] + sentence.removeprefix(field)
    return in_flags(sentence)
