"""The compiled pass that forecasts encoded rows and draws from each forecast."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array
from credo.core.verbs import verb
from credo.live.packed import Form
from credo.streams.first_rows import each_row
from credo.streams.words import Parts

__all__ = ["draw_rows"]


@verb(static=("form",), kept=True)
def draw_rows(
    form: Form, setting: Parts, state: Parts, xs: np.ndarray, count: np.int32, key: Array
) -> tuple[Array, Array, Array]:
    """Forecast the first `count` of N rows of numbers: mean (N,), sd (N,), and one draw of each (N,)."""
    learner, belief = form.open(setting, state)

    def one(row: Array) -> tuple[Array, Array, Array]:
        predictive = learner.forecast(belief, jnp.asarray(xs)[row])
        return predictive.mean, predictive.sd, predictive.sample(jax.random.fold_in(key, row))

    return each_row(one, len(xs), count)
