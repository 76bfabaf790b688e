"""Inverse dynamics of a robot arm, 21 inputs and a network of 881 weights, one pass over 2,000 rows.

Where the SARCOS measurements are in the data folder (`sarcos/sarcos_inv.mat`, first torque), they are used;
else a simulated arm of the same shape, which the table names. The noise variance is .1 Var(y), as published.
Every row is scored by the plug-in forecast of 1,000 test rows. Learning rate and prior variance are chosen
per learner on other data orders, other initial weights and other rows. Source: Jones, Chang & Murphy 2024
(BONG, arXiv 2405.19681).
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.errors import DataError
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Row, Size, mean_se
from credo.experiments.robot_arm import motions
from credo.experiments.sweep import Setting, portion, sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LEARNERS", "build", "measurements", "run"]

RANK, SAMPLES, NOISE_SHARE = 10, 100, 0.1
CHECKS = (50, 100, 200, 400, 800, 1200, 1600, 2000)
VARS = (0.03, 0.1, 0.3, 1.0)
SAMPLED_VARS = VARS[:3]  # draws are slow, so their grids are smaller
_BLR, _BBB = (0.1, 0.3, 0.5, 1.0), (1e-4, 1e-3, 1e-2, 1e-1)
# name -> rule, curvature, iterations, learning rates, published plug-in NLPD at T
LEARNERS: dict[str, tuple[str, str, int, tuple[float, ...], float]] = {
    "bong lin-hess": ("bong", "lin-hess", 1, (1.0,), 3.32),
    "blr lin-hess, I = 10": ("blr", "lin-hess", 10, _BLR, 3.29),
    "blr lin-hess, I = 1": ("blr", "lin-hess", 1, (0.25, 0.5, 1.0), 3.28),
    "bbb lin-hess, I = 10": ("bbb", "lin-hess", 10, _BBB, 3.50),
    "bong mc-ef": ("bong", "mc-ef", 1, (1.0,), 4.12),
    "blr mc-ef, I = 10": ("blr", "mc-ef", 10, (0.1, 0.5), 3.45),
}
_VERSION = 1


def measurements(seed: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Inputs (N, 21), targets (N,), and what they are."""
    from credo.datasets.finder import DataFile, Finder

    try:
        found = Finder("sarcos", allow_download=False).read(DataFile("sarcos/sarcos_inv.mat"))
    except DataError:
        return (*motions(seed, 6000), "a simulated arm of the same shape (SARCOS is not at hand)")
    from scipy.io import loadmat

    table = loadmat(io.BytesIO(found.content))["sarcos_inv"].astype(np.float32)
    return table[:, :21], table[:, 21], "SARCOS, first torque"


def build(program: Mapping[str, Any]) -> Any:
    """One pass of one learner: the plug-in NLPD at the checkpoints, before any row first."""
    rule, curvature, iterations = program["rule"], program["curvature"], program["iterations"]
    measured: Any = credo.MonteCarloEmpiricalFisher(SAMPLES) if curvature == "mc-ef" else curvature
    net = credo.MLP(1, (20, 20), activation="gelu")
    times = program["times"]

    def one(values: dict[str, jax.Array], seed: dict[str, jax.Array], shared: Any) -> dict[str, jax.Array]:
        x, y, x_test, y_test = shared
        options: dict[str, Any] = {} if rule == "bong" else {"learning_rate": values["rate"]}
        if rule in ("blr", "bbb"):
            options["iterations"] = iterations
        model = credo.Model(net, credo.Normal(NOISE_SHARE))
        learner = getattr(credo, rule)(model, credo.LowRank(RANK), measured, **options)
        key = jax.random.key(seed["key"])
        belief = learner.init(net.init(key, (21,)), var=values["var"])

        def score(belief: Any) -> jax.Array:
            return -jnp.mean(learner.forecast_rows(belief, x_test, method="plugin").log_prob(y_test))

        def step(belief: Any, row: jax.Array) -> Any:
            belief, info = learner.step(belief, x[row], y[row], key=key)
            return belief, info.ok

        losses, oks, start = [score(belief)], [], 0
        for time in times:
            belief, ok = jax.lax.scan(step, belief, seed["order"][start:time])
            losses, start = [*losses, score(belief)], time
            oks.append(ok)
        return {"nlpd": jnp.stack(losses), "ok": jnp.mean(jnp.concatenate(oks))}

    return one


