"""Run an experiment by name, and write its numbers, its data and its figure."""

from __future__ import annotations

import csv
import io
import tempfile
import time
from pathlib import Path

import numpy as np

from credo.core.errors import DataError, require_choice, require_integer
from credo.core.files import versions, write_atomically
from credo.plots import figures
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.printing import bar
from credo_papers.engine.registry import find
from credo_papers.engine.reproduction import Result

__all__ = ["FOLDER", "reproduce"]

FOLDER = Path("runs/reproduce")
"""Where results go unless the caller names another folder."""


def reproduce(
    name: str,
    *,
    size: Size = "quick",
    seed: int = 0,
    out: Path | str | None = None,
    progress: bool = True,
) -> Result:
    """Run an experiment; write its numbers, the data behind the figure, and the figure.

    Arguments:
        name: one of `names()`.
        size: "quick" (the same experiment with fewer seeds, under a minute on two cores) or "full".
        seed: at least 0. The same seed gives the same numbers; other seeds give fresh data.
        out: the folder in which the folder NAME is made; None means `runs/reproduce`.
        progress: whether to show a bar on standard error, where that is a terminal.

    Returns:
        The table, and where the files lie: `results.json`, `data.csv`, `data.npz`, NAME`.png` and, for the
        moons, the animation NAME`.gif`, each of which is replaced at once or not at all. `show()` prints the
        table. A long experiment keeps its finished pieces in a folder `cells` beside these files, and goes on
        from there when it runs again.

    Raises:
        CredoError: there is no experiment, size or seed of this name or number.
        DataError: the folder cannot be written to; this is checked before anything is computed.

    Example:
        >>> result = reproduce("kf-tracking", progress=False)
        >>> result.rows[0].quantity
        'position rms, filtered'
    """
    experiment = find(name)
    require_choice("size", size, ["quick", "full"])
    require_integer("seed", seed, 0)
    folder = (FOLDER if out is None else Path(out)) / name
    _require_writable(folder)
    cells = Cells(folder / "cells")
    start = time.perf_counter()
    with bar(name, progress) as report:
        outcome = experiment.run(size, seed, report, cells)
        seconds = time.perf_counter() - start + cells.reused_seconds
        report(1.0, "writing")
        files = {"data.csv": _csv(outcome), "data.npz": _npz(outcome)}
        messages = [cells.message] if cells.message else []
        if figures.available():
            with figures.style():
                files[f"{name}.png"] = figures.png(outcome.figure())
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
