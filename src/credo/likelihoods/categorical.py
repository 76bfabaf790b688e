"""Categorical observations, by logits."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.beliefs.inverse_gamma import InverseGamma
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.mixture import MixturePredictive
from credo.likelihoods.predictive import Predictive

__all__ = ["Categorical"]


@record
class Categorical(LikelihoodBase):
    """Observations y that are classes 0..C-1, with logits eta (C,): p(y | eta) = softmax(eta)_y.

    A label outside 0..C-1 counts as a missing observation: the belief stays as it was, and `info.ok` is
    False.

    Arguments:
        classes: the number C of classes, at least 2.

    Raises:
        CredoError: `classes` is not a whole number above 1, or (later) a model has another number of outputs.

    Example:
        >>> Categorical(3).plugin(jnp.zeros(3)).probs.shape
        (3,)
    """

    discrete = True
    classes: int = static_field()

    def __post_init__(self) -> None:
        require_integer("classes", self.classes, 2)

    def check(self, size: int) -> None:
        """Refuse a model whose outputs are not one logit a class.

        Raises:
            CredoError: the model has another number of outputs than there are classes.
        """
        if size != self.classes:
            raise CredoError(
                f"Categorical({self.classes}) needs a model with {self.classes} outputs; this one has {size}."
            )

    def _label(self, y: PyTree) -> Array:
        array = jnp.asarray(y)
        if array.size != 1:
            raise CredoError(
                f"y must be one class label (a whole number, not a one-hot row); got shape {array.shape}."
            )
        return array.reshape(()).astype(jnp.int32)

    def scaled(
        self, eta: Array, cov: Array, scale: ArrayLike, noise: InverseGamma | None = None
    ) -> Predictive:
        """The predictive for eta ~ N(eta, scale cov), of which all scales share the root of cov."""
        gaps, log_weights = self.nodes(cov)
        return MixturePredictive(self, eta[None, :] + jnp.sqrt(as_like(scale, eta)) * gaps, log_weights)

    def observed(self, y: PyTree) -> Array:
        """Whether y is a label in range; a number that is not whole is none."""
        array = jnp.asarray(y)
        return jnp.all((array >= 0) & (array < self.classes) & (array == jnp.round(array)))

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """The log-softmax of the label's logit."""
        return jax.nn.log_softmax(eta)[self._label(y)]

    def score(self, eta: Array, y: PyTree) -> Array:
        """onehot(y) - p, where 1 - p of the label is the sum of the others and keeps its digits near 0.

        A confident mistake is not attenuated.
        """
        label = jax.nn.one_hot(self._label(y), eta.shape[0], dtype=eta.dtype)
        others = (1 - label) * jax.nn.softmax(eta)
        return label * jnp.sum(others) - others

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """diag(sqrt p) - p sqrt(p)': exact, A A' = diag(p) - p p', of rank C - 1."""
        log_probs = jax.nn.log_softmax(eta)
        root = jnp.exp(0.5 * log_probs)
        return jnp.diag(root) - jnp.exp(log_probs)[:, None] * root[None, :]

    def centre(self, eta: Array) -> Array:
        """The class probabilities p: logits matter up to a common shift."""
        return jax.nn.softmax(eta)

    def probs(self, eta: Array) -> Array:
        """The class probabilities (C,)."""
        return jax.nn.softmax(eta)

    def mean(self, eta: Array) -> Array:
        """The class probabilities, the mean of the one-hot label."""
        return jax.nn.softmax(eta)

    def variance(self, eta: Array) -> Array:
        """p (1 - p) of each class."""
        probs = jax.nn.softmax(eta)
        return probs * (1 - probs)

    def sample(self, eta: Array, key: Array) -> Array:
        """One label."""
        return jax.random.categorical(key, eta)
