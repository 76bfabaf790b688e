"""Networks of other libraries as `(apply, params)`; the libraries are imported only when used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from credo.core.records import record, static_field

__all__ = ["from_equinox", "from_flax"]


@record
class _Equinox:
    structure: Any = static_field()

    def __call__(self, params: Any, x: Any) -> jax.Array:
        import equinox as eqx

        return eqx.combine(params, self.structure)(x)


def from_equinox(module: Any) -> tuple[Callable, Any]:
    """Split an equinox module into `apply(params, x)` and its parameters (its floating-point arrays).

    Arguments:
        module: a callable equinox module of one row, without random layers such as dropout.

    Returns:
        A function for `Model`, and the parameter tree for `init`.
    """
    import equinox as eqx

    params, structure = eqx.partition(module, eqx.is_inexact_array)
    return _Equinox(structure), params


@record
class _Flax:
    module: Any = static_field()

    def __call__(self, params: Any, x: Any) -> jax.Array:
        return self.module.apply({"params": params}, x)


def from_flax(module: Any, variables: Any) -> tuple[Callable, Any]:
    """Make `apply(params, x)` and the parameters from a flax (linen) module and its initial variables.

    Arguments:
        module: a flax linen module of one row, without mutable collections such as batch statistics.
        variables: what `module.init(key, x)` returned.

    Returns:
        A function for `Model`, and the parameter tree for `init`.
    """
    return _Flax(module), variables["params"]
