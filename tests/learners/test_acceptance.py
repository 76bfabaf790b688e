"""Updates are accepted by a few numbers: what is not finite stays out, and no covariance is read again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from tests.learners.reference import regression
from tests.streams.setups import bitwise

import credo

P = 5
MODEL = regression(0.1)
FORMS = ["root", "dense"]


def _equations(jaxpr: Any) -> Iterator[Any]:
    """All equations of a program, those of the programs inside included."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda v: hasattr(v, "eqns")):
            if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                yield from _equations(getattr(inner, "jaxpr", inner))


def _step(learner: Any, size: int) -> list[Any]:
    """The equations of a step with `size` parameters."""
    program = jax.make_jaxpr(learner.step)(learner.init(jnp.zeros(size)), jnp.ones(size), 1.0)
    return list(_equations(program.jaxpr))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrap", [lambda learner: learner, lambda learner: credo.WoLF(learner, 3.0)])
def test_a_full_covariance_is_not_read_again_to_accept_an_update(form: Any, wrap: Any) -> None:
    learner = wrap(credo.bong(MODEL, credo.Full(form)))
    whole = [e for e in _step(learner, 7) if "reduce" in e.primitive.name or e.primitive.name == "is_finite"]
    assert whole and all(variable.aval.shape != (7, 7) for e in whole for variable in e.invars)


@pytest.mark.parametrize("family", [credo.Full(), credo.Full("dense"), credo.Diagonal()])
def test_one_output_needs_no_factorisation(family: Any) -> None:
    names = {e.primitive.name for e in _step(credo.bong(MODEL, family), 3)}
    assert not names & {"cholesky", "lu", "triangular_solve", "eigh", "qr"}, names


@pytest.mark.parametrize("form", FORMS)
def test_covariances_that_share_their_rows_are_multiplied_one_by_one(form: Any) -> None:
    covs = jax.vmap(credo.Full(form).init)(jnp.ones((2, P)))
    program = jax.make_jaxpr(jax.vmap(lambda cov: cov.push(jnp.ones((1, P)))))(covs)
    products = [e for e in _equations(program.jaxpr) if e.primitive.name == "dot_general"]
    batches = [e.params["dimension_numbers"][1] for e in products if e.invars[1].aval.ndim == 3]
    assert batches and all(left and right for left, right in batches)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [1, 3, P])
def test_the_move_is_not_finite_where_the_covariance_is_not(form: Any, rows: int) -> None:
    cov = credo.Full(form).init(jnp.ones(P, jnp.float32))
    (matrix,) = jax.tree.leaves(cov)
    jacobian = jnp.zeros((rows, P), jnp.float32).at[0, 0].set(1.0)
    ones = jnp.ones(rows, jnp.float32)
    absorb = jax.jit(lambda cov, jacobian: cov.absorb(jacobian, ones, ones))
    shift, after = absorb(cov, jacobian)
    assert bool(jnp.isfinite(shift).all())
    for bad in (jnp.nan, jnp.inf):  # far from the only parameter that is measured
        shift, after = absorb(jax.tree.map(lambda m, v=bad: m.at[3, 4].set(v), cov), jacobian)
        assert bool(jnp.isnan(shift).any())
    for huge in (1e19, 1e30):
        shift, after = absorb(cov.scale(jnp.float32(huge)), jacobian * huge)
        assert bool(jnp.isfinite(jax.tree.leaves(after)[0]).all()) or bool(jnp.isnan(shift).any())
    assert matrix.dtype == jnp.float32


@pytest.mark.parametrize("form", FORMS)
def test_a_refused_update_leaves_every_bit(form: Any) -> None:
    learner = credo.bong(MODEL, credo.Full(form))
    belief = learner.init(jnp.asarray([-0.0, 0.0, 1.0], jnp.float32))
    signed = jax.tree.map(lambda m: m.at[0, 1].set(-0.0), belief.cov)
    belief = credo.replace(belief, cov=signed)
    x = jnp.asarray([1.0, -0.0, 2.0], jnp.float32)
    learn = jax.jit(lambda x, y, weight: learner.update(belief, x, y, weight=weight))
    for args, ok in (
        ((x, jnp.nan, 1.0), False),
        ((x, jnp.inf, 1.0), False),
        ((x * jnp.nan, 1.0, 1.0), False),
        ((x * 1e30, 1.0, 1.0), False),
        ((x, 1.0, 0.0), True),
    ):
        after, info = learn(*(jnp.asarray(value, jnp.float32) for value in args))
        bitwise(after, belief)
        assert bool(info.ok) == ok
