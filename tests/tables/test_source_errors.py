"""Every way a table cannot be read is one sentence that names the table and what is wrong."""

from __future__ import annotations

import builtins
import gzip
import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credo.core.errors import DataError
from credo.tables import from_frame, open_table

CSV = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(2000))
JSONL = b"".join(b'{"a": %d, "b": %d}\n' % (i, i * i) for i in range(100))


def packed(files: dict[str, bytes]) -> bytes:
    """A zip archive."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return sink.getvalue()


def parquet_bytes() -> Any:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": list(range(1000)), "b": ["x"] * 1000}), sink)
    return sink.getvalue()


CASES = {
    "empty": ("a.csv", b"", "is empty"),
    "blank": ("a.csv", b" \n\n", "is empty"),
    "empty gzip": ("a.csv.gz", gzip.compress(b""), "is empty"),
    "header only": ("a.csv", b"a,b\n", "has column names but no rows"),
    "no usable row": (
        "a.csv",
        b"a,b\n1\n2\n",
        "has no usable row: line 2 has 1 cell where the header names 2",
    ),
    "no header": ("a.csv", b"1,2.5\n3,4\n", "has no header: its first line holds only numbers (1, 2.5)"),
    "duplicates": ("a.csv", b"a,b,a\n1,2,3\n", "has two columns named 'a' (columns 1 and 3)"),
    "png": ("a.csv", b"\x89PNG\r\n\x1a\n\0\0", "should be csv but holds a PNG image"),
    "parquet as csv": ("a.csv", parquet_bytes(), "should be csv but holds parquet data"),
    "csv as parquet": ("a.parquet", CSV, "should be parquet but does not begin with PAR1"),
    "csv as jsonl": (
        "a.jsonl",
        CSV,
        "should be jsonl but its first line is not a JSON object: it begins 'a,b'",
    ),
    "long line as jsonl": ("a.jsonl", b"a" * 99 + b"\n", f"it begins {'a' * 40!r}"),
    "jsonl as csv": ("a.csv", JSONL, "should be csv but holds JSON lines"),
    "array": ("a.json", b'[{"a": 1}]', "holds a JSON array; jsonl must hold one JSON object per line"),
    "sniffed array": ("a.txt", b'[{"a": 1}]', "holds a JSON array"),
    "html": ("a.csv", b"<!DOCTYPE html><html>", "should be csv but holds an HTML or XML page"),
    "excel": ("a.csv", b"PK\x03\x04....", "holds a zip archive or Excel workbook"),
    "utf-16": ("a.csv", "a,b\n1,2\n".encode("utf-16"), "holds UTF-16 text"),
    "nul": ("a.csv", b"a,b\n1,\0\n", "holds a NUL byte at byte 7: it is not text"),
    "late nul": ("a.csv", CSV + b"1,2\n" * 50_000 + b"\0,\0\n", "holds a NUL byte at byte"),
    "latin-1": ("a.csv", CSV + b"caf\xe9,1\n", "is not UTF-8 text at line 2002 (byte 0xE9)"),
    "latin-1 header": ("a.csv", b"caf\xe9,b\n1,2\n", "is not UTF-8 text at line 1 (byte 0xE9)"),
    "latin-1 jsonl": ("a.jsonl", JSONL + b'{"a": "caf\xe9"}\n', "is not UTF-8 text at line 101 (byte 0xE9)"),
    "cut gzip": ("a.csv.gz", gzip.compress(CSV)[:-20], "ends in the middle of its gzip data"),
    "damaged gzip": ("a.csv.gz", gzip.compress(CSV)[:-8] + b"\0" * 8, "holds damaged gzip data"),
    "no gzip": ("a.csv.gz", CSV, "is named .gz but holds no gzip data"),
    "cut parquet": ("a.parquet", parquet_bytes()[:-30], "is cut: it does not end in PAR1"),
    "tiny parquet": ("a.parquet", b"PAR1", "is cut: it does not end in PAR1"),
    "damaged parquet": ("a.parquet", parquet_bytes()[:-8] + b"\xff\xff\0\0PAR1", "is damaged parquet data"),
    "cut json": ("a.jsonl", JSONL + b'{"a": 1, "b', "is cut: its last line, 101, stops in the middle"),
    "cut csv": ("a.csv", CSV + b"2000", "is cut: its last line, 2002, has 1 of the 2 cells and no line end"),
    "cut quote": ("a.csv", CSV + b'"20', "is cut: its last line, 2002, has 1"),
    "long line": (
        "a.csv",
        CSV + b"9" * (3 << 23) + b",1\n",
        "holds a line of more than 16,777,216 bytes, from",
    ),
    "long packed line": (
        "a.csv.gz",
        gzip.compress(b"a,b\n1,2\n3," + b"9" * (3 << 23)),
        "holds a line of more than 16,777,216 bytes",
    ),
    "open quote": ("a.csv", b'a,b\n1,"' + b"x" * 200_000, "cannot be split into cells at line 2"),
    "two files": ("a.csv", CSV + b"a,b\n1,2\n", "repeats its header at line 2002"),
    "new columns": (
        "a.csv",
        CSV + b"1,2,3\n" * 50,
        "changes at line 2002: 26 of the 50 rows up to line 2027 have not the 2 cells that the header names",
    ),
    "wrong columns": (
        "a.csv",
        b"a,b\n" + b"1,2,3\n" * 50,
        "changes at line 2: 20 of the 20 rows up to line 21",
    ),
    "not json": ("a.jsonl", JSONL + b"oops\n" * 50, "changes at line 101: 26 of the 50 rows up to line 126"),
    "new keys": ("a.jsonl", JSONL * 11 + b'{"c": 1}\n' * 50, "changes at line 1101"),
    "unknown suffix": ("a.sav", CSV, "has the unknown suffix '.sav': allowed are .csv"),
    "workbook": ("a.xlsx", CSV, "is an Excel workbook; save its sheet as CSV"),
    "no archive": ("a.zip", CSV, "is no zip archive, or is cut short"),
    "empty archive": ("a.zip", packed({}), "holds no file"),
    "several files": ("a.zip", packed({"a.csv": CSV, "b.csv": CSV}), "holds 2 files (a.csv, b.csv); unpack"),
    "no table": ("a.zip", packed({"a.sav": CSV}), "a.zip/a.sav has the unknown suffix '.sav'"),
    "cut archive": (
        "a.zip",
        packed({"a.csv": CSV}).replace(CSV[:3], b"zzz", 1),
        "holds damaged zip data",
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("chunk_rows", [7, 1000])
def test_a_table_that_cannot_be_read(tmp_path: Path, case: Any, chunk_rows: Any) -> None:
    name, content, sentence = CASES[case]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(sentence)) as caught:
        list(open_table(path, chunk_rows=chunk_rows))
    message = str(caught.value)
    assert message.startswith(str(path)) and message.endswith((".", "?")) and "\n" not in message
    assert ". " not in message.replace(str(path), "")


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl"])
def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path, suffix: str) -> None:
    random = np.random.default_rng(0)
    form = '{{"a": {}, "b": {}}}\n' if suffix == "jsonl" else "{},{}\n"
    lines = [form.format(a, b) for a, b in random.random((9000, 2))]
    content = "".join(lines if suffix == "jsonl" else ["a,b\n", *lines]).encode()
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    size = path.stat().st_size
    source = open_table(path, chunk_rows=100)
    chunks = iter(source)
    rows = len(next(chunks))
    end = size // 2 if suffix.endswith("gz") else content.rindex(b"\n", 0, size // 2) + 1
    os.truncate(path, end)
    with pytest.raises(DataError, match=rf"{suffix} was cut while it was read: it had {size:,} bytes"):
        for chunk in chunks:
            rows += len(chunk)
    assert 100 < rows < 9000


def test_a_file_that_lacks_its_last_byte_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(CSV + b"7,77\n" * 20_000)
    source = open_table(path, chunk_rows=100)
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(DataError, match="was cut while it was read"):
        list(source)


def test_a_file_that_grows_while_it_is_read_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(CSV)
    source = open_table(path, chunk_rows=100)
    with path.open("ab") as file:
        file.write(b"7,7\n" * 50_000)
    assert sum(map(len, source)) >= 2000


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_bytes(CSV)
    with pytest.raises(DataError, match=r"price.csv does not exist: did you mean 'prices.csv'\?$"):
        open_table(tmp_path / "price.csv")
    with pytest.raises(DataError, match=r"does not exist\.$"):
        open_table(tmp_path / "no" / "such.csv")
    with pytest.raises(DataError, match="is a directory; name one file of csv, tsv, jsonl, parquet"):
        open_table(tmp_path)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(CSV)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(DataError, match=r"may not be read: permission denied\.$"):
        open_table(path)


def test_a_disk_that_fails() -> None:
    class Failing(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 5000:
                raise OSError(5, "Input/output error")
            return super().read1(100)

    with pytest.raises(DataError, match="the stream cannot be read: Input/output error"):
        list(open_table(Failing(CSV)))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"format": "xml"}, "format must be one of csv, tsv, jsonl, parquet; got 'xml'"),
        ({"chunk_rows": 0}, "chunk_rows must be a whole number at least 1; got 0"),
        ({"delimiter": ",,"}, "delimiter must be one character; got ',,'"),
    ],
)
def test_arguments(arguments: Any, sentence: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        open_table(io.BytesIO(CSV), **arguments)


def test_parquet_needs_a_file() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> Any:
            return False

    with pytest.raises(DataError, match="parquet data, which cannot be read as a stream"):
        open_table(Pipe(parquet_bytes()))


def test_strict_raises_on_a_bad_row() -> None:
    with pytest.raises(DataError, match=r"^the stream: line 3 has 1 cell where the header names 2\.$"):
        open_table(io.BytesIO(b"a,b\n1,2\n3\n4,5\n"), strict=True)
    with pytest.raises(DataError, match="line 2 is not JSON"):
        open_table(io.BytesIO(b'{"a": 1}\n{"a"\n{"a": 2}\n'), strict=True)


def test_an_open_quotation_mark_is_named() -> None:
    text = "a,b\n1,2\n" + '"3,4\n' + "5,6\n" * 3
    (chunk,) = open_table(io.StringIO(text))
    assert str(chunk.bad[0]).startswith(
        "line 3 has 1 cell where the header names 2, and runs to line 7: is a q"
    )


def test_values_that_are_no_table() -> None:
    with pytest.raises(DataError, match=r"a table must be a path, '-' or a readable stream; got int"):
        number: Any = 3
        open_table(number)
    with pytest.raises(DataError, match="the DataFrame must be a DataFrame; got list"):
        from_frame([1, 2])
    with pytest.raises(DataError, match="the DataFrame has column names but no rows"):
        from_frame(pd.DataFrame({"a": []}))
    with pytest.raises(DataError, match="the DataFrame has two columns named 'a'"):
        from_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(DataError, match="the DataFrame has two columns named '1'"):
        from_frame(pd.DataFrame([[1, 2]], columns=["1", 1]))


def test_deep_json_is_a_bad_row() -> None:
    deep = b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    chunks = list(open_table(io.BytesIO(JSONL + deep + b'{"a": 1}\n')))
    assert [row.line for row in chunks[0].bad] == [101] and json.loads(JSONL.split(b"\n")[0]) == {
        "a": 0,
        "b": 0,
    }


def test_the_only_table_in_an_archive_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(
        packed({"d/": b"", "d/a.csv.gz": gzip.compress(CSV), "__MACOSX/._a.csv": b"x", ".x": b""})
    )
    with open_table(path) as source:
        assert sum(len(chunk) for chunk in source) == 2000
