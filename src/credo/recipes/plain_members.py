"""Members of a bank that have no network: a memory of rows, and naive Bayes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from credo.learners import GaussianClasses, Learner, NearestNeighbours
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.class_laws import ClassLaw

__all__ = ["NearMember", "NormalMember", "PlainMember"]


@dataclass(frozen=True)
class NearMember:
    """The votes of the nearest of the latest rows (`credo.NearestNeighbours`).

    Attributes:
        decay: how fast a vote falls with the distance.
        clip: the largest size of a standardised number that this member sees.
        forgetting: the factor by which what is known of the noise shrinks at each row (regression).
        size: how many rows are remembered.

    Example:
        >>> print(NearMember())
        nearest of 1,500 rows, decay 3
    """

    decay: float = 3.0
    clip: float = 3.0
    forgetting: float = 0.98
    size: int = 1500

    calibrated: ClassVar[bool] = True
    """Whether observations say how sharp its forecasts are."""

    @property
    def kind(self) -> str:
        """The name of the group of such members."""
        return "memory"

    def learner(self, likelihood: LikelihoodBase, inputs: int) -> Learner[Any]:
        """The learner, for rows of so many inputs."""
        return NearestNeighbours(inputs, likelihood, self.size, decay=self.decay, clip=self.clip)

    def __str__(self) -> str:
        return f"nearest of {self.size:,} rows, decay {self.decay:g}"


@dataclass(frozen=True)
class NormalMember:
    """Classes whose columns are normal (`credo.GaussianClasses`). Those alike in `tied` share one program.

    Attributes:
        tied: whether all classes share the variance of a column.
        share: the power of what the columns say together; 0 leaves the base rates alone.
        clip: the largest size of a standardised number that this member sees.

    Example:
        >>> print(NormalMember(share=0.5), "|", NormalMember(tied=True), "|", NormalMember(share=0.0))
        naive Bayes, share 0.5 | naive Bayes, tied | base rates
    """

    tied: bool = False
    share: float = 1.0
    clip: float = 8.0

    forgetting: ClassVar[float] = 1.0
    """Classes have no noise."""

    calibrated: ClassVar[bool] = False
    """Whether observations say how sharp its forecasts are: `share` says it."""

    @property
    def kind(self) -> str:
        """The name of the group of such members."""
        return "naive Bayes"

    def learner(self, likelihood: LikelihoodBase, inputs: int) -> Learner[Any]:
        """The learner, for rows of so many inputs."""
        assert isinstance(likelihood, ClassLaw)
        return GaussianClasses(inputs, likelihood, self.tied, share=self.share, clip=self.clip, missing=False)

    def __str__(self) -> str:
        if not self.share:
            return "base rates"
        parts = ["naive Bayes"] + ["tied"] * self.tied
        return ", ".join(parts + [f"share {self.share:g}"] * (self.share != 1.0))


PlainMember: TypeAlias = NearMember | NormalMember
"""A member without a network."""
