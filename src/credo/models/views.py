"""What a model sees of its inputs."""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array, ArrayLike, PyTree
from credo.models.model import Apply, as_apply

__all__ = ["Clipped"]


@record
class Clipped:
    """A network that sees its inputs clipped: eta = network(params, min(max(x, -limit), limit)).

    A standardised column now and then holds a value of 8 or more. A linear relation needs it as it is, while
    a network with a column that hardly ever moves would be thrown off by it. The limit is a leaf, so members
    of a bank that differ in it share one program.

    Attributes:
        network: `apply(params, x)`.
        limit: the largest size of an input, above 0: a number, or one an input.

    Example:
        >>> import credo
        >>> model = credo.Model(Clipped(credo.Linear(1), 3.0), credo.Normal(0.1))
        >>> float(model.apply([{"w": jnp.ones((1, 1)), "b": jnp.zeros(1)}], jnp.full(1, 5.0))[0])
        3.0
    """

    network: Apply
    limit: ArrayLike = 3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "network", as_apply(self.network))

    def see(self, x: PyTree) -> Array:
        """One row x, clipped."""
        row = jnp.asarray(x)
        limit = jnp.asarray(self.limit, row.dtype)
        return jnp.clip(row, -limit, limit)

    def __call__(self, params: PyTree, x: PyTree) -> Array:
        """The outputs for one row x."""
        return self.network(params, self.see(x))
