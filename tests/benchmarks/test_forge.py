"""A sample of `benchmarks/forge.py`: forged files are refused in a sentence, or do no harm."""

from __future__ import annotations

import importlib
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credo.core.errors import DataError

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def forge() -> Any:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("forge")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forge")


SAMPLE = {
    "session": 8,
    "scikit-learn": 8,
    "River": 8,
    "bandit": 8,
    "optimiser": 8,
    "operator": 8,
    "belief": 8,
}
"""How many cases of the first form of each format are run; of tables there are 18, of every form three."""


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("format", [*SAMPLE, "table"])
def test_a_forged_file_is_refused_in_a_sentence_or_does_no_harm(
    forge: Any, folder: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgeries = importlib.import_module("forgeries")
    monkeypatch.setattr(forgeries, "BOMB", 40_000_000)
    every = 1 if format == "table" else len(forge.forms()[format])
    numbers = [every * number for number in range(SAMPLE.get(format, 18))]
    outcomes = [forge.run_case(format, number, 7, folder) for number in numbers]
    bad = [one for one in outcomes if one.word not in forge.ALLOWED]
    assert not bad, bad
    words = Counter(one.word for one in outcomes)
    assert words["refused"] > len(outcomes) // 3


def test_what_must_not_happen_is_seen(forge: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def form(load: Any, use: Any = lambda numbers: numbers) -> Any:
        return forge.Form("x", ".x", "", lambda path: path, load, use)

    def fail(error: Exception) -> Any:
        def load(path: Path) -> Any:
            raise error

        return form(load)

    seen = [
        forge.attempt(one, tmp_path)[0]
        for one in (
            form(lambda path: [np.ones(2)]),
            form(lambda path: [np.ones(2), np.array([1.0, np.nan])]),
            form(lambda path: [np.array(np.inf)]),
            fail(DataError("x must be y.")),
            fail(DataError("no sentence")),
            fail(KeyError("x")),
            fail(MemoryError()),
        )
    ]
    assert seen == ["harmless", "NaN", "NaN", "refused", "internal", "internal", "memory"]
    results = [("belief", number, forge.Outcome(word, "x", "y")) for number, word in enumerate(seen)]
    assert forge.show(results) == 1 and forge.show(results[:1] + results[3:4]) == 0
    assert "| belief | 7 | 1 | 1 | 2 | 2 | 0 | 1 |" in capsys.readouterr().out


def test_a_damaged_file_differs_and_a_forged_one_is_signed_again(forge: Any, folder: Path) -> None:
    forgeries = importlib.import_module("forgeries")
    form = forge.forms()["belief"][0]
    good, target = folder / f"belief-{form.name}{form.suffix}", folder / "forged.credo"
    if not good.exists():
        form.save(good)
    for seed in range(20):
        content, _ = forgeries.damage(good.read_bytes(), random.Random(seed))
        assert content != good.read_bytes() or content[-64:] == bytes(64)
    for seed in range(5):
        forgeries._arrays(good, form.mark, random.Random(seed), target)
        assert "does not match its checksum" not in forge.attempt(form, target)[1]
