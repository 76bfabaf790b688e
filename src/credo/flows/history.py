"""The course of a training, and its file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import FormatError
from credo.core.records import record, replace
from credo.core.types import PyTree
from credo.flows.storage import fill, read_tree, write_tree

__all__ = ["History", "digest", "read_history", "read_training", "write_training"]

T = TypeVar("T")
"""The type of the state of a training."""


@record
class History:
    """What happened in a training.

    Attributes:
        loss, floor: the mean loss over the batch of each step, and the least that it can be in expectation
            (NaN where that is not known).
        checks: for each validation the step, and the scores stage by stage (see `validate`).
        retreats: where training went back: the step, and the loss from which it went.
    """

    loss: tuple[float, ...] = ()
    floor: tuple[float, ...] = ()
    checks: tuple[dict[str, Any], ...] = ()
    retreats: tuple[tuple[int, float], ...] = ()

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return len(self.loss)

    @property
    def last_loss(self) -> float | None:
        """The mean loss of the latest 100 steps, or None before there are any."""
        return float(np.mean(self.loss[-100:])) if self.loss else None

    def add(self, step: int, losses: np.ndarray, floors: np.ndarray) -> History:
        """With the steps of a chunk, of which `step` is the last."""
        return replace(
            self,
            loss=self.loss + tuple(float(loss) for loss in losses),
            floor=self.floor + tuple(float(floor) for floor in floors),
        )

    def validate(self, step: int, scores: Mapping[str, np.ndarray]) -> History:
        """With the scores of a validation."""
        row = {"step": step, **{name: [float(v) for v in column] for name, column in scores.items()}}
        return replace(self, checks=(*self.checks, row))

    def retreat(self, step: int, loss: float) -> History:
        """With a return to this step."""
        return replace(self, retreats=(*self.retreats, (step, loss)))


def write_training(path: Path, header: Mapping[str, object], state: Any, history: History) -> None:
    """Write where a training stands."""
    course = {
        "loss": [loss.hex() for loss in history.loss],
        "floor": [floor.hex() for floor in history.floor],
        "checks": history.checks,
        "retreats": history.retreats,
    }
    write_tree(path, "training", {**header, "history": course}, state)


def read_training(path: Path, header: Mapping[str, object], like: T) -> tuple[T, History]:
    """Where a training of the settings in `header` stands: a state of the structure of `like`."""
    found, tensors = read_tree(path, "training")
    for name, value in header.items():
        if found.get(name) != value:
            raise FormatError(
                f"{path} is a training with another {name}: use another folder, or the same {name}; the file "
                f"has {found.get(name)!r}."
            )
    history = _course(found)
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), like)
    return fill(path, shapes, tensors), history


def read_history(path: Path) -> History:
    """The course of the training in a file."""
    return _course(read_tree(path, "training")[0])


def _course(header: Mapping[str, Any]) -> History:
    course = header["history"]
    return History(
        tuple(float.fromhex(loss) for loss in course["loss"]),
        tuple(float.fromhex(floor) for floor in course["floor"]),
        tuple(course["checks"]),
        tuple((int(step), float(loss)) for step, loss in course["retreats"]),
    )


def digest(tree: PyTree) -> str:
    """A short name for the numbers in a tree, of which the text shows the shapes only."""
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        typed = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        total.update(np.asarray(jax.random.key_data(leaf) if typed else leaf).tobytes())
    return total.hexdigest()[:16]
