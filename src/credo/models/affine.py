"""Whether a function is affine in its parameters, read off the operations that it is made of."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Literal

from credo.core.types import Array, PyTree

__all__ = ["is_affine"]

_LINEAR = frozenset(
    [
        "add",
        "add_any",
        "sub",
        "neg",
        "convert_element_type",
        "copy",
        "copy_p",
        "reshape",
        "transpose",
        "squeeze",
        "broadcast_in_dim",
        "concatenate",
        "slice",
        "pad",
        "rev",
        "reduce_sum",
        "cumsum",
        "split",
        "optimization_barrier",
    ]
)
"""Operations that are affine where all their operands are."""

_PRODUCTS = frozenset(["mul", "dot_general", "conv_general_dilated"])
"""Operations that are affine where one operand is and the other is constant."""

_IN_FIRST = frozenset(["div", "dynamic_slice", "gather"])
"""Operations that are affine in their first operand where the others are constant."""


def is_affine(function: Callable[[PyTree], Array], params: PyTree) -> bool:
    """Whether f(p) = f(0) + J p with one J for all p; the function is traced, and nothing is computed.

    It is so, for certain, where f is put together from sums, products with constants and changes of layout.
    Functions that are affine in a roundabout way count as not affine.
    """
    closed = jax.make_jaxpr(function)(params)
    return all(_moving(closed.jaxpr, [True] * len(closed.jaxpr.invars)) or [False])


def _moving(jaxpr: Jaxpr, inputs: list[bool]) -> list[bool] | None:
    """Which outputs depend on the inputs that do, each in an affine way; None if one may not be affine."""
    moving = {variable for variable, moves in zip(jaxpr.invars, inputs, strict=True) if moves}
    for equation in jaxpr.eqns:
        operands = [not isinstance(atom, Literal) and atom in moving for atom in equation.invars]
        if not any(operands):
            continue
        results = _step(equation, operands)
        if results is None:
            return None
        moving.update(v for v, moves in zip(equation.outvars, results, strict=True) if moves)
    return [not isinstance(atom, Literal) and atom in moving for atom in jaxpr.outvars]


def _step(equation: JaxprEqn, operands: list[bool]) -> list[bool] | None:
    """Which results of one operation depend on the parameters; None if one may not be affine."""
    name = equation.primitive.name
    if name in ("jit", "pjit"):
        return _moving(equation.params["jaxpr"].jaxpr, operands)
    if not all(
        jnp.issubdtype(jnp.dtype(getattr(v.aval, "dtype", bool)), jnp.floating) for v in equation.outvars
    ):
        return None
    fine = (
        name in _LINEAR
        or (name in _PRODUCTS and sum(operands) == 1)
        or (name in _IN_FIRST and not any(operands[1:]))
        or (name == "select_n" and not operands[0])
    )
    return [True] * len(equation.outvars) if fine else None
