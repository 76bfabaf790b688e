"""Settings as users know them, each declared once: beside the field whose name, type and default it has.

    seed: Annotated[int | None, Setting("The seed of all draws; 0 by default.", high=LARGEST_SEED)] = None

The flag of the command line, the check of a keyword and the document of the service are made of it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from credo.core.errors import (
    CredoError,
    require_choice,
    require_integer,
    require_nonnegative,
    require_positive,
)
from credo.core.integers import read_integer

__all__ = ["LISTS", "Setting", "require_settings", "settings_of"]

LISTS = (Sequence[int], Sequence[str])
"""The kinds of settings that are several values."""

WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    Sequence[int]: "whole numbers",
    Sequence[str]: "names",
}
"""A setting of each kind, in words."""


@dataclass(frozen=True)
class Setting:
    """The values that a setting may have, and its purpose. None is always allowed, and stands for no choice.

    Arguments:
        help: what it is for.
        low: the least number.
        high: the greatest number, if there is one.
        positive: whether a number must be above 0.
        choices: the names of which it is one; of a number, the names that may stand in its place.
        kind: what its values are, which `settings_of` reads from the annotation of the field.
    """

    help: str = ""
    low: float = 0
    high: float | None = None
    positive: bool = False
    choices: tuple[str, ...] = ()
    kind: Any = str

    def require(self, field: str, value: Any) -> None:
        """Refuse a value that the setting may not have."""
        if value is None:
            return
        if self.kind in LISTS and (isinstance(value, str) or not isinstance(value, Sequence)):
            raise CredoError.must_be(field, f"a list of {WORDS[self.kind]}", value)
        if self.kind in (int, Sequence[int]):
            for number in [value] if self.kind is int else value:
                require_integer(field, number, self.low, self.high)
        elif self.kind is float:
            self._require_number(field, value)
        elif self.choices:
            require_choice(field, value, self.choices)

    def _require_number(self, field: str, value: Any) -> None:
        if value in self.choices:
            return
        if isinstance(value, str):
            raise CredoError.must_be(field, self._words, value)
        (require_positive if self.positive else require_nonnegative)(field, value)
        if self.high is not None and not self.low <= value <= self.high:
            raise CredoError.must_be(field, f"in {self.low:g}..{self.high:g}", value)

    def read(self, field: str, text: str) -> Any:
        """The value that a text spells, such as 1e3 for a whole number, or names between commas."""
        try:
            value = self._parse(text)
        except ValueError:
            raise CredoError.must_be(field, self._words, text) from None
        self.require(field, value)
        return value

    def _parse(self, text: str) -> Any:
        word = text.strip().lower()
        if self.kind is int:
            return read_integer(text)
        if self.kind is float:
            if word in self.choices:
                return word
            return float(word)
        if self.kind in LISTS:
            parts = [part.strip() for part in text.split(",") if part.strip()]
            if self.kind == Sequence[str]:
                return parts
            return [read_integer(part) for part in parts]
        if self.kind is Path:
            return Path(text)
        return text

    @property
    def _words(self) -> str:
        """The texts that can be read, in words."""
        between = " separated by commas" if self.kind in LISTS else ""
        return ", or ".join((WORDS[self.kind] + between, *self.choices))


@functools.cache
def settings_of(record: type) -> dict[str, Setting]:
    """The settings among the fields of a record, by name."""
    settings = {}
    for name, hint in get_type_hints(record, include_extras=True).items():
        for note in getattr(hint, "__metadata__", ()):
            if isinstance(note, Setting):
                settings[name] = dataclasses.replace(note, kind=_kind(hint.__origin__))
    return settings


def _kind(hint: Any) -> Any:
    """The kind of an annotation's values: the part of it that a text must be read as."""
    parts = get_args(hint) or (hint,)
    found = [one for one in (*LISTS, bool, int, float, Path) if one in (hint, *parts)]
    if found:
        return found[0]
    return str


def require_settings(record: object) -> None:
    """Refuse a record one of whose settings may not be what it is."""
    kind: type = type(record)
    for name, setting in settings_of(kind).items():
        setting.require(name, getattr(record, name))
