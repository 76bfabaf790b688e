"""Verbs: public functions that are compiled once per structure of their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

__all__ = ["verb"]


def verb(function: Callable | None = None, *, static: tuple[str, ...] = ()) -> Any:
    """Compile a public verb once per structure, with matrix products in full precision on every backend."""
    if function is None:
        return functools.partial(verb, static=static)

    @functools.wraps(function)
    def precise(*args: Any, **kwargs: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return jax.jit(precise, static_argnames=static)
