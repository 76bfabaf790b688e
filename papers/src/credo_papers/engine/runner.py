"""Run an experiment by name, and write its numbers, its data and its figure."""

from __future__ import annotations

import csv
import io
import tempfile
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np

from credo.core.errors import CredoError, DataError, Named, require_choice, require_integer
from credo.core.files import versions, write_atomically
from credo.core.parallel import Crew
from credo.plots import figures
from credo_papers.engine.cell_folder import Cells, CellsFailed
from credo_papers.engine.experiment import Experiment, Outcome, Size
from credo_papers.engine.portions import Progress
from credo_papers.engine.printing import bar
from credo_papers.engine.registry import find
from credo_papers.engine.reproduction import Result

__all__ = ["FOLDER", "reproduce"]

FOLDER = Path("runs/reproduce")
"""The folder of results unless the caller names another one."""


def reproduce(
    name: str,
    *,
    size: Size = "quick",
    seed: int = 0,
    out: Path | str | None = None,
    progress: bool = True,
    jobs: int | None = None,
    ray: str | None = None,
) -> Result:
    """Run an experiment; write its numbers, the data behind the figure, and the figure.

    Arguments:
        name: one of `names()`.
        size: "quick" (the same experiment with fewer seeds, under a minute on two cores) or "full".
        seed: at least 0. The same seed gives the same numbers; other seeds give fresh data.
        out: the folder in which the folder NAME is made; None means `runs/reproduce`.
        progress: whether to show a bar on standard error, if that is a terminal.
        jobs: in how many worker processes, with one thread of XLA each, the pieces of a long experiment are
            computed side by side; None computes them in this process, one by one. The arrays are those of
            one process with one thread, bit by bit. What measures times stays in this process.
        ray: the address of a cluster of Ray whose actors the workers are, "local" for one in this machine;
            None for processes of this machine.

    Returns:
        The table, and where the files lie: `results.json`, `data.csv`, `data.npz`, NAME`.png` and, for the
        moons, the animation NAME`.gif` and more figures, each of which is replaced at once or not at all.
        `show()` prints the table. A long experiment keeps its finished pieces in a folder `cells` beside
        these files, and goes on from there when it runs again.

    Raises:
        CredoError: there is no experiment, size or seed of this name or number; `ray` has no `jobs`; or
            pieces failed, which the sentence names, while the others were computed and kept.
        DataError: the folder cannot be written to; this is checked before anything is computed.

    Example:
        >>> result = reproduce("kf-tracking", progress=False)
        >>> result.rows[0].quantity
        'position rms, filtered'
    """
    experiment = find(name)
    require_choice("size", size, ["quick", "full"])
    require_integer("seed", seed, 0)
    if ray is not None and jobs is None:
        raise CredoError(f"ray needs {Named('jobs')}, the number of actors.", field="ray")
    folder = (FOLDER if out is None else Path(out)) / name
    _require_writable(folder)
    start = time.perf_counter()
    with bar(name, progress) as report, _crew(jobs, ray) as crew:
        cells = Cells(folder / "cells", crew)
        outcome = _run(experiment, size, seed, report, cells)
        seconds = time.perf_counter() - start + cells.reused_seconds
        report(1.0, "writing")
        files = {"data.csv": _csv(outcome), "data.npz": _npz(outcome)}
        messages = [cells.message] if cells.message else []
        if crew is not None and not cells.computed + cells.reused:
            messages.append("This experiment is one piece, which this process computed alone.")
        if figures.available():
            with figures.style():
                files[f"{name}.png"] = figures.png(outcome.figure())
                for word, draw in outcome.figures.items():
                    files[f"{name}-{word}.png"] = figures.png(draw())
                if outcome.animation is not None:
                    files[f"{name}.gif"] = outcome.animation()
        else:
            messages.append(figures.MISSING)
        result = Result(
            name=name,
            title=experiment.title,
            source=experiment.source,
            size=size,
            seed=seed,
            rows=outcome.rows,
            settings=outcome.settings,
            seeds=outcome.seeds,
            versions=versions(),
            device=_device(),
            seconds=seconds,
            folder=folder,
            files=(*files, "results.json"),
            messages=tuple(messages),
        )
        files["results.json"] = result.json()
        for file, data in files.items():
            write_atomically(folder / file, data)
    return result


def _crew(jobs: int | None, ray: str | None) -> AbstractContextManager[Crew | None]:
    if jobs is None:
        return nullcontext()
    return Crew(jobs, ray)


def _run(experiment: Experiment, size: Size, seed: int, report: Progress, cells: Cells) -> Outcome:
    """The outcome, or a sentence about the pieces that failed."""
    furthest = 0.0
    moving = threading.Lock()

    def forward(share: float, text: str) -> None:
        nonlocal furthest
        with moving:  # pieces that are computed side by side report out of order
            furthest = max(furthest, share)
            report(furthest, text)

    try:
        return experiment.run(size, seed, report if cells.crew is None else forward, cells)
    except CellsFailed as error:
        shown = "; ".join(error.failed[:5]) + (" and others" if len(error.failed) > 5 else "")
        raise CredoError(
            f"{len(error.failed)} parts of {experiment.name} failed: {shown}. "
            f"{cells.computed + cells.reused} parts are kept in {cells.folder}, and running it again goes on "
            "from there."
        ) from error


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror or error}.") from None


def _device() -> str:
    import jax

    device = jax.devices()[0]
    return device.platform if device.platform == "cpu" else f"{device.platform} ({device.device_kind})"


def _csv(outcome: Outcome) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(outcome.series)
    columns = [np.asarray(column).tolist() for column in outcome.series.values()]
    writer.writerows([f"{value:.9g}" for value in row] for row in zip(*columns, strict=True))
    return text.getvalue().encode()


def _npz(outcome: Outcome) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **{**outcome.series, **outcome.arrays})
    return buffer.getvalue()
