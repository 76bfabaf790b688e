"""The saved forms that `forge.py` forges: for each a good file, its reader, and one use of what was read.

A use is a forecast, a step and another forecast. It gives the numbers that must be finite.
"""

from __future__ import annotations

import functools
import gzip
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

import credo
from credo import bandits
from credo.sessions import ColumnOptions, Session, open_file

ROWS: list[dict[str, Any]] = [
    {"a": float(i % 7), "b": "xy"[i % 2], "when": f"2024-01-{i % 28 + 1:02}", "y": 2.0 * (i % 7) + i % 3}
    for i in range(60)
]
LABELLED = [{**row, "y": "pqr"[i % 3]} for i, row in enumerate(ROWS)]
NET = credo.MLP(1, (4,), "tanh")
MODEL = credo.Model(NET, credo.Normal(0.1))


class Form(NamedTuple):
    """A good file of a format, and how it is read and used.

    `mark` is that of its archive, and empty for tables, which are no archives.
    """

    name: str
    suffix: str
    mark: str
    save: Callable[[Path], object]
    load: Callable[[Path], Any]
    use: Callable[[Any], list[np.ndarray]]


def _finite(*parts: Any) -> list[np.ndarray]:
    """The floating-point arrays in some trees."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(parts)]
    return [leaf for leaf in leaves if leaf.dtype.kind == "f"]


def _spread(sd: Any) -> Any:
    """A standard deviation, which may be infinite, as that of a Student t with two degrees of freedom is."""
    if sd is None:
        return None
    return np.nan_to_num(sd, nan=np.nan, posinf=0.0)


def _session(rows: list[dict[str, Any]], **options: Any) -> Callable[[Path], object]:
    def save(path: Path) -> object:
        session = Session.from_rows(rows, "y", **options)
        session.learn(rows)
        return session.save(path)

    return save


def _use_session(session: Session) -> list[np.ndarray]:
    rows = ROWS if session.regression else LABELLED
    before = session.predict(rows[:4], (0.05, 0.95))
    session.learn(rows[4:8])
    after = session.predict(rows[:4], (0.05, 0.95))
    return _finite([(one.mean, _spread(one.sd), one.probs) for one in (before, after)])


def _save_sklearn(kind: type[Any], rows: list[dict[str, Any]]) -> Callable[[Path], object]:
    def save(path: Path) -> object:
        frame = pd.DataFrame(rows)
        return kind("linear").fit(frame[["a", "b"]], frame["y"]).save(path)

    return save


def _use_sklearn(estimator: Any) -> list[np.ndarray]:
    classes = hasattr(estimator, "predict_proba")
    frame = pd.DataFrame(LABELLED if classes else ROWS)
    x = frame[["a", "b"]]
    y = frame["y"]

    def ask() -> Any:
        if classes:
            return estimator.predict_proba(x[:4])
        mean, sd = estimator.predict(x[:4], return_std=True)
        return mean, _spread(sd)

    before = ask()
    estimator.partial_fit(x[4:8], y[4:8])
    return _finite(before, ask())


def _save_river(kind: type[Any], rows: list[dict[str, Any]]) -> Callable[[Path], object]:
    def save(path: Path) -> object:
        model = kind("linear")
        for row in rows:
            model.learn_one({"a": row["a"], "b": row["b"]}, row["y"])
        return model.save(path)

    return save


def _use_river(model: Any) -> list[np.ndarray]:
    classes = hasattr(model, "predict_proba_one")
    x = {"a": 3.0, "b": "x"}
    y = "p" if classes else 6.0

    def ask() -> Any:
        if classes:
            return list(model.predict_proba_one(x).values())
        told = model.predict_one(x, with_dist=True)
        return told.mu, _spread(told.sigma)

    before = ask()
    model.learn_one(x, y)
    return _finite(before, ask())


def _save_bandit(path: Path) -> object:
    model = credo.Model(credo.Linear(2), credo.Normal(0.5))
    agent = bandits.Agent(credo.bong(model, credo.Full()), arms=2, scale="online", units="online")
    bandit = bandits.Bandit(agent, ["left", "right"], features=4, window=16)
    for i in range(8):
        bandit.reward(bandit.decide({"a": float(i), "c": "uv"[i % 2]}).id, float(i % 2))
    bandit.decide({"a": 1.0})
    return bandit.save(path)


def _use_bandit(bandit: bandits.Bandit) -> list[np.ndarray]:
    numbers = []
    for value in (1.0, 0.0):
        choice = bandit.decide({"a": 2.0, "c": "u"})
        bandit.reward(choice.id, value)
        story = bandit.explain(choice.id)
        numbers += [choice.propensity, *choice.mean.values(), *story.mean.values(), *story.sd.values()]
    return _finite(numbers)


def _save_optimizer(path: Path) -> object:
    best = bandits.Optimizer(
        None, bounds={"rate": (1e-4, 1.0, "log"), "kind": ["a", "b"]}, goal="min", seed=0, initial=3
    )
    for i in range(4):
        point: Any = best.ask()
        best.tell(point, float(np.log10(point["rate"]) + i % 2))
    return best.save(path)


def _use_optimizer(best: bandits.Optimizer) -> list[np.ndarray]:
    first: Any = best.ask()
    best.tell(first, 0.3)
    points: list[Any] = [first, best.ask()]
    numbers = [value for point in points for value in point.values() if isinstance(value, float)]
    return _finite(numbers, best.expect(points))


def _save_operator(**settings: Any) -> Callable[[Path], object]:
    def save(path: Path) -> object:
        operator = credo.flows.Operator(dim=2, width=2, hidden=4, **settings).begin(key=0)
        return credo.flows.save_operator(path, operator)

    return save


@jax.jit
def _transported(operator: Any) -> Any:
    values = jax.random.normal(jax.random.key(0), (32, 2))
    log_weights = jnp.full(32, -jnp.log(32.0))
    bayes = operator.transport(
        operator.params, values, log_weights, lambda z: -jnp.sum((z - 1.0) ** 2) / 2, None, jnp.ones(2)
    )
    return bayes.forward_density(values)


def _use_operator(operator: Any) -> list[np.ndarray]:
    return _finite(_transported(operator))


LEARNERS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "diagonal": lambda: _start(credo.bong(MODEL, credo.Diagonal(), dynamics=credo.OrnsteinUhlenbeck(0.9))),
    "classes": lambda: _start(
        credo.bong(credo.Model(credo.Linear(3), credo.Categorical(3)), credo.Full("dense")),
        credo.Linear(3).init(0, (3,)),
    ),
    "low-rank": lambda: _start(credo.lofi(MODEL, 2)),
    "changes": lambda: _start(credo.RunLength(credo.extended_kalman(MODEL), 0.1, 3)),
    "ensemble": lambda: _start(credo.enkf(MODEL, 5)),
    "adam": lambda: _start(credo.adam(MODEL)),
    "experts": lambda: _start(credo.Experts([credo.sgd(MODEL, rate) for rate in (0.1, 0.2)])),
    "particles": lambda: _start(credo.particle_filter(MODEL, particles=16)),
}
"""Learners with their first beliefs, which `credo.save` keeps."""


def _save_belief(start: Callable[[], tuple[Any, Any]], path: Path) -> object:
    return credo.save(path, *start())


def _start(learner: Any, params: Any = None) -> tuple[Any, Any]:
    options: dict[str, Any] = {"key": 0} if isinstance(learner, credo.particles.ParticleLearner) else {}
    return learner, learner.init(NET.init(0, (3,)) if params is None else params, **options)


@jax.jit
def _lived(learner: Any, belief: Any) -> Any:
    x = jnp.asarray([0.5, -1.0, 0.2])
    forecast = learner.forecast(belief, x)
    after, info = learner.step(
        belief, x, jnp.asarray(1, jnp.int32) if _classed(learner) else jnp.asarray(0.7)
    )
    later = learner.forecast(after, x)
    told = [one.probs if _classed(learner) else (one.mean, one.var) for one in (forecast, later)]
    return told, info.ok


def _classed(learner: Any) -> bool:
    model = getattr(learner, "model", None)
    return isinstance(getattr(model, "likelihood", None), credo.Categorical)


def _use_learner(pair: tuple[Any, Any]) -> list[np.ndarray]:
    told, _ = _lived(*pair)
    return _finite(told)


def _table(ending: str) -> Callable[[Path], object]:
    def save(path: Path) -> object:
        frame = pd.DataFrame(ROWS)
        if ending == "jsonl":
            return path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        if ending == "parquet":
            return frame.to_parquet(path)
        text = frame.to_csv(index=False, sep=";" if ending == "semicolon" else ",")
        if ending == "gz":
            return path.write_bytes(gzip.compress(text.encode(), mtime=0))
        if ending == "zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
                packed.writestr("t.csv", text)
            return path
        return path.write_text(text)

    return save


def _use_table(path: Path) -> list[np.ndarray]:
    """All rows of a table as numbers; a table is opened here, because it is read as it is used."""
    source = open_file(str(path), ColumnOptions("y"))
    numbers = []
    for rows in source.rows:
        for block in source.encoding.learned(rows):
            numbers += [block.x, np.asarray(block.y, float)]
    return _finite(numbers)


@functools.cache
def forms() -> dict[str, list[Form]]:
    """The forms by the name of their format, of which each has several."""
    load: Any = credo.load
    found: dict[str, list[Form]] = {
        "session": [
            Form("numbers", ".credo", "credo", _session(ROWS, model="linear"), Session.load, _use_session),
            Form(
                "classes", ".credo", "credo", _session(LABELLED, model="linear"), Session.load, _use_session
            ),
            Form(
                "changes",
                ".credo",
                "credo",
                _session(ROWS, model="linear", drift="run-length"),
                Session.load,
                _use_session,
            ),
        ],
        "scikit-learn": [
            Form(kind.__name__, ".credo", "credo", _save_sklearn(kind, rows), kind.load, _use_sklearn)
            for kind, rows in ((credo.OnlineRegressor, ROWS), (credo.OnlineClassifier, LABELLED))
        ],
        "River": [
            Form(kind.__name__, ".credo", "credo", _save_river(kind, rows), kind.load, _use_river)
            for kind, rows in ((credo.RiverRegressor, ROWS), (credo.RiverClassifier, LABELLED))
        ],
        "bandit": [Form("linear", ".credo", "credo", _save_bandit, bandits.Bandit.load, _use_bandit)],
        "optimiser": [
            Form("default", ".credo", "credo", _save_optimizer, bandits.Optimizer.load, _use_optimizer)
        ],
        "operator": [
            Form(
                name,
                ".flow",
                "credo-flow",
                _save_operator(**settings),
                credo.flows.load_operator,
                _use_operator,
            )
            for name, settings in (("plain", {}), ("along", {"steps": 2, "gradients": "along"}))
        ],
        "belief": [
            Form(
                name,
                ".credo",
                "credo",
                functools.partial(_save_belief, start),
                load,
                _use_learner,
            )
            for name, start in LEARNERS.items()
        ],
        "table": [
            Form(name, suffix, "", _table(name), lambda path: path, _use_table)
            for name, suffix in (
                ("csv", ".csv"),
                ("semicolon", ".csv"),
                ("gz", ".csv.gz"),
                ("zip", ".zip"),
                ("jsonl", ".jsonl"),
                ("parquet", ".parquet"),
            )
        ],
    }
    return found


def all_forms() -> Iterator[tuple[str, Form]]:
    """Every form, with the name of its format."""
    for name, some in forms().items():
        for form in some:
            yield name, form
