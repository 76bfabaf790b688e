"""An experiment on a terminal: a bar while it runs, a table when it is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from credo_papers.engine.portions import Progress
from credo_papers.engine.quantities import Row

__all__ = ["bar", "matrix", "print_table"]

BLANK = "\N{EN DASH}"
"""The sign for a number that is not there."""

WIDEST = 6
"""The largest number of methods whose scores stand beside each other."""


@contextmanager
def bar(name: str, visible: bool) -> Iterator[Progress]:
    """Show a progress bar on standard error.

    Arguments:
        name: the name of the running experiment.
        visible: whether to show the bar; where standard error is no terminal, there is none in any case.

    Returns:
        A context manager that gives the function that moves the bar.
    """
    console = Console(stderr=True)
    heading = TextColumn(f"[bold]{escape(name)}")
    step = TextColumn("{task.description}")
    columns = (heading, BarColumn(24), step, TimeElapsedColumn())
    hidden = not (visible and console.is_terminal)
    with Bar(*columns, console=console, transient=True, disable=hidden) as display:
        task = display.add_task("starting", total=1.0)
        yield lambda share, text: display.update(task, completed=share, description=escape(text))


def print_table(
    name: str, title: str, caption: str, rows: Iterable[Row], messages: Iterable[str], console: Console | None
) -> None:
    """Print the table of a finished experiment: rows of a few methods as a matrix of scores by methods.

    Arguments:
        name, title: the name and title of the experiment.
        caption: one line below the title.
        rows: the table.
        messages: sentences below the table, one a line.
        console: a rich console; None means standard output.
    """
    console = console or Console()
    rows = tuple(rows)
    few = matrix(rows)
    if few is not None and Measurement.get(console, console.options, few).minimum > console.width:
        few = None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("quantity", ratio=3)
    table.add_column("ours (mean ± se)", justify="right", no_wrap=True)
    table.add_column("published", justify="right", no_wrap=True)
    table.add_column("note", ratio=4, style="dim")
    for row in rows:
        if few is None or not row.method:
            table.add_row(*(escape(text) for text in row.texts()))
    console.print(f"[bold]{escape(name)}[/]  {escape(title)}")
    console.print(f"[dim]{escape(caption)}[/]")
    console.print()
    for one in (few, table):
        if one is not None and one.row_count:
            console.print(one)
            console.print()
    for message in messages:
        console.print(message, soft_wrap=True, highlight=False, markup=False)


def matrix(rows: Sequence[Row]) -> Table | None:
    """The scores of methods, one method a column, or None if none or too many have a row.

    A cell has our number and, in brackets, the published one.

    Arguments:
        rows: the rows of all quantities; those with a method are taken.
    """
    methods = list(dict.fromkeys(row.method for row in rows if row.method))
    if not 0 < len(methods) <= WIDEST:
        return None
    cells = {(row.score, row.method): row.texts() for row in rows if row.method}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("ours (published)")
    for name in methods:
        table.add_column(escape(name).replace(", ", ",\n"), justify="right", no_wrap=True)
    for score in dict.fromkeys(score for score, _ in cells):
        texts = []
        for name in methods:
            _, ours, published, _ = cells.get((score, name), ("", BLANK, BLANK, ""))
            texts.append(ours if published == BLANK else f"{ours} ({published})")
        table.add_row(escape(score), *(escape(text) for text in texts))
    return table
