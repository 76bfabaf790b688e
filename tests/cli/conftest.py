"""Small tables, and a way to run the command line in process."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pytest

from credo.cli import main


class Outcome(NamedTuple):
    """What a command did: its exit status and what it printed."""

    status: int
    out: str
    err: str


Command: TypeAlias = Callable[..., Outcome]
"""Runs a command; its words are arguments."""


@pytest.fixture
def credo(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        status = main([str(word) for word in words])
        printed = capsys.readouterr()
        return Outcome(status, printed.out, printed.err)

    return run


def write(path: Path, header: list[str], rows: Sequence[Sequence[object]]) -> Path:
    """Write a CSV file."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def numbers(path: Path, count: int, seed: int = 0, start: int = 0) -> Path:
    """A regression: y = 3 a - 2 b + noise, rows start..start+count of one endless table."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(start + count, 3))[start:]
    y = 50 + 10 * (3 * table[:, 0] - 2 * table[:, 1] + 0.3 * table[:, 2])
    return write(
        path,
        ["a", "b", "y"],
        [[f"{a:.6f}", f"{b:.6f}", f"{v:.6f}"] for (a, b, _), v in zip(table, y, strict=True)],
    )


def labels(path: Path, count: int, seed: int = 0) -> Path:
    """A messy classification: numbers, text, gaps, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    rows: list[list[object]] = []
    for i in range(count):
        a, city = rng.normal(), rng.choice(["Oslo", "Rome", "Lima"])
        kind = "high" if a + (city == "Rome") + 0.3 * rng.normal() > 0.3 else "low"
        shown = "" if i % 11 == 5 else f"{a:.5f}"
        rows.append([shown, "NA" if i % 17 == 3 else city, "yes" if rng.random() < 0.5 else "no", kind])
    return write(path, ["a", "city", "member", "level"], rows)
