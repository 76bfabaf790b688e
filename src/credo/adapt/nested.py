"""Beliefs that hold other beliefs, and the answers that they share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
from jax.core import Tracer

from credo.adapt.moments import collapse
from credo.beliefs import Particles
from credo.beliefs.particles import fresh_particles
from credo.core.errors import CredoError
from credo.core.groups import Groups, each, in_order, pick
from credo.core.keys import as_key
from credo.core.records import replace
from credo.core.trees import Unravel
from credo.core.types import Array, DTypeLike, Key, PyTree
from credo.learners.base import Belief

__all__ = ["Around", "B", "Mixture", "at_time", "floating", "renewed", "within"]

B = TypeVar("B", bound=Belief)
"""The kind of belief that the learner inside keeps."""


def at_time(belief: B, t: Array) -> B:
    """The belief with its clock set to t, so that a prior can take the place of a belief at that time."""
    return replace(belief, t=t)


def renewed(prior: B, t: Array) -> B:
    """The first belief of a regime: the prior, with particles drawn again, lest all search the same few."""

    def fresh(part: object) -> object:
        if isinstance(part, Particles):
            return fresh_particles(part, t)
        return part

    drawn: B = jax.tree.map(fresh, prior, is_leaf=lambda part: isinstance(part, Particles))
    return at_time(drawn, t)


K = TypeVar("K")


def within(thing: object, kind: type[K]) -> K | None:
    """The outermost part of a kind in a belief or a learner that holds another one; None if there is none.

    Arguments:
        thing: a belief, whose inner one is its `belief`, or a learner, whose inner one is its `learner`.
        kind: a class.

    Example:
        >>> import credo
        >>> learner = credo.adapt.Calibrated(credo.Experts([credo.BetaBernoulli()]))
        >>> type(within(learner, credo.Experts)).__name__, within(learner.init(), credo.Gaussian)
        ('Experts', None)
    """
    while thing is not None and not isinstance(thing, kind):
        thing = getattr(thing, "belief", getattr(thing, "learner", None))
    return thing


def floating(belief: Belief) -> DTypeLike:
    """The widest floating-point dtype in a belief; if there is none, JAX's default."""
    kinds = [jnp.asarray(leaf).dtype for leaf in jax.tree.leaves(belief)]
    floats = [kind for kind in kinds if jnp.issubdtype(kind, jnp.floating)]
    if floats:
        return max(floats, key=lambda kind: kind.itemsize)
    return jnp.zeros(()).dtype


def _answer(belief: object, name: str) -> PyTree:
    """The answer of a belief of any kind, or an AttributeError if it has no such answer."""
    return getattr(belief, name)


def _kinds(beliefs: object) -> tuple[object, ...]:
    """The stacks of beliefs, one a kind."""
    if isinstance(beliefs, Groups):
        return beliefs.parts
    return (beliefs,)


def _layout(belief: object) -> Unravel | None:
    """The layout of the parameters of a belief, if it has parameters of one layout."""
    layout: Unravel | None = getattr(belief, "unravel", None)
    if layout is not None:
        return layout
    inside = getattr(belief, "belief", getattr(belief, "beliefs", None))
    layouts = [_layout(kind) for kind in _kinds(inside)] if inside is not None else [None]
    if all(layout == layouts[0] for layout in layouts):
        return layouts[0]
    return None


class Around(Generic[B]):
    """A belief that holds one other belief and gives the answers of that one.

    A record that derives from it has a field `belief`, and a clock `t` as every belief has.

    Example:
        >>> import credo, jax, jax.numpy as jnp
        >>> @credo.record
        ... class Counted(Around):
        ...     belief: credo.Gaussian
        ...     count: jax.Array
        ...     t: jax.Array
        >>> prior = credo.extended_kalman(credo.Model(jnp.dot, credo.Normal(1.0))).init(jnp.zeros(2))
        >>> Counted(prior, jnp.zeros(()), prior.t).mean.shape
        (2,)
    """

    belief: B

    @property
    def mean(self) -> Array:
        """The mean of the belief inside."""
        mean: Array = _answer(self.belief, "mean")
        return mean

    @property
    def var(self) -> Array:
        """The variances of the belief inside."""
        var: Array = _answer(self.belief, "var")
        return var

    @property
    def sd(self) -> Array:
        """The standard deviations of the belief inside."""
        return jnp.sqrt(self.var)

    @property
    def params(self) -> PyTree:
        """The mean as a parameter tree."""
        return _answer(self.belief, "params")

    @property
    def size(self) -> int:
        """The number P of parameters."""
        size: int = _answer(self.belief, "size")
        return size


