"""Whether a function is affine in its parameters, also through functions that are compiled on their own."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

from credo.core.types import Array
from credo.models.model import is_affine

FUNCTIONS: dict[str, tuple[Callable[[Array], Array], bool]] = {
    "a product and a sum": (lambda w: 2.0 * w + 1.0, True),
    "compiled on its own": (jax.jit(lambda w: w[:2] @ jnp.ones((2, 3)) - 1.0), True),
    "compiled within another": (lambda w: jax.jit(lambda v: 3.0 * v)(w + 1.0), True),
    "a square": (lambda w: w * w, False),
    "a tanh that is compiled on its own": (jax.jit(jnp.tanh), False),
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_function_is_affine_or_not(name: str) -> None:
    function, affine = FUNCTIONS[name]
    assert is_affine(function, jnp.arange(3.0)) == affine
