"""Files with a right checksum whose contents no learner could have are refused, by the name of the field."""

from __future__ import annotations

import dataclasses
import importlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
import credo.adapt
from credo.core import archive
from credo.core.errors import CredoError, FormatError
from credo.core.fields import Constraint
from credo.core.records import REGISTRY
from credo.models.model import _Equinox
from credo.sessions import Session
from credo.streams.checkpoint import FORMAT

Change = Callable[[Any, dict[str, np.ndarray]], object]
"""What a forger does to the header and the arrays of a file."""

NET = credo.MLP(1, (4,), "tanh")
MODEL = credo.Model(NET, credo.Normal(0.1))
CLASSES = credo.Model(credo.Linear(3), credo.Categorical(3))
LEARNERS: dict[str, Any] = {
    "diagonal": credo.bong(MODEL, credo.Diagonal(), dynamics=credo.OrnsteinUhlenbeck(0.9)),
    "dense": credo.bong(CLASSES, credo.Full("dense")),
    "low-rank": credo.lofi(MODEL, 2),
    "changes": credo.RunLength(credo.BetaBernoulli(), 0.1, 3),
    "ensemble": credo.enkf(MODEL, 5),
    "adam": credo.adam(MODEL),
    "noise": credo.normal_inverse_gamma(MODEL),
    "experts": credo.Experts([credo.sgd(MODEL, rate) for rate in (0.1, 0.2)]),
    "memory": credo.NearestNeighbours(2, credo.Bernoulli(), size=9, neighbours=(2, 4)),
    "memory of numbers": credo.NearestNeighbours(
        2, credo.Normal(credo.InverseGamma(2.0, 1.0)), size=9, neighbours=(2, 4)
    ),
}
SESSIONS = Path(__file__).parent.parent / "sessions" / "data"


def forge(path: Path, change: Change) -> Path:
    """Change a saved file, and sign it again."""
    header, tensors = archive.read(path, "credo", FORMAT, "saved learner")
    change(header, tensors)
    archive.write(path, "credo", header, tensors)
    return path


def put(name: str, value: Any) -> Change:
    """Put numbers in the place of an array; a function takes those that are there."""

    def change(head: Any, tensors: dict[str, np.ndarray]) -> None:
        old = tensors[name]
        new = np.full(old.shape, value, old.dtype) if np.isscalar(value) else np.asarray(value(old.copy()))
        tensors[name] = np.ascontiguousarray(new).reshape(new.shape)

    return change


def write(path: str, value: Any) -> Change:
    """Write JSON in the place of a field, whose path leads through the fields of records."""

    def change(head: Any, tensors: dict[str, np.ndarray]) -> None:
        *outer, name = path.split(".")
        place = head["tree"]
        for step in outer:
            place = place.get("fields", place)
            place = place[step]
        place = place["fields"]
        if value is None:
            del place[name]
        else:
            place[name] = value

    return change


def note(path: str, value: Any) -> Change:
    """Write JSON in the place of a part of a session."""

    def change(head: Any, tensors: dict[str, np.ndarray]) -> None:
        *outer, name = path.split(".")
        place = head["meta"]
        for step in outer:
            place = place[int(step)] if step.isdigit() else place[step]
        if value is None:
            del place[name]
        else:
            place[name] = value

    return change


def skew(matrix: np.ndarray) -> np.ndarray:
    matrix[0, 1] += 0.5
    return matrix


def negative_direction(matrix: np.ndarray) -> np.ndarray:
    matrix[0, 1] = matrix[1, 0] = 5.0
    return matrix


FLOAT = {"float": "-0x1p+1"}
LOW_RANK = {"record": "LowRank", "fields": {}}

