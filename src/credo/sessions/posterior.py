"""The belief family of a session, as a setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from credo.core.errors import CredoError, require_integer
from credo.core.integers import read_integer
from credo.sessions.language import choose, split

__all__ = ["Posterior", "PosteriorKind"]

PosteriorKind: TypeAlias = Literal["full", "diagonal", "low-rank"]
"""The families of covariances."""

_KINDS: tuple[PosteriorKind, ...] = get_args(PosteriorKind)
_FORMS = "full, diagonal or low-rank:RANK"
_RANK = 10


@dataclass(frozen=True)
class Posterior:
    """What is kept of the covariance of the P parameters.

    Arguments:
        kind: "full" (P^2 numbers), "diagonal" (P) or "low-rank" (P (R + 1)).
        rank: the rank R of a low-rank posterior; 10 where it is left out.

    Raises:
        CredoError: the rank is not a whole number above 0, or the family has none.

    Example:
        >>> Posterior.parse("low-rank:10")
        Posterior(kind='low-rank', rank=10)
        >>> str(Posterior("full"))
        'full'
    """

    kind: PosteriorKind
    rank: int | None = None

    def __post_init__(self) -> None:
        if self.kind == "low-rank":
            object.__setattr__(self, "rank", _RANK if self.rank is None else self.rank)
            require_integer("the rank of `posterior='low-rank'`", self.rank, 1)
        elif self.rank is not None:
            raise CredoError(f"`posterior={self.kind!r}` has no rank; got {self.rank!r}.")

    @staticmethod
    def parse(text: str | Posterior) -> Posterior:
        """Read `full`, `diagonal` or `low-rank:RANK`.

        Arguments:
            text: the setting as text; a record is returned unchanged.

        Raises:
            CredoError: there is no such family, or the rank is not a whole number above 0.
        """
        if isinstance(text, Posterior):
            return text
        name, rest = split(text)
        kind: PosteriorKind = choose("posterior", text, name, _KINDS, _FORMS)
        if kind != "low-rank":
            if rest:
                raise CredoError(f"`posterior={kind!r}` takes nothing after a colon; got {text!r}.")
            return Posterior(kind)
        rank = read_integer(rest) if rest else None
        if rest and rank is None:
            raise CredoError(
                f"posterior must be {_FORMS}, with a whole number for the rank; got {text!r}.",
                field="posterior",
            )
        return Posterior(kind, rank)

    def numbers(self, size: int) -> int:
        """How many numbers the family keeps of `size` parameters.

        >>> Posterior("low-rank", 10).numbers(100)
        1100
        """
        return size**2 if self.kind == "full" else size * (1 + (self.rank or 1))

    def __str__(self) -> str:
        return self.kind if self.rank is None else f"{self.kind}:{self.rank}"
