"""Texts and rare categories have few features, which are the same wherever and whenever they are computed."""

from __future__ import annotations

import datetime as dt
import json
import zlib
from typing import Any

import numpy as np
import pytest

from credo.tables import Chunk, ColumnSpec, Encoder, Schema, TargetSpec, infer_schema
from credo.tables.times import to_times

GOAL = TargetSpec("y", "regression")


def encode(schema: Schema, **columns: Any) -> np.ndarray:
    size = len(columns["y"])
    encoder = Encoder(schema)
    return encoder.encode(encoder.initial(), Chunk(columns, np.arange(2, 2 + size)))[1]


def test_words_go_where_their_checksum_says() -> None:
    words = ["the", "cat", "the", "\u00e9t\u00e9"]
    expected = np.zeros(8)
    for word in words:
        number = zlib.crc32(word.encode())
        expected[(number & 0x7FFFFFFF) % 8] += (-1.0 if number >> 31 else 1.0) / 2.0
    schema = Schema(GOAL, (ColumnSpec("w", "text", has_missing=True, slots=8),))
    x = encode(schema, w=["The cat, the \u00c9t\u00e9!", None, "...", 5], y=[1, 2, 3, 4])
    np.testing.assert_allclose(x[0], [*expected, 0], atol=1e-7)
    assert x[1].tolist() == [0] * 8 + [1] and not x[2].any() and np.abs(x[3]).sum() == 1


def test_a_column_of_many_categories_has_a_bounded_width() -> None:
    users = [f"u{number % 7 if number % 2 else number % 120}" for number in range(1000)]
    titles = [f"of {number % 9} or {number % 300} men" for number in range(1000)]
    y = [float(number) for number in np.random.default_rng(0).normal(size=1000)]
    chunk = Chunk({"user": users, "title": titles, "y": y}, np.arange(2, 1002))
    schema = infer_schema(chunk, "y")
    user, title = schema.columns
    assert (user.kind, len(user.categories), user.slots) == ("categorical", 40, 16)
    assert (title.kind, title.slots) == ("text", 64)
    assert schema.notes == (
        "column 'user' has 63 categories in the first 1000 rows: the 40 most frequent have a feature each, "
        "and the others are hashed into 16",
        "column 'title' is text: its words are hashed into 64 features",
    )
    saved = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    x = encode(saved, user=["u1", "someone new", "someone new"], title=["a b c"] * 3, y=[1, 2, 3])
    assert x[:, :56].sum(axis=1).tolist() == [1, 1, 1] and not x[1, :40].any()
    np.testing.assert_array_equal(x[1], x[2])
    asked = infer_schema(chunk, "y", categorical=["title"], drop=["user"])
    assert [(column.name, column.kind) for column in asked.columns] == [("title", "categorical")]


def test_a_schema_of_earlier_versions_means_what_it_meant() -> None:
    names = ("name", "kind", "categories", "has_missing", "origin")
    old = [("t", "datetime", [], False, 0.0), ("c", "categorical", ["p"], False, 0.0)]
    saved: dict[str, Any] = Schema(GOAL, ()).to_dict()
    saved["columns"] = [dict(zip(names, column, strict=True)) for column in old]
    assert Schema.from_dict(saved).features[:-1] == (
        "t", "sin(t hour)", "cos(t hour)", "sin(t weekday)", "cos(t weekday)", "c=p", "c=(other)",
    )  # fmt: skip


def test_the_day_of_the_year_is_a_feature_of_long_streams() -> None:
    days = [(dt.date(2023, 1, 1) + dt.timedelta(days)).isoformat() for days in range(400)]
    chunk = Chunk({"t": days, "y": list(np.random.default_rng(0).normal(size=400))}, np.arange(400))
    schema = infer_schema(chunk, "y")
    assert schema.columns[0].cycles == ("weekday", "yearday")
    x = encode(schema, **chunk.columns)
    np.testing.assert_allclose(x[:5, 3:5], x[365:370, 3:5], atol=0.02)


@pytest.mark.parametrize(
    "cells",
    [
        ["2024-02-29", "1969-12-31", "", "NA"],
        ["2024-02-29 23:59", "1969-12-31T00:00"],
        ["2024-05-01T12:30:45Z", "1902-05-01 12:30:45Z"],
        ["2024-05-01T12:30:45.123456+05:30", "2024-05-01T12:30:45.999999+05:30"],
        ["2024-05-01T12:30:45.123-03:00", "2024-05-01T12:30:45.123+03:00"],
        ["2024-05-01", "2024-13-01"],
        ["2024-05-01", "20240501", None, 3.5],
        ["9999-12-31T23:59:59.999999", "0001-01-01T00:00:00.000001"],
        ["0000-01-01", "2024-01-01"],
        ["1600510900", "1600511000"],  # as years, these come round to our time in whole microseconds
    ],
)
def test_times_read_alike_fast_and_cell_by_cell(cells: list[Any]) -> None:
    columns = to_times(cells)
    for row, cell in enumerate(cells):
        # a neighbour of another spelling has the cells read one by one
        alone = to_times([cell, "1970-01-01T00Z"])
        np.testing.assert_array_equal([column[row] for column in columns], [column[0] for column in alone])