BELIEFS: list[tuple[str, str, Change]] = [
    ("diagonal", r"belief\.mean must have the shape \(21,\)", put("belief/mean", lambda a: a[:-1])),
    ("diagonal", r"belief\.mean must be finite", put("belief/mean", np.nan)),
    ("diagonal", r"belief\.cov\.var must be at least 0", put("belief/cov/var", -1.0)),
    ("diagonal", r"belief\.cov\.var must have the shape", put("belief/cov/var", lambda a: a[None])),
    ("diagonal", r"belief\.cov\.var must have the dtype", put("belief/cov/var", lambda a: a.astype("f8"))),
    ("diagonal", r"belief\.t must be at least 0", put("belief/t", -5)),
    ("diagonal", r"belief\.t must have the dtype int32", put("belief/t", lambda a: a.astype("f4"))),
    ("diagonal", r"belief\.mean must have the shape \(1, 21\)", put("belief/t", lambda a: a[None])),
    ("diagonal", r"unravel\.treedef must be a structure", write("belief.unravel.treedef", 5)),
    ("diagonal", r"has no 'mean'", write("belief.mean", None)),
    ("diagonal", r"'colour' is unknown", write("belief.colour", 3)),
    ("diagonal", r"belief\.anchor must be Anchor or None", write("belief.anchor", {"float": "nan"})),
    ("diagonal", r"belief\.mean must be an array; got str", write("belief.mean", "abc")),
    ("diagonal", r"belief\.mean is an array that is not in", write("belief.mean", {"array": "nowhere"})),
    ("diagonal", r"belief\.cov is an unknown 'thing'", write("belief.cov", {"thing": "x"})),
    ("diagonal", r"belief\.t is no number", write("belief.t", {"float": "many"})),
    ("diagonal", r"unravel\.shapes must be tuple", write("belief.unravel.shapes", {"tuple": ["x"]})),
    ("diagonal", r"unravel must have one shape", write("belief.unravel.shapes", {"tuple": []})),
    ("diagonal", r"unravel\.dtypes must name", write("belief.unravel.dtypes", {"tuple": ["i4"] * 4})),
    (
        "diagonal",
        r"an array belief\.spare that no field",
        lambda h, t: t.update({"belief/spare": t["belief/t"]}),
    ),
    ("diagonal", r"must hold a learner and a belief", lambda h, t: h["tree"].pop("belief")),
    (
        "diagonal",
        r"learner\.family must be Family",
        write("learner.family", {"record": "Static", "fields": {}}),
    ),
    ("diagonal", r"forgetting must be in", write("learner.dynamics.forgetting", FLOAT)),
    ("diagonal", r"var must be finite and above 0", write("learner.model.likelihood.var", FLOAT)),
    ("diagonal", r"learner\.forecasting must be one of", write("learner.forecasting", "sideways")),
    ("diagonal", r"belief\.cov must be a LowRank", write("learner.family", LOW_RANK)),
    ("dense", r"belief\.cov\.matrix must be symmetric", put("belief/cov/matrix", skew)),
    ("dense", r"belief\.cov\.matrix must be symmetric", put("belief/cov/matrix", negative_direction)),
    ("dense", r"belief\.cov\.matrix must be symmetric", put("belief/cov/matrix", lambda a: -a)),
    ("dense", r"Categorical\(5\) needs a model with 5", write("learner.model.likelihood.classes", 5)),
    ("low-rank", r"belief\.cov\.base must be above 0", put("belief/cov/base", 0.0)),
    ("low-rank", r"belief\.cov\.base must be above 0", put("belief/cov/base", 1e-31)),
    ("diagonal", r"belief\.mean must be at most 1e\+18", put("belief/mean", -3e38)),
    ("low-rank", r"factor must have the shape \(2, 21\)", put("belief/cov/factor", lambda a: a[:1])),
    ("low-rank", r"rank must be a whole number at least 1", write("learner.family.rank", -2)),
    ("low-rank", r"rank must be at most the number", write("learner.family.rank", 10_000)),
    ("changes", r"log_weights must be log probabilities that sum", put("belief/log_weights", -1.0)),
    ("changes", r"belief\.beliefs\.a must be above 0", put("belief/beliefs/a", -1.0)),
    ("changes", r"segments\.count must be at least 0", put("belief/segments/count", -1)),
    ("changes", r"learner\.learner must be Learner", write("learner.learner", {"float": "0x1p+0"})),
    ("changes", r"capacity must be", write("learner.capacity", 0)),
    ("ensemble", r"deviations must have columns that sum", put("belief/deviations", lambda a: abs(a) + 1)),
    ("adam", r"nu must be at least 0", put("belief/state/2", -1.0)),
    ("adam", r"'adam', which is no state", write("belief.state", {"optax": "adam", "items": []})),
    ("noise", r"scale must be finite and above 0", write("belief.noise.scale", FLOAT)),
    ("experts", r"must have the shape \(2, 21\)", put("belief/beliefs/mean", lambda a: a[:1])),
    ("memory", r"belief\.shares must be at least 0", put("belief/shares", -1.0)),
    ("memory", r"belief\.base must be above 0", put("belief/base", 0.0)),
    ("memory", r"log_weights must be log probabilities that sum", put("belief/log_weights", 0.0)),
    ("memory", r"belief\.written must be at least 0", put("belief/written", -1)),
    ("memory", r"belief\.rows must be finite", put("belief/rows", np.inf)),
    ("memory", r"belief\.rows must have the shape \(2, 9\)", put("belief/rows", lambda a: a[:, :-1])),
    ("memory", r"neighbours must be increasing", write("learner.neighbours", {"tuple": [4, 2]})),
    ("memory of numbers", r"belief\.base\.noise must be above 0", put("belief/base/noise", 0.0)),
    ("memory of numbers", r"belief\.base\.count must be at least 0", put("belief/base/count", -1.0)),
]


