"""Refusals name the field, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.core import errors
from credo.core.errors import CredoError
from credo.core.keys import as_key, require_key, step_key
from credo.core.verbs import verb
from credo.streams.run import leading


@pytest.mark.table
@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: errors.require_positive("var", 0.0), r"var must be finite and above 0; got 0\.0\."),
        (
            lambda: errors.require_positive("var", jnp.asarray([1.0, -2.0])),
            r"var must be .* got \[ 1\. -2\.\]\.",
        ),
        (lambda: errors.require_positive("var", float("nan")), "var must be finite and above 0; got nan"),
        (lambda: errors.require_nonnegative("q", -1e-3), r"q must be finite and at least 0; got -0\.001"),
        (lambda: errors.require_nonnegative("q", np.inf), "q must be finite and at least 0; got inf"),
        (lambda: errors.require_interval("gamma", 1.5, 0.0, 1.0), r"gamma must be in \[0, 1\]; got 1\.5"),
        (
            lambda: errors.require_interval("p", 0.0, 0.0, 1.0, closed=False),
            r"p must be in \(0, 1\); got 0\.0",
        ),
        (lambda: errors.require_integer("rank", 0, 1), "rank must be a whole number at least 1; got 0"),
        (lambda: errors.require_integer("rank", 2.0, 1), r"rank must be a whole number at least 1; got 2\.0"),
        (lambda: errors.require_integer("n", True, 0, 3), r"n must be a whole number in 0\.\.3; got True"),
        (
            lambda: errors.require_choice("method", "linearised", ["linearized", "mc"]),
            r"method must be one of linearized, mc; got 'linearised' \(did you mean 'linearized'\?\)",
        ),
        (lambda: errors.require_choice("method", "xyz", ["mc"]), r"method must be one of mc; got 'xyz'\.$"),
    ],
)
def test_a_refusal_is_a_sentence_with_field_value_and_allowed(
    check: Callable[[], object], message: str
) -> None:
    with pytest.raises(CredoError, match=message) as caught:
        check()
    assert str(caught.value).endswith(".") and isinstance(caught.value, ValueError)


def test_a_refusal_carries_its_field_its_value_what_is_allowed_and_a_hint() -> None:
    with pytest.raises(CredoError) as caught:
        errors.require_choice("method", "linearised", ["linearized", "mc"])
    error = caught.value
    assert (error.field, error.value, error.allowed) == ("method", "linearised", "one of linearized, mc")
    assert error.hint == "did you mean 'linearized'?"


def test_traced_values_pass_the_checks() -> None:
    @jax.jit
    def function(v: jax.Array) -> jax.Array:
        errors.require_positive("v", v)
        errors.require_nonnegative("v", v)
        errors.require_interval("v", v, 5.0, 6.0)
        return v

    assert float(function(-1.0)) == -1.0


def test_keys_come_from_integers_old_keys_and_new_keys() -> None:
    new = jax.random.key(3)
    keys: list[Any] = [3, np.int64(3), jnp.asarray(3), new, jax.random.PRNGKey(3)]
    for key in keys:
        np.testing.assert_array_equal(jax.random.key_data(as_key(key)), jax.random.key_data(new))
    assert step_key(None, jnp.asarray(1)) is None
    first, second = step_key(3, jnp.asarray(1)), step_key(3, jnp.asarray(2))
    assert first is not None and second is not None
    assert not np.array_equal(jax.random.key_data(first), jax.random.key_data(second))
    with pytest.raises(CredoError, match="guessing draws random numbers: pass key="):
        require_key(None, "guessing")


def test_integers_beyond_32_bits_are_refused_where_jax_would_wrap_them_around() -> None:
    @verb
    def double(y: Any) -> Any:
        return 2 * y

    far = 3_000_000_000
    with jax.enable_x64(False):
        for y in (far, np.int64(far), np.array([0, -far]), np.uint64(2**63)):
            with pytest.raises(CredoError, match=r"^y must fit into 32 bits; got -?\d+: pass floats"):
                double(y)
        assert int(double(np.int64(2**30 - 1))) == 2**31 - 2
        with pytest.raises(CredoError, match=r"^ys\['a'\] must fit into 32 bits"):
            leading(ys={"a": np.array([far])})
    with jax.enable_x64(True):
        assert int(double(np.int64(far))) == 2 * far
