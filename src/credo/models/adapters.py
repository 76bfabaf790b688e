"""Networks of other libraries as `(apply, params)`. The libraries are imported only when they are used."""

from __future__ import annotations

from typing import Protocol

import jax

from credo.core.records import record, static_field
from credo.core.types import Array, PyTree
from credo.models.model import Apply

__all__ = ["from_equinox", "from_flax"]


@record
class _Equinox:
    structure: PyTree = static_field()
    params: PyTree = static_field(default=None)

    def __call__(self, params: PyTree, x: PyTree) -> Array:
        import equinox as eqx  # pyright: ignore[reportMissingImports]  # an extra of the user's

        outputs: Array = eqx.combine(params, self.structure)(x)
        return outputs


def from_equinox(module: PyTree) -> tuple[Apply, PyTree]:
    """Split an equinox module into `apply(params, x)` and its parameters (its floating-point arrays).

    Arguments:
        module: a callable equinox module of one row, without random layers such as dropout.

    Returns:
        A function for `Model`, and the parameter tree for `init`.

    Example:
        >>> import equinox, jax  # doctest: +SKIP
        >>> network = equinox.nn.MLP(3, 1, 20, 1, key=jax.random.key(0))  # doctest: +SKIP
        >>> apply, params = from_equinox(network)  # doctest: +SKIP
        >>> learner = credo.bong(credo.Model(apply, credo.Normal(0.1)), credo.Diagonal())  # doctest: +SKIP
        >>> belief = learner.init(params, var=0.1)  # doctest: +SKIP
    """
    import equinox as eqx  # pyright: ignore[reportMissingImports]  # an extra of the user's

    params, structure = eqx.partition(module, eqx.is_inexact_array)
    return _Equinox(structure, jax.tree.structure(params)), params


class FlaxModule(Protocol):
    """The part of a flax module that `from_flax` uses."""

    def apply(self, variables: PyTree, x: PyTree, /) -> Array:
        """The outputs for one row."""
        ...


@record
class _Flax:
    module: FlaxModule = static_field()

    def __call__(self, params: PyTree, x: PyTree) -> Array:
        return self.module.apply({"params": params}, x)


def from_flax(module: FlaxModule, variables: PyTree) -> tuple[Apply, PyTree]:
    """Make `apply(params, x)` and the parameters from a flax (linen) module and its initial variables.

    Arguments:
        module: a flax linen module of one row, without mutable collections such as batch statistics.
        variables: what `module.init(key, x)` returned.

    Returns:
        A function for `Model`, and the parameter tree for `init`.

    Example:
        >>> import flax.linen as nn, jax, jax.numpy as jnp  # doctest: +SKIP
        >>> module = nn.Dense(1)  # doctest: +SKIP
        >>> variables = module.init(jax.random.key(0), jnp.ones(3))  # doctest: +SKIP
        >>> apply, params = from_flax(module, variables)  # doctest: +SKIP
        >>> learner = credo.bong(credo.Model(apply, credo.Normal(0.1)), credo.Diagonal())  # doctest: +SKIP
        >>> belief = learner.init(params, var=0.1)  # doctest: +SKIP
    """
    return _Flax(module), variables["params"]
