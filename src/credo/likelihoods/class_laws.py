"""The common parts of the likelihoods of a class: the number of classes, and outputs for probabilities."""

from __future__ import annotations

from typing import TypeAlias

import jax.numpy as jnp

from credo.core.types import Array
from credo.likelihoods.categorical import Categorical, OpenCategorical
from credo.likelihoods.scalar import Bernoulli

__all__ = ["ClassLaw", "class_outputs", "class_slots", "known_classes", "reference_class"]

ClassLaw: TypeAlias = Bernoulli | Categorical | OpenCategorical
"""The likelihoods of a class."""

_NEVER = -1e30
"""The log probability of a class that is not known."""


def class_slots(likelihood: ClassLaw) -> int:
    """The number C of classes that there is room for."""
    if isinstance(likelihood, Bernoulli):
        return 2
    if isinstance(likelihood, OpenCategorical):
        return likelihood.slots
    return likelihood.classes


def reference_class(likelihood: ClassLaw) -> bool:
    """Whether the outputs of the likelihood are log odds against class 0."""
    if isinstance(likelihood, OpenCategorical):
        return likelihood.reference
    return isinstance(likelihood, Bernoulli)


def known_classes(likelihood: ClassLaw, logs: Array) -> Array:
    """Log probabilities (..., C), of which those of classes that are not known vanish."""
    if not isinstance(likelihood, OpenCategorical):
        return logs
    known = jnp.arange(likelihood.slots) < jnp.asarray(likelihood.known, int)
    return jnp.where(jnp.broadcast_to(known, logs.shape), logs, jnp.asarray(_NEVER, logs.dtype))


def class_outputs(likelihood: ClassLaw, logs: Array) -> Array:
    """The outputs whose class probabilities are proportional to exp(logs), for logs (C,)."""
    if reference_class(likelihood):
        return logs[1:] - logs[:1]
    return logs - jnp.max(logs)
