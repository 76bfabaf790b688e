"""Encoding: finite whatever the cells, by earlier rows only, and the same however the rows are split."""

from __future__ import annotations

import datetime as dt
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings

from credo.core.errors import DataError, FormatError
from credo.tables import (
    Chunk,
    ColumnSpec,
    Encoder,
    EncoderState,
    Schema,
    TargetSpec,
    from_frame,
    infer_schema,
    open_table,
)
from credo.tables.cells import to_numbers
from credo.tables.prepared import Preparation

SCHEMA = Schema(
    TargetSpec("y", "classification", ("u", "v")),
    (
        ColumnSpec("n", "numeric"),
        ColumnSpec("m", "numeric", has_missing=True),
        ColumnSpec("b", "boolean"),
        ColumnSpec("c", "categorical", ("p", "q"), has_missing=True),
        ColumnSpec("t", "datetime", origin=1.7e9),
    ),
)
HASHED = (ColumnSpec("w", "text", slots=4), ColumnSpec("h", "categorical", ("p",), slots=3))
NUMBERS = Schema(TargetSpec("y", "regression"), (ColumnSpec("a", "numeric"), ColumnSpec("b", "numeric")))

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["1.5", " 2 ", "NA", "", "-", "inf", "-1e400", "1e39", "p", "q", "yes", "u", "v", "2024-02-30"]
    ),
    st.sampled_from(
        ["2024-01-01", "2024-01-01T12:00:00+02:00", "0001-01-01T00:00:00+23:59", 10**400, 1j, b"x"]
    ),
    st.sampled_from([[1], {"k": 1}, (), pd.NA, pd.NaT, np.float32(2), dt.date(2024, 1, 1), pd.Timestamp(0)]),
    st.sampled_from(
        [np.datetime64("2024-01-01"), np.datetime64("NaT", "s"), np.timedelta64(3, "s"), object()]
    ),
)


def chunk_of(lines: Any = None, **columns: Any) -> Any:
    size = len(next(iter(columns.values())))
    return Chunk(columns, np.arange(2, 2 + size) if lines is None else lines)


def tables(cells: Any) -> Any:
    """Chunks with the columns of SCHEMA and of HASHED, every cell drawn from `cells`."""
    rows = st.lists(st.tuples(*[cells] * 8), max_size=12)
    return rows.map(
        lambda rows: chunk_of(**{name: [row[i] for row in rows] for i, name in enumerate("nmbctwhy")})
    )


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(tables(CELLS), max_size=3), st.booleans(), st.booleans(), st.sampled_from(["u v", ""]))
def test_no_cell_crashes_it_or_yields_what_is_not_finite(
    chunks: Any, learn: Any, standardise: Any, labels: Any
) -> None:
    target = TargetSpec("y", "classification", ("u", "v")) if labels else TargetSpec("y", "regression")
    encoder = Encoder(Schema(target, SCHEMA.columns + HASHED), standardise=standardise)
    state = encoder.initial()
    for chunk in chunks:
        state, x, y, report = encoder.encode(state, chunk, learn)
        assert x.shape == (report.used, encoder.width) and x.dtype == np.float32 and np.isfinite(x).all()
        assert len(y) == report.used == report.read - len(report.bad) == len(report.lines)
        assert np.isfinite(y).all() and (y.dtype == (np.int32 if labels else np.float64))
        assert all("\n" not in str(row) or "'" in str(row) for row in report.bad)
        assert all(np.isfinite(array[~np.isnan(array)]).all() for array in state.arrays().values())


@given(st.lists(CELLS, max_size=8))
def test_numbers_read_alike_fast_and_cell_by_cell(cells: Any) -> None:
    values, wrong = to_numbers(cells)
    for cell, value, bad in zip(cells, values, wrong, strict=True):
        (one,), (one_bad,) = to_numbers([cell, "no number"])[0][:1], to_numbers([cell, "no number"])[1][:1]
        assert bad == one_bad and (value == one or (math.isnan(value) and math.isnan(one)))


