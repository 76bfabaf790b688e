"""An experiment on a terminal: a bar while it runs, a table when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from credo.experiments.records import Progress, Result

__all__ = ["bar", "show"]


@contextmanager
def bar(name: str, visible: bool) -> Iterator[Progress]:
    """A progress bar on standard error; gives the function that moves it.

    Args:
        name: What is running.
        visible: Without it nothing is printed; on what is no terminal nothing is printed either.
    """
    console = Console(stderr=True)
    heading, step = TextColumn(f"[bold]{escape(name)}"), TextColumn("{task.description}")
    columns = (heading, BarColumn(24), step, TimeElapsedColumn())
    hidden = not (visible and console.is_terminal)
    with Bar(*columns, console=console, transient=True, disable=hidden) as shown:
        task = shown.add_task("starting", total=1.0)
        yield lambda done, text: shown.update(task, completed=done, description=escape(text))


def show(result: Result, console: Console | None = None) -> None:
    """Print a finished experiment."""
    console = console or Console()
    heading = f"[bold]{escape(result.name)}[/]  {escape(result.title)}"
    caption = f"{result.size} size, seed {result.seed}, {result.seconds:.1f} s on {result.device}"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("quantity", ratio=3)
    table.add_column("ours (mean ± se)", justify="right", no_wrap=True)
    table.add_column("published", justify="right", no_wrap=True)
    table.add_column("note", ratio=4, style="dim")
    for row in result.rows:
        table.add_row(*(escape(text) for text in row.texts()))
    console.print(heading)
    console.print(f"[dim]{escape(result.source)}; {escape(caption)}[/]")
    console.print()
    console.print(table)
    console.print()
    for message in (f"Wrote {', '.join(result.files)} to {result.folder}", *result.messages):
        console.print(message, soft_wrap=True, highlight=False, markup=False)
