"""The members of the default bank, chosen once for all data by the kind and the size of the input.

The numbers were chosen by the prequential log loss of public streams, with one list for all of them and never
one for each; docs/explanation/defaults.md names the streams, and has what each ingredient is worth.

Two kinds of members have no network: a memory of rows, and naive Bayes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

from credo.learners import GaussianClasses, Learner, NearestNeighbours
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.categorical import ClassLikelihood
from credo.recipes import defaults
from credo.recipes.language import Network
from credo.recipes.options import TaskName
from credo.recipes.tasks import RECIPES
from credo.tables.schema import TARGET_KINDS

__all__ = [
    "MOST_COMPARED",
    "POISSON",
    "Breadth",
    "Member",
    "NearMember",
    "NormalMember",
    "PlainMember",
    "TableMember",
    "hidden_units",
    "members_of",
    "networks_of",
]


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
        assert isinstance(likelihood, ClassLikelihood)
        return GaussianClasses(inputs, likelihood, self.tied, share=self.share, clip=self.clip, missing=False)

    def __str__(self) -> str:
        if not self.share:
            return "base rates"
        parts = ["naive Bayes"] + ["tied"] * self.tied
        return ", ".join(parts + [f"share {self.share:g}"] * (self.share != 1.0))


PlainMember: TypeAlias = NearMember | NormalMember
"""A member without a network."""


Breadth: TypeAlias = Literal["default", "wide"]
"""The breadth of a bank, which is the number of its members."""

LINEAR = Network("linear")
HIDDEN = Network("mlp", (20,))
FEATURES = Network("features", (200,))

MOST_INPUTS = 25
"""The most inputs for which random features are drawn: their waves fill no larger space."""


POISSON = 1e-6
"""A dispersion so small that counts are those of a Poisson, and hardly learned."""


@dataclass(frozen=True)
class Member:
    """One learner of a bank. Members with the same network differ only in their settings, so they share one
    compiled program.

    Attributes:
        network: what maps a row to the outputs.
        walk: the variance that each parameter gains at each row; 0 where the world stands still.
        prior_var: the scale of the prior variances, which are divided by the fan-in for weights.
        clip: the largest size of a standardised number that this member sees.
        forgetting: the factor by which what is known of the noise shrinks at each row (regression).
        activation: the non-linearity of a perceptron.
        noise: whether all rows share one noise variance, or each has its own by its inputs (regression).
        dispersion: what the dispersion begins with, which is learned (counts).

    Example:
        >>> print(Member(LINEAR, walk=1e-3, prior_var=16.0), "|", Member(FEATURES, prior_var=1.0, clip=8.0))
        linear, walk 0.001, prior 16 | features:200, static, prior 1, clip 8
    """

    network: Network
    walk: float = 0.0
    prior_var: float = 4.0
    clip: float = 3.0
    forgetting: float = 1.0
    activation: Literal["elu", "tanh"] = "elu"
    noise: Literal["shared", "input"] = "shared"
    dispersion: float = defaults.DISPERSION

    @property
    def cautious(self) -> bool:
        """Whether the member passes outliers by (regression).

        Where its world moves fast, it learns them: the evidence decides between an outlier and a jump.
        """
        return self.walk < 1e-3

    @property
    def kind(self) -> str:
        """The name of the group of such members, by their network."""
        return str(self.network)

    def __str__(self) -> str:
        name = f"{self.network} {self.activation}" if self.network.kind == "mlp" else str(self.network)
        parts = [name, f"walk {self.walk:g}" if self.walk else "static", f"prior {self.prior_var:g}"]
        if self.clip != 3.0:
            parts.append(f"clip {self.clip:g}")
        if self.noise == "input":
            parts.append("noise by the inputs")
        elif self.forgetting != 1.0:
            parts.append(f"noise {self.forgetting:g}")
        if self.dispersion == POISSON:
            parts.append("Poisson")
        return ", ".join(parts)


LEAST_HIDDEN = 8
"""The fewest units of a perceptron that is narrowed; beyond, one of the usual width keeps variances alone."""

TableMember: TypeAlias = Member | PlainMember
"""A member of a bank for tables."""

MOST_COMPARED = 100
"""The most inputs by which rows are compared: in a larger space the nearest rows are hardly nearer."""

_PLAIN_CLASSES: tuple[PlainMember, ...] = (
    NormalMember(tied=True, share=0.5),
    NormalMember(share=0.5),
    NormalMember(share=1.0),
    NormalMember(share=0.0),
)
_LINEAR_CLASSES = (
    Member(LINEAR, 0.0, 1.0),
    Member(LINEAR, 0.0, 16.0),
    Member(LINEAR, 1e-4, 16.0),
    Member(LINEAR, 1e-3, 16.0),
    Member(LINEAR, 1e-2, 16.0),
    Member(LINEAR, 1e-1, 16.0),
)
_HIDDEN_CLASSES = (
    Member(HIDDEN, 1e-4, 16.0),
    Member(HIDDEN, 1e-4, 16.0, activation="tanh"),
    Member(HIDDEN, 1e-3, 16.0),
)
_LINEAR_NUMBERS = (
    Member(LINEAR, 0.0, 1.0, forgetting=0.97),
    Member(LINEAR, 0.0, 16.0, clip=8.0, forgetting=0.99),
    Member(LINEAR, 1e-4, 16.0, clip=8.0, forgetting=0.97),
    Member(LINEAR, 1e-3, 16.0, forgetting=0.97),
    Member(LINEAR, 1e-2, 16.0, forgetting=0.9),
    Member(LINEAR, 1e-1, 16.0, forgetting=0.9),
    Member(LINEAR, 1e-1, 16.0, clip=8.0, forgetting=0.97),
)
_HIDDEN_NUMBERS = (
    Member(HIDDEN, 1e-4, 16.0, forgetting=0.97, activation="tanh"),
    Member(HIDDEN, 0.0, 16.0, forgetting=0.99),
    Member(HIDDEN, 1e-3, 64.0, forgetting=0.97),
    Member(HIDDEN, 0.0, 4.0, activation="tanh", noise="input"),
)
_WIDE_CLASSES = (
    Member(HIDDEN, 0.0, 4.0),
    Member(HIDDEN, 1e-5, 64.0),
    Member(HIDDEN, 1e-3, 16.0, activation="tanh"),
)
_WIDE_NUMBERS = (
    Member(HIDDEN, 0.0, 4.0, forgetting=0.99),
    Member(HIDDEN, 0.0, 64.0, forgetting=0.99),
    Member(HIDDEN, 1e-4, 64.0, forgetting=0.97, activation="tanh"),
)
_DISPERSED = (0.0, 1e-3, 1e-2)
"""The walks of the members whose counts have more spread than a Poisson."""

_WAVES = (Member(FEATURES, 0.0, 1.0, forgetting=0.99),)


def members_of(
    task: TaskName, inputs: int, outputs: int, breadth: Breadth = "default"
) -> tuple[TableMember, ...]:
    """The members of a bank for a task and so many inputs and outputs; "wide" has more of each kind."""
    plain: tuple[PlainMember, ...] = _PLAIN_CLASSES if TARGET_KINDS[task].classed else ()
    if inputs <= MOST_COMPARED:
        plain += (NearMember(decay=6.0 if plain else 2.0),)
    return _with_networks(task, inputs, outputs, breadth) + plain


def networks_of(members: Sequence[object]) -> list[Network]:
    """The networks of those members that have one, each once, in their order."""
    return list(dict.fromkeys(member.network for member in members if isinstance(member, Member)))


def hidden_units(inputs: int, outputs: int) -> int:
    """The width of perceptrons: 20 for one output and 50 for more, or as many as may keep a covariance each
    (`defaults.UNIT_COST`) if these are `LEAST_HIDDEN` or more.
    """
    usual = 50 if outputs > 2 else 20
    costs = (width * (inputs + 1) ** 2 + outputs * (width + 1) ** 2 for width in range(usual, 0, -1))
    most = next((usual - k for k, cost in enumerate(costs) if cost <= defaults.UNIT_COST), 0)
    if most >= LEAST_HIDDEN:
        return most
    return usual


def _with_networks(task: TaskName, inputs: int, outputs: int, breadth: Breadth) -> tuple[Member, ...]:
    recipe = RECIPES[task]
    wide = breadth == "wide"
    numbers = not recipe.noiseless
    deep: tuple[Member, ...] = _HIDDEN_NUMBERS if numbers else _HIDDEN_CLASSES
    if wide:
        deep += _WIDE_NUMBERS if numbers else _WIDE_CLASSES
    hidden = Network("mlp", (hidden_units(inputs, outputs),))
    members: tuple[Member, ...] = _LINEAR_NUMBERS if numbers else _LINEAR_CLASSES
    members += tuple(replace(member, network=hidden) for member in deep)
    if wide and outputs == 1 and inputs <= MOST_INPUTS:
        members += _WAVES
    if recipe.prior_var is not None:
        members = tuple(dict.fromkeys(replace(member, prior_var=recipe.prior_var) for member in members))
    if recipe.dispersion is None:
        return members
    poisson = tuple(replace(member, dispersion=POISSON) for member in members)
    return poisson + tuple(one for one in members if one.walk in _DISPERSED and one.activation == "elu")
