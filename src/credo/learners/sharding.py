"""One posterior over several devices: each has an equal part of the mean, the covariance and the Jacobian.

With n devices, parameters are a matrix (n, P'/n) whose row d is what device d has. A layer is cut along one
of its axes, which is padded to a multiple of n; the padding stands outside of the network, so that no output
depends on it, and its derivatives are 0. Layers are cut by turns along their outputs and their inputs
(Shoeybi et al. 2019, Megatron-LM): of two layers that follow each other, the first gives each device a part
of the hidden units, from which the second takes it, and nothing is exchanged but sums of outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from credo.beliefs import Anchor, Gaussian
from credo.core.errors import CredoError
from credo.core.records import record, replace, static_field
from credo.core.trees import Unravel, ravel
from credo.core.types import Array, PyTree
from credo.covariances import Covariance, DiagonalCovariance, LowRankCovariance
from credo.learners.recursive import RecursiveLearner
from credo.learners.rules import BONGRule
from credo.models.model import Apply

__all__ = ["Cut", "Layout", "Placed", "shard", "unshard"]


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


def shard(learner: RecursiveLearner, belief: Gaussian, mesh: Mesh) -> tuple[RecursiveLearner, Gaussian]:
    """Lay one posterior over the devices of a mesh, for parameters that are too many for one.

    Each of n devices has 1/n of every layer: of its part of the mean, the rows of the covariance and the
    Jacobian. The verbs stay the same; XLA's partitioner (GSPMD, Xu et al. 2021, arXiv 2105.04663) finds the
    program of each device from where the arrays lie. Exact: the numbers are those of one device to rounding,
    since sums over parameters are taken in another order.

    Cost: that of one device by n, without the shortcut for dense layers, since the Jacobian (C, P/n) is
    written. A step of a low-rank belief exchanges sums of at most (R + C)^2 numbers, and one of a diagonal
    belief C^2. Networks of dense layers exchange besides, for each hidden layer but the first, its units, and
    C times as many for the Jacobian. A layer whose axis n does not divide is padded; padding has
    the precision 1 and no other meaning, and counts in `belief.size` and the covariance's `logdet`.

    Arguments:
        learner: one of the rule BONG with `LowRank` or `Diagonal`, such as `credo.bong(model,
            credo.LowRank(10))`, without wrappers, and with dynamics whose settings are single numbers.
        belief: a belief of it. Save it, or read its `params`, after `unshard`.
        mesh: the devices, such as `jax.make_mesh((4,), ("p",))`; all its axes are used.

    Returns:
        The learner over placed parameters, and the belief, whose arrays lie on the devices of the mesh.

    Raises:
        CredoError: the learner, its rule, curvature or dynamics, or the covariance is another.

    Example:
        >>> import credo, jax, jax.numpy as jnp
        >>> net = credo.MLP(outputs=1, hidden=(5,))
        >>> learner = credo.bong(credo.Model(net, credo.Normal(0.1)), credo.LowRank(2))
        >>> belief = learner.init(net.init(0, (3,)))
        >>> placed, over = shard(learner, belief, jax.make_mesh((len(jax.devices()),), ("p",)))
        >>> over, info = placed.step(over, jnp.ones(3), 1.0)
        >>> _, back = unshard(placed, over)
        >>> back.cov.factor.shape
        (2, 26)
    """
    _require(learner, belief)
    own = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))
    layout = Layout.of(belief.unravel, own.size)
    places = layout.places()
    _, unravel = ravel(jnp.zeros((layout.parts, layout.width), belief.mean.dtype))

    def moved(array: Array, fill: float) -> Array:
        padded = np.append(np.asarray(array), np.full((*array.shape[:-1], 1), fill, array.dtype), axis=-1)
        along = PartitionSpec(*[None] * (array.ndim - 1), own.axis_names)
        part: Array = jax.device_put(padded[..., places], NamedSharding(own, along))
        return part

    everywhere = NamedSharding(own, PartitionSpec())
    model = replace(learner.model, apply=Placed(learner.model.apply, layout, own))
    belief = _laid(jax.device_put(belief, everywhere), moved, unravel)
    placed: Any = jax.device_put(replace(learner, model=model), everywhere)
    return placed, belief


def unshard(learner: RecursiveLearner, belief: Gaussian) -> tuple[RecursiveLearner, Gaussian]:
    """Bring a posterior that `shard` laid over devices back to one.

    Arguments:
        learner, belief: as `shard` gave them, the belief perhaps after many steps.

    Returns:
        The learner over the parameters of the network, and its belief, on the first device.

    Raises:
        CredoError: the learner was not given by `shard`.

    Example:
        >>> import credo, jax, jax.numpy as jnp
        >>> learner = credo.vd_ekf(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> belief = learner.init(jnp.arange(3.0))
        >>> _, back = unshard(*shard(learner, belief, jax.make_mesh((1,), ("p",))))
        >>> back.mean
        Array([0., 1., 2.], dtype=float32)
    """
    apply = getattr(getattr(learner, "model", None), "apply", None)
    if not isinstance(apply, Placed):
        raise CredoError(
            f"learner must be one that `shard` gave; got {type(learner).__name__}.", field="learner"
        )
    places = apply.layout.places()
    back = np.empty(apply.layout.unravel.size, np.int64)
    back[places[places >= 0]] = np.flatnonzero(places >= 0)
    device = apply.mesh.devices.flat[0]

    def moved(array: Array, fill: float) -> Array:
        part: Array = jax.device_put(np.asarray(array)[..., back], device)
        return part

    alone: Any = jax.device_put(replace(learner, model=replace(learner.model, apply=apply.apply)), device)
    return alone, _laid(jax.device_put(belief, device), moved, apply.layout.unravel)


def _laid(belief: Gaussian, moved: Any, unravel: Any) -> Gaussian:
    """A belief whose arrays (..., P) are moved."""

    def covariance(cov: Covariance | None) -> Any:
        if isinstance(cov, LowRankCovariance):
            return replace(cov, base=moved(cov.base, 1.0), factor=moved(cov.factor, 0.0))
        if isinstance(cov, DiagonalCovariance):
            return replace(cov, var=moved(cov.var, 1.0))
        return None

    anchor = belief.anchor
    if anchor is not None:
        anchor = Anchor(moved(anchor.mean, 0.0), covariance(anchor.cov))
    cov = covariance(belief.cov)
    return replace(belief, mean=moved(belief.mean, 0.0), cov=cov, unravel=unravel, anchor=anchor)


def _require(learner: RecursiveLearner, belief: Gaussian) -> None:
    """Refuse what would gather more than sums over the parameters, or depends on their order."""
    if not isinstance(learner, RecursiveLearner) or not isinstance(belief, Gaussian):
        raise CredoError(
            f"learner must be a RecursiveLearner without wrappers; got {type(learner).__name__} with a "
            f"belief of the kind {type(belief).__name__}.",
            field="learner",
        )
    if isinstance(learner.model.apply, Placed):
        raise CredoError("learner lies over devices already; `unshard` it first.", field="learner")
    if not isinstance(learner.rule, BONGRule) or learner.curvature.sampled:
        rule = type(learner.rule).__name__
        curvature = type(learner.curvature).__name__
        raise CredoError(
            f"learner must have BONGRule and a curvature that draws nothing; got {rule} and {curvature}.",
            field="learner",
        )
    cov = belief.cov
    spherical = isinstance(cov, LowRankCovariance) and cov.spherical
    if not isinstance(cov, LowRankCovariance | DiagonalCovariance) or spherical:
        kind = "a spherical LowRankCovariance" if spherical else type(cov).__name__
        raise CredoError(
            "cov must be LowRankCovariance with base='diagonal', or DiagonalCovariance, whose updates "
            f"exchange no more than sums over the parameters; got {kind}.",
            field="cov",
        )
    if any(jnp.ndim(leaf) for leaf in jax.tree.leaves(learner.dynamics)):
        raise CredoError(
            "dynamics must have single numbers as settings, since parameters are laid out anew; got "
            f"{type(learner.dynamics).__name__} with an array.",
            field="dynamics",
        )