class Mixture(Generic[B]):
    """A belief that holds several weighted beliefs and gives the answers of their mixture.

    A record that derives from it has a field `beliefs`, one belief whose arrays have a leading axis K, and a
    field `log_weights` (K,), log probabilities that sum to one. Where the beliefs are of several kinds,
    `beliefs` are `Groups`; they have a mean and variances together where their parameters are laid out alike.

    Example:
        >>> import credo
        >>> learner = credo.Experts([credo.BetaBernoulli(a=a) for a in (1.0, 3.0)])
        >>> isinstance(learner.init(), Mixture), float(learner.init().mean)
        (True, 0.625)
    """

    log_weights: Array
    beliefs: B

    def _answers(self, name: str) -> Array:
        """One answer of every belief, with a leading axis K; beliefs must be over like parameters."""
        beliefs: object = self.beliefs
        layouts = [_layout(part) for part in _kinds(beliefs)]
        if any(layout != layouts[0] for layout in layouts):
            raise CredoError(
                f"beliefs over different parameters have no common {name}: look at `best` or at `beliefs`."
            )
        answers: Array = in_order(each(lambda belief: _answer(belief, name), beliefs))
        return answers

    @property
    def weights(self) -> Array:
        """The probabilities, one for each belief (K,)."""
        return jnp.exp(self.log_weights)

    @property
    def best(self) -> B:
        """The likeliest belief.

        Raises:
            CredoError: the beliefs are of several kinds, and the weights are traced by JAX.
        """
        index = jnp.argmax(self.log_weights)
        if isinstance(self.beliefs, Groups) and isinstance(index, Tracer):
            raise CredoError("best of beliefs of several kinds is known outside compiled programs only.")
        belief: B = pick(self.beliefs, index)
        return belief

    def collapse(self) -> B:
        """One belief with the first two moments of the mixture, where its kind of belief has them.

        Raises:
            CredoError: the moments of this kind of belief, or of beliefs of several kinds, cannot be matched.
        """
        if isinstance(self.beliefs, Groups):
            raise CredoError("beliefs of several kinds cannot become one belief.")
        return collapse(self.log_weights, self.beliefs)

    @property
    def mean(self) -> Array:
        """The mixture's mean, where each belief has one."""
        return jnp.tensordot(self.weights, self._answers("mean"), axes=1)

    @property
    def var(self) -> Array:
        """The mixture's variances; where the noise is learned, in units of its typical variance."""
        if any(getattr(part, "noise", None) is not None for part in _kinds(self.beliefs)):
            var: Array = _answer(self.collapse(), "var")
            return var
        means = self._answers("mean")
        variances = self._answers("var")
        return jnp.tensordot(self.weights, variances + (means - self.mean[None]) ** 2, axes=1)

    @property
    def sd(self) -> Array:
        """The mixture's standard deviations."""
        return jnp.sqrt(self.var)

    @property
    def params(self) -> PyTree:
        """The mixture's mean as a parameter tree."""
        unravel = _layout(_kinds(self.beliefs)[0])
        if unravel is None:
            return self.mean
        return unravel(self.mean)

    @property
    def size(self) -> int:
        """The number P of parameters of each belief.

        Raises:
            CredoError: the beliefs have no number of parameters, or not the same.
        """
        kinds = _kinds(self.beliefs)
        layouts = [_layout(kind) for kind in kinds]
        first = layouts[0]
        if first is None or any(layout != first for layout in layouts):
            raise CredoError(f"a {type(kinds[0]).__name__} has no number of parameters that all share.")
        return first.size

    def draws(self, key: Key, shape: tuple[int, ...], sample: Callable[[Array, Array], PyTree]) -> PyTree:
        """Draws from the mixture: first a belief is drawn, then a value from that belief.

        Arguments:
            key: the key of all draws.
            shape: leading axes of the result.
            sample: `sample(index, key)`, one draw from the belief at that index.

        Returns:
            The draws, with leading axes `shape`.
        """
        first, second = jax.random.split(as_key(key))
        total = math.prod(shape)
        indices = jax.random.categorical(first, self.log_weights, shape=(total,))
        draws = jax.vmap(sample)(indices, jax.random.split(second, total))
        return jax.tree.map(lambda leaf: leaf.reshape(shape + leaf.shape[1:]), draws)
