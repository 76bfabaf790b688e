"""The face of the package: one list of names, quick to import, and true to the rooms."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import credo

NAMES = [name for name in dir(credo) if name != "__version__"]


@pytest.mark.table
@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_one_that_its_room_exports(name: str) -> None:
    value = getattr(credo, name)
    room = vars(credo)["_ROOM_OF"][name]
    if room == "credo":
        assert value is importlib.import_module(f"credo.{name}")
    else:
        assert name in importlib.import_module(room).__all__
        assert value is getattr(importlib.import_module(room), name)


def test_a_name_that_is_not_listed_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'credo' has no attribute 'nope'"):
        getattr(credo, "nope")  # noqa: B009


def test_importing_the_package_is_quick_and_needs_no_jax() -> None:
    code = (
        "import sys, time\n"
        "start = time.process_time()\n"
        "import credo\n"
        "credo.CredoError\n"
        "assert time.process_time() - start < 0.1, time.process_time() - start\n"
        "assert not {'jax', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
