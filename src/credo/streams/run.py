"""A learner over a whole stream, as one compiled scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError, require_nonnegative
from credo.core.inputs import require_numbers
from credo.core.keys import as_key
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.learners import Info, Learner
from credo.learners.base import require_learner
from credo.programs.loops import Columns

__all__ = ["At", "at_step", "leading", "require_settings", "run"]

B = TypeVar("B")
"""The kind of belief that a learner keeps."""

Row: TypeAlias = tuple[PyTree, PyTree, ArrayLike | None, ArrayLike | None, PyTree]
"""One step of a stream: x, y, weight, dt, and the settings of the learner."""

At: TypeAlias = Callable[[Learner[B], PyTree], Learner[B]]
"""The learner at a step: `at(learner, settings of that step)`."""


def require_settings(at: object, settings: PyTree) -> None:
    """Refuse settings without a function that uses them, and the reverse."""
    if at is not None and not callable(at):
        raise CredoError(f"at must be a function of (learner, settings of a step); got {at!r}.", field="at")
    if (at is None) != (settings is None):
        given, absent = ("at", "settings") if settings is None else ("settings", "at")
        raise CredoError(
            f"{given} needs {absent}: at(learner, settings of a step) is the learner.", field=given
        )


def at_step(learner: Learner[B], at: At[B] | None, setting: PyTree) -> Learner[B]:
    """The learner of one step, which must have the structure of the given one."""
    if at is None:
        return learner
    present = at(learner, setting)
    require_learner("at(learner, settings)", present)
    return present


def leading(**trees: PyTree) -> int:
    """The common length of the leading axis of every array of the named trees, where None is skipped."""
    sizes: dict[str, int] = {}
    for name, tree in trees.items():
        require_numbers(name, tree)
        if isinstance(tree, list) and not any(np.ndim(leaf) for leaf in jax.tree.leaves(tree)):
            raise CredoError(f"{name} must be an array; got a list: pass jnp.asarray({name}).", field=name)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            label = name + jax.tree_util.keystr(path)
            if jnp.ndim(leaf) == 0:
                raise CredoError(f"{label} must have a leading time axis; got a scalar.")
            sizes[label] = jnp.shape(leaf)[0]
    if len(set(sizes.values())) > 1:
        raise CredoError(
            f"all inputs must have the same length; got {', '.join(f'{k}: {v}' for k, v in sizes.items())}."
        )
    if not sizes:
        raise CredoError("xs or ys must hold at least one array.")
    return next(iter(sizes.values()))


def run(  # noqa: PLR0913 - settings, each by its name
    learner: Learner[B],
    belief: B,
    xs: PyTree,
    ys: PyTree,
    *,
    key: Key | None = None,
    weights: ArrayLike | None = None,
    dts: ArrayLike | None = None,
    at: At[B] | None = None,
    settings: PyTree = None,
) -> tuple[B, Info]:
    """Step a learner through T observations in one compiled scan.

    A loop of `learner.step`, one run, and a run in chunks give the same bits on a CPU.

    Cost: T steps of the learner, with the memory of one step and of the T infos.

    Arguments:
        learner: any learner.
        belief: the belief to start from, given by `learner.init` or by an earlier run or chunk.
        xs, ys: inputs and observations, pytrees whose arrays have a leading axis T (xs may be None).
        key: a key, for learners that draw; step t uses fold_in(key, belief.t), so chunks need no new key.
        weights: the weights (T,), or None for 1; see `Learner.update`.
        dts: the lengths of the time steps (T,), or None for 1.
        at: `at(learner, setting)`, the learner at a step, where its matrices or other hyper-parameters change
            with time. Define it once, outside loops: programs are kept per function.
        settings: a tree whose arrays have a leading axis T; `at` gets one entry a step.

    Returns:
        The last belief, and the trace: an `Info` whose arrays have a leading axis T. Its `ok` is False where
        a row was missing or refused; `evaluate` counts such rows, and says why.

    Raises:
        CredoError: there is no observation, lengths differ, or a time step is below 0.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> belief, trace = credo.run(learner, learner.init(jnp.zeros(2)), jnp.ones((5, 2)), jnp.ones(5))
        >>> trace.log_evidence.shape
        (5,)

        Noise that is known to change:

        >>> def noisy(learner, var):
        ...     return credo.replace(learner, model=credo.Model(learner.model.apply, credo.Normal(var)))
        >>> rows = jnp.ones((5, 2)), jnp.ones(5)
        >>> belief, trace = credo.run(
        ...     learner, learner.init(jnp.zeros(2)), *rows, at=noisy, settings=jnp.linspace(0.1, 1.0, 5)
        ... )
        >>> bool(trace.ok.all())
        True
    """
    require_learner("learner", learner)
    length = leading(xs=xs, ys=ys, weights=weights, dts=dts, settings=settings)
    require_nonnegative("dts", dts)
    require_settings(at, settings)
    if length == 0:
        raise CredoError("xs and ys must hold at least one observation; got length 0.")
    return _scan(learner, belief, xs, ys, None if key is None else as_key(key), weights, dts, at, settings)


@verb(static=("at",))
def _scan(  # noqa: PLR0913 - the parts of one call, in their order
    learner: Learner[B],
    belief: B,
    xs: PyTree,
    ys: PyTree,
    key: Array | None,
    weights: ArrayLike | None,
    dts: ArrayLike | None,
    at: At[B] | None,
    settings: PyTree,
) -> tuple[B, Info]:
    layouts: list[Columns[Info]] = []

    def body(belief: B, row: Row) -> tuple[B, list[Array]]:
        x, y, weight, dt, setting = row
        present = at_step(learner, at, setting)
        belief, info = present.step(belief, x, y, weight=1.0 if weight is None else weight, dt=dt, key=key)
        layouts.append(Columns(info))
        return belief, layouts[-1].gather(info)

    belief, trace = jax.lax.scan(body, belief, (xs, ys, weights, dts, settings))
    return belief, layouts[-1].part(trace)
