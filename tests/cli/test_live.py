"""`credo learn -`: rows that come through a pipe are answered, learned and saved as they come."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command, labels, numbers

from credo.cli import main
from credo.cli.interrupt import Interruptible
from credo.sessions import ColumnOptions, Session, open_file
from credo.tables.live import Pipe

posix = pytest.mark.skipif(os.name != "posix", reason="needs signals and pipes of POSIX")


class Input(io.StringIO):
    """Standard input that is a pipe."""

    def __init__(self, file: int) -> None:
        super().__init__()
        self.file = file

    def fileno(self) -> int:
        return self.file

    def seekable(self) -> bool:
        return False


@pytest.mark.slow
@posix
def test_a_row_is_answered_before_the_next_comes_and_sigterm_saves(tmp_path: Path) -> None:
    rows = numbers(tmp_path / "t.csv", 1040).read_text().splitlines(keepends=True)
    program = [sys.executable, "-c", "import sys; from credo.cli import main; sys.exit(main())"]
    words = ["learn", "-", "--target", "y", "--model", "linear", "--out", "o", "--predictions", "-"]
    with subprocess.Popen(
        [*program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    ) as run:
        assert run.stdin is not None and run.stdout is not None and run.stderr is not None
        run.stdin.write("".join(rows[:1001]))
        run.stdin.flush()
        answers = [json.loads(run.stdout.readline()) for _ in range(1000)]
        for row in rows[1001:]:
            run.stdin.write(row)
            run.stdin.flush()
            answers.append(json.loads(run.stdout.readline()))
        run.send_signal(signal.SIGTERM)  # while it waits for a row
        out, err = run.stdout.read(), run.stderr.read()
        assert run.wait(60) == 143, err
    assert out == "" and "Traceback" not in err
    assert "interrupted after 1,040 rows; the state is saved" in err and "--resume o --predictions -" in err
    assert [one["row"] for one in answers] == list(range(2, 1042))
    assert answers[9]["mean"] is None and answers[-1]["lower"] < answers[-1]["mean"] < answers[-1]["upper"]
    assert {path.name for path in (tmp_path / "o").iterdir()} == {"belief.credo", "metrics.json"}


@posix
def test_ctrl_c_while_first_rows_are_awaited_learns_those_at_hand(
    credo: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    os.write(write, "".join(numbers(tmp_path / "t.csv", 30).read_text()).encode() + b"1,2")
    monkeypatch.setattr("sys.stdin", Input(read))
    waits: list[int] = []

    def press() -> None:
        waits.append(1)
        if len(waits) == 1:
            signal.raise_signal(signal.SIGINT)

    def interrupt(pipe: Pipe, quiet: bool) -> Callable[[], None]:
        return press

    monkeypatch.setattr("credo.cli.learning.waiting_for_rows", interrupt)
    outcome = credo("learn", "-", "--target", "y", "--model", "linear", "--out", "o")
    assert outcome.status == 130 and "interrupted after 30 rows; the state is saved" in outcome.err
    assert Session.load("o/belief.credo").rows_used == 30
    os.close(write)


@posix
def test_a_slow_pipe_is_learned_from_the_rows_that_came(tmp_path: Path) -> None:
    text = labels(tmp_path / "t.csv", 60).read_bytes()
    lines = text.splitlines(keepends=True)
    read, write = os.pipe()
    pipe = Pipe(read, "the pipe", patience=0.05, least=10)
    os.write(write, b"".join(lines[:8]))
    waits: list[int] = []

    def wait() -> None:
        waits.append(1)
        if len(waits) == 1:  # too few rows, and of one class: it goes on waiting
            os.write(write, b"".join(lines[8:41]))
            os.write(write, lines[41][:3])

    pipe.on_wait = wait
    source = open_file("-", ColumnOptions("level"), pipe=pipe)
    assert pipe.slow and "inferred from the first 40 rows, since they come slowly" in source.sentences[0]
    rows = iter(source.rows)
    assert len(next(rows)) == 40
    os.write(write, lines[41][3:] + lines[42])
    pipe.on_wait = lambda: None
    assert len(next(rows)) == 2
    os.write(write, lines[43] + b"half a line")
    assert len(next(rows)) == 1
    threading.Timer(0.05, pipe.end).start()
    assert list(rows) == []
    os.close(write)


@posix
def test_where_the_first_rows_of_a_slow_pipe_say_too_little_more_are_awaited(tmp_path: Path) -> None:
    """Not only the next one: all that come within the pipe's patience, counted anew."""
    lines = labels(tmp_path / "t.csv", 60).read_bytes().splitlines(keepends=True)
    one = [line for line in lines[1:] if line.split(b",")[-1] == lines[1].split(b",")[-1]]
    other = [line for line in lines[1:] if line not in one]
    read, write = os.pipe()
    pipe = Pipe(read, "the pipe", patience=0.0, least=10)
    os.write(write, b"".join([lines[0], *one[:11]]))
    rest = [b"".join(other[1:9])]

    def wait() -> None:
        if pipe.taken < 12:
            return
        if pipe.patience == 0:  # these are few, and of one class
            pipe.patience = 60.0
        elif pipe.taken == 12:
            os.write(write, other[0])
        elif len(rest) == 1:
            os.write(write, rest.pop())
            os.close(write)

    pipe.on_wait = wait
    source = open_file("-", ColumnOptions("level"), pipe=pipe)
    assert not pipe.slow and not any("come slowly" in sentence for sentence in source.sentences)
    assert sum(map(len, source.rows)) == 20


def test_a_second_request_to_stop_stops_at_once() -> None:
    with Interruptible() as interrupt:
        interrupt.busy = True
        signal.raise_signal(signal.SIGTERM)
        assert interrupt.stopped and interrupt.status == 143
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.optimised
def test_rows_without_a_target_are_forecast_and_change_nothing() -> None:
    cells = np.random.default_rng(0).normal(size=(60, 2)).tolist()
    rows: list[dict[str, object]] = [{"a": a, "b": b, "y": 3.0 * a - b} for a, b in cells]
    blank: list[dict[str, object]] = [{"a": 1.0, "b": 0.0, "y": None}, {"a": 2.0, "b": 0.0}]
    mixed = [*rows[:30], *blank, *rows[30:], {"a": "text", "b": 1.0}]
    plain, answering = (Session.from_rows(rows, "y", model="linear") for _ in range(2))
    plain.learn(rows)
    forecasts, _ = answering.forecast_then_learn(mixed, (0.05, 0.95))
    places = [one.lines.tolist() for one in forecasts]
    assert places == [list(range(1, 31)), [31, 32], list(range(33, 63))]
    assert forecasts[1].mean is not None and forecasts[1].targets is None
    assert np.abs(forecasts[1].mean - [3.0, 6.0]).max() < 1.0
    assert answering.belief == plain.belief and answering.metrics() == plain.metrics()
    assert answering.rows_used == 60 and answering.rows_read == 63


@posix
def test_a_reader_that_goes_away_costs_nothing(
    credo: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(io.StringIO):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

        def fileno(self) -> int:
            return os.open(os.devnull, os.O_WRONLY)

    path = numbers(tmp_path / "t.csv", 250)
    words = ["learn", str(path), "--target", "y", "--model", "linear", "--out", "o", "--predictions", "-"]
    monkeypatch.setattr("sys.stdout", Gone())
    assert main(words) == 0
    assert Session.load("o/belief.credo").rows_used == 100
