"""The effect of each feature by the linear members of a bank, with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Bank, Calibration
from credo.beliefs import Gaussian
from credo.core.groups import pick
from credo.core.types import Array
from credo.covariances import Covariance
from credo.linalg.jacobians import DenseRows
from credo.recipes.members import Member

__all__ = ["Effects", "contrasts", "linear_effects", "linear_places"]


class Effects(NamedTuple):
    """The largest effects: feature and class (n, 2), means and sds (n,), and the weight of linear members."""

    places: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    weight: float


def contrasts(outputs: int, classes: int) -> np.ndarray:
    """What is reported of C outputs, as a matrix (classes, C) or (1, 1): the one output, or each class
    against the mean of all, since logits matter by their differences alone. Of a number it is the first: a
    second one is its dispersion.
    """
    if outputs == 1 or not classes:
        return np.eye(1, outputs)
    logits = np.eye(classes, outputs, k=0 if outputs >= classes else -1)
    return np.asarray(logits - logits.mean(axis=0))


def linear_places(members: Sequence[object]) -> list[int]:
    """The places of the members that are linear in what they are given, and whose outputs are all means."""
    return [
        k
        for k, member in enumerate(members)
        if isinstance(member, Member) and member.network.kind == "linear" and member.noise == "shared"
    ]


def linear_effects(bank: Bank[Any], members: Sequence[object], classes: int, most: int) -> Effects | None:
    """The `most` largest effects by the linear members of a bank, but for those of mean 0; None if no
    member is linear in what it is given.

    mean = sum_k w_k m_k, var = sum_k w_k (v_k + (m_k - mean)^2), with w_k the weights among linear members.
    The noise variance of a member is the unit of its variances. Cost: n P^2 by a full covariance.
    """
    slots = linear_places(members)
    if not slots:
        return None
    beliefs, weights = jax.tree.map(np.asarray, bank.beliefs), np.exp(np.asarray(bank.log_weights))
    inner = [_inside(pick(beliefs, k)) for k in slots]
    where = _positions(inner[0])  # (D, C)
    against = contrasts(where.shape[1], classes)
    total = float(weights[slots].sum())
    share = weights[slots] / total if total > 0 else np.full(len(slots), 1.0 / len(slots))
    every = np.stack([np.asarray(one.mean, float)[where] @ against.T for one in inner])
    centre = np.tensordot(share, every, axes=1)
    order = np.argsort(-np.abs(centre), axis=None, kind="stable")[:most]
    places = np.stack(np.unravel_index(order, centre.shape), axis=1)
    places = places[np.abs(centre)[tuple(places.T)] > 0]
    rows = np.zeros((len(places), inner[0].unravel.size))
    rows[np.arange(len(places))[:, None], where[places[:, 0]]] = against[places[:, 1]]
    means = every[:, places[:, 0], places[:, 1]]
    mean = centre[tuple(places.T)]
    variances = np.stack([_variances(one, rows) for one in inner])
    var = share @ (variances + (means - mean) ** 2)
    return Effects(places, mean, np.sqrt(np.maximum(var, 0.0)), min(total, 1.0))


def _inside(belief: object) -> Gaussian:
    inner = belief.belief if isinstance(belief, Calibration) else belief
    assert isinstance(inner, Gaussian)
    return inner


def _positions(belief: Gaussian) -> np.ndarray:
    """Where the weights of the features stand in the vector of parameters (D, C)."""
    size = belief.unravel.size
    shapes = jax.eval_shape(belief.unravel, jax.ShapeDtypeStruct((size,), belief.mean.dtype))
    ends = np.cumsum([math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)])
    parts = np.split(np.arange(size), ends[:-1])
    tree: Any = jax.tree.unflatten(jax.tree.structure(shapes), parts)
    return np.asarray(tree[-1]["w"]).reshape(shapes[-1]["w"].shape)


def _variances(belief: Gaussian, rows: np.ndarray) -> np.ndarray:
    """The variances of some linear functions (n, P) of the parameters (n,)."""
    if not len(rows):
        return np.zeros(0)
    unit = 1.0 if belief.noise is None else float(belief.noise.mean)
    return unit * np.asarray(_pushed(belief.cov, rows.astype(belief.mean.dtype)), float)


@jax.jit
def _pushed(cov: Covariance, rows: Array) -> Array:
    pushed: Array = jnp.diagonal(cov.push(cov.admit(DenseRows(rows))))
    return pushed
