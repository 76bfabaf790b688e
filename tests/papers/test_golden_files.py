"""Files of these learners, kept since they were written: they load, and their streams go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo import flows
from credo.core import extensions
from credo.core.errors import FormatError
from credo.core.records import REGISTRY, record_name
from credo.streams import checkpoint
from credo_papers import baselines, published_flow

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.glob("*.credo"))


def test_every_kind_of_learner_has_a_file() -> None:
    kinds = (baselines.Bootstrap, baselines.Dropout, baselines.NeuralLinear, published_flow.PublishedFlow)
    assert {type(checkpoint.read(path).learner) for path in FILES} == set(kinds)


@pytest.mark.table
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stream_goes_on_from_its_file(path: Path) -> None:
    """A file holds a learner after six observations, six more, and what was learned from them then."""
    with jax.enable_x64(False):
        saved = checkpoint.read(path)
        rows = {name: jnp.asarray(array) for name, array in saved.arrays.items()}
        _, trace = credo.run(saved.learner, saved.belief, rows["xs"], rows["ys"], key=jax.random.key(7))
    np.testing.assert_allclose(trace.log_evidence, rows["log_evidence"], rtol=2e-4, atol=2e-5)


def test_an_operator_loads_from_its_file() -> None:
    operator = flows.load_operator(DATA / "published.flow", dim=3)
    blank = published_flow.PublishedOperator(dim=3, observation=4, hidden=4, layers=1)
    assert credo.replace(operator, params=None) == blank


@pytest.mark.slow
def test_a_file_finds_its_records_by_itself() -> None:
    code = (
        "import sys, credo\n"
        "from credo import bandits, flows, sessions, streams\n"
        "from credo.cli import app\n"
        "assert not any(name.startswith('credo_papers') for name in sys.modules)\n"
        f"print(type(credo.load({str(DATA / 'bootstrap.credo')!r})[0]).__name__)\n"
        f"print(type(flows.load_operator({str(DATA / 'published.flow')!r})).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["Bootstrap", "PublishedOperator"]


def test_names_in_files_do_not_say_where_a_record_lives() -> None:
    assert record_name(baselines.Bootstrap) == "Bootstrap"
    assert record_name(published_flow.PublishedOperator) == "PublishedOperator"


def test_without_the_distribution_a_file_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "entry_points", lambda group: ())
    for name in ("Bootstrap", "PublishedOperator"):
        monkeypatch.delitem(REGISTRY, name)
    with pytest.raises(FormatError, match=r"record 'Bootstrap', .*: pip install -e papers in"):
        credo.load(DATA / "bootstrap.credo")
    with pytest.raises(FormatError, match=r"operator 'PublishedOperator', .*: pip install -e papers"):
        flows.load_operator(DATA / "published.flow")
