"""Saved files: what comes back, what is refused, and a golden file that must load for ever."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.reference import linear
from tests.streams.setups import begin, bitwise, data, make

import credo
from credo.core.errors import CredoError, DataError, FormatError
from credo.core.records import record
from credo.streams.checkpoint import FORMAT, read

GOLDEN = Path(__file__).parent / "data" / "format1.credo"
EXPECTED_MEAN = [0.0442743003, -0.00803127885, 0.048946619]
EXPECTED_EVIDENCE = -13.380222  # by a million draws a row -13.3798, with a standard error of .0006


def rewrite(path: Path, change: Any) -> None:
    """Change the header of a saved file, keeping its arrays."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    outer = json.loads(raw[8 : 8 + size])
    inner = json.loads(outer["__metadata__"]["credo"])
    changed = change(inner)
    outer["__metadata__"]["credo"] = changed if isinstance(changed, str) else json.dumps(inner)
    head = json.dumps(outer).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(struct.pack("<Q", len(head)) + head + raw[8 + size :])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    learner = make("normal", "low-rank", "lin-hess", "ou")
    belief, _ = credo.run(learner, begin(learner, "normal"), *data("normal"))
    return credo.save(tmp_path / "a.credo", learner, belief, meta={"note": "hi"}, arrays={"x": np.arange(3)})


def test_everything_comes_back_and_no_temporary_file_stays(saved: Path) -> None:
    learner = make("normal", "low-rank", "lin-hess", "ou")
    belief, _ = credo.run(learner, begin(learner, "normal"), *data("normal"))
    held = read(saved)
    bitwise((held.learner, held.belief), (learner, belief))
    assert held.learner == learner and held.belief == belief
    assert held.meta == {"note": "hi"} and held.arrays["x"].tolist() == [0, 1, 2]
    credo.save(saved, learner, belief)
    assert [p.name for p in saved.parent.iterdir()] == ["a.credo"]


@pytest.mark.slow
def test_optimiser_states_buffers_and_noise_beliefs_come_back(tmp_path: Path) -> None:
    model = credo.Model(credo.MLP(1, (4,), "tanh"), credo.Normal(0.1))
    params, (xs, ys) = credo.MLP(1, (4,), "tanh").init(0, (3,)), data("normal", jnp.float32)
    learners: list[Any] = [credo.replay(model, optimizer=o, capacity=3) for o in ("sgd", "momentum", "adam")]
    for learner in [*learners, credo.normal_inverse_gamma(model)]:
        start = (
            learner.init(params)
            if not hasattr(learner, "capacity")
            else learner.init(params, example=(xs[0], ys[0]))
        )
        belief, _ = credo.run(learner, start, xs, ys)
        again, middle = credo.load(credo.save(tmp_path / "b.credo", learner, belief))
        bitwise((again, middle), (learner, belief))
        bitwise(credo.run(again, middle, xs, ys), credo.run(learner, belief, xs, ys))


@record
class Oddments:
    """A belief of a user's own, with whatever can be saved."""

    things: Any
    t: Any


@record
class Keeper(credo.Learner[Oddments]):
    """A learner of a user's own, which keeps them."""

    var: Any = 1.0

    def init(self, params: Any = None, *, var: Any = 1.0) -> Oddments:
        return Oddments(params, jnp.zeros((), jnp.int32))

    def time_update(self, belief: Any, dt: Any) -> Any:
        return credo.replace(belief, t=belief.t + 1)

    def predictive(self, belief: Any, x: Any, method: Any, samples: Any, key: Any) -> Any:
        return credo.Normal(self.var).plugin(x)

    def measurement_update(self, belief: Any, x: Any, y: Any, weight: Any, key: Any) -> Any:
        return belief, credo.Info(jnp.zeros(()), jnp.asarray(True))

    def draws(self, belief: Any, key: Any, shape: Any) -> Any:
        return belief.things


def test_weak_types_keys_special_numbers_and_odd_containers_come_back(tmp_path: Path) -> None:
    tree = {"w": (jnp.ones(2), [jnp.zeros((1, 2)), None]), "n": float("1e300"), "i": 2**40, "b": True}
    kept = Keeper(jnp.full(1, 0.1))
    odd = Oddments(tree | {"k": jax.random.key(3)}, jnp.zeros((), jnp.int32))
    assert credo.load(credo.save(tmp_path / "c.credo", kept, odd)) == (kept, odd)
    learner = credo.extended_kalman(credo.Model(linear, credo.Normal(jnp.full(1, 0.1))))
    belief = learner.init({"w": tree["w"]})
    again, back = credo.load(credo.save(tmp_path / "c.credo", learner, belief), learner)
    assert back == belief and again == learner
    structure: object = jax.tree.structure(back.params)
    assert structure == jax.tree.structure({"w": tree["w"]})


