"""Dirty copies of streams: what sensors, files and people do to cells. The targets stay clean."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from default_streams import Array, Stream

__all__ = ["KINDS", "Kind", "dirty", "loudest"]

Kind: TypeAlias = Literal["sentinels", "outliers", "units", "shift"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of dirt."""

SENTINEL = -999.0
SENTINEL_SHARE = 0.02
OUTLIER_SHARE = 0.001
OUTLIER_FACTOR = 1e4
OUTLIER = 1e6
UNITS = 1000.0
SHIFT = 10.0


def dirty(stream: Stream, kind: Kind, seed: int = 0) -> Stream:
    """A copy of a stream with dirt in its numeric columns.

    `sentinels` puts -999 into 2% of the cells of each numeric column, `outliers` multiplies one present cell
    in two thousand of each by 1e4 and puts 1e6 into as many others (one outlier a column at least), `units`
    multiplies a column by 1000 from the middle on, and `shift` adds ten of its standard deviations there.

    Arguments:
        stream: the clean rows, which are left as they are.
        kind: the kind of dirt.
        seed: of the places of sentinels and outliers; units and levels change in the column that says most
            about the target by itself.

    Raises:
        ValueError: no column is numeric.
    """
    names = _numeric(stream)
    if not names:
        raise ValueError(f"{kind} need a numeric column; the stream has none.")
    random = np.random.default_rng(seed)
    columns = dict(stream.columns)
    if kind in ("units", "shift"):
        name = loudest(stream)
        columns[name] = _changed(columns[name], kind)
    else:
        columns |= {name: _spoilt(columns[name], kind, random) for name in names}
    return stream._replace(columns=columns)


def loudest(stream: Stream) -> str:
    """The numeric column that says most about the target by itself.

    That is the one with the largest squared correlation with the target, or the largest share of its variance
    that lies between the means of the classes.
    """

    def said(column: Array) -> float:
        present = np.isfinite(column)
        x = column[present]
        y = stream.target[present]
        if np.ptp(x) == 0.0:
            return 0.0
        if stream.task == "regression":
            return float(np.corrcoef(x, y)[0, 1] ** 2)
        labels, counts = np.unique(y, return_counts=True)
        means = np.array([x[y == label].mean() for label in labels])
        return float(counts @ (means - x.mean()) ** 2 / (len(x) * x.var()))

    return max(_numeric(stream), key=lambda name: said(stream.columns[name].astype(float)))


def _numeric(stream: Stream) -> list[str]:
    return [name for name, column in stream.columns.items() if column.dtype.kind in "iuf"]


def _changed(column: Array, kind: Kind) -> Array:
    column = column.astype(float)
    late = slice(len(column) // 2, None)
    if kind == "units":
        column[late] *= UNITS
    else:
        column[late] += SHIFT * np.nanstd(column)
    return column


def _spoilt(column: Array, kind: Kind, random: np.random.Generator) -> Array:
    column = column.astype(float)
    if kind == "sentinels":
        column[random.permutation(len(column))[: round(SENTINEL_SHARE * len(column))]] = SENTINEL
        return column
    places = random.permutation(np.flatnonzero(np.isfinite(column)))
    places = places[: max(round(OUTLIER_SHARE * len(column)), 1)]
    column[places[0::2]] *= OUTLIER_FACTOR
    column[places[1::2]] = OUTLIER
    return column
