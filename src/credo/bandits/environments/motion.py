"""Motions of the arms of an environment: none, a random walk, or jumps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import jax
import jax.numpy as jnp

from credo.bandits.environments.base import add_noise
from credo.core.errors import CredoError, require_interval, require_nonnegative
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike

__all__ = ["Drifts", "Jumps", "Motion", "Still", "require_motion"]


class Motion(ABC):
    """A motion of the values that an environment drew for its arms. To add one, write `move`.

    Example:
        >>> import credo
        >>> @credo.record
        ... class Decline(Motion):
        ...     factor: float
        ...     def move(self, values, draw, key):
        ...         return self.factor * values
        >>> world = credo.bandits.environments.BernoulliArms(chances=[0.8, 0.4], motion=Decline(0.5))
        >>> world.advance(world.start(0), 0, 0)
        Array([0.4, 0.2], dtype=float32)
    """

    @abstractmethod
    def move(self, values: Array, draw: Callable[[Array], Array], key: Array) -> Array:
        """The values of the next step.

        Arguments:
            values: what the arms have now, (K, ...).
            draw: draws new values of the same shape, from a key, as at the start.
            key: the key of the step.

        Returns:
            The next values, of the same shape.
        """


@record
class Still(Motion):
    """Arms that stay as they are.

    Example:
        >>> Still().move(jnp.ones(2), lambda key: jnp.zeros(2), jax.random.key(0))
        Array([1., 1.], dtype=float32)
    """

    def move(self, values: Array, draw: Callable[[Array], Array], key: Array) -> Array:
        """The same values."""
        return values


@record
class Drifts(Motion):
    """A random walk: every number moves by N(0, var) in every step.

    Chances are cut off at 0 and 1 by the environment.

    Arguments:
        var: the variance of a step, at least 0.

    Raises:
        CredoError: `var` is below 0 or not finite.

    Example:
        >>> walk = Drifts(0.04).move(jnp.zeros(10_000), None, jax.random.key(0))
        >>> bool(abs(walk.var() - 0.04) < 0.002)
        True
    """

    var: ArrayLike

    def __post_init__(self) -> None:
        require_nonnegative("var", self.var)

    def move(self, values: Array, draw: Callable[[Array], Array], key: Array) -> Array:
        """The values and a step of the walk."""
        return add_noise(key, values, jnp.sqrt(as_like(self.var, values)))


@record
class Jumps(Motion):
    """Piecewise constant arms: in every step, an arm is drawn again with probability `hazard`.

    Arguments:
        hazard: the probability of a jump in a step, from 0 to 1.
        together: whether all arms jump at once, instead of each at times of its own.

    Raises:
        CredoError: `hazard` is not a probability.

    Example:
        >>> Jumps(1.0).move(jnp.ones(2), lambda key: jnp.zeros(2), jax.random.key(0))
        Array([0., 0.], dtype=float32)
    """

    hazard: ArrayLike
    together: bool = static_field(default=False)

    def __post_init__(self) -> None:
        require_interval("hazard", self.hazard, 0.0, 1.0)

    def move(self, values: Array, draw: Callable[[Array], Array], key: Array) -> Array:
        """The values, or new ones if there is a jump."""
        when, what = jax.random.split(key)
        count = 1 if self.together else values.shape[0]
        jump = jax.random.bernoulli(when, as_like(self.hazard, values), (count,))
        return jnp.where(jump.reshape(count, *[1] * (values.ndim - 1)), draw(what), values)


def require_motion(motion: object) -> None:
    """Refuse what is no motion, as a `CredoError`."""
    if not isinstance(motion, Motion):
        raise CredoError(
            f"motion must be Still(), Drifts(var), Jumps(hazard) or another Motion; got {motion!r}.",
            field="motion",
        )
