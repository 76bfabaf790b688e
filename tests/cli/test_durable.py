"""`credo learn` that is killed, stopped, resumed or out of disk space: nothing that was learned is lost."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command, labels, numbers, write

from credo.cli.run_files import ForecastFile, KeptColumns, RunFiles
from credo.core import locking
from credo.core.errors import DataError
from credo.sessions import Session
from credo.sessions.places import Progress
from credo.streams import checkpoint

LINEAR = ("--target", "y", "--model", "linear", "-q")


def same(one: Path, other: Path) -> None:
    """All that is saved, belief and scores, is the same bit by bit."""
    a, b = checkpoint.read(one), checkpoint.read(other)
    assert a.belief == b.belief and a.learner == b.learner
    for name, array in a.arrays.items():
        np.testing.assert_array_equal(array, b.arrays[name], err_msg=name)
    assert a.meta["counters"] == b.meta["counters"]


@pytest.fixture
def kill_after(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Keep what a kill would leave after the third chunk of rows, and a row that was half written."""
    left, count = tmp_path / "left", 0

    def tick(self: RunFiles) -> None:
        nonlocal count
        count += 1
        if count == 2:
            self.save()
        if count == 3:
            shutil.copytree(self.folder.path, left)
            (left / "unfinished" / ".belief.credo.abcdefgh").write_bytes(b"half")
            shutil.copy(tmp_path / "o.csv", tmp_path / "left.csv")
            with (tmp_path / "left.csv").open("a") as file:
                file.write("1,2")

    monkeypatch.setattr(RunFiles, "tick", tick)
    return left


@pytest.mark.optimised
def test_a_killed_run_goes_on_bitwise_with_its_files(
    credo: Command, tmp_path: Path, kill_after: Path
) -> None:
    path = numbers(tmp_path / "t.csv", 230)
    lines = path.read_text().splitlines()
    lines[90], lines[171] = lines[90].rpartition(",")[0] + ",", "1,2"  # no target; torn
    path.write_text("\n".join(lines) + "\n")
    drift = ("--drift", "run-length:0.01,2", "--chunk", 40)
    files = ("--out", "o", "--predictions", "o.csv")
    assert credo("learn", path, *LINEAR, *drift, *files).status == 0
    assert credo("learn", path, *LINEAR, "--out", kill_after).status == 2  # is not overwritten by mistake
    outcome = credo("learn", path, "--resume", "left", "--predictions", "left.csv", "--chunk", 40)
    assert outcome.status == 0 and "continuing after row 81 of " in outcome.err, outcome.err
    assert "rows to their" not in outcome.err and "is replaced" not in outcome.err
    same(tmp_path / "o/belief.credo", kill_after / "belief.credo")
    assert (tmp_path / "o.csv").read_text() == (tmp_path / "left.csv").read_text()
    assert (tmp_path / "o/drift.csv").read_text() == (kill_after / "drift.csv").read_text()
    assert {p.name for p in kill_after.iterdir()} == {p.name for p in (tmp_path / "o").iterdir()}
    one, other = (json.loads((f / "metrics.json").read_text()) for f in (tmp_path / "o", kill_after))
    assert one["metrics"] == other["metrics"] and one["rows"]["skipped"] == other["rows"]["skipped"] == 2


@pytest.mark.slow
def test_the_place_in_a_file_is_part_of_the_belief(credo: Command, tmp_path: Path) -> None:
    lines = numbers(tmp_path / "all.csv", 90).read_text().splitlines(keepends=True)
    (tmp_path / "t.csv").write_text("".join(lines[:61]))
    assert credo("learn", "all.csv", *LINEAR, "--out", "all").status == 0
    assert credo("learn", "t.csv", *LINEAR, "--limit", 30, "--out", "o").status == 0
    outcome = credo("learn", "t.csv", "--resume", "o", "--limit", 20)
    assert (
        "continuing after row 31 of t.csv" in outcome.err and Session.load("o/belief.credo").rows_used == 50
    )
    assert credo("learn", "t.csv", "--resume", "o/belief.credo", "--out", "o", "-q").status == 0
    (tmp_path / "o/report.html").unlink()  # as after a signal that came with the last row
    finished = credo("learn", "t.csv", "--resume", "o")
    assert finished.status == 0 and (tmp_path / "o/report.html").is_file(), finished.err
    known = credo("learn", "t.csv", "--resume", "o")
    assert known.status == 2 and "t.csv has no row after 61, up to which o has learned; --again" in known.err
    shutil.copy(tmp_path / "all.csv", tmp_path / "grown.csv")  # a file is known by its rows, not by its name
    grown = credo("learn", "grown.csv", "--resume", "o")
    assert grown.status == 0 and "continuing after row 61 of grown.csv" in grown.err
    one, other = (Session.load(tmp_path / name / "belief.credo") for name in ("all", "o"))
    assert one.belief == other.belief and one.rows_used == other.rows_used == 90
    (tmp_path / "grown.csv").write_text("".join([*lines[:50], lines[20], *lines[51:]]))
    changed = credo("learn", "grown.csv", "--resume", "o")
    assert changed.status == 2 and "begins with rows that o has learned from, and then differs" in changed.err
    numbers(tmp_path / "other.csv", 20, seed=1)
    assert credo("learn", "other.csv", "--resume", "o").status == 0
    assert credo("learn", "t.csv", "--resume", "o").status == 2  # is still known
    assert credo("learn", "t.csv", "--resume", "o", "--again").status == 0
    assert Session.load("o/belief.credo").rows_used == 90 + 20 + 60


