"""What the tests of experiments share: the background experiments, run once at the quick size."""

from __future__ import annotations

from pathlib import Path

import pytest

from credo_papers import Result, reproduce


class Results(dict[str, Result]):
    """Experiments by name, each of which runs when it is first asked for."""

    def __init__(self, out: Path) -> None:
        super().__init__()
        self.out = out

    def __missing__(self, name: str) -> Result:
        self[name] = reproduce(name, out=self.out, progress=False)
        return self[name]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """The background experiments by name."""
    return Results(tmp_path_factory.mktemp("reproduce"))
