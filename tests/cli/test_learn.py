"""`credo learn`: tables, scores, reports, saving and resuming."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command, labels, numbers, write

from credo.sessions import Progress, Session
from credo.sessions.places import HEAD, Prefix

LINEAR = ("--model", "linear")


def test_a_regression_beats_the_running_mean_and_writes_its_folder(credo: Command, tmp_path: Path) -> None:
    outcome = credo("learn", numbers(tmp_path / "t.csv", 250), "--target", "y", *LINEAR)
    assert outcome.status == 0, outcome.err
    assert "regression" in outcome.err and "beats the running mean" in outcome.out
    folder = tmp_path / "runs" / "t"
    data = json.loads((folder / "metrics.json").read_text())
    assert data["metrics"]["rmse"] < 0.4 * data["baseline"]["rmse"]
    assert data["metrics"]["nlpd"] < data["baseline"]["nlpd"] - 0.8
    assert 0.8 < data["metrics"]["coverage_90"] <= 1.0
    assert data["rows"] == {
        "read": 250,
        "learned": 250,
        "scored": 240,
        "skipped": 0,
        "refused": 0,
        "restarts": [],
        "missing_cells": {},
        "unseen_categories": {},
        "bad": [],
    }
    assert {
        "format",
        "source",
        "task",
        "target",
        "settings",
        "notes",
        "verdict",
        "seconds",
        "versions",
    } <= set(data)
    plots = {path.name for path in (folder / "plots").iterdir()}
    assert plots == {"rmse.svg", "nlpd.svg", "reliability.svg", "bands.svg", "parameters.svg"}
    assert not [path for path in (tmp_path / "runs").iterdir() if path.name != "t"]


class Page(HTMLParser):
    """Collects what a page refers to, and checks that its tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.refers: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.refers += [str(value) for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_messy_classification_and_its_self_contained_report(credo: Command, tmp_path: Path) -> None:
    outcome = credo("learn", labels(tmp_path / "<b>.csv", 300), "--target", "level", *LINEAR, "--out", "o")
    assert outcome.status == 0, outcome.err
    assert "classification" in outcome.err and "beats the running majority" in outcome.out
    text = (tmp_path / "o" / "report.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == [] and page.refers
    assert all(value.startswith("data:image/svg+xml;base64,") for value in page.refers)
    assert not re.search(r"https?://|<script|@import|url\(", text)
    assert "<b>.csv" not in text and "prefers-color-scheme" in text and "viewport" in text
    assert "<summary><h2>Classes</h2>" in text and "this run" not in outcome.out
    assert text.index("<img") < text.index("<table")
    data = json.loads((tmp_path / "o" / "metrics.json").read_text())
    high = data["by_class"]["high"]
    assert high["auc"] > 0.7 and abs(high["auc"] - data["metrics"]["auc"]) < 0.01 and high["auc_error"] < 0.02
    assert data["classes"] == ["high", "low"] and data["rows"]["missing_cells"].keys() == {"a", "city"}
    assert data["metrics"]["error"] < data["baseline"]["error"]


@pytest.mark.slow
def test_several_classes_and_a_held_out_file(credo: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def table(name: str, count: int) -> Path:
        x = rng.normal(size=(count, 2))
        kind = np.array(["red", "green", "blue"])[(x[:, 0] > 0).astype(int) + (x[:, 1] > 0.5)]
        return write(tmp_path / name, ["u", "v", "kind"], [[*row, k] for row, k in zip(x, kind, strict=True)])

    outcome = credo(
        "learn", table("a.csv", 200), "--target", "kind", *LINEAR, "--test", table("b.csv", 50), "-q"
    )
    assert outcome.status == 0 and outcome.err == "" and "held out (50)" in outcome.out
    data = json.loads((tmp_path / "runs/a/metrics.json").read_text())
    assert data["test"]["rows"] == 50 and data["test"]["metrics"]["error"] < data["test"]["baseline"]["error"]


@pytest.mark.table
@pytest.mark.parametrize(
    "options",
    [
        ("--posterior", "diagonal", "--drift", "walk:1e-5"),
        ("--posterior", "low-rank:2", "--drift", "ou:0.999", "--curvature", "lin-ef"),
        ("--method", "sgd"),
        ("--method", "replay", "--learning-rate", "0.01", "--drift", "decay:0.999"),
    ],
)
def test_every_kind_of_learner_runs(credo: Command, tmp_path: Path, options: str) -> None:
    outcome = credo("learn", numbers(tmp_path / "t.csv", 60), "--target", "y", *LINEAR, *options)
    assert outcome.status == 0, outcome.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--iterations 2", "full posterior by bong, lin-hess, 2 iterations"),
        pytest.param(
            "--method blr",
            "full posterior by blr, lin-hess, 5 iterations, learning rate 0.5",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            "--method bog --learning-rate 0.02",
            "full posterior by bog, lin-hess, learning rate 0.02",
            marks=pytest.mark.thorough,
        ),
        (
            "--method bbb --posterior low-rank:2 --curvature mc-hess --iterations 2",
            "low-rank:2 posterior by bbb, mc-hess, 2 iterations, learning rate 0.001",
        ),
    ],
)
def test_every_rule_and_curvature_learns_and_says_what_it_is(
    credo: Command, tmp_path: Path, options: str, words: str
) -> None:
    path = labels(tmp_path / "t.csv", 60)
    outcome = credo("learn", path, "--target", "level", *LINEAR, *options.split(), "--save", "s", "-q")
    assert outcome.status == 0 and "running majority" in outcome.out, outcome.err
    session = Session.load(tmp_path / "s")
    assert session.settings.description == words and session.rows_refused == 0
    data = json.loads((tmp_path / "runs/t/metrics.json").read_text())
    assert "nlpd_plugin" in data["metrics"] and data["settings"]["iterations"] == session.settings.iterations


@pytest.mark.slow
def test_draws_go_on_where_they_were_when_resumed(credo: Command, tmp_path: Path) -> None:
    numbers(tmp_path / "all.csv", 60)
    lines = (tmp_path / "all.csv").read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text("".join(lines[:31]))
    (tmp_path / "b.csv").write_text("".join([lines[0], *lines[31:]]))
    model: tuple[object, ...] = (
        "--target",
        "y",
        *LINEAR,
        "--method",
        "blr",
        "--curvature",
        "mc-ef",
        "--iterations",
        2,
        "-q",
    )
    assert credo("learn", "all.csv", *model, "--save", "all").status == 0
    assert credo("learn", "a.csv", *model, "--save", "a").status == 0
    assert credo("learn", "b.csv", "--resume", "a", "--save", "b", "-q").status == 0
    assert Session.load(Path("all")).belief == Session.load(Path("b")).belief
    outcome = credo("learn", "b.csv", "--resume", "a", "--iterations", 3)
    assert (
        outcome.status == 2 and "was saved with --iterations 2, which cannot be changed to 3" in outcome.err
    )


def test_a_learner_that_diverges_is_said_to(credo: Command, tmp_path: Path) -> None:
    path = numbers(tmp_path / "t.csv", 60)
    outcome = credo(
        "learn", path, "--target", "y", *LINEAR, "--method", "sgd", "--learning-rate", 10, "-q", "--out", "o"
    )
    assert outcome.status == 0 and "The learner has diverged: its NLPD is " in outcome.out, outcome.out
    assert "try a --learning-rate below 10." in " ".join(outcome.out.split())
    assert max(len(line.rstrip()) for line in outcome.out.splitlines()) <= 80
    assert "has diverged" in (tmp_path / "o" / "report.html").read_text()


@pytest.mark.optimised
def test_resuming_is_bitwise_as_if_it_had_never_stopped(credo: Command, tmp_path: Path) -> None:
    lines = numbers(tmp_path / "all.csv", 210).read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text("".join(lines[:78]))
    (tmp_path / "b.csv").write_text("".join([lines[0], *lines[78:]]))
    model = ("--target", "y", "--model", "mlp:4", "-q")
    assert credo("learn", "all.csv", *model, "--save", "all.credo").status == 0
    assert credo("learn", "a.csv", *model, "--save", "a.credo", "--chunk", 17).status == 0
    outcome = credo("learn", "b.csv", "--resume", "a.credo", "--save", "b.credo", "--chunk", 40)
    assert "this run (133)" in outcome.out and "all rows (200)" in outcome.out
    scores = json.loads((tmp_path / "runs/b/metrics.json").read_text())
    assert scores["this_run"]["rows"] == 133 and scores["this_run"]["metrics"] != scores["metrics"]
    assert outcome.status == 0 and "continuing a.credo, which has learned from 77 rows" in outcome.err
    whole, parts = Session.load(Path("all.credo")), Session.load(Path("b.credo"))
    assert whole.belief == parts.belief and whole.learner == parts.learner
    assert whole.rows_used == parts.rows_used == 210
    for name, array in whole.tally.arrays().items():
        if name not in ("trace",):
            np.testing.assert_allclose(array, parts.tally.arrays()[name], rtol=1e-12, err_msg=name)
    stopped = Session.load(Path("a.credo"))
    rows = Prefix("all.csv")
    stopped.progress = Progress("all.csv", 78, True, head=rows.upto(HEAD), digest=rows.upto(78))
    stopped.save(Path("stopped.credo"))
    outcome = credo("learn", "all.csv", "--resume", "stopped.credo", "--save", "c.credo")
    assert outcome.status == 0 and "continuing after row 78 of all.csv" in outcome.err
    assert Session.load(Path("c.credo")).belief == whole.belief


def test_resuming_a_stream_with_a_mean_in_unknown_noise_keeps_the_noise(
    credo: Command, tmp_path: Path
) -> None:
    numbers(tmp_path / "t.csv", 60)
    assert credo("learn", "t.csv", "--target", "y", *LINEAR, "-q", "--save", "s.credo").status == 0
    one = Session.load(Path("s.credo"))
    one.save(Path("again.credo"))
    assert Session.load(Path("again.credo")).belief == one.belief


def test_bad_rows_are_counted_and_skipped_unless_strict(credo: Command, tmp_path: Path) -> None:
    path = numbers(tmp_path / "t.csv", 80)
    lines = path.read_text().splitlines()
    lines[30], lines[40], lines[50] = "1,2", "1.0,text,3.0", "inf,nan,inf"
    path.write_text("\n".join(lines) + "\n")
    outcome = credo("learn", path, "--target", "y", *LINEAR)
    assert outcome.status == 0 and "3 bad rows skipped" in outcome.err
    assert "line 31" in outcome.err and "line 41" in outcome.err and "line 51" in outcome.err
    data = json.loads((tmp_path / "runs/t/metrics.json").read_text())
    assert data["rows"]["skipped"] == 3 and data["rows"]["learned"] == 77
    strict = credo("learn", path, "--target", "y", *LINEAR, "--strict", "--out", "s")
    assert strict.status == 2 and "line 31" in strict.err and not (tmp_path / "s").exists()
    late = numbers(tmp_path / "late.csv", 1200)
    lines = late.read_text().splitlines()
    lines[1150] = "1,2"
    late.write_text("\n".join(lines) + "\n")
    strict = credo("learn", late, "--target", "y", *LINEAR, "--strict", "--out", "late")
    assert strict.status == 2 and "line 1151" in strict.err


def test_standard_input_and_json_lines(
    credo: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"a": i % 7, "b": None if i % 5 else "x", "y": 2.0 * (i % 7) + 0.1 * (i % 3)} for i in range(80)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    outcome = credo("learn", "-", "--target", "y", *LINEAR)
    assert outcome.status == 0, outcome.err
    assert (tmp_path / "runs/stdin/report.html").exists()


def test_an_earlier_run_is_kept_unless_its_folder_is_named(credo: Command, tmp_path: Path) -> None:
    table = (numbers(tmp_path / "t.csv", 40), "--target", "y", *LINEAR)
    assert credo("learn", *table).status == 0
    again = credo("learn", *table)
    assert again.status == 0 and "goes to runs/t-2" in again.err
    named = credo("learn", *table, "--out", "runs/t")
    assert named.status == 0 and "the earlier run in runs/t is replaced" in named.err
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["t", "t-2"]


@pytest.mark.slow
def test_named_sets_of_images_and_of_rows(credo: Command, tmp_path: Path) -> None:
    outcome = credo(
        "learn", "digits", "--limit", 60, "--test-rows", 20, "--model", "mlp:4", "--posterior", "low-rank:2"
    )
    assert outcome.status == 0, outcome.err
    assert (
        "60 of its 1,438 training rows, shuffled by the seed" in outcome.err
        and "held out (20)" in outcome.out
    )
    outcome = credo("learn", "wine", "--test-rows", -1, *LINEAR)
    assert (
        outcome.status == 0 and "beats the running majority" in outcome.out and "held out" not in outcome.out
    )


def test_the_importance_of_columns(credo: Command, tmp_path: Path) -> None:
    table, test = numbers(tmp_path / "t.csv", 120), numbers(tmp_path / "u.csv", 60, seed=1)
    columns = ("learn", table, "--target", "y", *LINEAR, "-q")
    outcome = credo(*columns, "--test", test, "--out", "o")
    assert outcome.status == 0 and "shuffled over the 60 held-out rows: a " in " ".join(outcome.out.split())
    found = json.loads((tmp_path / "o/metrics.json").read_text())["importance"]
    rises = [one["nlpd"] for one in found["columns"].values()]
    assert found["rows"] == 60 and rises == sorted(rises, reverse=True) and rises[0] > 0.5
    assert {"nlpd", "nlpd_se", "rmse"} == set(next(iter(found["columns"].values())))
    assert "Importance of the columns" in (tmp_path / "o/report.html").read_text()
    assert (tmp_path / "o/plots/importance.svg").is_file()
    assert credo(*columns, "--test", test, "--no-importance", "--out", "p").status == 0
    assert "importance" not in json.loads((tmp_path / "p/metrics.json").read_text())
    latest = credo(*columns, "--importance", "--out", "q")
    assert "over the 120 latest rows, after they were learned from: a " in " ".join(latest.out.split())
    few = numbers(tmp_path / "few.csv", 15)
    outcome = credo("learn", few, "--target", "y", *LINEAR, "--importance", "--out", "r")
    notes = json.loads((tmp_path / "r/metrics.json").read_text())["notes"]
    assert outcome.status == 0 and notes[-1].endswith("rows must be at least 20 that can be scored; got 15.")
    refused = credo("learn", "digits", "--limit", 20, *LINEAR, "--importance")
    assert refused.status == 2 and "--importance is for the columns of a table; got images." in refused.err
