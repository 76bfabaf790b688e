"""The compiled programs that are kept, as a table."""

from __future__ import annotations

import time
from itertools import groupby
from operator import attrgetter

from rich.table import Table

from credo.cli.progress import Screen
from credo.core import program_folder
from credo.core.caches import LARGEST

__all__ = ["cleared", "show"]

MEGABYTE = 2**20
OFF = "No compiled programs are kept: that is switched off, or the folder for caches cannot be written."


def show() -> int:
    """Print what is kept, and where."""
    console = Screen()
    folder = program_folder.folder()
    if folder is None:
        console.print(OFF)
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("program", no_wrap=True)
    for column in ("how many", "MiB", "last used"):
        table.add_column(column, justify="right")
    programs = program_folder.listing()
    for name, group in groupby(programs, attrgetter("name")):
        alike = list(group)
        age = _age(time.time() - max(one.used for one in alike))
        table.add_row(name, str(len(alike)), _size(sum(one.size for one in alike)), age)
    if programs:
        console.print(table)
    total = sum(one.size for one in programs)
    most = LARGEST // MEGABYTE
    console.print(
        f"{len(programs)} programs, {_size(total)} MiB of at most {most}, in\n{folder}", soft_wrap=True
    )
    return 0


def cleared() -> int:
    """Remove what is kept, and say how much that was."""
    console = Screen()
    folder = program_folder.folder()
    console.print(
        OFF if folder is None else f"{program_folder.clear()} files were removed from\n{folder}",
        soft_wrap=True,
    )
    return 0


def _size(count: int) -> str:
    return f"{count / MEGABYTE:.1f}"


def _age(seconds: float) -> str:
    """A time ago, in its largest unit."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "now"
