"""An experiment on a terminal: a bar while it runs, a table when it is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from credo_papers.engine.portions import Progress
from credo_papers.engine.quantities import Row

__all__ = ["bar", "print_table"]


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
    heading, step = TextColumn(f"[bold]{escape(name)}"), TextColumn("{task.description}")
    columns = (heading, BarColumn(24), step, TimeElapsedColumn())
    hidden = not (visible and console.is_terminal)
    with Bar(*columns, console=console, transient=True, disable=hidden) as display:
        task = display.add_task("starting", total=1.0)
        yield lambda share, text: display.update(task, completed=share, description=escape(text))


def print_table(
    name: str, title: str, caption: str, rows: Iterable[Row], messages: Iterable[str], console: Console | None
) -> None:
    """Print the table of a finished experiment.

    Arguments:
        name, title: the name and title of the experiment.
        caption: one line below the title.
        rows: the table.
        messages: sentences below the table, one a line.
        console: a rich console; None means standard output.
    """
    console = console or Console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("quantity", ratio=3)
    table.add_column("ours (mean ± se)", justify="right", no_wrap=True)
    table.add_column("published", justify="right", no_wrap=True)
    table.add_column("note", ratio=4, style="dim")
    for row in rows:
        table.add_row(*(escape(text) for text in row.texts()))
    console.print(f"[bold]{escape(name)}[/]  {escape(title)}")
    console.print(f"[dim]{escape(caption)}[/]")
    console.print()
    console.print(table)
    console.print()
    for message in messages:
        console.print(message, soft_wrap=True, highlight=False, markup=False)
