"""Block-diagonal covariances, whose blocks are of any families: one for each part of the parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, suggest
from credo.core.records import record, static_field
from credo.core.trees import Unravel, fits, leaf_names
from credo.core.types import Array
from credo.covariances.roles import (
    Collapsible,
    Covariance,
    Family,
    Invertible,
    Readable,
    collapse_mixture,
    inverse_of,
)
from credo.linalg.jacobians import Crossed, DenseRows, Rows, as_rows
from credo.linalg.jacobians.outer import Ranges, columns, cut, join, whole_layers
from credo.linalg.matrices import attenuate, cholesky, inverse, kalman_weights, solve_lower, symmetric

__all__ = ["BlockCovariance", "BlockCrossed", "Blocks", "Keep", "PlacedBlocks"]

Keep = Literal["precision", "covariance"]
"""Whether the blocks of the precision or those of the covariance survive an observation."""


@record
class BlockCrossed(Crossed):
    """The product J S (k, P) for a block-diagonal S, held block by block."""

    parts: tuple[Crossed, ...]
    places: tuple[Ranges, ...] = static_field()

    def pull(self, coefficients: Array) -> Array:
        """c J S."""
        return join([part.pull(coefficients) for part in self.parts], self.places)

    def dense(self) -> Array:
        """J S, as an array."""
        return join([part.dense() for part in self.parts], self.places)


@record
class BlockCovariance(Covariance, Invertible, Collapsible):
    """A covariance that is block diagonal: parameters of different blocks are independent.

    With S_b the covariance of block b, and J_b the columns of J in it,

        J S J' = sum_b J_b S_b J_b'
        move of the mean in b = S_b J_b' w,  w = inv(I + A A' J S J') e        (one gain for all blocks)
        inv(S_b) <- inv(S_b) + J_b' A A' J_b                                   (keep = "precision")
        S_b <- the block of the exact posterior's covariance                   (keep = "covariance")

    The first keeps the diagonal blocks of the posterior's precision, and is the natural gradient step of BONG
    for block-diagonal Gaussians. The second conditions block b on the observation with A replaced by
    A inv(L)' for L L' = I + A' (sum_{c != b} J_c S_c J_c') A: to block b, the uncertainty of the others is
    noise. It is the decoupled extended Kalman filter of Puskorius & Feldkamp 1991.

    Attributes:
        parts: the covariances S_b.
        places: for each block, the ranges of the vector (P,) that it covers.
        keep: which blocks survive an observation.

    Example:
        >>> from credo.covariances import Diagonal, Full
        >>> parts = (Full().init(jnp.ones(2)), Diagonal().init(jnp.ones(1)))
        >>> cov = BlockCovariance(parts, (((0, 1), (2, 3)), ((1, 2),)))
        >>> rows = cov.condition(jnp.ones((1, 3))).dense().tolist()
        >>> [[round(value, 2) for value in row] for row in rows]
        [[0.67, 0.0, -0.33], [0.0, 0.5, 0.0], [-0.33, 0.0, 0.67]]
    """

    parts: tuple[Covariance, ...]
    places: tuple[Ranges, ...] = static_field()
    keep: Keep = static_field(default="precision")

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def vouches(self) -> bool:  # type: ignore[override]
        """Whether a single block vouches for all; several are read again."""
        return len(self.parts) == 1 and self.parts[0].vouches

    @property
    def deviates(self) -> int:
        return sum(part.deviates for part in self.parts)

    def _with(self, parts: Sequence[Covariance]) -> BlockCovariance:
        return BlockCovariance(tuple(parts), self.places, self.keep)

    def _cut(self, value: Array) -> list[Array]:
        """The part of each block of a number or of an array (..., P)."""
        array = jnp.asarray(value)
        return [array if array.ndim == 0 else cut(array, ranges) for ranges in self.places]

    def _rows(self, rows: Array | Rows) -> list[Rows]:
        """The columns of each block, as its covariance wants them."""
        jacobian = as_rows(rows)
        pairs = zip(self.parts, self.places, strict=True)
        return [part.admit(columns(jacobian, ranges)) for part, ranges in pairs]

    def _each(self, function: Callable[[Covariance, Array], Covariance], value: Array) -> BlockCovariance:
        pairs = zip(self.parts, self._cut(value), strict=True)
        return self._with([function(part, one) for part, one in pairs])

    def admit(self, rows: Rows) -> Rows:
        """The rows, unchanged where every block has whole layers of them, and otherwise as an array."""
        whole = all(whole_layers(rows, ranges) for ranges in self.places)
        if whole:
            return rows
        return DenseRows(rows.dense())

    def couple(self, rows: Array | Rows) -> tuple[BlockCrossed, Array]:
        """J S block by block, and the sum of J_b S_b J_b'. Cost: that of the blocks."""
        crosses, inners = self._couple(self._rows(rows))
        return BlockCrossed(crosses, self.places), _total(inners)

    def _couple(self, rows: Sequence[Rows]) -> tuple[tuple[Crossed, ...], list[Array]]:
        pairs = [part.couple(one) for part, one in zip(self.parts, rows, strict=True)]
        return tuple(cross for cross, _ in pairs), [inner for _, inner in pairs]

    def condition(self, factor: Array | Rows) -> BlockCovariance:
        """Add B_b' B_b to the precision of each block, or keep the blocks of the exact covariance."""
        rows = self._rows(factor)
        inners = [] if self.keep == "precision" else self._couple(rows)[1]
        one = jnp.ones(rows[0].shape[0], self.dtype)
        return self._condition(rows, one, inners)

    def _condition(self, rows: Sequence[Rows], root: Array, inners: Sequence[Array]) -> BlockCovariance:
        """Take in the precision J' A A' J, given each J_b S_b J_b'."""
        new = []
        for index, (part, one) in enumerate(zip(self.parts, rows, strict=True)):
            own = root
            others = [inner for place, inner in enumerate(inners) if place != index]
            if self.keep == "covariance" and others:
                noise = attenuate(root, attenuate(root, _total(others)).T)
                chol = cholesky(jnp.eye(noise.shape[0], dtype=noise.dtype) + symmetric(noise))
                full = jnp.diag(root) if root.ndim == 1 else root
                own = solve_lower(chol, full.T).T
            new.append(part.condition(one.attenuate(own)))
        return self._with(new)

    def absorb(self, rows: Array | Rows, residual: Array, root: Array) -> tuple[Array, BlockCovariance]:
        """Kalman's update with one gain for all blocks."""
        shift, cov, _ = self.assimilate(rows, residual, root)
        return shift, cov

    def assimilate(
        self, rows: Array | Rows, residual: Array, root: Array
    ) -> tuple[Array, BlockCovariance, Array]:
        """`absorb` and J S J', which share the products of every block."""
        own = self._rows(rows)
        if len(own) == 1:
            shift, cov, inner = self.parts[0].assimilate(own[0], residual, root)
            return shift, self._with([cov]), inner
        crosses, inners = self._couple(own)
        inner = _total(inners)
        weights = kalman_weights(root, residual, inner)
        shift = BlockCrossed(crosses, self.places).pull(weights)
        return shift, self._condition(own, root, inners), inner

    def add_precision(self, precision: Array) -> BlockCovariance:
        """Exact."""
        return self._each(lambda part, one: part.add_precision(one), precision)

    def precise(self, vector: Array) -> Array:
        """The product inv(S) v, block by block."""
        pairs = zip(self.parts, self._cut(vector), strict=True)
        return join([inverse_of(part)(one) for part, one in pairs], self.places)

    def affine(self, scale: Array, noise: Array) -> BlockCovariance:
        """Exact."""
        triples = zip(self.parts, self._cut(scale), self._cut(noise), strict=True)
        return self._with([part.affine(a, d) for part, a, d in triples])

    def mix(self, scale: Array, other: Readable, share: Array) -> BlockCovariance:
        """Block by block, as exactly as each family mixes."""
        assert isinstance(other, BlockCovariance)
        pairs = zip(self.parts, other.parts, strict=True)
        return self._with([part.mix(scale, one, share) for part, one in pairs])

    def rescale(self, scale: Array) -> BlockCovariance:
        """Exact."""
        return self._each(lambda part, one: part.rescale(one), scale)

    def scale(self, factor: Array) -> BlockCovariance:
        """Exact."""
        return self._with([part.scale(factor) for part in self.parts])

    def linear(self, transition: Array, noise: Array) -> BlockCovariance:
        """The diagonal blocks of F S F' + Q, each reduced to what its family keeps. Cost: P^3."""
        new = []
        for index, (part, ranges) in enumerate(zip(self.parts, self.places, strict=True)):
            into = cut(transition.T, ranges).T
            own = cut(cut(noise, ranges).T, ranges).T
            for place, (other, source) in enumerate(zip(self.parts, self.places, strict=True)):
                if place != index:
                    own = own + other.push(cut(into, source))
            new.append(part.linear(cut(into, ranges), own))
        return self._with(new)

    def collapse(self, weights: Array, deviations: Array) -> BlockCovariance:
        """The blocks of the mixture's covariance, as each family keeps them."""
        pairs = zip(self.parts, self._cut(deviations), strict=True)
        return self._with([collapse_mixture(part, weights, one) for part, one in pairs])

    def color(self, deviates: Array) -> Array:
        """Draws, block by block."""
        draws = []
        start = 0
        for part in self.parts:
            draws.append(part.color(deviates[..., start : start + part.deviates]))
            start += part.deviates
        return join(draws, self.places)

    def logdet(self) -> Array:
        """The sum over blocks."""
        return jnp.sum(jnp.stack([part.logdet() for part in self.parts]))

    def diag(self) -> Array:
        return join([part.diag() for part in self.parts], self.places)


def _total(inners: Sequence[Array]) -> Array:
    total = inners[0]
    for inner in inners[1:]:
        total = total + inner
    return total


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
