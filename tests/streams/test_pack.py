"""A pack gives the bits of a loop and of a run, takes turns, and is not harmed by what it refuses."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.streams.setups import T, begin, bitwise, data, make

import credo
from credo.core.errors import CredoError
from credo.programs.words import WordLayout, WordReader, WordWriter, lend_rows
from credo.streams.live import Pack


def _learner(name: str) -> tuple[Any, Any, Any, Any]:
    """A learner, its first belief, and its data."""
    if name == "run length":
        learner: Any = credo.RunLength(credo.GammaPoisson(), 0.1, 2, overflow="resample")
        return learner, learner.init(), jnp.ones(T), jnp.arange(T) % 3
    kind = jnp.float32 if name == "ensemble" else jnp.float64
    network = credo.MLP(1, (13,), "tanh")
    model = credo.Model(network, credo.Normal(0.1))
    learner = credo.enkf(model, 5) if name == "ensemble" else credo.bong(model, credo.Full())
    start = jax.tree.map(lambda v: v.astype(kind), network.init(0, (3,)))
    return learner, learner.init(start), *data("normal", kind)


@pytest.mark.optimised
@pytest.mark.parametrize("name", ["large arrays", "run length", "ensemble"])
def test_a_pack_gives_the_bits_of_a_run_and_forecasts_what_the_verbs_forecast(name: str) -> None:
    learner, start, xs, ys = _learner(name)
    weights = jnp.where(jnp.arange(T) == 4, 0.0, 1.0)
    dts = jnp.linspace(0.5, 1.5, T)
    whole, trace = credo.run(learner, start, xs, ys, key=3, weights=weights, dts=dts)
    live, silent = (credo.pack(learner, start, key=3) for _ in range(2))
    rows = zip(*(np.asarray(leaf) for leaf in (xs, ys, weights, dts)), strict=True)
    infos = []
    for i, (x, y, weight, dt) in enumerate(rows):
        if i == T - 1:
            predicted = learner.predict(live.belief, dt)
            forecast = learner.forecast(predicted, x)
            np.testing.assert_allclose(live.forecast(x, dt=dt)[0], forecast.mean, rtol=1e-5, atol=1e-6)
        infos.append(live.step(x, y, weight=weight, dt=dt))
        silent.learn(x, y, weight=weight, dt=dt)
    bitwise(live.belief, whole)
    bitwise(silent.belief, whole)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *infos)
    for ours, theirs in zip(jax.tree.leaves(stacked), jax.tree.leaves(trace), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    credo.run(learner, start, xs, ys, key=3)  # the first belief is still there


def test_memory_is_lent_to_calls_alone_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make("normal", "root", "lin-hess", "static")
    live, take = credo.pack(learner, begin(learner, "normal")), Pack._take
    rows: list[Any] = []

    def seen(self: Any, program: Any, row: Any) -> None:
        rows.append(row)
        take(self, program, row)

    monkeypatch.setattr(Pack, "_take", seen)
    live.step(np.ones(3), 1.0)
    live.learn(np.ones(3), 1.0)
    live.learn(np.ones(3), 1.0)
    own = np.asarray(rows[0])  # what the writer writes into, where JAX reads it in place
    assert not any(np.shares_memory(np.asarray(row), own) for row in rows[1:])
    assert not np.shares_memory(np.asarray(rows[1]), np.asarray(rows[2]))


def test_what_is_refused_or_missing_changes_nothing_and_calls_take_turns() -> None:
    learner = make("normal", "root", "lin-hess", "static")
    live = credo.pack(learner, begin(learner, "normal"))
    live.step(np.ones(3), 1.0)
    before = live.belief
    for call in (
        lambda: live.step(np.ones(3), "warm"),
        lambda: live.step(np.ones(3), 1.0, weight=-1.0),
        lambda: live.learn(np.ones(3), 1.0, weight=-1.0),
        lambda: live.forecast(np.ones(3), dt=-1.0),
    ):
        with pytest.raises(CredoError):
            call()
    bitwise(live.belief, before)
    info = live.step(np.ones(3), np.nan)
    assert float(info.log_evidence) == 0.0 and not info.ok
    bitwise(live.belief, credo.replace(before, t=before.t + 1))
    port, twin = live.port(np.ones(3), 1.0), credo.pack(learner, live.belief)
    for y in (2.0, np.nan, -1.0):
        port.x[:], port.y[...] = [1.0, 0.0, -1.0], y
        assert port.learn() == twin.step(np.array([1.0, 0.0, -1.0]), y).ok == (not np.isnan(y))
    bitwise(live.belief, twin.belief)
    port.asked[:] = [0.5, -1.0, 2.0]
    assert port.forecast() == twin.forecast(np.array([0.5, -1.0, 2.0]))
    bitwise(live.belief, twin.belief)
    live.adopt(credo.replace(before, t=before.t + 1))
    bitwise(live.belief, credo.replace(before, t=before.t + 1))
    with pytest.raises(CredoError, match="the pack's own"):
        live.adopt(credo.replace(before, mean=before.mean[:1]))
    threads = [threading.Thread(target=lambda: [live.step(np.ones(3), 1.0) for _ in range(50)]) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(live.belief.t) == 102


def test_words_keep_every_bit_of_every_kind_of_number() -> None:
    tree = {
        "wide": np.array([-0.0, np.nan, 1e300]),
        "narrow": np.array([1.5, -2.0], np.float16),
        "flags": np.array([[True], [False]]),
        "small": np.int8(-3),
        "whole": np.array(7, np.int64),
        "single": np.float32(0.1),
    }
    layout = WordLayout.of(tree)
    leaves = jax.tree.leaves(tree)
    words = WordWriter(layout)(leaves)
    back = jax.jit(layout.unpack)((words, ()))
    bitwise(jax.tree.map(np.asarray, back), jax.tree.map(np.asarray, tree))
    np.testing.assert_array_equal(jax.jit(layout.pack)(back)[0], words)
    bitwise(jax.tree.map(np.asarray, WordReader(layout)(words)["narrow"]), tree["narrow"])
    given, others = layout.give(back)  # outside a compiled program
    np.testing.assert_array_equal(given, words)
    bitwise(jax.tree.map(np.asarray, layout.take((given, others))), jax.tree.map(np.asarray, tree))
    rows = jax.tree.map(lambda leaf: np.stack([leaf, leaf[::-1] if np.ndim(leaf) else -leaf]), tree)
    several = layout.give_rows(rows, 3)
    assert not several[2].any()
    bitwise(layout.take_rows(several[:2]), rows)
    for count in (2, 1):  # what is lent holds the latest rows, and the memory is the same
        few = jax.tree.map(lambda leaf, count=count: leaf[:count], rows)
        lent = np.asarray(lend_rows(layout, jax.tree.leaves(few), 3))
        np.testing.assert_array_equal(lent[:count], several[:count])
    read = [jax.jit(layout.unpack)((one, ())) for one in several[:2]]
    bitwise(jax.tree.map(lambda *leaves: np.stack(leaves), *read), rows)
    with jax.enable_x64(False), pytest.raises(CredoError, match="must fit into 32 bits; got 3000000000"):
        WordWriter(WordLayout.of(np.int32(0)))([np.int64(3_000_000_000)])


def test_a_row_that_is_read_in_its_place_is_the_row_that_was_written() -> None:
    layout = WordLayout.of({"x": np.zeros(3, np.float32), "y": np.int32(0)})
    write = WordWriter(layout)
    assert write.lent is not None and np.shares_memory(np.asarray(write.lent), write.words)
    program = jax.jit(layout.unpack).lower((jax.ShapeDtypeStruct((4,), np.uint32), ())).compile()
    for x, y in ((np.arange(3.0), 5), (-np.ones(3), -7)):
        read = program((write.lend([x, y]), ()))
        np.testing.assert_array_equal(read["x"], x)
        assert int(read["y"]) == y
    write.lent = None  # where JAX would copy, the words come in an array of their own
    own = write.lend([np.zeros(3), 0])
    assert isinstance(own, np.ndarray) and not np.shares_memory(own, write.words)


@pytest.mark.slow
def test_rows_are_learned_in_order_whatever_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """`learn` does not wait for its row, while `step`, `forecast` and a port write the next one at once."""
    network = credo.MLP(1, (40,), "tanh")
    learner = credo.bong(credo.Model(network, credo.Normal(0.1)), credo.Full())
    start = learner.init(network.init(0, (3,)))
    xs, ys = (np.asarray(each, np.float32) for each in data("normal", jnp.float32, 40))
    whole, _ = credo.run(learner, start, xs, ys)
    live = credo.pack(learner, start)
    port = live.port(xs[0], ys[0])
    for at, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if at % 4 == 0:
            live.step(x, y)
        elif at % 4 == 3:
            port.x[:], port.y[...] = x, y
            assert port.learn()
        else:
            live.learn(x, y)
        live.forecast(-x)
    bitwise(live.belief, whole)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    twin = credo.pack(learner, live.belief)
    with monkeypatch.context() as patch:
        patch.setattr("credo.streams.live.unpacked", interrupted)
        patch.setattr("credo.programs.words.unpacked", interrupted)
        for learn in (port.learn, lambda: live.step(xs[-1], ys[-1])):
            with pytest.raises(KeyboardInterrupt):
                learn()
    for x, y in ((xs[-1], ys[-1]), (xs[-1], ys[-1])):
        twin.learn(x, y)
    bitwise(live.belief, twin.belief)


def test_a_port_says_whether_a_row_was_taken_in_where_the_info_is_long() -> None:
    """An info of more words than stand behind those of the belief comes in an array of its own."""
    model = credo.Model(credo.Linear(1), credo.Normal(0.1))
    learner = credo.Experts([credo.sgd(model, 0.01 * i) for i in range(1, 41)])
    live = credo.pack(learner, learner.init(credo.Linear(1).init(0, (2,))))
    port = live.port(np.ones(2, np.float32), np.float32(0.0))
    for y in (1.0, np.nan, 2.0):
        port.x[:], port.y[...] = [1.0, -1.0], y
        assert port.learn() == (not np.isnan(y))
    assert int(live.belief.t) == 3
