"""Online standardisation is that of the plain reference, and bitwise the same however the rows are split."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from tests.adapt.moments_reference import Naive

from credo.adapt.running_moments import RunningMoments
from credo.core.errors import DataError, FormatError
from credo.tables import Moments, TargetScaler
from credo.tables.moments import ColumnMoments

ENTRIES = st.one_of(st.floats(-1e6, 1e6), st.just(math.nan), st.sampled_from([0.0, 1.0, 1e9, 1e9 + 1]))


def plain(x: Any) -> Any:
    """Means, standard deviations and counts before each row, one entry at a time."""
    means, sds, counts = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape, int)
    for column in range(x.shape[1]):
        naive = Naive()
        for row in range(len(x)):
            means[row, column], sds[row, column], counts[row, column] = naive.mean, naive.sd, naive.count
            naive.observe(x[row, column])
    return means, sds, counts


def split(x: Any, cuts: Any) -> Any:
    """The scan of x cut at the given places."""
    state, parts = Moments.empty(x.shape[1]), []
    for part in np.split(x, sorted(cut % (len(x) + 1) for cut in cuts)):
        state, *out = state.scan(part)
        parts.append(out)
    return state, *(np.concatenate(columns) for columns in zip(*parts, strict=True))


@given(arrays(np.float64, st.tuples(st.integers(0, 60), st.integers(1, 3)), elements=ENTRIES))
def test_it_is_plain(x: Any) -> None:
    _, mean, sd, count, _ = Moments.empty(x.shape[1]).scan(x)
    expected_mean, expected_sd, expected_count = plain(x)
    np.testing.assert_array_equal(count, expected_count)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-8, atol=1e-8)
    scale = np.nanmax(np.abs(x), initial=1.0) if np.isfinite(x).any() else 1.0
    np.testing.assert_allclose(sd, expected_sd, rtol=1e-8, atol=1e-8 * scale)


@pytest.mark.parametrize(("offset", "trend"), [(0.0, 0.0), (1e9, 0.0), (-3e5, 1.0), (1.7e9, 60.0)])
def test_it_is_the_plain_reference_over_many_blocks(offset: Any, trend: Any) -> None:
    rng = np.random.default_rng(0)
    x = offset + trend * np.arange(6000)[:, None] + rng.normal(size=(6000, 2))
    x[rng.random(x.shape) < 0.2] = np.nan
    _, mean, sd, *_ = Moments.empty(2).scan(x)
    expected_mean, expected_sd, _ = plain(x)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-10)
    np.testing.assert_allclose(sd, expected_sd, rtol=1e-6 if offset else 1e-10)


@pytest.mark.parametrize("place", [0, 1, 5, 99, 700])
@pytest.mark.parametrize("absurd", [1e3, 1e9, -1e38, 1e300])
def test_one_absurd_entry_leaves_no_trace(place: int, absurd: float) -> None:
    x = np.random.default_rng(0).normal(size=(2000, 1))
    rest = np.delete(x, place)
    x[place] = absurd
    after, *_ = Moments.empty(1).scan(x)
    # of the first entries some may be lost with it
    np.testing.assert_allclose(after.mean(), rest.mean(), atol=0.01)
    np.testing.assert_allclose(after.sd(), rest.std(ddof=1), rtol=0.01)
    assert after.restarts.tolist() == [place < 2 and absurd < 1e123]


@pytest.mark.parametrize("change", [lambda x: 1000 * x, lambda x: x + 1e6, lambda x: 1e6 - 1000 * x])
def test_other_units_for_good_are_taken_up_within_sixty_entries(change: Any) -> None:
    rng = np.random.default_rng(6)
    before, new = rng.normal(5.0, 1.0, size=900), change(rng.normal(5.0, 1.0, size=60))
    after, *_ = Moments.empty(1).scan(np.concatenate([before, new])[:, None])
    assert after.restarts.tolist() == [1]
    np.testing.assert_allclose(after.mean(), new.mean(), atol=new.std() / 2)
    np.testing.assert_allclose(after.sd(), new.std(), rtol=0.3)


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 3000), max_size=6),
    st.sampled_from([10, 1023, 1024, 3000]),
)
def test_chunks_do_not_matter(seed: Any, cuts: Any, rows: Any) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2)) * 10.0 ** rng.integers(-5, 9) + 10.0 ** rng.integers(-5, 9)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[: rows // 2, 1] = np.nan
    x[rng.random(x.shape) < 0.01] *= 1e6
    x[rows // 3 :, 0] *= rng.choice([1.0, 1e5])
    whole, *outputs = Moments.empty(2).scan(x)
    parts, *pieces = split(x, cuts)
    for one, other in zip(outputs, pieces, strict=True):
        np.testing.assert_array_equal(one, other)
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(array, parts.arrays()[name])


def test_saved_moments_continue_bitwise() -> None:
    x = np.random.default_rng(0).normal(size=(5000, 3))
    whole, mean, *_ = Moments.empty(3).scan(x)
    first, *_ = Moments.empty(3).scan(x[:1500])
    second, later, *_ = Moments.from_arrays(first.arrays()).scan(x[1500:])
    np.testing.assert_array_equal(mean[1500:], later)
    np.testing.assert_array_equal(whole.s2, second.s2)


def test_saved_moments_are_checked() -> None:
    saved = Moments.empty(3).arrays()
    with pytest.raises(
        FormatError, match="saved moments must hold rows, count, centre, s1, s2; 's2' is not there"
    ):
        Moments.from_arrays({name: saved[name] for name in ("rows", "count", "centre", "s1")})
    with pytest.raises(FormatError, match=r"of one shape; got .* s1 \(2,\)"):
        Moments.from_arrays({**saved, "s1": np.zeros(2)})


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.integers(0, 50))
def test_targets_are_standardised_by_the_past_and_chunks_do_not_matter(y: Any, cut: Any) -> None:
    y = np.array(y)
    scaler = TargetScaler()
    end, scaled = scaler.encode(scaler.initial(), y)
    mean, sd, count = (out[:, 0] for out in plain(y[:, None]))
    np.testing.assert_allclose(scaled.location, mean, rtol=1e-8, atol=1e-8)
    clear = sd > 1e-6 * np.abs(y).max()
    np.testing.assert_allclose(scaled.scale[clear], sd[clear], rtol=1e-8)
    assert (scaled.scale > 0).all() and np.isfinite(scaled.z).all()
    assert (np.abs(scaled.z) <= np.minimum(8, np.sqrt(count))).all()
    assert not scaled.known[:10].any()
    state, first = scaler.encode(scaler.initial(), y[:cut])
    state, second = scaler.encode(state, y[cut:])
    np.testing.assert_array_equal(np.concatenate([first.z, second.z]), scaled.z)
    np.testing.assert_array_equal(state.s2, end.s2)


def test_targets_come_back() -> None:
    rng = np.random.default_rng(1)
    y = 5 + 3 * rng.normal(size=500)
    scaler = TargetScaler()
    state, scaled = scaler.encode(scaler.initial(), y)
    mean, sd = scaled.inverse(scaled.z, np.ones(500))
    np.testing.assert_allclose(mean[50:], y[50:], rtol=1e-12)
    np.testing.assert_array_equal(sd, scaled.scale)
    assert scaled.known[10:].all()
    mean, sd = scaler.inverse(state, 0.0, 1.0)
    np.testing.assert_allclose([mean, sd], [y.mean(), y.std(ddof=1)], rtol=1e-12)
    same, frozen = scaler.encode(state, y, learn=False)
    assert same is state
    np.testing.assert_allclose(frozen.z, (y - y.mean()) / y.std(ddof=1), rtol=1e-10)


def test_targets_are_checked() -> None:
    scaler = TargetScaler()
    with pytest.raises(DataError, match="targets must be finite; row 1 of these is not"):
        scaler.encode(scaler.initial(), np.array([1.0, np.nan]))
    with pytest.raises(DataError, match="clip must be above 0; got 0"):
        TargetScaler(clip=0)


@given(cut=st.integers(0, 39), seed=st.integers(0, 5))
def test_a_row_with_a_whole_weight_counts_as_so_many_rows(cut: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, times = rng.normal(size=(40, 2)), rng.integers(1, 4, size=40)
    x[rng.random((40, 2)) < 0.2] = np.nan
    heavy = Moments.empty(2).scan(x, times.astype(float))[0]
    many = Moments.empty(2).scan(np.repeat(x, times, axis=0))[0]
    np.testing.assert_allclose(heavy.mean(), many.mean(), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(heavy.sd(), many.sd(), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(heavy.total, many.count)
    # weights of 1 are no weights, and the parts of a stream may have weights or not
    ones = np.r_[np.ones(cut), times[cut:]].astype(float)
    first = Moments.empty(2).scan(x[:cut])[0]
    parts = Moments.from_arrays(first.arrays()).scan(x[cut:], ones[cut:])[0]
    whole = Moments.empty(2).scan(x, ones)[0]
    for mine, theirs in zip(parts.arrays().values(), whole.arrays().values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_small_weights_compare_rows_and_leave_the_spread() -> None:
    x = np.random.default_rng(0).normal(size=(50, 1))
    light, plain = Moments.empty(1).scan(x, np.full(50, 1e-3))[0], Moments.empty(1).scan(x)[0]
    np.testing.assert_allclose(light.sd(), plain.sd(), rtol=1e-10)


def test_a_column_taken_entry_by_entry_leaves_an_absurd_one_out() -> None:
    column = ColumnMoments()
    assert column.take(1.0, 8.0) == column.take(1.0, 8.0) == column.z(3.0, 8.0) == 0.0  # of no known spread
    column = ColumnMoments()
    for x in (1.0, 3.0, 8.0, 1e9):
        column.observe(x)
    assert (column.mean, round(column.sd, 3), column.z(8.0, clip=1.0)) == (4.0, 3.606, 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_an_entry_that_is_taken_is_one_that_is_standardised_and_then_observed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    entries = rng.normal(size=600)
    entries[rng.random(600) < 0.1] *= 1e4
    far = np.where(np.arange(40) % 10 == 9, 0.0, 1e5 + rng.normal(size=40))  # streaks that a usual entry ends
    entries = np.concatenate([entries, far, entries[:50] + 1e9])
    taken, observed = ColumnMoments(), ColumnMoments()
    for x in entries.tolist():
        z = observed.z(x, 8.0)
        observed.observe(x)
        assert taken.take(x, 8.0) == z and taken.state() == observed.state()
    assert observed.streaks.restarts


FEW_VALUES = [
    [3.0] * 130 + [4.0, 3.0, 3.0],
    [0.0] * 12 + [1.0, 0.0],
    [1e9, *[1.0] * 30, 2.0, *[1.0] * 130],  # close entries by which the moments begin again
    [1.0, 2.0, *[1.5] * 30],
    [5.0, 5.0, 5.0, 1e200, 5.0, 6.0, 5.0],
    [1e122, -1e122, 1.1e123, 1e122],  # near the mean, and too large to be anything
]


@pytest.mark.parametrize("entries", FEW_VALUES)
def test_an_entry_of_few_values_is_taken_as_it_is_standardised_and_then_observed(entries: Any) -> None:
    taken, observed = ColumnMoments(), ColumnMoments()
    for x in entries:
        z = observed.z(x, 8.0)
        observed.observe(x)
        assert taken.take(x, 8.0) == z and taken.state() == observed.state()


@pytest.mark.parametrize("seed", range(4))
def test_the_moments_of_negated_entries_are_the_moments_negated(seed: int) -> None:
    entries = np.random.default_rng(seed).standard_t(1.5, size=600)  # single far entries on both sides
    column, negated = ColumnMoments(), ColumnMoments()
    for x in entries.tolist():
        column.observe(x)
        negated.observe(-x)
        assert (negated.mean, negated.sd) == (-column.mean, column.sd)
    assert column.streaks.events


def test_a_sentinel_between_the_far_entries_of_a_tail_stays_out_of_the_moments() -> None:
    rng = np.random.default_rng(5)
    clean = rng.lognormal(0.0, 1.3, size=2000)
    assert (clean > clean.mean() + 8 * clean.std()).sum() >= 3
    dirty = np.where(rng.random(2000) < 0.02, -999.0, clean)
    column, naive, moments = ColumnMoments(), Naive(), RunningMoments.empty((1,), float)
    observe = jax.jit(lambda moments, x: moments.observe(x))
    for x in dirty.tolist():
        column.observe(x)
        naive.observe(x)
        moments = observe(moments, jnp.full(1, x))
    assert column.streaks.events >= 3 and column.streaks.farthest == naive.farthest == -999.0
    kept = clean[dirty != -999.0]
    for mean, sd in ((column.mean, column.sd), (naive.mean, naive.sd)):
        np.testing.assert_allclose(mean, kept.mean(), rtol=0.02)
        np.testing.assert_allclose(sd, kept.std(), rtol=0.15)
    np.testing.assert_allclose([moments.mean[0], moments.sd[0]], [naive.mean, naive.sd], rtol=1e-9)


def test_far_entries_that_creep_are_compared_with_the_farthest() -> None:
    rng = np.random.default_rng(6)
    entries = rng.normal(size=600)
    entries[150::20] = -999.0 - 3.0 * np.arange(len(entries[150::20]))
    column, naive, moments = ColumnMoments(), Naive(), RunningMoments.empty((1,), float)
    observe = jax.jit(lambda moments, x: moments.observe(x))
    for x in entries.tolist():
        column.observe(x)
        naive.observe(x)
        moments = observe(moments, jnp.full(1, x))
        kept = float(moments.values[0, 9]), float(moments.values[0, 10])
        assert column.streaks.events == naive.events == kept[0]
        assert not column.streaks.events or column.streaks.farthest == naive.farthest == kept[1]
    assert column.streaks.events > 3


def test_of_a_column_without_entries_the_moments_are_zero() -> None:
    blank = np.full((5, 2), [np.nan, 1.0])
    for moments in (Moments.empty(2), Moments.of(blank), Moments.empty(2).scan(blank)[0]):
        assert moments.mean().tolist() == [0.0, float(moments.count[1] > 0)]
        assert moments.sd().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_entry_is_far_by_its_distance_from_the_mean(sign: float) -> None:
    """Nine standard deviations from it here, but only seven from zero, and five from the mean's opposite."""
    x = sign * (2.0 + np.sqrt(3.0) * np.random.default_rng(0).uniform(-1.0, 1.0, size=(2000, 1)))
    rest = np.delete(x, 1500)
    x[1500] = sign * -7.0
    after, *_ = Moments.empty(1).scan(x)
    np.testing.assert_allclose(after.mean(), rest.mean(), rtol=1e-10)
    np.testing.assert_allclose(after.sd(), rest.std(ddof=1), rtol=1e-10)


