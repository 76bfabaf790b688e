"""Random keys, always explicit.

The key of a step folds in the number of the step, so that a resumed stream continues with the same draws.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.errors import LARGEST_INTEGER, CredoError, shown
from credo.core.forks import require_threads
from credo.core.types import Key

__all__ = ["as_key", "fold_in", "require_key", "split_in_two", "step_key"]


def as_key(key: Key) -> jax.Array:
    """A typed JAX key from a key (new or old style) or from an integer seed."""
    require_threads()
    if isinstance(key, int):
        if abs(key) > LARGEST_INTEGER:
            raise _no_key(key)
        return jax.random.key(key)
    dtype = getattr(key, "dtype", None)
    if dtype is None:
        raise _no_key(key)
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return key
    if not jnp.issubdtype(dtype, jnp.integer):
        raise _no_key(key)
    # inside a compiled verb an integer is a traced scalar; the data of an old-style key is a vector
    return jax.random.key(key) if key.ndim == 0 else jax.random.wrap_key_data(key)


def _no_key(key: object) -> CredoError:
    return CredoError(
        f"key must be a key of JAX, or a seed: a whole number of at most 64 bits; got {shown(key)}.",
        field="key",
    )


def require_key(key: Key | None, what: str) -> jax.Array:
    """The key as a typed JAX key, or an error that says what needs one."""
    if key is None:
        raise CredoError(f"{what} draws random numbers: pass key=jax.random.key(seed).")
    return as_key(key)


def step_key(key: Key | None, t: jax.Array) -> jax.Array | None:
    """The key of step t, or None if no key was given."""
    if key is None:
        return None
    return jax.random.fold_in(as_key(key), t)


_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)


def fold_in(key: jax.Array, number: int | jax.Array) -> jax.Array:
    """`jax.random.fold_in` with its bits, for a program that runs once: one kernel, where a loop over the
    rounds of the hash takes twelve.
    """
    if not _is_threefry(key):
        return jax.random.fold_in(key, number)
    return _hashed(key, jnp.asarray(number).astype(jnp.uint32))


def split_in_two(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`jax.random.split(key)` in the same way."""
    if not (_is_threefry(key) and jax.config.values["jax_threefry_partitionable"]):
        first, second = jax.random.split(key)
        return first, second
    return _hashed(key, jnp.uint32(0)), _hashed(key, jnp.uint32(1))


def _is_threefry(key: jax.Array) -> bool:
    return key.ndim == 0 and str(jax.random.key_impl(key)) == "threefry2x32"


def _hashed(key: jax.Array, number: jax.Array) -> jax.Array:
    """The key of the Threefry hash of the words 0 and `number` (Salmon et al. 2011, SC), of 20 rounds."""
    data: Any = jax.random.key_data(key)
    words = data[0], data[1], data[0] ^ data[1] ^ jnp.uint32(0x1BD11BDA)
    left = words[0]
    right = number + words[1]
    for block in range(5):
        for turn in _ROTATIONS[block % 2]:
            left = left + right
            right = left ^ ((right << jnp.uint32(turn)) | (right >> jnp.uint32(32 - turn)))
        left = left + words[(block + 1) % 3]
        right = right + words[(block + 2) % 3] + jnp.uint32(block + 1)
    made: jax.Array = jax.random.wrap_key_data(jnp.stack([left, right]), impl=jax.random.key_impl(key))
    return made
