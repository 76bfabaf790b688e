"""The types in signatures, under the names that readers of JAX know."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
from jax.typing import ArrayLike, DTypeLike

__all__ = ["Array", "ArrayLike", "DTypeLike", "Key", "PyTree"]

Array: TypeAlias = jax.Array
"""A JAX array. Docstrings give its shape."""

Key: TypeAlias = jax.Array | int
"""A JAX key, or the integer seed of one."""

PyTree: TypeAlias = Any
"""A tree of arrays (parameters, inputs, observations), whose structure the user chooses."""