def test_a_learner_with_functions_needs_them_back(tmp_path: Path) -> None:
    learner = credo.extended_kalman(credo.Model(linear, credo.Normal(0.1)), dynamics=credo.RandomWalk(1))
    path = credo.save(tmp_path / "d.credo", learner, learner.init(jnp.zeros(3)))
    with pytest.raises(
        FormatError, match=r"uses your function tests\.learners\.reference\.linear: pass the learner"
    ):
        credo.load(path)
    given = credo.extended_kalman(credo.Model(linear, credo.Normal(9.0)), dynamics=credo.RandomWalk(0.5))
    assert credo.load(path, given)[0] == learner  # functions are lent, numbers come from the file


def test_another_model_is_refused_with_the_place_where_it_differs(tmp_path: Path) -> None:
    def learner(rank: int = 2, dynamics: Any = None, classes: int = 3) -> Any:
        return credo.lofi(
            credo.Model(linear, credo.Categorical(classes)), rank, dynamics=dynamics or credo.Static()
        )

    path = credo.save(tmp_path / "e.credo", learner(), learner().init(jnp.zeros((2, 3))))
    for other, message in [
        (learner(rank=3), r"learner\.family\.rank is 2 there and 3 here"),
        (learner(classes=4), r"learner\.model\.likelihood\.classes is 3 there and 4 here"),
        (learner(dynamics=credo.RandomWalk()), r"learner\.dynamics is Static there and RandomWalk here"),
        (credo.BetaBernoulli(), "learner is RecursiveLearner there and BetaBernoulli here"),
    ]:
        with pytest.raises(FormatError, match=rf"was saved by another model: {message}"):
            credo.load(path, other)


@pytest.mark.slow
def test_damaged_files_are_refused(saved: Path) -> None:
    raw = saved.read_bytes()
    for place in (len(raw) - 1, len(raw) - 40):
        saved.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        with pytest.raises(FormatError, match="is damaged: its contents do not match its checksum"):
            credo.load(saved)
    for size in (0, 5, 60, len(raw) - 3):
        saved.write_bytes(raw[:size])
        with pytest.raises(FormatError, match="is no saved learner, or is cut short"):
            credo.load(saved)
    saved.write_bytes(raw)
    rewrite(
        saved,
        lambda head: head["tree"]["learner"]["fields"]["dynamics"]["fields"].update(
            gamma={"float": "0x1p-1"}
        ),
    )
    with pytest.raises(FormatError, match="do not match its checksum"):
        credo.load(saved)
    rewrite(saved, lambda head: "{not json")
    with pytest.raises(FormatError, match="its header is not JSON"):
        credo.load(saved)


def test_missing_foreign_and_newer_files_are_refused(saved: Path, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    with pytest.raises(DataError, match="no saved learner at"):
        credo.load(tmp_path / "nothing.credo")
    save_file({"x": np.ones(2)}, tmp_path / "foreign.credo")
    with pytest.raises(FormatError, match="is a safetensors file, but no saved learner of credo"):
        credo.load(tmp_path / "foreign.credo")
    rewrite(saved, lambda head: head.update(format=FORMAT + 1, credo="9.9"))
    with pytest.raises(
        FormatError, match=r"has format 2, written by credo 9\.9; this version reads up to 1: upgrade"
    ):
        credo.load(saved)


def test_double_precision_needs_to_be_enabled(saved: Path) -> None:
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(FormatError, match="holds float64: set jax_enable_x64 before loading it"):
            credo.load(saved)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_what_cannot_be_saved_is_named_and_leaves_no_file(tmp_path: Path) -> None:
    class Foreign:
        pass

    @record
    class Holder:
        thing: Any

    for thing in (Foreign(), {1, 2}, 1j):
        with pytest.raises(CredoError, match=r"cannot save learner/thing: \w+ is neither an array"):
            holder: Any = Holder(thing)
            credo.save(tmp_path / "f.credo", holder, credo.BetaBernoulli().init())
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot write"):
        credo.save(tmp_path / "file" / "g.credo", credo.BetaBernoulli(), credo.BetaBernoulli().init())
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_the_golden_file_of_format_1_loads_and_goes_on_as_it_did() -> None:
    learner, belief = credo.load(GOLDEN)
    assert learner == make("classes", "low-rank", "lin-hess", "ou")
    assert (int(belief.t), belief.mean.dtype) == (12, jnp.dtype("float32"))
    np.testing.assert_allclose(belief.mean[:3], EXPECTED_MEAN, rtol=1e-6)
    xs, ys = data("classes", jnp.float32)
    _, trace = credo.run(learner, belief, xs, ys)
    np.testing.assert_allclose(trace.log_evidence.sum(), EXPECTED_EVIDENCE, rtol=1e-4)


def test_another_width_in_a_list_is_another_model(tmp_path: Path) -> None:
    def learner(width: int) -> Any:
        return credo.vd_ekf(credo.Model(credo.MLP(1, (width, 2)), credo.Normal(0.1)))

    net = credo.MLP(1, (3, 2))
    path = credo.save(tmp_path / "w.credo", learner(3), learner(3).init(net.init(0, (2,))))
    with pytest.raises(FormatError, match=r"another model: learner\.model\.apply\.hidden"):
        credo.load(path, learner(4))
    assert credo.load(path, learner(3))[0] == learner(3)
