"""Whether a belief that was read from a file is one that its learner could have."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NoReturn, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.banks import Each
from credo.beliefs import Anchor
from credo.core.constraints import require_possible
from credo.core.errors import CredoError, FormatError
from credo.core.groups import Groups
from credo.core.records import record_name
from credo.core.trees import Unravel
from credo.core.types import PyTree
from credo.covariances import Covariance
from credo.learners import Learner
from credo.models.model import LAYERED, Model

__all__ = ["Acting", "Saveable", "layout_of", "require_sound"]


@runtime_checkable
class Acting(Protocol):
    """An agent, which acts on a learner of rewards and is saved with its belief."""

    @property
    def rewards(self) -> Learner[Any]:
        """The learner of rewards."""
        ...

    def init(self, params: PyTree = None, *, var: PyTree = 1.0, **others: PyTree) -> Any:
        """The belief before any reward."""
        ...


Saveable: TypeAlias = Learner[Any] | Acting
"""A learner or an agent, which a file holds beside its belief."""


def require_sound(learner: Saveable, belief: PyTree, file: str) -> None:
    """Refuse a belief whose records, sizes and dtypes are not those of `learner.init`, or whose numbers are
    not finite or not possible. Those of `jax.vmap` are known by the shape of `t`. Cost: one abstract `init`,
    and P^3 / 3 for a covariance kept as a matrix.
    """
    try:
        for place, leaf in enumerate(jax.tree.leaves(learner)):
            floating = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)
            if floating and not np.isfinite(leaf).all():
                _refuse(f"number {place + 1} of the learner", "must be finite")
        _require_whole(belief)
        like = _expected(learner, belief)
        if like is not None:
            batch = np.shape(getattr(belief, "t", 0))[: np.ndim(getattr(belief, "t", 0)) - like[1]]
            _compare(belief, like[0], "belief", batch, {})
            if not batch:
                _require_outputs(learner if isinstance(learner, Learner) else learner.rewards, belief)
        require_possible(belief, "belief")
    except FormatError as error:
        raise FormatError(f"{file} cannot be used: {error}", field=error.field) from None


def _refuse(path: str, what: str) -> NoReturn:
    raise FormatError(f"{path} {what}.", field=path)


def _records(value: object, kind: type) -> Iterator[Any]:
    """All records of a class in a structure, outermost first."""
    if isinstance(value, kind):
        yield value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _records(getattr(value, field.name), kind)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from _records(child, kind)
    elif isinstance(value, dict):
        yield from _records(list(value.values()), kind)


def layout_of(belief: PyTree) -> Unravel | None:
    """The layout of the parameters of a belief, if it has parameters."""
    return next(_records(belief, Unravel), None)


def _require_whole(belief: PyTree) -> None:
    """Refuse a layout of parameters whose parts disagree."""
    for layout in _records(belief, Unravel):
        if not isinstance(layout.treedef, jax.tree_util.PyTreeDef):
            _refuse("belief.unravel.treedef", f"must be a structure of parameters; got {layout.treedef!r}")
        leaves = layout.treedef.num_leaves
        count = len(layout.shapes)
        if leaves != count or len(layout.dtypes) != count:
            _refuse(
                "belief.unravel",
                f"must have one shape and dtype a leaf, {leaves}; got {count} shapes and "
                f"{len(layout.dtypes)} dtypes",
            )
        for shape, dtype in zip(layout.shapes, layout.dtypes, strict=True):
            if any(size < 0 for size in shape):
                _refuse("belief.unravel.shapes", f"must be whole numbers of at least 0; got {shape}")
            try:
                floating = jnp.issubdtype(jnp.dtype(dtype), jnp.floating)
            except TypeError:
                floating = False
            if not floating:
                _refuse("belief.unravel.dtypes", f"must name floating-point dtypes; got {dtype!r}")


def _start_arguments(belief: PyTree) -> dict[str, Any]:
    """The further arguments of `init` that a belief began from, as its parts say, the outermost first."""
    found: dict[str, Any] = {}
    for part in _records(belief, object):
        if hasattr(part, "init_arguments"):
            found = part.init_arguments() | found
    return found


def _params_of(belief: PyTree) -> PyTree:
    """The parameters that the learner of a belief starts from, as shapes; None if it has none."""
    unlike = next(_records(belief, Groups), None)
    if unlike is not None:
        parts = {
            place: _params_of(part)
            for part, group in zip(unlike.parts, unlike.places, strict=True)
            for place in group
        }
        return Each(tuple(parts[place] for place in range(unlike.size)))
    layout = layout_of(belief)
    if layout is None:
        return None
    leaves = zip(layout.shapes, layout.dtypes, strict=True)
    return jax.tree.unflatten(
        layout.treedef, [jax.ShapeDtypeStruct(shape, jnp.dtype(dtype)) for shape, dtype in leaves]
    )


def _expected(learner: Saveable, belief: PyTree) -> tuple[PyTree, int] | None:
    """The first belief of a learner, as shapes, with the rank of its clock; None if it cannot be known."""
    if any("." in record_name(type(part)) for part in _records(learner, Learner)):
        return None  # a user's own learner may start in another way
    params = _params_of(belief)
    more = _start_arguments(belief)
    start: Any = learner.init
    try:
        like: Any = jax.eval_shape(lambda p: start(p, **more), params)
    except Exception as error:
        if not isinstance(error, CredoError):
            _refuse("belief", "does not fit its learner, which cannot start from such parameters")
        _refuse("belief", f"does not fit its learner: {str(error).rstrip('.')}")
    return like, len(np.shape(getattr(like, "t", 0)))


def _compare(value: Any, like: Any, path: str, batch: tuple[int, ...], dtypes: dict[Any, Any]) -> None:
    """Refuse a structure whose records, sizes or dtypes differ from those expected."""
    kind = type(like)
    if isinstance(like, jax.ShapeDtypeStruct):
        _compare_leaf(value, like, path, batch, dtypes)
    elif type(value) is not kind:
        _refuse(path, f"must be a {kind.__name__} for this learner; got a {type(value).__name__}")
    elif dataclasses.is_dataclass(like):
        _compare_fields(value, like, path, batch, dtypes)
    elif isinstance(like, list | tuple):
        if len(value) != len(like):
            _refuse(path, f"must have {len(like)} entries; got {len(value)}")
        for i, (inner, other) in enumerate(zip(value, like, strict=True)):
            _compare(inner, other, f"{path}.{i}", batch, dtypes)
    elif isinstance(like, dict):
        if set(value) != set(like):
            _refuse(path, f"must have the entries {sorted(like)}; got {sorted(value)}")
        for name, other in like.items():
            _compare(value[name], other, f"{path}.{name}", batch, dtypes)


def _compare_fields(value: Any, like: Any, path: str, batch: tuple[int, ...], dtypes: dict[Any, Any]) -> None:
    """Refuse a record whose fields differ from those expected."""
    for field in dataclasses.fields(like):
        inner = getattr(value, field.name)
        other = getattr(like, field.name)
        where = f"{path}.{field.name}"
        if isinstance(like, Anchor) and isinstance(inner, Covariance) and type(inner) is not type(other):
            if inner.size != other.size:  # a prior that was given as a matrix
                _refuse(where, f"must be of size {other.size}; got {inner.size}")
            continue
        if not field.metadata.get("static"):
            _compare(inner, other, where, batch, dtypes)
        elif inner != other:
            _refuse(where, f"must be {other!r} for this learner; got {inner!r}")


def _compare_leaf(value: Any, like: Any, path: str, batch: tuple[int, ...], dtypes: dict[Any, Any]) -> None:
    if not isinstance(value, jax.Array | np.ndarray | int | float):
        _refuse(path, f"must be an array {like.shape}; got a {type(value).__name__}")
    if np.shape(value) != batch + like.shape:
        _refuse(path, f"must have the shape {batch + like.shape}; got {np.shape(value)}")
    array = jnp.asarray(value)
    wide = jnp.issubdtype(like.dtype, jnp.floating) and jnp.issubdtype(array.dtype, jnp.floating)
    same = dtypes.setdefault(like.dtype, array.dtype) if wide else like.dtype
    if array.dtype != same and not getattr(array, "weak_type", False):
        _refuse(path, f"must have the dtype {same}; got {array.dtype}")


def _require_outputs(learner: Learner[Any], belief: PyTree) -> None:
    """Refuse a network of dense layers whose parameters or outputs do not fit, by one abstract forecast."""
    layouts = list(_records(belief, Unravel))
    models = list(_records(learner, Model))
    if not layouts or not any(isinstance(model.apply, LAYERED) for model in models):
        return
    # of members that are unlike, a network's: its parameters are a list of layers
    layout = next((one for one in layouts if one.treedef.num_leaves > 1), layouts[0])
    rows = (1,) if any(model.batched for model in models) else ()
    try:
        params = jax.tree.unflatten(layout.treedef, layout.shapes)
        x = jax.ShapeDtypeStruct(rows + params[0]["w"][:1], jnp.dtype(layout.dtypes[0]))
        key = jax.random.key(0)
        inputs = learner.inputs_of(x)
        jax.eval_shape(lambda one, row: learner.predictive(one, row, None, None, key), belief, inputs)
    except CredoError as error:
        _refuse("learner", f"does not fit the belief: {str(error).rstrip('.')}")
    except (TypeError, ValueError, IndexError, KeyError, AttributeError):
        _refuse("belief.unravel", "must be the layers of the learner's network, with their shapes")
