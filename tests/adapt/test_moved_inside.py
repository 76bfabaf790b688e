"""Dynamics as a conditional prior reach the belief inside of wrappers that hold one other belief."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.adapt import Calibrated, NoiseScaled, Standardized, Stretched
from credo.adapt.priors import descend

INNER = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))


@pytest.mark.parametrize(
    "learner", [Calibrated(INNER), Stretched(INNER), Standardized(INNER), NoiseScaled(INNER, 0.1)]
)
def test_the_belief_inside_is_moved_and_the_rest_is_kept(learner: Any) -> None:
    size = {"size": 2} if isinstance(learner, Standardized) else {}
    prior = learner.init(jnp.zeros(2), **size)
    walk = credo.RandomWalk(0.25)
    new, inside = descend(walk, prior, prior, None), descend(walk, prior.belief, prior.belief, None)
    jax.tree.map(np.testing.assert_array_equal, new, credo.replace(prior, belief=inside))
    assert np.all(np.asarray(new.var) > np.asarray(prior.var))
