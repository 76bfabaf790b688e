"""One kernel for many small operations.

XLA runs a program on a CPU as a list of kernels, and to start one costs as much as the arithmetic of hundreds
of numbers. The bookkeeping of a few hypotheses is dozens of operations on a few numbers each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
from jax.experimental.xla_metadata import set_xla_metadata

__all__ = ["one_kernel"]

T = TypeVar("T")


def one_kernel(function: Callable[[], T]) -> T:
    """The result of a function that works on a few numbers, which a CPU computes in one kernel.

    The values are the same as those of `function()`. Sorting, linear algebra, random numbers and code of the
    user do not belong inside: a kernel has no libraries to call.

    Arguments:
        function: takes no arguments, and may use arrays from around it; traceable.

    Returns:
        What it returns: a tree of arrays.

    Example:
        >>> import jax.numpy as jnp
        >>> logs = jnp.log(jnp.array([1.0, 3.0]))
        >>> float(one_kernel(lambda: jnp.exp(logs - jax.nn.logsumexp(logs))[1]))
        0.75
    """
    if jax.default_backend() != "cpu":
        return function()

    def inside() -> T:
        # What is called within is a part of the kernel, not a kernel of its own.
        with set_xla_metadata(inlineable=None, xla_cpu_small_call=None):
            return function()

    with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
        result: T = jax.jit(inside)()
    return result
