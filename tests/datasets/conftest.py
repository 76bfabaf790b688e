"""Shared by the tests of data sets: no test touches the user's cache, the user's folder or the network."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from credo.datasets import finder

# The real data, where the machine has them; read before the fixture below hides the variable.
REAL = os.environ.get("CREDO_DATA_DIR")


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_network(*args: object, **kwargs: object) -> None:
        raise OSError("the network is off in tests")

    monkeypatch.delenv("CREDO_DATA_DIR", raising=False)
    monkeypatch.setenv("CREDO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(finder, "urlopen", no_network)


@pytest.fixture
def real_data() -> str:
    if not REAL:
        pytest.skip("CREDO_DATA_DIR is not set, and these data are shipped with no package")
    return REAL


def idx(array: np.ndarray) -> bytes:
    """An IDX file of unsigned bytes."""
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def tiny_images(tmp_path: Path) -> Path:
    """A folder with a Fashion-MNIST of three training and two test images, compressed and not."""
    folder = tmp_path / "data" / "fashion-mnist"
    folder.mkdir(parents=True)
    random = np.random.RandomState(0)
    for stem, count in (("train", 3), ("t10k", 2)):
        images = idx(random.randint(0, 256, (count, 28, 28)))
        (folder / f"{stem}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (folder / f"{stem}-labels-idx1-ubyte").write_bytes(idx(np.arange(count)))
    return tmp_path / "data"
