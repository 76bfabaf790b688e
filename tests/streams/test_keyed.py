"""Keyed learners: the bits of a key depend on its rows alone."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from tests.streams.setups import bitwise

import credo
from credo.streams.keyed.engine import tile_places
from credo.streams.keyed.naming import salt

D, KEYS, ROWS = 2, 9, 20


def linear(w: Any, x: Any) -> Any:
    return x @ w


def bong(likelihood: Any, family: Any) -> Any:
    return credo.bong(credo.Model(linear, likelihood), family, dynamics=credo.RandomWalk(1e-3))


LEARNERS = {
    "full": bong(credo.Normal(0.1), credo.Full()),
    "diagonal": bong(credo.Normal(0.1), credo.Diagonal()),
    "low-rank": bong(credo.Normal(0.1), credo.LowRank(1)),
    "bernoulli": bong(credo.Bernoulli(), credo.Full()),
    "noise": bong(credo.Normal(credo.InverseGamma(3.0, 0.3)), credo.Full()),
    "robust": credo.WoLF(bong(credo.Normal(0.1), credo.Full()), 3.0),
    "changes": credo.RunLength(bong(credo.Normal(0.1), credo.Full()), hazard=0.05, capacity=3),
}


def prior(learner: Any) -> Any:
    return learner.init(jnp.zeros(D))


def rows(kind: str, seed: int = 0) -> tuple[Any, ...]:
    """A stream with a hot key, missing observations and rows of weight 0."""
    rng = np.random.default_rng(seed)
    keys = np.where(rng.random(ROWS) < 0.4, 3, rng.integers(0, KEYS, ROWS))
    xs = rng.normal(size=(ROWS, D))
    ys = xs.sum(axis=1) + rng.normal(size=ROWS)
    if kind == "bernoulli":
        ys = (ys > 0).astype(float)
    ys[rng.random(ROWS) < 0.1] = np.nan
    return keys, xs, ys, np.where(rng.random(ROWS) < 0.1, 0.0, rng.random(ROWS) + 0.5)


def in_calls(keyed: Any, stream: tuple[Any, ...], cuts: list[int]) -> Any:
    """The joined reports of a stream that is learned in several calls."""
    ends = [0, *sorted(cuts), len(stream[0])]
    calls = [
        keyed.learn(*(column[start:stop] for column in stream))
        for start, stop in itertools.pairwise(ends)
        if stop > start
    ]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *[(one.outcome, one.info) for one in calls])


def same_keys(left: Any, right: Any, keys: Any = range(KEYS)) -> None:
    for key in keys:
        assert (key in left) == (key in right)
        if key in left:
            bitwise(left.belief(key), right.belief(key))


PAIRS = [
    pytest.param(kind, tile, marks=() if (row + column) % 2 else pytest.mark.thorough)
    for row, kind in enumerate(LEARNERS)
    for column, tile in enumerate((8, 16))
]


@pytest.mark.table
@pytest.mark.parametrize(("kind", "tile"), PAIRS)
def test_a_key_learns_as_a_learner_alone_and_bitwise_however_rows_are_grouped(kind: str, tile: int) -> None:
    learner, stream = LEARNERS[kind], rows(kind)
    whole = credo.Keyed(learner, prior(learner), tile=tile, capacity=16)
    told = whole.learn(*stream)
    parts = credo.Keyed(learner, prior(learner), tile=tile, capacity=8)  # grows on the way
    bitwise(in_calls(parts, stream, [1, 6, 13]), (told.outcome, told.info))
    same_keys(parts, whole)
    own = stream[0] == 3
    xs, ys, weights = (column[own] for column in stream[1:])
    belief, trace = credo.run(learner, prior(learner), xs, ys, weights=weights)
    for ours, theirs in zip(jax.tree.leaves(whole.belief(3)), jax.tree.leaves(belief), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(told.info.log_evidence[own], trace.log_evidence, rtol=1e-10, atol=1e-10)
    assert told.ok[own].tolist() == np.asarray(trace.ok).tolist()
    assert (told.alarm is not None) == (kind == "changes")
    assert len(whole) == len(np.unique(stream[0])) and whole.rows == ROWS


FULL = LEARNERS["full"]


@st.composite
def streams(draw: st.DrawFn) -> tuple[Any, ...]:
    count = draw(st.integers(1, 30))
    keys = draw(st.lists(st.sampled_from([0, 0, 0, *range(1, KEYS)]), min_size=count, max_size=count))
    kinds = draw(
        st.lists(st.sampled_from(["plain", "plain", "missing", "light"]), min_size=count, max_size=count)
    )
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    ys = np.where([kind == "missing" for kind in kinds], np.nan, rng.normal(size=count))
    weights = np.where([kind == "light" for kind in kinds], 0.0, 1.0)
    return np.array(keys), rng.normal(size=(count, D)), ys, weights


@pytest.mark.optimised
@settings(max_examples=30)
@given(
    streams(), st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=4), st.booleans(), st.data()
)
def test_any_calls_evictions_and_restarts_give_the_bits_of_one_call(
    tmp_path_factory: pytest.TempPathFactory,
    stream: tuple[Any, ...],
    cuts: list[tuple[int, bool]],
    evicted: bool,
    data: st.DataObject,
) -> None:
    whole = credo.Keyed(FULL, prior(FULL), tile=8, capacity=16)
    told = whole.learn(*stream)
    keyed = credo.Keyed(FULL, prior(FULL), tile=8, capacity=8, evict=4 if evicted else None)
    folder, start, reports = tmp_path_factory.mktemp("keyed"), 0, []
    for stop, saved in [*sorted(cuts), (len(stream[0]), True)]:
        if start < stop <= len(stream[0]):
            one = keyed.learn(*(column[start:stop] for column in stream))
            reports.append((one.outcome, one.info))
            start = stop
        if saved:
            keyed.save(folder, offset=start)
            keyed.learn([0, 5], np.ones((2, D)), np.ones(2))  # lost
            keyed = credo.Keyed.load(folder, FULL)
            assert keyed.offset == start
        assert not evicted or len(keyed._engine.stack.table) <= 4
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *reports)
    bitwise(joined, (told.outcome, told.info))
    same_keys(keyed, whole)
    assert len(keyed) == len(whole) and keyed.rows == whole.rows


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.sampled_from([1, 2, 8]))
def test_tiles_are_as_few_as_can_be_hold_no_key_twice_and_keep_the_order(slots: list[int], tile: int) -> None:
    numbers = np.array(slots)
    places, tiles = tile_places(numbers, tile)
    assert tiles == max(np.bincount(numbers).max(), -(-len(slots) // tile))
    assert len(set(places.tolist())) == len(slots) and places.max() < tiles * tile
    for slot in set(slots):
        order = places[numbers == slot] // tile
        assert (np.diff(order) > 0).all()


def test_forecasts_are_those_of_a_learner_alone_and_change_nothing() -> None:
    stream = rows("full")
    keyed = credo.Keyed(FULL, prior(FULL), tile=8, capacity=16)
    keyed.learn(*stream)
    x = np.array([[1.0, -1.0]])
    for key, belief in ((3, keyed.belief(3)), (77, prior(FULL))):
        mean, sd = keyed.forecast([key], x)
        alone = FULL.forecast(FULL.predict(belief), x[0])
        np.testing.assert_allclose([mean[0], sd[0]], [alone.mean, alone.sd], rtol=1e-10)
    assert 77 not in keyed and keyed.rows == ROWS


def test_times_are_those_of_each_key() -> None:
    xs, ys = np.ones((3, D)), np.arange(3.0)
    keyed = credo.Keyed(FULL, prior(FULL), tile=8, capacity=16)
    keyed.learn(["a", "b", "a"], xs, ys, times=[1.0, 5.0, 4.0])
    keyed.learn([b"a"], xs[:1], ys[:1], times=[0.0])  # another key
    belief, _ = credo.run(FULL, prior(FULL), xs[::2], ys[::2], dts=np.array([0.0, 3.0]))
    np.testing.assert_allclose(keyed.belief("a").var, belief.var, rtol=1e-10)
    with pytest.raises(
        credo.CredoError, match=r"times must not go back for a key; got 3\.0 after 4\.0 at row 0"
    ):
        keyed.learn(["a"], xs[:1], ys[:1], times=[3.0])
    with pytest.raises(credo.CredoError, match="times must be given for all rows or none"):
        keyed.learn(["a"], xs[:1], ys[:1])
    assert keyed.rows == 4


def test_new_keys_begin_at_the_pooled_belief_renewed_at_row_counts() -> None:
    rng = np.random.default_rng(0)
    keys, xs = rng.integers(0, 8, 40), rng.normal(size=(40, D))
    ys = xs @ np.array([2.0, -1.0])
    plain = credo.Keyed(FULL, prior(FULL), tile=8, capacity=16)
    plain.learn(keys, xs, ys)
    pooled, parts = (credo.Keyed(FULL, prior(FULL), tile=8, capacity=16, pooled=20) for _ in range(2))
    pooled.learn(keys, xs, ys)
    in_calls(parts, (keys, xs, ys), [7, 33])
    same_keys(pooled, parts)
    mean = pooled.forecast([99], np.eye(D)[:1])[0]
    average = np.mean([pooled.belief(key).mean for key in set(keys.tolist())], axis=0)
    np.testing.assert_allclose(mean, average[:1], rtol=1e-10)
    with pytest.raises(credo.CredoError, match="pooled needs beliefs whose moments can be matched"):
        credo.Keyed(LEARNERS["changes"], prior(LEARNERS["changes"]), pooled=20)


def by_inputs(x: Any) -> Any:
    return FULL.init(jnp.stack([x[0], jnp.zeros_like(x[0])]))


def test_a_prior_may_be_a_function_of_the_first_inputs(tmp_path: Path) -> None:
    keyed = credo.Keyed(FULL, by_inputs, tile=8, capacity=16)
    nothing = np.full(2, np.nan)
    keyed.learn(["a", "a"], np.array([[3.0, 0.0], [5.0, 0.0]]), nothing)
    keyed.save(tmp_path)
    keyed = credo.Keyed.load(tmp_path, FULL, prior=by_inputs)
    keyed.learn(["b"], np.array([[7.0, 0.0]]), nothing[:1])
    assert [float(keyed.belief(key).mean[0]) for key in "ab"] == [3.0, 7.0]
    with pytest.raises(credo.FormatError, match="prior must be the function that was the prior"):
        credo.Keyed.load(tmp_path, FULL)


def test_keys_that_draw_have_draws_of_their_own(tmp_path: Path) -> None:
    model = credo.Model(linear, credo.Normal(0.1))
    drawing = credo.bong(model, credo.Diagonal(), "mc-ef")
    keyed = credo.Keyed(drawing, prior(drawing), tile=8, capacity=16, key=1)
    keyed.learn(["a", "b"], np.ones((2, D)), np.ones(2))
    one, other = keyed.belief("a"), keyed.belief("b")
    assert not np.array_equal(one.mean, other.mean)
    keyed.save(tmp_path)
    again = credo.Keyed.load(tmp_path, drawing)
    for each in (keyed, again):
        each.learn(["a", "c"], np.ones((2, D)), np.ones(2))
    same_keys(again, keyed, "abc")


@pytest.mark.thorough
def test_particles_of_each_key_draw_by_a_key_of_their_own() -> None:
    filtering = credo.particle_filter(credo.Model(linear, credo.Normal(0.1)), particles=8)
    learners: list[Any] = [filtering, credo.RunLength(filtering, hazard=0.1, capacity=2)]
    for learner in learners:
        first = learner.init(jnp.zeros(D), key=3)
        keyed: credo.Keyed[Any] = credo.Keyed(learner, first, tile=8, capacity=16)
        for _ in range(3):
            keyed.learn(["a", "b"], np.ones((2, D)), np.ones(2))
        own = [
            [leaf for leaf in jax.tree.leaves(keyed.belief(key)) if leaf.shape[-2:] == (8, D)] for key in "ab"
        ]
        assert not all(np.array_equal(one, other) for one, other in zip(*own, strict=True))
    keyed = credo.Keyed(filtering, filtering.init(jnp.zeros(D), key=3), tile=8, capacity=16)
    keyed.learn(["a", "b"], np.ones((2, D)), np.ones(2))
    begun = filtering.init(jnp.zeros(D), key=3)
    data = jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(begun.key), salt("b")))
    alone, _ = filtering.step(credo.replace(begun, key=data), jnp.ones(D), 1.0)
    np.testing.assert_allclose(keyed.belief("b").values, alone.values, rtol=1e-12)
    assert np.array_equal(keyed.belief("b").key, data)


def test_dropped_keys_begin_again_and_stay_dropped_after_a_restart(tmp_path: Path) -> None:
    keyed = credo.Keyed(FULL, prior(FULL), tile=8, capacity=8, evict=4)
    for key in range(8):
        keyed.learn([key], np.ones((1, D)), np.ones(1))
    keyed.save(tmp_path)
    keyed.drop([0, 7])  # the one is away, the other here
    with pytest.raises(credo.CredoError, match="keys must be among those that were learned; got 0"):
        keyed.drop([6, 0])
    assert len(keyed) == 6 and 6 in keyed and 0 not in keyed and 7 not in keyed
    keyed.save(tmp_path)
    again = credo.Keyed.load(tmp_path, FULL)
    assert [key in again for key in (0, 1, 6, 7)] == [False, True, True, False] and len(again) == 6
    keyed.learn([0], np.ones((1, D)), np.ones(1))
    assert int(keyed.belief(0).t) == 1


def test_a_checkpoint_writes_what_changed_and_a_torn_one_gives_way_to_the_one_before(tmp_path: Path) -> None:
    keyed = credo.Keyed(FULL, prior(FULL), tile=8, capacity=2048)
    keyed.learn(np.arange(2048), np.ones((2048, D)), np.ones(2048))
    for time in range(4):
        keyed.learn([2000], np.ones((1, D)), np.ones(1))
        keyed.save(tmp_path, offset=time)
    path = max(tmp_path.glob("manifest-*"))
    files = sorted(one.name for one in tmp_path.glob("*.pages"))
    assert files == ["keys-00000001-000000.pages"] + [f"rows-0000000{n}-000000.pages" for n in (1, 3, 4)]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.warns(UserWarning, match="The checkpoint before it is taken"):
        again = credo.Keyed.load(tmp_path, FULL)
    assert again.offset == 2 and int(again.belief(2000).t) == 4 and len(again) == 2048
    again.learn([2000], np.ones((1, D)), np.ones(1))
    again.save(tmp_path, offset=3)
    bitwise(credo.Keyed.load(tmp_path, FULL).belief(2000), keyed.belief(2000))
    with pytest.raises(credo.FormatError, match="was saved by another model"):
        credo.Keyed.load(tmp_path, LEARNERS["diagonal"])
    with pytest.raises(credo.DataError, match="no checkpoint of keyed learners in"):
        credo.Keyed.load(tmp_path / "other", FULL)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ([1, None], r"keys\[1\] is missing"),
        ([float("nan"), 1], r"keys\[0\] is missing"),
        ([1.5, 1], r"keys\[0\] must be an integer, text or bytes; got 1\.5"),
        ([True, 1], r"keys\[0\] must be an integer, text or bytes; got True"),
        ("ab", "keys must have one entry a row; got 'ab'"),
        ([1], "all inputs must have the same length"),
        ([], "all inputs must have the same length"),
    ],
)
def test_rows_that_cannot_be_learned_are_refused_and_change_nothing(keys: Any, sentence: str) -> None:
    keyed = credo.Keyed(FULL, prior(FULL), tile=8, capacity=16)
    with pytest.raises(credo.CredoError, match=sentence):
        keyed.learn(keys, np.ones((2, D)), np.ones(2))
    with pytest.raises(credo.CredoError, match="fails for x of shape"):
        keyed.learn([1, 2], np.ones((2, D + 1)), np.ones(2))  # a row that the model cannot take
    assert len(keyed) == 0 and 1 not in keyed and keyed.rows == 0
    with pytest.raises(credo.CredoError, match="key must be one that was learned; got 1"):
        keyed.belief(1)


def test_a_capacity_beyond_the_memory_is_refused() -> None:
    with pytest.raises(credo.CredoError, match="capacity must fit into memory: 2,000,000,000 keys of"):
        credo.Keyed(FULL, prior(FULL), capacity=2_000_000_000)


def test_a_file_with_few_pages_that_are_up_to_date_is_replaced(tmp_path: Path) -> None:
    keyed = credo.Keyed(FULL, prior(FULL), tile=8, capacity=4096)
    keyed.learn(np.arange(4096), np.ones((4096, D)), np.ones(4096))
    keyed.save(tmp_path)
    for page in (1, 2, 3):  # after which the first file has one page of four that is up to date
        keyed.learn([1024 * page], np.ones((1, D)), np.ones(1))
        keyed.save(tmp_path)
    for _ in range(2):
        keyed.learn([2048], np.ones((1, D)), np.ones(1))
        keyed.save(tmp_path)
    assert not list(tmp_path.glob("rows-00000001-*"))
    again = credo.Keyed.load(tmp_path, FULL)
    assert len(again) == 4096
    same_keys(again, keyed, [0, 1024, 2048, 3072, 4095])


def test_a_checkpoint_is_written_from_where_the_beliefs_are_and_leaves_them_there(tmp_path: Path) -> None:
    keyed = credo.Keyed(FULL, prior(FULL), tile=8, capacity=2048)
    places = set[int]()
    for _ in range(3):
        keyed.learn([1, 2], np.ones((2, D)), np.ones(2))
        keyed.save(tmp_path)
        places.add(keyed._engine.stack.words.unsafe_buffer_pointer())
    assert len(places) == 1  # a matrix that something else still has would be copied by the next call
    path = max(tmp_path.glob("rows-*"))
    data = bytearray(path.read_bytes())
    data[5] ^= 1
    path.write_bytes(data)
    with pytest.warns(UserWarning, match=r"rows-00000003-000000\.pages is damaged: its contents"):
        assert int(credo.Keyed.load(tmp_path, FULL).belief(1).t) == 2


def test_all_kinds_of_keys_survive_a_restart(tmp_path: Path) -> None:
    names: list[Any] = [1, "1", b"1", "\ud800é", b"\xff\x00", -(2**70), np.int64(7), np.str_("s")]
    keyed = credo.Keyed(FULL, prior(FULL), tile=8, capacity=8, evict=4)
    keyed.learn(names, np.ones((8, D)), np.arange(8.0))
    keyed.save(tmp_path)
    again = credo.Keyed.load(tmp_path, FULL)
    assert len(again) == 8
    same_keys(again, keyed, names)
