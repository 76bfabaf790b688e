"""What the tests of experiments share: the background experiments, run once at the quick size."""

from __future__ import annotations

import pytest

from credo_papers import Result, reproduce


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """The background experiments by name."""
    out = tmp_path_factory.mktemp("reproduce")
    return {name: reproduce(name, out=out, progress=False) for name in ("kf-tracking", "kf-linreg", "moons")}
