"""The results, and the sizes of the streams, as the pages take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from default_groups import GROUPS, group_of
from default_results import Result, Shape, read, read_shapes
from default_standing import Table
from result_file import FILE, Section, load_sections

__all__ = ["Evidence", "evidence"]


class Evidence:
    """The results, the sizes of the streams, and the sections of RESULTS.md."""

    def __init__(
        self,
        results: Sequence[Result],
        shapes: Mapping[str, Shape],
        sections: Mapping[str, Section] | None = None,
    ) -> None:
        self.results = results
        self.shapes = shapes
        self.sections = sections or {}

    def table(self, *groups: str) -> Table:
        """The scores of the streams of some groups, in their order."""
        names = [name for group in groups for name in GROUPS[group]]
        table: Table = {name: {} for name in names}
        for one in self.results:
            if one.stream in table:
                table[one.stream][one.method] = one.entry["scores"]
        return {name: row for name, row in table.items() if row}

    def of(self, group: str) -> list[Result]:
        """The results of a group."""
        return [one for one in self.results if group_of(one.stream) == group]


def evidence(path: Path = FILE) -> Evidence:
    """What a file of results says."""
    return Evidence(read(path), read_shapes(path), load_sections(path))
