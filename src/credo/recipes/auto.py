"""The default learner: a bank of calibrated members, weighed by evidence as the stream goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from credo.adapt import Calibrated, Each, Experts, Monitored, Stacked
from credo.beliefs import InverseGamma
from credo.core.errors import require_choice, require_integer
from credo.core.records import record, replace
from credo.core.types import PyTree
from credo.dynamics import PriorBound, RandomWalk
from credo.learners import Learner, RecursiveLearner
from credo.likelihoods import Bernoulli, Categorical, OpenCategorical
from credo.models import Clipped, Model
from credo.recipes import defaults, networks
from credo.recipes.language import Network
from credo.recipes.members import Breadth, Member, TableMember, members_of
from credo.recipes.networks import Origin, family_of, outputs_of
from credo.recipes.options import TaskName
from credo.recipes.tasks import RECIPES, Noise
from credo.tables.schema import TARGET_KINDS

__all__ = ["Auto", "auto", "bank_of", "combined"]


@record
class Auto(Experts[Any]):
    """A bank of learners that knows where each of them begins, so that `init()` takes no arguments.

    Attributes:
        begin: the prior means of the members, one tree a member.
        spread: their prior variances.

    Example:
        >>> learner = auto(3, "classification")
        >>> bank = learner.learner.learner
        >>> isinstance(bank, Auto), len(learner.init().weights) == bank.size
        (True, True)
    """

    begin: Each = Each((0.0,))
    spread: Each = Each((1.0,))

    def init(self, params: PyTree = None, *, var: PyTree = None, **others: PyTree) -> Any:
        """The first belief: each member at its own prior, with equal weights.

        Arguments:
            params, var: other prior means and variances than the members' own, where there are any.
        """
        params = self.begin if params is None else params
        return super().init(params, var=self.spread if var is None else var, **others)


def auto(
    inputs: int,
    task: TaskName = "regression",
    classes: int = 2,
    *,
    breadth: Breadth = "default",
    seed: int = 0,
) -> Learner[Any]:
    """The bank of learners that `credo learn` uses by default, for standardised inputs.

    Its members differ in their network (linear, perceptron, random waves), in how fast their world moves, in
    their prior, and in what they take for an outlier; others have no network, but a memory of the latest rows
    whose nearest ones vote, or classes whose columns are normal. Networks forecast as widely as observations
    have shown that they should (`credo.Calibrated`). The mixture trusts those members that predicted well,
    and lets another take over at a rate that is weighed, too (`credo.Experts`). Beside it stands a regression
    on what the members forecast (`credo.Stacked`; not for counts), and the probability that losses became
    larger (`credo.Monitored`). docs/explanation/defaults.md has measurements.

    Arguments:
        inputs: the number of inputs, numbers with mean 0 and variance 1.
        task: one of `credo.tables.schema.TARGET_KINDS`; "regression" takes targets of mean 0 and variance 1,
            and "classification" labels from 0.
        classes: the number of classes.
        breadth: "default", or "wide" for more members.
        seed: the seed of the initial weights and of the random waves.

    Returns:
        A learner whose `init()` needs no parameters.

    Raises:
        CredoError: a number is out of its range, or there is no such task or breadth.

    Cost: the sum of the members' costs: P^2 numbers a row for those with a full covariance.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.auto(inputs=2)
        >>> belief, info = learner.step(learner.init(), jnp.ones(2), 1.0)
        >>> bool(info.ok), belief.weights.shape == (learner.learner.learner.size,)
        (True, True)
    """
    require_integer("inputs", inputs, 1)
    require_integer("classes", classes, 2)
    require_integer("seed", seed, 0)
    require_choice("task", task, TARGET_KINDS)
    require_choice("breadth", breadth, ("default", "wide"))
    members = members_of(task, inputs, outputs_of(task, classes), breadth)
    return combined(bank_of(members, (inputs,), classes, seed, task=task), task, classes)


def _learned_noise(member: Member) -> Noise:
    """The noise variance that a member learns: one number that is forgotten, or one by the inputs."""
    if member.noise == "input":
        return "input"
    return _noise_of(member.forgetting)


def _noise_of(forgetting: float) -> InverseGamma:
    """The prior of a noise variance that is forgotten at a rate."""
    shape, scale, _ = defaults.NOISE
    return InverseGamma(shape, scale, forgetting)


def bank_of(
    members: Sequence[TableMember],
    shape: tuple[int, ...],
    classes: int,
    seed: int,
    *,
    task: TaskName,
    first: int = 0,
    start: float | None = None,
    origin: Origin | None = None,
) -> Auto:
    """The bank of some members for a task, see `build`; covariances depend on the first classes alone."""
    origin = origin or Origin(math.prod(shape), math.prod(shape))
    outputs = outputs_of(task, classes, first)
    least = outputs_of(task, first or classes)
    learners = []
    begins = []
    spreads = []
    drawn: dict[tuple[Network, bool, float], Any] = {}
    recipe = RECIPES[task]
    for member in members:
        if not isinstance(member, Member):
            distribution = recipe.likelihood(_noise_of(member.forgetting), classes, first)
            one = member.learner(distribution, math.prod(shape))
            learners.append(_calibrated(one, task, plain=True) if member.calibrated else one)
            begins.append(0.0)
            spreads.append(1.0)
            continue
        distribution = recipe.likelihood(_learned_noise(member), classes, first)
        own = member.noise == "input"
        net = networks.network(member.network, outputs + own, shape, seed, member.activation, origin.features)
        # networks of a kind begin alike, whatever their non-linearity
        alike = member.network, own, member.dispersion
        if alike not in drawn:
            begin = recipe.begin(start, member.dispersion)
            drawn[alike] = networks.first_parameters(net, shape, seed, begin, origin.features)
        params = drawn[alike]
        model = Model(Clipped(net, member.clip), distribution)
        # a walk also where its variance is 0, so that all members of a network share one program
        walk = PriorBound(RandomWalk(member.walk))
        family = family_of(member.network, least + own, origin.inputs)
        inner = RecursiveLearner(model, family, dynamics=walk)
        learners.append(_calibrated(inner, task, tails=not own, caution=float(member.cautious)))
        begins.append(params)
        spreads.append(networks.prior_variances(net, params, member.prior_var, origin.features))
    return Auto(learners, defaults.SWITCHING, begin=Each(tuple(begins)), spread=Each(tuple(spreads)))


def combined(bank: Auto, task: TaskName, classes: int, first: int = 0) -> Learner[Any]:
    """The learner that forecasts by a bank, and says when its losses may have become larger."""
    forecasting = _forecasting(bank, task, classes, first)
    if TARGET_KINDS[task].classed:
        return Monitored(forecasting, hazard=defaults.CLASS_HAZARD, threshold=defaults.CLASS_ALARM)
    return Monitored(forecasting, threshold=defaults.ALARM)


def _forecasting(bank: Auto, task: TaskName, classes: int, first: int) -> Learner[Any]:
    """A bank's mixture, beside a regression on what its members forecast."""
    kind = TARGET_KINDS[task]
    if kind.standardised:
        return Stacked(bank, outliers=defaults.OUTLIERS)
    if not kind.classed:
        return bank
    distribution = RECIPES[task].likelihood(defaults.FIXED_NOISE, classes, first)
    assert isinstance(distribution, Bernoulli | Categorical | OpenCategorical)
    return Stacked(bank, distribution)


def _calibrated(
    inner: Learner[Any], task: TaskName, *, tails: bool = True, caution: float = 1.0, plain: bool = False
) -> Calibrated[Any]:
    """A member whose forecasts are as wide, and as sharp, as observations say; `plain` has one width."""
    recipe = RECIPES[task]
    kind = TARGET_KINDS[task]
    calibrated: Calibrated[Any] = Calibrated(
        inner,
        () if plain else recipe.scales,
        recipe.tails if tails else (),
        defaults.SCALE_SWITCHING,
        defaults.SHARPNESS if kind.classed else (),
        plugin=plain or recipe.plugin,
    )
    if kind.standardised:
        return replace(calibrated, outliers=defaults.OUTLIERS, caution=caution)
    return calibrated
