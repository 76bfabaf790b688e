"""The members of the default bank, chosen once for all data by the kind and the size of the input.

The numbers were chosen by the prequential log loss of public streams, with one list for all of them and never
one for each; docs/explanation/defaults.md names the streams, and has what each ingredient is worth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from credo.sessions.architecture import Network
from credo.sessions.settings import TaskName

__all__ = ["Breadth", "Member", "members_of"]

Breadth: TypeAlias = Literal["default", "wide"]
"""How many members a bank has."""

LINEAR, HIDDEN, FEATURES = Network("linear"), Network("mlp", (20,)), Network("features", (200,))

MOST_INPUTS = 25
"""The most inputs for which random features are drawn: their waves fill no larger space."""


@dataclass(frozen=True)
class Member:
    """One learner of a bank. Those with one network differ in their numbers only, and share one program.

    Attributes:
        network: what maps a row to the outputs.
        walk: the variance that each parameter gains at each row; 0 where the world stands still.
        prior_var: the scale of the prior variances, which are divided by the fan-in for weights.
        clip: the largest size of a standardised number that this member sees.
        forgetting: the factor by which what is known of the noise shrinks at each row (regression).

    Example:
        >>> print(Member(LINEAR, walk=1e-3, prior_var=16.0), "|", Member(FEATURES, prior_var=1.0, clip=8.0))
        linear, walk 0.001, prior 16 | features:200, static, prior 1, clip 8
    """

    network: Network
    walk: float = 0.0
    prior_var: float = 4.0
    clip: float = 3.0
    forgetting: float = 1.0

    def __str__(self) -> str:
        parts = [str(self.network), f"walk {self.walk:g}" if self.walk else "static", f"prior {self.prior_var:g}"]
        if self.clip != 3.0:
            parts.append(f"clip {self.clip:g}")
        if self.forgetting != 1.0:
            parts.append(f"noise {self.forgetting:g}")
        return ", ".join(parts)


_LINEAR_CLASSES = (
    Member(LINEAR, 0.0, 1.0),
    *(Member(LINEAR, walk, 16.0) for walk in (0.0, 1e-4, 1e-3, 1e-2, 1e-1)),
)
_HIDDEN_CLASSES = (
    Member(HIDDEN, 0.0, 4.0),
    Member(HIDDEN, 1e-4, 4.0),
    Member(HIDDEN, 1e-4, 16.0),
    Member(HIDDEN, 1e-3, 16.0),
)
_WAVES_CLASSES = (Member(FEATURES, 0.0, 1.0),)
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
    Member(HIDDEN, 0.0, 4.0, forgetting=0.99),
    Member(HIDDEN, 1e-4, 16.0, forgetting=0.97),
    Member(HIDDEN, 1e-3, 64.0, forgetting=0.97),
)
_WAVES_NUMBERS = (Member(FEATURES, 0.0, 1.0, forgetting=0.99),)


def members_of(task: TaskName, inputs: int, outputs: int, breadth: Breadth = "default") -> tuple[Member, ...]:
    """The members of a bank.

    Arguments:
        task: what is predicted.
        inputs: the number of inputs.
        outputs: the number of outputs of the networks.
        breadth: "default", or "wide" for more of each kind.

    Example:
        >>> [str(member.network) for member in members_of("classification", 60, 9)][-1]
        'mlp:50'
    """
    hidden = Network("mlp", (50,) if outputs > 1 else (20,))
    if task == "regression":
        members = (*_LINEAR_NUMBERS, *(replace(member, network=hidden) for member in _HIDDEN_NUMBERS))
    else:
        members = (*_LINEAR_CLASSES, *(replace(member, network=hidden) for member in _HIDDEN_CLASSES))
    if outputs == 1 and inputs <= MOST_INPUTS:
        members += _WAVES_NUMBERS if task == "regression" else _WAVES_CLASSES
    return members
