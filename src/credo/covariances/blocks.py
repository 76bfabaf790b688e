"""Families of block-diagonal covariances: each part of the parameters has a family of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax

from credo.core.errors import CredoError, require_choice, suggest
from credo.core.records import record, static_field
from credo.core.trees import Unravel, fits, leaf_names
from credo.core.types import Array
from credo.covariances.block_covariance import BlockCovariance, Keep
from credo.covariances.extra_roles import Family
from credo.linalg.jacobians.outer import Ranges, cut
from credo.linalg.matrices import inverse

__all__ = ["Blocks", "PlacedBlocks"]


@record
class Blocks(Family):
    """Keep a block-diagonal covariance, with a family for each named part of the parameters.

    A network goes on learning its features under a diagonal or low-rank block, while its last layer has a
    full one; or every layer has a full block. Sources: Puskorius & Feldkamp 1991 (the decoupled extended
    Kalman filter); the update is BONG's for block-diagonal Gaussians, see `BlockCovariance`.

    Arguments:
        blocks: the family of each part, by name: the path of a leaf (keys and positions joined by dots, such
            as "2.w"), the path of a part ("2", "encoder.dense"), or a pattern ("*.b"). A leaf belongs to the
            first name that fits it, so "*" at the end takes the rest.
        keep: which blocks survive an observation that has coupled them: those of the "precision" (the
            variational answer), or those of the "covariance" (the decoupled filter), which are larger.

    Raises:
        CredoError: there are no blocks, or `keep` has another value; or (later) a name fits no leaf, or a
            leaf is in no block.

    Works with BONG, BOG and BBB, all curvatures and dynamics; BLR refuses it. Cost: that of the blocks. Where
    blocks are whole layers of a network of dense layers, diagonal and low-rank blocks take their rows as
    outer products; other blocks need the rows as an array. MC-HESS measures all P x P entries.

    Example:
        >>> import credo
        >>> net = credo.MLP(outputs=1, hidden=(8,))
        >>> family = Blocks({"1": credo.Full(), "*": credo.Diagonal()})
        >>> learner = credo.bong(credo.Model(net, credo.Normal(0.1)), family)
        >>> belief = learner.init(net.init(0, (3,)))
        >>> [(type(part).__name__, part.size) for part in belief.cov.parts]
        [('RootCovariance', 9), ('DiagonalCovariance', 32)]
    """

    blocks: Mapping[str, Family] | tuple[tuple[str, Family], ...] = static_field()
    keep: Keep = static_field(default="precision")

    def __post_init__(self) -> None:
        require_choice("keep", self.keep, ["precision", "covariance"])
        pairs = tuple(self.blocks.items()) if isinstance(self.blocks, Mapping) else self.blocks
        object.__setattr__(self, "blocks", pairs)
        if not pairs:
            raise CredoError('blocks must name at least one part, such as {"*": Full()}; got none.')
        for name, family in pairs:
            if not isinstance(name, str) or not isinstance(family, Family):
                raise CredoError(
                    f'blocks must be families by name, such as {{"2": Full()}}; got {name!r}: {family!r}.'
                )

    def over(self, unravel: Unravel) -> PlacedBlocks:
        """The family with its names looked up in a parameter tree.

        Raises:
            CredoError: a name fits no leaf, or a leaf is in no block.
        """
        names = leaf_names(jax.tree.unflatten(unravel.treedef, range(len(unravel.shapes))))
        assert isinstance(self.blocks, tuple)
        owner: list[int | None] = [None] * len(names)
        for block, (name, _) in enumerate(self.blocks):
            hits = [leaf for leaf, path in enumerate(names) if fits(path, name)]
            free = [leaf for leaf in hits if owner[leaf] is None]
            if not free:
                hint = "" if hits else suggest(name, names)
                tail = f" ({hint})" if hint else ""
                what = "fits leaves that earlier names took" if hits else "fits none"
                raise CredoError(
                    f"blocks must name leaves of params, which are {', '.join(names)}; {name!r} {what}{tail}."
                )
            for leaf in free:
                owner[leaf] = block
        if None in owner:
            lost = names[owner.index(None)]
            raise CredoError(
                f'blocks must hold every leaf of params; {lost!r} is in none: add "*" at the end.'
            )
        places: list[list[tuple[int, int]]] = [[] for _ in self.blocks]
        start = 0
        for shape, place in zip(unravel.shapes, owner, strict=True):
            assert place is not None
            stop = start + math.prod(shape)
            ranges = places[place]
            if ranges and ranges[-1][1] == start:
                ranges[-1] = (ranges[-1][0], stop)
            else:
                ranges.append((start, stop))
            start = stop
        families = tuple(family for _, family in self.blocks)
        return PlacedBlocks(families, tuple(tuple(ranges) for ranges in places), self.keep)

    def init(self, var: Array, *, random: float = 0.0) -> BlockCovariance:
        """Refused, since a vector of variances has no names; `over` a parameter tree first.

        Raises:
            CredoError: always.
        """
        raise CredoError(
            "Blocks names parts of a parameter tree: start it with blocks.over(unravel).init(var)."
        )

    def from_dense(self, matrix: Array) -> BlockCovariance:
        """Refused, as `init` is.

        Raises:
            CredoError: always.
        """
        return self.init(matrix)


@record
class PlacedBlocks(Family):
    """Families at places of a vector of parameters, as `Blocks.over` finds them.

    Attributes:
        families: the family of each block.
        places: for each block, the ranges of the vector (P,) that it covers.
        keep: which blocks survive an observation.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.covariances import Diagonal, Full
        >>> family = PlacedBlocks((Full(), Diagonal()), (((0, 2),), ((2, 3),)))
        >>> family.init(jnp.ones(3)).size
        3
    """

    families: tuple[Family, ...] = static_field()
    places: tuple[Ranges, ...] = static_field()
    keep: Keep = static_field(default="precision")

    def init(self, var: Array, *, random: float = 0.0) -> BlockCovariance:
        pairs = zip(self.families, self.places, strict=True)
        parts = tuple(family.init(cut(var, ranges), random=random) for family, ranges in pairs)
        return BlockCovariance(parts, self.places, self.keep)

    def from_dense(self, matrix: Array) -> BlockCovariance:
        """The blocks of the precision, or of the covariance itself, of a dense covariance. Cost: P^3."""
        whole = inverse(matrix) if self.keep == "precision" else matrix
        parts = []
        for family, ranges in zip(self.families, self.places, strict=True):
            block = cut(cut(whole, ranges).T, ranges).T
            parts.append(family.from_dense(inverse(block) if self.keep == "precision" else block))
        return BlockCovariance(tuple(parts), self.places, self.keep)
