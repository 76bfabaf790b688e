"""Simulation-based calibration of every particle method, guard and shipped operator.

    python benchmarks/calibration.py --draws 500              # the table of docs/explanation/correctness.md
    python benchmarks/calibration.py --only guard --draws 200 # some of its rows
    python benchmarks/calibration.py --only "linear-2, guarded" --world bimodal --particles 800

A truth is drawn from the prior, observations from the truth, and the method learns them. Where its belief is
the posterior, the weight of the particles below the truth is uniform (Talts et al. 2018). The table has the
distance D of its distribution from the uniform one (Kolmogorov), and the p-value of a chi-square test with
ten cells of equal width; of several coordinates, the worst D, and the least p times their number.

A method that follows moving states is asked about these three worlds, and one of parameters that stand still
about the same observations of the starting state:

    linear        z' = A z + N(0, Q), y = B z + N(0, R)
    bimodal       z' = .5 z + 25 z / (1 + z^2) + N(0, 2), y = z^2 / 20 + N(0, 1), in every coordinate
    heavy tails   z' = A z + N(0, .25 I), y = b'z + .5 t(3)
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import credo
from credo import particles as room
from credo.beliefs import Particles
from credo.core.types import Array
from credo.flows import Guard, Operator, load_operator, pfbr

__all__ = ["METHODS", "WORLDS", "Method", "Score", "World", "calibrate"]

STEPS = 4
"""How many observations a truth has."""

CELLS = 10
"""How many cells the chi-square test has."""

DRAWN = 1000
"""How many draws a belief without particles is asked for."""


@dataclass(frozen=True)
class World:
    """A model with its dynamics, from z_0 ~ N(0, var I)."""

    model: credo.Model
    dynamics: credo.Dynamics
    var: float


def linear(dim: int, still: bool) -> World:
    """That of credo's operators in 2 and 10 dimensions."""
    move, look = (jnp.asarray(part) for part in credo.datasets.linear_system(max(dim, 2)))
    move = move[:dim, :dim]
    look = look[:dim, :dim]
    model = credo.Model(lambda z, x: look.astype(z.dtype) @ z, credo.Normal(1.0))
    return World(model, credo.Static() if still else credo.LinearGaussian(move, cov=1.0), 1.0)


def bimodal(dim: int, still: bool) -> World:
    """The growth model, in which y does not tell z from -z."""
    model = credo.Model(lambda z, x: z**2 / 20, credo.Normal(1.0))
    grow = credo.Transition.additive(lambda z, dt: 0.5 * z + 25 * z / (1 + z**2), 2.0)
    return World(model, credo.Static() if still else grow, 25.0 if still else 1.0)


def heavy(dim: int, still: bool) -> World:
    """Neighbouring coordinates turn into each other, and one weighted sum is seen through Student noise."""
    chain = 0.9 * jnp.eye(dim) + 0.3 * (jnp.eye(dim, k=1) - jnp.eye(dim, k=-1))
    move = chain / max(1.0, float(jnp.max(jnp.abs(jnp.linalg.eigvals(chain)))) / 0.95)
    look = 1.0 / jnp.arange(1.0, dim + 1.0)
    model = credo.Model(lambda z, x: look.astype(z.dtype) @ z, credo.StudentT(3.0, 0.5, "weighted"))
    return World(model, credo.Static() if still else credo.LinearGaussian(move, cov=0.25), 1.0)


WORLDS: dict[str, Callable[[int, bool], World]] = {"linear": linear, "bimodal": bimodal, "heavy tails": heavy}
"""Each world by its dimension, and whether its state stands still."""

DIMS = {"linear": 1, "bimodal": 1, "heavy tails": 2}
"""The dimension of each, but for methods that have their own."""


@dataclass(frozen=True)
class Method:
    """How a learner is built of a model, a number of particles, dynamics and the dimension of the state.

    `still` is whether parameters stand still, and `dim` the dimension where it is not that of the world.
    """

    build: Callable[[credo.Model, int, credo.Dynamics, int], Any]
    particles: int = 200
    still: bool = False
    dim: int | None = None


