"""Every Python block of the documentation runs, and prints what the page says.

The blocks of a page share one namespace and run in an empty folder, with JAX as users have it: single
precision, and no strictness about dtypes and ranks. `tests/docs/fill.py` writes again what pages say.
The gallery has a test of its own, since all its pictures take minutes.
"""

from __future__ import annotations

import re
from pathlib import Path

import jax
import pytest
from tests.docs.pages import Block, blocks, pages
from tests.needed import needs_what_it_imports

PAGES = {"/".join(page.parts[-2:]): page for page in pages() if blocks(page) and page.name != "gallery.md"}
EXACT = {"explanation/correctness.md", "how-to/decide.md"}
"""Pages whose numbers hang on rounding errors: bits, or a search that stops early."""

FIRST = {"README.md", "tutorial.md", "tutorial-bandit.md"}
"""What a newcomer reads first, and `make test` runs."""

_NUMBER = re.compile(r"[-+]?(?:\d+\.\d+|\d+)(?:e[-+]?\d+)?")


def marks(name: str) -> list[pytest.MarkDecorator]:
    """The tier of a page."""
    if name in EXACT:
        return [pytest.mark.optimised]
    return [] if PAGES[name].name in FIRST else [pytest.mark.slow]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in PAGES])
def test_blocks_run_and_print_what_the_page_says(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for block in blocks(PAGES[name]):
        needs_what_it_imports(block.code)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    with jax.enable_x64(False), jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        for block in blocks(PAGES[name]):
            capsys.readouterr()
            # the newlines make the line numbers of a traceback those of the page
            exec(compile("\n" * (block.line - 1) + block.code, str(PAGES[name]), "exec"), namespace)
            _compare(capsys.readouterr().out, block, name)


def _compare(said: str, block: Block, name: str) -> None:
    """The same words, and numbers within 2% (last digits differ between processors and versions)."""
    if block.printed is None:
        return
    where = f"{name}, line {block.line}: it printed\n{said}"
    assert _words(said) == _words(block.printed), where
    for got, wanted in zip(_numbers(said), _numbers(block.printed), strict=True):
        assert got == pytest.approx(wanted, rel=0.02, abs=0.011), where


def _words(text: str) -> list[str]:
    return re.sub(r"[\[\]]", " ", _NUMBER.sub("0", text)).split()


def _numbers(text: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(text)]
