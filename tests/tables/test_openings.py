"""Sources are opened, and pipes are read as their lines come."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from credo.tables.live import LiveText, Pipe, is_prompt, open_pipe, until_idle
from credo.tables.opening import ByteStream, format_of_name, open_bytes, sniff


def pipe_of(content: bytes) -> Pipe:
    """The reading end of a pipe with this content."""
    read, write = os.pipe()
    os.write(write, content)
    os.close(write)
    return Pipe(read, "a pipe")


def test_a_pipe_hands_on_whole_lines() -> None:
    pipe = pipe_of(b"a,b\n1,2\n3")
    assert [pipe.read1(100) for _ in range(3)] == [b"a,b\n1,2\n", b"3", b""]


def test_the_lines_of_a_pipe_are_counted() -> None:
    pipe = pipe_of(b"a\n1\n")
    text = LiveText(io.BufferedReader(pipe))
    text.pipe = pipe
    assert list(text) == ["a\n", "1\n"]
    assert pipe.taken == 2


def test_what_is_no_pipe_is_read_to_its_end() -> None:
    text = io.TextIOWrapper(io.BytesIO())
    assert list(until_idle(["a", "b"], text)) == ["a", "b"]
    assert not is_prompt(text)
    assert open_pipe("prices.csv") is None


def test_the_name_or_the_content_tells_the_format() -> None:
    assert format_of_name("prices.csv.gz", None) == ("csv", True)
    assert sniff(b'{"a": 1}', "standard input", None) == "jsonl"
    assert open_bytes(io.BytesIO(b"a,b")).head() == b"a,b"
    assert ByteStream(io.BytesIO(b"a,b"), "data.csv").read() == b"a,b"


def test_the_share_is_whole_although_another_thread_closes_the_file_while_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2\n")
    file = path.open("rb")
    stream = ByteStream(file, "t.csv")
    look = os.fstat

    def close_after(number: int) -> os.stat_result:
        found = look(number)
        file.close()
        return found

    monkeypatch.setattr(os, "fstat", close_after)
    assert stream.share() == 1.0
    assert stream.share() == 1.0
