"""Weights of candidates that take over from one another, against a loop."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from tests.learners.reference import close
from tests.streams.setups import bitwise

from credo.core.weights import fixed_share


def test_a_fixed_share_moves_between_candidates() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 5):
        weights = rng.dirichlet(np.ones(size))
        for rate in (0.0, 1e-3, 0.5):
            moved = fixed_share(jnp.log(weights), rate)
            expected = [
                (1 - rate) * w + sum(rate * v / (size - 1) for j, v in enumerate(weights) if j != i)
                for i, w in enumerate(weights)
            ]
            close(jnp.exp(moved), weights if size == 1 else expected)
        bitwise(fixed_share(jnp.log(weights), 0.0), jnp.log(weights))
    out = fixed_share(jnp.asarray([0.0, -jnp.inf]), 0.25)
    close(jnp.exp(out), [0.75, 0.25])
