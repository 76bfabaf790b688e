"""All streams by name, and the groups that the tables and `--streams` know.

`chosen` and `held` are in `default_streams.py`, `unseen` in `default_unseen.py`, `wide` in `default_wide.py`.
A dirty copy of a stream is called `NAME~KIND`, and those of all unseen streams are the group `unseen~KIND`.
"""

from __future__ import annotations

from collections.abc import Iterable

from default_dirty import KINDS, Kind, dirty
from default_streams import CHOSEN, HELD, Stream
from default_unseen import UNSEEN
from default_wide import WIDE

__all__ = ["GROUPS", "STANDARD", "clean_of", "dirt_of", "group_of", "stream", "streams_of"]

_CLEAN = {"chosen": CHOSEN, "held": HELD, "unseen": UNSEEN, "wide": WIDE}

GROUPS: dict[str, list[str]] = {group: list(sources) for group, sources in _CLEAN.items()} | {
    f"unseen~{kind}": [f"{name}~{kind}" for name in UNSEEN] for kind in KINDS
}
"""The names of the streams of each group."""

STANDARD = ("chosen", "held")
"""The groups that are run where none is named: they need no package but River."""

_LOADERS = {name: load for sources in _CLEAN.values() for name, load in sources.items()}


def clean_of(name: str) -> str:
    """The stream of which this is a dirty copy, or the stream itself."""
    return name.partition("~")[0]


def dirt_of(name: str) -> Kind | None:
    """The kind of dirt of a stream by its name."""
    _, mark, word = name.partition("~")
    return next((kind for kind in KINDS if mark and kind == word), None)


def group_of(name: str) -> str:
    """The group of a stream: that of the clean one, and the kind of its dirt.

    Raises:
        KeyError: there is no stream of this name.
    """
    group = next((group for group, sources in _CLEAN.items() if clean_of(name) in sources), None)
    dirt = dirt_of(name)
    if group is None or ("~" in name and dirt is None):
        raise KeyError(name)
    if dirt is None:
        return group
    return f"{group}~{dirt}"


def stream(name: str) -> Stream:
    """The rows of a stream by its name; those of a dirty copy have seed 0."""
    group_of(name)
    rows = _LOADERS[clean_of(name)]()
    dirt = dirt_of(name)
    if dirt is None:
        return rows
    return dirty(rows, dirt)


def streams_of(words: Iterable[str]) -> list[str]:
    """The names of the streams of groups and of streams.

    Raises:
        KeyError: there is no group and no stream of such a name.
    """
    names = [name for word in words for name in GROUPS.get(word, [word])]
    for name in names:
        group_of(name)
    return names
