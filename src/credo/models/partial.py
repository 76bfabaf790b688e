"""Models with fewer parameters than their network: frozen leaves, the last layer only, a linear subspace.

Beliefs are over the learned part only. The rest is held in the model, as arrays that are hyper-parameters.
Such a model has a starting point of its own, so that `learner.init()` needs no parameters.
`model.apply.full(belief.params)` gives the parameters of the whole network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_integer, suggest
from credo.core.keys import as_key
from credo.core.records import record
from credo.core.trees import fits, leaf_names, ravel
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.models.model import Apply, Model

__all__ = ["Frozen", "Subspace", "freeze", "last_layer", "random_basis", "start", "subspace", "svd_basis"]


def start(model: Model, params: PyTree) -> PyTree:
    """The parameters as given, or else those that the model starts from, which it must then have."""
    params = getattr(model.apply, "start", None) if params is None else params
    if params is None:
        raise CredoError("params is missing: pass the prior mean, a pytree of arrays that the model takes.")
    return params


def _missing(value: object) -> bool:
    return value is None


@record
class Frozen:
    """A network made by `freeze`; `start` has None in place of the frozen leaves, which are in `rest`."""

    apply: Apply
    start: PyTree
    rest: PyTree

    def full(self, part: PyTree) -> PyTree:
        """The whole network's parameters, for the learned leaves `part`."""
        structure: object = jax.tree.structure(self.start)
        got = jax.tree.structure(part)
        if structure != got:
            raise CredoError(f"params must have the structure of the learned leaves, {structure}; got {got}.")
        return jax.tree.map(lambda a, b: a if b is None else b, part, self.rest, is_leaf=_missing)

    def __call__(self, part: PyTree, x: PyTree) -> Array:
        """The network's outputs."""
        return self.apply(self.full(part), x)


