"""How often a low-rank update goes through the parameters, and how much it starts, in the compiled program.

The bounds are what it takes now: whoever needs one pass less lowers them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from tests.haste import KNOWN
from tests.hlo_counts import Counts, as_users_get, counts

import credo
from credo.core.trees import ravel
from credo.core.types import Array
from credo.covariances import LowRank, LowRankCovariance

OUTPUTS, RANK = 10, 10


def update_counts(inputs: int, hidden: tuple[int, ...]) -> tuple[int, Counts]:
    """P, and the counts of an update of rank 10 in single precision by the outputs of a network."""
    net = credo.MLP(OUTPUTS, hidden)
    vector, unravel = ravel(net.init(0, (inputs,)))
    model = credo.Model(net, credo.Categorical(OUTPUTS))

    def update(cov: LowRankCovariance, vector: Array, x: Array, residual: Array, root: Array) -> object:
        return cov.assimilate(model.linearize(vector, unravel, x)[1], residual, root)

    cov, line = LowRank(RANK).init(jnp.ones_like(vector)), jnp.ones(OUTPUTS, jnp.float32)
    lowered = jax.jit(update).lower(cov, vector, jnp.ones(inputs, jnp.float32), line, jnp.diag(line))
    return vector.size, counts(as_users_get(lowered), vector.size)


@pytest.mark.slow
@pytest.mark.skipif(not KNOWN, reason="counts of another version of XLA")
@pytest.mark.parametrize(
    ("inputs", "hidden", "size", "most"),
    [
        (64, (20,), 1510, Counts(kernels=235, lapack=9, passes=21)),
        (784, (50, 50), 42_310, Counts(kernels=832, lapack=7, passes=41)),
    ],
)
def test_a_low_rank_update_takes_no_more_passes(
    inputs: int, hidden: tuple[int, ...], size: int, most: Counts
) -> None:
    found, got = update_counts(inputs, hidden)
    assert found == size
    assert got.passes <= most.passes, got
    assert got.lapack <= most.lapack, got
    assert got.kernels <= most.kernels, got


def test_one_more_pass_is_counted() -> None:
    """A product that XLA cannot merge with another, beside a loop of known length over slices."""
    rows = jnp.ones((3, 40), jnp.float32)

    def once(rows: Array) -> Array:
        def add(i: Array, total: Array) -> Array:
            return total + jax.lax.dynamic_slice_in_dim(rows, i * 10, 10, axis=1)

        total: Array = jax.lax.fori_loop(0, 4, add, rows[:, :10])
        return total

    def twice(rows: Array) -> tuple[Array, Array]:
        return once(rows), rows @ rows.T

    one, two = (counts(as_users_get(jax.jit(f).lower(rows)), 40) for f in (once, twice))
    assert two.passes == one.passes + 1
    assert two.kernels == one.kernels + 1
    assert one.lapack == 0
    solved = jax.jit(jnp.linalg.eigh).lower(rows @ rows.T)
    assert counts(as_users_get(solved)).lapack == 1
