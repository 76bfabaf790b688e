"""What particles are drawn from before any data, and again whenever a regime begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import jax

from credo.core.errors import CredoError
from credo.core.records import record, static_field
from credo.core.trees import Unravel, ravel
from credo.core.types import Array, PyTree
from credo.covariances import Covariance
from credo.covariances.divergence import log_normal

__all__ = ["FunctionSource", "NormalSource", "Source", "ValuesSource"]


@runtime_checkable
class Source(Protocol):
    """The protocol of priors of particles. To write your own, make a record with these two functions.

    Example:
        >>> import credo, jax, jax.numpy as jnp
        >>> @credo.record
        ... class Box:
        ...     def draw(self, key, count):
        ...         return jax.random.uniform(key, (count, 1))
        ...     def log_prob(self, value):
        ...         return jnp.where((value[0] >= 0) & (value[0] <= 1), 0.0, -jnp.inf)
        >>> learner = credo.particle_filter(credo.Model(lambda z, x: z, credo.Normal(1.0)), particles=50)
        >>> float(learner.init(jnp.zeros(1), prior=Box()).mean[0]) > 0.3
        True
    """

    def draw(self, key: Array, count: int) -> Array:
        """Independent draws (count, P)."""
        ...

    def log_prob(self, value: Array) -> Array:
        """The log density at one value (P,)."""
        ...


@record
class NormalSource:
    """Particles from N(mean, cov).

    Attributes:
        mean: the mean (P,).
        cov: the covariance, of some family.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> source = NormalSource(jnp.zeros(2), credo.Diagonal().init(jnp.ones(2)))
        >>> source.draw(jax.random.key(0), 5).shape
        (5, 2)
    """

    mean: Array
    cov: Covariance

    def draw(self, key: Array, count: int) -> Array:
        """Independent draws (count, P)."""
        return self.mean[None, :] + self.cov.sample(key, (count,))

    def log_prob(self, value: Array) -> Array:
        """log N(value | mean, cov), a scalar."""
        return log_normal(value - self.mean, self.cov)


@record
class FunctionSource:
    """Particles from a function of a key.

    Attributes:
        function: `function(key)`, the parameter tree of one particle.
        density: `density(params)`, its log density; None where nobody asks for it.
        unravel: how a vector becomes the parameter tree.

    Example:
        >>> import jax.numpy as jnp
        >>> _, unravel = ravel(jnp.zeros(2))
        >>> source = FunctionSource(lambda key: jax.random.exponential(key, (2,)), None, unravel)
        >>> bool(jnp.all(source.draw(jax.random.key(0), 5) > 0))
        True
    """

    function: Callable[[Array], PyTree] = static_field()
    density: Callable[[PyTree], Array] | None = static_field()
    unravel: Unravel = static_field()

    def draw(self, key: Array, count: int) -> Array:
        """Independent draws (count, P)."""
        return jax.vmap(lambda one: ravel(self.function(one))[0])(jax.random.split(key, count))

    def log_prob(self, value: Array) -> Array:
        """The log density, a scalar.

        Raises:
            CredoError: the density is not known.
        """
        if self.density is None:
            raise CredoError("prior needs a log density here: init(..., prior=(draw, log_prob)).")
        return self.density(self.unravel(value))


@record
class ValuesSource:
    """Particles that are drawn, with replacement, from given values.

    Attributes:
        values: the values (M, P).

    Example:
        >>> import jax.numpy as jnp
        >>> ValuesSource(jnp.arange(3.0)[:, None]).draw(jax.random.key(0), 5).shape
        (5, 1)
    """

    values: Array

    def draw(self, key: Array, count: int) -> Array:
        """Draws (count, P) with replacement."""
        return self.values[jax.random.randint(key, (count,), 0, self.values.shape[0])]

    def log_prob(self, value: Array) -> Array:
        """Values have no density.

        Raises:
            CredoError: always.
        """
        raise CredoError("particles that were given as values have no prior density: init(..., prior=...).")