@pytest.mark.table
@pytest.mark.parametrize(("name", "message", "change"), BELIEFS)
def test_a_forged_belief_or_learner_is_refused_by_its_field(
    name: str, message: str, change: Change, tmp_path: Path
) -> None:
    learner = LEARNERS[name]
    start = {"dense": credo.Linear(3).init(0, (3,)), "changes": None}.get(name, NET.init(0, (3,)))
    path = forge(credo.save(tmp_path / "a.credo", learner, learner.init(start)), change)
    with pytest.raises(FormatError, match=message) as refusal:
        credo.load(path)
    assert str(refusal.value).count(". ") == 0 and str(refusal.value).endswith(".")


MEETING: list[tuple[str, str, Change]] = [
    ("numbers", r"scaler\.s2 must be at least 0", put("extra/scaler/s2", -1.0)),
    ("numbers", r"scaler\.count must be from 0", put("extra/scaler/count", -3)),
    ("numbers", r"scaler\.centre must be finite", put("extra/scaler/centre", np.inf)),
    ("numbers", r"moments must hold .* of one shape", put("extra/encoding/s1", lambda a: np.r_[a, 1.0])),
    ("numbers", r"the session has no 'sums'", lambda h, t: t.pop("extra/tally/sums")),
    ("numbers", r"tally\.sums must have the shape", put("extra/tally/sums", lambda a: a[:, :-1])),
    ("numbers", r"tally\.sums must be .* rows in blocks", put("extra/tally/sums", lambda a: a[:-1])),
    ("numbers", r"tally\.bins must be finite and at least 0", put("extra/tally/bins", -1.0)),
    ("numbers", r"counters\.used must be a whole number at least 0", note("counters.used", -7)),
    ("numbers", r"counters\.read must be a whole number", note("counters.read", "many")),
    ("numbers", r"the session has no 'counters'", note("counters", None)),
    ("numbers", r"progress\.line must be int", note("progress.line", "ten")),
    ("numbers", r"prior_var must be finite and above 0", note("settings.prior_var", -1.0)),
    ("numbers", r"drift must be", note("settings.drift", "sideways")),
    ("numbers", r"settings do not fit the belief", note("settings.model", "mlp:7")),
    ("numbers", r"task must be that of the encoding", note("settings.task", "classification")),
    ("numbers", r"clip must be above 0", note("encoding.clip", -1.0)),
    ("numbers", r"origin must be a finite number", note("encoding.schema.columns.0.origin", "noon")),
    ("numbers", r"cannot be used", note("encoding.schema.columns.0.name", None)),
    (
        "classes",
        r"classes|counts|settings do not fit",
        note("encoding.schema.target.classes", ["a", "b", "c", "d", "e"]),
    ),
    ("classes", r"tally\.counts must have the shape", put("extra/tally/counts", lambda a: a[:-1])),
    (
        "classes",
        r"tally\.by_class_ranks must have the shape",
        put("extra/tally/by_class_ranks", lambda a: a[:-1]),
    ),
]


@pytest.mark.parametrize(("name", "message", "change"), MEETING)
def test_a_forged_session_is_refused_by_its_field(
    name: str, message: str, change: Change, tmp_path: Path
) -> None:
    path = forge(Path(shutil.copy(SESSIONS / f"{name}.credo", tmp_path / "s.credo")), change)
    with pytest.raises(FormatError, match=message):
        Session.load(path)


def test_log_weights_of_every_record_are_declared() -> None:
    importlib.import_module("credo.records")
    for name, cls in REGISTRY.items():
        belief = cls.__module__.split(".")[1] in ("adapt", "beliefs", "learners")
        for one in dataclasses.fields(cls):
            if belief and one.name == "log_weights":
                assert "declaration" in one.metadata, f"{name}.{one.name}"


@credo.record
class Tide:
    """A belief of one's own: a level, its variance, and the latest two observations."""

    level: Any
    var: Any = credo.field("positive")
    seen: Any = credo.field("observations")
    shares: Any = credo.field("log weights", weighs="parts")
    parts: Any = credo.field()
    even: Any = credo.field(Constraint(lambda number: bool(np.all(number % 2 == 0)), "must be even"))
    t: Any = 0


@credo.record
class Tides(credo.BetaBernoulli):
    """A learner of one's own."""


