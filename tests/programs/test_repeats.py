"""What a program would compute twice: found, and nothing else is touched."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.extend.core import jaxpr_as_fun

import credo
from credo.learners.base import isolate
from credo.live.passes import Score
from credo.programs.repeats import once, without_repeats

X = np.array([0.5, -1.5, 2.0], np.float32)


def names(function: Any, *arguments: Any) -> list[str]:
    """The operations of a function without its repeats, in order."""
    return [equation.primitive.name for equation in once(jax.make_jaxpr(function)(*arguments)).eqns]


def same(function: Any, *arguments: Any) -> None:
    """Check that a function without its repeats gives the same bits."""
    got = without_repeats(function)(*arguments)
    jax.tree.map(np.testing.assert_array_equal, got, function(*arguments))


@jax.jit
def wave(x: Any, y: Any) -> Any:
    """A function that is traced once, whatever it is called with."""
    return jnp.sin(x) * y


@jax.custom_jvp
def half(x: Any) -> Any:
    """A function with a derivative of its own."""
    return x / 2


@jax.custom_vjp
def third(x: Any) -> Any:
    """The same from the other side."""
    return x / 3


half.defjvp(lambda primals, tangents: (half(*primals), tangents[0] / 2))
third.defvjp(lambda x: (third(x), None), lambda _, g: (g / 3,))


def test_equal_operations_on_equal_arrays_are_one() -> None:
    def twice(x: Any) -> Any:
        return jnp.sin(x) + 1.0, jnp.sin(x) + 1.0

    assert names(twice, X) == ["sin", "add"]
    same(twice, X)


def test_results_that_nothing_needs_are_not_computed() -> None:
    assert names(lambda x: (jnp.cos(x), jnp.exp(x))[1], X) == ["exp"]


def test_a_function_inside_is_found_wherever_it_is_called() -> None:
    def calls(x: Any) -> Any:
        return wave(x, x), wave(x, 2 * x), jnp.sin(x) * x

    assert names(calls, X) == ["sin", "mul", "mul", "mul"]
    same(calls, X)


def test_functions_with_derivatives_of_their_own_stand_in_their_place() -> None:
    def ends(x: Any) -> Any:
        return half(x) + third(x) + x / 2 + x / 3

    assert names(ends, X).count("div") == 2
    same(ends, X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 0.0, x * -0.0),
        lambda x: (x + np.float32(1), x.astype(jnp.float16) + np.float16(1)),
        lambda x: (jnp.sum(x), jnp.max(x)),
        lambda x: (x[0], x[1]),
        lambda x: (x - x[::-1], x[::-1] - x),
    ],
    ids=["zeros of both signs", "two types", "two operations", "two places", "two orders"],
)
def test_what_differs_stays_apart(function: Any) -> None:
    before = jax.make_jaxpr(function)(X)
    first, second = function(X)
    assert len(once(before).eqns) >= 2
    got = without_repeats(function)(X)
    for one, other in zip(got, (first, second), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_fences_stay_and_keep_apart_what_is_behind_them() -> None:
    def fenced(x: Any) -> Any:
        return jnp.sin(isolate(x)), jnp.sin(isolate(x))

    assert names(fenced, X) == ["optimization_barrier", "sin"] * 2


def test_effects_stay() -> None:
    told: list[float] = []

    def telling(x: Any) -> Any:
        jax.debug.callback(lambda one: told.append(float(one)), x[0])
        jax.debug.callback(lambda one: told.append(float(one)), x[0])
        return x

    jax.jit(without_repeats(telling))(X)
    jax.effects_barrier()
    assert told == [0.5, 0.5]


def test_loops_branches_and_constants_come_through() -> None:
    table = jnp.arange(3, dtype=jnp.float32)

    def busy(x: Any) -> Any:
        total = jax.lax.fori_loop(0, 3, lambda i, sum: sum + jnp.asarray(x)[i] * table[i], np.float32(0))
        chosen = jax.lax.cond(total > 0, jnp.sin, jnp.cos, x)
        return {"chosen": chosen + table, "given": x, "number": 2, "again": table + chosen, "none": None}

    same(busy, X)


def test_a_constant_of_two_functions_is_one() -> None:
    table = jnp.arange(3, dtype=jnp.float32)
    inner = jax.jit(lambda x: x + table)

    def both(x: Any) -> Any:
        return inner(x), x + table

    assert len(once(jax.make_jaxpr(both)(X)).consts) <= 1
    same(both, X)


OPERATIONS: list[Any] = [
    jnp.add,
    jnp.multiply,
    jnp.subtract,
    jnp.maximum,
    lambda x, y: wave(x, y),
    lambda x, y: half(x),
]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(range(6)), st.integers(0, 99), st.integers(0, 99)), max_size=12))
def test_any_program_gives_the_same_bits(steps: list[tuple[int, int, int]]) -> None:
    def program(x: Any, y: Any) -> Any:
        values = [x, y, jnp.float32(0.3)]
        for operation, first, second in steps:
            values.append(OPERATIONS[operation](values[first % len(values)], values[second % len(values)]))
        return values

    traced = jax.make_jaxpr(program)(X, X[::-1])
    less = once(traced)
    assert len(once(less).eqns) == len(less.eqns)
    want = jaxpr_as_fun(traced)(X, X[::-1])
    got = jaxpr_as_fun(less)(X, X[::-1])
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_row_of_a_bank_has_a_third_of_its_operations() -> None:
    bank = credo.auto(3, "classification", 3)
    row = (jnp.zeros(3), jnp.zeros((), jnp.int32), None, None, None)
    step = Score((), None)
    traced = jax.make_jaxpr(lambda belief: step(bank, belief, None, row, None))(bank.init())

    def count(jaxpr: Any) -> int:
        inside = (
            equation.params.get("jaxpr") or equation.params.get("call_jaxpr") for equation in jaxpr.eqns
        )
        return sum(1 if one is None else count(getattr(one, "jaxpr", one)) for one in inside)

    assert 3 * len(once(traced).eqns) < count(traced.jaxpr)
