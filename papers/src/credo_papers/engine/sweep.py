"""A grid of settings times many streams: the streams of a setting are vmapped in one compiled program.

    results = sweep("name", settings, build, streams, shared, context={}, cells=cells, progress=progress)

`build(program)` makes a function of one stream, `one(values, stream, shared) -> {name: array}`. It is vmapped
over the streams and compiled once for all settings that share their `program`. At most `chunk` streams run
in one call, so memory is bounded. Each piece, a setting times a chunk of streams, is a cell that is kept
once it is done; with a crew, pieces are computed side by side.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError, require_integer
from credo.core.types import Array
from credo.core.verbs import verb
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.plain_data import Arrays, Json, Values
from credo_papers.engine.portions import Progress, silent

__all__ = ["Build", "One", "Setting", "sweep"]

P = TypeVar("P", bound=Mapping[str, object])
"""The kind of program: a mapping of plain JSON values."""

S = TypeVar("S")
"""The kind of stream."""

C = TypeVar("C")
"""The kind of what all streams share."""

One: TypeAlias = Callable[[Mapping[str, Array], S, C], Mapping[str, Array]]
"""`one(values, stream, shared)` is traced; it returns the arrays of one stream under one setting."""

Build: TypeAlias = Callable[[P], One[S, C]]
"""`build(program)` makes the function of one stream, for all settings that have this program. Write it as a
function of a module whose result depends on `program` alone, since the result is kept."""


@dataclass(frozen=True)
class Setting(Generic[P]):
    """One setting of a grid, in plain JSON values.

    Arguments:
        name: by which its results are looked up; no two settings of a sweep share it.
        program: what the compiled program depends on: names, ranks, numbers of iterations.
        values: numbers that are arguments of the program: variances, learning rates. Settings that differ
            only in these are compiled once.
    """

    name: str
    program: P
    values: Values = field(default_factory=dict)


def sweep(  # noqa: PLR0913 - settings, each by its name
    experiment: str,
    settings: Sequence[Setting[P]],
    build: Build[P, S, C],
    streams: S,
    shared: C,
    *,
    context: Mapping[str, Json],
    chunk: int = 20,
    cells: Cells | None = None,
    progress: Progress = silent,
) -> dict[str, Arrays]:
    """Run every setting on every stream.

    Arguments:
        experiment: its name, with which the names of the files begin.
        settings: the grid.
        build: see `Build`.
        streams: a tree of arrays with a leading axis of streams: data, initial parameters, keys.
        shared: a tree of arrays that all streams share, such as images and test rows, or None.
        context: everything else that results depend on, in plain JSON values: the data set, the seed, sizes,
            and a `version` that changes when the code does.
        chunk: how many streams run side by side at most.
        cells: where finished pieces are kept and looked for; None keeps none.
        progress: is called before each piece and at the end.

    Returns:
        For each setting, by name, the arrays of `one` with a leading axis of streams.

    Raises:
        CredoError: two settings share a name, or `streams` has no common leading axis.

    Example:
        >>> def build(program):
        ...     return lambda values, x, shared: {"value": values["scale"] * x ** program["power"]}
        >>> grid = [Setting("cubes", {"power": 3}, {"scale": 2.0})]
        >>> sweep("doc", grid, build, np.arange(3.0), None, context={})["cubes"]["value"].tolist()
        [0.0, 2.0, 16.0]
    """
    cells = Cells() if cells is None else cells
    require_integer("chunk", chunk, 1)
    names = [setting.name for setting in settings]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise CredoError(f"settings must have different names; got {sorted(repeated)[0]!r} more than once.")
    count = _count(streams)
    width = math.ceil(count / math.ceil(count / chunk))
    pieces = math.ceil(count / width)

    def piece(number: int) -> Arrays:
        i, k = divmod(number, pieces)
        setting = settings[i]
        progress(number / (len(settings) * pieces), _label(setting.name, k, pieces))
        first = k * width
        last = min((k + 1) * width, count)
        description = {
            "given": dict(context),
            "program": dict(setting.program),
            "values": dict(setting.values),
            "seeds": [first, last, count],
        }
        rows = np.minimum(np.arange(first, first + width), count - 1)
        chunk = jax.tree.map(lambda leaf: leaf[rows], streams)
        compute = functools.partial(_piece, setting, build, chunk, shared, last - first)
        return cells.get(f"{experiment}-{setting.name}", description, compute)

    done = cells.each(piece, range(len(settings) * pieces))
    progress(1.0, "done")
    return {
        setting.name: {
            key: np.concatenate([part[key] for part in done[i * pieces : (i + 1) * pieces]])
            for key in done[i * pieces]
        }
        for i, setting in enumerate(settings)
    }


def _piece(setting: Setting[P], build: Build[P, S, C], chunk: S, shared: C, count: int) -> Arrays:
    """The arrays of a setting for the first `count` of a chunk of streams."""
    program = _compiled(build, json.dumps(dict(setting.program), sort_keys=True))
    values = {key: jnp.asarray(value, float) for key, value in setting.values.items()}
    return {key: np.asarray(leaf)[:count] for key, leaf in program(values, chunk, shared).items()}


@functools.lru_cache(maxsize=64)
def _compiled(build: Build[P, S, C], program: str) -> One[S, C]:
    """The function of many streams; it is kept, so that a second sweep compiles it for new shapes only."""
    return verb(jax.vmap(build(json.loads(program)), in_axes=(None, 0, None)))


def _label(name: str, k: int, pieces: int) -> str:
    if pieces == 1:
        return name
    return f"{name} ({k + 1} of {pieces})"


def _count(streams: object) -> int:
    lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(streams)}
    if len(lengths) != 1 or lengths == {()} or lengths == {(0,)}:
        raise CredoError(f"streams must have one common leading axis, at least 1; got {sorted(lengths)}.")
    return int(lengths.pop()[0])
