"""A report is said once, and shown in the terminal, as JSON and as a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from credo.cli.report import Line, Picture, Report, Section, Table, page, show, write

SCORES = Table(("score", "mean"), [Line("reward", ("3.5",), "sum of the rewards"), Line("regret", ("1",))])
FOLDED = Table(("member", "weight"), [Line("<linear>", ("90%",))])
AHEAD = Table(("step", "time"), [Line("1", ("noon",))])
REPORT = Report(
    title="a log",
    headline="3 rows",
    subject="A play",
    sections=[
        Section("Scores", ["Of unseen rows."], SCORES, main=True),
        Section("Members", ["Two of them."], FOLDED),
        Section("Forecast", [], AHEAD, main=True),
        Section("Rows", ["one was bad"]),
        Section("Nothing", []),
    ],
    verdict="It went well.",
    remarks=["It may rain."],
    notes=["a note"],
    settings={"learning_rate": 0.1, "delay": None},
    command="credo play",
    data={"total": 3.5, "versions": {"credo": "1"}},
    draw=lambda: {"curve": Picture(b"<svg/>", "The curve.")},
)


def test_a_terminal_shows_main_tables_and_meanings_where_there_is_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    show(REPORT)
    wide = capsys.readouterr().out
    order = ("a log: 3 rows", "score", "reward", "It went well.", "It may rain.", "Forecast:", "noon")
    places = [wide.index(words) for words in order]
    assert places == sorted(places) and "sum of the rewards" in wide
    assert not any(words in wide for words in ("Of unseen rows.", "linear", "one was bad", "a note"))
    monkeypatch.setenv("COLUMNS", "12")
    show(REPORT)
    narrow = capsys.readouterr().out
    assert narrow.startswith("a log:\n3 rows\n") and "meaning" not in narrow


def test_a_page_opens_main_tables_folds_the_others_and_lists_the_rest() -> None:
    text = page(REPORT, REPORT.draw())
    assert text.index('<p class="verdict">It went well.') < text.index("<img") < text.index("<table")
    assert '<p class="soft">A play: 3 rows.</p>' in text and "<p>It may rain.</p>" in text
    assert "<details open><summary><h2>Scores</h2>" in text and "<details><summary><h2>Members</h2>" in text
    assert "<code>&lt;linear&gt;</code>" in text and text.count("<th>meaning</th>") == 1
    assert "<h2>Rows</h2><ul><li>one was bad</li></ul>" in text and "Nothing" not in text
    assert "<h2>Notes</h2><ul><li>a note</li></ul>" in text
    assert "<td>learning rate</td>" in text and "delay" not in text and "credo play with credo 1" in text


def test_a_report_that_was_cut_short_is_its_json_alone(tmp_path: Path) -> None:
    write(REPORT, tmp_path, whole=False)
    assert json.loads((tmp_path / "report.json").read_text()) == REPORT.data
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    write(REPORT, tmp_path)
    assert (tmp_path / "plots/curve.svg").read_bytes() == b"<svg/>"
    assert "data:image/svg+xml;base64," in (tmp_path / "report.html").read_text()
