"""A memory whose nearest rows vote, against a naive one; with bad data, with functions, and in company."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special as ss
import scipy.stats
from tests.learners.neighbours_reference import FORGETTING, SCALE, SHAPE, NaiveMemory
from tests.learners.reference import close, right_choices, streams_alike
from tests.streams.setups import bitwise
from tests.tiers import few

import credo
from credo import bandits
from credo.core.errors import CredoError
from credo.learners.votes import ClassVotes, votes_of

st: Any = scipy.stats  # its annotations are those of another distribution in places

SIZE, NEIGHBOURS = 25, (2, 5, 9)
KINDS: dict[str, Any] = {
    "two": credo.Bernoulli(),
    "three": credo.Categorical(3),
    "numbers": credo.Normal(credo.InverseGamma(SHAPE, SCALE, FORGETTING)),
    "counts": credo.Poisson(),
}
EACH = pytest.mark.parametrize("name", list(KINDS))


def learner_of(name: str, columns: int = 2, **others: Any) -> Any:
    return credo.NearestNeighbours(columns, KINDS[name], **{"size": SIZE, "neighbours": NEIGHBOURS, **others})


def naive_of(name: str, learner: Any) -> NaiveMemory:
    kind = {"two": "classes", "three": "classes"}.get(name, name)
    numbers = learner.size, learner.neighbours, learner.decay, learner.switching
    return NaiveMemory(kind, 2 if name == "two" else 3, *numbers)


def rows_of(name: str, count: int = 60, columns: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows on a grid, so that many are equal and as far away as others, and targets that depend on them."""
    rng = np.random.default_rng(seed)
    xs = np.round(rng.normal(size=(count, columns)) * 2) / 2
    signal = xs[:, 0] + 0.5 * rng.normal(size=count)
    if name == "numbers":
        return xs, 3.0 + signal
    if name == "counts":
        return xs, rng.poisson(np.exp(0.5 * signal))
    return xs, np.clip(np.round(signal + 0.5), 0, 1 if name == "two" else 2).astype(int)


def learned(name: str, count: int = 60, **others: Any) -> tuple[Any, Any, Any, Any]:
    """A learner, its belief after some rows, and these rows."""
    xs, ys = map(jnp.asarray, rows_of(name, count))
    learner = learner_of(name, **others)
    return learner, credo.run(learner, learner.init(), xs, ys)[0], xs, ys


def agree(belief: Any, naive: NaiveMemory) -> None:
    belief = jax.tree.map(np.asarray, belief)
    filled = len(naive.places)
    close(np.exp(belief.log_weights), naive.weights)
    close(belief.shares, [weight for *_, weight in naive.places] + [0.0] * (SIZE - filled))
    close(belief.targets[:filled], [y for _, y, _ in naive.places])
    close(belief.rows.T[:filled], np.array([x for x, *_ in naive.places]).reshape(filled, -1))
    assert int(belief.written) == naive.written
    if naive.kind == "numbers":
        close(belief.base.mean, naive.mean)
        close(belief.base.count, naive.count)
        close(belief.base.noise, naive.noise)
    else:
        close(belief.base, naive.rates)


@pytest.mark.table
@EACH
@pytest.mark.parametrize("decay", [3.0, 0.0])
def test_forecasts_evidence_and_beliefs_are_those_of_a_naive_memory(name: str, decay: float) -> None:
    xs, ys = rows_of(name)
    learner = learner_of(name, decay=decay, switching=0.02, clip=1.5)
    naive, belief = naive_of(name, learner), learner.init()
    score = jax.jit(lambda belief, x, y: learner.forecast(belief, x).log_prob(y))
    for row, (x, y) in enumerate(zip(xs, ys, strict=True)):
        weight = (1.0, 0.5, 2.0, 0.0)[row % 4]
        belief = learner.predict(belief)
        naive.predict()
        cut = np.clip(x, -1.5, 1.5)
        expected = np.log(naive.weights @ np.exp(naive.log_probs(cut, y)))
        close(score(belief, x, y), expected)
        belief, info = learner.update(belief, x, y, weight=weight)
        if weight:
            close(info.log_evidence, naive.update(cut, y, weight))
        assert bool(info.ok)
        agree(belief, naive)
    assert int(belief.t) == 60 and naive.written == 45


