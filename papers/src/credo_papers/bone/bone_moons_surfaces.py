"""Decision surfaces of the learners of `bone-moons` and `bone-moons-long`, as the moons are turned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array
from credo_papers.bone.bone_learner import make
from credo_papers.bone.bone_moons_learner import inner
from credo_papers.bone.bone_plan import BoneProgram
from credo_papers.bone.bone_world import Streams
from credo_papers.engine.any_learner import AnyBelief

__all__ = ["EVERY", "Sides", "surfaces"]

EVERY = 10
"""The number of labels between two surfaces."""


class Sides(NamedTuple):
    """The sides of the grid on which surfaces are drawn: x_1 (W,) and x_2 (H,)."""

    first: np.ndarray
    second: np.ndarray


def surfaces(program: BoneProgram, values: Mapping[str, float], stream: Streams, sides: Sides) -> np.ndarray:
    """Return the probability of label 1 on a grid after every tenth label of one stream (T / 10, H, W).

    Arguments:
        program, values: the method; see `bone_learner.make`.
        stream: one stream.
        sides: of the grid.
    """
    points = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2).astype(np.float32)

    @jax.jit
    def learn(values: Mapping[str, Array], stream: Streams) -> Array:
        learner = make(inner(program, values), program, values)
        start = jax.tree.map(lambda leaf: values.get("scale", 1.0) * leaf, stream.start)

        def body(belief: AnyBelief, row: tuple[Array, Array]) -> tuple[AnyBelief, None]:
            return learner.step(belief, *row)[0], None

        def block(belief: AnyBelief, rows: tuple[Array, Array]) -> tuple[AnyBelief, Array]:
            belief, _ = jax.lax.scan(body, belief, rows)
            ahead = learner.predict(belief)

            def chance(point: Array) -> Array:
                return jnp.reshape(learner.forecast(ahead, point).mean, ())

            return belief, jax.vmap(chance)(jnp.asarray(points))

        blocks = (jnp.reshape(stream.x, (-1, EVERY, 2)), jnp.reshape(stream.y, (-1, EVERY)))
        prior = learner.init(start, var=values.get("var", 1.0))
        found: Array = jax.lax.scan(block, prior, blocks)[1]
        return found

    chosen = {name: jnp.float32(value) for name, value in values.items()}
    return np.asarray(learn(chosen, stream)).reshape(-1, len(sides.second), len(sides.first))
