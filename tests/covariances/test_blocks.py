"""Block-diagonal covariances: exact where blocks are independent, and one family where there is one block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.covariances import reference
from tests.covariances.reference import close
from tests.streams.setups import bitwise

import credo
from credo.covariances import BlockCovariance, PlacedBlocks, divergence
from credo.linalg.jacobians import DenseRows, OuterRows

P, C, T = 5, 2, 6
RNG = np.random.default_rng(1)
XS, YS = jnp.asarray(RNG.normal(size=(T, C, P))), jnp.asarray(RNG.normal(size=(T, C)))
PLACES = (((0, 1), (3, 5)), ((1, 3),))
FIRST, SECOND = np.array([0, 3, 4]), np.array([1, 2])
NOISE = 0.3


def linear(params: dict[str, Any], x: Any) -> Any:
    return x @ jnp.concatenate([params["a"], params["b"], params["c"]])


MODEL = credo.Model(linear, credo.Normal(NOISE))
START = {"a": jnp.zeros(1), "b": jnp.zeros(2), "c": jnp.zeros(2)}
HALVES = {"b": credo.Diagonal(), "*": credo.Full()}


def dense(cov: Any) -> np.ndarray:
    """The matrix, from the definition of each block."""
    if not isinstance(cov, BlockCovariance):
        return reference.dense(cov)
    matrix = np.zeros((cov.size, cov.size))
    for part, ranges in zip(cov.parts, cov.places, strict=True):
        block = np.concatenate([np.arange(*ends) for ends in ranges])
        matrix[np.ix_(block, block)] = reference.dense(part)
    return matrix


def run(family: Any, rule: Any = None, xs: Any = XS, dynamics: Any = None) -> Any:
    learner = credo.RecursiveLearner(
        MODEL, family, rule=rule or credo.BONGRule(), dynamics=dynamics or credo.Static()
    )
    return credo.run(learner, learner.init(START, var=jnp.linspace(0.5, 2.0, P)), xs, YS)


@pytest.mark.slow
@pytest.mark.parametrize("family", [credo.Full(), credo.Diagonal("covariance"), credo.LowRank(2)])
def test_one_block_is_its_family(family: Any) -> None:
    (alone, trace), (block, other) = run(family), run(credo.Blocks({"*": family}))
    np.testing.assert_allclose(block.mean, alone.mean, rtol=1e-12)
    np.testing.assert_allclose(other.log_evidence, trace.log_evidence, rtol=1e-12)
    close(dense(block.cov), dense(alone.cov))


@pytest.mark.parametrize("keep", ["precision", "covariance"])
def test_blocks_of_one_parameter_are_diagonal(keep: Any) -> None:
    apart = PlacedBlocks((credo.Full(),) * P, tuple(((i, i + 1),) for i in range(P)), keep)
    (alone, trace), (blocks, other) = run(credo.Diagonal(keep)), run(apart)
    np.testing.assert_allclose(blocks.mean, alone.mean, rtol=1e-11)
    np.testing.assert_allclose(blocks.var, alone.var, rtol=1e-11)
    np.testing.assert_allclose(other.log_evidence, trace.log_evidence, rtol=1e-11)


def test_independent_blocks_are_exact() -> None:
    outputs = jnp.zeros((T, C, P)).at[:, 0, FIRST].set(XS[:, 0, FIRST]).at[:, 1, SECOND].set(XS[:, 1, SECOND])
    exact, trace = run(credo.Full(), xs=outputs)
    blocks, other = run(credo.Blocks({"b": credo.Full(), "*": credo.Full("dense")}), xs=outputs)
    np.testing.assert_allclose(blocks.mean, exact.mean, atol=1e-10)
    np.testing.assert_allclose(other.log_evidence, trace.log_evidence, atol=1e-10)
    close(dense(blocks.cov), dense(exact.cov))


@pytest.mark.parametrize("keep", ["precision", "covariance"])
def test_the_gain_is_joint_and_the_blocks_of_the_posterior_are_kept(keep: Any) -> None:
    blocks, trace = run(credo.Blocks({"b": credo.Full(), "*": credo.Full()}, keep))
    mean, logs = np.zeros(P), []
    cov: np.ndarray = np.diag(np.linspace(0.5, 2.0, P))
    for x, y in zip(np.asarray(XS), np.asarray(YS), strict=True):
        inner = x @ cov @ x.T + NOISE * np.eye(C)
        gap = y - x @ mean
        logs.append(-0.5 * (gap @ np.linalg.solve(inner, gap) + np.linalg.slogdet(2 * np.pi * inner)[1]))
        mean = mean + cov @ x.T @ np.linalg.solve(inner, gap)
        exact: np.ndarray = np.linalg.inv(cov) + x.T @ x / NOISE
        whole, kept = np.asarray(exact if keep == "precision" else np.linalg.inv(exact)), np.zeros((P, P))
        for block in (FIRST, SECOND):
            kept[np.ix_(block, block)] = whole[np.ix_(block, block)]
        cov = np.asarray(np.linalg.inv(kept) if keep == "precision" else kept)
    np.testing.assert_allclose(blocks.mean, mean, atol=1e-10)
    np.testing.assert_allclose(trace.log_evidence, logs, atol=1e-10)
    close(dense(blocks.cov), cov)


def _example() -> BlockCovariance:
    root = RNG.normal(size=(3, 3)) + 2 * np.eye(3)
    parts = (
        credo.Full().from_dense(jnp.asarray(root @ root.T)),
        credo.Diagonal().init(jnp.asarray([0.5, 2.0])),
    )
    return BlockCovariance(parts, PLACES)


@pytest.mark.slow
def test_the_roles_agree_with_dense_matrices() -> None:
    cov = _example()
    matrix, scale, noise = dense(cov), jnp.linspace(0.5, 1.5, P), jnp.linspace(0.1, 1.0, P)
    assert np.abs(matrix[np.ix_(FIRST, SECOND)]).max() == 0
    close(cov.diag(), np.diag(matrix))
    close(cov.logdet(), np.linalg.slogdet(matrix)[1])
    close(cov.precise(scale), np.linalg.solve(matrix, scale))
    close(dense(cov.affine(scale, noise)), np.diag(scale) @ matrix @ np.diag(scale) + np.diag(noise))
    close(dense(cov.rescale(scale)), np.diag(scale) @ matrix @ np.diag(scale))
    close(dense(cov.add_precision(noise)), np.linalg.inv(np.linalg.inv(matrix) + np.diag(noise)))
    close(dense(cov.mix(jnp.asarray(0.6), cov, jnp.asarray(0.3))), 0.66 * matrix)
    transition = RNG.normal(size=(P, P))
    moved = transition @ matrix @ transition.T + np.eye(P)
    got = dense(cov.linear(jnp.asarray(transition), jnp.eye(P)))
    close(got[np.ix_(FIRST, FIRST)], moved[np.ix_(FIRST, FIRST)])
    close(np.diag(got), np.diag(moved))
    draws = cov.color(jnp.eye(cov.deviates))
    close(draws.T @ draws, matrix)
    other = cov.affine(jnp.ones(()), noise)
    gap = np.linspace(0.0, 1.0, P)
    want = np.trace(np.linalg.solve(dense(other), matrix)) - P + gap @ np.linalg.solve(dense(other), gap)
    want += np.linalg.slogdet(dense(other))[1] - np.linalg.slogdet(matrix)[1]
    close(divergence(jnp.asarray(gap), cov, jnp.zeros(P), other), 0.5 * want)
    two: Any = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), cov)
    spread = jnp.stack([jnp.asarray(gap), -jnp.asarray(gap)])
    mixed = dense(two.collapse(jnp.full(2, 0.5), spread))
    close(np.diag(mixed), np.diag(matrix) + gap**2)


@pytest.mark.slow
def test_whole_layers_take_their_rows_as_outer_products() -> None:
    sizes = ((3, 4), (5, 2))
    rows = OuterRows(
        tuple(jnp.asarray(RNG.normal(size=(1, n))) for n, _ in sizes),
        tuple(jnp.asarray(RNG.normal(size=(1, 2, m))) for _, m in sizes),
    )
    family = PlacedBlocks((credo.LowRank(2), credo.Full()), (((0, 12),), ((12, 22),)))
    cov, residual, root = (
        family.init(jnp.linspace(0.5, 2.0, 22)),
        jnp.asarray([0.3, -1.0]),
        jnp.asarray([1.0, 2.0]),
    )
    assert cov.admit(rows) is rows
    split = PlacedBlocks((credo.Diagonal(), credo.Full()), (((0, 11),), ((11, 22),))).init(jnp.ones(22))
    assert isinstance(split.admit(rows), DenseRows)
    for covariance in (cov, split):
        learned = jax.jit(covariance.assimilate)
        outer = learned(covariance.admit(rows), residual, root)
        array = learned(DenseRows(rows.dense()), residual, root)
        close(outer[0], array[0])
        close(outer[2], array[2])
        close(dense(outer[1]), dense(array[1]))


@pytest.mark.slow
def test_a_network_goes_on_learning_its_features_and_is_saved(tmp_path: Path) -> None:
    net = credo.MLP(1, (3,))
    family = credo.Blocks({"1": credo.Full(), "*": credo.Diagonal()})
    model = credo.Model(net, credo.Normal(0.1))
    learner = credo.bong(model, family, dynamics=credo.PriorBound(credo.OrnsteinUhlenbeck(0.99)))
    start = learner.init(jax.tree.map(lambda leaf: leaf.astype(float), net.init(0, (C,))))
    xs, ys = XS[:, :, 0], YS[:, 0]
    belief, trace = credo.run(learner, start, xs, ys)
    assert bool(trace.ok.all()) and float(jnp.abs(belief.params[0]["w"] - start.params[0]["w"]).max()) > 0
    back = credo.load(credo.save(tmp_path / "blocks.credo", learner, belief))
    bitwise((learner, belief), back)
    assert learner.sample(belief, 0, (2,))[1]["w"].shape == (2, 3, 1)


def test_plain_gradients_step_block_by_block() -> None:
    for rule in (credo.BOGRule(0.01, "moment"), credo.BBBRule(0.01, 2, "moment")):
        alone, _ = run(credo.Diagonal(), rule)
        blocks, _ = run(credo.Blocks({"b": credo.Diagonal(), "*": credo.Diagonal()}), rule)
        np.testing.assert_allclose(blocks.mean, alone.mean, rtol=1e-10)
        np.testing.assert_allclose(blocks.var, alone.var, rtol=1e-10)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: credo.Blocks({}), "at least one part"),
        (lambda: run(credo.Blocks({"d": credo.Full(), "*": credo.Full()})), "'d' fits none"),
        (lambda: run(credo.Blocks({"*": credo.Full(), "b": credo.Full()})), "'b' fits leaves that earlier"),
        (lambda: run(credo.Blocks({"b": credo.Full()})), "'a' is in none"),
        (lambda: run(credo.Blocks(HALVES), credo.BLRRule(0.1, 2)), "'blr' has no iterate for a BlockCov"),
        (lambda: credo.Blocks({"*": credo.Full()}).init(jnp.ones(2)), "parts of a parameter tree"),
    ],
)
def test_refusals_name_the_part(make: Any, words: str) -> None:
    with pytest.raises(credo.CredoError, match=words):
        make()
