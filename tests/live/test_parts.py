"""The parts of the road from a raw row to a learner, each alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from credo.live.encoding import GrowingEncoder
from credo.live.feature_slots import FeatureSlots
from credo.live.feature_values import kind_of
from credo.live.journal import Journal
from credo.live.recovery import Recovery
from credo.tables import Chunk, ColumnSpec, Schema, TargetSpec


def test_features_take_slots_in_the_order_of_their_names_and_leave_out_what_was_not_met() -> None:
    met = FeatureSlots().including(FeatureSlots().arrivals({"b": 2.5, "a": True, "c": "x"}))
    assert [str(slot) for slot in met.slots] == ["(a value is missing)", "a", "b", "c=x"]
    row = met.row({"c": "x", "b": 3.0, "new": 1.0})
    np.testing.assert_array_equal(row[:4], [1.0, np.nan, 0.5, 1.0])
    assert np.isnan(row[4:]).all()


def test_the_first_value_says_what_a_feature_holds() -> None:
    values = (1, True, "Oslo", "2024-05-01 12:30", "a text of words")
    assert [kind_of("a", value) for value in values] == ["number", "boolean", "text", "time", "words"]


def test_a_chunk_is_cut_where_a_column_comes() -> None:
    first = Schema(TargetSpec("y", "regression"), (ColumnSpec("a", "numeric"),))
    rows = GrowingEncoder(first, 3.0)
    chunk = Chunk({"a": [1.0, 2.0, 3.0], "b": [None, "x", None]}, np.arange(1, 4))
    assert [len(piece) for piece in rows.pieces(chunk)] == [1, 2]
    assert [column.name for column in rows.schema.late] == ["b"]


def test_a_journal_gives_its_lines_back_from_a_mark_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "rows.jsonl", "journal")
    journal.append([b"one"])
    mark = journal.mark()
    journal.append([b"two", b"three"])
    assert list(journal.since(mark)) == [(8, b"two"), (14, b"three")]
    assert [line for _, line in journal.since(None)] == [b"one", b"two", b"three"]
    journal.close()


def test_ten_refusals_in_a_row_are_found_at_the_tenth() -> None:
    assert Recovery().broken(np.array([True] + [False] * 12)) == 10
