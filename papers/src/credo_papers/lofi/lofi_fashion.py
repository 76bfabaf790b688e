"""Fashion-MNIST row by row, standing still and drifting: low-rank filters against gradient descent.

A multi-layer perceptron (relu) learns each row once and is tested along the way on test images of the task
at hand, with its mean parameters. Filters start from He's weights with an output layer of zeros and with
prior variances scale / fan-in. On streams that drift, their parameters follow a random walk, whose variance
for each row is `drift` times the prior variance. Learning rates, scales and drifts are those of the lowest
average log loss before learning, on other streams of other images than those that are scored.

Published numbers: Chang et al. 2023 (LOFI, arXiv 2305.19535), network 784-500-500-10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from credo.datasets import load
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json, Values
from credo_papers.engine.portions import Progress, portion, silent
from credo_papers.engine.purposes import SCORED, TUNING
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.engine.sweep import Setting, sweep
from credo_papers.lofi.lofi_fashion_figure import draw
from credo_papers.lofi.lofi_fashion_learner import FashionProgram, Seed, Shared, build, split_stream
from credo_papers.lofi.lofi_fashion_plan import (
    LEARNERS,
    NETWORKS,
    PLANS,
    PUBLISHED,
    MethodName,
    Part,
    grid_of,
)
from credo_papers.lofi.lofi_fashion_world import Pool, StreamName, make_pool, make_stream

__all__ = ["run", "run_part"]

NAME = "lofi-fashion"
VERSION = 1


@dataclass(frozen=True)
class _PartRun:
    """A part that runs: its plan, its data, and where its finished pieces are kept."""

    part: Part
    size: Size
    seed: int
    pools: Mapping[int, Pool]
    cells: Cells | None

    def program(self, label: str) -> FashionProgram:
        """The program of a learner."""
        method, rank = LEARNERS[label]
        return {
            "method": method,
            "rank": rank,
            "drifts": self.part.stream != "stationary",
            "hidden": NETWORKS[self.part.network],
            "outputs": 2 if self.part.stream == "split" else 10,
        }

    def sweep(
        self, grid: Sequence[Setting[FashionProgram]], purpose: int, rows: int, count: int, progress: Progress
    ) -> dict[str, Arrays]:
        """The results of a grid on the streams for a purpose."""
        seeds, shared = self._streams(purpose, rows, count)
        part = {key: value for key, value in asdict(self.part).items() if key not in ("learners", "seeds")}
        context: dict[str, Json] = {
            "version": VERSION,
            "seed": self.seed,
            "part": part,
            "pools": [len(pool.y) for pool in self.pools.values()],
        }
        chunk = self.part.chunk
        return sweep(
            NAME,
            grid,
            build,
            seeds,
            shared,
            context=context,
            chunk=chunk,
            cells=self.cells,
            progress=progress,
        )

    def _streams(self, purpose: int, rows: int, count: int) -> tuple[Seed, Shared]:
        part = self.part
        stream = make_stream(
            part.stream,
            self.pools[purpose],
            [self.seed, purpose],
            count,
            rows=rows,
            task=part.task,
            every=part.every,
            test_rows=part.test_rows,
        )
        return split_stream(stream, self.seed, purpose)


def run_part(
    part: Part,
    size: Size,
    seed: int,
    pools: Mapping[int, Pool],
    cells: Cells | None = None,
    progress: Progress = silent,
) -> dict[str, Arrays]:
    """Tune every learner of a part on its own streams, then score it.

    Arguments:
        part: what to run.
        size: the size of the grids.
        seed: the seed of the streams.
        pools: the images for each purpose.
        cells, progress: as for every experiment.

    Returns:
        For each learner the arrays (streams, chunks) of `build`, the setting (`chosen_*`), and the mean log
        loss of every setting that was tried (`tuning`).
    """
    task = _PartRun(part, size, seed, pools, cells)
    grids = {
        label: [
            Setting(f"{part.name} tuning {label} {i}", task.program(label), values)
            for i, values in enumerate(grid_of(LEARNERS[label][0], part.stream, size))
        ]
        for label in part.learners
    }
    progress(0.0, f"making {part.stream} streams")
    everything = [setting for grid in grids.values() for setting in grid]
    first = portion(progress, 0.0, 0.4)
    trials = task.sweep(everything, TUNING, part.tuning_rows, part.tuning_seeds, first)
    best: dict[str, Values] = {}
    losses: dict[str, np.ndarray] = {}
    for label, grid in grids.items():
        loss = np.array([np.mean(trials[setting.name]["nll"]) for setting in grid], np.float64)
        losses[label] = np.where(np.isfinite(loss), loss, np.inf)
        best[label] = grid[int(np.argmin(losses[label]))].values
    choices = [Setting(f"{part.name} {label}", task.program(label), best[label]) for label in grids]
    results = task.sweep(choices, SCORED, part.rows, part.seeds, portion(progress, 0.4, 1.0))
    return {
        label: {
            **results[f"{part.name} {label}"],
            "tuning": losses[label],
            **{f"chosen_{key}": np.asarray(value) for key, value in best[label].items()},
        }
        for label in grids
    }


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run every learner on every stream of the size."""
    progress(0.0, "reading Fashion-MNIST")
    train = load("fashion-mnist")
    test = load("fashion-mnist", split="test")
    pools = {purpose: make_pool(train, test, purpose) for purpose in (SCORED, TUNING)}
    plan = PLANS[size]
    parts: dict[str, dict[str, Arrays]] = {}
    for i, part in enumerate(plan):
        share = portion(progress, i / len(plan), (i + 1) / len(plan), f"{part.stream}: ")
        parts[part.name] = run_part(part, size, seed, pools, cells, share)
    rows = [row for part in plan for row in make_rows(part, parts[part.name])]
    arrays = {
        f"{name} {label} {key}": array
        for name, results in parts.items()
        for label, result in results.items()
        for key, array in result.items()
    }
    first = plan[0]
    series: dict[str, np.ndarray] = {"t": np.arange(first.every, first.rows + 1, first.every)}
    for label, result in parts[first.name].items():
        for key in ("test_error", "test_nll"):
            series[f"{key} {label}"] = result[key].mean(axis=0)
    settings = _settings(plan, size, parts)
    seeds = _seeds(seed)
    return Outcome(tuple(rows), settings, seeds, series, arrays, lambda: draw(plan, parts))


