"""A covariance inside more parameters, the new ones of which are independent of the old ones.

With S (P, P) the covariance so far and T the wider prior's, the result is S for the old parameters, the block
of T for the new ones, and 0 between them. To support a family of your own, register a function with
`widen_covariance`: `(cov, prior, places) -> covariance`.
"""

from __future__ import annotations

from functools import singledispatch

import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError
from credo.core.subarrays import beside, put, require_alike
from credo.core.types import Array
from credo.covariances.block_covariance import BlockCovariance
from credo.covariances.diagonal import DiagonalCovariance
from credo.covariances.full import DenseCovariance, RootCovariance
from credo.covariances.low_rank import LowRankCovariance
from credo.covariances.roles import Covariance
from credo.covariances.unit_covariance import UnitCovariance
from credo.linalg.jacobians.outer import Ranges

__all__ = ["widen_covariance"]


@singledispatch
def widen_covariance(cov: Covariance, prior: Covariance, places: np.ndarray) -> Covariance:
    """The covariance `cov` for the parameters at some places, and that of `prior` for the others.

    Arguments:
        cov: the covariance of the P old parameters; its arrays may have leading axes, as in a bank.
        prior: the wider prior's covariance, of the same family, whose arrays have the same leading axes.
        places: where the old parameters stand among the new ones (P,).

    Returns:
        A covariance like `prior`, exactly. The rest of a low-rank precision is spread over all parameters
        where its base is "spherical", but not before the next observation.

    Raises:
        CredoError: the families differ, or the family cannot be widened.

    Example:
        >>> from credo.covariances import Full
        >>> narrow, wide = Full("dense").init(jnp.asarray([2.0])), Full("dense").init(jnp.ones(2))
        >>> widen_covariance(narrow, wide, np.array([1])).dense().tolist()
        [[1.0, 0.0], [0.0, 2.0]]
    """
    raise CredoError(
        f"a {type(cov).__name__} cannot be widened; register a function for it with "
        "credo.covariances.widen_covariance."
    )


def _refusal(cov: Covariance, prior: Covariance) -> CredoError:
    return CredoError(
        "a belief can be widened only for a learner of its kind; its covariance is a "
        f"{type(cov).__name__}, and the wider one a {type(prior).__name__}."
    )


def _block(matrix: Array, places: np.ndarray) -> np.ndarray:
    """Some rows of a square matrix, and the same columns."""
    return np.asarray(matrix)[..., places[:, None], places[None, :]]


def _quarters(old: Array, new: np.ndarray, places: np.ndarray, others: np.ndarray) -> Array:
    """A block-diagonal matrix of the old one and that of the other places."""
    require_alike(np.shape(old)[:-2], new.shape[:-2])
    size = len(places) + len(others)
    whole = np.zeros((*new.shape[:-2], size, size), new.dtype)
    whole[..., places[:, None], places[None, :]] = np.asarray(old)
    whole[..., others[:, None], others[None, :]] = new
    return jnp.asarray(whole)


@widen_covariance.register
def _(cov: DenseCovariance, prior: Covariance, places: np.ndarray) -> Covariance:
    if not isinstance(prior, DenseCovariance):
        raise _refusal(cov, prior)
    others = beside(places, prior.size)
    return DenseCovariance(_quarters(cov.matrix, _block(prior.matrix, others), places, others))


@widen_covariance.register
def _(cov: RootCovariance, prior: Covariance, places: np.ndarray) -> Covariance:
    """The roots of the two blocks."""
    if not isinstance(prior, RootCovariance):
        raise _refusal(cov, prior)
    others = beside(places, prior.size)
    rows = np.asarray(prior.root)[..., others, :]
    root = rows[..., others]
    if np.any(rows[..., places]):  # a prior that couples old and new parameters: the root of their block
        root = np.swapaxes(np.linalg.qr(np.swapaxes(rows, -1, -2), mode="r"), -1, -2)
    return RootCovariance(_quarters(cov.root, root, places, others))


@widen_covariance.register
def _(cov: DiagonalCovariance, prior: Covariance, places: np.ndarray) -> Covariance:
    if not isinstance(prior, DiagonalCovariance):
        raise _refusal(cov, prior)
    return DiagonalCovariance(put(cov.var, prior.var, places), prior.keep)


@widen_covariance.register
def _(cov: LowRankCovariance, prior: Covariance, places: np.ndarray) -> Covariance:
    """No direction reaches a new parameter; further directions of a higher rank are 0."""
    if not isinstance(prior, LowRankCovariance) or prior.rank < cov.rank:
        raise _refusal(cov, prior)
    require_alike(cov.factor.shape[:-2], prior.factor.shape[:-2])
    factor = np.zeros_like(prior.factor)
    factor[..., : cov.rank, places] = np.asarray(cov.factor)
    # a prior whose directions are random has the variances of the new parameters in them, too
    base = 1.0 / prior.diag() if np.any(np.asarray(prior.factor)) else prior.base
    return LowRankCovariance(put(cov.base, base, places), jnp.asarray(factor), prior.family)


@widen_covariance.register
def _(cov: BlockCovariance, prior: Covariance, places: np.ndarray) -> Covariance:
    """Block by block."""
    if not isinstance(prior, BlockCovariance) or len(prior.parts) != len(cov.parts):
        raise _refusal(cov, prior)
    parts = []
    blocks = zip(cov.parts, prior.parts, cov.places, prior.places, strict=True)
    for old, new, before, after in blocks:
        mine = places[_flat(before)]
        all_there = _flat(after)
        if not np.isin(mine, all_there).all():
            raise CredoError("a belief can be widened only where every parameter stays in its block.")
        parts.append(widen_covariance(old, new, np.searchsorted(all_there, mine)))
    return BlockCovariance(tuple(parts), prior.places, prior.keep)


@widen_covariance.register
def _(cov: UnitCovariance, prior: Covariance, places: np.ndarray) -> Covariance:
    """Unit by unit, since the old layers are corners of the new ones."""
    if not isinstance(prior, UnitCovariance) or len(prior.layers) != len(cov.layers):
        raise _refusal(cov, prior)
    parts = []
    start = 0
    stop = 0
    for old, new, before, after in zip(cov.parts, prior.parts, cov.layers, prior.layers, strict=True):
        mine = places[stop : stop + before[0] * before[1]].reshape(before) - start
        corner = np.arange(after[0] * after[1]).reshape(after)[: before[0], : before[1]]
        if mine.shape != corner.shape or np.any(mine != corner):
            raise CredoError("a belief can be widened only where every parameter stays in its unit.")
        require_alike(old.matrix.shape[:-3], new.matrix.shape[:-3])
        inputs, units = before
        whole = np.array(new.matrix)
        whole[..., :units, :inputs, inputs:] = whole[..., :units, inputs:, :inputs] = 0.0
        whole[..., :units, :inputs, :inputs] = np.asarray(old.matrix)
        parts.append(DenseCovariance(jnp.asarray(whole)))
        start = start + after[0] * after[1]
        stop = stop + before[0] * before[1]
    return UnitCovariance(tuple(parts), prior.layers, prior.keep)


def _flat(ranges: Ranges) -> np.ndarray:
    """The places in some ranges, in order."""
    return np.concatenate([np.arange(start, stop) for start, stop in ranges])
