"""Covariances with one full block for each unit of each layer: the node-decoupled extended Kalman filter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.errors import require_choice
from credo.core.records import record, static_field
from credo.core.trees import Unravel
from credo.core.types import Array
from credo.covariances.block_covariance import Keep
from credo.covariances.full import DenseCovariance
from credo.covariances.roles import Collapsible, Covariance, Family, Invertible, Readable
from credo.linalg.jacobians import Crossed, DenseRows, Rows, as_rows
from credo.linalg.jacobians.outer import OuterRows
from credo.linalg.jacobians.sweeps import spread_deltas
from credo.linalg.jacobians.woodbury import leave
from credo.linalg.matrices import (
    attenuate,
    cholesky,
    identity,
    inverse,
    kalman_weights,
    solve_lower,
    symmetric,
)

__all__ = [
    "Layers",
    "PlacedUnitBlocks",
    "UnitBlocks",
    "UnitCovariance",
    "UnitCrossed",
    "by_unit",
    "layers_of",
    "unit_blocks",
]

Layers: TypeAlias = tuple[tuple[int, int], ...]
"""(n, m) for each layer of m units with n parameters each."""


def by_unit(value: Array, layers: Layers) -> list[Array]:
    """The numbers of an array (..., P) unit by unit: for each layer an array (m, ..., n)."""
    parts = []
    start = 0
    for inputs, units in layers:
        own = jax.lax.slice_in_dim(value, start, start + inputs * units, axis=value.ndim - 1)
        parts.append(jnp.moveaxis(own.reshape(*value.shape[:-1], inputs, units), -1, 0))
        start += inputs * units
    return parts


def unit_blocks(matrix: Array, layers: Layers) -> list[Array]:
    """The blocks of the units in a matrix (P, P): for each layer an array (m, n, n)."""
    blocks = []
    start = 0
    for inputs, units in layers:
        stop = start + inputs * units
        layer = matrix[start:stop, start:stop].reshape(inputs, units, inputs, units)
        blocks.append(jnp.moveaxis(jnp.diagonal(layer, axis1=1, axis2=3), -1, 0))
        start = stop
    return blocks


@record
class UnitCrossed(Crossed):
    """The product J S (k, P): in a layer, unit u has rows `deltas`[:, u] x `reached`[u], or `rows`[u].

    Attributes:
        parts: for each layer the pair (reached (m, n), deltas (k, m)), or the rows (m, k, n) of its units.
    """

    parts: tuple[tuple[Array, Array] | Array, ...]

    def pull(self, coefficients: Array) -> Array:
        """c J S. Cost: P a row."""
        if coefficients.ndim == 1:
            return self.pull(coefficients[None, :])[0]
        layers = []
        for part in self.parts:
            if isinstance(part, tuple):
                reached, deltas = part
                own = (coefficients @ deltas)[:, None, :] * reached.T[None, :, :]
            else:
                own = jnp.einsum("qk,mkn->qnm", coefficients, part)
            layers.append(own.reshape(coefficients.shape[0], -1))
        if len(layers) == 1:
            return layers[0]
        return jnp.concatenate(layers, axis=1)

    def dense(self) -> Array:
        """J S, as an array."""
        first = self.parts[0]
        rows = first[1].shape[0] if isinstance(first, tuple) else first.shape[1]
        dtype = (first[1] if isinstance(first, tuple) else first).dtype
        return self.pull(identity(rows, dtype))


@record
class UnitCovariance(Covariance, Invertible, Collapsible):
    """A covariance that is block diagonal: parameters of different units are independent.

    With S_u the covariance of unit u and J_u (k, n) the columns of J in it, one gain serves all units:

        J S J' = sum_u J_u S_u J_u'
        move of the mean in u = S_u J_u' w,  w = inv(I + A A' J S J') e
        inv(S_u) <- inv(S_u) + J_u' A A' J_u                           (keep = "precision")
        S_u <- S_u - S_u J_u' A inv(I + A' J S J' A) A' J_u S_u       (keep = "covariance": exact blocks)

    In a layer of dense weights all outputs see a unit through the same inputs h (n,), so that J_u = d_u h'
    with the derivatives d_u (k,) by the unit's result. Both updates then have rank one, for any number of
    outputs: with s = S_u h and q = h' s, S_u <- S_u - g s s', where g = c / (1 + c q) with c = |A' d_u|^2, or
    g = d_u' A inv(I + A' J S J' A) A' d_u. Source: Puskorius & Feldkamp 1991, with one block a node.

    Attributes:
        parts: for each layer its units' covariances, whose arrays have a leading axis m.
        layers: (n, m) for each layer, whose numbers are a matrix (n, m) in the vector (P,).
        keep: which blocks survive an observation.

    Example:
        >>> from credo.covariances import PlacedUnitBlocks
        >>> cov = PlacedUnitBlocks(((2, 1), (1, 1))).init(jnp.ones(3))
        >>> [[round(value, 2) for value in row] for row in cov.condition(jnp.ones((1, 3))).dense().tolist()]
        [[0.67, -0.33, 0.0], [-0.33, 0.67, 0.0], [0.0, 0.0, 0.5]]
    """

    parts: tuple[DenseCovariance, ...]
    layers: Layers = static_field()
    keep: Keep = static_field(default="precision")

    vouches: ClassVar[bool] = True  # whatever is not finite in a block stands in J S J', and so in the move
    layered: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return sum(math.prod(layer) for layer in self.layers)

    def _join(self, parts: Sequence[Array]) -> Array:
        """The array (..., P) of which `by_unit` gives the parts."""
        flat = [jnp.moveaxis(part, 0, -1) for part in parts]
        flat = [part.reshape(*part.shape[:-2], -1) for part in flat]
        if len(flat) == 1:
            return flat[0]
        return jnp.concatenate(flat, axis=-1)

    def _each(self, function: Callable[..., Covariance], *values: Array) -> UnitCovariance:
        """The covariances of a function of each unit's covariance, and of its part of some vectors (P,)."""
        wide = [jnp.broadcast_to(jnp.asarray(value, self.dtype), (self.size,)) for value in values]
        pairs = zip(self.parts, *(by_unit(value, self.layers) for value in wide), strict=True)
        moved: Callable[..., Any] = jax.vmap(function)
        return self._with([moved(*pair) for pair in pairs])

    def _with(self, parts: Sequence[DenseCovariance]) -> UnitCovariance:
        return UnitCovariance(tuple(parts), self.layers, self.keep)

    def admit(self, rows: Rows) -> Rows:
        """The rows, unchanged if they are one group of outer products of these layers, else as an array."""
        if self._shared(rows):
            return rows
        return DenseRows(rows.dense())

    def _shared(self, rows: Rows) -> bool:
        """Whether all rows see a unit through the same inputs."""
        if not isinstance(rows, OuterRows) or any(inputs.shape[0] > 1 for inputs in rows.inputs):
            return False
        own = tuple((h.shape[1], d.shape[-1]) for h, d in rows.layers)
        return own == self.layers

    def _reach(self, rows: Array | Rows) -> tuple[UnitCrossed, Array, list[Array]]:
        """J S, J S J', and what each unit adds to it: q (m,), or (m, k, k)."""
        jacobian = as_rows(rows)
        parts: list[tuple[Array, Array] | Array] = []
        inner = jnp.zeros((), self.dtype)
        own = list[Array]()
        if isinstance(jacobian, OuterRows) and self._shared(jacobian):
            for part, (inputs, deltas) in zip(self.parts, jacobian.layers, strict=True):
                reached = part.matrix @ inputs[0]
                within = reached @ inputs[0]
                side = spread_deltas(deltas)[0]
                side = leave(side.T, jacobian.left).T
                parts.append((reached, side))
                inner = inner + (side * within[None, :]) @ side.T
                own.append(within)
            return UnitCrossed(tuple(parts)), symmetric(inner), own
        for part, block in zip(self.parts, by_unit(jacobian.dense(), self.layers), strict=True):
            crossed = block @ part.matrix
            within = crossed @ jnp.swapaxes(block, 1, 2)
            parts.append(crossed)
            inner = inner + jnp.sum(within, axis=0)
            own.append(within)
        return UnitCrossed(tuple(parts)), symmetric(inner), own

    def couple(self, rows: Array | Rows) -> tuple[UnitCrossed, Array]:
        """J S and J S J'. Cost: m n^2 a layer for outer rows, else k m n^2."""
        crossed, inner, _ = self._reach(rows)
        return crossed, inner

    def condition(self, factor: Array | Rows) -> UnitCovariance:
        """The blocks of the exact covariance, or of the exact precision."""
        rows = as_rows(factor)
        crossed, inner, own = self._reach(rows)
        return self._narrowed(crossed, inner, own, jnp.ones(rows.shape[0], self.dtype))

    def absorb(self, rows: Array | Rows, residual: Array, root: Array) -> tuple[Array, UnitCovariance]:
        """Kalman's update with one gain for all units."""
        shift, cov, _ = self.assimilate(rows, residual, root)
        return shift, cov

    def assimilate(
        self, rows: Array | Rows, residual: Array, root: Array
    ) -> tuple[Array, UnitCovariance, Array]:
        """`absorb` and J S J', which share their products."""
        crossed, inner, own = self._reach(rows)
        shift = crossed.pull(kalman_weights(root, residual, inner))
        return shift, self._narrowed(crossed, inner, own, root), inner

    def _narrowed(
        self, crossed: UnitCrossed, inner: Array, own: Sequence[Array], root: Array
    ) -> UnitCovariance:
        """The covariance after an observation."""
        whole = _root(root, inner) if self.keep == "covariance" else None
        new = []
        for part, cross, within in zip(self.parts, crossed.parts, own, strict=True):
            if isinstance(cross, tuple):
                reached, deltas = cross
                side = attenuate(root, deltas)
                if whole is not None:
                    gain = jnp.sum(solve_lower(whole, side) ** 2, axis=0)
                else:
                    squares = jnp.sum(side**2, axis=0)
                    gain = squares / (1.0 + squares * within)
                change = (gain[:, None] * reached)[:, :, None] * reached[:, None, :]
            else:
                chol = jax.vmap(lambda inner: _root(root, inner) if whole is None else whole)(within)
                halves = jax.vmap(lambda chol, rows: solve_lower(chol, attenuate(root, rows)))(chol, cross)
                change = jnp.einsum("mkn,mkl->mnl", halves, halves)
            new.append(DenseCovariance(part.matrix - change))
        return self._with(new)

    def add_precision(self, precision: Array) -> UnitCovariance:
        """Exact. Cost: m n^3 a layer."""
        return self._each(DenseCovariance.add_precision, precision)

    def precise(self, vector: Array) -> Array:
        """The product inv(S) v. Cost: m n^3 a layer."""
        pairs = zip(self.parts, by_unit(vector, self.layers), strict=True)
        return self._join([jax.vmap(DenseCovariance.precise)(part, own) for part, own in pairs])

    def affine(self, scale: Array, noise: Array) -> UnitCovariance:
        """Exact. Cost: m n^2 a layer."""
        return self._each(DenseCovariance.affine, scale, noise)

    def affine_within(self, scale: Array, noise: Array, limit: Array) -> UnitCovariance:
        """Exact, in one pass."""
        return self._each(DenseCovariance.affine_within, scale, noise, limit)

    def rescale(self, scale: Array) -> UnitCovariance:
        """Exact. Cost: m n^2 a layer."""
        return self._each(DenseCovariance.rescale, scale)

    def scale(self, factor: Array) -> UnitCovariance:
        """Exact."""
        return self._with([part.scale(factor) for part in self.parts])

    def mix(self, scale: Array, other: Readable, share: Array) -> UnitCovariance:
        """Exact, unit by unit."""
        assert isinstance(other, UnitCovariance)
        pairs = zip(self.parts, other.parts, strict=True)
        return self._with(
            [DenseCovariance(part.matrix * scale**2 + share * one.matrix) for part, one in pairs]
        )

    def linear(self, transition: Array, noise: Array) -> UnitCovariance:
        """The blocks of F S F' + Q. Cost: P^3."""
        moved = symmetric(transition @ self.dense() @ transition.T + noise)
        return self._with([DenseCovariance(block) for block in unit_blocks(moved, self.layers)])

    def collapse(self, weights: Array, deviations: Array) -> UnitCovariance:
        """The blocks of the mixture's covariance, exactly. Cost: K m n^2 a layer."""
        parts = []
        for part, own in zip(self.parts, by_unit(deviations, self.layers), strict=True):
            mean = jnp.tensordot(weights, part.matrix, axes=1)
            parts.append(DenseCovariance(mean + jnp.einsum("k,mkn,mkl->mnl", weights, own, own)))
        return self._with(parts)

    def color(self, deviates: Array) -> Array:
        """Draws, unit by unit. Cost: m n^3 a layer."""
        pairs = zip(self.parts, by_unit(deviates, self.layers), strict=True)
        return self._join([jax.vmap(DenseCovariance.color)(part, own) for part, own in pairs])

    def logdet(self) -> Array:
        """The sum over units."""
        return jnp.sum(jnp.stack([jnp.sum(jax.vmap(DenseCovariance.logdet)(part)) for part in self.parts]))

    def diag(self) -> Array:
        return self._join([jax.vmap(DenseCovariance.diag)(part) for part in self.parts])


