"""README, RESULTS.md and the pages of the default say what the one file of results says."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def module(name: str) -> Any:
    return importlib.import_module(name)


def test_the_tables_of_the_pages_are_those_of_the_results() -> None:
    for path, text in module("result_pages").pages().items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name} is not what results.json says: change the file, not the page, "
            "and run `python benchmarks/run.py --pages`"
        )


def test_a_result_that_changes_changes_every_page(tmp_path: Path) -> None:
    """Of credo on electricity the log loss, which README, RESULTS.md and the tables show."""
    results, pages = module("default_results"), module("result_pages")
    file = tmp_path / "results.json"
    shutil.copy(module("result_file").FILE, file)
    changed = [
        one._replace(scores=one.scores | {"log_loss": 0.9876})
        if (one.stream, one.method) == ("electricity", "credo")
        else one
        for one in results.read(file)
    ]
    results.write(changed, file)
    said = {path.name: path.read_text(encoding="utf-8") for path in pages.PAGES}
    new = {path.name: text for path, text in pages.pages(file).items()}
    assert [name for name in new if new[name] != said[name]] == list(new)
    assert "| electricity | 0.988 |" in new["RESULTS.md"]
    assert "**0.30** / " in new["README.md"]  # another library is ahead now, and its number is the bold one


def test_every_region_is_on_a_page() -> None:
    pages = module("result_pages")
    text = "".join(path.read_text(encoding="utf-8") for path in pages.PAGES)
    assert all(text.count(f"<!-- generated: {name} -->") == 1 for name in pages.REGIONS)
    assert text.count("<!-- generated: ") == len(pages.REGIONS)


def test_the_page_in_front_is_short() -> None:
    lines = (ROOT / "docs/explanation/defaults.md").read_text(encoding="utf-8").splitlines()
    prose = [line for line in lines if not line.startswith(("|", "<!--"))]
    assert len(" ".join(prose).split()) <= 1600


def test_the_results_are_one_line_each_in_order_and_small(tmp_path: Path) -> None:
    """Written again, part by part, the file is the same."""
    results, files = module("default_results"), module("result_file")
    again = tmp_path / "again.json"
    results.write_shapes(results.read_shapes(), again)
    results.write(results.read(), again)
    files.save_sections(files.load_sections().values(), again)
    assert again.read_text(encoding="utf-8") == files.FILE.read_text(encoding="utf-8")
    assert again.stat().st_size < 300_000
    keys = [(one.stream, one.method) for one in results.read()]
    assert len(keys) == len(set(keys)) > 800
    assert {one.stream.partition("~")[0] for one in results.read()} == set(results.read_shapes())


def test_every_section_says_its_command_its_day_and_its_machine() -> None:
    sections = module("result_file").load_sections().values()
    assert len(sections) > 20
    for one in sections:
        assert one.command.startswith("`") and one.date[:3] == "202" and len(one.conditions) > 20, one.title


def test_a_section_that_was_printed_is_kept_with_its_numbers_as_numbers(tmp_path: Path) -> None:
    words = module("result_markdown")
    text = "## some, D = 3\n\nA sentence.\n\n| what | rows/s | x |\n|---|--:|---|\n"
    text += "| a \\| b | 1,234.5 | |\n| c | 7.0 | 2x |\n"
    (one,) = words.sections_of(text, "`run`", "2026-11-02", "a machine of two cores")
    assert one.body[0] == "A sentence."
    assert one.grid.rows == [["a \\| b", 1234.5, None], ["c", 7.0, "2x"]]
    assert "| a \\| b | 1,234.5 |  |\n| c | 7.0 | 2x |" in words.said(one)
    assert "`run`, 2 November 2026: a machine" in words.said(one)
    files, file = module("result_file"), tmp_path / "results.json"
    files.save_sections([one, one._replace(title="other")], file)
    files.save_sections([one._replace(date="2026-11-03")], file)
    assert [(kept.title, kept.date) for kept in files.load_sections(file).values()] == [
        ("some, D = 3", "2026-11-03"),
        ("other", "2026-11-02"),
    ]
    assert json.loads(file.read_text())["sections"][0]["body"][1]["rows"][1][1] == 7.0


def test_of_a_library_the_best_method_counts_for_each_score() -> None:
    best = module("result_beside").best
    row = {
        "River AMF": {"log_loss": 0.3, "error": 0.2},
        "River ARF": {"log_loss": 0.4, "error": 0.1},
        "LightGBM, refitted": {"log_loss": 0.1, "error": 0.05},
    }
    assert best(row, "River", "log_loss") == (0.3, "River AMF")
    assert best(row, "River", "error") == (0.1, "River ARF")
    assert best(row, "Vowpal Wabbit", "error") is None
