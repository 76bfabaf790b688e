"""The one file of results, `results.json`, of which README, RESULTS.md and the pages of the default are made.

It has grids of scores (`scores`, one row for each stream and method, and `streams`, their sizes) and the
sections of RESULTS.md, each with its command, its day, and its machine and versions. A grid is written with
one row a line, so that a change of one result is a change of one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

__all__ = ["FILE", "Cell", "Grid", "Section", "load", "load_sections", "save", "save_sections"]

FILE = Path(__file__).parent / "results.json"
"""The file of this repository."""

Cell: TypeAlias = str | int | float | None


class Grid(NamedTuple):
    """A table.

    Attributes:
        columns: the titles.
        formats: for each column "" (words), ">" (words on the right) or the format of its numbers.
        rows: the cells of each row; None is an empty cell.
    """

    columns: Sequence[str]
    formats: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def column(self, title: str) -> list[Cell]:
        """The cells of a column."""
        place = list(self.columns).index(title)
        return [row[place] for row in self.rows]


class Section(NamedTuple):
    """A section of RESULTS.md.

    Attributes:
        title: its heading.
        command: what measures it.
        date: the day on which its numbers were recorded, YYYY-MM-DD.
        conditions: the machine, the versions, and what else the machine did.
        body: paragraphs and tables in their order.
    """

    title: str
    command: str
    date: str
    conditions: str
    body: Sequence[str | Grid]

    @property
    def grid(self) -> Grid:
        """Its first table."""
        return next(part for part in self.body if isinstance(part, Grid))


def load(path: Path = FILE) -> dict[str, Any]:
    """Everything in a file; nothing if there is no file."""
    if path.exists():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    return {}


def save(data: Mapping[str, Any], path: Path = FILE) -> None:
    """Write everything."""
    path.write_text(_text(data, "") + "\n", encoding="utf-8")


def load_sections(path: Path = FILE) -> dict[str, Section]:
    """The sections by their titles."""
    sections = [
        Section(**one | {"body": [part if isinstance(part, str) else Grid(**part) for part in one["body"]]})
        for one in load(path).get("sections", [])
    ]
    return {one.title: one for one in sections}


def save_sections(sections: Iterable[Section], path: Path = FILE) -> None:
    """Write sections; those that are not named stay, and new ones come behind them."""
    known = load_sections(path) | {one.title: one for one in sections}
    parts = [
        one._asdict() | {"body": [part._asdict() if isinstance(part, Grid) else part for part in one.body]}
        for one in known.values()
    ]
    save(load(path) | {"sections": parts}, path)


def _text(value: Any, indent: str) -> str:
    """JSON with one key, or one row of a grid, a line."""
    inner = f"{indent} "
    if isinstance(value, Mapping):
        lines = [f"{inner}{json.dumps(key)}: {_text(one, inner)}" for key, one in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list | tuple) and any(isinstance(one, list | tuple | Mapping) for one in value):
        return "[\n" + ",\n".join(f"{inner}{_text(one, inner)}" for one in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)