def _root(root: Array, inner: Array) -> Array:
    """The Cholesky factor of I + A' M A for M (k, k)."""
    noise = attenuate(root, attenuate(root, inner).T)
    return cholesky(identity(noise.shape[0], noise.dtype) + symmetric(noise))


@record
class UnitBlocks(Family):
    """Keep one full covariance for each unit of each layer of a network; units are independent.

    A unit is a column of a layer's weights, with its bias: what one hidden unit, one filter or one class
    makes of its inputs. A layer of m units with n inputs each, the bias among them, keeps m n^2 numbers in
    place of the (m n)^2 of a full covariance. Sources: Puskorius & Feldkamp 1991 (the node-decoupled extended
    Kalman filter); the update is BONG's for block-diagonal Gaussians, see `UnitCovariance`.

    Arguments:
        keep: which blocks survive an observation that has coupled the units: those of the "precision" (the
            variational answer), or those of the "covariance" (the decoupled filter), which are larger.

    Raises:
        CredoError: `keep` has another value.

    Works with BONG, all curvatures and dynamics; the rules BLR, BOG and BBB refuse it. Cost of a row: m n^2 a
    layer with networks of dense layers (`Linear`, `MLP`), k m n^2 with others, for k outputs. Leaves of
    parameters with two axes or more are layers, whose units are the last axis; a leaf with one axis before
    such a layer is its biases, if it has as many numbers as the layer has units, and else a unit of its own.

    Example:
        >>> import credo
        >>> net = credo.MLP(outputs=1, hidden=(8,))
        >>> learner = credo.bong(credo.Model(net, credo.Normal(0.1)), UnitBlocks())
        >>> belief = learner.init(net.init(0, (3,)))
        >>> [part.matrix.shape for part in belief.cov.parts]
        [(8, 4, 4), (1, 9, 9)]
    """

    keep: Keep = static_field(default="precision")

    def __post_init__(self) -> None:
        require_choice("keep", self.keep, ["precision", "covariance"])

    def over(self, unravel: Unravel) -> PlacedUnitBlocks:
        """The family with the layers of a parameter tree."""
        return PlacedUnitBlocks(layers_of(unravel.shapes), self.keep)

    def init(self, var: Array, *, random: float = 0.0) -> UnitCovariance:
        """All parameters as one unit, if nothing is known of their layers."""
        return PlacedUnitBlocks(((var.shape[-1], 1),), self.keep).init(var)

    def from_dense(self, matrix: Array) -> UnitCovariance:
        """All parameters as one unit, exactly."""
        return PlacedUnitBlocks(((matrix.shape[-1], 1),), self.keep).from_dense(matrix)


