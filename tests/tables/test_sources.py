"""Reading tables: every format, every bad row reported, memory bounded by the chunk."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credo.core.errors import DataError
from credo.tables import from_frame, open_table


def rows_of(source: Any) -> Any:
    """All rows as (line, tuple of cells), and all bad rows."""
    rows, bad = [], []
    for chunk in source:
        rows += list(
            zip(chunk.lines.tolist(), *(list(chunk.columns[name]) for name in chunk.names), strict=True)
        )
        bad += chunk.bad
    return rows, bad


def test_a_messy_csv(tmp_path: Path) -> None:
    path = tmp_path / "messy.csv"
    path.write_bytes(
        b'\xef\xbb\xbfa, b ,"c,d",\r\n'  # byte order mark, blanks, a quoted comma, an empty name
        b'1,"two\nlines",3,4\r\n'
        b"\r\n"
        b"5,6\r\n"
        b'7,"say ""hi""", 9,\r\n'
        b"1,2,3,4,5\r\n"
        b"10,11,12,13"
    )
    source = open_table(path, chunk_rows=2)
    assert source.columns == ("a", "b", "c,d", "column_4")
    rows, bad = rows_of(source)
    assert rows == [
        (2, "1", "two\nlines", "3", "4"),
        (6, "7", 'say "hi"', "9", ""),
        (8, "10", "11", "12", "13"),
    ]
    assert [str(row) for row in bad] == [
        "line 5 has 2 cells where the header names 4",
        "line 7 has 5 cells where the header names 4",
    ]


@pytest.mark.parametrize("chunk_rows", [1, 3, 7, 1000])
def test_chunks_do_not_change_rows_or_lines(chunk_rows: Any) -> None:
    text = "a,b\n" + "".join(f"{i},{i * i}\n" if i % 9 else "lonely\n" for i in range(1, 100))
    rows, bad = rows_of(open_table(io.StringIO(text), chunk_rows=chunk_rows))
    assert [row.line for row in bad] == [i + 1 for i in range(9, 100, 9)]
    assert rows == [(i + 1, str(i), str(i * i)) for i in range(1, 100) if i % 9]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_guessed(delimiter: Any) -> None:
    source = open_table(io.BytesIO(f"x{delimiter}y\n1{delimiter}2\n".encode()))
    assert next(iter(source)).columns == {"x": ("1",), "y": ("2",)}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "csv.gz", "tsv.gz", "jsonl.gz"])
def test_text_formats(tmp_path: Path, suffix: Any) -> None:
    path = tmp_path / f"data.{suffix}"
    text = {
        "csv": "a,b\n1,x\n2,y\n",
        "tsv": "a\tb\n1\tx\n2\ty\n",
        "jsonl": '{"a": "1", "b": "x"}\n\n{"a": "2", "b": "y"}',
    }[suffix.split(".")[0]].encode()
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    rows, bad = rows_of(open_table(str(path)))
    assert [row[1:] for row in rows] == [("1", "x"), ("2", "y")] and not bad


def test_json_lines_with_drifting_keys(tmp_path: Path) -> None:
    path = tmp_path / "drift.jsonl"
    lines = [{"a": 1, "b": "x"}, {"b": "y", "c": None}, {"a": 2}, {"a": 3, "late": 1}, {"late": 2}]
    text = "\n".join(map(json.dumps, lines))
    path.write_text(text.replace('{"a": 2}', '{"a": 2}\n{"a": \n[1]\n{}') + "\n")
    source = open_table(path, chunk_rows=2)
    chunks = list(source)
    assert source.columns == ("a", "b", "c")
    assert [cell for chunk in chunks for cell in chunk.columns["a"]] == [1, None, 2, 3, None]
    assert [cell for chunk in chunks for cell in chunk.columns["c"]] == [None] * 5
    late = [cell for chunk in chunks for cell in chunk.columns.get("late", ())]
    assert [cell for cell in late if cell is not None] == [1, 2]
    assert not any(chunk.ignored for chunk in chunks)
    assert all(chunk.loose for chunk in chunks)
    assert [str(row) for chunk in chunks for row in chunk.bad] == [
        "line 4 is not JSON (Expecting value)",
        "line 5 holds an array where an object is due",
        "line 6 holds an object without keys",
    ]


