"""Classes with normal columns against batch posteriors, with forgetting, missing inputs and bad data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special as ss
import scipy.stats
from tests.learners.reference import close, right_choices, streams_alike
from tests.tiers import few

import credo
from credo import bandits
from credo.core.errors import CredoError
from credo.learners.gaussian_classes import _log_height, _log_one_plus

st: Any = scipy.stats  # its annotations are those of another distribution in places

COUNT, CONFIDENCE, SHAPE, SCALE = 0.7, 0.3, 1.3, 0.4
NUMBERS: dict[str, Any] = {"count": COUNT, "confidence": CONFIDENCE, "shape": SHAPE, "scale": SCALE}
TIED = pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])


def learner_of(classes: int, columns: int, tied: bool = False, **others: Any) -> Any:
    """A learner whose prior is that of the reference."""
    likelihood = credo.Bernoulli() if classes == 2 else credo.Categorical(classes)
    return credo.GaussianClasses(columns, likelihood, tied, **{**NUMBERS, **others})


def rows_of(count: int, columns: int, classes: int, seed: int = 0, missing: float = 0.0) -> Any:
    """Rows whose classes differ in their means and variances, and labels."""
    rng = np.random.default_rng(seed)
    ys = rng.integers(0, classes, count)
    means, sds = rng.normal(size=(classes, columns)), 0.3 + rng.random((classes, columns))
    xs = means[ys] + sds[ys] * rng.normal(size=(count, columns))
    return np.where(rng.random(xs.shape) < missing, np.nan, xs), ys


def batch(xs: np.ndarray, ys: np.ndarray, weights: np.ndarray, classes: int, tied: bool) -> Any:
    """The posterior from sufficient statistics: counts, and means, rows, shapes and scales (C, D)."""
    columns = xs.shape[1]
    counts = COUNT + np.array([weights[ys == c].sum() for c in range(classes)])
    mean, rows, shape, scale = (np.zeros((classes, columns)) for _ in range(4))
    for c in range(classes):
        for j in range(columns):
            mine = (ys == c) & ~np.isnan(xs[:, j])
            w, x = weights[mine], xs[mine, j]
            rows[c, j] = CONFIDENCE + w.sum()
            mean[c, j] = (w @ x) / rows[c, j]
            shape[c, j] = w.sum() / 2
            scale[c, j] = (w @ x**2 - rows[c, j] * mean[c, j] ** 2) / 2
    if tied:
        shape, scale = shape.sum(0, keepdims=True), scale.sum(0, keepdims=True)
    return counts, mean, rows, SHAPE + shape, SCALE + scale


def log_joint(posterior: Any, x: np.ndarray, share: float = 1.0) -> np.ndarray:
    """log p(c, x | past) up to a constant, without the columns that are missing."""
    counts, mean, rows, shape, scale = posterior
    shape, scale = np.broadcast_to(shape, mean.shape), np.broadcast_to(scale, mean.shape)
    spread = np.sqrt(scale * (1 + 1 / rows) / shape)
    logs = st.t(2 * shape, mean, spread).logpdf(x)
    logits: np.ndarray = np.log(counts) + share * np.nansum(logs, axis=1)
    return logits


def fields(belief: Any) -> Iterable[Any]:
    """The numbers of a belief, in the order of `batch`."""
    return belief.counts, belief.mean, belief.rows, belief.shape, belief.scale


def agree(belief: Any, posterior: Any) -> None:
    for mine, theirs in zip(fields(belief), posterior, strict=True):
        close(mine, theirs)


@pytest.mark.table
@TIED
@pytest.mark.parametrize("classes", [2, 4])
def test_beliefs_forecasts_and_evidence_are_those_of_the_batch_posterior(classes: int, tied: bool) -> None:
    xs, ys = rows_of(40, 3, classes, missing=0.2)
    weights = np.where(np.arange(40) % 3 == 0, 0.5, 1.0)
    learner = learner_of(classes, 3, tied)
    belief, trace = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys), weights=weights)
    agree(belief, batch(xs, ys, weights, classes, tied))
    assert bool(jnp.all(trace.ok)) and int(belief.t) == 40
    for row in range(40):
        before = batch(xs[:row], ys[:row], weights[:row], classes, tied)
        expected = log_joint(before, xs[row])
        close(trace.log_evidence[row], (expected - ss.logsumexp(expected))[ys[row]])
    forecast = learner.forecast(belief, xs[0])
    close(forecast.probs, ss.softmax(log_joint(batch(xs, ys, weights, classes, tied), xs[0])))


@pytest.mark.table
@TIED
def test_the_evidence_of_all_labels_sums_to_one_and_is_that_of_the_forecast(tied: bool) -> None:
    xs, ys = rows_of(30, 4, 3, missing=0.1)
    for share in (1.0, 0.4):
        learner = learner_of(3, 4, tied, share=share)
        belief, _ = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
        x = jnp.asarray([5.0, -3.0, np.nan, 0.1])
        logs = jnp.stack([learner.update(belief, x, y)[1].log_evidence for y in range(3)])
        close(jnp.exp(logs).sum(), 1.0)
        forecast = learner.forecast(belief, x)
        close([forecast.log_prob(y) for y in range(3)], logs)
        close(
            forecast.probs, ss.softmax(log_joint(batch(xs, ys, np.ones(30), 3, tied), np.asarray(x), share))
        )


@TIED
def test_the_order_of_rows_does_not_matter_and_a_weight_of_two_is_the_row_twice(tied: bool) -> None:
    xs, ys = map(jnp.asarray, rows_of(25, 3, 3, missing=0.2))
    learner = learner_of(3, 3, tied)
    belief, _ = credo.run(learner, learner.init(), xs, ys)
    turned, _ = credo.run(learner, learner.init(), xs[::-1], ys[::-1])
    agree(belief, fields(turned))
    twice, _ = learner.update(belief, xs[0], ys[0], weight=2.0)
    once, _ = learner.update(belief, xs[0], ys[0])
    agree(twice, fields(learner.update(once, xs[0], ys[0])[0]))


def test_the_evidence_of_labels_and_rows_together_does_not_depend_on_their_order() -> None:
    """log p(x_1..n, y_1..n) from the closed form of the marginal likelihood of a column."""
    xs, ys = rows_of(12, 2, 2)

    def whole(order: np.ndarray) -> float:
        total = 0.0
        for row in range(12):
            past = order[:row]
            mine = batch(xs[past], ys[past], np.ones(row), 2, False)
            logits = log_joint(mine, xs[order[row]])
            total += logits[ys[order[row]]] - np.log(mine[0].sum())
        return total

    _, _, rows, shape, scale = batch(xs, ys, np.ones(12), 2, False)
    columns = (
        ss.gammaln(shape)
        - ss.gammaln(SHAPE)
        + SHAPE * np.log(SCALE)
        - shape * np.log(scale)
        + 0.5 * np.log(CONFIDENCE / rows)
    ).sum() - 12 * np.log(2 * np.pi)
    labels = ss.gammaln(COUNT + np.bincount(ys)).sum() - 2 * ss.gammaln(COUNT)
    labels -= ss.gammaln(2 * COUNT + 12) - ss.gammaln(2 * COUNT)
    close([whole(np.arange(12)), whole(np.arange(12)[::-1])], [columns + labels] * 2)


@TIED
def test_a_column_that_is_always_missing_is_as_good_as_none(tied: bool) -> None:
    xs, ys = rows_of(30, 3, 3)
    wide = np.insert(xs, 1, np.nan, axis=1)
    narrow, whole = learner_of(3, 3, tied), learner_of(3, 4, tied)
    one, first = credo.run(narrow, narrow.init(), jnp.asarray(xs), jnp.asarray(ys))
    two, second = credo.run(whole, whole.init(), jnp.asarray(wide), jnp.asarray(ys))
    close(first.log_evidence, second.log_evidence)
    agree(one, [two.counts, *(np.delete(np.asarray(part), 1, axis=1) for part in list(fields(two))[1:])])
    close(np.asarray(two.mean)[:, 1], 0.0)
    close(whole.forecast(two, wide[0]).probs, narrow.forecast(one, xs[0]).probs)
    nothing = jnp.full(4, jnp.nan)
    close(whole.forecast(two, nothing).probs, one.probs)
    learned, info = whole.update(two, nothing, 1)
    assert bool(info.ok)
    close(learned.counts - two.counts, [0.0, 1.0, 0.0])
    assert bool(jnp.all(learned.mean == two.mean)) and bool(jnp.all(learned.scale == two.scale))


@TIED
@pytest.mark.parametrize("dt", [None, 0.5, 3.0])
def test_forgetting_is_a_power_of_the_belief_by_natural_parameters(dt: float | None, tied: bool) -> None:
    xs, ys = rows_of(30, 3, 2, missing=0.1)
    learner = learner_of(2, 3, tied, forgetting=0.8)
    keep = 0.8 ** (1.0 if dt is None else dt)
    # naive: exponents of v^-1, and the polynomial b + k (u - m)^2 / 2 in each mean u, as (1, u, u^2)
    count = np.full(2, COUNT)
    rows, first = np.full((2, 3), CONFIDENCE), np.zeros((2, 3))
    shape, second = (np.full((1 if tied else 2, 3), value) for value in (SHAPE, SCALE))
    belief = learner.init()
    for x, y in zip(xs, ys, strict=True):
        count = keep * count + (1 - keep) * COUNT
        rows = keep * rows + (1 - keep) * CONFIDENCE
        shape = keep * shape + (1 - keep) * SHAPE
        first, second = keep * first, keep * second + (1 - keep) * SCALE
        count[y] += 1
        place = 0 if tied else y
        for j in range(3):
            if not np.isnan(x[j]):
                rows[y, j] += 1
                first[y, j] += x[j]
                shape[place, j] += 0.5
                second[place, j] += 0.5 * x[j] ** 2
        belief, info = learner.step(belief, x, y, dt=dt)
        assert bool(info.ok)
    squares = 0.5 * first**2 / rows
    scale = second - (squares.sum(0, keepdims=True) if tied else squares)
    agree(belief, (count, first / rows, rows, shape, scale))


@TIED
def test_a_belief_between_two_has_a_density_between_theirs(tied: bool) -> None:
    learner = learner_of(2, 2, tied)
    one, two = (
        credo.run(learner, learner.init(), *map(jnp.asarray, rows_of(9, 2, 2, seed)))[0] for seed in (1, 2)
    )
    between = one.toward(two, 0.3)
    rng = np.random.default_rng(0)
    points = [(rng.normal(size=(2, 2)), 0.2 + rng.random((1 if tied else 2, 2))) for _ in range(6)]

    def density(belief: Any, mean: np.ndarray, var: np.ndarray) -> float:
        shape, scale = np.asarray(belief.shape), np.asarray(belief.scale)
        total: float = st.invgamma(shape, scale=scale).logpdf(var).sum()
        total += st.norm(belief.mean, np.sqrt(var / np.asarray(belief.rows))).logpdf(mean).sum()
        return total

    gaps = [density(between, *at) - 0.3 * density(one, *at) - 0.7 * density(two, *at) for at in points]
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)
    assert one.toward(two, 1.0) == one and learner.predict(one) == credo.replace(one, t=one.t + 1)
    agree(one.toward(two, 0.0), fields(two))


LIKELIHOODS: dict[str, Any] = {
    "two": credo.Bernoulli(),
    "three": credo.Categorical(3),
    "open": credo.OpenCategorical(4, 3),
    "open, reference": credo.OpenCategorical(4, 3, reference=True),
}


@pytest.mark.table
@TIED
@pytest.mark.parametrize("name", list(LIKELIHOODS))
def test_bad_data_and_weights_give_the_belief_back_bitwise(name: str, tied: bool) -> None:
    learner = credo.GaussianClasses(2, LIKELIHOODS[name], tied, forgetting=0.9)
    good = jnp.asarray([0.3, -1.0])
    start, _ = learner.step(learner.init(), good, 1)
    bad: list[Any] = [(good, y) for y in (jnp.nan, -1, 3, 0.5, jnp.inf)]
    bad += [(jnp.asarray(x), 1) for x in ([jnp.inf, 0.0], [0.0, -jnp.inf], [1e200, 0.0])]
    for x, y in bad:
        belief, info = learner.update(start, x, y)
        assert belief == start and not bool(info.ok) and float(info.log_evidence) == 0.0, (x, y)
    for weight in (jnp.nan, -1.0, jnp.inf):
        belief, info = learner.update(start, good, 1, weight=weight)
        assert belief == start and not bool(info.ok), weight
    belief, info = learner.update(start, jnp.asarray([jnp.nan, 2.0]), 0, weight=0.0)
    assert belief == start and bool(info.ok) and float(info.log_evidence) == 0.0
    odd = learner.forecast(start, jnp.asarray([jnp.inf, 0.5])).probs
    close(odd, learner.forecast(start, jnp.asarray([jnp.nan, 0.5])).probs)


@pytest.mark.slow
@pytest.mark.table
@TIED
@pytest.mark.parametrize("reference", few([False, True], True))
def test_classes_that_come_late_take_nothing_from_the_others(reference: bool, tied: bool) -> None:
    xs, ys = map(jnp.asarray, rows_of(30, 3, 2, missing=0.1))
    few = learner_of(2, 3, tied, forgetting=0.95)
    late = credo.replace(few, likelihood=credo.OpenCategorical(5, 2, reference=reference))
    one, first = credo.run(few, few.init(), xs, ys)
    two, second = credo.run(late, late.init(), xs, ys)
    close(first.log_evidence, second.log_evidence)
    counts, mean, rows, shape, scale = fields(two)
    kept = slice(0, 1 if tied else 2)
    agree(one, (counts[:2], mean[:2], rows[:2], shape[kept], scale[kept]))
    close(late.forecast(two, xs[0]).probs, [*few.forecast(one, xs[0]).probs, 0.0, 0.0, 0.0])
    distribution, before = late.expect(two, xs[0]), few.expect(one, xs[0])
    assert np.asarray(distribution.mean)[2:].tolist() == [0.0] * 3
    draws, function = late.sample(two, 0, (7,)), late.sample_function(two, 1)
    assert draws.p.shape == (7, 5) and np.all(np.asarray(draws.p[:, 2:]) == 0)
    close(draws.p.sum(-1), 1.0)
    assert np.asarray(function(xs[0]))[2:].tolist() == [0.0] * 3
    # 256 quasi-random nodes of several outputs against 64 even ones of one
    np.testing.assert_allclose(distribution.mean[1], before.mean[0], atol=0.02)
    wider = credo.replace(late, likelihood=credo.OpenCategorical(5, 3, reference=reference))
    assert float(wider.forecast(two, xs[0]).probs[2]) > 0
    assert bool(wider.update(two, xs[0], 2)[1].ok)


@pytest.mark.table
@TIED
def test_a_widened_belief_is_the_one_of_a_learner_that_began_with_all_columns_and_classes(tied: bool) -> None:
    xs, ys = map(jnp.asarray, rows_of(20, 4, 3, missing=0.1))
    xs = xs.at[:10, 2:].set(jnp.nan)
    early = jnp.minimum(ys[:10], 1)
    small = credo.GaussianClasses(2, credo.OpenCategorical(2, 2), tied, forgetting=0.9, **NUMBERS)
    large = credo.replace(small, columns=4, likelihood=credo.OpenCategorical(3, 2))
    half, _ = credo.run(small, small.init(), xs[:10, :2], early)
    start, _ = credo.run(large, large.init(), xs[:10], early)
    wide = large.widen(half)
    agree(wide, fields(start))
    assert int(wide.t) == 10
    known = credo.replace(large, likelihood=credo.OpenCategorical(3, 3))
    mine, theirs = (credo.run(known, one, xs[10:], ys[10:]) for one in (wide, start))
    agree(mine[0], fields(theirs[0]))
    close(mine[1].log_evidence, theirs[1].log_evidence)


@pytest.mark.optimised
@TIED
def test_a_loop_and_a_scan_give_the_same_bits_and_so_does_a_file(tied: bool, tmp_path: Path) -> None:
    xs, ys = map(jnp.asarray, rows_of(12, 5, 3, missing=0.2))
    streams_alike(learner_of(3, 5, tied, forgetting=0.97), xs, ys, 5, tmp_path)


@pytest.mark.table
@TIED
def test_single_precision_agrees_with_double(tied: bool) -> None:
    xs, ys = rows_of(300, 4, 3, missing=0.1)
    learner = learner_of(3, 4, tied, forgetting=0.999)
    one, first = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    single = jax.tree.map(
        lambda leaf: leaf.astype(jnp.float32) if leaf.dtype == float else leaf, learner.init()
    )
    two, second = credo.run(learner, single, jnp.asarray(xs, jnp.float32), jnp.asarray(ys))
    assert two.mean.dtype == jnp.float32 and second.log_evidence.dtype == jnp.float32
    # a log probability is a difference of sums of 4 terms of the order of 10, each with errors near 1e-6
    np.testing.assert_allclose(first.log_evidence, second.log_evidence, atol=1e-4)
    for mine, theirs in zip(fields(one), fields(two), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    assert learner.forecast(two, jnp.zeros(4)).probs.dtype == jnp.float32


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_pieces_of_a_student_density_have_the_digits_of_their_dtype(dtype: Any) -> None:
    small = 8 * float(jnp.finfo(dtype).eps)
    z = jnp.asarray(10.0 ** np.linspace(-20, 15, 500), dtype)
    np.testing.assert_allclose(jax.jit(_log_one_plus)(z), np.log1p(np.asarray(z, float)), rtol=small)
    shape = jnp.asarray(10.0 ** np.linspace(-3, 7, 500), dtype)
    heights = jax.jit(_log_height)(shape, jnp.full_like(shape, np.pi))
    expected = np.log(ss.poch(np.asarray(shape, float), 0.5))
    # the reference itself has ten digits for large shapes
    np.testing.assert_allclose(heights, expected, rtol=small, atol=max(small, 1e-10))


@pytest.mark.slow
@pytest.mark.table
@TIED
def test_draws_have_the_moments_of_the_belief(tied: bool) -> None:
    xs, ys = rows_of(30, 2, 3)
    learner = learner_of(3, 2, tied)
    belief, _ = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    n = 20000
    draws = learner.sample(belief, 0, (n,))
    assert draws.p.shape == (n, 3) and draws.mean.shape == draws.var.shape == (n, 3, 2)

    def near(values: Any, mean: Any) -> None:
        values = np.asarray(values)
        assert np.all(np.abs(values.mean(0) - np.asarray(mean)) < 5 * values.std(0) / np.sqrt(n))

    near(draws.p, belief.probs)
    near(draws.mean, belief.mean)
    near(1 / draws.var, np.broadcast_to(belief.shape / belief.scale, (3, 2)))
    gaps = np.asarray(draws.mean) - np.asarray(belief.mean)
    near(gaps**2 / np.asarray(draws.var), 1 / np.asarray(belief.rows))
    assert bool(jnp.all(draws.var[:, 0] == draws.var[:, 1])) == tied


@pytest.mark.slow
@pytest.mark.table
@TIED
@pytest.mark.parametrize("name", list(LIKELIHOODS))
def test_the_expected_label_has_logits_with_the_moments_of_drawn_functions(name: str, tied: bool) -> None:
    likelihood = LIKELIHOODS[name]
    xs, ys = rows_of(25, 3, 2 if name == "two" else 3, missing=0.1)
    learner = credo.GaussianClasses(3, likelihood, tied, share=0.7, **NUMBERS)
    belief, _ = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    x, n = jnp.asarray([0.4, jnp.nan, -0.3]), 4000
    distribution: Any = learner.expect(belief, x)
    function_of = jax.jit(jax.vmap(lambda key: learner.sample_function(belief, key)(x)))
    probs = function_of(jax.random.split(jax.random.key(1), n))
    if name == "two":
        logits, root = jnp.log(probs / (1 - probs))[:, None], np.eye(1)
    else:
        logits, root = jnp.log(probs[:, 1:3] / probs[:, :1]), np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
        root = np.eye(2) if name == "open, reference" else root
    known = root.shape[1]
    mean = root @ np.asarray(distribution.eta)[0, :known]
    cov = root @ np.asarray(distribution.cov)[:known, :known] @ root.T
    values = np.asarray(logits)
    assert np.all(np.abs(values.mean(0) - mean) < 5 * values.std(0) / np.sqrt(n))
    squares = (values - mean)[:, :, None] * (values - mean)[:, None, :]
    assert np.all(np.abs(squares.mean(0) - cov) < 5 * squares.std(0) / np.sqrt(n))


def test_a_drawn_function_is_the_rule_of_bayes_with_its_parameters() -> None:
    xs, ys = rows_of(25, 3, 3)
    learner = learner_of(3, 3, share=0.5)
    belief, _ = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    function: Any = learner.sample_function(belief, 5)
    theta = function.params
    x = np.array([0.1, -0.5, np.nan])
    logs = st.norm(theta.mean, np.sqrt(theta.var)).logpdf(x)
    close(function(jnp.asarray(x)), ss.softmax(np.log(theta.p) + 0.5 * np.nansum(logs, axis=1)))


@pytest.mark.table
@TIED
def test_a_change_is_found_by_run_lengths_whose_evidence_is_that_of_all_segmentations(tied: bool) -> None:
    xs, ys = map(jnp.asarray, rows_of(5, 2, 2))
    inner = learner_of(2, 2, tied)
    learner = credo.RunLength(inner, 0.2, 6)
    _, trace = credo.run(learner, learner.init(), xs, ys)
    total = []
    for cuts in range(2**4):
        belief, log_prob = inner.init(), 0.0
        for row in range(5):
            change = row > 0 and bool(cuts >> (row - 1) & 1)
            log_prob += np.log(0.2 if change else 0.8) if row else 0.0
            belief, info = inner.step(inner.init() if change else belief, xs[row], ys[row])
            log_prob += float(info.log_evidence)
        total.append(log_prob)
    close(trace.log_evidence.sum(), ss.logsumexp(total))


@pytest.mark.thorough
def test_experts_beside_other_learners_are_weighed_by_their_evidence(tmp_path: Path) -> None:
    xs, ys = map(jnp.asarray, rows_of(20, 2, 3))
    model = credo.Model(credo.Linear(3), credo.Categorical(3))
    params = credo.Linear(3).init(0, (2,))
    params = jax.tree.map(lambda leaf: leaf.astype(float), params)
    linear = credo.bong(model, credo.Full())
    members: list[Any] = [learner_of(3, 2), learner_of(3, 2, True), credo.DirichletCategorical(3), linear]
    bank: Any = credo.Experts(members, switching=0.0)
    belief, trace = credo.run(bank, bank.init(params), xs, ys)
    sums = [credo.run(one, one.init(params), xs, ys)[1].log_evidence.sum() for one in members]
    close(belief.weights, ss.softmax(np.asarray(sums)))
    close(trace.log_evidence.sum(), ss.logsumexp(np.asarray(sums)) - np.log(4))
    close(bank.forecast(belief, xs[0]).probs.sum(), 1.0)
    credo.save(tmp_path / "bank.credo", bank, belief)
    again, kept = credo.load(tmp_path / "bank.credo")
    assert kept == belief and again.step(kept, xs[0], ys[0])[0] == bank.step(belief, xs[0], ys[0])[0]


def test_two_classes_of_either_likelihood_are_one_model() -> None:
    xs, ys = map(jnp.asarray, rows_of(20, 2, 2))
    one, two = learner_of(2, 2), credo.replace(learner_of(2, 2), likelihood=credo.Categorical(2))
    (first, early), (second, late) = (credo.run(each, each.init(), xs, ys) for each in (one, two))
    assert first == second
    close(early.log_evidence, late.log_evidence)
    close(one.forecast(first, xs[0]).probs, two.forecast(second, xs[0]).probs)


def test_a_soft_reset_pulls_the_belief_to_its_prior() -> None:
    xs, ys = map(jnp.asarray, rows_of(20, 2, 2))
    inner = learner_of(2, 2)
    learner = credo.SoftReset(inner, 0.1, floor=0.0)
    belief, _ = credo.run(learner, learner.init(), xs, ys)
    after, _ = learner.step(belief, xs[0], 1 - ys[0])
    pulled = belief.belief.toward(inner.init(), after.retention)
    agree(after.belief, fields(inner.update(pulled, xs[0], 1 - ys[0])[0]))
    assert 0 < float(after.retention) < 1


def test_an_agent_learns_which_arm_pays_for_a_context() -> None:
    agent = bandits.Agent(credo.GaussianClasses(2, credo.Bernoulli()), arms=2, design="arms")
    right = right_choices(agent, 60)
    assert np.mean(right[30:]) > 0.8


def test_impossible_arguments_are_refused() -> None:
    learner = learner_of(2, 2)
    normal: Any = credo.Normal(1.0)
    for make, message in [
        (lambda: credo.GaussianClasses(0, credo.Bernoulli()), "columns must be a whole number at least 1"),
        (lambda: credo.GaussianClasses(2, normal), "likelihood must be Bernoulli, Categorical or Open"),
        (lambda: learner_of(2, 2, count=0.0), "count must be finite and above 0"),
        (lambda: learner_of(2, 2, scale=-1.0), "scale must be finite and above 0"),
        (lambda: learner_of(2, 2, share=1.5), "share must be in"),
        (lambda: learner_of(2, 2, forgetting=0.0), "forgetting must be in"),
        (lambda: learner.update(learner.init(), jnp.zeros(3), 1), "x must be a row of 2 inputs"),
        (lambda: learner.update(learner.init(), jnp.zeros(2), jnp.ones(2)), "y must be one class label"),
        (lambda: learner.forecast(learner.init(), jnp.zeros(2), method="mc"), "closed form"),
    ]:
        with pytest.raises(CredoError, match=message):
            make()  # type: ignore[no-untyped-call]


@pytest.mark.slow
def test_inputs_beyond_the_clip_count_as_the_clip() -> None:
    xs, ys = rows_of(30, 2, 2)
    learner = learner_of(2, 2, clip=0.8)
    belief, trace = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    near = jnp.clip(jnp.asarray(xs), -0.8, 0.8)
    plain, same = credo.run(learner_of(2, 2), learner.init(), near, jnp.asarray(ys))
    assert belief == plain and float(jnp.abs(jnp.asarray(xs)).max()) > 0.8
    close(trace.log_evidence, same.log_evidence)
    drawn, other = (one.sample_function(belief, 3) for one in (learner, learner_of(2, 2)))
    close(drawn(jnp.array([5.0, -9.0])), other(jnp.array([0.8, -0.8])))
    kept, info = learner.update(belief, jnp.array([jnp.inf, 0.0]), 1)
    assert kept == belief and not bool(info.ok)


def test_a_share_of_zero_leaves_the_rates_of_the_classes() -> None:
    xs, ys = rows_of(40, 2, 3)
    learner, rates = learner_of(3, 2, share=0.0), credo.DirichletCategorical(3, COUNT)
    _, trace = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    _, alone = credo.run(rates, rates.init(), None, jnp.asarray(ys))
    close(trace.log_evidence, alone.log_evidence)


def test_a_learner_that_takes_no_missing_inputs_refuses_their_row() -> None:
    xs, ys = rows_of(10, 2, 2)
    learner = learner_of(2, 2, missing=False)
    belief, _ = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    kept, info = learner.update(belief, jnp.array([jnp.nan, 0.0]), 1)
    assert kept == belief and not bool(info.ok) and not learner.takes_missing
    assert learner_of(2, 2).takes_missing
