"""Bearer tokens: a file holds their SHA-256 and what each allows, never the tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from credo.core.errors import CredoError, DataError, Named
from credo.serve.gate import is_loopback
from credo.serve.problems import Problem

__all__ = ["SCOPES", "Tokens", "require_loopback"]

SCOPES = ("read", "keep", "learn", "admin")
"""The rights that a token may give: to look and to forecast; to let a forecast be kept by its id; to learn
and to decide, and to let forecasts be kept; to add and to remove models."""


class Tokens:
    """The rights of each token.

    Arguments:
        scopes: what each token allows, by its SHA-256 in hexadecimal digits; None if anybody may do all.
    """

    def __init__(self, scopes: Mapping[str, frozenset[str]] | None = None) -> None:
        self.scopes = scopes

    @staticmethod
    def read(path: Path) -> Tokens:
        """The tokens of a file, whose lines have a SHA-256, a blank, and scopes with commas between."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"cannot read the tokens {path}: {error}.", field="tokens") from None
        scopes: dict[str, frozenset[str]] = {}
        for number, line in enumerate(lines, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            digest = words[0].lower()
            allowed = frozenset(words[-1].split(","))
            hexadecimal = len(digest) == 64 and set(digest) <= set("0123456789abcdef")
            if len(words) != 2 or not hexadecimal or not allowed <= set(SCOPES):
                raise DataError(
                    f"line {number} of {path} must hold the SHA-256 of a token and, after a blank, some of "
                    f"{', '.join(SCOPES)} with commas between.",
                    field="tokens",
                )
            scopes[digest] = allowed
        if not scopes:
            raise DataError(f"{path} holds no token.", field="tokens")
        return Tokens(scopes)

    def require(self, header: str | None, scope: str) -> None:
        """Refuse a request whose `Authorization` does not allow something."""
        if self.scopes is None:
            return
        kind, _, token = (header or "").partition(" ")
        allowed = self.scopes.get(hashlib.sha256(token.strip().encode()).hexdigest())
        if kind.lower() != "bearer" or allowed is None:
            what = "is missing" if not header else "is not one of those that are known"
            raise Problem(401, f"Authorization must be Bearer and a token; it {what}.", field="Authorization")
        kept = scope == "keep" and "learn" in allowed
        if scope not in allowed and not kept:
            raise Problem(
                403, f"the token must have the scope {scope}, which it lacks.", field="Authorization"
            )


def require_loopback(host: str) -> None:
    """Refuse an address that others can reach, since there are no tokens."""
    if not is_loopback(host):
        raise CredoError(
            f"host must be 127.0.0.1, ::1 or localhost if there are no tokens; got {host!r}. Give a "
            f"file with {Named('tokens')}.",
            field="host",
        )