@pytest.mark.parametrize("wrap", [str, lambda path: io.BytesIO(path.read_bytes())])
def test_parquet(tmp_path: Path, wrap: Any) -> None:
    path = tmp_path / "data.parquet"
    frame = pd.DataFrame(
        {
            "n": [1, 2, None],
            "t": ["x", None, "z"],
            "when": pd.to_datetime(["2024-01-01", None, "2024-01-03"]),
            "flag": [True, False, None],
            "kind": pd.Categorical(["u", "v", "u"]),
        }
    )
    frame.to_parquet(path)
    chunks = list(open_table(wrap(path), chunk_rows=2))
    assert [len(chunk) for chunk in chunks] == [2, 1]
    assert chunks[1].lines.tolist() == [3] and chunks[0].unit == "row"
    assert chunks[0].columns["t"] == ["x", None] and chunks[0].columns["kind"] == ["u", "v"]
    last: Any = chunks[1].columns["n"][0]
    assert np.isnan(last)


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a\tb\n1\t2\n", '{"a": "1", "b": "2"}\n'])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, text: Any) -> None:
    for stdin in (io.TextIOWrapper(io.BytesIO(text.encode())), io.StringIO(text)):
        monkeypatch.setattr(sys, "stdin", stdin)
        source = open_table("-")
        assert source.name == "standard input"
        assert rows_of(source)[0][0][1:] == ("1", "2")
        assert not stdin.closed


def test_gzip_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"a,b\n1,2\n"))))
    assert rows_of(open_table("-"))[0] == [(2, "1", "2")]


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_frames(kind: Any) -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5], "b": ["x", "y", None], "c": pd.array([1, None, 3], "Int64")})
    source = from_frame(frame if kind == "pandas" else pa.table(frame), chunk_rows=2)
    chunks = list(source)
    assert source.columns == ("a", "b", "c")
    assert [chunk.lines.tolist() for chunk in chunks] == [[1, 2], [3]]
    assert chunks[1].columns["a"][0] == 3.5


def test_a_file_is_read_as_it_is_consumed() -> None:
    taken: list[int] = []

    class Endless(io.RawIOBase):
        def readable(self) -> Any:
            return True

        def readinto(self, buffer: Any) -> Any:
            text = b"a,b\n" if not taken else b"1,2\n"
            taken.append(1)
            buffer[: len(text)] = text
            return len(text)

    source = iter(open_table(Endless(), chunk_rows=5))
    for _ in range(20):
        assert len(next(source)) == 5
    assert len(taken) < 200


def test_peek_does_not_consume_and_iteration_is_once() -> None:
    source = open_table(io.StringIO("a,b\n" + "1,2\n" * 10), chunk_rows=3)
    assert sum(map(len, source.peek(5))) == 6
    assert sum(map(len, source.peek(100))) == 10
    assert sum(map(len, source)) == 10
    with pytest.raises(DataError, match="was read already; open it again"):
        iter(source)
    with pytest.raises(DataError, match="peek before iterating"):
        source.peek()


def test_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with open(path, "rb") as stream:
        list(open_table(stream))
        assert stream.closed
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with open_table(tmp_path / "a.parquet") as source:
        assert source.columns == ("a",)


@pytest.mark.filterwarnings("error")
def test_a_gzip_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    source = open_table(path)
    opened = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 1
    list(source)
    assert not os.path.isdir("/proc/self/fd") or len(os.listdir("/proc/self/fd")) == opened - 1


def test_the_share_of_a_file_is_that_of_the_rows_that_were_given_out(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{row},{row % 2}\n" for row in range(40)))
    with open_table(path, chunk_rows=10) as table:
        assert sum(map(len, table.peek(40))) == 40
        assert table.share() == 0.0  # all rows are read ahead, and none is given out
        shares = [table.share() for _ in table]
    assert shares == [0.25, 0.5, 0.75, 1.0]