@example(8 * [None], 4 * [1e39, 1])
@given(st.lists(CELLS, min_size=8, max_size=8), st.lists(st.floats() | st.integers(), min_size=8, max_size=8))
def test_a_lone_row_is_read_as_one_among_others(cells: Any, numbers: Any) -> None:
    for schema in (Schema(NUMBERS.target, SCHEMA.columns + HASHED), NUMBERS):
        for row in (cells, numbers):
            names = [*(column.name for column in schema.columns), "y"]
            lone = {name: [cell] for name, cell in zip(names, row, strict=False)}
            one = Preparation(schema).prepare(chunk_of(**lone))
            both = Preparation(schema).prepare(chunk_of(**{name: 2 * cell for name, cell in lone.items()}))
            part = both.part(0, 1)
            np.testing.assert_array_equal(one.x, part.x)
            np.testing.assert_array_equal(one.numbers, part.numbers)
            assert one.missing.keys() == part.missing.keys() and one.unseen.keys() == part.unseen.keys()
            assert one.why == part.why


@given(st.lists(st.integers(0, 300), max_size=5), st.integers(0, 1000))
def test_chunks_do_not_matter(cuts: Any, seed: Any) -> None:
    rng = np.random.default_rng(seed)
    cells = {
        "n": [str(v) if rng.random() > 0.1 else "NA" for v in rng.normal(1e5, 3, 300)],
        "m": [str(v) if rng.random() > 0.05 else "oops" for v in rng.normal(size=300)],
        "b": rng.choice(["yes", "no", ""], 300).tolist(),
        "c": rng.choice(["p", "q", "r", "?"], 300).tolist(),
        "t": [f"2024-01-01T00:{i // 60:02d}:{i % 60:02d}" for i in range(300)],
        "y": rng.choice(["u", "v", "w"], 300).tolist(),
    }
    encoder = Encoder(SCHEMA)
    end, x, y, report = encoder.encode(encoder.initial(), chunk_of(**cells))
    state, xs, ys, bad, missing = encoder.initial(), [], [], [], 0
    edges = [0, *sorted(cuts), 300]
    for start, stop in pairwise(edges):
        part = {name: column[start:stop] for name, column in cells.items()}
        state, x_part, y_part, told = encoder.encode(state, chunk_of(np.arange(start + 2, stop + 2), **part))
        state = EncoderState.from_arrays(state.arrays())
        xs.append(x_part)
        ys.append(y_part)
        bad += told.bad
        missing += told.missing.get("n", 0)
    np.testing.assert_array_equal(np.concatenate(xs), x)
    np.testing.assert_array_equal(np.concatenate(ys), y)
    assert bad == report.bad and missing == report.missing["n"]
    for name, array in end.arrays().items():
        np.testing.assert_array_equal(state.arrays()[name], array)


def test_a_row_is_standardised_by_the_rows_before_it() -> None:
    a = np.random.default_rng(0).normal(5, 2, 50)
    encoder = Encoder(NUMBERS)
    _, x, y, _ = encoder.encode(encoder.initial(), chunk_of(a=a.tolist(), b=[1] * 50, y=a))
    for row in range(2, 50):
        z = (a[row] - a[:row].mean()) / a[:row].std(ddof=1)
        np.testing.assert_allclose(x[row, 0], np.clip(z, -math.sqrt(row), math.sqrt(row)), rtol=1e-5)
    assert not x[:2, 0].any() and not x[:, 1:].any()
    np.testing.assert_array_equal(y, a)
    a[30:] = 1e9
    _, other, _, _ = encoder.encode(encoder.initial(), chunk_of(a=a.tolist(), b=[1] * 50, y=a))
    np.testing.assert_array_equal(x[:30], other[:30])
    assert 0 < other[30, 0] < 1e-9  # absurd, and so as good as missing
    _, clipped, _, _ = Encoder(NUMBERS, clip=2).encode(encoder.initial(), chunk_of(a=a, b=[1] * 50, y=a))
    assert np.abs(clipped).max() == 2


