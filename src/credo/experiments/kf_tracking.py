"""Tracking with a Kalman filter: position and velocity in the plane, of which noisy positions are seen.

    z_0 ~ N([8, 10, 1, 0], 0.1 I)      the first state, observed without a move before it
    z_t = F z_{t-1} + N(0, 0.001 I)    F adds the velocity to the position
    y_t = [I 0] z_t + N(0, I)          15 observations

The model is exact, so the filter must halve the error of the raw observations and know how far off it is.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.experiments.records import Outcome, Progress, Row, Size, mean_se, rms_se
from credo.plots import PALETTE, ellipse, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["make_learner", "run", "simulate", "track"]

STEPS = 15
RUNS = {"quick": 500, "full": 10_000}
TRANSITION = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32)
OBSERVATION = np.eye(2, 4, dtype=np.float32)
START, START_VAR = np.array([8, 10, 1, 0], np.float32), 0.1
MOVE_VAR, NOISE_VAR = 1e-3, 1.0
LEVEL = 0.9
RADIUS_90 = math.sqrt(-2.0 * math.log(1.0 - LEVEL))
"""The radius, in standard deviations, of the disc that holds 90% of a standard normal in the plane."""


def simulate(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """True states (count, 15, 4) and observations (count, 15, 2)."""
    rng = np.random.default_rng([seed, 0])
    states = [START + math.sqrt(START_VAR) * rng.normal(size=(count, 4))]
    for _ in range(STEPS - 1):
        states.append(states[-1] @ TRANSITION.T + math.sqrt(MOVE_VAR) * rng.normal(size=(count, 4)))
    truth = np.stack(states, axis=1)
    seen = truth @ OBSERVATION.T + math.sqrt(NOISE_VAR) * rng.normal(size=(count, STEPS, 2))
    return truth.astype(np.float32), seen.astype(np.float32)


def make_learner() -> credo.RecursiveLearner:
    """The Kalman filter of the model above."""
    return credo.kalman(TRANSITION, OBSERVATION, MOVE_VAR, NOISE_VAR)


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, None, 0))
def track(learner: Any, prior: Any, seen: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Filtered means (15, 4) and covariances (15, 4, 4); no move before the first observation."""
    first, _ = learner.update(prior, None, seen[0])

    def body(belief: Any, y: jax.Array) -> tuple[Any, Any]:
        belief, _ = learner.step(belief, None, y)
        return belief, (belief.mean, belief.cov.dense())

    _, (means, covs) = jax.lax.scan(body, first, seen[1:])
    return jnp.concatenate([first.mean[None], means]), jnp.concatenate([first.cov.dense()[None], covs])


def run(size: Size, seed: int, progress: Progress) -> Outcome:
    """Filter many simulated tracks at once; score the filtered positions."""
    count = RUNS[size]
    progress(0.0, f"simulating {count} tracks")
    truth, seen = simulate(seed, count)
    learner = make_learner()
    progress(0.2, f"filtering {count} tracks")
    filtered = track(learner, learner.init(START, var=START_VAR), seen)
    means, covs = (np.asarray(array, np.float64) for array in filtered)

    gap = truth[:, :, :2] - means[:, :, :2]
    squares = np.sum(gap**2, axis=2)
    raw_squares = np.sum((truth[:, :, :2] - seen) ** 2, axis=2)
    plane = covs[:, :, :2, :2]
    distances = np.einsum("nti,nti->nt", gap, np.linalg.solve(plane, gap[..., None])[..., 0])
    inside = distances <= RADIUS_90**2
    sd = np.sqrt(plane[0, :, 0, 0])
    ours, se = rms_se(squares.mean(axis=1))
    raw, raw_se = rms_se(raw_squares.mean(axis=1))
    claimed = math.sqrt(np.trace(plane[0], axis1=1, axis2=2).mean())
    rows = (
        Row(
            "position rms, filtered",
            ours,
            se,
            0.767,
            note=f"{count} tracks of {STEPS} steps; published from 500",
        ),
        Row("position rms, raw observations", raw, raw_se, 1.413, note="the square root of 2 in expectation"),
        Row("position rms, claimed by the filter", claimed, note="exact: its covariances need no data"),
        Row(
            "truth inside the 90% ellipse",
            *mean_se(inside.mean(axis=1)),
            note="0.9 where uncertainty is honest",
        ),
        Row(
            "sd of a coordinate, first step", float(sd[0]), published=0.30, note="the same whatever the data"
        ),
        Row("sd of a coordinate, last step", float(sd[-1]), published=0.49),
    )
    series = {
        "t": np.arange(1, STEPS + 1),
        **{f"truth_{axis}": truth[0, :, i] for i, axis in enumerate("xy")},
        **{f"observed_{axis}": seen[0, :, i] for i, axis in enumerate("xy")},
        **{f"filtered_{axis}": means[0, :, i] for i, axis in enumerate("xy")},
        "rms_filtered": np.sqrt(squares.mean(axis=0)),
        "rms_raw": np.sqrt(raw_squares.mean(axis=0)),
        "rms_claimed": np.sqrt(np.trace(plane[0], axis1=1, axis2=2)),
        "inside_90": inside.mean(axis=0),
    }
    arrays = {"filtered_cov": plane[0]}
    settings = {
        "tracks": count,
        "steps": STEPS,
        "transition": TRANSITION.tolist(),
        "transition_cov": MOVE_VAR,
        "observation_cov": NOISE_VAR,
        "start": START.tolist(),
        "start_var": START_VAR,
        "dtype": "float32",
    }
    seeds = {"data": f"numpy.random.default_rng([{seed}, 0])", "figure": "the first track"}
    return Outcome(rows, settings, seeds, series, arrays, lambda: draw(series, plane[0], count))


