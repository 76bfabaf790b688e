"""Progress on standard error: a live line on a terminal, elsewhere a plain line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TaskID, TextColumn
from rich.text import Text

from credo.core.text import visible
from credo.sessions import Tally

__all__ = ["ProgressLine", "Screen", "Watch", "note", "stderr", "write_out"]

PLAIN_SECONDS = 5.0


class Screen(Console):
    """A console that spells the control characters of what it prints, and takes no word for a command."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "highlight": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


def stderr() -> Screen:
    """The current standard error."""
    return Screen(stderr=True, soft_wrap=True)


def write_out(text: str) -> None:
    """Write to standard output as it is, or if that is a terminal, with control characters spelled."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def note(sentence: str, quiet: bool = False) -> None:
    """Say something on standard error."""
    if not quiet:
        stderr().print(sentence)


def duration(seconds: float) -> str:
    """A length of time in words."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


class ProgressLine:
    """A line that says how far a command is, as a context: live on a terminal, elsewhere a line now and then.

    Programs are compiled first, which may take longer than all the rest. So the rate, and the time that is
    left, are of what was done since.
    """

    def __init__(self, *, quiet: bool, measured: bool = True) -> None:
        self.quiet = quiet
        self.measured = measured
        self.console = stderr()
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        self.last = time.monotonic()

    def __enter__(self) -> Self:
        if not self.quiet and self.console.is_terminal:
            columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}")]
            if self.measured:
                columns.append(BarColumn(bar_width=24))
            self.bar = Progress(*columns, console=self.console, transient=True, refresh_per_second=6)
            self.bar.start()
            self.task = self.bar.add_task("compiling", total=1.0)
        elif not self.quiet:
            self.console.print("compiling")
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def say(self, line: str, done: float | None, *, at_once: bool = False) -> None:
        """Show a line, and which share is done."""
        now = time.monotonic()
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=done or 0.0, description=line)
        elif at_once or now - self.last >= PLAIN_SECONDS:
            self.last = now
            self.console.print(line)


class Watch(ProgressLine):
    """The progress of rows; without a total it shows the share of the source that was read."""

    def __init__(
        self, total: int | None, quiet: bool, share: Callable[[], float | None] = lambda: None
    ) -> None:
        self.total = total
        self.share = share
        self.compiled: tuple[float, int, float | None] | None = None
        super().__init__(quiet=quiet, measured=self._done(0) is not None)

    def tell(self, count: int, tally: Tally, bad: int) -> None:
        """Show where the run is: how many rows were met, the scores so far, how many rows were skipped."""
        if self.quiet:
            return
        now = time.monotonic()
        if self.compiled is None and count:
            self.compiled = now, count, self._done(count)
        self.say(self._line(count, tally, bad, now), self._done(count))

    def _done(self, count: int) -> float | None:
        """The share of the rows that are done, by their number or by the bytes that were read."""
        if self.total:
            return min(count / self.total, 1.0)
        return self.share()

    def _line(self, count: int, tally: Tally, bad: int, now: float) -> str:
        word = "error" if tally.kind.classed else "RMSE"
        rows = f"{count:,}/{self.total:,} rows" if self.total else f"{count:,} rows"
        since, first, share = self.compiled or (now, count, None)
        parts = [rows]
        if count > first and now > since:
            parts.append(f"{(count - first) / (now - since):,.0f} rows/s")
        if tally.scored:
            nlpd = tally.latest("nlpd")
            parts += [
                f"{word} {tally.latest('loss'):.4g}",
                f"NLPD {nlpd:.3f}" if nlpd < 1e7 else f"NLPD {nlpd:.2e}",
            ]
        if bad:
            parts.append(f"{bad:,} skipped")
        done = self._done(count)
        if done is not None and not self.total:
            parts.insert(1, f"{done:.0%}")
        if done and share is not None and done > share:
            parts.append(f"{duration((now - since) * (1.0 - done) / (done - share))} left")
        return "  ".join(parts)
