"""The learners and the streams of `soak.py`, and what is known of them beforehand.

The streams are ordinary data; collinear columns; constant columns, among them one of zeros; inputs that
saturate a class, or are large; outliers of 10^6; missing targets and cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import credo
import credo.ekf

__all__ = ["CLASSES", "INPUTS", "KNOWN", "Case", "Known", "cases", "known", "streams"]

INPUTS = 4
CLASSES = 3

STREAMS = ("ordinary", "collinear", "constant", "saturating", "outliers", "missing")


@dataclass(frozen=True)
class Case:
    """A learner with its first belief, the kind of its targets, and whether it takes inputs.

    `parting` learners may be apart for good in two precisions: they draw as they go, or they are networks,
    which have many optima. They are judged by what they refuse, and by their numbers being possible ones.
    """

    name: str
    learner: Any
    belief: Any
    task: str
    parting: bool = False
    inputs: bool = True


def streams(task: str, rows: int, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The streams of a task: name, inputs (rows, INPUTS) and targets (rows,), in single precision."""
    for number, name in enumerate(STREAMS):
        rng = np.random.default_rng([seed, number])
        x = rng.normal(size=(rows, INPUTS))
        if name == "collinear":
            x[:, 1], x[:, 2] = 2.0 * x[:, 0], x[:, 0] + 1e-6 * x[:, 2]
        elif name == "constant":
            x[:, 1] = 3.0
            x[:, 2] = 0.0
        elif name == "saturating":
            x = x * np.array([1.0, 1e1, 1e2, 1e3])
        signal = np.tanh(x @ np.array([1.0, -0.5, 0.25, 0.1]))
        if task == "numbers":
            y = signal + 0.3 * rng.normal(size=rows)
        elif task == "counts":
            y = rng.poisson(np.exp(signal)).astype(float)
        elif task == "ones":
            y = (rng.random(rows) < 0.5 + 0.45 * signal).astype(float)
        else:
            y = np.clip(np.round(signal * 1.4 + 1 + 0.3 * rng.normal(size=rows)), 0, CLASSES - 1)
        hit = rng.random(rows)
        if name == "outliers" and task == "numbers":
            y = np.where(hit < 1e-3, np.sign(hit - 5e-4) * 1e6, y)
        elif name == "outliers":
            x[hit < 1e-3, 0] = 1e6
        elif name == "missing":
            y = np.where(hit < 0.2, -1.0 if task == "classes" else np.nan, y)
            x[hit > 0.95, 1] = np.nan
        yield name, x.astype(np.float32), y.astype(np.int32 if task == "classes" else np.float32)


def cases() -> Iterator[Case]:
    """Every family with every dynamics on numbers; other likelihoods, rules, learners and wrappers."""
    numbers = credo.Model(credo.Linear(1), credo.Normal(0.1))
    network = credo.Model(credo.MLP(1, (4,), "tanh"), credo.Normal(0.1))
    classes = credo.Model(credo.Linear(CLASSES), credo.Categorical(CLASSES))
    counts = credo.Model(credo.Linear(1), credo.Poisson())
    unknown = credo.Model(credo.Linear(1), credo.Normal(credo.InverseGamma(2.0, 1.0)))
    families: dict[str, Any] = {
        "full": credo.Full(),
        "dense": credo.Full("dense"),
        "diagonal": credo.Diagonal(),
        "low-rank": credo.LowRank(2),
    }
    moves: dict[str, Any] = {
        "static": credo.Static(),
        "walk": credo.RandomWalk(1e-4),
        "ou": credo.OrnsteinUhlenbeck(0.999),
        "inflation": credo.Inflation(1e-3),
        "simple inflation": credo.Inflation(1e-3, "simple"),
        "bounded inflation": credo.PriorBound(credo.Inflation(1e-3, "simple")),
        "bounded walk": credo.PriorBound(credo.RandomWalk(1e-4)),
        "decay": credo.Decay(0.999, 1e-4),
        "shrink-perturb": credo.ShrinkPerturb(0.999, 1e-3),
    }

    def start(learner: Any, model: Any) -> Any:
        params = model.apply.init(0, (INPUTS,))
        return learner.init(params)

    def case(name: str, learner: Any, model: Any, task: str, parting: bool = False) -> Case:
        return Case(name, learner, start(learner, model), task, parting)

    for family, kept in families.items():
        for move, dynamics in moves.items():
            learner = credo.bong(numbers, kept, dynamics=dynamics)
            yield case(f"{family}, {move}", learner, numbers, "numbers", move == "shrink-perturb")
        yield case(f"{family}, network", credo.bong(network, kept), network, "numbers", True)
        yield case(f"{family}, classes", credo.bong(classes, kept), classes, "classes")
        yield case(f"{family}, classes, lin-ef", credo.bong(classes, kept, "lin-ef"), classes, "classes")
        yield case(f"{family}, counts", credo.bong(counts, kept), counts, "counts")
        yield case(f"{family}, noise learned", credo.bong(unknown, kept), unknown, "numbers")
    for rule in (credo.blr, credo.bog, credo.bbb):
        learner = rule(classes, credo.Diagonal(), learning_rate=0.01)
        yield case(f"diagonal, {rule.__name__}", learner, classes, "classes")
    yield case("ensemble", credo.etkf(numbers, 8), numbers, "numbers")
    for point in (credo.sgd(classes, 1e-3), credo.adam(classes, 1e-3)):
        yield case(f"point, {point.optimizer}", point, classes, "classes")
    for name, room in (("dense", credo.ekf.dense_fisher), ("diagonal", credo.ekf.diag_fisher)):
        yield case(f"Fisher EKF, {name}", room.learner(classes, lr=1.0), classes, "classes")
    for conjugate, task in (
        (credo.BetaBernoulli(), "ones"),
        (credo.GammaPoisson(forgetting=0.999), "counts"),
        (credo.DirichletCategorical(CLASSES), "classes"),
    ):
        yield Case(type(conjugate).__name__, conjugate, conjugate.init(), task, inputs=False)
    for tied in (False, True):
        normals = credo.GaussianClasses(INPUTS, credo.Categorical(CLASSES), tied, forgetting=0.9999)
        yield Case("tied classes" if tied else "normal classes", normals, normals.init(), "classes")
    for distribution, task in ((credo.Categorical(CLASSES), "classes"), (unknown.likelihood, "numbers")):
        memory = credo.NearestNeighbours(INPUTS, distribution, size=200)
        yield Case(f"memory of {task}", memory, memory.init(), task)
    events = credo.NearestNeighbours(INPUTS, credo.Poisson(), size=200)
    yield Case("memory of counts", events, events.init(), "counts")
    inner = credo.bong(numbers, credo.Full())
    walks = [credo.bong(numbers, credo.Full(), dynamics=credo.RandomWalk(q)) for q in (0.0, 1e-3)]
    wrapped: list[Any] = [
        credo.RunLength(inner, 1e-3, 3),
        credo.SoftReset(inner, 1e-3),
        credo.Experts(walks),
        credo.WoLF(inner, 3.0),
        credo.StudentTNoise(inner, 4.0),
    ]
    for learner in wrapped:
        yield case(f"{type(learner).__name__} of full", learner, numbers, "numbers")


