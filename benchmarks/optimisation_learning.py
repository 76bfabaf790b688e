"""The default learner of `credo learn` as a problem of `optimisation.py`: 20 of its numbers, and its loss.

The learner is `credo.auto`, whose numbers are the argument of one compiled program. The value is the mean
loss of a row in nats: minus the log density of its target, forecast before it is learned. A row that the
learner cannot forecast, or to which it gives next to no density, costs `LOST` nats. Columns and the target
are standardised once, by all rows, while `credo learn` does so by the rows before.

The minimum is not known. A point has the same value always, so there is no noise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "HYPERPARAMETERS",
    "LOST",
    "Hyperparameter",
    "Learning",
    "cost",
    "default_point",
    "loss_of",
    "tuned",
]

LOST = 20.0
"""The most that a row may cost, in nats."""


class Hyperparameter(NamedTuple):
    """One number of the learner: where it is searched, what the default has, and what it means.

    A factor multiplies the numbers of the default, of which members have unlike ones. `low`, `high` and
    `default` are logarithms to the base 10, but for `hidden_blend` and `votes_decay`.
    """

    name: str
    low: float
    high: float
    default: float
    meaning: str


HYPERPARAMETERS = (
    Hyperparameter("linear_prior", -4, 2, 0, "log10 factor of the prior variances of linear members"),
    Hyperparameter("linear_walk", -3, 1.5, 0, "log10 factor of what their weights walk by at a row"),
    Hyperparameter("linear_forgetting", -2, 0.8, 0, "log10 factor of the share of their noise forgotten"),
    Hyperparameter("hidden_prior", -4, 1.5, 0, "log10 factor of the prior variances of perceptrons"),
    Hyperparameter("hidden_walk", -3, 2.5, 0, "log10 factor of what their weights walk by at a row"),
    Hyperparameter("hidden_forgetting", -2, 1.3, 0, "log10 factor of the share of their noise forgotten"),
    Hyperparameter("hidden_blend", 0, 1, 0, "share of tanh in elu perceptrons, and of elu in those of tanh"),
    Hyperparameter("input_noise_prior", -4, 2, 0, "the same as hidden_prior, if noise follows the inputs"),
    Hyperparameter("narrow_clip", -1, 0.8, math.log10(3), "log10 of the size at which most clip inputs"),
    Hyperparameter("wide_clip", -1, 1.2, math.log10(8), "log10 of the size at which the others clip them"),
    Hyperparameter("noise_shape", -0.5, 2, math.log10(1.5), "log10 of the shape of the noise's prior"),
    Hyperparameter("noise_scale", -3, 1, math.log10(0.5), "log10 of the scale of the noise's prior"),
    Hyperparameter("votes_decay", 0, 12, 2, "how fast a vote of near rows falls with the distance"),
    Hyperparameter("switching", -3, 1.5, 0, "log10 factor of the rates at which another member takes over"),
    Hyperparameter("width_switching", -6, -0.31, -3, "log10 of that rate for widths of forecasts"),
    Hyperparameter("output_scale", -2, 1, 0, "log10 of the larger factor of the variance of outputs"),
    Hyperparameter("tails", -1.5, 2, 0, "log10 factor of degrees of freedom above 2 of robust forecasts"),
    Hyperparameter("outliers", -6, -0.31, -3, "log10 of the probability that a target is an outlier"),
    Hyperparameter("stack_prior", -5, 1, math.log10(0.03), "log10 of the prior variance of coefficients"),
    Hyperparameter("stack_walk", -9, -1, -6, "log10 of what coefficients walk by at a row"),
)
"""The 20 numbers, in the order of a point."""


def default_point() -> np.ndarray:
    """The numbers of the default learner (20,)."""
    return np.array([one.default for one in HYPERPARAMETERS])


def tuned(learner: Any, point: Any) -> Any:
    """The learner with other numbers.

    Arguments:
        learner: a regression beside a bank, which is the learner inside `credo.auto(inputs)`.
        point: the numbers (20,), which may be traced.
    """
    import jax.numpy as jnp

    from credo.adapt import Each
    from credo.core.groups import Groups
    from credo.core.records import replace

    bank = learner.learner
    at = {one.name: point[place] for place, one in enumerate(HYPERPARAMETERS)}
    raised = {name: 10.0**value for name, value in at.items()}
    linear, hidden, own, votes = (_calibrated(part, raised) for part in bank.learners.parts)
    linear = replace(linear, learner=_member(linear.learner, "linear", at, raised))
    hidden = replace(hidden, learner=_member(hidden.learner, "hidden", at, raised))
    own = replace(own, learner=_member(own.learner, "hidden", at, raised))
    distribution = _distribution(votes.learner.likelihood, 1.0, raised)
    near = replace(votes.learner, likelihood=distribution, decay=jnp.reshape(at["votes_decay"], 1))
    votes = replace(votes, learner=replace(near, clip=_clip(near.clip, raised)))
    groups = bank.learners.places
    factors = dict.fromkeys(groups[0], raised["linear_prior"])
    factors |= dict.fromkeys(groups[1], raised["hidden_prior"])
    factors |= dict.fromkeys(groups[2], raised["input_noise_prior"])
    spread = [_scaled(var, factors.get(place, 1.0)) for place, var in enumerate(bank.spread.values)]
    bank = replace(
        bank,
        learners=Groups((linear, hidden, own, votes), groups),
        switching=jnp.asarray(bank.switching) * raised["switching"],
        spread=Each(tuple(spread)),
    )
    stack = {"var": raised["stack_prior"], "walk": raised["stack_walk"], "outliers": raised["outliers"]}
    return replace(learner, learner=bank, **stack)


def _calibrated(part: Any, raised: dict[str, Any]) -> Any:
    """Members of a kind whose forecasts have other widths, tails and outliers."""
    import jax.numpy as jnp

    from credo.core.records import replace

    scales = jnp.asarray(part.scales)
    count = jnp.shape(part.switching)[0]
    return replace(
        part,
        scales=jnp.where(scales > 0, raised["output_scale"], 0.0),
        tails=2.0 + (jnp.asarray(part.tails) - 2.0) * raised["tails"],
        switching=jnp.full(count, raised["width_switching"]),
        outliers=jnp.full(count, raised["outliers"]),
    )


def _member(member: Any, kind: str, at: dict[str, Any], raised: dict[str, Any]) -> Any:
    """Networks of a kind with other clips, noise and walks; `kind` is linear or hidden."""
    import jax.numpy as jnp

    from credo.core.records import replace

    clipped = member.model.apply
    bound = member.dynamics
    network = clipped.network
    if kind == "hidden":
        share = jnp.asarray(network.share)
        network = replace(network, share=share + at["hidden_blend"] * (1.0 - 2.0 * share))
    apply = replace(clipped, network=network, limit=_clip(clipped.limit, raised))
    distribution = _distribution(member.model.likelihood, raised[f"{kind}_forgetting"], raised)
    walk = replace(bound.dynamics, var=jnp.asarray(bound.dynamics.var) * raised[f"{kind}_walk"])
    return replace(
        member,
        model=replace(member.model, apply=apply, likelihood=distribution),
        dynamics=replace(bound, dynamics=walk),
    )


def _distribution(distribution: Any, forgetting: Any, raised: dict[str, Any]) -> Any:
    """A likelihood with another prior of its noise, if it learns one number for all rows."""
    import jax.numpy as jnp

    from credo.core.records import replace

    noise = getattr(distribution, "var", None)
    if noise is None:
        return distribution
    like = jnp.ones_like(jnp.asarray(noise.shape))
    kept = 1.0 - (1.0 - jnp.asarray(noise.forgetting)) * forgetting
    shape = like * raised["noise_shape"]
    scale = like * raised["noise_scale"]
    return replace(distribution, var=replace(noise, shape=shape, scale=scale, forgetting=kept))


def _clip(limit: Any, raised: dict[str, Any]) -> Any:
    """The sizes at which members clip: those of 3 are narrow, and those of 8 wide."""
    import jax.numpy as jnp

    return jnp.where(jnp.asarray(limit) < 5.0, raised["narrow_clip"], raised["wide_clip"])


def _scaled(tree: Any, factor: Any) -> Any:
    """A tree of variances times a factor."""
    import jax

    return jax.tree.map(lambda var: var * factor, tree)


def cost(log_density: Any, ok: Any) -> Any:
    """The loss of rows (...) with log densities (...), of which those that are not ok were not learned."""
    import jax.numpy as jnp

    return jnp.where(ok & jnp.isfinite(log_density), jnp.minimum(-log_density, LOST), LOST)


def loss_of(xs: Any, ys: Any) -> Callable[[Any], Any]:
    """The compiled function from numbers (20,) to the mean loss of rows (N, D) with targets (N,)."""
    import jax
    import jax.numpy as jnp

    from credo.recipes.auto import auto

    learner = auto(xs.shape[1]).learner  # type: ignore[attr-defined]

    @jax.jit
    def loss(point: Any) -> Any:
        one = tuned(learner, point)

        def step(belief: Any, row: Any) -> Any:
            belief, info = one.step(belief, *row)
            return belief, cost(info.log_evidence, info.ok)

        return jnp.mean(jax.lax.scan(step, one.init(), (xs, ys))[1])

    return loss


@dataclass(frozen=True)
class Learning:
    """The mean loss on the first rows of a data set of numbers, in nats a row.

    Attributes:
        data: the name of the data set (`credo.datasets.load`).
        rows: how many of its rows are learned.
    """

    data: str
    rows: int

    def __call__(self, point: Sequence[float] | np.ndarray) -> float:
        """The loss at a point (20,)."""
        import jax

        with jax.enable_x64(False):  # the precision of `credo learn`, whatever JAX is set to
            return float(_losses(self)(np.asarray(point, np.float32)))

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows (N, D) and targets (N,), each with mean 0 and variance 1."""
        import credo

        data = credo.datasets.load(self.data, split="all")
        xs, ys = (np.asarray(one, float)[: self.rows] for one in (data.x, data.y))
        xs, ys = ((one - one.mean(axis=0)) / one.std(axis=0) for one in (xs, ys.reshape(-1)))
        return xs.astype(np.float32), ys.astype(np.float32)


@functools.cache
def _losses(problem: Learning) -> Callable[[Any], Any]:
    """The compiled function of a problem, made once."""
    return loss_of(*problem.read())