def draw(series: dict[str, np.ndarray], plane: np.ndarray, count: int) -> Figure:
    """One track with its ellipses, and the error against time over all tracks."""
    figure = new_figure()
    figure.suptitle("Kalman filter tracking: position and velocity from noisy positions")
    layout: Any = [["track", "track"], ["rms", "inside"]]
    top, left, right = figure.subplot_mosaic(layout, height_ratios=[1.25, 1]).values()
    _track(top, series, plane)
    t = series["t"]
    left.plot(t, series["rms_raw"], "s-", color=PALETTE["grey"], ms=5, label="raw observations")
    left.plot(t, series["rms_filtered"], "o-", color=PALETTE["blue"], ms=5, label="filtered")
    left.plot(t, series["rms_claimed"], "--", color=PALETTE["ink"], lw=1.5, label="what the filter claims")
    left.set(title=f"Error over {count:,} tracks", xlabel="step t", ylabel="rms [length]", ylim=(0, 2))
    left.legend(loc="lower right")
    right.axhline(LEVEL, color=PALETTE["ink"], ls="--", lw=1.5, label="if calibrated")
    error = np.sqrt(LEVEL * (1 - LEVEL) / count)
    bars: dict[str, Any] = {"fmt": "o", "color": PALETTE["blue"], "ms": 5, "capsize": 3}
    right.errorbar(t, series["inside_90"], 2 * error, **bars, label="measured ± 2 se")
    right.set(title="Truth inside the 90% ellipse", xlabel="step t", ylabel="fraction", ylim=(0.8, 1.0))
    right.legend(loc="lower right", ncols=2)
    return figure


def _track(axes: Axes, series: dict[str, np.ndarray], plane: np.ndarray) -> None:
    mean = np.stack([series["filtered_x"], series["filtered_y"]], axis=1)
    for t in range(STEPS):
        curve = ellipse(mean[t], plane[t], 2.0)
        label = "_" if t else "2-sd ellipse"
        axes.fill(*curve.T, facecolor=PALETTE["blue"], alpha=0.10, edgecolor="none", label=label)
        axes.plot(*curve.T, color=PALETTE["blue"], lw=0.8, alpha=0.6)
    axes.plot(series["truth_x"], series["truth_y"], "-", color=PALETTE["ink"], lw=2, label="truth")
    seen = (series["observed_x"], series["observed_y"])
    axes.plot(*seen, "x", color=PALETTE["orange"], ms=8, mew=2, label="observed")
    axes.plot(*mean.T, "o-", color=PALETTE["blue"], ms=5, lw=1.5, label="filtered mean")
    axes.set(title="One track", xlabel="x [length]", ylabel="y [length]")
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
