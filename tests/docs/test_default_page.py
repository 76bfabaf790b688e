"""The pages of the default say what the file of results says."""

from __future__ import annotations

import importlib
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
    for path, text in module("default_page").pages().items():
        assert path.read_text(encoding="utf-8") == text, f"run benchmarks/default_page.py; {path.name} is old"


def test_every_region_is_on_a_page() -> None:
    page = module("default_page")
    text = "".join(path.read_text(encoding="utf-8") for path in page.PAGES)
    assert all(text.count(f"<!-- generated: {name} -->") == 1 for name in page.REGIONS)
    assert text.count("<!-- generated: ") == len(page.REGIONS)


def test_the_page_in_front_is_short() -> None:
    lines = module("default_page").PAGES[0].read_text(encoding="utf-8").splitlines()
    prose = [line for line in lines if not line.startswith(("|", "<!--"))]
    assert len(" ".join(prose).split()) <= 1600


def test_the_results_are_one_line_each_in_order_and_small(tmp_path: Path) -> None:
    results = module("default_results")
    again = tmp_path / "again.csv"
    results.write(again, results.read())
    assert again.read_text() == results.RESULTS.read_text()
    keys = [(one.stream, one.method) for one in results.read()]
    assert len(keys) == len(set(keys)) > 800
    assert results.RESULTS.stat().st_size < 300_000
    assert {one.stream.partition("~")[0] for one in results.read()} == set(results.read_shapes())
