"""The learner of a search for which none was given: a Gaussian process that is fitted at each question."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from credo.bandits.optimize.space import Space
from credo.core.errors import CredoError
from credo.learners import GaussianProcess, Learner
from credo.learners.process_belief import ProcessBelief

__all__ = ["default_learner", "first_belief"]


def default_learner(space: Space) -> tuple[GaussianProcess, ProcessBelief]:
    """A Gaussian process with a Matern kernel, whose numbers come from `fit_process`, and its belief.

    The belief has the kind of those that are fitted, and room for one row, since none is learned by it.
    """
    with jax.enable_x64(False):  # files of it can then be read whatever JAX is set to
        learner = jax.tree.map(jnp.asarray, GaussianProcess(space.size, size=1))  # of arrays: see `core.kept`
        return learner, learner.init()


def first_belief(learner: Learner[Any]) -> Any:
    """The learner's own first belief, where it needs no parameters."""
    start: Any = learner.init
    try:
        return start()
    except (TypeError, ValueError, AttributeError) as error:
        raise CredoError(
            "prior is missing: this learner needs parameters, so pass prior=learner.init(params).",
            field="prior",
        ) from error
