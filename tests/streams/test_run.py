"""A loop, a scan, a scan in chunks and a run resumed from disk give the same bits; steps are traced once."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.streams.setups import DYNAMICS, FAMILIES, T, begin, bitwise, data, make

import credo
from credo.core.errors import CredoError
from credo.programs.loops import Columns

# Every family meets every curvature and likelihood, every dynamics several families, and both dtypes occur: a
# covering of the full product that compiles in a minute.
_PAIRS = list(itertools.product(FAMILIES, ["lin-hess", "lin-ef"], ["normal", "classes"]))
_NAMES = list(DYNAMICS)
CASES = [(*pair, _NAMES[i % len(_NAMES)], ["f32", "f64"][(i // 2) % 2]) for i, pair in enumerate(_PAIRS)] + [
    ("root", "lin-hess", "classes", "walk", "f32"),
    ("low-rank", "lin-hess", "classes", "walk", "f32"),
    ("diagonal", "lin-hess", "classes", "ou", "f32"),
    ("low-rank", "lin-hess", "normal", "inflation", "f64"),
    ("root", "lin-ef", "normal", "perturb", "f32"),
]


def rows() -> list[Any]:
    """The cases, of which two of each family and the last three are not thorough: every curvature meets every
    likelihood in two families.
    """
    chosen = []
    for number, case in enumerate(CASES):
        family, combination = divmod(number, 4)
        kept = combination in ((0, 3) if family % 2 == 0 else (1, 2))
        if number >= len(_PAIRS):
            kept = number >= len(CASES) - 3
        chosen.append(pytest.param(*case, marks=() if kept else pytest.mark.thorough))
    return chosen


@pytest.mark.optimised
@pytest.mark.parametrize(("family", "curvature", "kind", "dynamics", "dtype"), rows())
def test_loop_scan_chunks_and_resumption_give_the_same_bits(
    family: str, curvature: str, kind: str, dynamics: str, dtype: str, tmp_path: Path
) -> None:
    precision = {"f32": jnp.float32, "f64": jnp.float64}[dtype]
    learner = make(kind, family, curvature, dynamics)
    start, (xs, ys) = begin(learner, kind, precision), data(kind, precision)
    assert start.mean.dtype == precision
    whole, trace = credo.run(learner, start, xs, ys, key=0)

    belief, infos = start, []
    for x, y in zip(xs, ys, strict=True):
        belief, info = learner.step(belief, x, y, key=0)
        infos.append(info)
    bitwise(belief, whole)
    bitwise(jax.tree.map(lambda *v: jnp.stack(v), *infos), trace)
    assert bool(trace.ok.all()) and trace.log_evidence.dtype == precision

    first, head = credo.run(learner, start, xs[: T // 2], ys[: T // 2], key=0)
    credo.save(tmp_path / "half.credo", learner, first)
    again, resumed = credo.load(tmp_path / "half.credo")
    bitwise((learner, first), (again, resumed))
    for who, middle in ((learner, first), (again, resumed)):
        last, tail = credo.run(who, middle, xs[T // 2 :], ys[T // 2 :], key=0)
        bitwise(last, whole)
        bitwise(jax.tree.map(lambda a, b: jnp.concatenate([a, b]), head, tail), trace)


@pytest.mark.optimised
@pytest.mark.parametrize("name", ["adam", "replay", "iterated", "fd", "nig", "beta", "joint"])
def test_every_other_learner_loops_as_it_scans(name: str) -> None:
    model = credo.Model(credo.MLP(1, (4,), "tanh"), credo.Normal(0.1))
    xs, ys = data("normal")
    params = jax.tree.map(lambda v: v.astype(jnp.float64), credo.MLP(1, (4,), "tanh").init(0, (3,)))
    learner: Any = {
        "adam": credo.adam(model),
        "replay": credo.replay(model, capacity=4, steps=2, optimizer="momentum"),
        "iterated": credo.iterated_ekf(model),
        "fd": credo.fd_ekf(model, dynamics=credo.RandomWalk(1e-3)),
        "nig": credo.normal_inverse_gamma(model, credo.LowRank(2)),
        "beta": credo.BetaBernoulli(forgetting=0.9),
        "joint": credo.lofi(credo.joint(model), 2),
    }[name]
    if name == "joint":
        xs, ys = xs.reshape(4, 3, 3), ys.reshape(4, 3)
    if name == "beta":
        ys = (ys > 0).astype(jnp.int32)
    start = learner.init(params, example=(xs[0], ys[0])) if name == "replay" else learner.init(params)
    whole, trace = credo.run(learner, start, xs, ys)
    belief = start
    for x, y in zip(xs, ys, strict=True):
        belief, _ = learner.step(belief, x, y)
    bitwise(belief, whole)
    assert bool(jnp.all(jnp.isfinite(trace.log_evidence)))


def test_a_thousand_steps_are_traced_once_and_so_is_a_second_learner_of_equal_structure() -> None:
    traced = []

    def apply(w: jax.Array, x: jax.Array) -> jax.Array:
        traced.append(1)
        return x @ w

    learner = credo.lofi(credo.Model(apply, credo.Normal(0.1)), 2, dynamics=credo.RandomWalk(1e-4))
    xs, ys = data("normal", steps=1000)
    rows = list(zip(np.asarray(xs), np.asarray(ys), strict=True))
    belief = learner.init(jnp.zeros(3))
    belief, _ = learner.step(belief, *rows[0])
    count = len(traced)
    for x, y in rows:
        belief, _ = learner.step(belief, x, y)
    assert len(traced) == count
    other = credo.lofi(credo.Model(apply, credo.Normal(0.7)), 2, dynamics=credo.RandomWalk(1e-2))
    fresh = other.init(jnp.ones(3), var=2.0)
    other.step(fresh, *rows[0])
    assert len(traced) == count
    credo.run(learner, learner.init(jnp.zeros(3)), xs, ys)
    count = len(traced)
    credo.run(other, fresh, xs, ys)
    assert len(traced) == count


def test_step_is_predict_and_then_update() -> None:
    learner = make("normal", "root", "lin-hess", "walk")
    belief, (xs, ys) = begin(learner, "normal"), data("normal")
    stepped, info = learner.step(belief, xs[0], ys[0], dt=2.0)
    moved = learner.predict(belief, 2.0)
    updated, told = learner.update(moved, xs[0], ys[0])
    np.testing.assert_allclose(stepped.mean, updated.mean, atol=1e-12)
    np.testing.assert_allclose(stepped.cov.dense(), updated.cov.dense(), atol=1e-12)
    np.testing.assert_allclose(info.log_evidence, told.log_evidence, atol=1e-12)
    np.testing.assert_allclose(moved.cov.dense(), belief.cov.dense() + 2e-3 * np.eye(belief.size), atol=1e-12)
    assert (int(belief.t), int(moved.t), int(updated.t), int(stepped.t)) == (0, 1, 1, 1)


def test_time_steps_and_weights_follow_the_stream() -> None:
    learner = make("normal", "diagonal", "lin-hess", "walk")
    start, (xs, ys) = begin(learner, "normal"), data("normal")
    dts, weights = jnp.linspace(0.1, 2.0, T), jnp.asarray([0.0, 1.0, 0.5] * (T // 3))
    whole, _ = credo.run(learner, start, xs, ys, dts=dts, weights=weights)
    belief = start
    for x, y, dt, weight in zip(xs, ys, dts, weights, strict=True):
        belief, _ = learner.step(belief, x, y, dt=dt, weight=weight)
    bitwise(belief, whole)


@pytest.mark.slow
def test_runs_vmap_over_seeds_and_hyper_parameters() -> None:
    xs, ys = data("normal")
    base = make("normal", "low-rank", "lin-hess", "walk")
    qs = jnp.asarray([1e-4, 1e-2, 1.0])

    def total(q: jax.Array, noise: jax.Array) -> jax.Array:
        model = credo.replace(base.model, likelihood=credo.Normal(noise))
        learner = credo.replace(base, dynamics=credo.RandomWalk(q), model=model)
        return credo.run(learner, begin(base, "normal"), xs, ys)[1].log_evidence.sum()

    noises = jnp.asarray([0.1, 0.2, 0.3])
    many, alone = jax.jit(jax.vmap(total))(qs, noises), jax.jit(total)
    np.testing.assert_allclose(many, [alone(q, n) for q, n in zip(qs, noises, strict=True)], rtol=1e-9)
    nets = jax.vmap(lambda seed: base.model.apply.init(seed, (3,)))(jnp.arange(3))
    xs, ys = data("normal", jnp.float32)
    beliefs, _ = jax.jit(jax.vmap(lambda params: credo.run(base, base.init(params), xs, ys)))(nets)
    assert beliefs.mean.shape == (3, 21) and len(np.unique(np.asarray(beliefs.mean)[:, 0])) == 3


def test_streams_whose_parts_do_not_fit_are_refused() -> None:
    learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
    belief = learner.init(jnp.zeros(3))
    xs, ys = data("normal")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ys": ys[:5]}, r"all inputs must have the same length; got xs: 12, ys: 5"),
        ({"weights": jnp.ones(3)}, r"same length; got xs: 12, ys: 12, weights: 3"),
        ({"dts": 1.0}, "dts must have a leading time axis; got a scalar"),
        ({"xs": xs[:0], "ys": ys[:0]}, "must hold at least one observation; got length 0"),
        ({"xs": None, "ys": None}, "xs or ys must hold at least one array"),
        ({"xs": {"a": xs, "b": xs[:3]}}, r"xs\['a'\]: 12, xs\['b'\]: 3"),
    ]
    for kwargs, message in cases:
        with pytest.raises(CredoError, match=message):
            credo.run(learner, belief, **cast(Any, {"xs": xs, "ys": ys} | kwargs))


def test_the_numbers_of_a_dtype_are_collected_as_one_vector_and_come_apart_again() -> None:
    report = {"mean": jnp.ones(()), "sd": jnp.zeros(()), "ok": jnp.asarray(True)}
    columns = Columns(report)
    rows = [jnp.stack([array] * 5) for array in columns.gather(report)]
    assert [array.shape for array in rows] == [(5, 2), (5,)]
    assert columns.part(rows)["mean"].tolist() == [1.0] * 5
