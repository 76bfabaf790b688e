"""`credo flow train`: an operator is trained on the tasks of a file, and the results are written."""

from __future__ import annotations

import json
import time
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from credo import flows
from credo.cli import flow_report, output
from credo.cli.interrupt import Interruptible
from credo.cli.progress import PLAIN_SECONDS, duration, note, stderr
from credo.core.errors import CredoError, DataError
from credo.core.files import json_bytes, write_atomically
from credo.flows import History
from credo.flows.settings import Settings, read_settings
from credo.flows.storage import read_history, save_operator

__all__ = ["OPERATOR", "Order", "read_config", "train_flow"]

RECENT = 100
"""Over how many steps the loss is averaged."""


class FlowWatch:
    """A progress line of a training, as a context."""

    def __init__(self, total: int, quiet: bool) -> None:
        self.total = total
        self.quiet = quiet
        self.console = stderr()
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        self.started = time.monotonic()
        self.last = 0.0
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


# The files of the operator, of where its training stands, and of its settings.
OPERATOR = "operator.flow"
TRAINING = "training.safetensors"
SETTINGS = "settings.json"


class Order(NamedTuple):
    """The words of `credo flow train`; where `steps` or `seed` is None, the TOML file has it."""

    config: Path
    steps: int | None
    seed: int | None
    out: Path | None
    resume: Path | None
    quiet: bool


class Stopped(Exception):
    """Training was asked to stop, and has been saved."""


def read_config(path: Path, *, steps: int | None = None, seed: int | None = None) -> Settings:
    """The settings of a TOML file, with the steps and the seed that are given instead of its own."""
    try:
        raw: dict[str, Any] = tomllib.loads(path.read_text())
    except OSError as error:
        raise DataError(f"cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no TOML file: {str(error).rstrip('.')}.") from None
    changed = {name: value for name, value in (("steps", steps), ("seed", seed)) if value is not None}
    training = raw.get("training", {})
    if changed and isinstance(training, dict):
        raw["training"] = {**training, **changed}
    try:
        return read_settings(raw, path.parent)
    except CredoError as error:
        if isinstance(error, DataError):
            raise
        raise CredoError(f"{path}: {error}") from None


def train_flow(words: Order) -> int:
    """Train, print the summary, and write the results; the exit status."""
    settings = read_config(words.config, steps=words.steps, seed=words.seed)
    saved = None if words.resume is None else _saved(words.resume)
    folder = words.out if words.resume is None else words.resume
    name = f"flow-{words.config.stem}"
    with Interruptible("steps") as interrupt, output.writing(folder, name, saved, TRAINING) as place:
        if place.sentence and saved is None:
            note(place.sentence, words.quiet)
        size = _size(settings.operator)
        note(
            f"operator: {type(settings.operator).__name__} with {size:,} parameters, dimension "
            f"{settings.operator.dim}; tasks: {type(settings.tasks).__name__}; "
            f"{settings.plan.steps:,} steps of {settings.plan.batch} tasks",
            words.quiet,
        )
        _keep_settings(place.files / SETTINGS, settings.plain, words.resume)
        start = time.monotonic()
        courses: list[flows.History] = []
        try:
            with FlowWatch(settings.plan.steps, words.quiet) as watch:

                def progress(history: flows.History) -> None:
                    courses[:] = [history]
                    watch.tell(history)
                    if interrupt.stopped:
                        raise Stopped

                interrupt.busy = True
                trained = flows.train(
                    settings.tasks,
                    settings.operator,
                    plan=settings.plan,
                    key=settings.seed,
                    out=place.files,
                    progress=progress,
                )
                interrupt.busy = False
        except (Stopped, KeyboardInterrupt):
            if not place.belief.is_file():
                note("credo: interrupted; nothing was written.")
                return interrupt.status
            steps = courses[0].steps if courses else 0
            note(
                f"credo: interrupted after {steps:,} steps; training is saved, continue with: "
                f"{_again(words, place)}"
            )
            return interrupt.status
        history = courses[0] if courses else read_history(place.belief)
        contents = flow_report.contents(settings, history, time.monotonic() - start)
        save_operator(
            place.files / OPERATOR,
            trained,
            notes={"settings": settings.plain, "steps": history.steps, "scores": contents.scores},
        )
        hints = flow_report.write(place.files, contents, trained, settings)
        place.commit()
    flow_report.show(contents)
    for hint in hints:
        note(hint, words.quiet)
    note(f"report: {place.path}/report.html   operator: {place.path}/{OPERATOR}", words.quiet)
    return 0


def _saved(folder: Path) -> Path:
    training = folder / output.UNFINISHED / TRAINING
    if training.is_file():
        return training
    if (folder / TRAINING).is_file():
        raise DataError(f"--resume {folder} holds a training that is complete; there is nothing to continue.")
    raise DataError(f"--resume {folder} holds no training; name the folder of one that was cut short.")


def _keep_settings(file: Path, plain: dict[str, Any], resume: Path | None) -> None:
    """Write the settings beside the training, or compare them with those that stand there."""
    if resume is not None and file.is_file():
        earlier = json.loads(file.read_text())
        for table, values in plain.items():
            before = earlier.get(table, {})
            for name in sorted({*values, *before}):
                if values.get(name) != before.get(name):
                    raise CredoError(
                        f"--resume {resume} holds a training with another {name} of {table}: use its "
                        "settings, or start a new training."
                    )
    write_atomically(file, json_bytes(plain))


def _again(words: Order, place: output.Folder) -> str:
    parts = ["credo flow train", str(words.config)]
    parts += [] if words.steps is None else [f"--steps {words.steps}"]
    parts += [] if words.seed is None else [f"--seed {words.seed}"]
    return " ".join([*parts, f"--resume {place.path}"])


def _size(operator: flows.FlowOperator) -> int:
    """The number of parameters."""
    shapes = jax.eval_shape(operator.start, jax.random.key(0))
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))
