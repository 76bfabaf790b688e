"""Columns that come, or get their first value, after the first rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import credo
from credo.live.encoding import GrowingEncoder
from credo.sessions import Session
from credo.tables import Chunk, ColumnSpec, Encoder, Schema, TargetSpec, infer_schema

COUNT, WAKES = 60, 25


def rows(seed: int = 0) -> list[dict[str, Any]]:
    """Rows of which `late` has numbers, and `flag` another text, from row 25 on, and `fresh` comes at 40."""
    rng = np.random.default_rng(seed)
    table: list[dict[str, Any]] = []
    for row, (a, b, noise) in enumerate(rng.normal(size=(COUNT, 3)).tolist()):
        woken = row >= WAKES
        cells: dict[str, Any] = {
            "a": a,
            "late": b if woken else None,
            "flag": "on" if row == WAKES else "off",
        }
        if row >= 40:
            cells["fresh"] = ["x", "y"][row % 2]
        table.append({**cells, "y": a + 5.0 * b * woken + 0.1 * noise})
    return table


def begun(**options: Any) -> Session:
    return Session.from_rows(rows()[:20], "y", model="linear", **options)


def leaves(session: Session) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(session.belief)]


@pytest.mark.slow
def test_a_column_is_learned_from_as_soon_as_it_has_a_value() -> None:
    session, news = begun(), list[str]()
    assert isinstance(session.encoding, GrowingEncoder)
    session.encoding.notify = news.append
    session.learn(rows())
    assert news == [
        "column 'flag' has come, with categories: it is learned from now on",
        "column 'late' has come, with numbers: it is learned from now on",
        "column 'fresh' has come, with categories: it is learned from now on",
    ]
    table = session.predict([{"a": 0.0, "late": late, "flag": "off"} for late in (-1.0, 1.0)])
    assert table.mean is not None
    assert table.mean[1] - table.mean[0] > 4.0
    assert len(session.encoding.features) == session.shape[0] and session.rows_refused == 0


@pytest.mark.parametrize("cuts", [[1], [7], [26, 14], [40, 20]])
def test_bits_do_not_depend_on_how_rows_are_grouped(cuts: list[int]) -> None:
    whole, parts, start = begun(), begun(), 0
    whole.learn(rows())
    while start < COUNT:
        size = cuts[min(start, len(cuts) - 1)]
        parts.learn(rows()[start : start + size])
        start += size
    for mine, theirs in zip(leaves(whole), leaves(parts), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_saved_session_goes_on_with_its_late_columns(tmp_path: Path) -> None:
    whole, first = begun(), begun()
    whole.learn(rows())
    first.learn(rows()[:45])
    first.save(tmp_path / "one.credo")
    again = Session.load(tmp_path / "one.credo")
    again.learn(rows()[45:])
    for mine, theirs in zip(leaves(whole), leaves(again), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fit", "partial_fit"])
def test_an_estimator_learns_from_a_column_that_wakes(kind: str) -> None:
    frame = pd.DataFrame(rows()).drop(columns=["fresh"])
    frame["late"] = frame["late"].astype(object)
    y = frame.pop("y").to_numpy()
    once, twice = (credo.OnlineRegressor("linear") for _ in range(2))
    getattr(once, kind)(frame, y)
    twice.partial_fit(frame[:20], y[:20])
    twice.partial_fit(frame[20:], y[20:])
    asked = frame[-2:].assign(late=[-1.0, 1.0], a=0.0)
    for model in (once, twice):
        low, high = model.predict(asked)
        assert high - low > 4.0


def test_rows_without_a_target_wake_nothing_and_nested_values_stay_out() -> None:
    first = Chunk({"a": [1.0, 2.0, 4.0], "y": [0.5, 1.5, 2.5]}, np.arange(1, 4))
    session = Session.from_rows(first, "y", model="linear")
    assert isinstance(session.encoding, GrowingEncoder)
    session.learn([{"a": 1.0, "b": 3.0, "y": None}, {"a": 1.0, "c": [1, 2], "y": 1.0}])
    assert not session.encoding.schema.late
    assert [dropped.name for dropped in session.encoding.schema.dropped] == ["c"]
    session.learn([{"a": 1.0, "b": 3.0, "c": 4.0, "y": 2.0}])
    assert [column.name for column in session.encoding.schema.late] == ["b"]


def test_where_there_is_no_room_a_column_stays_out() -> None:
    schema = Schema(TargetSpec("y", "regression"), (ColumnSpec("a", "numeric"),))
    growing = GrowingEncoder(schema, 3.0)
    growing.admit_width = lambda width: width <= 12
    chunk = Chunk({"a": [1.0], "b": [1.0], "c": ["x"], "y": [1.0]}, np.arange(1, 2))
    growing.wake_all(chunk)
    assert [column.name for column in growing.schema.late] == ["b"]
    assert "there is no room for it" in str(growing.schema.dropped[0])


def test_columns_that_come_in_one_row_are_taken_in_together(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema(TargetSpec("y", "regression"), (ColumnSpec("a", "numeric"),))
    cells = {f"n{place:03}": [float(place)] for place in range(60)}
    cells["n007"] = [np.nan]  # has no value yet
    together, one_by_one = (GrowingEncoder(schema, 3.0) for _ in range(2))
    for growing in (together, one_by_one):
        growing.admit_width = lambda width: width <= 100
    for name in sorted(cells):
        one_by_one.wake_all(Chunk({name: cells[name]}, np.arange(1, 2)))
    made: list[Schema] = []

    def counted(schema: Schema, **words: Any) -> Encoder:
        made.append(schema)
        return Encoder(schema, **words)

    said: list[str] = []
    together.notify = said.append
    monkeypatch.setattr("credo.live.encoding.Encoder", counted)
    together.wake_all(Chunk(cells, np.arange(1, 2)))
    assert together.schema == one_by_one.schema and together.schema.width <= 100
    assert len(together.schema.late) + len(together.schema.dropped) == 59 == len(said)
    assert together.schema.dropped and len(made) == 1


@pytest.mark.parametrize("most", [8, 20, 10**6])
def test_the_room_that_columns_need_is_known_before_they_are_taken_in(most: int) -> None:
    first = Chunk({"a": [1.0, 2.0], "same": ["u", "u"], "y": [0.5, 1.5]}, np.arange(1, 3))
    rng = np.random.default_rng(0)
    values: list[object] = [None, None, 1.5, "two plain words here", "word", [1], "2024-05-01 10:00"]
    for _ in range(20):
        growing = GrowingEncoder(infer_schema(first, "y"), 3.0)
        growing.admit_width = lambda width: width <= most
        names = [*rng.choice(list("bcdefghij"), rng.integers(1, 6), replace=False).tolist(), "same"]
        cells = {name: [values[place] for place in rng.integers(0, len(values), 4)] for name in names}
        chunk = Chunk(cells, np.arange(1, 5))
        before = growing.schema
        room = growing.room_after(chunk)
        assert growing.schema is before
        growing.wake_all(chunk)
        assert room == growing.schema.extent.room
        assert (growing.schema.width != before.width) == (room != before.extent.room)


def test_the_first_value_says_what_a_column_holds() -> None:
    first = Chunk({"a": [1.0, 2.0], "same": ["u", "u"], "y": [0.5, 1.5]}, np.arange(1, 3))
    growing = GrowingEncoder(infer_schema(first, "y"), 3.0)
    cells: dict[str, object] = {"n": 3, "b": True, "t": "2024-05-01 10:00", "w": "three plain words"}
    cells |= {"s": "word", "same": "v", "y": 1.0}
    growing.wake_all(Chunk({name: [cell] for name, cell in cells.items()}, np.arange(1, 2)))
    kinds = {column.name: column.kind for column in growing.schema.late}
    assert kinds == {
        "n": "numeric",
        "b": "boolean",
        "t": "datetime",
        "w": "text",
        "s": "categorical",
        "same": "categorical",
    }
    assert all(column.has_missing for column in growing.schema.late)
    again = Schema.from_dict(growing.schema.to_dict())
    assert again == growing.schema


@pytest.mark.parametrize("sizes", [(200,), (1,) * 200, (130, 5, 65)], ids=len)
def test_other_units_are_said_once(sizes: tuple[int, ...]) -> None:
    """From row 140 on a column comes in thousandths, and from row 160 on the target does."""
    rng = np.random.default_rng(0)
    table = [
        {
            "a": float(a) * (1e3 if i >= 140 else 1.0),
            "b": float(b),
            "y": float(a) * (1e3 if i >= 160 else 1.0),
        }
        for i, (a, b) in enumerate(5.0 + rng.normal(size=(200, 2)))
    ]
    session, news = Session.from_rows(table[:50], "y", model="linear"), list[str]()
    assert isinstance(session.encoding, GrowingEncoder)
    session.encoding.notify = news.append
    start = 0
    for size in sizes:
        session.learn(table[start : start + size])
        start += size
    assert news == [
        "the numbers of column 'a' are unlike all before, ten in a row: they are standardised anew",
        "the numbers of the target 'y' are unlike all before, ten in a row: they are standardised anew",
    ]
