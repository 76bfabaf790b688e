"""Covariances with one full block for each unit of each layer: the node-decoupled extended Kalman filter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from credo.core.errors import require_choice
from credo.core.records import record, static_field
from credo.core.trees import Unravel
from credo.core.types import Array
from credo.covariances.block_covariance import Keep
from credo.covariances.extra_roles import Family
from credo.covariances.full import DenseCovariance
from credo.covariances.unit_covariance import Layers, UnitCovariance, by_unit, unit_blocks
from credo.linalg.matrices import inverse

__all__ = ["PlacedUnitBlocks", "UnitBlocks", "layers_of"]


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
