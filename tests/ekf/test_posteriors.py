"""Against the package `posteriors` (torch), where it is installed: `pip install -e '.[test,bench]'`.

Its diagonal filter and ours agree. Its dense filter subtracts the Fisher information from the precision,
where ours adds it; with that one sign changed in the recursion of `reference`, the recursion is theirs.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.ekf import reference
from tests.ekf.reference import STREAMS, Stream, flat

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    theirs = pytest.importorskip("posteriors").ekf

from credo.ekf import diag_fisher  # noqa: E402

TOLERANCE = 1e-12


def tensors(tree: Any) -> Any:
    return {name: torch.tensor(leaf, dtype=torch.float64) for name, leaf in tree.items()}


def batches(stream: Stream) -> Any:
    x, y = stream.data()
    return zip(torch.tensor(x), torch.tensor(y), strict=True)


def numpy(tree: Any) -> np.ndarray:
    return flat({name: leaf.numpy() for name, leaf in tree.items()})


def worst(one: Any, other: Any) -> float:
    return float(np.max(np.abs(np.asarray(one) - np.asarray(other)) / (1.0 + np.abs(np.asarray(other)))))


@pytest.mark.parametrize("name", STREAMS)
def test_the_diagonal_filters_agree_at_every_step(name: str, record_property: Any) -> None:
    stream, gaps = STREAMS[name], []
    sds = tensors(stream.sd_tree())
    other = theirs.diag_fisher.build(
        reference.log_likelihood(stream, torch), stream.lr, stream.drift, stream.per_sample, sds
    )
    made = diag_fisher.build(
        reference.log_likelihood(stream, jnp), stream.lr, stream.drift, stream.per_sample, stream.sds
    )
    state, their = made.init(jax.tree.map(jnp.asarray, stream.params())), other.init(tensors(stream.params()))
    for (x, y), batch in zip(zip(*stream.data(), strict=True), batches(stream), strict=True):
        state = made.update(state, (x, y))
        their, _ = other.update(their, batch)
        gaps += [
            worst(flat(state.params), numpy(their.params)),
            worst(flat(state.sd_diag), numpy(their.sd_diag)),
            worst(state.log_likelihood, their.log_likelihood.numpy()),
        ]
    record_property("largest gap", max(gaps))
    print(f"{name}: largest gap {max(gaps):.1e}")
    assert max(gaps) < TOLERANCE


def test_their_dense_filter_subtracts_what_it_should_add() -> None:
    stream = Stream("normal", 0, 8, lr=0.02, sds=0.3, steps=4)
    other = theirs.dense_fisher.build(
        reference.log_likelihood(stream, torch),
        stream.lr,
        0.0,
        False,
        0.09 * torch.eye(4, dtype=torch.float64),
    )
    their = other.init(tensors(stream.params()))
    before = their.cov.numpy()
    for batch, (mean, cov, value) in zip(batches(stream), reference.dense(stream, sign=-1.0), strict=True):
        their, _ = other.update(their, batch)
        assert worst(numpy(their.params), mean) < TOLERANCE
        assert worst(their.cov.numpy(), cov) < TOLERANCE
        assert worst(their.log_likelihood.numpy(), value) < TOLERANCE
        after = their.cov.numpy()
        # data make it less certain, in every direction
        assert np.all(np.linalg.eigvalsh(after - before) > -TOLERANCE) and np.trace(after) > np.trace(before)
        before = after


def test_their_dense_filter_fails_where_bayes_rule_is_plain() -> None:
    # y ~ N(w, 1), w ~ N(0, 1) and y = 1: the posterior is N(1/2, 1/2); the precision 1 + 1, and not 1 - 1
    def function(params: Any, y: Any) -> tuple[Any, Any]:
        return (-0.5 * (y - params) ** 2).sum(), torch.tensor([])

    dense, diagonal = theirs.dense_fisher.build(function, 1.0), theirs.diag_fisher.build(function, 1.0)
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones((1, 1), dtype=torch.float64)
    right, _ = diagonal.update(diagonal.init(zero), one)
    assert worst(right.params, [0.5]) < TOLERANCE and worst(right.sd_diag, [0.5**0.5]) < TOLERANCE
    with pytest.raises(torch.linalg.LinAlgError):
        dense.update(dense.init(zero), one)
