"""The progress line of a training: steps, the loss against its floor, the latest validation."""

from __future__ import annotations

import time

import numpy as np
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from credo.cli.progress import PLAIN_SECONDS, duration, stderr
from credo.flows import History

__all__ = ["FlowWatch"]

RECENT = 100
"""Over how many steps the loss is averaged."""


class FlowWatch:
    """A progress line of a training, as a context."""

    def __init__(self, total: int, quiet: bool) -> None:
        self.total, self.quiet = total, quiet
        self.console = stderr()
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        self.started, self.last = time.monotonic(), 0.0
        self.first: tuple[int, float] | None = None
        self.retreats = 0

    def __enter__(self) -> FlowWatch:
        if not self.quiet and self.console.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24))
            self.bar = Progress(*columns, console=self.console, transient=True, refresh_per_second=6)
            self.bar.start()
            self.task = self.bar.add_task("compiling", total=self.total)
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def tell(self, history: History) -> None:
        """Show where the training is."""
        if self.quiet:
            return
        now = time.monotonic()
        for step, loss in history.retreats[self.retreats :]:
            self.console.print(
                f"step {step:,}: the loss leapt to {loss:.4g}, so training goes back to this step with "
                "half the learning rate",
                markup=False,
            )
        self.retreats = len(history.retreats)
        line = self._line(history, now)
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=history.steps, description=line)
        elif now - self.last >= PLAIN_SECONDS or history.steps >= self.total:
            self.last = now
            self.console.print(line, markup=False)
        self.first = self.first or (history.steps, now)

    def _line(self, history: History, now: float) -> str:
        loss = float(np.mean(history.loss[-RECENT:]))
        floor = float(np.mean(history.floor[-RECENT:]))
        parts = [f"step {history.steps:,}/{self.total:,}", f"loss {loss:.4g}"]
        if np.isfinite(floor):
            parts[-1] += f" (floor {floor:.4g}, {loss - floor:+.3g})"
        if history.checks:
            parts.append(f"validation {np.mean(history.checks[-1]['loss']):.4g}")
        if self.first is not None and history.steps > self.first[0]:
            each = (now - self.first[1]) / (history.steps - self.first[0])
            parts.append(f"{duration(each * (self.total - history.steps))} left")
        return "  ".join(parts)
