"""Programs that run so seldom that compiling them quickly is worth more than making them fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from credo.core.kept_programs import compile_in_haste

__all__ = ["hasty"]

T = TypeVar("T")


def hasty(function: Callable[..., T]) -> Callable[..., T]:
    """Return a function like `jax.jit(function)`, whose programs are compiled in haste.

    Arguments:
        function: takes trees of arrays.

    Example:
        >>> hasty(lambda x: x + 1)(jnp.ones(2)).tolist()
        [2.0, 2.0]
    """
    programs: dict[object, Callable[..., T]] = {}

    def run(*arguments: Any) -> T:
        leaves, structure = jax.tree.flatten(arguments)
        kinds = (structure, tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves))
        if kinds not in programs:
            programs[kinds] = compile_in_haste(jax.jit(function).lower(*arguments))
        return programs[kinds](*arguments)

    return run
