"""Keys that are made in one kernel have the bits of JAX's own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.core.keys import fold_in, split_in_two


@pytest.mark.table
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("seed", [0, 1, 12345, 2**31 - 1])
def test_the_bits_are_those_of_jax(impl: str, seed: int) -> None:
    key = jax.random.key(seed, impl=impl)
    for number in (0, 1, 2**31 - 1, 2**32 - 1):
        for one in (jnp.uint32(number), number):
            if one is number and number >= 2**31:
                continue
            expected = jax.random.key_data(jax.random.fold_in(key, one))
            np.testing.assert_array_equal(jax.random.key_data(fold_in(key, one)), expected)
            compiled = jax.jit(lambda key, one: jax.random.key_data(fold_in(key, one)))(key, one)
            np.testing.assert_array_equal(compiled, expected)
    for partitionable in (True, False):
        with jax.threefry_partitionable(partitionable):
            for own, theirs in zip(split_in_two(key), jax.random.split(key), strict=True):
                np.testing.assert_array_equal(jax.random.key_data(own), jax.random.key_data(theirs))


def test_a_key_takes_one_kernel() -> None:
    key, number = jax.random.key_data(jax.random.key(3)), jnp.uint32(7)

    def run(data: jax.Array, number: jax.Array) -> jax.Array:
        return jax.random.key_data(fold_in(fold_in(jax.random.wrap_key_data(data), 1), number))

    text = jax.jit(run).lower(key, number).compile().as_text() or ""
    entry = text[text.index("ENTRY") :]
    assert entry.count(" fusion(") <= 3 and " while(" not in text and " call(" not in text
