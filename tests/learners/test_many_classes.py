"""Many classes: rows of outer products, centred at the class probabilities, against dense ones."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.learners.curvatures import base
from credo.linalg.jacobians import OuterRows
from credo.linalg.jacobians.woodbury import leading_frame
from credo.linalg.matrices import spread_root
from credo.models import model as models

CLASSES = 40
NET = credo.MLP(CLASSES, (3,), "tanh")
PARAMS = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), NET.init(0, (2,)))
RNG = np.random.default_rng(3)
XS = jnp.asarray(RNG.normal(size=(3, 2)))
YS = jnp.asarray(RNG.integers(0, CLASSES, 3))


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [
        pytest.param(credo.Diagonal(), id="diagonal", marks=pytest.mark.thorough),
        pytest.param(credo.LowRank(20), id="low-rank"),
    ],
)
def test_centred_outer_rows_learn_what_dense_rows_learn(family: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = credo.bong(credo.Model(NET, credo.Categorical(CLASSES)), family)
    belief = learner.init(PARAMS, var=0.5)

    def learned(many: int) -> Any:
        monkeypatch.setattr(models, "MANY", many)
        monkeypatch.setattr(base, "MANY", many)
        jax.clear_caches()
        final, trace = credo.run(learner, belief, XS, YS)
        rows = learner.model.linearize(belief.mean, belief.unravel, XS[0])[1]
        return isinstance(rows, OuterRows), final.mean, final.cov.diag(), trace.log_evidence

    outer, mean, var, evidence = learned(32)
    dense, want_mean, want_var, want_evidence = learned(10**6)
    assert outer and not dense
    np.testing.assert_allclose(mean, want_mean, atol=1e-10)
    np.testing.assert_allclose(var, want_var, rtol=1e-10)
    # The nodes of the integral lie elsewhere in the space of the logits, for the same distribution.
    np.testing.assert_allclose(evidence, want_evidence, atol=0.02)


def test_the_root_of_many_outputs_is_a_root_even_of_a_singular_covariance() -> None:
    rows = jnp.asarray(RNG.normal(size=(CLASSES, 5)))
    cov = rows @ rows.T
    root = spread_root(cov)
    np.testing.assert_allclose(root @ root.T, cov, atol=1e-12 * CLASSES)


def test_leading_directions_by_iteration_keep_what_eigenvectors_keep() -> None:
    size, rank = 130, 4
    rows = jnp.asarray(RNG.normal(size=(size, size))) * jnp.asarray(0.8 ** np.arange(size))[:, None]
    gram = rows @ rows.T
    frame = leading_frame(gram, rank, jnp.asarray(1.0))
    np.testing.assert_allclose(frame @ frame.T, np.eye(rank), atol=1e-12)
    best = float(np.linalg.eigvalsh(np.asarray(gram))[-rank:].sum())
    assert float(jnp.trace(frame @ gram @ frame.T)) > 0.999 * best
