"""How far each cell of the grid stays from the exact posterior: what `bong-linreg` and `bong-logreg` share.

D = 10 weights, one row at a time. The divergence KL(q_t || p_t) from a cell's Gaussian q_t to the exact
posterior p_t is measured at a few times: in closed form for linear regression; for logistic regression up to
the evidence of p_t, which is found by importance sampling from a Student distribution around the Laplace
approximation, while the expectation of the log-likelihood under q_t is one Gauss-Hermite integral a row.
Source: Jones, Chang & Murphy 2024 (BONG, arXiv 2405.19681), the linear and logistic regression experiments.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.experiments.cells import Cells
from credo.experiments.posteriors import gaussian_divergence, logistic_divergence, logistic_evidence
from credo.experiments.records import Outcome, Progress, Row, Size, mean_se
from credo.experiments.sweep import Setting, portion, sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CELLS", "RATES", "build", "run", "streams"]

D, RANK, SAMPLES, ITERATIONS = 10, 3, 100, 10
NOISE_VAR = 1.0
FAMILIES = ("full", "diagonal", "low-rank")
RATES = {
    "bong": (1.0,),
    "blr": (0.1, 0.3, 1.0),
    "bog": (1e-3, 1e-2, 1e-1, 1.0, 10.0),
    "bbb": (1e-3, 1e-2, 1e-1, 1.0, 10.0),
}
CELLS = tuple(
    itertools.product(FAMILIES, ("lin-hess", "lin-ef", "mc-hess", "mc-ef"), ("bong", "blr", "bog", "bbb"))
)
_QUICK = (*(cell for cell in CELLS if cell[:2] == ("full", "lin-hess")), ("full", "mc-ef", "bong"))
_VERSION = 1


def streams(task: str, seed: int, count: int, first: int, length: int) -> dict[str, np.ndarray]:
    """Data of `count` seeds: x (n, T, D), y (n, T) and the true weights w (n, D), all standard normal.

    Args:
        task: "linreg" (noise variance 1) or "logreg".
        seed: of the experiment.
        count: how many streams.
        first: 0 for scored streams; those for tuning begin elsewhere.
        length: T.
    """
    made: dict[str, list[np.ndarray]] = {"x": [], "y": [], "w": []}
    for k in range(first, first + count):
        rng = np.random.default_rng([seed, k])
        w, x = rng.normal(size=D), rng.normal(size=(length, D))
        eta = x @ w
        noisy = eta + NOISE_VAR**0.5 * rng.normal(size=length)
        y = noisy if task == "linreg" else (rng.uniform(size=length) < 1 / (1 + np.exp(-eta))).astype(float)
        for key, value in (("x", x), ("y", y), ("w", w)):
            made[key].append(value)
    return {key: np.stack(value) for key, value in made.items()} | {"key": np.arange(first, first + count)}


def _linear(w: jax.Array, x: jax.Array) -> jax.Array:
    return x @ w


def build(program: Mapping[str, Any]) -> Any:
    """The run of one stream under one cell: means and dense covariances at the checkpoints."""
    family, curvature, rule = program["cell"]
    likelihood: Any = credo.Normal(NOISE_VAR) if program["task"] == "linreg" else credo.Bernoulli()
    kept: Any = {"full": credo.Full(), "diagonal": credo.Diagonal(), "low-rank": credo.LowRank(RANK)}[family]
    draws = {
        "mc-ef": credo.MonteCarloEmpiricalFisher(SAMPLES),
        "mc-hess": credo.MonteCarloHessian(SAMPLES, rank=RANK),
    }
    measured: Any = draws.get(curvature, curvature)
    times = jnp.asarray(program["times"])

    def one(values: dict[str, jax.Array], stream: dict[str, jax.Array], shared: Any) -> dict[str, jax.Array]:
        options: dict[str, Any] = {} if rule == "bong" else {"learning_rate": values["rate"]}
        if rule in ("blr", "bbb"):
            options["iterations"] = ITERATIONS
        learner = getattr(credo, rule)(credo.Model(_linear, likelihood), kept, measured, **options)
        belief = learner.init(jnp.zeros(D), var=1.0)
        key = jax.random.key(stream["key"])

        def step(belief: Any, row: Any) -> Any:
            belief, info = learner.step(belief, *row, key=key)
            return belief, (belief.mean, belief.cov.dense(), info.ok)

        _, (means, covs, ok) = jax.lax.scan(step, belief, (stream["x"], stream["y"]))
        return {"mean": means[times - 1], "cov": covs[times - 1], "ok": jnp.mean(ok)}

    return one


def _divergences(task: str, data: dict[str, np.ndarray], times: Any, evidence: Any, made: Any) -> np.ndarray:
    """KL(q_t || p_t), (seeds, times)."""
    out = np.zeros((len(data["x"]), len(times)))
    for n, k in itertools.product(range(out.shape[0]), range(out.shape[1])):
        x, y = data["x"][n, : times[k]], data["y"][n, : times[k]]
        mean, cov = made["mean"][n, k], made["cov"][n, k]
        if task == "linreg":
            prec = np.eye(D) + x.T @ x / NOISE_VAR
            out[n, k] = gaussian_divergence(mean, cov, np.linalg.solve(prec, x.T @ y / NOISE_VAR), prec)
        else:
            out[n, k] = logistic_divergence(mean, cov, x, y, evidence[n, k])
    return out


def _evidences(task: str, data: dict[str, np.ndarray], times: Any) -> tuple[np.ndarray, float]:
    """log Z of every stream and time, and the largest standard error; zeros for linear regression."""
    shape = (len(data["x"]), len(times))
    if task == "linreg":
        return np.zeros(shape), 0.0
    pairs = itertools.product(range(shape[0]), times)
    found = [logistic_evidence(data["x"][n, :t], data["y"][n, :t], seed=n) for n, t in pairs]
    return np.array([value for value, _ in found]).reshape(shape), max(se for _, se in found)


def run(task: str, size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run the grid; see the module.

    Args:
        task: "linreg" or "logreg".
        size: "full" is all 48 cells, 500 rows and 10 streams; "quick" 5 cells, 100 rows and 3 streams.
        seed: of the streams; those for tuning are others.
        progress, cells: as for every experiment.
    """
    full = size == "full"
    grid, length, count, tuners = (CELLS, 500, 10, 3) if full else (_QUICK, 100, 3, 2)
    times = [t for t in (10, 30, 100, 200, 300, 400, 500) if t <= length]
    scored, tuning = streams(task, seed, count, 0, length), streams(task, seed, tuners, 1000, length)
    given = {"task": task, "seed": seed, "length": length, "version": _VERSION}
    rows, series, rates, rejected = [], {"t": np.array(times)}, {}, {}
    with jax.enable_x64(True):
        floor, se = _evidences(task, scored, times)
        tuned_floor, _ = _evidences(task, tuning, times)
        for k, cell in enumerate(grid):
            name = f"{cell[2]} {cell[1]} {cell[0]}"
            program = {"cell": list(cell), "task": task, "times": times}
            options = [Setting(f"{name} {rate:g}", program, {"rate": rate}) for rate in RATES[cell[2]]]
            part = portion(progress, k / len(grid), (k + 0.7) / len(grid), f"{name}: tuning ")
            best = 0
            if len(options) > 1:
                tried = sweep(
                    f"bong-{task}",
                    options,
                    build,
                    tuning,
                    given={**given, "part": "tuning"},
                    cells=cells,
                    progress=part,
                )
                losses = [
                    float(np.mean(_divergences(task, tuning, times, tuned_floor, tried[o.name])[:, -1]))
                    for o in options
                ]
                best = int(np.nanargmin(np.where(np.isfinite(losses), losses, np.inf)))
            part = portion(progress, (k + 0.7) / len(grid), (k + 1) / len(grid), f"{name}: ")
            made = sweep(
                f"bong-{task}",
                [options[best]],
                build,
                scored,
                given={**given, "part": "scored"},
                cells=cells,
                progress=part,
            )[options[best].name]
            divergence = _divergences(task, scored, times, floor, made)
            rates[name], rejected[name] = RATES[cell[2]][best], float(1 - made["ok"].mean())
            middle, error = mean_se(divergence[:, -1])
            note = f"at t = {times[-1]}, rate {rates[name]:g}" if cell[2] != "bong" else f"at t = {times[-1]}"
            if rejected[name]:
                note += f"; {rejected[name]:.1%} of updates rejected"
            rows.append(Row(f"KL, {name}", middle, error, None, None, note))
            series[name] = divergence.mean(axis=0)
            series[f"{name} se"] = divergence.std(axis=0, ddof=1) / count**0.5
    settings = {
        **given,
        "D": D,
        "rank": RANK,
        "samples": SAMPLES,
        "iterations": ITERATIONS,
        "noise variance": NOISE_VAR if task == "linreg" else None,
        "learning rates, tuned on other streams": rates,
        "rejected updates": rejected,
        "largest standard error of log Z": se,
    }
    seeds = {"scored streams": [0, count], "tuning streams": [1000, 1000 + tuners]}
    from credo.experiments.bong_exact_figure import draw

    def figure() -> Figure:
        return draw(task, series)

    return Outcome(tuple(rows), settings, seeds, series, {"evidence": floor}, figure)
