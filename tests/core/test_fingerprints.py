"""Digests that are the same in every process, and differ where a program would."""

from __future__ import annotations

import enum
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core import fingerprints
from credo.core.fingerprints import Nameless, fingerprint
from credo.programs.words import WordLayout

SCRIPT = """
import jax, jax.numpy as jnp
import credo
from credo.core.fingerprints import fingerprint
from credo.programs.words import WordLayout

learner = credo.auto(3, "classification")
print(fingerprint("a", (1, 2.5, None, {"b": b"c"}), jax.tree.structure(learner)))
"""


@pytest.mark.slow
def test_two_processes_agree() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in (1, 2)
    ]
    assert runs[0] == runs[1] and len(runs[0].strip()) == 64


@pytest.mark.table
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        ("1", 1),
        ((1, 2), (12,)),
        (("a", "bc"), ("ab", "c")),
        ((1, (2, 3)), ((1, 2), 3)),
        ([1], (1,)),
        (0.1, 0.1 + 1e-17 + 1e-16),
        (np.dtype("float32"), np.dtype("float64")),
        (np.zeros(2), np.zeros(3)),
        (np.zeros(2), np.ones(2)),
        (jax.ShapeDtypeStruct((2,), "float32"), jax.ShapeDtypeStruct((3,), "float32")),
        (credo.Full(), credo.Full("dense")),
        (jnp.tanh, jnp.sin),
        (functools.partial(jnp.sum, axis=0), functools.partial(jnp.sum, axis=1)),
        (credo.Normal, credo.Bernoulli),
        (jax.tree.structure({"a": 1}), jax.tree.structure({"b": 1})),
        (jax.tree.structure((1, None)), jax.tree.structure((1, 2))),
        (jax.tree.structure(credo.LowRank(2)), jax.tree.structure(credo.LowRank(3))),
        (WordLayout.of({"a": jnp.zeros(3)}), WordLayout.of({"a": jnp.zeros(3)}, large=1)),
        (WordLayout.of(jax.random.key(0)), WordLayout.of(jax.random.key(0, impl="rbg"))),
    ],
)
def test_what_differs_has_another_digest(one: Any, other: Any) -> None:
    assert fingerprint(one) == fingerprint(one) != fingerprint(other)


class Own(NamedTuple):
    """A class that another process may not have."""

    x: int


class Colour(enum.Enum):
    """Another one."""

    RED = 1


def _own(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    "thing",
    [lambda x: x, _own, Own(1), Colour.RED, functools.partial(_own, 1), object(), (1, [lambda: 0])],
    ids=["lambda", "function", "class", "enum", "partial", "object", "nested"],
)
def test_what_has_no_name_elsewhere_is_refused(thing: Any) -> None:
    with pytest.raises(Nameless):
        fingerprint(thing)


def test_a_learner_of_a_users_function_is_refused() -> None:
    learner = credo.bong(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)), credo.Full())
    with pytest.raises(Nameless):
        fingerprint(jax.tree.structure(learner))


def test_a_function_that_hides_behind_a_name_is_refused() -> None:
    def other(x: Any) -> Any:
        return x

    other.__module__, other.__qualname__ = "jax.numpy", "tanh"
    with pytest.raises(Nameless):
        fingerprint(other)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("_source", lambda: "another source"),
        ("machine", lambda: "another processor"),
    ],
)
def test_the_source_and_the_processor_count(
    monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[], str]
) -> None:
    before = fingerprint(1)
    monkeypatch.setattr(fingerprints, name, change)
    fingerprints._surroundings.cache_clear()
    after = fingerprint(1)
    fingerprints._surroundings.cache_clear()
    assert before != after


def test_the_options_of_jax_count() -> None:
    before = fingerprint(1)
    with jax.default_matmul_precision("float32"):
        assert fingerprint(1) != before
    with jax.enable_x64(False):
        assert fingerprint(1) != before
    assert fingerprint(1) == before