@record
class PlacedUnitBlocks(Family):
    """The family of units for layers of known shapes, as `UnitBlocks.over` finds them.

    Attributes:
        layers: (n, m) for each layer of m units with n parameters each.
        keep: what survives of an observation.

    Example:
        >>> import jax.numpy as jnp
        >>> PlacedUnitBlocks(((3, 2),)).init(jnp.ones(6)).parts[0].matrix.shape
        (2, 3, 3)
    """

    layers: Layers = static_field()
    keep: Keep = static_field(default="precision")

    def init(self, var: Array, *, random: float = 0.0) -> UnitCovariance:
        parts = tuple(DenseCovariance(jax.vmap(jnp.diag)(own)) for own in by_unit(var, self.layers))
        return UnitCovariance(parts, self.layers, self.keep)

    def from_dense(self, matrix: Array) -> UnitCovariance:
        """The blocks of the covariance, or of its precision. Cost: P^3 for the precision."""
        whole = inverse(matrix) if self.keep == "precision" else matrix
        blocks = unit_blocks(whole, self.layers)
        if self.keep == "precision":
            blocks = [jax.vmap(inverse)(block) for block in blocks]
        parts = tuple(DenseCovariance(block) for block in blocks)
        return UnitCovariance(parts, self.layers, self.keep)


def layers_of(shapes: Sequence[tuple[int, ...]]) -> Layers:
    """(n, m) for each layer of leaves of some shapes: m units with n parameters each, the bias among them."""
    layers: list[tuple[int, int]] = []
    biases: int | None = None
    for shape in shapes:
        units = shape[-1] if len(shape) > 1 else 1
        if biases is not None and (len(shape) < 2 or units != biases):
            layers.append((biases, 1))
            biases = None
        if len(shape) == 1:
            biases = shape[0]
            continue
        layers.append((math.prod(shape) // units + (biases is not None), units))
        biases = None
    if biases is None:
        return tuple(layers)
    return (*layers, (biases, 1))
