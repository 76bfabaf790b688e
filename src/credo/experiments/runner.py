"""Run an experiment by name and write what it found."""

from __future__ import annotations

import csv
import io
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from credo.core.errors import DataError, require_choice, require_integer
from credo.core.files import json_bytes, versions, write_atomically
from credo.experiments.catalogue import find
from credo.experiments.cells import Cells
from credo.experiments.printing import bar
from credo.experiments.records import Outcome, Result, Size
from credo.plots import figures

__all__ = ["FOLDER", "reproduce"]

FOLDER = Path("runs/reproduce")
"""Where results go when nothing else is asked for."""


def reproduce(
    name: str,
    *,
    size: Size = "quick",
    seed: int = 0,
    out: Path | str | None = None,
    progress: bool = True,
) -> Result:
    """Run an experiment; write its numbers, the data behind the figure, and the figure.

    Args:
        name: One of `names()`.
        size: "quick" (the same experiment with fewer seeds, under a minute on two cores) or "full".
        seed: At least 0. The same seed gives the same numbers; others give fresh data.
        out: The folder in which a folder NAME is made; None means `runs/reproduce`.
        progress: Whether to show a bar on standard error, where that is a terminal.

    Returns:
        The table and where the files lie: `results.json`, `data.csv`, `data.npz` and NAME`.png`, each
        replaced at once or not at all. Print it with `show()`. Long experiments keep their finished parts in
        a folder `cells` beside them and go on from there when they are run again.

    Raises:
        CredoError: no experiment has this name, or a size or seed that does not exist.
        DataError: the folder cannot be written, found out before anything is computed.

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
        outcome = experiment.start(size, seed, report, cells)
        seconds = time.perf_counter() - start + cells.reused_seconds
        report(1.0, "writing")
        files = {"data.csv": _csv(outcome), "data.npz": _npz(outcome)}
        messages = [cells.message] if cells.message else []
        if figures.available():
            with figures.style():
                files[f"{name}.png"] = figures.png(outcome.figure())
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
        files["results.json"] = _json(result)
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


def _json(result: Result) -> bytes:
    fields = asdict(result)
    fields["folder"] = str(result.folder)
    return json_bytes(fields)
