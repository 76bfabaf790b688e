"""`credo learn --drift` with changes: run lengths, mixtures of experts and soft resets."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command, write

from credo.core.errors import CredoError
from credo.sessions import Session
from credo.streams import checkpoint

LINEAR = ("--target", "y", "--model", "linear", "-q")


def jump(path: Path, count: int, at: int) -> list[str]:
    """A regression whose weights change before row `at` + 1; its lines."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 2))
    slope = np.where(np.arange(count) < at, 3.0, -3.0)
    y = 50 + 10 * (slope * x[:, 0] - 2 * x[:, 1] + 0.3 * rng.normal(size=count))
    rows = [[f"{a:.6f}", f"{b:.6f}", f"{v:.6f}"] for (a, b), v in zip(x, y, strict=True)]
    return write(path, ["a", "b", "y"], rows).read_text().splitlines(keepends=True)


@pytest.mark.optimised
def test_run_lengths_report_a_planted_change_and_go_on_bitwise_when_resumed(
    credo: Command, tmp_path: Path
) -> None:
    lines = jump(tmp_path / "all.csv", 120, 70)
    (tmp_path / "a.csv").write_text("".join(lines[:52]))
    (tmp_path / "b.csv").write_text("".join([lines[0], *lines[52:]]))
    drift = ("--drift", "run-length:0.01")
    outcome = credo("learn", "all.csv", *LINEAR, *drift, "--save", "all")
    assert outcome.status == 0, outcome.err
    assert "1 change was reported, at row 7" in outcome.out and "Judged at the row itself" in outcome.out
    data = json.loads((tmp_path / "runs/all/metrics.json").read_text())
    assert data["settings"]["drift"] == "run-length:0.01,5"
    (row,), (began,) = data["changes"]["rows"], data["changes"]["began"]
    assert 71 <= began <= row <= 75
    assert 0 < data["changes"]["largest_probability"] <= 1
    assert abs(data["changes"]["run_length"] - (120 - began)) < 3
    assert "1 change was reported" in (tmp_path / "runs/all/report.html").read_text()
    assert (tmp_path / "runs/all/plots/drift.svg").read_bytes()[:4] == b"<svg"
    with (tmp_path / "runs/all/drift.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120 and rows[0]["line"] == "2"
    assert [int(one["row"]) for one in rows if one["alarm"] == "1"] == [row]
    assert all(0 <= float(one["change"]) <= 1 for one in rows) and float(rows[-1]["run_length"]) > 40

    assert credo("learn", "a.csv", *LINEAR, *drift, "--save", "a").status == 0
    assert credo("learn", "b.csv", "-q", "--resume", "a", "--save", "b").status == 0
    whole, parts = Session.load(Path("all")), Session.load(Path("b"))
    assert whole.belief == parts.belief and whole.learner == parts.learner
    assert whole.changes is not None and parts.changes is not None
    for name, array in whole.changes.arrays().items():
        np.testing.assert_allclose(array, parts.changes.arrays()[name], rtol=1e-12, err_msg=name)
    with (tmp_path / "runs/b/drift.csv").open() as file:
        assert next(csv.DictReader(file))["row"] == "52"
    outcome = credo("predict", "b", "a.csv")
    assert outcome.status == 0 and len(outcome.out.splitlines()) == 52
    # a program that has not imported the wrappers can load one
    program = "import credo; print(type(credo.load('b')[0]).__name__)"
    words = [sys.executable, "-c", program]
    loaded = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"JAX_ENABLE_X64": "1"})
    assert loaded.stdout.strip() == "RunLength", loaded.stderr


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--drift mixture --posterior diagonal", "Weights of the experts at the end: "),
        ("--drift soft-reset --posterior low-rank:2", "full reset"),
        ("--drift run-length:0.01,3 --method sgd", "Judged at the row itself"),
    ],
)
def test_other_wrappers_and_methods_learn_classes_and_are_saved(
    credo: Command, tmp_path: Path, options: str, says: str
) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    rows = [[f"{a:.4f}", "up" if a * (1 if i < 25 else -1) > 0 else "down"] for i, a in enumerate(x)]
    path = write(tmp_path / "t.csv", ["a", "y"], rows)
    outcome = credo("learn", path, *LINEAR, *options.split(), "--save", "s")
    assert outcome.status == 0, outcome.err
    assert says in outcome.out
    assert (tmp_path / "runs/t/plots/drift.svg").stat().st_size > 5000
    with (tmp_path / "runs/t/drift.csv").open() as file:
        assert len(list(csv.reader(file))) == 41
    session = Session.load(Path("s"))
    assert session.rows_refused == 0 and session.size == 3  # a, whether it is missing, 1
    saved = checkpoint.read("s")
    assert saved.belief == session.belief


def test_a_shuffled_set_is_said_to_have_no_changes(credo: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise CredoError("enough.")

    monkeypatch.setattr("credo.cli.learning.stream", stop)
    outcome = credo("learn", "wine", "--model", "linear", "--drift", "run-length")
    assert "shuffled by the seed, so that there are no changes to find" in outcome.err
    outcome = credo("learn", "wine", "--model", "linear", "--drift", "run-length", "--no-shuffle")
    assert "changes to find" not in outcome.err


def test_wrappers_that_do_not_fit_are_refused(credo: Command) -> None:
    outcome = credo("learn", "wine", "--drift", "soft-reset", "--method", "adam")
    assert (
        outcome.status == 2 and "--drift soft-reset does not fit --method adam, which keeps no" in outcome.err
    )
