"""The particle flow Bayes rule as a learner: an operator in the place of an update."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

import jax
import jax.numpy as jnp

from credo.beliefs import NormalSource, Particles
from credo.beliefs.particles import FORECAST
from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.trees import select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.dynamics import Dynamics, Static
from credo.flows.densities import (
    KernelDensity,
    MatchedSource,
    NormalDensity,
    SetDensity,
    TransitionDensity,
    matched_move,
)
from credo.flows.guard import Chosen, Guard, Moved, moved
from credo.flows.operator import FlowMap, FlowOperator, Operator
from credo.likelihoods import MixturePredictive, Predictive
from credo.linalg.normals import standard_normals
from credo.models.model import Model, as_model
from credo.particles.base import ParticleLearner
from credo.particles.filter import chosen
from credo.particles.moves import Metropolis
from credo.particles.resampling import effective_size, resample

__all__ = ["DensityName", "FlowFilter", "Noise", "pfbr"]

LONE = 1.5
"""The effective number of particles below which only one counts."""

SPREAD = 8
"""The number of points for each particle that a forecast from a normal distribution takes."""

DensityName: TypeAlias = Literal["flow", "transitions", "kernel", "normal"]
"""The density that the predicted particles are taken to have."""

Noise: TypeAlias = Literal["matched", "free"]
"""The way in which the noise of a move, and the particles of the prior, are drawn."""


@record
class FlowFilter(ParticleLearner):
    """Particles that an operator takes from the prior to the posterior (Chen, Dai & Song 2019).

    The dynamics move the particles; then the operator's map T of this observation moves each of them again.
    With a density, the belief carries log q of every particle, by the exact determinant of T. Without a guard
    the posterior is that of the map: on a bimodal model the ranks of simulated truths were 0.35 from uniform
    before training, and 0.33 to 0.38 with the operators that are shipped; with heavy-tailed noise, 0.08 with
    all in two dimensions.

    Arguments:
        model: a `Model`, of which only `log_prob` is needed; `joint(model)` for mini-batches.
        operator: a trained operator.
        particles: the number N, at least 2.
        dynamics: how a particle moves between observations.
        density: how the density of the predicted particles is known: "transitions", the exact mixture of the
            dynamics' densities from the particles before; "kernel", Silverman's estimate; "normal", by their
            moments; "flow", by carrying that of the prior along (parameters that stand still); or None, where
            nobody asks for it.
        guard: a `Guard`, which weighs the particles; None trusts the map.
        noise: "matched", draws whose mean and covariance are exact, or "free", independent draws, without
            which the weights of a guard are not exact.
        fallback: another trained operator. Each update takes the map of the two that has the tighter bound
            E[log p(T x) + log p(y | T x) + log |det T'(x)| - log p(x)] of the evidence, and is refused where
            neither has a finite one. None trusts the operator.

    Raises:
        CredoError: the operator has no parameters, or a setting is not allowed.

    Cost of an update: that of the operator, and N likelihoods; N^2 d for a density of kernels or transitions.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> operator = credo.flows.Operator(dim=1, width=2, hidden=4).begin()
        >>> learner = FlowFilter(credo.Model(lambda z, x: z, credo.Normal(1.0)), operator, particles=100)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, 2.0)
        >>> round(float(belief.mean[0]), 3), round(float(belief.var[0]), 1)
        (1.0, 0.5)
    """

    model: Model
    operator: FlowOperator = cast(FlowOperator, None)
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()
    density: DensityName | None = static_field(default=None)
    guard: Guard | None = None
    noise: Noise = static_field(default="matched")
    fallback: FlowOperator | None = None

    def __post_init__(self) -> None:
        as_model(self.model)
        require_integer("particles", self.particles, 2)
        for name, one in {"operator": self.operator, "fallback": self.fallback}.items():
            if name == "fallback" and one is None:
                continue
            if not isinstance(one, FlowOperator) or one.params is None:
                raise CredoError(
                    f"{name} must be a trained operator, such as that of credo.flows.train or "
                    f"credo.flows.load_operator; got {one!r}.",
                    field=name,
                )
        require_choice("noise", self.noise, ["matched", "free"])
        if self.density is not None:
            require_choice("density", self.density, ["flow", "transitions", "kernel", "normal"])
        if self.density == "flow" and not isinstance(self.dynamics, Static):
            raise CredoError(
                "density must be 'transitions', 'kernel' or 'normal' where parameters move; got 'flow'.",
                field="density",
            )
        if self.density == "transitions" and isinstance(self.dynamics, Static):
            raise CredoError(
                "density must be 'flow', 'kernel' or 'normal' where parameters stand still; got "
                "'transitions'.",
                field="density",
            )
        if self.guard is not None and self.density in (None, "flow"):
            raise CredoError(
                "density must be 'transitions', 'kernel' or 'normal' for a guard, which asks for it at new "
                f"points; got {self.density!r}.",
                field="density",
            )

    @property
    def looks_back(self) -> bool:  # type: ignore[override]
        """Whether an update needs the particles before the latest move."""
        return self.density == "transitions"

    def begin(self, belief: Particles) -> Particles:
        """The first belief, with matched particles and their density."""
        if belief.size != self.operator.dim:
            raise CredoError(
                f"operator must have the dimension of the parameters, {belief.size}; it has "
                f"{self.operator.dim}.",
                field="operator",
            )
        source = belief.source
        if self.noise == "matched" and type(source) is NormalSource:
            source = MatchedSource(source.mean, source.cov)
            first, second = jax.random.split(jax.random.wrap_key_data(belief.key))
            values = source.draw(first, self.particles)
            belief = replace(belief.equal(values), source=source, key=jax.random.key_data(second))
            if self.looks_back:
                belief = replace(belief, parents=values)
        if self.density is None:
            return belief
        if self.density == "flow":
            assert source is not None
            return replace(belief, log_density=jax.vmap(source.log_prob)(belief.values))
        distribution = NormalDensity if self.density == "normal" else KernelDensity
        density = distribution.of(belief.values, belief.log_weights).log_prob(belief.values)
        return replace(belief, log_density=density)

    def time_update(self, belief: Particles, dt: ArrayLike | None) -> Particles:
        if self.noise == "free":
            return super().time_update(belief, dt)
        values = matched_move(self.dynamics, belief, dt)
        moved = replace(belief, values=values, t=belief.t + 1)
        if not self.looks_back:
            return moved
        step = jnp.ones((), values.dtype) if dt is None else jnp.asarray(dt, values.dtype)
        return replace(moved, parents=belief.values, step=step)

    def prior_density(self, belief: Particles) -> SetDensity:
        """The density of the predicted particles, at any point."""
        if self.density == "transitions":
            assert belief.parents is not None
            return TransitionDensity(
                belief.parents,
                belief.log_weights,
                self.dynamics,
                belief.anchor,
                belief.t - 1,
                None if self.dynamics.timeless else belief.step,
                belief.unravel,
            )
        distribution = NormalDensity if self.density == "normal" else KernelDensity
        return distribution.of(belief.values, belief.log_weights)

    def assimilate(
        self, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        def log_likelihood(values: Array) -> Array:
            return self.log_likelihood(values, belief.unravel, x, y, weight)

        def maps(values: Array, log_weights: Array) -> list[FlowMap]:
            """The maps of this observation, from a set."""

            def seen(value: Array) -> Array:
                return log_likelihood(value[None, :])[0]

            rivals = [self.operator] if self.fallback is None else [self.operator, self.fallback]
            return [one.transport(one.params, values, log_weights, seen, x, y) for one in rivals]

        def judged(
            distribution: SetDensity, values: Array, log_weights: Array
        ) -> tuple[list[FlowMap], list[Moved]]:
            """The maps from a set with this density, and where each takes it."""
            before = distribution.log_prob(values)
            found = maps(values, log_weights)

            def target(points: Array) -> Array:
                return distribution.log_prob(points) + log_likelihood(points)

            return found, [moved(one, values, log_weights, before, target) for one in found]

        belief = weightless(belief)
        if self.guard is not None:

            def transport(distribution: SetDensity, values: Array, log_weights: Array) -> Chosen:
                found, after = judged(distribution, values, log_weights)
                return Chosen.of(found, [one.bound for one in after])

            values = belief.values
            logs = belief.log_weights
            prior = self.prior_density(belief)
            after = self.guard.weigh(key, values, logs, prior, log_likelihood, transport)
            belief = replace(belief, values=after.values, log_weights=after.log_weights)
            return replace(belief, log_density=after.heights - after.log_evidence), after.log_evidence
        belief = several(belief, key)
        values = belief.values
        logs = belief.log_weights
        plain = jax.nn.logsumexp(logs + log_likelihood(values))
        if self.density is None and self.fallback is None:
            return replace(belief, values=maps(values, logs)[0].forward(values)), plain
        known = self.density not in (None, "flow")
        distribution = self.prior_density(belief) if known else NormalDensity.of(values, logs)
        best, *others = judged(distribution, values, logs)[1]
        for other in others:
            best = select(other.bound > best.bound, other, best)
        log_evidence = plain
        density = belief.log_density
        if known:
            ratios = jnp.where(jnp.isnan(best.log_ratio), -jnp.inf, best.log_ratio)
            log_evidence = jax.nn.logsumexp(logs + ratios)
            density = distribution.log_prob(values)
        if density is not None:
            density = density - best.log_det
        # where no map has a bound, the observation is refused
        log_evidence = jnp.where(best.bound > -jnp.inf, log_evidence, jnp.nan)
        return replace(belief, values=best.values, log_density=density), log_evidence

    def predictive(
        self, belief: Particles, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        """The forecast of the particles; with the density "normal", that of this distribution.

        As for `ParticleLearner.predictive`, but for "mc" (the default) with the density "normal": then it is
        the mixture over 8 N evenly spread points of the normal distribution with the moments of the
        particles. A mixture over N particles is too rough for an observation of many numbers.
        """
        if self.density != "normal" or method not in (None, "mc") or self.model.batched:
            return super().predictive(belief, x, method, samples, key)
        distribution: NormalDensity = NormalDensity.of(belief.values, belief.log_weights)
        count = SPREAD * self.particles if samples is None else samples
        own = belief.step_key(FORECAST) if key is None else as_key(key)
        draws = standard_normals(own, count, distribution.mean.shape[0], distribution.mean.dtype, quasi=True)
        many = belief.equal(distribution.outside(draws))
        return MixturePredictive(self.model.likelihood, self.outputs(many, x), many.log_weights)


def weightless(belief: Particles) -> Particles:
    """The belief, where particles that are not finite stand amid the others and have no weight."""
    finite = jnp.all(jnp.isfinite(belief.values), axis=1)
    logs = jax.nn.log_softmax(jnp.where(finite, belief.log_weights, -jnp.inf))
    known = jnp.where(finite[:, None], belief.values, 0.0)
    values = jnp.where(finite[:, None], known, (jnp.exp(logs) @ known)[None, :])
    mended = replace(belief, values=values, log_weights=logs)
    if belief.parents is not None:
        sound = jnp.all(jnp.isfinite(belief.parents), axis=1)
        mended = replace(mended, parents=jnp.where(sound[:, None], belief.parents, values))
    return select(jnp.all(finite), belief, mended)


def several(belief: Particles, key: Array) -> Particles:
    """The belief, or where no more than one particle counts or some have no weight, one that is resampled.

    A map has nothing to go by in such a set, and copies are what a bootstrap filter would keep of it.
    """
    logs = belief.log_weights
    ancestors = resample(key, logs, belief.values.shape[0])
    rested = chosen(belief, ancestors)
    if belief.parents is not None:
        rested = replace(rested, parents=belief.parents[ancestors])
    return select((effective_size(logs) < LONE) | jnp.any(logs == -jnp.inf), rested, belief)


def pfbr(
    model: Model,
    operator: FlowOperator,
    particles: int = 256,
    dynamics: Dynamics | None = None,
    *,
    density: DensityName | None = None,
    guard: Guard | bool | None = None,
    noise: Noise | None = None,
    fallback: FlowOperator | bool | None = True,
) -> FlowFilter:
    """The particle flow Bayes rule: a learner whose update is a trained operator (Chen, Dai & Song 2019).

    Arguments:
        model: a `Model`, of which only `log_prob` is needed.
        operator: a trained operator; see `credo.flows.train` and `credo.flows.load_operator`.
        particles: the number N, at least 2.
        dynamics: a `Transition`, or any other dynamics; None stands still.
        density: as for `credo.flows.FlowFilter`. With a guard, it is by default that of the transitions, or
            of kernels where parameters stand still.
        guard: a `credo.flows.Guard`, or True for one with its defaults, and with two Langevin steps where
            parameters stand still.
        noise: "matched" or "free"; None for "free" with a guard, and for "matched" without.
        fallback: the operator whose map an update takes if it has the tighter bound of the evidence: True
            for one without training, the map of the linearised posterior (Kalman's, where the model is linear
            and normal); None or False to trust the operator.

    Returns:
        The learner.

    Raises:
        CredoError: one of the settings is not allowed.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> operator = credo.flows.Operator(dim=2, width=2, hidden=4).begin()
        >>> model = credo.Model(lambda z, x: z, credo.Normal(1.0))
        >>> learner = pfbr(model, operator, particles=50, dynamics=credo.RandomWalk(0.1), guard=True)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), None, jnp.ones(2))
        >>> bool(info.ok), learner.density
        (True, 'transitions')
    """
    moves = Static() if dynamics is None else dynamics
    still = isinstance(moves, Static)
    watch = guard or None
    if watch is True:
        watch = Guard(move=Metropolis(2, "langevin") if still else None)
    if watch is not None and density is None:
        density = "kernel" if still else "transitions"
    if noise is None:
        noise = "matched" if watch is None else "free"
    other = None if isinstance(fallback, bool) else fallback
    if fallback is True and isinstance(operator, FlowOperator):
        other = Operator(dim=operator.dim, width=1, hidden=1, embedding=0).begin()
    return FlowFilter(model, operator, particles, moves, density, watch, noise, other)
