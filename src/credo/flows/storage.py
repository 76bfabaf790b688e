"""Files of operators, and of their training and its course, each a `credo.core.archive`.

The arrays of a tree are stored under the names of their places. Reading fills a tree of the same structure,
which the reader builds from the header, so that a file of another architecture is recognised and refused.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from credo.core import archive
from credo.core.errors import CredoError, DataError, FormatError
from credo.core.extensions import missing
from credo.core.forms import require_bounded, require_sizes
from credo.core.records import find_record, record, record_name, replace
from credo.core.types import PyTree
from credo.flows.operator import FlowOperator

__all__ = [
    "FORMAT",
    "History",
    "digest",
    "fill",
    "load_operator",
    "operator_file",
    "operator_names",
    "read_history",
    "read_training",
    "read_tree",
    "save_operator",
    "write_training",
    "write_tree",
]

FORMAT = 1
"""The number of the file format."""

MARK = "credo-flow"
"""The mark of these files."""

SHIPPED = Path(__file__).parent / "operators"
"""The folder of the operators that are shipped, each beside the settings of its training."""

T = TypeVar("T")
"""The type of a tree."""


def write_tree(path: Path, kind: str, header: Mapping[str, object], tree: PyTree) -> None:
    """Write a tree of arrays with a header of JSON data, completely or not at all."""
    content = {"format": FORMAT, "kind": kind, **header}
    archive.write(path, MARK, content, {place: np.asarray(leaf) for place, leaf in _leaves(tree)})


def read_tree(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file of this kind: "operator" or "training"."""
    if not path.is_file():
        known = f"; those that credo ships are {', '.join(operator_names())}" if kind == "operator" else ""
        raise DataError(f"no {kind} at {path}{known}.")
    header, tensors = archive.read(path, MARK, FORMAT, kind)
    if header.get("kind") != kind:
        raise FormatError(
            f"{path} is no {kind} that credo saved, but a file of the kind {header.get('kind')!r}."
        )
    return header, tensors


def fill(path: Path, like: T, tensors: Mapping[str, np.ndarray]) -> T:
    """The tree `like` with the arrays of a file in its places, which must have the same shapes and dtypes."""
    places = _leaves(like)
    values = []
    for place, array in tensors.items():
        require_bounded(array, place)
    for place, leaf in places:
        if place not in tensors:
            raise FormatError(f"{path} is of another architecture: it has no array {place}.")
        array = tensors[place]
        if array.shape != tuple(leaf.shape) or array.dtype != leaf.dtype:
            raise FormatError(
                f"{path} is of another architecture: {place} must be {leaf.dtype}{list(leaf.shape)}; the "
                f"file has {array.dtype}{list(array.shape)}."
            )
        values.append(jnp.asarray(array))
    spare = sorted(set(tensors) - {place for place, _ in places})
    if spare:
        raise FormatError(f"{path} is of another architecture: it has an array {spare[0]} too many.")
    tree: T = jax.tree.unflatten(jax.tree.structure(like), values)
    return tree


def save_operator(
    path: str | os.PathLike[str], operator: FlowOperator, *, notes: Mapping[str, object] | None = None
) -> Path:
    """Write a trained operator to one file.

    Arguments:
        path: the file, whose name usually ends in `.flow`.
        operator: the operator, with its parameters.
        notes: JSON data to keep beside it, such as the settings of its training.

    Returns:
        The path.

    Raises:
        CredoError: the operator has no parameters.
        DataError: the file cannot be written.

    Example:
        >>> import credo, pathlib, tempfile
        >>> operator = credo.flows.Operator(dim=2, width=2, hidden=4).begin(key=0)
        >>> path = save_operator(pathlib.Path(tempfile.mkdtemp()) / "two.flow", operator)
        >>> load_operator(path, dim=2) == operator
        True
    """
    if operator.params is None:
        raise CredoError("operator must be trained, or begun, before it is saved.", field="operator")
    header = {"operator": description(operator), "notes": dict(notes or {})}
    single = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), operator.params)
    write_tree(Path(path), "operator", header, single)
    return Path(path)


def operator_names() -> tuple[str, ...]:
    """The names of the trained operators that are shipped with credo.

    Example:
        >>> "linear-10" in operator_names()
        True
    """
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.flow")))


def operator_file(name: str | os.PathLike[str]) -> Path:
    """The file of an operator: that of the path, else the one that is shipped under this name."""
    place = Path(name)
    if not place.exists() and str(name) in operator_names():
        return SHIPPED / f"{name}.flow"
    return place


def load_operator(path: str | os.PathLike[str], dim: int | None = None) -> FlowOperator:
    """Read an operator back.

    Arguments:
        path: a file written by `save_operator` or by training, or one of `operator_names()`.
        dim: the dimension that it must have; None for any.

    Returns:
        The operator.

    Raises:
        DataError: there is no such file.
        FormatError: the file holds something else, another architecture or another dimension.

    Example:
        >>> load_operator("linear-10").dim
        10
    """
    place = operator_file(path)
    header, tensors = read_tree(place, "operator")
    what = header.get("operator")
    if not isinstance(what, dict) or not isinstance(what.get("fields"), dict):
        raise FormatError(f"{place} cannot be read: it does not say what operator it holds.")
    name = str(what.get("class"))
    cls = find_record(name)
    if cls is None or not hasattr(cls, "transport"):
        raise FormatError(
            f"{place} holds an operator {name!r}, which this version of credo does not know"
            f"{missing('credo.records')}."
        )
    with archive.refusing(place, "operator"):
        require_sizes(cls, what["fields"])
        blank = cast(FlowOperator, cls(**what["fields"]))
        like = jax.eval_shape(blank.start, jax.random.key(0))
    if dim is not None and blank.dim != dim:
        raise FormatError(f"{place} holds an operator of dimension {blank.dim}; {dim} is asked for.")
    single = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.float32), like)
    return cast(FlowOperator, replace(cast(Any, blank), params=fill(place, single, tensors)))


def description(operator: FlowOperator) -> dict[str, object]:
    """The class and the settings of an operator, as JSON."""
    fields = dataclasses.fields(cast(Any, operator))
    settings = {f.name: getattr(operator, f.name) for f in fields if f.name != "params"}
    return {"class": record_name(type(operator)), "fields": settings}


def _leaves(tree: PyTree) -> list[tuple[str, Any]]:
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


@record
class History:
    """The course of a training.

    Attributes:
        loss, floor: the mean loss over the batch of each step, and the least that it can be in expectation
            (NaN if that is not known).
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
        if self.loss:
            return float(np.mean(self.loss[-100:]))
        return None

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
    """The state of a training of the settings in `header`, of the structure of `like`, and its history."""
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