def test_distances_of_many_columns_are_added_up_in_blocks() -> None:
    xs, ys = rows_of("three", columns=70)
    learner = learner_of("three", 70)
    naive, (belief, _) = (
        naive_of("three", learner),
        credo.run(learner, learner.init(), *map(jnp.asarray, (xs, ys))),
    )
    for x, y in zip(xs, ys, strict=True):
        naive.predict()
        naive.update(x, y, 1.0)
    agree(belief, naive)


@pytest.mark.table
@EACH
def test_the_evidence_is_the_density_of_the_forecast_and_probabilities_sum_to_one(name: str) -> None:
    learner, belief, xs, _ = learned(name)
    predicted = learner.predict(belief)
    forecast = learner.forecast(predicted, xs[3] + 0.1)
    some = (0, 1) if name == "two" else (0, 1, 2)
    evidence = [learner.update(predicted, xs[3] + 0.1, y)[1].log_evidence for y in some]
    close([forecast.log_prob(y) for y in some], evidence)
    if name in ("two", "three"):
        close(forecast.probs.sum(), 1.0)
        close(forecast.probs, np.exp(evidence))


@pytest.mark.slow
@EACH
def test_one_number_of_neighbours_has_the_conjugate_distribution_of_their_targets(name: str) -> None:
    learner, belief, _, ys = learned(name, 4, neighbours=(4,), decay=0.0, size=1000)
    x = jnp.asarray([0.2, -0.1])
    forecast, y = learner.forecast(belief, x), np.asarray(ys)
    keep = (1 - 1 / 1000) ** np.arange(4)[::-1]
    if name == "numbers":
        level = keep @ y / keep.sum()
        mean = (y.sum() + 0.1 * level) / 4.1
        b = SHAPE * belief.base.noise[0] + 0.5 * (((y - mean) ** 2).sum() + 0.1 * (level - mean) ** 2)
        distribution = st.t(2 * (SHAPE + 2), mean, np.sqrt(b / (SHAPE + 2) * (1 + 1 / 4.1)))
        for value in (-1.0, 2.5):
            close(forecast.log_prob(value), distribution.logpdf(value))
            close(forecast.cdf(value), distribution.cdf(value))
    elif name == "counts":
        events, per = y.sum() + 0.3 * (1 + keep @ y) / (1 + keep.sum()), 4.3
        for value in range(4):
            close(forecast.log_prob(value), st.nbinom(events, per / (1 + per)).logpmf(value))
        close(forecast.mean, events / per)
    else:
        labels = y[:, None] == np.arange(2 if name == "two" else 3)
        rates = 1 + keep @ labels
        counts = labels.sum(0) + 0.03 * rates / rates.sum()
        close(forecast.probs, counts / counts.sum())


@pytest.mark.table
@EACH
def test_bad_data_and_weights_give_the_belief_back_bitwise(name: str) -> None:
    learner, start, xs, ys = learned(name, 30)
    good, target = xs[0], ys[0]
    bad: list[Any] = [(good, y) for y in (jnp.nan, jnp.inf)]
    bad += [(good, y) for y in (-1, 3, 0.5)] if name in ("two", "three") else []
    bad += [(good, -1)] if name == "counts" else []
    bad += [(jnp.asarray(x), target) for x in ([jnp.inf, 0.0], [0.0, jnp.nan])]
    for x, y in bad:
        belief, info = learner.update(start, x, y)
        bitwise(belief, start)
        assert not bool(info.ok) and float(info.log_evidence) == 0.0, (x, y)
    for weight in (jnp.nan, -1.0, jnp.inf, 1e308):
        belief, info = learner.update(start, good, target, weight=weight)
        assert weight == 1e308 or not bool(info.ok), weight
        assert bool(info.ok) or belief == start
    belief, info = learner.update(start, good, target, weight=0.0)
    bitwise(belief, start)
    assert bool(info.ok) and float(info.log_evidence) == 0.0


