"""A service in this process, with a linear model that most tests share."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from litestar.testing import TestClient

from credo.serve.app import build_app
from credo.serve.options import ServiceOptions
from credo.serve.service import Service
from credo.serve.tokens import Tokens

Host: TypeAlias = Any
"""A test client of Litestar, with its service as `.service`."""

LINEAR: dict[str, Any] = {"target": "y", "columns": {"a": "number", "b": "number", "c": "category"}}
LINEAR |= {"options": {"model": "linear"}}


def row(number: int, seed: int = 0) -> dict[str, Any]:
    """A row with an id, always the same one."""
    rng = random.Random(1000 * seed + number)
    a, b = rng.gauss(0, 1), rng.gauss(0, 1)
    x = {"a": a, "b": None if number % 7 == 6 else b, "c": "uvw"[number % 3]}
    return {"id": f"{seed}-{number}", "x": x, "y": 2 * a - b + rng.gauss(0, 0.1)}


def ready(host: Host, seconds: float = 120.0) -> None:
    """Wait until all models answer."""
    end = time.monotonic() + seconds
    while host.get("/readyz").status_code != 200:
        assert time.monotonic() < end
        time.sleep(0.02)


def hosting(folder: Path, tokens: Tokens | None = None, options: ServiceOptions | None = None) -> Host:
    """A client of a new service of a folder; to be entered."""
    service = Service(folder, options)
    client = TestClient(build_app(service, tokens), base_url="http://127.0.0.1")
    client.headers["Content-Type"] = "application/json"  # of bodies that are written as bytes
    client.service = service  # type: ignore[attr-defined]
    return client


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A service with the linear model `linear`, which has learned 40 rows."""
    with hosting(tmp_path_factory.mktemp("service")) as client:
        assert client.put("/v1/models/linear", json=LINEAR).status_code == 202
        ready(client)
        for number in range(40):
            assert client.post("/v1/models/linear/learn", json=row(number)).status_code == 200
        yield client


@pytest.fixture
def digest(host: Host, tmp_path: Path) -> Callable[[], str]:
    """A function that gives the digest of the state of the shared model."""
    return lambda: host.service.hosts["linear"].model.digest(tmp_path / "digest.credo")
