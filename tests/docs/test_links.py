"""Links lead somewhere, every page is in the navigation, and every public name is in the reference."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, ROOT, pages

import credo

_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?)(?: +\{#([\w-]+)\})?$", re.MULTILINE)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_ROOMS = sorted(path.parent.name for path in (ROOT / "src/credo").glob("*/__init__.py"))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}, which is not there"
        if anchor and target.suffix == ".md":
            assert anchor in _anchors(target.read_text(encoding="utf-8")), (
                f"{page.name}: no heading for {link}"
            )


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    whole = re.findall(r"`((?:src|tests|papers|benchmarks|docs)/[\w/.-]+)`", text)
    inner = re.findall(r"`((?:" + "|".join(_ROOMS) + r")/[\w/]+\.py)`", text)
    named = [*whole, *(f"src/credo/{path}" for path in inner)]
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_names_on_a_page_are_public(page: Path) -> None:
    names = set(re.findall(r"\bcredo\.([A-Za-z_]\w*)", page.read_text(encoding="utf-8")))
    absent = names - set(dir(credo)) - set(_ROOMS)
    assert not absent, f"{page.name} names credo.{', credo.'.join(sorted(absent))}, which are not public"


def _anchors(text: str) -> set[str]:
    found = set()
    for title, given in _HEADING.findall(text):
        slug = re.sub(r"[^\w\s-]", "", title.lower()).strip()
        found.add(given or re.sub(r"[\s]+", "-", slug))
    return found


def test_every_page_is_in_the_navigation() -> None:
    navigation = set(
        re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1])
    )
    assert navigation == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}


def _documented() -> set[str]:
    """The names that reference pages show: `::: path`, a `members` list, or all of a room."""
    shown: set[str] = set()
    for page in (DOCS / "reference").glob("*.md"):
        for path, options in re.findall(
            r"^::: (\S+)\n((?: +.*\n)*)", page.read_text(encoding="utf-8") + "\n", re.MULTILINE
        ):
            shown.add(path.rsplit(".", 1)[-1])
            shown |= set(re.findall(r"^ +- (\w+)$", options, re.MULTILINE))
            whole_room = path.count(".") == 1 or path.startswith(("credo.core.", "credo.bandits."))
            if whole_room and not re.search(r"^ +members:", options, re.MULTILINE):
                shown |= set(importlib.import_module(path).__all__)
    return shown


def test_every_public_name_is_in_the_reference() -> None:
    absent = set(dir(credo)) - _documented() - {"__version__", "core"}
    assert not absent, f"these are not in docs/reference: {sorted(absent)}"


@pytest.mark.parametrize("room", ["credo_papers", "credo_papers.baselines", "credo_papers.published_flow"])
def test_every_public_name_of_the_papers_is_in_the_reference(room: str) -> None:
    absent = set(importlib.import_module(room).__all__) - _documented()
    assert not absent, f"these are not in docs/reference: {sorted(absent)}"


_DECIDING = ("designs", "environments", "evaluation", "logs", "optimize", "policies", "service")


@pytest.mark.parametrize("room", [*_ROOMS, *(f"bandits.{room}" for room in _DECIDING)])
def test_every_public_name_of_a_room_is_in_the_reference(room: str) -> None:
    if not (DOCS / "reference" / f"{room.split('.')[0]}.md").exists():
        pytest.skip(f"{room} has no page of its own")
    absent = set(getattr(importlib.import_module(f"credo.{room}"), "__all__", ())) - _documented()
    assert not absent, f"these are not in docs/reference: {sorted(absent)}"