@pytest.mark.slow
@pytest.mark.table
@EACH
def test_single_precision_agrees_with_double_and_refuses_what_it_has_no_room_for(name: str) -> None:
    xs, ys = rows_of(name)
    learner = learner_of(name)
    one, first = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    start = jax.tree.map(
        lambda leaf: leaf.astype(jnp.float32) if leaf.dtype == float else leaf, learner.init()
    )
    small = jnp.asarray(xs, jnp.float32), jnp.asarray(ys, "f4" if name == "numbers" else "i4")
    two, second = credo.run(learner, start, *small)
    assert {leaf.dtype for leaf in jax.tree.leaves(two)} == {jnp.dtype("float32"), jnp.dtype("int32")}
    assert second.log_evidence.dtype == jnp.float32
    assert learner.forecast(two, small[0][0]).log_prob(small[1][0]).dtype == jnp.float32
    assert learner.expect(two, small[0][0]).mean.dtype == jnp.float32
    assert learner.sample_function(two, 0)(small[0][0]).dtype == jnp.float32
    # votes are sums of 9 terms, and 60 rows are added up in the weights: 60 roundings of 1e-7
    np.testing.assert_allclose(first.log_evidence, second.log_evidence, atol=5e-5)
    for mine, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)
    # 1e200 is finite, and infinite in single precision
    after, info = learner.update(two, jnp.asarray([1e200, 0.0]), ys[0])
    bitwise(after, two)
    assert not bool(info.ok)


