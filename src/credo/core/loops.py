"""Many tasks at once, in the way that suits the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from credo.core.types import PyTree

__all__ = ["each"]


def each(function: Callable[..., Any], *rows: PyTree) -> Any:
    """The results of a function for every row of its arguments, as those of `jax.vmap`.

    On a CPU the rows are taken one after another: maps of whole particle sets are large enough to take as
    long in either way there, and so need the memory of one.
    """
    if jax.default_backend() == "cpu":
        return jax.lax.map(lambda row: function(*row), rows)
    return jax.vmap(function)(*rows)