@dataclass(frozen=True)
class Known:
    """Failures that mathematics explains. Only those named here are excused, and only on these streams.

    Attributes:
        learner: a regular expression of the names of the learners.
        streams: the streams.
        failures: the failures that are excused; any other still counts.
        reason: why.
        eigenvalue: the excuse holds only where the smallest eigenvalue in double precision, relative to the
            largest, is below this; infinity for always.
        always: whether such a case is never called ok, because it fails sooner or later.
    """

    learner: str
    streams: tuple[str, ...]
    failures: tuple[str, ...]
    reason: str
    eigenvalue: float = np.inf
    always: bool = False


_RUNS_AWAY = (
    "runs away: the data say nothing of some direction, whose variance grows by 1 + rate a row, to e^1000 of "
    "the prior's in 10^6 rows; `PriorBound` is the cure, and the cases with it must pass"
)
_ANY = ("not finite", "refused", "eigenvalue", "apart", "nlpd")

KNOWN = (
    Known("(full|dense), simple inflation", ("collinear",), _ANY, _RUNS_AWAY, always=True),
    Known("(full|dense|diagonal|low-rank), simple inflation", ("constant",), _ANY, _RUNS_AWAY, always=True),
    Known(
        "dense, .*|Fisher EKF, dense",
        STREAMS,
        ("apart", "nlpd"),
        "a matrix in single precision has no room for it: S - h h' is rounded at eps of the largest entry of "
        "S, and the smallest eigenvalue in double precision is below 8 eps of the largest, so that the best "
        "known directions are rounding errors; the root form of the same learner must agree, and does",
        eigenvalue=8 * float(np.finfo(np.float32).eps),
    ),
    Known(
        "ensemble",
        ("outliers",),
        ("apart",),
        "the spread of the outputs is a difference of the members' outputs; an outlier of 10^6 carries them "
        "to 10^3 and more, where single precision has steps as large as a hundredth of the spread",
    ),
    Known(
        "(full|dense|low-rank|diagonal), (classes|blr)",
        ("outliers",),
        ("apart", "nlpd"),
        "the class of an outlier has nothing to do with its input of 10^6, and a wrong one throws the "
        "mean by 10^6 times the covariance; single precision has no room for such a belief: a run in double "
        "precision whose belief is rounded to single precision after every row parts as much (full: 8,087 "
        "rows of 200,000 against 1,979, diagonal: 2,636 against 5,726)",
    ),
    Known(
        "point, sgd",
        ("saturating",),
        ("apart", "nlpd"),
        "the learning rate is 1e-3 and the curvature up to the square of inputs of 10^3: steps of more than "
        "2 over the curvature multiply any difference, so that two precisions part as two starts would",
    ),
)
"""What may fail, and why."""


def known(learner: str, stream: str, eigenvalue: float) -> Known | None:
    """What is known of a case, given the smallest eigenvalue in double precision relative to the largest."""
    for entry in KNOWN:
        if re.fullmatch(entry.learner, learner) and stream in entry.streams and eigenvalue < entry.eigenvalue:
            return entry
    return None
