"""Banks: several learners as one, and their first beliefs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.groups import Groups, each, grouped, pick, places_by_kind
from credo.core.records import record
from credo.core.types import Array, ArrayLike, PyTree
from credo.learners import Learner
from credo.learners.base import require_learner

__all__ = ["Each", "bank", "banks", "first_beliefs"]

L = TypeVar("L")


@record
class Each:
    """One value a learner, in the order of the learners, where `init` would else give all of them the same.

    Arguments:
        values: the values, one for each learner.

    Raises:
        CredoError: there are no values.

    Example:
        Two networks of unlike sizes, each with parameters of its own:

        >>> import credo
        >>> nets = [credo.MLP(1, (4,)), credo.Linear(1)]
        >>> learner = credo.Experts([credo.vd_ekf(credo.Model(net, credo.Normal(0.1))) for net in nets])
        >>> belief = learner.init(credo.adapt.Each([net.init(0, (3,)) for net in nets]))
        >>> [part.size for part in belief.beliefs.parts]
        [21, 4]
    """

    values: Sequence[PyTree]

    def __post_init__(self) -> None:
        if isinstance(self.values, list):
            object.__setattr__(self, "values", tuple(self.values))
        if isinstance(self.values, tuple) and not self.values:
            raise CredoError("values must hold one value a learner; got none.")


def bank(learners: Iterable[L]) -> L:
    """One learner whose hyper-parameters have a leading axis K, from K learners of equal structure.

    Arguments:
        learners: records that differ only in their numbers, such as rates, noises and priors of the dynamics.

    Returns:
        A learner of the same kind, for `jax.vmap`.

    Raises:
        CredoError: there are no learners, or they differ in more than numbers.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learners = [credo.vd_ekf(model, dynamics=credo.RandomWalk(var)) for var in (0.0, 1e-3, 1e-1)]
        >>> bank(learners).dynamics.var.shape
        (3,)
    """
    members = _members(learners)
    kinds = [_kind(member) for member in members]
    odd = next((index for index, kind in enumerate(kinds) if kind != kinds[0]), None)
    if odd is not None:
        raise CredoError(
            "learners must have the same structure, and may differ only in numbers; "
            f"learner {odd} has another structure."
        )

    def stacked(*leaves: ArrayLike) -> Array:
        return jnp.stack([jnp.asarray(leaf, float) for leaf in leaves])

    learner: L = jax.tree.map(stacked, *members)
    return learner


def banks(learners: Iterable[L]) -> L | Groups[L]:
    """K learners as one bank where they differ only in their numbers, otherwise as `Groups` of banks."""
    members = _members(learners)
    places = places_by_kind([_kind(member) for member in members])
    stacks = tuple(bank([members[place] for place in group]) for group in places)
    if len(stacks) == 1:
        return stacks[0]
    return Groups(stacks, places)


def _members(learners: Iterable[L]) -> list[L]:
    members = list(learners)
    for index, member in enumerate(members):
        require_learner(f"learners[{index}]", member)
    if not members:
        raise CredoError("learners must hold at least one learner; got none.")
    return members


def _kind(learner: object) -> tuple[object, tuple[tuple[int, ...], ...]]:
    """The kind of a member: its structure, and the shapes of its numbers."""
    leaves, structure = jax.tree.flatten(learner)
    return structure, tuple(jnp.shape(leaf) for leaf in leaves)


def first_beliefs(learners: Any, size: int, params: PyTree, var: PyTree, others: Mapping[str, PyTree]) -> Any:
    """The first beliefs of K learners, stacked as these are; each argument is one for all, or an `Each`."""
    arguments = {"params": params, "var": var, **others}
    for name, value in arguments.items():
        if isinstance(value, Each) and len(value.values) != size:
            raise CredoError(
                f"{name} must hold one value a learner, {size} in all; got {len(value.values)}.", field=name
            )
    if not isinstance(learners, Groups) and not any(isinstance(value, Each) for value in arguments.values()):
        return each(lambda learner: learner.init(params, var=var, **others), learners)
    beliefs = []
    for place in range(size):
        own = {
            name: value.values[place] if isinstance(value, Each) else value
            for name, value in arguments.items()
        }
        learner: Learner[Any] = pick(learners, place)
        beliefs.append(learner.init(**own))
    places = learners.places if isinstance(learners, Groups) else (tuple(range(size)),)
    for group in places:
        kinds = [_kind(beliefs[place]) for place in group]
        odd = next((place for place, kind in zip(group, kinds, strict=True) if kind != kinds[0]), None)
        if odd is not None:
            raise CredoError(
                "params must have the same shapes for learners of the same structure; those of "
                f"learner {odd} differ from those of learner {group[0]}.",
                field="params",
            )
    stacks = grouped(beliefs, places)
    if isinstance(learners, Groups):
        return stacks
    return stacks.parts[0]
