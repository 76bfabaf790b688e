"""Packages that `make test` does without: they are large, and few tests need them, which are skipped there.

`make test-all` installs them.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from credo.core.extensions import extra

EXTRAS = {
    "confluent_kafka": "kafka",
    "mapie": "forecasting",
    "optuna": "test-all",
    "polars": "test-all",
    "ray": "ray",
    "schemathesis": "test-all",
    "skforecast": "forecasting",
}
"""The extra that brings a package, by the name under which Python imports it."""


def needs(module: str) -> Any:
    """A module; where its package is absent, the test or the file that asks for it is skipped."""
    package = module.partition(".")[0]
    return pytest.importorskip(module, reason=f"{package} is not installed: {extra(EXTRAS[package])}")


def needs_what_it_imports(code: str) -> None:
    """Skip a test of code that imports such a package, where it is absent."""
    for package in EXTRAS:
        if re.search(rf"^\s*(?:from|import) {package}\b", code, re.MULTILINE):
            needs(package)
