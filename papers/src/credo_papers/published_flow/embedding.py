"""Vectors for sets and sequences: of particles, without an order, and of the rows of a mini-batch."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice
from credo.core.types import Array, PyTree

__all__ = ["Encoder", "encode_rows", "mean_embedding", "rows_of", "start_encoder", "start_layer"]

Encoder: TypeAlias = Literal["none", "mean", "gru"]
"""The encoding of rows as a vector: there is one row, their order is ignored, or it counts."""


def start_layer(key: Array, inputs: int, outputs: int) -> PyTree:
    """A linear layer with Glorot's uniform weights (inputs, outputs) and a bias of 0."""
    bound = (6.0 / (inputs + outputs)) ** 0.5
    weights = jax.random.uniform(key, (inputs, outputs), minval=-bound, maxval=bound)
    return {"weights": weights, "bias": jnp.zeros(outputs)}


def apply_layer(layer: PyTree, rows: Array) -> Array:
    """The outputs (N, outputs) of a linear layer."""
    product: Array = rows @ layer["weights"] + layer["bias"][None, :]
    return product


def mean_embedding(layer: PyTree, values: Array, weights: Array) -> Array:
    """The deep-set embedding sum_n w_n tanh(W x_n + b) of a weighted set (N, d), a vector (h,)."""
    embedding: Array = weights @ jnp.tanh(apply_layer(layer, values))
    return embedding


def rows_of(x: PyTree, y: PyTree, encoder: Encoder, dtype: jnp.dtype) -> Array:
    """The numbers of an observation: one vector, or one row for each of its rows.

    Arguments:
        x, y: the observation; with an encoder every array has a leading axis B.
        encoder: whether there are several rows.
        dtype: the type of the numbers.

    Returns:
        An array (o,) or (B, o).
    """
    leaves = [jnp.asarray(leaf, dtype) for leaf in jax.tree.leaves((x, y))]
    if encoder == "none":
        return jnp.concatenate([leaf.reshape(-1) for leaf in leaves])
    counts = {jnp.shape(leaf)[:1] for leaf in leaves}
    if len(counts) != 1 or counts == {()}:
        raise CredoError(
            "an observation must be a batch of rows, with the same leading axis in x and y, for an operator "
            f"with the encoder {encoder!r}; got shapes {[jnp.shape(leaf) for leaf in leaves]}.",
            field="encoder",
        )
    return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in leaves], axis=1)


def start_encoder(key: Array, encoder: Encoder, inputs: int, outputs: int) -> PyTree:
    """Parameters of an encoder of rows (B, inputs): none, a layer, or a gated recurrent unit."""
    require_choice("encoder", encoder, get_args(Encoder))
    if encoder == "none":
        return {}
    keys = jax.random.split(key)
    if encoder == "mean":
        return {
            "first": start_layer(keys[0], inputs, outputs),
            "second": start_layer(keys[1], outputs, outputs),
        }
    return {
        "rows": start_layer(keys[0], inputs, 3 * outputs),
        "state": start_layer(keys[1], outputs, 3 * outputs),
    }


def encode_rows(params: PyTree, encoder: Encoder, rows: Array) -> Array:
    """The vector of an observation: the mean over rows of two tanh layers, or the last state of a GRU.

    The mean does not depend on the order of the rows, and the recurrent unit (Cho et al. 2014) reads them in
    order,

        r, u = sigmoid(.),  c = tanh(W x + r (V h + b)),  h' = u h + (1 - u) c,

    as is right for a run of observations of a moving state.
    """
    if encoder == "none":
        return rows
    if encoder == "mean":
        hidden = jnp.tanh(apply_layer(params["first"], rows))
        return jnp.mean(jnp.tanh(apply_layer(params["second"], hidden)), axis=0)
    size = params["state"]["weights"].shape[0]

    def read(state: Array, row: Array) -> tuple[Array, None]:
        reset, keep, new = jnp.split(row, 3)
        old_reset, old_keep, old_new = jnp.split(apply_layer(params["state"], state[None, :])[0], 3)
        share = jax.nn.sigmoid(keep + old_keep)
        fresh = jnp.tanh(new + jax.nn.sigmoid(reset + old_reset) * old_new)
        return share * state + (1 - share) * fresh, None

    return jax.lax.scan(read, jnp.zeros(size, rows.dtype), apply_layer(params["rows"], rows))[0]
