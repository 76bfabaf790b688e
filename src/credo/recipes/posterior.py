"""The belief family of a session, as a setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from credo.core.errors import CredoError, Named, Sentence, require_integer
from credo.core.integers import read_integer
from credo.recipes.language import choose, numbers, split

__all__ = ["Posterior", "PosteriorKind"]

PosteriorKind: TypeAlias = Literal["full", "diagonal", "low-rank", "particles"]
"""The families of covariances, and weighted particles in place of a mean and a covariance."""

_KINDS: tuple[PosteriorKind, ...] = get_args(PosteriorKind)
_FORMS = "full, diagonal, low-rank:RANK or particles:NUMBER"
_RANK = 10
_PARTICLES = 1000


@dataclass(frozen=True)
class Posterior:
    """The form in which the uncertainty about the P parameters is kept.

    Arguments:
        kind: "full" (P^2 numbers), "diagonal" (P), "low-rank" (P (R + 1)) or "particles" (P N).
        rank: the rank R of a low-rank posterior; 10 if it is left out.
        particles: the number N of particles; 1000 if it is left out.

    Raises:
        CredoError: the rank or the number is not a whole number that is allowed, or the family has none.

    Example:
        >>> Posterior.parse("low-rank:10")
        Posterior(kind='low-rank', rank=10, particles=None)
        >>> str(Posterior("full")), str(Posterior.parse("particles"))
        ('full', 'particles:1000')
    """

    kind: PosteriorKind
    rank: int | None = None
    particles: int | None = None

    def __post_init__(self) -> None:
        if self.kind == "particles":
            object.__setattr__(self, "particles", _PARTICLES if self.particles is None else self.particles)
            require_integer(Sentence(f"the number of {Named('posterior', self.kind)}"), self.particles, 2)
        elif self.particles is not None:
            raise CredoError(f"{Named('posterior', self.kind)} has no particles; got {self.particles!r}.")
        if self.kind == "low-rank":
            object.__setattr__(self, "rank", _RANK if self.rank is None else self.rank)
            require_integer(Sentence(f"the rank of {Named('posterior', self.kind)}"), self.rank, 1)
        elif self.rank is not None:
            raise CredoError(f"{Named('posterior', self.kind)} has no rank; got {self.rank!r}.")

    @staticmethod
    def parse(text: str | Posterior) -> Posterior:
        """Read `full`, `diagonal`, `low-rank:RANK` or `particles:NUMBER`.

        Arguments:
            text: the setting as text; a record is returned unchanged.

        Raises:
            CredoError: there is no such family, or its number is not a whole number that is allowed.
        """
        if isinstance(text, Posterior):
            return text
        name, rest = split(text)
        kind: PosteriorKind = choose("posterior", text, name, _KINDS, _FORMS)
        if kind not in ("low-rank", "particles"):
            if rest:
                raise CredoError(f"{Named('posterior', kind)} takes nothing after a colon; got {text!r}.")
            return Posterior(kind)
        what = "rank" if kind == "low-rank" else "particles"
        forms = f"{_FORMS}, with a whole number for the {what}"
        found = numbers("posterior", text, [rest] if rest else [], read_integer, forms)
        number = found[0] if found else None
        if kind == "low-rank":
            return Posterior(kind, number)
        return Posterior(kind, particles=number)

    def numbers(self, size: int) -> int:
        """The count of numbers that the family keeps of `size` parameters.

        >>> Posterior("low-rank", 10).numbers(100)
        1100
        """
        if self.particles is not None:
            return size * self.particles
        if self.kind == "full":
            return size**2
        return size * (1 + (self.rank or 1))

    def __str__(self) -> str:
        number = self.particles if self.rank is None else self.rank
        if number is None:
            return self.kind
        return f"{self.kind}:{number}"
