"""The members of the default bank for images, chosen once for all sets of images.

They were chosen on training images alone: by the prequential log loss of 2,000 of them, in three orders, of
MNIST and of Fashion-MNIST, with one list for both. docs/explanation/defaults.md has what else was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.adapt import Calibrated, Each
from credo.covariances import LowRank
from credo.learners import RecursiveLearner
from credo.likelihoods.base import LikelihoodBase
from credo.models import MLP, Linear, Model, OrientedEdges
from credo.recipes import defaults
from credo.recipes.auto import Auto
from credo.recipes.language import Network
from credo.recipes.members import Breadth
from credo.recipes.options import TaskName
from credo.recipes.tasks import RECIPES
from credo.tables.schema import TARGET_KINDS

__all__ = ["IMAGE_MEMBERS", "MORE_MEMBERS", "ImageMember", "image_bank", "image_members_of"]

Sight: TypeAlias = Literal["edges", "pixels"]
"""The view that a member has of an image: `credo.models.OrientedEdges` of it, or its pixels."""


@dataclass(frozen=True)
class ImageMember:
    """One learner of a bank for images. Members that differ only in their settings share one compiled
    program.

    Attributes:
        network: the network from the inputs that it sees to the outputs, "linear" or "mlp".
        prior_var: the prior variance of every parameter.
        rank: how many directions are kept of the precision, beside its diagonal.
        sight: what the member sees.

    Example:
        >>> print(ImageMember(Network("linear"), prior_var=0.1), "|", IMAGE_MEMBERS[0])
        linear of edges, prior 0.1, rank 20 | linear of edges, prior 0.06, rank 20
    """

    network: Network
    prior_var: float
    rank: int = 20
    sight: Sight = "edges"

    @property
    def kind(self) -> str:
        """The name of the group of such members, by their network."""
        return str(self.network)

    def __str__(self) -> str:
        return f"{self.network} of {self.sight}, prior {self.prior_var:g}, rank {self.rank}"


IMAGE_MEMBERS: tuple[ImageMember, ...] = (
    ImageMember(Network("linear"), 0.06),
    ImageMember(Network("linear"), 0.3),
)
"""The members of the default bank."""

MORE_MEMBERS: tuple[ImageMember, ...] = (
    ImageMember(Network("mlp", (50,)), 0.03, rank=10),
    ImageMember(Network("mlp", (50, 50)), 0.01, rank=10, sight="pixels"),
)
"""The further members of a wide bank."""


SHARPNESS = (1.2, 1.6)
"""The factors by which classes may be forecast more sharply: the mean is on its way from the prior."""


def image_members_of(breadth: Breadth = "default") -> tuple[ImageMember, ...]:
    """The members of a bank for images: "default", or "wide" with perceptrons of edges and of pixels besides.
    These take more time than all others, and a linear network of edges is as good for the first 8,000 digits.
    """
    if breadth == "wide":
        return IMAGE_MEMBERS + MORE_MEMBERS
    return IMAGE_MEMBERS


def image_bank(
    members: Sequence[ImageMember],
    likelihood: LikelihoodBase,
    shape: tuple[int, ...],
    outputs: int,
    seed: int,
    *,
    task: TaskName = "classification",
    start: float | None = None,
) -> Auto:
    """The bank of some members for images (height, width) or (height, width, channels); see `bank_of`."""
    recipe = RECIPES[task]
    sharpness = SHARPNESS if TARGET_KINDS[task].classed else ()
    learners = []
    begins = []
    for member in members:
        widths = member.network.widths
        net = MLP(outputs, widths, defaults.activation(images=True)) if widths else Linear(outputs)
        seen = OrientedEdges(net) if member.sight == "edges" else net
        inner = RecursiveLearner(Model(seen, likelihood), LowRank(member.rank))
        learners.append(
            Calibrated(
                inner,
                recipe.scales,
                recipe.tails,
                defaults.SCALE_SWITCHING,
                sharpness,
                plugin=recipe.plugin,
            )
        )
        params = seen.init(jax.random.key(seed), shape)
        begin = recipe.begin(start)
        if begin is not None:
            params[-1]["b"] = params[-1]["b"] + jnp.asarray(begin, jnp.float32)
        begins.append(params)
    spread = Each(tuple(member.prior_var for member in members))
    return Auto(learners, defaults.SWITCHING, begin=Each(tuple(begins)), spread=spread)
