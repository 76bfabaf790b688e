"""Every public learner is saved by one process and loaded by another, which is told nothing but the path."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.worlds import LEARNERS, begin, world

import credo
from credo.adapt.wrapper import Wrapper
from credo.bandits.designs import Design
from credo.core.records import find_function, function_name
from credo.learners import Learner
from credo.particles import ParticleLearner
from credo.streams.checkpoint import encode

ROOMS = ("", "adapt", "adapt.named", "bandits", "bandits.designs", "ekf", "flows", "particles", "recipes")
"""The rooms that export learners."""

NONE_OF_THEIR_OWN = (Learner, Wrapper, Design, ParticleLearner)
"""What all or many learners are, and nobody has as such."""

ELSEWHERE = ("credo.shard", "credo.unshard")
"""What moves a learner to other devices, where it stays the same (tests/learners/test_sharding.py)."""

WITH_A_FUNCTION = "credo.adapt.LocalPolynomial"
"""A learner whose model is a function of the user's own, which no file holds."""

SAVED = [name for name in LEARNERS if name != WITH_A_FUNCTION]
"""What another process loads."""

GIVES = ("Learner", "Filter", "DefaultAgent", "GaussianMap")
"""How the names end of what a function gives, if it makes a learner."""


def _public() -> Iterator[tuple[str, object]]:
    """What the rooms export and is or gives a learner, by its first public name."""
    seen: set[int] = set()
    for room in ROOMS:
        name = f"credo.{room}".rstrip(".")
        module = import_module(name)
        for exported in getattr(module, "__all__", []):
            value = getattr(module, exported)
            if id(value) not in seen and _makes_learners(value):
                seen.add(id(value))
                yield f"{name}.{exported}", value


def _makes_learners(value: object) -> bool:
    if inspect.isclass(value):
        return issubclass(value, Learner) and value not in NONE_OF_THEIR_OWN
    if not inspect.isfunction(value):
        return False
    given = str(value.__annotations__.get("return", ""))
    room = value.__module__
    if room == "credo.adapt.named" or given == "L":
        return True
    return (
        given.startswith(GIVES) or "Learner" in given.split("[")[0] or given.split("[")[0].endswith("Filter")
    )


def test_the_world_of_tests_holds_every_public_learner() -> None:
    found = {name for name, _ in _public() if name not in ELSEWHERE}
    assert found - set(LEARNERS) == set()


@pytest.mark.parametrize("name", SAVED)
def test_a_public_learner_holds_no_function_that_a_file_cannot_name(name: str) -> None:
    functions: dict[str, object] = {}
    encode(LEARNERS[name](world()), "learner", {}, functions)
    unknown = [path for path, one in functions.items() if find_function(function_name(one)) is not one]  # type: ignore[arg-type]
    assert unknown == []


AGAIN = """
import sys
from pathlib import Path
import credo

for path in sorted(Path(sys.argv[1]).glob("*.credo")):
    try:
        learner, belief = credo.load(path)
        credo.save(path.with_suffix(".again"), learner, belief)
    except credo.CredoError as error:
        print(path.stem, error)
"""


@pytest.mark.slow
def test_another_process_loads_every_public_learner_and_writes_the_same_file(tmp_path: Path) -> None:
    at = world()
    for name in SAVED:
        credo.save(tmp_path / f"{name}.credo", *begin(name, at))
    told = os.environ | {"JAX_ENABLE_X64": "1"}  # as the tests have it
    command = [sys.executable, "-c", AGAIN, str(tmp_path)]
    done = subprocess.run(command, env=told, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    for name in SAVED:
        first = (tmp_path / f"{name}.credo").read_bytes()
        assert (tmp_path / f"{name}.again").read_bytes() == first, name