def _choice(result: Arrays) -> dict[str, float]:
    """The setting that was chosen by tuning."""
    prefix = "chosen_"
    return {key.removeprefix(prefix): float(value) for key, value in result.items() if key.startswith(prefix)}


def _settings(plan: Sequence[Part], size: Size, parts: Mapping[str, Mapping[str, Arrays]]) -> dict[str, Json]:
    methods: tuple[MethodName, ...] = ("sgd", "adam", "lofi")
    streams: dict[str, StreamName] = {"stationary": "stationary", "others": "permuted"}
    return {
        "parts": [asdict(part) for part in plan],
        "grids": {
            f"{method}, {label}": grid_of(method, stream, size)
            for method in methods
            for label, stream in streams.items()
        },
        "chosen": {
            name: {label: _choice(result) for label, result in results.items()}
            for name, results in parts.items()
        },
        "dtype": "float32",
    }


def _seeds(seed: int) -> dict[str, Json]:
    return {
        "scored": f"numpy.random.default_rng([{seed}, {SCORED}, i]), of the first five sixths of the images",
        "tuning": f"numpy.random.default_rng([{seed}, {TUNING}, i]), of the last sixth; not scored",
        "initial weights": f"jax.random.fold_in(jax.random.key({seed}), purpose), split over streams",
    }


def make_rows(part: Part, results: Mapping[str, Arrays]) -> list[Row]:
    """Return the rows of a part: test error and NLL at the end of a stationary stream, else the mean error.

    Arguments:
        part: what was run.
        results: by learner.
    """
    rows = []
    for label, result in results.items():
        note = ", ".join(f"{key} {value:g}" for key, value in _choice(result).items())
        if part.stream == "stationary":
            comparable = part.rows == 2000
            error, nll = PUBLISHED.get(label, (None, None)) if comparable else (None, None)
            at = f"{part.network}, T = {part.rows:,}, {label}"
            rows.append(Row(f"error, {at}", *mean_se(result["test_error"][:, -1]), error, note=note))
            rows.append(Row(f"NLL, {at}", *mean_se(result["test_nll"][:, -1]), nll))
        else:
            average = mean_se(result["test_error"].mean(axis=1))
            rows.append(Row(f"{part.stream}, mean test error, {label}", *average, None, None, note))
            before = mean_se(result["error"].mean(axis=1))
            rows.append(Row(f"{part.stream}, error before learning, {label}", *before))
    return rows
