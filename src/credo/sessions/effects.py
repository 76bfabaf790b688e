"""The effect of each feature by the linear members of a bank, with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from credo.adapt import Bank, Calibration
from credo.beliefs import Gaussian
from credo.core.groups import pick
from credo.sessions.members import Member

__all__ = ["Effects", "linear_effects"]


class Effects(NamedTuple):
    """The mean and standard deviation of every weight of a linear function, mixed over the linear members.

    Attributes:
        mean, sd: of each feature for each output (D, C).
        weight: the share of the evidence that the linear members have, from 0 to 1.

    Example:
        >>> Effects(np.zeros((3, 1)), np.ones((3, 1)), 0.4).mean.shape
        (3, 1)
    """

    mean: np.ndarray
    sd: np.ndarray
    weight: float

    def largest(self, most: int) -> list[tuple[int, int]]:
        """The places (feature, output) of the largest effects, by the size of their means.

        Arguments:
            most: how many to give. Those that were never seen at all have mean 0, and are left out.
        """
        size = np.abs(self.mean)
        order = np.argsort(-size, axis=None, kind="stable")[:most]
        places = zip(*np.unravel_index(order, size.shape), strict=True)
        return [(int(d), int(c)) for d, c in places if size[d, c] > 0]


def linear_effects(bank: Bank[Any], members: Sequence[object]) -> Effects | None:
    """The effects by the linear members of a bank.

        mean = sum_k w_k m_k,  var = sum_k w_k (v_k + (m_k - mean)^2),  w_k the weights among linear members

    Arguments:
        bank: the belief of the bank. The noise variance of a member is the unit of its variances.
        members: its members.

    Returns:
        The effects, or None where no member is linear in what it is given.
    """
    places = [
        k
        for k, member in enumerate(members)
        if isinstance(member, Member) and member.network.kind == "linear" and member.noise == "shared"
    ]
    if not places:
        return None
    beliefs, weights = jax.tree.map(np.asarray, (bank.beliefs, bank.weights))
    means, variances = [], []
    for k in places:
        inner = pick(beliefs, k)
        inner = inner.belief if isinstance(inner, Calibration) else inner
        assert isinstance(inner, Gaussian)
        unit = 1.0 if inner.noise is None else float(inner.noise.mean)
        means.append(_slopes(inner, np.asarray(inner.mean, float)))
        variances.append(_slopes(inner, unit * np.asarray(inner.var, float)))
    total = float(weights[places].sum())
    share = weights[places] / total if total > 0 else np.full(len(places), 1.0 / len(places))
    m, v = np.stack(means), np.stack(variances)
    mean = np.tensordot(share, m, axes=1)
    var = np.tensordot(share, v + (m - mean) ** 2, axes=1)
    return Effects(mean, np.sqrt(np.maximum(var, 0.0)), min(total, 1.0))


def _slopes(belief: Gaussian, flat: np.ndarray) -> np.ndarray:
    """The entries of a flat vector that belong to the weights of the features (D, C)."""
    tree: Any = jax.tree.map(np.asarray, belief.unravel(jax.numpy.asarray(flat, belief.mean.dtype)))
    return np.asarray(tree[-1]["w"], float)
