"""Two moons: a neural classifier with a full covariance learns from 200 labels, each seen once.

The network 2-5-5-1 (sine, 51 parameters) has a Bernoulli likelihood, and the learner is the extended Kalman
filter. Each label is predicted before it is learned ("test, then train"), and 1,000 test points are scored
along the way.

Two settings are scored. *Published*: prior variance 1, and initial weights N(0, 1 / fan-in). *Tuned*: the
prior variance and the factor on the initial weights that give the best log evidence on other streams, which
are not scored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np

from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress
from credo_papers.engine.purposes import SCORED, TEST, TUNING
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.kalman.moons_animation import animate
from credo_papers.kalman.moons_figure import draw
from credo_papers.kalman.moons_learner import Scores, score, surface, tune
from credo_papers.kalman.moons_plan import (
    EVERY,
    FRAMES,
    GRID,
    PANELS,
    PUBLISHED,
    REFERENCE,
    SEEDS,
    TEST_POINTS,
    TUNING_SEEDS,
)
from credo_papers.kalman.moons_world import NOISE, STEPS, make_moons, make_streams

__all__ = ["run"]


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Tune on some streams, score on others, all of them at once."""
    count = SEEDS[size]
    progress(0.0, f"tuning {len(GRID)} settings on {TUNING_SEEDS} streams")
    grid = np.array(GRID, np.float32)
    losses = -np.asarray(tune(grid, make_streams(seed, TUNING, TUNING_SEEDS)), np.float64)
    tuning_nll = losses.mean(axis=1)
    best = int(np.argmin(tuning_nll))

    progress(0.4, f"scoring 2 settings on {count} other streams")
    streams = make_streams(seed, SCORED, count)
    test = make_moons(np.random.default_rng([seed, TEST]), TEST_POINTS)
    scores = score(np.array([PUBLISHED, GRID[best]], np.float32), streams, test)
    evidence = np.asarray(scores.log_evidence, np.float64).reshape(2, count, STEPS)
    hits = evidence > math.log(0.5)  # the label had more than half of the probability: it was predicted
    accuracy = np.asarray(scores.accuracy, np.float64)
    nll = np.asarray(scores.nll, np.float64)

    progress(0.9, "mapping the decision surface")
    side = np.stack([np.linspace(-1.75, 2.75, 100), np.linspace(-1.5, 2.0, 100)]).astype(np.float32)
    chances, _ = _surfaces(scores, PANELS, side)
    coarse = side[:, ::2]
    moving, spread = _surfaces(scores, FRAMES, coarse)

    arrays = {
        "test_accuracy": accuracy,
        "surface": chances,
        "surface_x": side[0],
        "surface_y": side[1],
        "panels": np.array(PANELS),
        "x": streams.x[0],
        "y": streams.y[0],
        "grid": grid,
        "tuning_nll": tuning_nll,
        "frames": np.array(FRAMES),
        "frame_surface": moving,
        "frame_logit_sd": spread,
        "frame_x": coarse[0],
        "frame_y": coarse[1],
    }
    series = _series(hits, accuracy, nll)
    rows = _table(GRID[best], hits, evidence, accuracy, nll)
    settings = _settings(GRID[best], tuning_nll.tolist())
    seeds = _seeds(seed, count)
    return Outcome(
        rows, settings, seeds, series, arrays, lambda: draw(series, arrays), lambda: animate(arrays)
    )


def _surfaces(scores: Scores, steps: Sequence[int], side: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probability of label 1 and the sd of its logit, on a grid, as one stream goes on."""
    points = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)
    beliefs = jax.tree.map(lambda leaf: leaf[1, 0][np.array(steps) // EVERY - 1], scores.belief)
    shape = (len(steps), *side.shape[1:], *side.shape[1:])
    chances, spread = surface(beliefs, points)
    return np.asarray(chances).reshape(shape), np.asarray(spread).reshape(shape)


def _table(
    setting: tuple[float, float],
    hits: np.ndarray,
    evidence: np.ndarray,
    accuracy: np.ndarray,
    nll: np.ndarray,
) -> tuple[Row, ...]:
    """The rows of the published setting, and of the one that was chosen by tuning."""
    rows: list[Row] = []
    for i, label in enumerate(("", ", tuned")):
        var, scale = (PUBLISHED, setting)[i]
        note = f"prior variance {var:g}, initial weights x {scale:g}"
        published, error = (None, None) if i else REFERENCE
        rows += [
            Row(f"accuracy, before learning{label}", *mean_se(hits[i].mean(axis=1)), published, error, note),
            Row(f"NLL in nats, before learning{label}", *mean_se(-evidence[i].mean(axis=1))),
            Row(f"test accuracy at T{label}", *mean_se(accuracy[i, :, -1])),
            Row(f"test NLL in nats at T{label}", *mean_se(nll[i, :, -1])),
        ]
    return tuple(rows)


def _series(hits: np.ndarray, accuracy: np.ndarray, nll: np.ndarray) -> Arrays:
    """Means over streams and their standard errors, at every fifth label."""
    count = hits.shape[1]
    series = {"t": np.arange(EVERY, STEPS + 1, EVERY)}
    for i, label in enumerate(("published", "tuned")):
        running = hits[i].reshape(count, -1, EVERY).mean(axis=2)
        for name, values in {"test_accuracy": accuracy[i], "test_nll": nll[i], "accuracy": running}.items():
            series[f"{name}_{label}"] = values.mean(axis=0)
            series[f"{name}_{label}_se"] = values.std(axis=0, ddof=1) / np.sqrt(count)
    return series


def _settings(setting: tuple[float, float], tuning_nll: list[float]) -> dict[str, Json]:
    names = ("prior_var", "init_scale")
    return {
        "steps": STEPS,
        "noise": NOISE,
        "network": "2-5-5-1, sin, 51 parameters",
        "learner": "extended Kalman filter, full covariance, Bernoulli likelihood",
        "published_setting": dict(zip(names, PUBLISHED, strict=True)),
        "tuned_setting": dict(zip(names, setting, strict=True)),
        "tuning": [
            {"prior_var": var, "init_scale": scale, "nll": value}
            for (var, scale), value in zip(GRID, tuning_nll, strict=True)
        ],
        "test_points": TEST_POINTS,
        "dtype": "float32",
    }


def _seeds(seed: int, count: int) -> dict[str, Json]:
    return {
        "scored": f"numpy.random.default_rng([{seed}, {SCORED}, i]), i = 0..{count - 1}",
        "tuning": f"numpy.random.default_rng([{seed}, {TUNING}, i]), i = 0..{TUNING_SEEDS - 1}; not scored",
        "test": f"numpy.random.default_rng([{seed}, {TEST}]); scored along the way, never tuned on",
        "initial weights": f"jax.random.fold_in(jax.random.key({seed}), purpose), split over streams",
        "figure": "the surface of scored stream i = 0, tuned",
    }
