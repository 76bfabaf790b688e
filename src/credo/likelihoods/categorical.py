"""Categorical observations, by logits; of `OpenCategorical` the classes are met one after another.

The functions at the end serve every likelihood of classes: the number of classes, and outputs for
probabilities.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeAlias

import jax
import jax.numpy as jnp

from credo.beliefs.conjugate import InverseGamma
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.scalar import Bernoulli
from credo.likelihoods.softmax_normal import ClassPredictive

__all__ = [
    "Categorical",
    "ClassLikelihood",
    "OpenCategorical",
    "class_outputs",
    "class_slots",
    "known_classes",
    "reference_class",
]


class _Classes(LikelihoodBase):
    """The part of likelihoods of classes that follows from their probabilities."""

    discrete = True

    @abstractmethod
    def probs(self, eta: Array) -> Array:
        """The class probabilities."""

    def mean(self, eta: Array) -> Array:
        """The class probabilities, the mean of the one-hot label."""
        return self.probs(eta)

    def variance(self, eta: Array) -> Array:
        """p (1 - p) of each class."""
        probs = self.probs(eta)
        return probs * (1 - probs)

    @abstractmethod
    def relative(self, eta: Array, cov: Array) -> tuple[Array, Array, Array]:
        """Mean and covariance of the logits of all classes, and which classes there are."""

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> ClassPredictive:
        """The predictive for eta ~ N(eta, cov), by an integral over one number."""
        return ClassPredictive.of(*self.relative(eta, cov))

    def scaled(
        self, eta: Array, cov: Array, scale: ArrayLike, noise: InverseGamma | None = None
    ) -> ClassPredictive:
        """The predictive for eta ~ N(eta, scale cov)."""
        return self.linearized(eta, cov, noise).scaled(scale)


@record
class Categorical(_Classes):
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

    def relative(self, eta: Array, cov: Array) -> tuple[Array, Array, Array]:
        """The logits as they are."""
        return eta, cov, jnp.ones(self.classes, bool)

    def _label(self, y: PyTree) -> Array:
        array = jnp.asarray(y)
        if array.size != 1:
            raise CredoError(
                f"y must be one class label (a whole number, not a one-hot row); got shape {array.shape}."
            )
        return array.reshape(()).astype(jnp.int32)

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

    def sample(self, eta: Array, key: Array) -> Array:
        """One label."""
        return jax.random.categorical(key, eta)


_NEVER = -1e30
"""The logit of a class that is not known: its probability is 0, and so is every derivative by it."""


@record
class OpenCategorical(_Classes):
    """Observations y in 0..known-1, of at most `slots` classes: p(y | eta) = softmax(eta_0..eta_known-1)_y.

    The outputs of classes that are not known yet have no probability, no score and no curvature, so that a
    belief about them stays at its prior. When a class becomes known, `known` grows, which is a
    hyper-parameter: no program is compiled again. A label outside 0..known-1 counts as a missing observation.

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

    def relative(self, eta: Array, cov: Array) -> tuple[Array, Array, Array]:
        """The logits of all slots, where that of a reference is 0."""
        if self.reference:
            eta = jnp.pad(eta, (1, 0))
            cov = jnp.pad(cov, (1, 0))
        return eta, cov, jnp.arange(self.slots) < jnp.asarray(self.known, int)

    def _outputs(self, rows: Array) -> Array:
        """The rows that belong to outputs of the model."""
        if self.reference:
            return rows[1:]
        return rows

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

    def sample(self, eta: Array, key: Array) -> Array:
        """One label."""
        return jax.random.categorical(key, self._logits(eta))


ClassLikelihood: TypeAlias = Bernoulli | Categorical | OpenCategorical
"""The likelihoods of a class."""


def class_slots(likelihood: ClassLikelihood) -> int:
    """The number C of classes that there is room for."""
    if isinstance(likelihood, Bernoulli):
        return 2
    if isinstance(likelihood, OpenCategorical):
        return likelihood.slots
    return likelihood.classes


def reference_class(likelihood: ClassLikelihood) -> bool:
    """Whether the outputs of the likelihood are log odds against class 0."""
    if isinstance(likelihood, OpenCategorical):
        return likelihood.reference
    return isinstance(likelihood, Bernoulli)


def known_classes(likelihood: ClassLikelihood, logs: Array) -> Array:
    """Log probabilities (..., C), of which those of classes that are not known vanish."""
    if not isinstance(likelihood, OpenCategorical):
        return logs
    known = jnp.arange(likelihood.slots) < jnp.asarray(likelihood.known, int)
    return jnp.where(jnp.broadcast_to(known, logs.shape), logs, jnp.asarray(_NEVER, logs.dtype))


def class_outputs(likelihood: ClassLikelihood, logs: Array) -> Array:
    """The outputs whose class probabilities are proportional to exp(logs), for logs (C,)."""
    if reference_class(likelihood):
        return logs[1:] - logs[:1]
    return logs - jnp.max(logs)
