"""The run of `bone-moons` and `bone-moons-long`: the common table, and the pictures of one stream."""

from __future__ import annotations

import dataclasses
import functools
from typing import cast

import jax

from credo_papers.bone.bone_moons_pictures import animate, draw_stream, draw_surfaces, sides_of
from credo_papers.bone.bone_moons_surfaces import surfaces
from credo_papers.bone.bone_plan import Plan
from credo_papers.bone.bone_table import run_plan
from credo_papers.bone.bone_world import make_streams
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Values
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.purposes import SCORED

__all__ = ["run_moons"]

SHOWN = {
    "C-Static": "constant parameters",
    "C-OU": "a pull to the prior",
    "RL[10]-PR": "ten run lengths",
}
"""The methods whose surfaces are drawn, where they were run; the first is animated."""


def run_moons(plan: Plan, size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Tune and score every method, and learn the first scored stream once more to draw what is believed.

    Arguments:
        plan: the plan of the experiment.
        size, seed, progress, cells: as for every experiment.
    """
    outcome = run_plan(plan, size, seed, portion(progress, 0.0, 0.95), cells)
    stream = jax.tree.map(lambda leaf: leaf[0], make_streams(plan.draw, seed, SCORED, 1))
    sides = sides_of(stream.x)
    arrays: Arrays = {"x": stream.x, "y": stream.y, "surface_x": sides.first, "surface_y": sides.second}
    chosen = cast("dict[str, dict[str, Values]]", outcome.settings["chosen"])
    methods = {method.label: method for method in plan.methods if method.label in chosen}
    shown = {label: words for label, words in SHOWN.items() if label in methods}
    for number, label in enumerate(shown):
        progress(0.95 + 0.05 * number / len(shown), f"surfaces, {label}")
        values = chosen[label]["accuracy"]
        arrays[f"surface {label}"] = surfaces(methods[label].program, values, stream, sides)
        arrays[f"hits {label}"] = outcome.arrays[f"hits {label}"][0]
    angles = cast("list[float]", plan.world["angles in degrees"])
    first, words = next(iter(shown.items()))
    return dataclasses.replace(
        outcome,
        arrays={**outcome.arrays, **arrays},
        figures={
            "stream": functools.partial(draw_stream, arrays, angles),
            "surfaces": functools.partial(draw_surfaces, arrays, shown, angles),
        },
        animation=functools.partial(animate, arrays, first, words, angles),
    )
