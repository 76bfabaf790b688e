"""Categorical observations whose classes are met one after another."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.beliefs.inverse_gamma import InverseGamma
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.categorical import Categorical
from credo.likelihoods.mixture import MixturePredictive
from credo.likelihoods.predictive import Predictive

__all__ = ["OpenCategorical"]

_NEVER = -1e30
"""The logit of a class that is not known: its probability is 0, and so is every derivative by it."""


@record
class OpenCategorical(LikelihoodBase):
    """Observations y in 0..known-1, of at most `slots` classes: p(y | eta) = softmax(eta_0..eta_known-1)_y.

    The outputs of classes that are not known yet have no probability, no score and no curvature, so that a
    belief about them stays at its prior. When a class becomes known, `known` grows, which is a
    hyper-parameter: no program is compiled anew. A label outside 0..known-1 counts as a missing observation.

    Arguments:
        slots: the number of classes that there is room for, at least 2.
        known: how many of them are known, at most `slots`.
        reference: whether class 0 has the logit 0 and no output of its own, as in `Bernoulli`.

    Raises:
        CredoError: `slots` is not a whole number above 1, or (later) a model has another number of outputs.

    Example:
        >>> OpenCategorical(4, known=2).plugin(jnp.zeros(4)).probs.tolist()
        [0.5, 0.5, 0.0, 0.0]
    """

    discrete = True
    slots: int = static_field()
    known: ArrayLike = 2
    reference: bool = static_field(default=False)

    def __post_init__(self) -> None:
        require_integer("slots", self.slots, 2)

    def check(self, size: int) -> None:
        """Refuse a model whose outputs are not one logit a slot.

        Raises:
            CredoError: the model has another number of outputs.
        """
        due = self.slots - self.reference
        if size != due:
            raise CredoError(f"OpenCategorical({self.slots}) needs a model with {due} outputs; got {size}.")

    def _logits(self, eta: Array) -> Array:
        """The logits of all slots."""
        full = jnp.concatenate([jnp.zeros(1, eta.dtype), eta]) if self.reference else eta
        return jnp.where(
            jnp.arange(self.slots) < jnp.asarray(self.known, int), full, jnp.asarray(_NEVER, eta.dtype)
        )

    def _outputs(self, rows: Array) -> Array:
        """The rows that belong to outputs of the model."""
        return rows[1:] if self.reference else rows

    def scaled(
        self, eta: Array, cov: Array, scale: ArrayLike, noise: InverseGamma | None = None
    ) -> Predictive:
        """The predictive for eta ~ N(eta, scale cov), of which all scales share the root of cov."""
        gaps, log_weights = self.nodes(cov)
        return MixturePredictive(self, eta[None, :] + jnp.sqrt(as_like(scale, eta)) * gaps, log_weights)

    def observed(self, y: PyTree) -> Array:
        """Whether y is the label of a known class."""
        array = jnp.asarray(y)
        return jnp.all((array >= 0) & (array < jnp.asarray(self.known, array.dtype)))

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """The log-softmax of the label's logit."""
        return Categorical(self.slots).log_prob(self._logits(eta), y)

    def score(self, eta: Array, y: PyTree) -> Array:
        """onehot(y) - p."""
        return self._outputs(Categorical(self.slots).score(self._logits(eta), y))

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """That of `Categorical`, whose rows are 0 for classes that are not known."""
        return self._outputs(Categorical(self.slots).fisher_root(self._logits(eta), y))

    def probs(self, eta: Array) -> Array:
        """The probabilities of all slots (slots,)."""
        return jax.nn.softmax(self._logits(eta))

    def mean(self, eta: Array) -> Array:
        """The class probabilities, the mean of the one-hot label."""
        return self.probs(eta)

    def variance(self, eta: Array) -> Array:
        """p (1 - p) of each class."""
        probs = self.probs(eta)
        return probs * (1 - probs)

    def sample(self, eta: Array, key: Array) -> Array:
        """One label."""
        return jax.random.categorical(key, self._logits(eta))