def rows_taken_at_once(x: Any) -> int:
    """The number of rows that were taken in at once, all with the bits of their entries one by one."""
    quick = slow = Moments.empty(x.shape[1])
    taken = 0
    for row in x:
        taken += quick._one(row) is not None
        found = quick.scan(row[None])
        quick = found.after
        slow, *expected = slow._scan_part(row[None], None)
        expected.append(expected[1] > 1e-12 * np.abs(expected[0]))
        for mine, theirs in zip(found[1:], expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        # what the row said of the next one is what its sums say
        for carried, computed in zip(quick.facts, slow.facts, strict=True):
            np.testing.assert_array_equal(carried, computed)
        assert quick.arrays().keys() == slow.arrays().keys()
        for name, array in slow.arrays().items():
            np.testing.assert_array_equal(quick.arrays()[name], array)
    return taken


@pytest.mark.parametrize("trial", range(12))
def test_a_row_is_taken_in_with_the_bits_of_its_entries_one_by_one(trial: int) -> None:
    rng = np.random.default_rng(trial)
    width, count = int(rng.integers(1, 5)), int(rng.integers(20, 260))
    x = rng.normal(size=(count, width))
    if trial % 3 == 0:
        x = np.round(x)  # entries that repeat
    x = x * 10.0 ** rng.integers(-3, 4, size=width) + 100 * (trial % 3)
    absurd = rng.random(x.shape) < 0.03
    x[absurd] *= 10.0 ** rng.integers(2, 160, size=np.count_nonzero(absurd))
    x[rng.random(x.shape) < 0.1] = np.nan
    if trial % 4 == 0:
        x[count // 3 : count // 3 + 14] = x[count // 3]  # a streak of close ones
    assert 0 < rows_taken_at_once(x) < count


@pytest.mark.parametrize("entries", FEW_VALUES)
def test_a_row_of_few_values_is_taken_in_with_the_bits_of_its_entry(entries: Any) -> None:
    rows_taken_at_once(np.array(entries)[:, None])


@pytest.mark.parametrize("seed", range(6))
def test_the_facts_that_a_row_leaves_are_those_of_the_plain_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(3.0, [1.0, 5.0, 1.0, 2.0], size=(240, 4))
    x[rng.random(x.shape) < 0.05] = np.nan
    x[rng.random(x.shape) < 0.02] *= 1e4
    x[:90, 0] = np.nan  # a column that comes late
    x[0, 1] = 1e9  # absurd, and first: the others are close to each other until the moments begin again
    x[150:, 2] += 1e6  # other units
    x[40:52, 3] = 700.0  # a streak that is joined, or begun from
    columns = [Naive() for _ in range(4)]
    moments = Moments.empty(4)
    again = np.zeros(4, int)
    carried = 0
    for row in x:
        before = moments
        moments = before.scan(row[None]).after
        carried += "facts" in moments.__dict__
        for naive, entry in zip(columns, row.tolist(), strict=True):
            naive.observe(entry)
        facts = moments.facts
        count = np.array([naive.count for naive in columns])
        last = again
        again = np.array([naive.restarts for naive in columns])
        assert moments.begun_again(before) == np.flatnonzero(again > last).tolist()
        np.testing.assert_array_equal(moments.count, count)
        np.testing.assert_allclose(facts.mean, [naive.mean for naive in columns], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(facts.sd, [naive.sd for naive in columns], rtol=1e-7, atol=1e-9)
        assert facts.spread.tolist() == [naive.known for naive in columns]
        assert facts.early.tolist() == ((count <= 100) & (again == 0)).tolist()
        assert facts.restarts == again.sum() and facts.full == (count > 1).all()
    assert carried > 50 and again[1] and again[2]


def test_ten_far_entries_in_a_row_are_taken_in_beside_what_was_there() -> None:
    """Twenty standard deviations away: a change of level, and no other units."""
    x = np.random.default_rng(4).normal(size=130)
    x[110:] += 20.0
    column, naive, moments = ColumnMoments(), Naive(), RunningMoments.empty((1,), float)
    for entry in x.tolist():
        column.observe(entry)
        naive.observe(entry)
        moments = moments.observe(jnp.full(1, entry))
    assert naive.count == 130 and naive.restarts == 0
    scanned = Moments.empty(1).scan(x[:, None])[0]
    for mean, sd in ((column.mean, column.sd), (scanned.mean()[0], scanned.sd()[0])):
        np.testing.assert_allclose((mean, sd), (naive.mean, naive.sd), rtol=1e-10)
    np.testing.assert_allclose((moments.mean[0], moments.sd[0]), (naive.mean, naive.sd), rtol=1e-10)
