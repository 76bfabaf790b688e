"""Progress on standard error: a live line on a terminal, elsewhere a plain line every few seconds."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from credo.sessions import Tally

__all__ = ["Watch", "note", "stderr"]

PLAIN_SECONDS = 5.0


def stderr() -> Console:
    """The current standard error."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def note(sentence: str, quiet: bool = False) -> None:
    """Say something on standard error."""
    if not quiet:
        stderr().print(sentence, markup=False)


class Watch:
    """A progress line, as a context.

    Arguments:
        total: how many rows there will be, None where that is not known.
        quiet: say nothing.
    """

    def __init__(self, total: int | None, quiet: bool) -> None:
        self.total, self.quiet = total, quiet
        self.console = stderr()
        self.bar: Progress | None = None
        self.started = self.last = time.monotonic()
        self.task: TaskID | None = None

    def __enter__(self) -> Watch:
        if not self.quiet and self.console.is_terminal:
            columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}")]
            if self.total:
                columns += [BarColumn(bar_width=24), TimeRemainingColumn(compact=True)]
            self.bar = Progress(*columns, console=self.console, transient=True, refresh_per_second=6)
            self.bar.start()
            self.task = self.bar.add_task("compiling", total=self.total)
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def tell(self, count: int, tally: Tally, bad: int) -> None:
        """Show where the run is.

        Arguments:
            count: rows met so far.
            tally: the scores so far.
            bad: rows skipped so far.
        """
        if self.quiet:
            return
        now = time.monotonic()
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=count, description=self._line(count, tally, bad, now))
        elif now - self.last >= PLAIN_SECONDS:
            self.last = now
            self.console.print(self._line(count, tally, bad, now), markup=False)

    def _line(self, count: int, tally: Tally, bad: int, now: float) -> str:
        rate = count / max(now - self.started, 1e-9)
        word = "error" if tally.task == "classification" else "RMSE"
        rows = f"{count:,}/{self.total:,} rows" if self.total else f"{count:,} rows"
        parts = [rows, f"{rate:,.0f} rows/s"]
        if tally.scored:
            nlpd = tally.latest("nlpd")
            parts += [
                f"{word} {tally.latest('loss'):.4g}",
                f"NLPD {nlpd:.3f}" if nlpd < 1e7 else f"NLPD {nlpd:.2e}",
            ]
        if bad:
            parts.append(f"{bad:,} skipped")
        if self.bar is None and self.total and rate > 0:
            parts.append(f"{(self.total - count) / rate:,.0f} s left")
        return "  ".join(parts)
