"""Work that a program does in one way on a CPU, and in another on an accelerator; chosen when it is traced.

A CPU takes small blocks one after another, and a branch costs it nothing. On an accelerator a branch waits
until its predicate has come to the host, and whatever stands in a sequence starts one small kernel each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from credo.core.fingerprints import option

__all__ = ["accelerated", "in_branch", "over_rows"]

T = TypeVar("T")


def accelerated() -> bool:
    """Whether what is traced now runs on an accelerator, as far as JAX's default device says."""
    device = option("jax_default_device")
    named = device if isinstance(device, str) else getattr(device, "platform", None)
    platform: str = named or jax.default_backend()
    return platform != "cpu"


def in_branch(function: Callable[..., T], *arguments: Any, otherwise: Callable[..., T] | None = None) -> T:
    """The value of a function, on a CPU by a branch that is always taken, whose predicate the compiler cannot
    see: it then lays the function out in memory in one way everywhere.

    `otherwise` is the branch that is never taken, zeros if nothing is said.
    """
    if accelerated():
        return function(*arguments)
    traced = jax.jit(function)  # once, for its shapes and for the branch

    def blank(*arguments: Any) -> T:
        shapes = jax.eval_shape(traced, *arguments)
        zeros: T = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), shapes)
        return zeros

    always = jax.lax.optimization_barrier(jnp.asarray(True))
    value: T = jax.lax.cond(always, traced, otherwise or blank, *arguments)
    return value


def over_rows(function: Callable[..., Any], *rows: Any) -> Any:
    """The results of a function for every row of its arguments, as those of `jax.vmap`.

    On a CPU the rows are taken one after another: where each is large, both ways take as long there, and this
    one needs the memory of one row.
    """
    if accelerated():
        return jax.vmap(function)(*rows)
    return jax.lax.map(lambda row: function(*row), rows)