def _orders(seed: int, first: int, count: int, pool: np.ndarray, length: int) -> dict[str, np.ndarray]:
    """Data orders (n, T) among the rows `pool`, and keys."""
    rngs = [np.random.default_rng([seed, first + k]) for k in range(count)]
    return {
        "order": np.stack([rng.permutation(pool)[:length] for rng in rngs]),
        "key": np.arange(first, first + count),
    }


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run the six learners; see the module.

    Args:
        size: "full" is 2,000 rows and 10 orders; "quick" 200 rows, 3 orders and two learners.
        seed: of the orders, and of the simulated arm.
        progress, cells: as for every experiment.
    """
    full = size == "full"
    length, count, tuners = (2000, 10, 2) if full else (200, 3, 2)
    names = list(LEARNERS) if full else ["bong lin-hess", "blr lin-hess, I = 1"]
    times = [t for t in CHECKS if t <= length]
    x, y, source = measurements(seed)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(x))
    test, check, train = rows[:1000], rows[1000:1500], rows[1500:]
    centre, scale = x[train].mean(axis=0), x[train].std(axis=0)
    mean, sd = float(y[train].mean()), float(y[train].std())
    x, y = (x - centre) / scale, (y - mean) / sd
    scored = _orders(seed, 0, count, train, length)
    tuning = _orders(seed, 1000, tuners, train, length)
    given = {"seed": seed, "length": length, "source": source, "version": _VERSION}
    table, series, chosen = [], {"t": np.array([0, *times])}, {}
    for k, name in enumerate(names):
        rule, curvature, iterations, rates, published = LEARNERS[name]
        program = {"rule": rule, "curvature": curvature, "iterations": iterations, "times": times}
        pairs = list(itertools.product(rates, SAMPLED_VARS if curvature == "mc-ef" else VARS))
        options = [Setting(f"{name} {r:g} {v:g}", program, {"rate": r, "var": v}) for r, v in pairs]
        tried = sweep(
            "bong-sarcos",
            options,
            build,
            tuning,
            (x, y, x[check], y[check]),
            given={**given, "part": "tuning"},
            cells=cells,
            progress=portion(progress, k / len(names), (k + 0.7) / len(names), f"{name}: tuning "),
        )
        losses = np.array([tried[option.name]["nlpd"][:, -1].mean() for option in options])
        best = int(np.argmin(np.where(np.isfinite(losses), losses, np.inf)))
        made = sweep(
            "bong-sarcos",
            [options[best]],
            build,
            scored,
            (x, y, x[test], y[test]),
            given={**given, "part": "scored"},
            cells=cells,
            progress=portion(progress, (k + 0.7) / len(names), (k + 1) / len(names), f"{name}: "),
        )[options[best].name]
        nlpd = np.asarray(made["nlpd"], np.float64) + np.log(sd)  # in the target's own unit
        chosen[name] = {
            "learning rate": pairs[best][0] if rule != "bong" else None,
            "prior variance": pairs[best][1],
        }
        rejected = float(1 - made["ok"].mean())
        note = f"prior variance {pairs[best][1]:g}" + ("" if rule == "bong" else f", rate {pairs[best][0]:g}")
        if rejected:
            note += f"; {rejected:.1%} of updates rejected"
        same = full and source.startswith("SARCOS")
        beside = published if same else f"{published:g} (SARCOS, T = 2,000)"
        table.append(Row(f"plug-in NLPD, {name}", *mean_se(nlpd[:, -1]), beside, None, note))
        series[name] = nlpd.mean(axis=0)
        series[f"{name} se"] = nlpd.std(axis=0, ddof=1) / count**0.5
    settings = {
        **given,
        "model": "MLP 21-20-20-1, gelu",
        "rank": RANK,
        "samples": SAMPLES,
        "noise variance": f"{NOISE_SHARE} Var(y)",
        "chosen on other orders, initial weights and rows": chosen,
    }
    seeds = {"scored orders": [0, count], "tuning orders": [1000, 1000 + tuners]}
    from credo.experiments.bong_sarcos_figure import draw

    def figure() -> Figure:
        return draw(series, names, source)

    return Outcome(tuple(table), settings, seeds, series, {}, figure)
