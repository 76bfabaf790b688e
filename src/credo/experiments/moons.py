"""Two moons: a neural classifier with a full covariance learns from 200 labels, each seen once.

The network 2-5-5-1 (sine, 51 parameters) has a Bernoulli likelihood; the learner is the extended Kalman
filter. Each label is predicted before it is learned ("test, then train"), and 1,000 test points are scored
along the way.

Two settings are scored. *Published*: prior variance 1, initial weights N(0, 1 / fan-in). *Tuned*: the prior
variance and the factor on the initial weights that give the best log evidence on other streams, which are
not scored.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.experiments.moons_figure import draw
from credo.experiments.records import Outcome, Progress, Row, Size, mean_se

__all__ = ["Streams", "make_moons", "make_streams", "run"]

STEPS, EVERY, TEST_POINTS, NOISE = 200, 5, 1000, 0.2
SEEDS = {"quick": 20, "full": 100}
TUNING_SEEDS = 20
PANELS = (10, 50, 100, 200)
GRID = [(var, scale) for var in (0.3, 1.0, 3.0) for scale in (1.0, 1.5, 2.0, 2.5)]
PUBLISHED = (1.0, 1.0)
REFERENCE = {"published": 0.877, "published_se": 0.007}  # 20 streams, a correct EKF at PUBLISHED
SCORED, TUNING, TEST = range(3)  # what a stream of random numbers is for

NET = credo.MLP(outputs=1, hidden=(5, 5), activation="sin")
LEARNER = credo.extended_kalman(credo.Model(NET, credo.Bernoulli()))


def make_moons(rng: np.random.Generator, count: int, noise: float = NOISE) -> tuple[np.ndarray, np.ndarray]:
    """Two interleaving half circles, in random order: points (count, 2) and labels 0 or 1 (count,).

    Args:
        rng: Draws the order and the noise.
        count: How many points; one half each.
        noise: The standard deviation of the noise in each coordinate.
    """
    outer, inner = np.linspace(0, np.pi, count // 2), np.linspace(0, np.pi, count - count // 2)
    x = np.concatenate(
        [np.stack([np.cos(outer), np.sin(outer)], 1), np.stack([1 - np.cos(inner), 0.5 - np.sin(inner)], 1)]
    )
    y = np.repeat([0, 1], [outer.size, inner.size])
    order = rng.permutation(count)
    return (x[order] + noise * rng.normal(size=x.shape)).astype(np.float32), y[order].astype(np.float32)


class Streams(NamedTuple):
    """A stream: initial parameters, x (200, 2), y (200,); or several, with a leading axis everywhere."""

    params: Any
    x: np.ndarray
    y: np.ndarray


def make_streams(seed: int, purpose: int, count: int) -> Streams:
    """Fresh streams for a purpose: `SCORED` or `TUNING`."""
    data = [make_moons(np.random.default_rng([seed, purpose, index]), STEPS) for index in range(count)]
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), purpose), count)
    return Streams(jax.vmap(_initial)(keys), np.stack([x for x, _ in data]), np.stack([y for _, y in data]))


def _initial(key: jax.Array) -> Any:
    """Weights N(0, 1 / fan-in), biases 0: those of the network itself."""
    return NET.init(key, (2,))


def _prior(setting: jax.Array, params: Any) -> Any:
    return LEARNER.init(jax.tree.map(lambda leaf: setting[1] * leaf, params), var=setting[0])


@jax.jit
def _tune(grid: jax.Array, streams: Streams) -> jax.Array:
    """The mean log evidence of a label, for each setting and stream (settings, streams)."""

    def one(setting: jax.Array, stream: Streams) -> jax.Array:
        belief = _prior(setting, stream.params)
        return jnp.mean(credo.run(LEARNER, belief, stream.x, stream.y)[1].log_evidence)

    return jax.vmap(lambda setting: jax.vmap(functools.partial(one, setting))(streams))(grid)


@jax.jit
def _score(settings: jax.Array, streams: Streams, test: tuple[jax.Array, jax.Array]) -> dict[str, Any]:
    """All settings on all streams: log evidences; test scores and beliefs at every fifth step."""
    test_x, test_y = test

    def chunk(belief: Any, rows: Any) -> tuple[Any, dict[str, Any]]:
        belief, trace = credo.run(LEARNER, belief, *rows)
        log_prob = LEARNER.forecast_rows(belief, test_x).log_prob(test_y)
        hits, nll = jnp.mean(log_prob > math.log(0.5)), -jnp.mean(log_prob)
        return belief, {"log_evidence": trace.log_evidence, "accuracy": hits, "nll": nll, "belief": belief}

    def one(setting: jax.Array, stream: Streams) -> dict[str, Any]:
        chunks = (stream.x.reshape(-1, EVERY, 2), stream.y.reshape(-1, EVERY))
        return jax.lax.scan(chunk, _prior(setting, stream.params), chunks)[1]

    return jax.vmap(lambda setting: jax.vmap(functools.partial(one, setting))(streams))(settings)


@jax.jit
def _surface(beliefs: Any, points: jax.Array) -> jax.Array:
    """The predictive probability of label 1 at each point, for beliefs with a leading axis."""
    return jax.vmap(lambda belief: LEARNER.forecast_rows(belief, points).probs[:, 1])(beliefs)


def run(size: Size, seed: int, progress: Progress) -> Outcome:
    """Tune on some streams, score on others, all of them at once."""
    count = SEEDS[size]
    progress(0.0, f"tuning {len(GRID)} settings on {TUNING_SEEDS} streams")
    grid = np.array(GRID, np.float32)
    tuned_on = -np.asarray(_tune(grid, make_streams(seed, TUNING, TUNING_SEEDS)), np.float64)
    tuning_nll = tuned_on.mean(axis=1)
    best = int(np.argmin(tuning_nll))

    progress(0.4, f"scoring 2 settings on {count} other streams")
    given = make_streams(seed, SCORED, count)
    test = make_moons(np.random.default_rng([seed, TEST]), TEST_POINTS)
    scored = _score(np.array([PUBLISHED, GRID[best]], np.float32), given, test)
    evidence = np.asarray(scored["log_evidence"], np.float64).reshape(2, count, STEPS)
    hits = evidence > math.log(0.5)  # the label had more than half of the probability: it was predicted
    accuracy, nll = (np.asarray(scored[name], np.float64) for name in ("accuracy", "nll"))

    progress(0.9, "mapping the decision surface")
    side = np.stack([np.linspace(-1.75, 2.75, 100), np.linspace(-1.5, 2.0, 100)]).astype(np.float32)
    points = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)
    taken = np.array(PANELS) // EVERY - 1
    surface = np.asarray(_surface(jax.tree.map(lambda leaf: leaf[1, 0][taken], scored["belief"]), points))

    rows: list[Row] = []
    for i, label in enumerate(("", ", tuned")):
        var, scale = (PUBLISHED, GRID[best])[i]
        note = f"prior variance {var:g}, initial weights x {scale:g}"
        reference: dict[str, Any] = {} if i else REFERENCE
        rows += [
            Row(f"accuracy, before learning{label}", *mean_se(hits[i].mean(axis=1)), **reference, note=note),
            Row(f"NLL in nats, before learning{label}", *mean_se(-evidence[i].mean(axis=1))),
            Row(f"test accuracy at T{label}", *mean_se(accuracy[i, :, -1])),
            Row(f"test NLL in nats at T{label}", *mean_se(nll[i, :, -1])),
        ]
    series = {"t": np.arange(EVERY, STEPS + 1, EVERY)}
    for i, label in enumerate(("published", "tuned")):
        running = hits[i].reshape(count, -1, EVERY).mean(axis=2)
        for name, values in {"test_accuracy": accuracy[i], "test_nll": nll[i], "accuracy": running}.items():
            series[f"{name}_{label}"] = values.mean(axis=0)
            series[f"{name}_{label}_se"] = values.std(axis=0, ddof=1) / np.sqrt(count)
    arrays = {
        "test_accuracy": accuracy,
        "surface": surface.reshape(len(PANELS), 100, 100),
        "surface_x": side[0],
        "surface_y": side[1],
        "panels": np.array(PANELS),
        "x": given.x[0],
        "y": given.y[0],
        "grid": grid,
        "tuning_nll": tuning_nll,
    }
    settings = {
        "steps": STEPS,
        "noise": NOISE,
        "network": "2-5-5-1, sin, 51 parameters",
        "learner": "extended Kalman filter, full covariance, Bernoulli likelihood",
        "published_setting": dict(zip(("prior_var", "init_scale"), PUBLISHED, strict=True)),
        "tuned_setting": dict(zip(("prior_var", "init_scale"), GRID[best], strict=True)),
        "tuning": [
            {"prior_var": var, "init_scale": scale, "nll": value}
            for (var, scale), value in zip(GRID, tuning_nll.tolist(), strict=True)
        ],
        "test_points": TEST_POINTS,
        "dtype": "float32",
    }
    seeds = {
        "scored": f"numpy.random.default_rng([{seed}, {SCORED}, i]), i = 0..{count - 1}",
        "tuning": f"numpy.random.default_rng([{seed}, {TUNING}, i]), i = 0..{TUNING_SEEDS - 1}; not scored",
        "test": f"numpy.random.default_rng([{seed}, {TEST}]); scored along the way, never tuned on",
        "initial weights": f"jax.random.fold_in(jax.random.key({seed}), purpose), split over streams",
        "figure": "the surface of scored stream i = 0, tuned",
    }
    return Outcome(tuple(rows), settings, seeds, series, arrays, lambda: draw(series, arrays))
