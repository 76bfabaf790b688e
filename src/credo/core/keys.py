"""Random keys, always explicit.

The key of a step folds in the number of the step, so that a resumed stream continues with the same draws.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.forks import require_threads
from credo.core.types import Key

__all__ = ["as_key", "require_key", "step_key"]


def as_key(key: Key) -> jax.Array:
    """A typed JAX key from a key (new or old style) or from an integer seed."""
    require_threads()
    if isinstance(key, int):
        return jax.random.key(key)
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    # inside a compiled verb an integer is a traced scalar; the data of an old-style key is a vector
    return jax.random.key(key) if key.ndim == 0 else jax.random.wrap_key_data(key)


def require_key(key: Key | None, what: str) -> jax.Array:
    """The key as a typed JAX key, or an error that says what needs one."""
    if key is None:
        raise CredoError(f"{what} draws random numbers: pass key=jax.random.key(seed).")
    return as_key(key)


def step_key(key: Key | None, t: jax.Array) -> jax.Array | None:
    """The key of step t, or None where no key was given."""
    return None if key is None else jax.random.fold_in(as_key(key), t)