def _plain(constructor: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    return lambda model, count, dynamics, dim: constructor(model, count, dynamics=dynamics, **settings)


def _base(**settings: Any) -> Callable[..., Any]:
    """A flow with the operator before training."""

    def build(model: credo.Model, count: int, dynamics: credo.Dynamics, dim: int) -> Any:
        operator = Operator(dim=dim, width=1, hidden=1, embedding=0).begin()
        return pfbr(model, operator, count, dynamics, fallback=False, **settings)

    return build


def _shipped(name: str, **settings: Any) -> Callable[..., Any]:
    return lambda model, count, dynamics, dim: pfbr(model, load_operator(name), count, dynamics, **settings)


def _network(model: credo.Model, count: int, dynamics: credo.Dynamics, dim: int) -> Any:
    example = (None, jnp.zeros(dim))
    return room.learned_filter(model, dynamics, example=example, size=dim, particles=count, hidden=(8,))


def _mean_field(model: credo.Model, count: int, dynamics: credo.Dynamics, dim: int) -> Any:
    return room.svi(model, samples=20, iterations=20)


METHODS: dict[str, Method] = {
    "bootstrap": Method(_plain(room.particle_filter)),
    "guided": Method(_plain(room.particle_filter, proposal="guided")),
    "fully adapted": Method(_plain(room.particle_filter, proposal="adapted")),
    "bootstrap with moves": Method(_plain(room.particle_filter, move=room.Metropolis(3))),
    "learned proposal": Method(_network),
    "LEDH, weighted": Method(_plain(room.daum_huang, local=True, weighted=True)),
    "guard": Method(_base(guard=True), 100),
    "guard, matched noise": Method(_base(guard=True, noise="matched"), 100),
    "guard, with moves": Method(_base(guard=Guard(move=room.Metropolis(2, "langevin"))), 100),
    "flow, untrained": Method(_base()),
    "affine map": Method(_plain(room.gaussian_map)),
    "EDH": Method(_plain(room.daum_huang)),
    "LEDH": Method(_plain(room.daum_huang, local=True)),
    "kernel Bayes rule": Method(_plain(room.KernelBayes), 100),
    "kernel Monte Carlo filter": Method(_plain(room.KernelFilter), 100),
    "Liu-West, moving": Method(_plain(room.liu_west)),
    "tempered SMC, moving": Method(_plain(room.tempered_smc)),
    "tempered SMC": Method(_plain(room.tempered_smc), still=True),
    "guard, standing still": Method(_base(guard=True), 100, still=True),
    "one-pass SMC": Method(_plain(room.one_pass_smc), still=True),
    "Liu-West": Method(_plain(room.liu_west), still=True),
    "SVGD": Method(_plain(room.svgd), 100, still=True),
    "Fokker-Planck flow": Method(_plain(room.fokker_planck), 100, still=True),
    "PMD": Method(_plain(room.MirrorDescent), still=True),
    "SGLD": Method(_plain(room.Langevin), still=True),
    "NPV": Method(_plain(room.NonparametricVariational), still=True),
    "SVI": Method(_mean_field, still=True),
    "bootstrap, 50 in two dimensions": Method(_plain(room.particle_filter), 50, dim=2),
    "bootstrap, 50 in ten dimensions": Method(_plain(room.particle_filter), 50, dim=10),
    "linear-2": Method(_shipped("linear-2"), dim=2),
    "linear-2, guarded": Method(_shipped("linear-2", guard=True), 100, dim=2),
    "linear-10": Method(_shipped("linear-10"), dim=10),
    "linear-10, guarded": Method(_shipped("linear-10", guard=True), 100, dim=10),
    "two-modes": Method(_shipped("two-modes"), dim=2),
    "two-modes, guarded": Method(_shipped("two-modes", guard=True), 100, dim=2),
    "two-modes, standing still": Method(_shipped("two-modes"), still=True, dim=2),
}
"""Every method. Another one is another entry."""


@dataclass(frozen=True)
class Score:
    """The distance of the ranks from uniform ones, the p-value, and the share of draws that was learned."""

    distance: float
    p: float
    learned: float

    @property
    def words(self) -> str:
        """As in the table."""
        p = "0" if self.p < 5e-4 else f"{self.p:.3f}"
        refused = "" if self.learned > 0.9995 else f", {1 - self.learned:.1%} refused"
        return f"{self.distance:.2f} (p = {p}){refused}"


def ranks(learner: Any, world: World, dim: int, key: Array) -> Array:
    """The weight (P,) of what the learner believes below the truth; NaN where an update was refused."""
    first, second, third, fourth = jax.random.split(key, 4)
    truth = jnp.sqrt(world.var) * jax.random.normal(second, (dim,))
    init: Any = learner.init
    keyed = {"key": first} if isinstance(learner, room.ParticleLearner) else {}
    belief = init(jnp.zeros(dim), var=world.var, **keyed)
    unravel = belief.unravel

    def step(carry: tuple[Any, Array], key: Array) -> tuple[tuple[Any, Array], Array]:
        belief, truth = carry
        move, look, own = jax.random.split(key, 3)
        alone = jnp.zeros(1, truth.dtype)
        zero = jnp.zeros((), jnp.int32)
        truth = world.dynamics.propagate(truth[None, :], alone, move, None, zero, None, unravel)[0]
        y = world.model.likelihood.sample(world.model.outputs(truth, unravel, None), look)
        belief, info = learner.step(belief, None, y, key=own)
        return (belief, truth), info.ok

    (belief, truth), ok = jax.lax.scan(step, (belief, truth), jax.random.split(third, STEPS))
    if isinstance(belief, Particles):
        values = belief.values
        weights = jnp.exp(belief.log_weights)
    else:
        values = jnp.reshape(learner.sample(belief, fourth, (DRAWN,)), (DRAWN, dim))
        weights = jnp.full(DRAWN, 1 / DRAWN)
    # of particles that resampling left at one place, some are below
    below = weights @ jnp.where(values < truth[None, :], 1.0, 0.0)
    return jnp.where(jnp.all(ok), below, jnp.nan)


def calibrate(method: Method, words: str, draws: int, seed: int = 0) -> Score:
    """The score of a method in a world, by so many truths."""
    dim = DIMS[words] if method.dim is None else method.dim
    world = WORLDS[words](dim, method.still)
    learner = method.build(world.model, method.particles, world.dynamics, dim)
    keys = jax.random.split(jax.random.key(seed), draws)
    program = jax.jit(lambda keys: jax.lax.map(lambda key: ranks(learner, world, dim, key), keys))
    found = np.asarray(program(keys))
    sound = found[np.all(np.isfinite(found), axis=1)]
    if len(sound) < draws / 2:
        return Score(np.nan, 0.0, len(sound) / draws)
    distances = [float(stats.kstest(column, "uniform").statistic) for column in sound.T]
    cells = [np.histogram(column, CELLS, (0.0, 1.0))[0] for column in sound.T]
    least = min(float(stats.chisquare(counts).pvalue) for counts in cells)
    return Score(max(distances), min(1.0, least * dim), len(sound) / draws)


def main() -> None:
    """Print the table as Markdown, row by row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=500, help="how many truths (500)")
    parser.add_argument("--only", default="", help="methods whose name has this in it")
    parser.add_argument("--world", default="", choices=["", *WORLDS], help="one world (all)")
    parser.add_argument("--particles", type=int, help="how many, in place of each method's own number")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    worlds = [args.world] if args.world else list(WORLDS)
    print(f"| | {' | '.join(worlds)} |\n|---|{'--:|' * len(worlds)}", flush=True)
    for name, method in METHODS.items():
        if args.only in name:
            method = method if args.particles is None else replace(method, particles=args.particles)
            scores = [calibrate(method, words, args.draws, args.seed) for words in worlds]
            print(f"| {name} | {' | '.join(score.words for score in scores)} |", flush=True)
            jax.clear_caches()


if __name__ == "__main__":
    main()