def test_a_column_that_is_constant_and_then_changes() -> None:
    a = [3.0] * 100 + [4.0] + [3.0] * 5
    encoder = Encoder(NUMBERS)
    _, x, _, _ = encoder.encode(encoder.initial(), chunk_of(a=a, b=a, y=a))
    assert not x[:101].any() and (np.abs(x[101:, 0]) < 1).all() and x[101:, 0].all()


def test_without_learning_and_without_standardising() -> None:
    encoder = Encoder(NUMBERS)
    data = chunk_of(a=[1.0, 2, 3, 4], b=[0, 0, 0, ""], y=[1, 1, 1, 1])
    state, *_ = encoder.encode(encoder.initial(), data)
    same, x, _, _ = encoder.encode(state, data, learn=False)
    assert same is state
    np.testing.assert_allclose(x[:, 0], (np.arange(1, 5) - 2.5) / np.std([1, 2, 3, 4], ddof=1), rtol=1e-6)
    _, raw, _, _ = Encoder(NUMBERS, standardise=False).encode(
        state, chunk_of(a=["7", "NA"], b=[1, 2], y=[1, 2])
    )
    np.testing.assert_array_equal(raw, [[7, 1, 0], [np.float32(17 / 5), 2, 1]])


def test_the_features_of_every_kind() -> None:
    data = chunk_of(
        n=["1", "NA", "2"],
        m=[1, None, math.inf],
        b=["yes", "no", "maybe"],
        c=["q", "", "r"],
        t=["2024-01-01T06:00:00", "NaT?", None],
        y=["u", "v", "v"],
    )
    encoder = Encoder(SCHEMA)
    _, x, y, report = encoder.encode(encoder.initial(), data)
    rows = [dict(zip(SCHEMA.features, row, strict=True)) for row in x.tolist()]
    assert [str(row) for row in report.bad] == ["line 3 holds 'NaT?' in the datetime column 't'"]
    assert report.lines.tolist() == [2, 4] and report.kept.tolist() == [0, 2] and y.tolist() == [0, 1]
    assert (rows[0]["c=p"], rows[0]["c=q"], rows[0]["c=(other)"], rows[0]["c=(missing)"]) == (0, 1, 0, 0)
    assert (rows[1]["c=q"], rows[1]["c=(other)"], rows[1]["b"], rows[0]["b"]) == (0, 1, 0, 1)
    assert (
        rows[1]["m=(missing)"] == rows[1]["(a value is missing)"] == 1
        and rows[0]["(a value is missing)"] == 0
    )
    np.testing.assert_allclose([rows[0]["sin(t hour)"], rows[0]["cos(t hour)"]], [1, 0], atol=1e-6)
    np.testing.assert_allclose(rows[0]["sin(t weekday)"], math.sin(2 * math.pi * 0.25 / 7), rtol=1e-6)
    assert report.missing == {"m": 1, "t": 1} and report.unseen == {"b": 1, "c": 1}


def test_bad_rows_are_named() -> None:
    encoder = Encoder(NUMBERS)
    data = chunk_of(
        a=["1", "abc", "3", "4", "5", "6", "7"],
        b=["1"] * 7,
        y=["1e30", "2", "", "inf", "much", "-1.1e30", "1e200"],
    )
    _, x, y, report = encoder.encode(encoder.initial(), data)
    assert len(x) == 1 and y.tolist() == [1e30] and report.read == 7
    assert encoder.observed(data).tolist() == [True, True, False, False, False, False, False]
    assert [str(row) for row in report.bad] == [
        "line 3 holds 'abc' in the numeric column 'a'",
        "line 4 has no target: 'y' is missing",
        "line 5 has no target: 'y' is infinite or larger than 1e+30",
        "line 6 holds 'much' in the target 'y', which is no number",
        "line 7 has no target: 'y' is infinite or larger than 1e+30",
        "line 8 has no target: 'y' is infinite or larger than 1e+30",
    ]
    data = chunk_of(n=["1"] * 2, m=["1"] * 2, b=["1"] * 2, c=["p"] * 2, t=[None] * 2, y=["w", None])
    encoder = Encoder(SCHEMA)
    _, _, _, report = encoder.encode(encoder.initial(), data)
    assert [str(row) for row in report.bad] == [
        "line 2 has the target 'w', which is none of the classes (u, v); give all classes with `classes`",
        "line 3 has no target: 'y' is missing",
    ]