@pytest.mark.slow
def test_the_place_in_a_named_set_is_part_of_the_belief(credo: Command) -> None:
    small = ("--model", "linear", "--test-rows", -1, "-q")
    assert credo("learn", "wine", *small, "--limit", 90, "--chunk", 40, "--out", "all").status == 0
    assert credo("learn", "wine", *small, "--limit", 50, "--chunk", 40, "--out", "o").status == 0
    again = credo("learn", "wine", "--resume", "o", "--test-rows", -1, "--limit", 40, "--chunk", 40)
    assert again.status == 0 and "40 of its 143 training rows, shuffled by the seed, from row 51" in again.err
    assert Session.load("all/belief.credo").belief == Session.load("o/belief.credo").belief
    order = credo("learn", "wine", "--resume", "o", "--no-shuffle")
    assert order.status == 2 and "90 rows of wine, shuffled by seed 0, which cannot be told" in order.err


def test_a_full_disk_costs_no_belief_and_no_earlier_run(
    credo: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = numbers(tmp_path / "t.csv", 40)
    assert credo("learn", path, *LINEAR, "--out", "o").status == 0
    before = {file: file.read_bytes() for file in (tmp_path / "o").rglob("*.*")}
    with monkeypatch.context() as full:

        def no_space(*_: object) -> bytes:
            raise OSError(errno.ENOSPC, "No space left on device")

        full.setattr("credo.cli.report.page", no_space)
        outcome = credo("learn", path, *LINEAR, "--out", "o", "--save", "s")
    assert outcome.status != 0 and "no space left on device" in outcome.err.lower()
    assert "what was learned is saved in o/unfinished/belief.credo; continue with: credo learn" in outcome.err
    assert {file: file.read_bytes() for file in before} == before
    assert Session.load("s").belief == Session.load("o/unfinished/belief.credo").belief
    assert credo("learn", path, *LINEAR, "--out", "o").status == 2
    assert credo("learn", path, "--resume", "o").status == 0  # has no more rows, and writes the results
    assert Session.load("s").belief == Session.load("o/belief.credo").belief
    assert not (tmp_path / "o/unfinished").exists()


def test_an_error_after_the_state_was_saved_keeps_it(
    credo: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunFiles, "tick", RunFiles.save)
    monkeypatch.setattr("credo.recipes.defaults.SCHEMA_ROWS", 50)
    path = numbers(tmp_path / "t.csv", 250)
    with path.open("a") as file:
        file.write("x,y,z,w\n" * 80)
    outcome = credo("learn", path, *LINEAR, "--out", "o")
    assert outcome.status == 2 and "changes at line 252" in outcome.err
    assert Session.load("o/unfinished/belief.credo").rows_used == 200
    monkeypatch.setattr(Session, "save", _refuse)
    outcome = credo("learn", numbers(tmp_path / "t.csv", 250), "--resume", "o")
    assert outcome.status == 2 and Session.load("o/unfinished/belief.credo").rows_used == 200


def _refuse(*_: object) -> Path:
    raise DataError("cannot write it: no space.")


def test_two_runs_into_one_folder_are_refused(credo: Command, tmp_path: Path) -> None:
    path = numbers(tmp_path / "t.csv", 40)
    for folder in ("runs/t/unfinished", "o/unfinished"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "drift.csv").touch()  # a run that was killed before it saved anything
    lock = locking.hold(tmp_path / "o/unfinished/lock")
    other = locking.hold(tmp_path / "runs/t/unfinished/lock")
    assert lock is not None and other is not None
    outcome = credo("learn", path, *LINEAR, "--out", "o")
    assert outcome.status == 2 and "another run is writing into o just now" in outcome.err
    outcome = credo("learn", path, *LINEAR[:-1])
    assert (
        outcome.status == 0
        and "runs/t holds a run that is still writing, so this one goes to runs/t-2"
        in (" ".join(outcome.err.split()))
    )
    locking.let_go(lock)
    locking.let_go(other)
    assert credo("learn", path, *LINEAR, "--out", "o").status == 0
    assert credo("learn", path, *LINEAR).status == 0
    for run in ("o", "runs/t"):
        assert (tmp_path / run / "belief.credo").exists() and not (tmp_path / run / "unfinished").exists()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_predictions_are_those_that_are_scored(credo: Command, tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = labels(tmp_path / "t.csv", 120)
    words = ("--target", "level", "--model", "linear", "-q", "--limit", 80)
    assert credo("learn", path, *words, "--out", "plain").status == 0
    file, keep = f"p.{suffix}", ("--keep", "member,level")
    assert credo("learn", path, *words, "--predictions", file, *keep, "--out", "o").status == 0
    if suffix == "csv":
        other = credo("learn", path, "--resume", "o", "--predictions", file)
        assert (
            other.status == 2
            and "p.csv was begun with --keep member,level; continue in the same way" in other.err
        )
    rest = credo("learn", path, "--resume", "o", "--predictions", file, *keep)
    assert rest.status == 0, rest.err
    read = {"jsonl": lambda: pandas.read_json(file, lines=True), "csv": lambda: pandas.read_csv(file)}
    table = read.get(suffix, lambda: pandas.read_parquet(file))()
    assert list(table.columns) == ["row", "member", "level", "target", "prediction", "p(high)", "p(low)"]
    assert table["row"].tolist() == list(range(2, 122))
    there = pandas.read_csv(path)
    assert (table["level"] == table["target"]).all() and (table["member"] == there["member"]).all()
    share = np.where(table["target"] == "high", table["p(high)"], table["p(low)"])
    data = json.loads((tmp_path / "o/metrics.json").read_text())
    assert -np.log(share).mean() == pytest.approx(data["metrics"]["nlpd"], rel=1e-4)
    assert (table["target"] != table["prediction"]).mean() == pytest.approx(data["metrics"]["error"])
    assert credo("learn", path, "--resume", "plain", "-q").status == 0
    assert Session.load("plain/belief.credo").belief == Session.load("o/belief.credo").belief
    Path(file).write_text("row\n")
    mine = credo("learn", path, "--resume", "o", "--again", "--predictions", file)
    assert mine.status in (1, 2) and "Traceback" not in mine.err


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_predictions_go_on_where_a_new_class_comes(credo: Command, tmp_path: Path, suffix: str) -> None:
    names = ["v" if i == 1010 else "tu"[i % 2] if i % 50 else "" for i in range(1020)]
    path = write(tmp_path / "t.csv", ["a", "y"], [[i % 7, name] for i, name in enumerate(names)])
    file = f"p.{suffix}"
    outcome = credo("learn", path, "--target", "y", "--model", "linear", "--predictions", file, "--out", "o")
    assert outcome.status == 0, outcome.err
    rows = Path(file).read_text().splitlines()[suffix == "csv" :]
    assert [int(row.split(",")[0].split(" ")[-1]) for row in rows] == list(range(2, 1022))
    assert ('"p(v)"' in rows[-1]) == (suffix == "jsonl")


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_file_of_predictions_goes_on_behind_the_rows_of_the_session(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"p.{suffix}"
    request: Any = SimpleNamespace(run=SimpleNamespace(predictions=str(out), spreadsheet=False))
    session: Any = SimpleNamespace(encoding=SimpleNamespace(classes=()), progress=Progress())
    kept = KeptColumns("t.csv", [], [])

    def file_after(saved: Path | None) -> ForecastFile:
        return ForecastFile(request, session, tmp_path, saved, kept)

    with file_after(None) as begun:
        head = out.read_text()
        begun._write("one\n")
        begun.mark()
        begun._write("came after the session was saved\n")
    with file_after(tmp_path / "belief.credo") as continued:
        continued._write("two\n")
        continued.mark()
    assert out.read_text() == f"{head}one\ntwo\n" and session.progress.forecast_bytes == out.stat().st_size
    out.write_text(f"{head}another\n")
    with pytest.raises(DataError, match="is not the file of the run that continues"):
        file_after(tmp_path / "belief.credo").__enter__()


def test_checkpoint_and_predictions_are_checked(credo: Command, tmp_path: Path) -> None:
    path = numbers(tmp_path / "t.csv", 40)
    for words, says in (
        (("--checkpoint", "-1"), "--checkpoint must be finite and at least 0; got -1"),
        (("--checkpoint", "nan"), "--checkpoint must be finite and at least 0; got nan"),
        (("--again",), "--again is for --resume"),
        (("--predictions", "p.txt"), "--predictions p.txt must end in .csv, .jsonl"),
        (("--predictions", "no/p.csv"), "the folder no does not exist"),
        (("--resume", tmp_path), "holds no saved belief"),
    ):
        outcome = credo("learn", path, *LINEAR, *words)
        assert outcome.status == 2 and says in outcome.err, outcome.err
        assert not (tmp_path / "runs").exists()
