"""Programs that are compiled in haste."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo_papers.engine.hasty import hasty


def test_a_hasty_function_has_a_program_for_each_shape_and_traces_no_shape_twice() -> None:
    traced = []

    def doubled(tree: dict[str, jax.Array]) -> jax.Array:
        traced.append(tree["x"].shape)
        return 2.0 * tree["x"] + tree["y"]

    quick = hasty(doubled)
    for size in (2, 3, 2):
        x = jnp.arange(float(size))
        np.testing.assert_array_equal(quick({"x": x, "y": x}), 3.0 * np.arange(size))
    assert traced == [(2,), (3,)]
