"""Files of every kind of learner, kept since they were written: they load, and their streams go on."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.streams import checkpoint

FILES = sorted((Path(__file__).parent / "data" / "golden").glob("*.credo"))


def test_every_kind_of_learner_has_a_file() -> None:
    assert len(FILES) == 22


@pytest.mark.table
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stream_goes_on_from_its_file(path: Path) -> None:
    """A file holds a learner after six observations, six more, and what was learned from them then."""
    with jax.enable_x64(False):
        saved = checkpoint.read(path)
        rows = {name: jnp.asarray(array) for name, array in saved.arrays.items()}
        key = jax.random.key(7)
        belief, trace = credo.run(saved.learner, saved.belief, rows.get("xs"), rows["ys"], key=key)
    np.testing.assert_allclose(trace.log_evidence, rows["log_evidence"], rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(belief.mean, rows["mean"], rtol=2e-4, atol=2e-5)