def test_rows_without_a_target_may_be_encoded() -> None:
    encoder = Encoder(NUMBERS)
    _, x, y, _ = encoder.encode(encoder.initial(), chunk_of(a=[1], b=[2]), learn=False, need_target=False)
    assert len(x) == 1 and np.isnan(y).all()
    other = Encoder(SCHEMA)
    data = chunk_of(n=[1], m=[1], b=[1], c=[1], t=[None], y=["w"])
    assert other.encode(other.initial(), data, need_target=False)[2].tolist() == [-1]


def test_what_does_not_fit_is_refused() -> None:
    encoder = Encoder(NUMBERS)
    with pytest.raises(DataError, match=re.escape("column 'b' is not in the table; its columns are a, y.")):
        encoder.encode(encoder.initial(), chunk_of(a=[1], y=[1]))
    loose = Chunk({"a": [1], "y": [1]}, np.array([1]), loose=True)
    assert encoder.encode(encoder.initial(), loose)[3].missing == {"b": 1}
    with pytest.raises(FormatError, match="must be for 2 numeric columns; it is for 3"):
        encoder.encode(Encoder(SCHEMA).initial(), chunk_of(a=[1], b=[1], y=[1]))
    with pytest.raises(DataError, match="clip must be above 0; got -1"):
        Encoder(NUMBERS, clip=-1)


def frame_of(rows: Any) -> Any:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "t": pd.date_range("2024-01-01", periods=rows, freq="h"),
            "a": rng.normal(size=rows),
            "k": rng.integers(0, 5, rows),
            "c": rng.choice(["p", "q", "r"], rows),
            "y": rng.choice(["u", "v"], rows),
        }
    )


def test_every_format_gives_the_same_features(tmp_path: Path) -> None:
    frame = frame_of(2500)
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_csv(tmp_path / "d.tsv.gz", index=False, sep="\t")
    frame.to_parquet(tmp_path / "d.parquet")
    frame.assign(t=frame.t.astype(str)).to_json(
        tmp_path / "d.jsonl", orient="records", lines=True, double_precision=15
    )
    results = []
    for source in (
        from_frame(frame),
        open_table(tmp_path / "d.csv"),
        open_table(tmp_path / "d.tsv.gz", chunk_rows=77),
        open_table(tmp_path / "d.parquet"),
        open_table(tmp_path / "d.jsonl"),
    ):
        encoder = Encoder(infer_schema(source.peek(1000), "y"))
        state, xs, ys = encoder.initial(), [], []
        for chunk in source:
            state, x, y, report = encoder.encode(state, chunk)
            assert not report.bad
            xs.append(x)
            ys.append(y)
        results.append((np.concatenate(xs), np.concatenate(ys)))
    for x, y in results[1:]:
        assert x.shape == results[0][0].shape == (2500, 12)
        np.testing.assert_allclose(x, results[0][0], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(y, results[0][1])


def test_texts_with_signs_and_commas_are_read_as_numbers() -> None:
    assert to_numbers(["$5.20", "-1,234.5", "45 %"])[0].tolist() == [5.2, -1234.5, 45.0]
    values, wrong = to_numbers(["1", " 2.5", "NA", "inf", "abc"])
    np.testing.assert_array_equal(values, [1.0, 2.5, np.nan, np.nan, np.nan])
    assert wrong.tolist() == [False, False, False, False, True]


def test_prepared_rows_say_which_cell_is_no_number() -> None:
    schema = Schema(TargetSpec("y", "regression"), (ColumnSpec("a", "numeric"),))
    prepared = Preparation(schema).prepare(Chunk({"a": ["1", "x"], "y": ["0", "1"]}, np.array([2, 3])))
    np.testing.assert_array_equal(prepared.numbers, [[1.0], [np.nan]])
    assert prepared.why == {1: "holds 'x' in the numeric column 'a'"}
