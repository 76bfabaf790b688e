"""Every rule x curvature x family goes through every verb, with every likelihood.

What takes the time here is compiling: all verbs of a cell, with all its likelihoods, are one program, which
is compiled without optimisation.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.grid_reference import CURVATURES, FAMILIES, RULES, compiled
from tests.learners.reference import alike, close
from tests.tiers import few

import credo
from credo.core.errors import CredoError

XS = jnp.asarray([[0.5, -1.0], [0.3, 0.2], [-1.0, 1.0]])
ONE = {"w": jnp.asarray([[0.3, -0.5], [0.2, 0.4]]), "v": jnp.asarray([0.7, -0.3])}
THREE = {"w": jnp.asarray([[0.3, -0.5], [0.2, 0.4], [0.1, 0.6]])}
P, SEEDS, DRAWS = 6, 2, 4


def one_output(params: Any, x: Any) -> Any:
    """A network of one hidden layer and one output."""
    return params["v"] @ jnp.tanh(params["w"] @ x)


def three_outputs(params: Any, x: Any) -> Any:
    """Three bounded outputs."""
    return 2.0 * jnp.tanh(params["w"] @ x)


def logistic(eta: jax.Array, y: jax.Array) -> jax.Array:
    """log density of a logistic distribution around eta."""
    return eta - y - 2.0 * jax.nn.softplus(eta - y)


CASES = {
    "normal": (credo.Model(one_output, credo.Normal(0.5)), ONE, jnp.asarray([0.3, -0.2, 1.0])),
    "bernoulli": (credo.Model(one_output, credo.Bernoulli()), ONE, jnp.asarray([1.0, 0.0, 1.0])),
    "categorical": (credo.Model(three_outputs, credo.Categorical(3)), THREE, jnp.asarray([0, 2, 1])),
    "poisson": (credo.Model(one_output, credo.Poisson()), ONE, jnp.asarray([2.0, 0.0, 1.0])),
    "user": (
        credo.Model(one_output, credo.Likelihood(logistic, mean=lambda eta: eta)),
        ONE,
        jnp.asarray([0.3, -0.2, 1.0]),
    ),
}
ALL = list(itertools.product(RULES, CURVATURES, FAMILIES))


def learner_of(cell: tuple[str, str, str], model: credo.Model) -> Any:
    rule, curvature, family = cell
    more = {"iterations": 2} if rule in ("blr", "bbb") else {}
    return RULES[rule](model, FAMILIES[family], CURVATURES[curvature], **more)


def all_verbs(cell: tuple[str, str, str], names: tuple[str, ...]) -> dict[str, tuple[Any, ...]]:
    """Every verb, and a vmapped run, compiled as one program for the likelihoods `names`."""

    def program(keys: jax.Array) -> dict[str, tuple[Any, ...]]:
        out = {}
        for name in names:
            model, params, ys = CASES[name]
            learner = learner_of(cell, model)
            start = learner.init(params, var=0.5)
            predicted = learner.predict(start)
            forecast = learner.forecast(predicted, XS[0])
            belief, info = learner.update(predicted, XS[0], ys[0], key=keys[0])
            draws = learner.sample(belief, keys[0], (DRAWS,))
            runs = jax.vmap(lambda key: credo.run(learner, start, XS, ys, key=key))(keys)  # noqa: B023
            out[name] = (predicted, (forecast.mean, forecast.log_prob(ys[0])), belief, info, draws, runs)
        return out

    result: dict[str, tuple[Any, ...]] = compiled(program, jax.random.split(jax.random.key(3), SEEDS))
    return result


def check(cell: tuple[str, str, str], name: str, made: tuple[Any, ...]) -> None:
    predicted, forecast, belief, info, draws, (last, trace) = made
    for leaf in jax.tree.leaves((forecast, belief, info, draws, last, trace)):
        assert np.all(np.isfinite(leaf)), name
    assert int(predicted.t) == int(belief.t) == 1 and bool(info.ok)
    assert jax.tree.map(jnp.shape, belief) == jax.tree.map(jnp.shape, predicted)
    assert alike(belief, predicted)
    assert float(jnp.abs(belief.mean - predicted.mean).max()) > 1e-6
    assert float(jnp.abs(belief.cov.dense() - predicted.cov.dense()).max()) > 1e-8
    assert np.linalg.eigvalsh(belief.cov.dense()).min() > 0
    assert jnp.shape(forecast[0]) == ((3,) if name == "categorical" else ()), forecast[0]
    assert jnp.shape(forecast[1]) == ()
    shapes = jax.tree.map(lambda leaf: leaf.shape[1:], draws)
    assert shapes == jax.tree.map(jnp.shape, CASES[name][1])
    assert {leaf.shape[0] for leaf in jax.tree.leaves(draws)} == {DRAWS}
    # a run under vmap: one belief a seed; its first step is the update alone
    assert last.mean.shape == (SEEDS, P) and np.all(trace.ok) and trace.ok.shape == (SEEDS, 3)
    assert np.all(last.t == 3)
    close(trace.log_evidence[0, 0], info.log_evidence)
    drawn = float(jnp.abs(last.mean[0] - last.mean[1]).max())
    assert drawn > 1e-8 if cell[1].startswith("mc") else drawn == 0.0


LIKELIHOODS = ("normal", "bernoulli", "categorical")


def turn(cell: tuple[str, str, str]) -> int:
    """The likelihood whose turn it is: every two of a rule, a curvature and a family meet all three."""
    rule, curvature, family = cell
    return (list(RULES).index(rule) + list(CURVATURES).index(curvature) + list(FAMILIES).index(family)) % 3


@pytest.mark.thorough
@pytest.mark.parametrize("cell", ALL, ids="-".join)
def test_every_cell_goes_through_every_verb_with_the_other_likelihoods(cell: tuple[str, str, str]) -> None:
    names = [name for number, name in enumerate(LIKELIHOODS) if number != turn(cell)]
    for name, made in all_verbs(cell, (names[0], names[1])).items():
        check(cell, name, made)


@pytest.mark.table
@pytest.mark.parametrize("cell", ALL, ids="-".join)
def test_every_cell_goes_through_every_verb_with_a_likelihood(cell: tuple[str, str, str]) -> None:
    for name, made in all_verbs(cell, (LIKELIHOODS[turn(cell)],)).items():
        check(cell, name, made)
    model, params, ys = CASES["normal"]
    learner = learner_of(cell, model)
    belief = learner.init(params)
    if cell[1].startswith("mc"):
        with pytest.raises(CredoError, match=r"a Monte Carlo curvature draws random numbers: pass key=jax"):
            jax.eval_shape(lambda: learner.update(belief, XS[0], ys[0]))
    else:
        assert jax.eval_shape(lambda: learner.update(belief, XS[0], ys[0]))[1].ok.shape == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    few(
        [("blr", "lin-hess", "full"), ("bbb", "mc-hess", "diagonal"), ("bong", "mc-ef", "low-rank")],
        ("blr", "lin-hess", "full"),
    ),
    ids="-".join,
)
def test_counts_and_a_likelihood_of_ones_own_go_through_every_verb(cell: tuple[str, str, str]) -> None:
    for name, made in all_verbs(cell, ("poisson", "user")).items():
        check(cell, name, made)


@pytest.mark.optimised
@pytest.mark.parametrize(
    "cell",
    [
        ("bong", "mc-hess", "full"),
        ("blr", "lin-hess", "full"),
        ("blr", "mc-ef", "low-rank"),
        ("bbb", "lin-hess", "low-rank"),
        ("bog", "mc-hess", "diagonal"),
    ],
    ids="-".join,
)
def test_a_loop_and_a_scan_give_the_same_bits(cell: tuple[str, str, str]) -> None:
    model, params, ys = CASES["bernoulli"]
    learner, key = learner_of(cell, model), jax.random.key(5)
    belief = start = learner.init(params)
    for x, y in zip(XS, ys, strict=True):
        belief, info = learner.step(belief, x, y, key=key)
        assert bool(info.ok)
    scanned, _ = credo.run(learner, start, XS, ys, key=key)
    jax.tree.map(np.testing.assert_array_equal, belief, scanned)


@pytest.mark.slow
def test_a_cell_is_traced_once_in_a_thousand_steps() -> None:
    traced = []

    def counted(params: Any, x: Any) -> Any:
        traced.append(1)
        return x @ params

    model = credo.Model(counted, credo.Bernoulli())
    learner = credo.blr(model, credo.LowRank(2), credo.MonteCarloEmpiricalFisher(2), iterations=2)
    key, rng = jax.random.key(0), np.random.default_rng(0)
    xs, ys = jnp.asarray(rng.normal(size=(1000, 3))), jnp.asarray(rng.integers(0, 2, 1000), float)
    belief, info = learner.step(learner.init(jnp.zeros(3)), xs[0], ys[0], key=key)
    first = len(traced)
    for x, y in zip(xs[1:], ys[1:], strict=True):
        belief, info = learner.step(belief, x, y, key=key)
    assert len(traced) == first > 0 and int(belief.t) == 1000 and bool(info.ok)