def freeze(
    model: Model, params: PyTree, trainable: str | Sequence[str] | Callable[[str, PyTree], bool]
) -> Model:
    """A model over some leaves of the parameters. The others stay at `params`, as if known exactly.

    Arguments:
        model: the model of the whole network.
        params: its parameters, for instance after training.
        trainable: which leaves are learned: one or several names, or a function of (path, leaf). A name is
            the path of a leaf (keys and positions joined by dots, such as "2.w"), the path of a part ("2",
            "encoder.dense"), or a pattern ("*.b").

    Returns:
        A model whose parameters are a tree like `params` with None in place of frozen leaves. It starts at
        `params`, so that `learner.init()` needs no parameters.

    Raises:
        CredoError: a name fits no leaf, or nothing would be learned.

    Example:
        >>> import credo
        >>> net = credo.MLP(outputs=1, hidden=(8,))
        >>> biases = freeze(credo.Model(net, credo.Normal(0.1)), net.init(0, (3,)), "*.b")
        >>> jax.tree.map(jnp.shape, biases.apply.start)
        [{'b': (8,), 'w': None}, {'b': (1,), 'w': None}]
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(params)
    paths = leaf_names(params)
    if callable(trainable):
        learned = [bool(trainable(path, leaf)) for path, (_, leaf) in zip(paths, leaves, strict=True)]
    else:
        names = [trainable] if isinstance(trainable, str) else list(trainable)
        hits_of = {name: [fits(path, name) for path in paths] for name in names}
        for name, hits in hits_of.items():
            if not any(hits):
                hint = suggest(name, paths)
                tail = f" ({hint})" if hint else ""
                raise CredoError(
                    f"trainable must name leaves of params, which are {', '.join(paths)}; got {name!r}{tail}."
                )
        learned = [any(hits[i] for hits in hits_of.values()) for i in range(len(paths))]
    if not any(learned):
        raise CredoError("trainable must leave at least one leaf to learn; all would be frozen.")
    values = [leaf for _, leaf in leaves]

    def pick(which: bool) -> PyTree:
        part_leaves = [v if flag is which else None for v, flag in zip(values, learned, strict=True)]
        return jax.tree.unflatten(structure, part_leaves)

    return Model(Frozen(model.apply, pick(True), pick(False)), model.likelihood, model.batched)


def last_layer(model: Model, params: PyTree, layer: str | None = None) -> Model:
    """A model over the last layer of a network, on frozen features ("neural linear").

    Sources: Snoek et al. 2015 (arXiv 1502.05700); Riquelme, Tucker & Snoek 2018 (arXiv 1802.09127).

    With a linear last layer the model is linear in what is learned, so that a full covariance with normal
    noise is exact Bayes given the features.

    Arguments:
        model, params: as in `freeze`.
        layer: the path of the layer; None takes the last entry of `params`, if that is a list or tuple of
            layers (credo's networks).

    Raises:
        CredoError: it is unclear which layer is the last, or there is no layer of that name.

    Example:
        >>> import credo
        >>> net = credo.MLP(outputs=1, hidden=(8,))
        >>> features = last_layer(credo.Model(net, credo.Normal(0.1)), net.init(0, (3,)))
        >>> jax.tree.map(jnp.shape, features.apply.start)
        [{'b': None, 'w': None}, {'b': (1,), 'w': (8, 1)}]
    """
    if layer is None:
        if not isinstance(params, list | tuple):
            raise CredoError(
                "layer must name the last layer where params is no list of layers; the leaves are "
                + ", ".join(
                    jax.tree_util.keystr(path, simple=True, separator=".")
                    for path, _ in jax.tree_util.tree_leaves_with_path(params)
                )
                + "."
            )
        layer = str(len(params) - 1)
    return freeze(model, params, layer)


@record
class Subspace:
    """A network made by `subspace`: theta = origin + z B, the rows of B (D, P) being `directions`."""

    apply: Apply
    origin: PyTree
    directions: PyTree

    @property
    def start(self) -> Array:
        """z = 0 (D,)."""
        leaf = jax.tree.leaves(self.directions)[0]
        return jnp.zeros(leaf.shape[0], leaf.dtype)

    def full(self, coordinates: Array) -> PyTree:
        """The whole network's parameters, for coordinates z (D,)."""

        def move(leaf: Array, rows: Array) -> Array:
            return leaf + jnp.tensordot(coordinates.astype(rows.dtype), rows, 1)

        return jax.tree.map(move, self.origin, self.directions)

    def __call__(self, coordinates: Array, x: PyTree) -> Array:
        """The network's outputs."""
        return self.apply(self.full(coordinates), x)


def subspace(model: Model, params: PyTree, basis: ArrayLike) -> Model:
    """A model over D coordinates z of an affine subspace of the parameters: theta = params + z B.

    Arguments:
        model: the model of the whole network.
        params: the parameters at z = 0.
        basis: B (D, P), one direction a row, in the order of the leaves of `params`; see `random_basis` and
            `svd_basis`.

    Returns:
        A model whose parameters are a vector (D,), which starts at 0. With orthonormal rows, the prior
        variance of z is the variance of theta along each direction; across them it is 0.

    Raises:
        CredoError: the basis does not fit.

    Cost: P D for the parameters, and for every row of a Jacobian. Memory P D.

    Example:
        >>> import credo
        >>> net = credo.MLP(outputs=1, hidden=(8,))
        >>> params = net.init(0, (3,))
        >>> small = subspace(credo.Model(net, credo.Normal(0.1)), params, random_basis(params, 5, key=1))
        >>> small.apply.start.shape
        (5,)
    """
    vector, unravel = ravel(params)
    rows = jnp.asarray(basis, vector.dtype)
    if rows.ndim != 2 or rows.shape[1] != unravel.size:
        raise CredoError(
            f"basis must be (D, P) with P = {unravel.size}, one direction a row; got shape {rows.shape}."
        )
    return Model(Subspace(model.apply, unravel(vector), unravel(rows)), model.likelihood, model.batched)


def random_basis(params: PyTree, dimension: int, key: Key) -> Array:
    """Random orthonormal directions B (D, P), uniform over subspaces (Li et al. 2018, arXiv 1804.08838).

    Arguments:
        params: the parameters, of which only the size P and the dtype are used.
        dimension: D, from 1 to P.
        key: the key of the draw.

    Raises:
        CredoError: `dimension` is not a whole number from 1 to P.

    Cost: P D^2.

    Example:
        >>> random_basis(jnp.zeros(4), 2, key=0).shape
        (2, 4)
    """
    vector, unravel = ravel(params)
    require_integer("dimension", dimension, 1, unravel.size)
    normals = jax.random.normal(as_key(key), (unravel.size, dimension), vector.dtype)
    return jnp.linalg.qr(normals)[0].T


def svd_basis(iterates: PyTree, dimension: int) -> Array:
    """The leading principal directions B (D, P) of a run of parameters, such as gradient descent's.

    Source: Duran-Martin, Kara & Murphy 2022 (arXiv 2112.00195), after Larsen et al. 2022 (arXiv 2107.05802).

    Arguments:
        iterates: a parameter tree whose leaves have a leading axis T, with one entry for each iterate. Their
            mean is subtracted.
        dimension: D, at most T - 1 and P.

    Raises:
        CredoError: the leaves share no leading axis, or `dimension` is out of range.

    Cost: P T^2 for T < P.

    Example:
        >>> svd_basis(jax.random.normal(jax.random.key(0), (6, 4)), 2).shape
        (2, 4)
    """
    leaves = jax.tree.leaves(iterates)
    if not leaves or len({jnp.shape(leaf)[:1] for leaf in leaves}) != 1 or jnp.ndim(leaves[0]) == 0:
        raise CredoError("iterates must be a parameter tree whose leaves share a leading axis T.")
    rows = jax.vmap(lambda tree: ravel(tree)[0])(iterates)
    count, size = rows.shape
    require_integer("dimension", dimension, 1, max(min(count - 1, size), 1))
    return jnp.linalg.svd(rows - jnp.mean(rows, axis=0, keepdims=True), full_matrices=False)[2][:dimension]
