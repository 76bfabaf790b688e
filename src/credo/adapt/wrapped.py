"""What beliefs that hold other beliefs answer alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo.adapt.priors import collapse
from credo.core.errors import CredoError
from credo.core.keys import as_key

__all__ = ["Around", "Mixture"]


class Around:
    """A belief that holds one other, `belief`, and answers as that one does."""

    belief: Any

    @property
    def mean(self) -> jax.Array:
        """The mean of the belief inside."""
        return self.belief.mean

    @property
    def var(self) -> jax.Array:
        """The variances of the belief inside."""
        return self.belief.var

    @property
    def sd(self) -> jax.Array:
        """The standard deviations of the belief inside."""
        return jnp.sqrt(self.var)

    @property
    def params(self) -> Any:
        """The mean as a parameter tree."""
        return self.belief.params

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return self.belief.size


class Mixture:
    """A belief that holds several, `beliefs`, with `log_weights` that sum to one."""

    log_weights: jax.Array
    beliefs: Any

    @property
    def weights(self) -> jax.Array:
        """The probabilities, one a belief."""
        return jnp.exp(self.log_weights)

    @property
    def best(self) -> Any:
        """The likeliest belief."""
        return jax.tree.map(lambda leaf: leaf[jnp.argmax(self.log_weights)], self.beliefs)

    def collapse(self) -> Any:
        """One belief with the mixture's first two moments, where the kind of belief has them."""
        return collapse(self.log_weights, self.beliefs)

    @property
    def mean(self) -> jax.Array:
        """The mixture's mean, where each belief has one."""
        means = jax.vmap(lambda belief: belief.mean)(self.beliefs)
        return jnp.tensordot(self.weights, means, axes=1)

    @property
    def var(self) -> jax.Array:
        """The mixture's variances; where the noise is learned, in units of its typical variance."""
        if getattr(self.beliefs, "noise", None) is not None:
            return self.collapse().var
        means = jax.vmap(lambda belief: belief.mean)(self.beliefs)
        each = jax.vmap(lambda belief: belief.var)(self.beliefs)
        return jnp.tensordot(self.weights, each + (means - self.mean[None]) ** 2, axes=1)

    @property
    def sd(self) -> jax.Array:
        """The mixture's standard deviations."""
        return jnp.sqrt(self.var)

    @property
    def params(self) -> Any:
        """The mixture's mean as a parameter tree."""
        unravel = getattr(self.beliefs, "unravel", None)
        return self.mean if unravel is None else unravel(self.mean)

    @property
    def size(self) -> int:
        """The number P of parameters of each belief."""
        if not hasattr(self.beliefs, "unravel"):
            raise CredoError(f"a {type(self.beliefs).__name__} has no number of parameters.")
        return self.beliefs.unravel.size

    def draws(self, key: Any, shape: tuple[int, ...], sample: Callable[[jax.Array, jax.Array], Any]) -> Any:
        """Draws with leading axes `shape`: first of a belief, then `sample(its index, key)`."""
        first, second = jax.random.split(as_key(key))
        total = math.prod(shape)
        which = jax.random.categorical(first, self.log_weights, shape=(total,))
        drawn = jax.vmap(sample)(which, jax.random.split(second, total))
        return jax.tree.map(lambda leaf: leaf.reshape(shape + leaf.shape[1:]), drawn)
