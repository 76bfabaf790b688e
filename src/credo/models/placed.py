"""A network whose parameters lie over devices: an equal part of every layer on each.

With n devices, parameters are a matrix (n, P'/n) whose row d is what device d has. A layer is cut along one
of its axes, which is padded to a multiple of n; the padding stands outside of the network, so that no output
depends on it, and its derivatives are 0. Layers are cut by turns along their outputs and their inputs
(Shoeybi et al. 2019, Megatron-LM): of two layers that follow each other, the first gives each device a part
of the hidden units, from which the second takes it, and nothing is exchanged but sums of outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from credo.core.records import record, static_field
from credo.core.trees import Unravel
from credo.core.types import Array, PyTree
from credo.models.model import Apply

__all__ = ["Cut", "Layout", "Placed"]


@record
class Cut:
    """The cut of a leaf: its axis, and whether its parts may stay where they are in the forward pass."""

    shape: tuple[int, ...] = static_field()
    axis: int = static_field()
    apart: bool = static_field()

    def deep(self, parts: int) -> int:
        """The number of entries of the axis that a device has."""
        if self.shape:
            return -(-self.shape[self.axis] // parts)
        return 1

    def width(self, parts: int) -> int:
        """The number of entries of the leaf that a device has."""
        return self.deep(parts) * math.prod(self.rest)

    @property
    def rest(self) -> tuple[int, ...]:
        """The shape without the axis."""
        return tuple(size for axis, size in enumerate(self.shape) if axis != self.axis)


@record
class Layout:
    """The layout of parameters over devices.

    Arguments:
        unravel: how the vector (P,) of one device becomes the tree.
        parts: the number n of devices.
        cuts: how each leaf is cut.
    """

    unravel: Unravel = static_field()
    parts: int = static_field()
    cuts: tuple[Cut, ...] = static_field()

    @staticmethod
    def of(unravel: Unravel, parts: int) -> Layout:
        """The layout of some parameters over so many devices."""
        return Layout(unravel, parts, _cuts(unravel.shapes))

    @property
    def width(self) -> int:
        """The number of entries that a device has."""
        return sum(cut.width(self.parts) for cut in self.cuts)

    def tree(self, matrix: Array, together: NamedSharding | None = None) -> PyTree:
        """The parameters of a matrix (n, P'/n), of which small leaves are gathered."""
        leaves = []
        start = 0
        for cut, dtype in zip(self.cuts, self.unravel.dtypes, strict=True):
            width = cut.width(self.parts)
            part = matrix[:, start : start + width]
            start += width
            if cut.shape:
                padded = part.reshape(self.parts * cut.deep(self.parts), *cut.rest)
                leaf = jnp.moveaxis(padded[: cut.shape[cut.axis]], 0, cut.axis)
            else:
                leaf = part[0, 0]
            if not cut.apart and together is not None:
                leaf = jax.lax.with_sharding_constraint(leaf, together)
            leaves.append(leaf.astype(dtype))
        return jax.tree.unflatten(self.unravel.treedef, leaves)

    def places(self) -> np.ndarray:
        """Which number (P'/n of n, in one row) of the vector of one device lies where; -1 is padding."""
        found = list[np.ndarray]()
        start = 0
        for cut in self.cuts:
            size = math.prod(cut.shape)
            own = np.arange(start, start + size).reshape(cut.shape or (1,))
            start += size
            along = np.moveaxis(own, cut.axis, 0)
            beyond = self.parts * cut.deep(self.parts) - len(along)
            padding = np.full((beyond, *along.shape[1:]), -1, along.dtype)
            found.append(np.concatenate([along, padding]).reshape(self.parts, -1))
        return np.concatenate(found, axis=1).reshape(-1)


@record
class Placed:
    """A network of parameters (n, P'/n) that lie over the devices of a mesh, one row on each."""

    apply: Apply
    layout: Layout = static_field()
    mesh: Mesh = static_field()

    def __call__(self, matrix: Array, x: PyTree) -> Array:
        """The outputs of the network, which every device has."""
        together = NamedSharding(self.mesh, PartitionSpec())
        outputs = self.apply(self.layout.tree(matrix, together), x)
        kept: Array = jax.lax.with_sharding_constraint(outputs, together)
        return kept


def _cuts(shapes: Sequence[tuple[int, ...]]) -> tuple[Cut, ...]:
    """By turns along outputs (the last axis) and inputs, the last layer along its inputs.

    A vector lies as the outputs of the next layer, whose bias it is, or of the one before, if it is as long.
    """
    layers = [place for place, shape in enumerate(shapes) if len(shape) > 1]
    cuts: dict[int, Cut] = {}
    outputs = False
    for place in layers:
        outputs = not outputs and place != layers[-1]
        shape = shapes[place]
        cuts[place] = Cut(shape, len(shape) - 1 if outputs else len(shape) - 2, True)
    for place, shape in enumerate(shapes):
        if place not in cuts:
            near = [*(a for a in layers if a > place), *(b for b in layers[::-1] if b < place)]
            own = next((cuts[layer] for layer in near if shapes[layer][-1:] == shape), None)
            along = own is not None and own.axis == len(own.shape) - 1
            cuts[place] = Cut(shape, 0, bool(shape) and (not layers or along))
    return tuple(cuts[place] for place in range(len(shapes)))
