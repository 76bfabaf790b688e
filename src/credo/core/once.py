"""JSON objects of which no key comes twice."""

from __future__ import annotations

__all__ = ["KeyTwice", "once"]


class KeyTwice(ValueError):
    """An object of JSON has a key twice; the message says which, without a subject."""


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of its pairs, for the `object_pairs_hook` of `json`, which alone would take the last value of
    a key that comes twice: nobody knows which of the two is meant.
    """
    made = dict(pairs)
    if len(made) < len(pairs):
        met: set[str] = set()
        for key, _ in pairs:
            if key in met:
                raise KeyTwice(f"has the key {key!r:.60} twice")
            met.add(key)
    return made