@pytest.mark.parametrize(
    ("field", "forged", "words"),
    [
        ("var", 0.0, "must be above 0"),
        ("var", np.nan, "must be above 0"),
        ("level", np.inf, "must be finite"),
        ("level", 1e200, "must be at most"),
        ("seen", np.array([1.0, -np.inf]), "must not be infinite"),
        ("shares", np.log([0.5, 0.4]), "must be log probabilities that sum to one"),
        ("parts", np.array([[np.nan], [1.0]]), "must be finite"),
        ("even", 3, "must be even"),
        ("t", -1, "must be at least 0"),
    ],
)
def test_a_belief_of_ones_own_says_what_its_fields_hold(
    field: str, forged: Any, words: str, tmp_path: Path
) -> None:
    shares = np.log(np.array([1.0, 1e-300]))
    tide = Tide(
        level=np.asarray(2.0),
        var=np.asarray(1.0),
        seen=np.array([1.0, np.nan]),
        shares=np.array([shares[0], -np.inf]),
        parts=np.array([[1.0], [np.nan]]),
        even=np.asarray(4),
        t=np.asarray(3),
    )
    path = credo.save(tmp_path / "tide.credo", Tides(), tide)
    _, loaded = credo.load(path)
    assert loaded.level == 2.0 and loaded.shares[1] == -np.inf and np.isnan(loaded.parts[1, 0])
    path = credo.save(path, Tides(), credo.replace(tide, **{field: np.asarray(forged)}))
    with pytest.raises(FormatError, match=rf"belief\.{field} {words}"):
        credo.load(path)


def test_a_field_holds_what_has_a_name() -> None:
    with pytest.raises(CredoError, match=r"holds must be one of any, positive, .*; got 'big'"):
        credo.field("big")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_first_beliefs_of_every_kind_load(tmp_path: Path) -> None:
    params, row = NET.init(0, (3,)), (jnp.ones(3), jnp.asarray(1.0))
    piece = credo.adapt.LocalPolynomial(credo.extended_kalman(credo.Model(jnp.dot, credo.Normal(0.1))), 1)
    memory = credo.WeightedPast(LEARNERS["low-rank"], 3)
    returning = credo.enkf(MODEL, 5, dynamics=credo.OrnsteinUhlenbeck(0.9))
    batches, replay = credo.lofi(credo.joint(MODEL), 2), credo.replay(MODEL, capacity=3)
    beliefs: list[tuple[Any, Any]] = [
        (batches, batches.init(params)),
        (returning, returning.init(params, cov=jnp.eye(21))),
        (replay, replay.init(params, example=row)),
        (memory, memory.init(params, example=row)),
        (piece, piece.init(jnp.zeros(2))),
    ]
    for learner, belief in beliefs:
        path = credo.save(tmp_path / "first.credo", learner, belief)
        assert credo.load(path, learner) == (learner, belief)


def test_beliefs_that_were_computed_together_load(tmp_path: Path) -> None:
    learner = LEARNERS["dense"]
    many = jax.vmap(lambda var: learner.init(credo.Linear(3).init(0, (3,)), var=var))(jnp.ones(4))
    assert credo.load(credo.save(tmp_path / "many.credo", learner, many))[1] == many


def test_parameters_whose_structure_no_learner_could_lend_are_not_saved(tmp_path: Path) -> None:
    class Layer:
        def __init__(self, weights: Any) -> None:
            self.weights = weights

        def __call__(self, x: Any) -> Any:
            return x @ self.weights

    jax.tree_util.register_pytree_node(Layer, lambda a: ((a.weights,), None), lambda _, kids: Layer(*kids))
    own = credo.extended_kalman(credo.Model(lambda layer, x: layer(x), credo.Normal(0.1)))
    with pytest.raises(CredoError, match=r"cannot save belief/unravel/treedef/treedef"):
        credo.save(tmp_path / "own.credo", own, own.init(Layer(jnp.zeros(2))))

    # an adapter that holds the structure lends it, as credo.from_equinox does
    params = Layer(jnp.zeros(2))
    lender = credo.extended_kalman(
        credo.Model(_Equinox(linear_layer, jax.tree.structure(params)), credo.Normal(0.1))
    )
    path = credo.save(tmp_path / "lent.credo", lender, lender.init(params))
    _, belief = credo.load(path, lender)
    assert belief.params.weights.tolist() == [0.0, 0.0]
    with pytest.raises(FormatError, match="pass the learner, as load"):
        credo.load(path)


def linear_layer(layer: Any, x: Any) -> Any:
    return layer(x)
