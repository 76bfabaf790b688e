"""The results of `defaults.py`: one line for each stream and method in the scores of `results.json`.

README and the pages of the default say what this file says; its `streams` are the sizes of the streams.
Numbers have four significant digits; a cell is null if there is no such score.
"""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from default_groups import GROUPS, group_of
from result_file import FILE, load, save

import credo

__all__ = [
    "Result",
    "Shape",
    "collected",
    "day_of",
    "merged",
    "missing_shapes",
    "read",
    "read_shapes",
    "version_of",
    "write",
    "write_shapes",
]

WORDS = ("stream", "method", "date", "version")
SCORES = (
    "rows",
    "log_loss",
    "error",
    "ece",
    "ece_settled",
    "rmse",
    "coverage",
    "coverage_settled",
    "crps",
    "worst",
    "seconds",
    "rows_per_second",
)
WHOLE = ("rows", "rows_per_second")
PACKAGES = {
    "credo": "credo",
    "River": "river",
    "VW": "vowpalwabbit",
    "sklearn": "scikit-learn",
    "MLP": "scikit-learn",
    "forest": "scikit-learn",
    "LightGBM": "lightgbm",
    "CapyMOA": "capymoa",
}
"""The package of a method by the first word of its name."""


class Result(NamedTuple):
    """What a method reached on a stream.

    Attributes:
        stream, method: their names.
        date: the day of the run, YYYY-MM-DD.
        version: the package and its version, empty where they are not known.
        scores: numbers by name; what is absent is not known, or there is no such score.
    """

    stream: str
    method: str
    date: str
    version: str
    scores: dict[str, float]

    @property
    def task(self) -> str:
        """What is predicted."""
        if "rmse" in self.scores:
            return "regression"
        return "classification"

    @property
    def entry(self) -> dict[str, Any]:
        """The result as the tables take it, with None for each score that is absent."""
        scores = dict.fromkeys(SCORES) | self.scores
        return {"stream": self.stream, "peer": self.method, "task": self.task, "scores": scores}


class Shape(NamedTuple):
    """The size of a stream: its task, its rows and columns, and its classes, 0 for a regression."""

    task: str
    rows: int
    columns: int
    classes: int


def version_of(method: str) -> str:
    """The package of a method and its version, if it is installed; credo's with the checkout's commit."""
    package = PACKAGES.get(method.split()[0].strip(","), "")
    if package == "credo":
        return f"credo {credo.__version__}{_commit()}"
    try:
        if package:
            return f"{package} {metadata.version(package)}"
        return ""
    except metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    """The commit of this checkout, as a version has it; nothing where there is none."""
    command = ["git", "-C", str(FILE.parent), "rev-parse", "--short", "HEAD"]
    try:
        return f"+{subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()}"
    except (OSError, subprocess.CalledProcessError):
        return ""


def collected(folder: Path, ours: str) -> list[Result]:
    """The results in a folder of `defaults.py`, without the variations of ours.

    A file that does not say its day is of the day on which it was written.
    """
    results = []
    for path in sorted(folder.glob("*.json")):
        saved = json.loads(path.read_text())
        if saved["peer"].startswith(f"{ours}, "):
            continue
        date = saved.get("date") or day_of(path)
        scores = {name: _short(name, saved["scores"].get(name)) for name in SCORES}
        known = {name: number for name, number in scores.items() if number is not None}
        results.append(Result(saved["stream"], saved["peer"], date, saved.get("version", ""), known))
    return results


def day_of(path: Path) -> str:
    """The day on which a file was written."""
    return datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).date().isoformat()


def _short(name: str, number: float | None) -> float | None:
    if number is None:
        return None
    if name in WHOLE:
        return round(number)
    return float(f"{number:.4g}")


def merged(before: Iterable[Result], new: Iterable[Result]) -> list[Result]:
    """All results; of two for the same stream and method the later, the new one if they are of one day."""
    results = {(one.stream, one.method): one for one in before}
    for one in new:
        known = results.get((one.stream, one.method))
        if known is None or known.date <= one.date:
            results[one.stream, one.method] = one
    return list(results.values())


def write(results: Iterable[Result], path: Path = FILE) -> None:
    """Write results in the order of the groups, of their streams, and of the methods' names."""
    order = _places()
    rows = [
        [one.stream, one.method, one.date, one.version, *(one.scores.get(name) for name in SCORES)]
        for one in sorted(results, key=lambda one: (order[one.stream], one.method))
    ]
    save(load(path) | {"scores": {"columns": [*WORDS, *SCORES], "rows": rows}}, path)


def read(path: Path = FILE) -> list[Result]:
    """The results of a file, in its order; none if there is no file."""
    found = []
    for row in _rows(path, "scores"):
        scores = {name: row[name] for name in SCORES if row[name] is not None}
        found.append(Result(row["stream"], row["method"], row["date"], row["version"], scores))
    return found


def read_shapes(path: Path = FILE) -> dict[str, Shape]:
    """The sizes of streams by name; none if there is no file."""
    return {row["stream"]: Shape(*(row[name] for name in Shape._fields)) for row in _rows(path, "streams")}


def write_shapes(shapes: Mapping[str, Shape], path: Path = FILE) -> None:
    """Write the sizes of streams, in the order of the groups."""
    order = _places()
    rows = [[name, *shapes[name]] for name in sorted(shapes, key=order.__getitem__)]
    save(load(path) | {"streams": {"columns": ["stream", *Shape._fields], "rows": rows}}, path)


def missing_shapes(
    known: Mapping[str, Shape], names: Iterable[str], loader: Callable[[str], Any]
) -> dict[str, Shape]:
    """The sizes of the streams that are not known yet, by loading them."""
    shapes = {}
    for name in names:
        if name not in known:
            rows = loader(name)
            shapes[name] = Shape(rows.task, len(rows.target), len(rows.columns), len(rows.classes))
    return shapes


def _places() -> dict[str, tuple[int, int]]:
    groups = list(GROUPS)
    return {
        name: (groups.index(group_of(name)), place)
        for names in GROUPS.values()
        for place, name in enumerate(names)
    }


def _rows(path: Path, part: str) -> list[dict[str, Any]]:
    grid = load(path).get(part, {"columns": [], "rows": []})
    return [dict(zip(grid["columns"], row, strict=True)) for row in grid["rows"]]