@pytest.mark.optimised
@EACH
def test_a_loop_and_a_scan_give_the_same_bits_and_so_does_a_file(name: str, tmp_path: Path) -> None:
    learner, _, xs, ys = learned(name, 40)
    streams_alike(learner, xs, ys, 15, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("reference", few([False, True], True))
def test_classes_that_are_not_known_take_nothing_from_the_others(reference: bool) -> None:
    few, one, xs, ys = learned("two")
    late = learner_of("two")
    late = credo.replace(late, likelihood=credo.OpenCategorical(5, 2, reference=reference))
    two, second = credo.run(late, late.init(), xs, ys)
    close(second.log_evidence, credo.run(few, few.init(), xs, ys)[1].log_evidence)
    close(two.base, [*one.base, 1.0, 1.0, 1.0])
    close(late.forecast(two, xs[0]).probs, [*few.forecast(one, xs[0]).probs, 0.0, 0.0, 0.0])
    distribution, before = late.expect(two, xs[0]), few.expect(one, xs[0])
    close(distribution.mean, [1 - before.mean[0], before.mean[0], 0.0, 0.0, 0.0])
    close(distribution.var[:2], [before.var[0]] * 2)
    close(distribution.latent_cdf(jnp.full(5, 0.3))[1], before.latent_cdf(jnp.asarray([0.3]))[0])
    assert bool(jnp.all(jnp.isfinite(distribution.latent_cdf(jnp.full(5, 0.3)))))
    assert np.asarray(late.sample_function(two, 1)(xs[0]))[2:].tolist() == [0.0] * 3
    for label in (2, 0.5):
        assert not bool(late.update(two, xs[0], label)[1].ok)
    wider = credo.replace(late, likelihood=credo.OpenCategorical(5, 3, reference=reference))
    assert float(wider.forecast(two, xs[0]).probs[2]) > 0 and bool(wider.update(two, xs[0], 2)[1].ok)


def test_a_widened_memory_is_the_one_of_a_learner_that_began_with_all_columns_and_classes() -> None:
    xs, ys = map(jnp.asarray, rows_of("three", columns=4))
    xs, early = xs.at[:30, 2:].set(0.0), jnp.minimum(ys[:30], 1)
    small = credo.replace(learner_of("three"), likelihood=credo.OpenCategorical(2, 2))
    large = credo.replace(small, columns=4, likelihood=credo.OpenCategorical(3, 2))
    half, _ = credo.run(small, small.init(), xs[:30, :2], early)
    start, _ = credo.run(large, large.init(), xs[:30], early)
    wide = large.widen(half)
    assert jax.tree.map(jnp.shape, wide) == jax.tree.map(jnp.shape, start)
    known = credo.replace(large, likelihood=credo.OpenCategorical(3, 3))
    mine, theirs = (credo.run(known, one, xs[30:], ys[30:]) for one in (wide, start))
    for left, right in zip(jax.tree.leaves((wide, *mine)), jax.tree.leaves((start, *theirs)), strict=True):
        close(left, right)
    numbers, belief, *_ = learned("numbers")
    wider = credo.replace(numbers, columns=3).widen(belief)
    assert wider.base == belief.base and wider.rows[2].tolist() == [0.0] * SIZE
    for change in ({"size": 30}, {"neighbours": (2, 5, 9, 12)}):
        with pytest.raises(CredoError, match="widened in its columns and classes only"):
            credo.replace(numbers, **change).widen(belief)


@pytest.mark.table
@EACH
def test_the_expected_target_has_the_mean_of_the_forecast(name: str) -> None:
    learner, belief, xs, _ = learned(name)
    for x in (xs[0], xs[1] + 0.3):
        forecast, distribution = learner.forecast(belief, x), learner.expect(belief, x)
        close(
            distribution.mean,
            jnp.atleast_1d(
                forecast.probs[1]
                if name == "two"
                else getattr(forecast, "probs" if name == "three" else "mean")
            ),
        )
        assert bool(jnp.all(distribution.var > 0))


@pytest.mark.slow
@pytest.mark.parametrize("name", few(KINDS, "two"))
def test_drawn_functions_have_the_mean_of_the_expected_target_and_are_consistent(name: str) -> None:
    learner, belief, xs, _ = learned(name, neighbours=(9,), decay=0.0)
    x, n = jnp.asarray([0.2, -0.1]), 2000
    keys = jax.random.split(jax.random.key(1), n)
    drawn = jax.jit(jax.vmap(lambda key: learner.sample_function(belief, key)(x)))(keys)
    values = np.asarray(drawn).reshape(n, -1)
    expected = np.asarray(learner.expect(belief, x).mean)
    if name in ("numbers", "counts"):
        # exact but for the share of what is known of all targets: few e / (G + few e) in place of
        # few / (9 + few), where G ~ Gamma(9), and e ~ Exp(1) for numbers and 1 for counts
        few = 0.1 if name == "numbers" else 0.3
        level = float(belief.base.mean if name == "numbers" else belief.base[0] / belief.base[1])
        rng = np.random.default_rng(0)
        many = rng.gamma(9, size=10**6)
        one = few * (rng.exponential(size=10**6) if name == "numbers" else 1.0)
        own = (expected * (9 + few) - few * level) / 9
        expected = own + np.mean(one / (many + one)) * (level - own)
    assert np.all(np.abs(values.mean(0) - expected) < 5 * values.std(0) / np.sqrt(n))
    if name in ("two", "three"):  # the bootstrap of equal votes is a Dirichlet distribution
        spread = np.asarray(learner.expect(belief, x).sd)
        np.testing.assert_allclose(values.std(0), spread, rtol=5 * np.sqrt(1 / n) * 2)
    function = learner.sample_function(belief, 3)
    bitwise(function(x), function(x))
    two = jax.jit(jax.vmap(function))
    bitwise(two(jnp.stack([xs[0], x]))[1], two(jnp.stack([xs[2], x]))[1])
    assert learner.sample(belief, 0, (7,)).shape == (7, SIZE)


def test_functions_of_an_empty_memory_are_possible_in_single_precision() -> None:
    votes = ClassVotes(credo.Categorical(3))
    none, keys = jnp.zeros(4, jnp.float32), jax.random.split(jax.random.key(0), 500)
    values = jax.vmap(lambda key: votes.value(jnp.ones(3, jnp.float32), none, none, key))(keys)
    assert bool(jnp.all(jnp.isfinite(values))) and values.dtype == jnp.float32
    np.testing.assert_allclose(values.sum(1), 1.0, atol=1e-6)
    np.testing.assert_allclose(values.mean(0), 1 / 3, atol=5 * np.sqrt(2 / 9 / 500))


def test_targets_that_are_all_alike_are_taken_in_for_ever() -> None:
    learner = learner_of("numbers")
    start = jax.tree.map(
        lambda leaf: leaf.astype(jnp.float32) if leaf.dtype == float else leaf, learner.init()
    )
    xs, ys = jnp.zeros((12000, 2), jnp.float32), jnp.full(12000, 2.0, jnp.float32)
    belief, trace = credo.run(learner, start, xs, ys)
    assert bool(jnp.all(trace.ok)) and bool(jnp.all(belief.base.noise > 0))
    after, info = learner.step(belief, xs[0], jnp.float32(3.0))
    assert bool(info.ok) and bool(jnp.all(after.base.noise > belief.base.noise))


def test_the_level_of_rows_with_small_weights_is_their_mean() -> None:
    learner, belief = learner_of("numbers", size=1000), learner_of("numbers", size=1000).init()
    for row, y in enumerate((10.0, 12.0)):
        belief, _ = learner.step(belief, jnp.full(2, float(row)), y, weight=0.1)
    np.testing.assert_allclose(belief.base.mean, 11.0, atol=1e-3)


@pytest.mark.thorough
@pytest.mark.table
@EACH
def test_in_company_it_is_weighed_by_its_evidence(name: str, tmp_path: Path) -> None:
    inner, _, xs, ys = learned(name)
    line = credo.Linear(3 if name == "three" else 1)
    params = jax.tree.map(lambda leaf: leaf.astype(float), line.init(0, (2,)))
    model = credo.Model(line, KINDS[name])
    linear = credo.bong(model, credo.Full())
    members: list[Any] = [inner, linear]
    bank: Any = credo.Experts(members, switching=0.0)
    belief, trace = credo.run(bank, bank.init(params), xs, ys)
    sums = np.array([credo.run(one, one.init(params), xs, ys)[1].log_evidence.sum() for one in members])
    close(belief.weights, ss.softmax(sums))
    close(trace.log_evidence.sum(), ss.logsumexp(sums) - np.log(2))
    credo.save(tmp_path / "bank.credo", bank, belief)
    again, kept = credo.load(tmp_path / "bank.credo")
    assert kept == belief and again.step(kept, xs[0], ys[0])[0] == bank.step(belief, xs[0], ys[0])[0]
    still, plain = (credo.run(one, one.init(), xs, ys)[1] for one in (credo.RunLength(inner, 0.0, 2), inner))
    close(still.log_evidence, plain.log_evidence)
    lengths: Any = credo.RunLength(inner, 0.05, 4)
    assert bool(credo.run(lengths, lengths.init(), xs, ys)[1].ok.all())
    alone = credo.Calibrated(inner, scales=(1.0,))
    close(credo.run(alone, alone.init(), xs, ys)[1].log_evidence, plain.log_evidence)


def test_an_agent_learns_which_arm_pays_for_a_context() -> None:
    agent = bandits.Agent(learner_of("two", size=100, neighbours=(3, 8)), arms=2, design="arms")
    right = right_choices(agent, 80)
    assert np.mean(right[40:]) > 0.8


def test_impossible_arguments_are_refused() -> None:
    learner = learner_of("two")
    start, normal, resets = learner.init(), credo.Normal(1.0), credo.SoftReset(learner, 0.1)
    for make, message in [
        (lambda: learner_of("two", 0), "columns must be a whole number at least 1"),
        (lambda: learner_of("two", size=0), "size must be a whole number at least 1"),
        (lambda: learner_of("two", neighbours=()), "neighbours must be increasing"),
        (lambda: learner_of("two", neighbours=(5, 2)), "neighbours must be increasing"),
        (lambda: learner_of("two", neighbours=(2, 26)), "at most size = 25"),
        (lambda: learner_of("two", decay=-1.0), "decay must be"),
        (lambda: learner_of("two", switching=0.6), "switching must be"),
        (lambda: learner_of("two", clip=0.0), "clip must be"),
        (lambda: votes_of(normal), "likelihood must be Bernoulli"),
        (lambda: learner.update(start, jnp.zeros(3), 1), r"x must be one row of 2 inputs; got shape \(3,\)"),
        (lambda: learner.forecast(start, jnp.zeros((1, 2))), "x must be one row of 2 inputs"),
        (lambda: learner.update(start, jnp.zeros(2), jnp.ones(2)), "y must be one number or class label"),
        (lambda: learner.forecast(start, jnp.zeros(2), method="mc"), "method must be None"),
        (lambda: resets.step(resets.init(), jnp.zeros(2), 1), "prior of a Remembered must be PriorReset"),
    ]:
        with pytest.raises(CredoError, match=message):
            make()  # type: ignore[no-untyped-call]
