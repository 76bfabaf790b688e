"""What the transforms of `credo.ekf` refuse."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from tests.ekf.regression import PARAMS, X, Y, loosely, mean, rows, silent

import credo
from credo.ekf import dense_fisher, diag_fisher

GOOD = diag_fisher.init(PARAMS)
ONE = (X[0], Y[0])


def update(function: Any, batch: Any = ONE, **settings: Any) -> Any:
    return lambda: diag_fisher.update(GOOD, batch, function, **{"lr": 1.0, **settings})


REFUSALS = {
    "no aux": (
        update(lambda p, b: silent(p, b)[0]),
        r"log_likelihood must return two things, \(value, aux\), with None for aux .*; got \w*Tracer",
    ),
    "three things": (update(lambda p, b: (*mean(p, b), 1)), "got a tuple of 3"),
    "rows unasked": (
        update(rows),
        r"one number for its batch, when per_sample=False; got shape \(1,\); or build with per_sample=True",
    ),
    "no rows": (
        update(mean, per_sample=True),
        r"one number a row, .* when per_sample=True; got shape \(\); or build with per_sample=False",
    ),
    "matrix": (update(lambda p, b: (b[0], None)), r"got shape \(1, 2\)\."),
    "whole batch": (
        update(lambda p, b: (rows(p, b)[0][:1], None), per_sample=True),
        r"one number a row, shape \(4,\) for this batch, when per_sample=True; got shape \(1,\)",
    ),
    "whole number": (update(lambda p, b: (jnp.sum(b[0]).astype(int), None)), "real number; got dtype int"),
    "word": (update(lambda p, b: ("high", None)), "must return a number as its value; got str"),
    "aux word": (update(lambda p, b: (mean(p, b)[0], {"note": "a"})), r"aux\['note'\] must be an array"),
    "not a function": (update(3), "log_likelihood must be a function .*; got 3"),
    "lengths": (update(silent, (X[0], Y[0, :3])), r"same number of rows; got batch\[0\]: 4, batch\[1\]: 3"),
    "scalar": (update(silent, (X[0], 1.0)), r"batch\[1\] must have a leading axis, .*; got a scalar"),
    "batch word": (update(silent, (X[0], "y")), r"batch\[1\] must be an array; got 'y'"),
    "no batch": (update(silent, None), "batch must hold at least one array .*; got None"),
    "empty batch": (update(silent, (X[0][:0], Y[0][:0])), "batch must hold at least one row; got 0"),
    "lr": (update(silent, lr=-1.0), r"lr must be finite and at least 0; got -1.0"),
    "lr word": (update(silent, lr="fast"), "lr must be one number, or a schedule, .*; got 'fast'"),
    "lr list": (update(silent, lr=jnp.ones(2)), "lr must be one number, or a schedule"),
    "lr shape": (update(silent, lr=lambda step: jnp.ones(2)), r"lr must be one number; its shape is \(2,\)"),
    "drift": (update(silent, transition_sd=-0.1), "transition_sd must be finite and at least 0; got -0.1"),
    "flag": (update(silent, per_sample="yes"), "per_sample must be True or False; got 'yes'"),
    "inplace": (update(silent, inplace=1), "inplace must be True or False; got 1"),
    "state": (
        lambda: diag_fisher.update(loosely(dense_fisher.init(PARAMS)), ONE, silent, 1.0),
        "state must be a DiagFisherState, made by init; got DenseFisherState",
    ),
    "sds": (
        lambda: diag_fisher.build(silent, 1.0, init_sds={"w": -1.0}),
        r"init_sds\['w'\] must be finite and at least 0; got -1.0",
    ),
    "sds word": (lambda: diag_fisher.build(silent, 1.0, init_sds="wide"), "init_sds must be a number or an"),
    "sds tree": (
        lambda: diag_fisher.init(PARAMS, {"w": 1.0}),
        r"init_sds must be a number, or a tree like params, .*; got PyTreeDef\(\{'w': \*\}\)",
    ),
    "sds shape": (
        lambda: diag_fisher.init(PARAMS, {"b": 1.0, "w": jnp.ones(3)}),
        r"init_sds\['w'\] must broadcast to the shape \(2,\) of its parameter; got shape \(3,\)",
    ),
    "params": (lambda: diag_fisher.init({"w": jnp.ones(2, int)}), r"\['w'\] has dtype int"),
    "no params": (lambda: dense_fisher.init({}), "params must hold at least one array"),
    "cov shape": (
        lambda: dense_fisher.init(PARAMS, jnp.eye(2)),
        r"init_cov must be a number or \(P, P\) = \(3, 3\); got shape \(2, 2\)",
    ),
    "cov vector": (
        lambda: dense_fisher.build(silent, 1.0, init_cov=jnp.ones(3)),
        r"init_cov must be a number or a matrix \(P, P\); got shape \(3,\)",
    ),
    "cov sign": (
        lambda: dense_fisher.build(silent, 1.0, init_cov=jnp.ones((3, 3)) - 2 * jnp.eye(3)),
        "init_cov must be finite, symmetric and positive definite; its lowest eigenvalue is -2",
    ),
    "cov lopsided": (
        lambda: dense_fisher.build(silent, 1.0, transition_cov=jnp.array([[1.0, 0.5], [0.0, 1.0]])),
        "transition_cov must be finite, symmetric and positive semi-definite",
    ),
    "cov number": (
        lambda: dense_fisher.build(silent, 1.0, init_cov=0.0),
        "init_cov must be finite and above 0",
    ),
    "cov word": (
        lambda: dense_fisher.build(silent, 1.0, transition_cov=loosely("I")),
        "transition_cov must be a number",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals_are_sentences(call: Any, sentence: str) -> None:
    with pytest.raises(credo.CredoError, match=sentence):
        call()


def test_an_unhashable_function_is_refused() -> None:
    class Likelihood:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, params: Any, batch: Any) -> Any:
            return silent(params, batch)

    with pytest.raises(credo.CredoError, match=r"log_likelihood must be hashable, .* wrap Likelihood"):
        diag_fisher.build(Likelihood(), 1.0)


def test_the_states_have_the_names_that_they_were_published_under() -> None:
    assert isinstance(diag_fisher.init(PARAMS), diag_fisher.EKFDiagState)
    assert isinstance(dense_fisher.init(PARAMS), dense_fisher.EKFDenseState)
