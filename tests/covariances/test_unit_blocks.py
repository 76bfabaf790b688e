"""Unit blocks: one gain for all; the blocks of the exact posterior, or of its precision, are kept."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.covariances.reference import alike, close
from tests.streams.setups import bitwise

import credo
from credo.covariances import PlacedUnitBlocks, UnitCovariance, divergence, widen_covariance
from credo.covariances.block_covariance import Keep
from credo.covariances.unit_covariance import layers_of
from credo.linalg.jacobians import DenseRows, OuterRows

LAYERS = ((3, 2), (3, 4), (2, 1))
P = 20
RNG = np.random.default_rng(4)
KEEPS: tuple[Keep, ...] = ("precision", "covariance")


def blocks_of(layers: tuple[tuple[int, int], ...]) -> list[np.ndarray]:
    """The places of each unit in the vector of parameters, in NumPy."""
    blocks, start = [], 0
    for inputs, units in layers:
        places = start + np.arange(inputs * units).reshape(inputs, units)
        blocks += [places[:, unit] for unit in range(units)]
        start += inputs * units
    return blocks


def cut(matrix: np.ndarray, layers: tuple[tuple[int, int], ...] = LAYERS) -> np.ndarray:
    """The blocks of the units of a matrix, and 0 elsewhere."""
    kept = np.zeros_like(matrix)
    for places in blocks_of(layers):
        kept[np.ix_(places, places)] = matrix[np.ix_(places, places)]
    return kept


def example(keep: Any = "precision") -> tuple[UnitCovariance, np.ndarray]:
    """A covariance with dense blocks, and its matrix."""
    root = RNG.normal(size=(P, P)) / 3 + np.eye(P)
    matrix = cut(root @ root.T)
    return PlacedUnitBlocks(LAYERS, keep).from_dense(jnp.asarray(matrix)), matrix


def rows_of(outputs: int) -> tuple[OuterRows, np.ndarray]:
    """Rows of a network of dense layers, and the same as an array."""
    inputs = tuple(jnp.asarray(RNG.normal(size=(1, inputs))) for inputs, _ in LAYERS)
    deltas = tuple(jnp.asarray(RNG.normal(size=(1, outputs, units))) for _, units in LAYERS)
    rows = OuterRows(inputs, deltas)
    return rows, np.asarray(rows.dense())


@pytest.mark.slow
@pytest.mark.parametrize("keep", KEEPS)
def test_the_roles_agree_with_dense_matrices(keep: Any) -> None:
    cov, matrix = example(keep)
    vector, noise, moved = np.linspace(0.5, 1.5, P), np.linspace(0.1, 1.0, P), RNG.normal(size=(P, P))

    @jax.jit
    def roles(cov: UnitCovariance) -> tuple[Any, list[Any]]:
        made = [
            cov.affine(jnp.asarray(vector), jnp.asarray(noise)),
            cov.rescale(jnp.asarray(vector)),
            cov.scale(jnp.asarray(1.7)),
            cov.add_precision(jnp.asarray(noise)),
            cov.mix(jnp.asarray(0.6), cov, jnp.asarray(0.3)),
            cov.linear(jnp.asarray(moved), jnp.eye(P)),
            cov.affine_within(jnp.asarray(1.0), jnp.asarray(0.5), jnp.full(P, 1.2)),
        ]
        numbers = (cov.dense(), cov.diag(), cov.logdet(), cov.precise(jnp.asarray(vector)))
        return (*numbers, *(one.dense() for one in made)), made

    found, made = roles(cov)
    grown = matrix + 0.5 * np.eye(P)
    within = np.sqrt(np.minimum(1.2 / np.diag(grown), 1.0))
    wanted = (
        matrix,
        np.diag(matrix),
        np.linalg.slogdet(matrix)[1],
        np.linalg.solve(matrix, vector),
        np.diag(vector) @ matrix @ np.diag(vector) + np.diag(noise),
        np.diag(vector) @ matrix @ np.diag(vector),
        1.7 * matrix,
        np.linalg.inv(np.linalg.inv(matrix) + np.diag(noise)),
        0.66 * matrix,
        cut(moved @ matrix @ moved.T + np.eye(P)),
        np.diag(within) @ grown @ np.diag(within),
    )
    for got, want in zip(found, wanted, strict=True):
        close(got, want)
    for other in (made[-1], made[3], made[2]):
        assert alike(other, cov)


def test_draws_have_the_covariance() -> None:
    cov, matrix = example()
    colors = np.asarray(cov.color(jnp.eye(cov.deviates)))
    close(colors.T @ colors, matrix)


def test_a_mixture_has_the_blocks_of_its_covariance() -> None:
    one, first = example()
    other, second = example()
    stacked = jax.tree.map(lambda a, b: jnp.stack([a, b]), one, other)
    gaps = RNG.normal(size=(2, P))
    exact = 0.3 * (first + np.outer(gaps[0], gaps[0])) + 0.7 * (second + np.outer(gaps[1], gaps[1]))
    close(stacked.collapse(jnp.asarray([0.3, 0.7]), jnp.asarray(gaps)).dense(), cut(exact))


@pytest.mark.table
@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("form", ["outer", "left", "dense"])
def test_one_gain_and_the_blocks_that_are_kept(keep: Any, outputs: int, form: str) -> None:
    cov, matrix = example(keep)
    rows, array = rows_of(outputs)
    given: Any = rows
    if form == "left":
        mixing = RNG.normal(size=(outputs, outputs))
        given, array = rows.mix_rows(jnp.asarray(mixing)), mixing @ array
    elif form == "dense":
        given = DenseRows(jnp.asarray(array))
    residual, root = RNG.normal(size=outputs), RNG.normal(size=(outputs, outputs + 1))

    @jax.jit
    def update(cov: UnitCovariance, rows: Any, residual: jax.Array, root: jax.Array) -> Any:
        cross, inner = cov.couple(rows)
        return cross.dense(), inner, cov.assimilate(rows, residual, root), cov.absorb(rows, residual, root)

    cross, inner, (shift, new, same), (again, twin) = update(
        cov, given, jnp.asarray(residual), jnp.asarray(root)
    )
    close(cross, array @ matrix)
    for got in (inner, same):
        close(got, array @ matrix @ array.T)
    precision = np.linalg.inv(matrix) + array.T @ root @ root.T @ array
    exact = np.linalg.inv(precision)
    for got in (shift, again):
        close(got, exact @ array.T @ residual)
    kept = np.linalg.inv(cut(precision)) if keep == "precision" else cut(exact)
    for got in (new, twin):
        close(got.dense(), kept)
        assert alike(got, cov)
    factor = root.T @ array
    close(cov.condition(jnp.asarray(factor)).dense(), kept)


@pytest.mark.slow
def test_one_unit_is_a_full_covariance_and_units_of_one_parameter_are_diagonal() -> None:
    rng = np.random.default_rng(2)
    xs, ys = jnp.asarray(rng.normal(size=(8, 3))), jnp.asarray(rng.normal(size=8))
    line = credo.Model(lambda w, x: x @ w, credo.Normal(0.3))
    for keep in KEEPS:
        pairs = (
            (credo.UnitBlocks(keep), credo.Full("dense")),
            (PlacedUnitBlocks(((1, 3),), keep), credo.Diagonal(keep)),
        )
        for family, plain in pairs:
            runs = []
            for one in (family, plain):
                learner = credo.RecursiveLearner(line, one, dynamics=credo.RandomWalk(0.01))
                runs.append(credo.run(learner, learner.init(jnp.zeros(3), var=1.5), xs, ys))
            (mine, trace), (other, same) = runs
            close(mine.mean, other.mean)
            close(mine.var, other.var)
            close(trace.log_evidence, same.log_evidence)


@pytest.mark.slow
@pytest.mark.parametrize("keep", KEEPS)
def test_a_network_learns_alike_by_outer_products_and_by_an_array(keep: Any) -> None:
    net = credo.MLP(3, (4,))
    params = jax.tree.map(lambda leaf: leaf.astype(float), net.init(0, (2,)))
    xs, ys = jnp.asarray(RNG.normal(size=(6, 2))), jnp.asarray([0, 2, 1, 1, 0, 2])
    runs = []
    for apply in (net, lambda params, x: net(params, x)):
        model = credo.Model(apply, credo.Categorical(3))
        learner = credo.RecursiveLearner(model, credo.UnitBlocks(keep))
        belief = learner.init(params, var=0.5)
        assert isinstance(belief.cov, UnitCovariance) and belief.cov.layers == ((3, 4), (5, 3))
        runs.append(credo.run(learner, belief, xs, ys))
    (mine, trace), (other, same) = runs
    close(mine.mean, other.mean)
    close(mine.cov.dense(), other.cov.dense())
    close(trace.log_evidence, same.log_evidence)


def test_the_layers_of_parameters() -> None:
    assert layers_of(((4,), (3, 4), (1,), (4, 1))) == ((4, 4), (5, 1))
    assert layers_of(((4,), (2, 2, 3, 4))) == ((13, 4),)
    assert layers_of(((3, 2), (5,), (7,))) == ((3, 2), (5, 1), (7, 1))
    assert layers_of(((), (2,), (3, 4))) == ((1, 1), (2, 1), (3, 4))


def test_a_belief_that_is_not_finite_is_refused() -> None:
    net = credo.MLP(1, (2,))
    params = jax.tree.map(lambda leaf: leaf.astype(float), net.init(0, (2,)))
    learner = credo.RecursiveLearner(credo.Model(net, credo.Normal(0.1)), credo.UnitBlocks())
    belief = learner.init(params)
    assert isinstance(belief.cov, UnitCovariance)
    cases: list[tuple[Any, Any]] = [(belief, jnp.inf)]
    for place, value in (((1, 0, 0), jnp.nan), ((0, 2, 1), jnp.inf), ((1, 1, 2), jnp.nan)):
        spoilt = belief.cov.parts[0].matrix.at[place].set(value)
        parts = (credo.replace(belief.cov.parts[0], matrix=spoilt), *belief.cov.parts[1:])
        cases.append((credo.replace(belief, cov=credo.replace(belief.cov, parts=parts)), 1.0))
    for given, y in cases:
        after, info = learner.update(given, jnp.array([1.0, 0.0]), y)
        assert not bool(info.ok)
        bitwise(after, given)


def test_divergence_is_that_of_dense_matrices_and_other_values_are_refused() -> None:
    (one, first), (other, second) = example(), example()
    gap = RNG.normal(size=P)
    inverse = np.linalg.inv(second)
    expected = 0.5 * (
        np.trace(inverse @ first)
        - P
        + gap @ inverse @ gap
        + np.linalg.slogdet(second)[1]
        - np.linalg.slogdet(first)[1]
    )
    close(divergence(jnp.asarray(gap), one, jnp.zeros(P), other), expected)
    with pytest.raises(credo.CredoError, match="keep"):
        credo.UnitBlocks("all")  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_wider_layer_keeps_the_old_units_in_its_corner() -> None:
    small, matrix = PlacedUnitBlocks(((2, 2), (3, 1))), np.zeros((11, 11))
    root = RNG.normal(size=(7, 7)) + 2 * np.eye(7)
    old = cut(root @ root.T, small.layers)
    wide = PlacedUnitBlocks(((3, 2), (3, 2)))
    whole = RNG.normal(size=(12, 12))
    prior = cut(whole @ whole.T + np.eye(12), wide.layers)
    places = np.array([0, 1, 2, 3, 6, 8, 10])
    others = np.setdiff1d(np.arange(12), places)
    matrix = np.zeros((12, 12))
    matrix[np.ix_(places, places)] = old
    matrix[np.ix_(others, others)] = prior[np.ix_(others, others)]
    got = widen_covariance(small.from_dense(jnp.asarray(old)), wide.from_dense(jnp.asarray(prior)), places)
    close(got.dense(), matrix)
    with pytest.raises(credo.CredoError, match="stays in its unit"):
        widen_covariance(small.from_dense(jnp.asarray(old)), wide.init(jnp.ones(12)), places[::-1])
    with pytest.raises(credo.CredoError, match="its covariance is a UnitCovariance"):
        widen_covariance(small.init(jnp.ones(7)), credo.Diagonal().init(jnp.ones(12)), places)
