"""Programs without what they would compute twice.

A forecast is asked for by the score of a row, by what watches the losses and by each mixture around, and
each of them asks the learners inside. XLA finds that these are one, but only after a dozen passes over all of
them: the row of a bank on three classes has 19,000 operations, of which 5,000 differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias, TypeVar

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun

from credo.core.types import PyTree

__all__ = ["once", "without_repeats"]

T = TypeVar("T")

Value: TypeAlias = Var | Literal
"""An array of a program, or a number that stands in it."""

_CALLS = {
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "jit": "jaxpr",
    "pjit": "jaxpr",
}
"""Operations that run a function in their place, and where it stands. Nothing is differentiated any more."""

_FENCE = "optimization_barrier"


def without_repeats(function: Callable[..., T]) -> Callable[..., T]:
    """A function of trees of arrays that computes once what it computes twice, for a compiled program."""

    def sparing(*arguments: PyTree) -> T:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        results = jaxpr_as_fun(once(traced))(*jax.tree.leaves(arguments))
        value: T = jax.tree.unflatten(jax.tree.structure(shapes), results)
        return value

    return sparing


def once(traced: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function, in which equal operations on equal arrays are one, and none is there for nothing.

    Operations inside of loops and branches stay as they are, and so do fences, and what has an effect.
    """
    program = _Program()
    inputs = [Var(one.aval) for one in traced.jaxpr.invars]
    results = program.enter(traced.jaxpr, traced.consts, inputs)
    constants = list(program.constants.values())
    jaxpr = traced.jaxpr.replace(
        constvars=[constant for constant, _ in constants],
        invars=inputs,
        outvars=results,
        eqns=program.needed(results),
    )
    return ClosedJaxpr(jaxpr, [array for _, array in constants])


class _Program:
    """The different operations of a traced function, in an order in which they can run.

    Attributes:
        constants: its constants, by their identity: two traces may hold the same object.
    """

    def __init__(self) -> None:
        self.constants: dict[int, tuple[Var, Any]] = {}
        self._operations: list[JaxprEqn] = []
        self._found: dict[Hashable, Sequence[Var]] = {}

    def enter(self, jaxpr: Jaxpr, constants: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
        """The results of a function of some values, whose operations join those that are there."""
        known: dict[Var, Value] = {}
        for name, array in zip(jaxpr.constvars, constants, strict=True):
            known[name] = self.constants.setdefault(id(array), (Var(name.aval), array))[0]
        known.update(zip(jaxpr.invars, inputs, strict=True))

        def value(atom: Value) -> Value:
            return atom if isinstance(atom, Literal) else known[atom]

        for equation in jaxpr.eqns:
            results = self._join(equation, [value(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def needed(self, results: Sequence[Value]) -> list[JaxprEqn]:
        """The operations on which some values depend, and those with an effect."""
        wanted = {value for value in results if isinstance(value, Var)}
        needed: list[JaxprEqn] = []
        for operation in reversed(self._operations):
            if operation.effects or not wanted.isdisjoint(operation.outvars):
                needed.append(operation)
                wanted.update(value for value in operation.invars if isinstance(value, Var))
        return needed[::-1]

    def _join(self, equation: JaxprEqn, inputs: list[Value]) -> Sequence[Value]:
        """The results of an operation: those of an equal one, if there is one."""
        place = _CALLS.get(equation.primitive.name)
        if place is not None:
            inside = equation.params[place]
            return self.enter(inside.jaxpr, inside.consts, inputs)
        kind = _kind(equation)
        if kind is None:
            return self._append(equation, inputs)
        key = (kind, tuple(map(_identity, inputs)))
        if key not in self._found:
            self._found[key] = self._append(equation, inputs)
        return self._found[key]

    def _append(self, equation: JaxprEqn, inputs: list[Value]) -> Sequence[Var]:
        results = [Var(one.aval) for one in equation.outvars]
        self._operations.append(equation.replace(invars=inputs, outvars=results))
        return results


def _kind(equation: JaxprEqn) -> Hashable | None:
    """The operation without its arrays; None if it is never the same as another."""
    if equation.effects or equation.primitive.name == _FENCE:
        return None
    settings = tuple(sorted(equation.params.items(), key=lambda item: item[0]))
    try:
        hash(settings)
    except TypeError:
        return None
    return equation.primitive, settings


def _identity(value: Value) -> Hashable:
    """The identity of a value: a number is known by its type and its bytes, since 0.0 equals -0.0."""
    if isinstance(value, Var):
        return value
    number = np.asarray(value.val)
    return str(value.aval), number.dtype, number.tobytes()
