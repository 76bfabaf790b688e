"""A belief inside more parameters: what was learned of the old ones, and the prior of the new ones.

A belief that holds others is widened leaf by leaf: the beliefs inside by the rule of their kind, and arrays
of its own at the end of each axis. To support a kind of belief with a layout of its own, register a function
with `widen_belief`: `(belief, prior) -> belief`.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.beliefs.gaussian import Anchor, Ensemble, Gaussian, Point
from credo.beliefs.particles import NormalSource, Particles, Source
from credo.core.errors import CredoError
from credo.core.records import replace
from credo.core.subarrays import at_corner, corners, put, put_corners
from credo.core.trees import leaf_names
from credo.core.types import Array, PyTree
from credo.covariances import Covariance, widen_covariance

__all__ = ["embed", "widen_belief"]

T = TypeVar("T")
A = TypeVar("A", Anchor, NormalSource)


def embed(belief: T, prior: T) -> T:
    """Embed what was learned into the prior belief of a wider model.

    With theta the parameters of `belief` and phi the others of `prior`, the result is

        q(theta, phi) = q(theta) p(phi),

    where q is the belief and p the prior's marginal, exactly. The clock, weights and noise are the belief's.

    Arguments:
        belief: a belief of any kind, as it was learned.
        prior: the first belief of the wider learner. Every old leaf is a corner of its leaf there.

    Returns:
        A belief with the structure and shapes of `prior`.

    Raises:
        CredoError: the beliefs are not of one kind, a leaf is no corner, or a belief cannot be widened.

    Cost: that of copying the wider belief. It works outside compiled programs.

    Example:
        >>> import credo
        >>> learner = credo.vd_ekf(credo.Model(jnp.dot, credo.Normal(0.1)))
        >>> narrow, _ = learner.step(learner.init(jnp.zeros(1)), jnp.ones(1), 1.0)
        >>> wide = embed(narrow, learner.init(jnp.zeros(3), var=4.0))
        >>> [round(value, 2) for value in wide.var.tolist()], int(wide.t)
        ([0.09, 4.0, 4.0], 1)
    """
    if type(belief) is not type(prior):
        raise CredoError(
            f"belief must be one of this learner, a {type(prior).__name__}; got a {type(belief).__name__}.",
            field="belief",
        )
    old, kind = jax.tree.flatten(belief, is_leaf=_whole)
    new, wider = jax.tree.flatten(prior, is_leaf=_whole)
    kinds: list[object] = [kind, wider]
    if kinds[0] != kinds[1]:
        raise CredoError(
            f"belief must be one of this learner; this {type(belief).__name__} has another structure.",
            field="belief",
        )
    names = leaf_names(jax.tree.unflatten(kind, range(len(old))))
    whole: T = jax.tree.unflatten(
        wider,
        [
            widen_belief(before, after) if _whole(before) else at_corner(name, before, after)
            for name, before, after in zip(names, old, new, strict=True)
        ],
    )
    return whole


@singledispatch
def widen_belief(belief: Any, prior: Any) -> Any:
    """A belief over a parameter tree, inside the parameters of a wider prior belief of its kind.

    Arguments:
        belief: what was learned; its arrays may have leading axes, as in a bank.
        prior: the wider prior, whose arrays have the same leading axes.

    Raises:
        CredoError: the parameters are no corners of the wider ones, or this kind cannot be widened.

    Example:
        >>> import credo
        >>> learner = credo.sgd(credo.Model(jnp.dot, credo.Normal(0.1)))
        >>> widen_belief(learner.init(jnp.ones(1)), learner.init(jnp.zeros(2))).params.tolist()
        [1.0, 0.0]
    """
    raise CredoError(f"a {type(belief).__name__} cannot be widened: it is not laid out by parameters.")


def _whole(node: object) -> bool:
    """Whether a part of a belief is widened by a rule of its own."""
    return widen_belief.dispatch(type(node)) is not widen_belief.dispatch(object)


def _cov(cov: Covariance | None, prior: Covariance | None, places: np.ndarray) -> Covariance | None:
    if cov is None or prior is None:
        return None
    return widen_covariance(cov, prior, places)


def _normal(old: A | None, new: A | None, places: np.ndarray, name: str) -> A | None:
    """A mean and a covariance that a belief keeps of its prior."""
    if old is None or new is None:
        if old is not new:
            raise CredoError(
                f"a belief can be widened only for a learner of its kind; the {name} is kept by one of them."
            )
        return None
    return replace(old, mean=put(old.mean, new.mean, places), cov=_cov(old.cov, new.cov, places))


@widen_belief.register
def _(belief: Gaussian, prior: Gaussian) -> Gaussian:
    places = corners(belief.unravel, prior.unravel)
    return Gaussian(
        put(belief.mean, prior.mean, places),
        widen_covariance(belief.cov, prior.cov, places),
        belief.t,
        prior.unravel,
        _normal(belief.anchor, prior.anchor, places, "anchor"),
        put_corners("noise", belief.noise, prior.noise),
    )


@widen_belief.register
def _(belief: Point, prior: Point) -> Point:
    """A state of the optimiser that is shaped as the mean is widened as the mean is."""
    places = corners(belief.unravel, prior.unravel)

    def moments(old: PyTree, new: PyTree) -> Array:
        vector = jnp.shape(new) == jnp.shape(prior.mean)
        return put(old, new, places) if vector else old

    kinds: list[object] = [jax.tree.structure(belief.state), jax.tree.structure(prior.state)]
    if kinds[0] != kinds[1]:
        raise CredoError("a belief can be widened only for a learner of its kind; the optimisers differ.")
    return Point(
        put(belief.mean, prior.mean, places),
        jax.tree.map(moments, belief.state, prior.state),
        put_corners("buffer", belief.buffer, prior.buffer),
        belief.t,
        prior.unravel,
        _normal(belief.anchor, prior.anchor, places, "anchor"),
    )


@widen_belief.register
def _(belief: Ensemble, prior: Ensemble) -> Ensemble:
    """Every member gets the new parameters of one member of the prior, which were drawn there."""
    places = corners(belief.unravel, prior.unravel)
    return Ensemble(
        put(belief.mean, prior.mean, places),
        put(belief.deviations, prior.deviations, places),
        belief.key,
        belief.t,
        prior.unravel,
        _normal(belief.anchor, prior.anchor, places, "anchor"),
    )


@widen_belief.register
def _(belief: Particles, prior: Particles) -> Particles:
    """Every particle gets the new parameters of one particle of the prior, which were drawn there."""
    if belief.log_density is not None or belief.state is not None:
        raise CredoError(
            "particles can be widened where a method keeps nothing beside them; this one keeps a density or "
            "a state of its own."
        )
    places = corners(belief.unravel, prior.unravel)
    values = put(belief.values, prior.values, places)
    parents = None if belief.parents is None else put(belief.parents, values, places)
    source: Source | None = prior.source
    if isinstance(belief.source, NormalSource) and isinstance(prior.source, NormalSource):
        source = _normal(belief.source, prior.source, places, "prior")
    return replace(
        belief,
        values=values,
        unravel=prior.unravel,
        source=source,
        anchor=_normal(belief.anchor, prior.anchor, places, "anchor"),
        parents=parents,
    )
