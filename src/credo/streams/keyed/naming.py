"""The keys of rows: integers, text and bytes, as Python values and as one vector of bytes."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from credo.core.errors import CredoError
from credo.core.types import ArrayLike

__all__ = ["KeyName", "from_text", "key_names", "salt", "to_bytes", "to_text"]

KeyName: TypeAlias = int | str | bytes
"""The key of a row."""

_KINDS = {int, str, bytes}


def key_names(keys: Sequence[KeyName] | Iterable[KeyName] | ArrayLike) -> list[KeyName]:
    """The keys as a list of integers, text or bytes; anything else is refused with its row."""
    if isinstance(keys, int | str | bytes):
        raise CredoError(f"keys must have one entry a row; got {keys!r}.", field="keys")
    whole: Any = keys
    if getattr(whole, "ndim", 1) != 1:
        raise CredoError(f"keys must have one entry a row; got shape {whole.shape}.", field="keys")
    names: list[Any] = whole.tolist() if hasattr(keys, "tolist") else list(whole)
    if set(map(type, names)) <= _KINDS:
        return names
    return [_name(row, one) for row, one in enumerate(names)]


def _name(row: int, value: Any) -> KeyName:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, int | str | bytes) and not isinstance(plain, bool):
        return plain
    if plain is None or plain != plain:
        raise CredoError(f"keys[{row}] is missing: every row must have a key.", field="keys")
    raise CredoError(f"keys[{row}] must be an integer, text or bytes; got {plain!r}.", field="keys")


def to_bytes(key: KeyName) -> bytes:
    """A key as bytes, different for different keys."""
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogatepass")
    return b"i%d" % key


def to_text(keys: Sequence[KeyName | None]) -> bytes:
    """Keys as JSON, in which bytes are lists and None, for no key, is null."""
    return json.dumps(list(keys), default=_spelled, separators=(",", ":")).encode()


def _spelled(key: bytes) -> list[str]:
    return [key.decode("latin-1")]


def from_text(text: bytes) -> list[KeyName | None]:
    """The keys again."""
    keys: list[Any] = json.loads(text)
    return [key[0].encode("latin-1") if isinstance(key, list) else key for key in keys]


@functools.lru_cache(maxsize=2**16, typed=True)
def salt(key: KeyName) -> int:
    """A number of 32 bits by which keys draw different random numbers, the same in every process."""
    return int.from_bytes(hashlib.blake2b(to_bytes(key), digest_size=4).digest(), "little")
