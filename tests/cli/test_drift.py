"""`credo learn --drift` with changes: run lengths, mixtures of experts and soft resets."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from tests.cli.conftest import write

from credo.cli.changes import BINS, COLUMNS, KEPT, ChangeTally, Steps, joined
from credo.cli.options import parse_drift, spell_drift
from credo.cli.session import Session
from credo.cli.wrapping import require_memory
from credo.core.errors import CredoError
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
def test_run_lengths_report_a_planted_change_and_go_on_bitwise_when_resumed(credo, tmp_path, monkeypatch):
    lines = jump(tmp_path / "all.csv", 120, 70)
    (tmp_path / "a.csv").write_text("".join(lines[:52]))
    (tmp_path / "b.csv").write_text("".join([lines[0], *lines[52:]]))
    drift = ("--drift", "run-length:0.01")
    made = credo("learn", "all.csv", *LINEAR, *drift, "--save", "all")
    assert made.status == 0, made.err
    assert "1 change was reported, at row 7" in made.out and "Judged at the row itself" in made.out
    data = json.loads((tmp_path / "runs/all/metrics.json").read_text())
    assert data["settings"]["drift"] == "run-length:0.01,5"
    (row,), (began,) = data["changes"]["rows"], data["changes"]["began"]
    assert 71 <= began <= row <= 75
    assert 0 < data["changes"]["largest_probability"] <= 1
    assert abs(data["changes"]["run_length"] - (120 - began)) < 3
    assert "1 change was reported" in (tmp_path / "runs/all/report.html").read_text()
    assert (tmp_path / "runs/all/plots/drift.png").read_bytes()[:4] == b"\x89PNG"
    with (tmp_path / "runs/all/drift.csv").open() as file:
        told = list(csv.DictReader(file))
    assert len(told) == 120 and told[0]["line"] == "2"
    assert [int(one["row"]) for one in told if one["alarm"] == "1"] == [row]
    assert all(0 <= float(one["change"]) <= 1 for one in told) and float(told[-1]["run_length"]) > 40

    monkeypatch.setattr("credo.cli.plots.available", lambda: False)
    assert credo("learn", "a.csv", *LINEAR, *drift, "--save", "a").status == 0
    assert credo("learn", "b.csv", "-q", "--resume", "a", "--save", "b").status == 0
    whole, parts = Session.load(Path("all")), Session.load(Path("b"))
    assert whole.belief == parts.belief and whole.learner == parts.learner
    assert whole.changes is not None and parts.changes is not None
    for name, array in whole.changes.arrays().items():
        np.testing.assert_allclose(array, parts.changes.arrays()[name], rtol=1e-12, err_msg=name)
    with (tmp_path / "runs/b/drift.csv").open() as file:
        assert next(csv.DictReader(file))["row"] == "52"
    made = credo("predict", "b", "a.csv")
    assert made.status == 0 and len(made.out.splitlines()) == 52
    # a program that has not imported the wrappers can load one
    program = "import credo; print(type(credo.load('b')[0]).__name__)"
    asked = [sys.executable, "-c", program]
    loaded = subprocess.run(asked, capture_output=True, text=True, env=os.environ | {"JAX_ENABLE_X64": "1"})
    assert loaded.stdout.strip() == "RunLength", loaded.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--drift mixture --posterior diagonal", "Weights of the experts at the end: "),
        ("--drift soft-reset --posterior low-rank:2", "full reset"),
        ("--drift run-length:0.01,3 --method sgd", "Judged at the row itself"),
    ],
)
def test_other_wrappers_and_methods_learn_classes_and_are_saved(credo, tmp_path, options, says):
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    rows = [[f"{a:.4f}", "up" if a * (1 if i < 25 else -1) > 0 else "down"] for i, a in enumerate(x)]
    path = write(tmp_path / "t.csv", ["a", "y"], rows)
    made = credo("learn", path, *LINEAR, *options.split(), "--save", "s")
    assert made.status == 0, made.err
    assert says in made.out
    assert (tmp_path / "runs/t/plots/drift.png").stat().st_size > 5000
    with (tmp_path / "runs/t/drift.csv").open() as file:
        assert len(list(csv.reader(file))) == 41
    session = Session.load(Path("s"))
    assert session.refused == 0 and session.size() == 3  # a, whether it is missing, 1
    saved = checkpoint.read("s")
    assert saved.belief == session.belief


def test_a_shuffled_set_is_said_to_have_no_changes(credo, monkeypatch):
    def stop(*_: object) -> None:
        raise CredoError("enough.")

    monkeypatch.setattr("credo.cli.learning._stream", stop)
    made = credo("learn", "wine", "--model", "linear", "--drift", "run-length")
    assert "shuffled by the seed, so that there are no changes to find" in made.err
    made = credo("learn", "wine", "--model", "linear", "--drift", "run-length", "--no-shuffle")
    assert "changes to find" not in made.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "run-length:2",
            "--drift run-length needs in [0, 1] for HAZARD, the chance of a change before a row; got 2.",
        ),
        (
            "run-length:.1,2.5",
            "needs a whole number at least 1 for CAPACITY, how many run lengths are kept; got 2.5.",
        ),
        ("run-length:.1,0", "needs a whole number at least 1 for CAPACITY"),
        ("run-length:.1,nan", "needs a whole number at least 1 for CAPACITY"),
        ("run-length:.1,2,3", "--drift run-length takes at most 2 numbers"),
        ("mixture:-1", "--drift mixture needs in [0, 1] for SWITCHING"),
        ("soft-reset:x", "with numbers after the colon; got 'soft-reset:x'"),
        ("soft-rest", "did you mean 'soft-reset'?"),
    ],
)
def test_numbers_out_of_range_are_named(text, says):
    with pytest.raises(CredoError) as caught:
        parse_drift(text)
    assert says in str(caught.value)


def test_numbers_that_are_left_out_are_filled_in():
    assert spell_drift("run-length:0.1") == "run-length:0.1,5" and spell_drift("mixture") == "mixture:0.01"
    assert spell_drift("walk") == "walk"


def test_wrappers_that_do_not_fit_are_refused(credo):
    made = credo("learn", "wine", "--drift", "soft-reset", "--method", "adam")
    assert made.status == 2 and "--drift soft-reset does not fit --method adam, which keeps no" in made.err
    with pytest.raises(
        CredoError, match=r"would keep 6 covariances of 9000 x 9000 with --drift run-length, 1[.]8"
    ):
        require_memory("full", 9000, "run-length")
    with pytest.raises(CredoError, match=r"would keep a 30000 x 30000 covariance, 3[.]4 GiB"):
        require_memory("full", 30_000, "none")
    with pytest.raises(CredoError, match="use a smaller CAPACITY"):
        require_memory("low-rank:10", 10_000, "run-length:0.01,9999")
    require_memory("full", 8000, "run-length")


def _steps(start: int, count: int) -> Steps:
    """A world that changes every 1,000 rows, seen with one hypothesis that is right and one of 0.25."""
    rows = np.arange(start, start + count)
    length = rows % 1000
    alarm = (length == 3) & (rows > 1000)
    probs = np.tile([0.75, 0.25, 0.0], (count, 1))
    lengths = np.stack([length, rows, np.full(count, 10**9)], axis=1)
    return Steps(probs, lengths, 0.5 * (length == 3), alarm, np.where(alarm, 3, 0))


def test_a_tally_of_changes_keeps_all_probability_in_bounded_memory_however_it_is_fed():
    whole, parts = ChangeTally("run-length"), ChangeTally("run-length")
    total = 12_345
    whole.add(_steps(0, total))
    for start in range(0, total, 97):
        parts.add(_steps(start, min(97, total - start)))
        parts = ChangeTally.from_arrays("run-length", parts.arrays())  # as when resumed
    for name, array in whole.arrays().items():
        np.testing.assert_allclose(array, parts.arrays()[name], rtol=1e-12, err_msg=name)
    assert whole.grid.shape[0] <= COLUMNS and whole.grid.shape[1] == BINS and len(whole.alarms) <= KEPT
    np.testing.assert_allclose(whole.grid.sum(axis=1), whole.counts)
    assert whole.counts.sum() == total
    summary = whole.summary()
    assert summary["reported"] == 12 and summary["rows"][:2] == [1004, 2004]
    assert summary["began"][:2] == [1001, 2001] and summary["largest_at"] == 4
    assert whole.sentences()[0] == (
        "12 changes were reported, at rows 1004, 2004, 3004, 4004, 5004 and 7 more, of segments that "
        "began at 1001, 2001, 3001, 4001, 5001 and 7 more."
    )


def test_steps_of_chunks_are_joined():
    made = joined([_steps(0, 3), _steps(3, 4)])
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(np.all(a == b)), made, _steps(0, 7)))
