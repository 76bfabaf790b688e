"""Tracking with a Kalman filter: position and velocity in the plane, from noisy positions.

The model is exact (see `kf_tracking_world`), so the filter must halve the error of the raw observations and
know how far off it is.
"""

from __future__ import annotations

import math

import numpy as np

from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.portions import Progress
from credo_papers.engine.quantities import Row, mean_se, rms_se
from credo_papers.kalman.kf_tracking_figure import draw
from credo_papers.kalman.kf_tracking_learner import make_learner, track
from credo_papers.kalman.kf_tracking_plan import PUBLISHED, RADIUS_90, RUNS
from credo_papers.kalman.kf_tracking_world import (
    MOVE_VAR,
    NOISE_VAR,
    START,
    START_VAR,
    STEPS,
    TRANSITION,
    simulate,
)

__all__ = ["run"]


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Filter many simulated tracks at once, and score the filtered positions."""
    count = RUNS[size]
    progress(0.0, f"simulating {count} tracks")
    truth, observations = simulate(seed, count)
    learner = make_learner()
    progress(0.2, f"filtering {count} tracks")
    beliefs = track(learner, learner.init(START, var=START_VAR), observations)
    means, covs = (np.asarray(array, np.float64) for array in beliefs)

    gap = truth[:, :, :2] - means[:, :, :2]
    squares = np.sum(gap**2, axis=2)
    raw_squares = np.sum((truth[:, :, :2] - observations) ** 2, axis=2)
    plane = covs[:, :, :2, :2]
    distances = np.einsum("nti,nti->nt", gap, np.linalg.solve(plane, gap[..., None])[..., 0])
    inside = distances <= RADIUS_90**2
    series = {
        "t": np.arange(1, STEPS + 1),
        **{f"truth_{axis}": truth[0, :, i] for i, axis in enumerate("xy")},
        **{f"observed_{axis}": observations[0, :, i] for i, axis in enumerate("xy")},
        **{f"filtered_{axis}": means[0, :, i] for i, axis in enumerate("xy")},
        "rms_filtered": np.sqrt(squares.mean(axis=0)),
        "rms_raw": np.sqrt(raw_squares.mean(axis=0)),
        "rms_claimed": np.sqrt(np.trace(plane[0], axis1=1, axis2=2)),
        "inside_90": inside.mean(axis=0),
    }
    settings = {
        "tracks": count,
        "steps": STEPS,
        "transition": TRANSITION.tolist(),
        "transition_noise": MOVE_VAR,
        "observation_noise": NOISE_VAR,
        "start": START.tolist(),
        "start_var": START_VAR,
        "dtype": "float32",
    }
    seeds = {"data": f"numpy.random.default_rng([{seed}, 0])", "figure": "the first track"}
    rows = _table(squares, raw_squares, inside, plane[0])
    arrays = {"filtered_cov": plane[0]}
    return Outcome(rows, settings, seeds, series, arrays, lambda: draw(series, plane[0], count))


def _table(
    squares: np.ndarray, raw_squares: np.ndarray, inside: np.ndarray, plane: np.ndarray
) -> tuple[Row, ...]:
    """The rows, from squared errors (N, 15), hits of the ellipses (N, 15) and covariances (15, 2, 2)."""
    sd = np.sqrt(plane[:, 0, 0])
    tracks = f"{len(squares)} tracks of {STEPS} steps; published from 500"
    filtered = rms_se(squares.mean(axis=1))
    raw = rms_se(raw_squares.mean(axis=1))
    claim = math.sqrt(np.trace(plane, axis1=1, axis2=2).mean())
    first = "sd of a coordinate, first step"
    return (
        Row("position rms, filtered", *filtered, PUBLISHED["filtered"], note=tracks),
        Row(
            "position rms, raw observations",
            *raw,
            PUBLISHED["raw"],
            note="the square root of 2 in expectation",
        ),
        Row("position rms, claimed by the filter", claim, note="exact: its covariances need no data"),
        Row(
            "truth inside the 90% ellipse",
            *mean_se(inside.mean(axis=1)),
            note="0.9 where uncertainty is honest",
        ),
        Row(first, float(sd[0]), published=PUBLISHED["first sd"], note="the same whatever the data"),
        Row("sd of a coordinate, last step", float(sd[-1]), published=PUBLISHED["last sd"]),
    )
