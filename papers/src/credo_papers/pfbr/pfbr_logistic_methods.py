"""The methods for the weights of a classifier, with settings that were chosen on tasks that are not scored.

Every setting was chosen on the streams of seed 1 with ten tasks that are turned by up to 180 degrees, by the
accuracy, and by the log loss where accuracies are level. Methods that were published for streams of known
length have all rows of the stream in their target there, "as published"; if they are without this name,
the belief before a batch is the prior of its update, as with every other method here. (Mirror descent of the
latter kind loses its particles in 50 dimensions, with 0.90 to 0.93 at best.)
"""

from __future__ import annotations

from credo import particles as room
from credo.core.types import Array
from credo.flows import Operator, pfbr
from credo_papers.engine.any_learner import AnyLearner
from credo_papers.pfbr.pfbr_logistic_training import OPERATOR
from credo_papers.pfbr.pfbr_methods import METHODS, build_plain, build_trained
from credo_papers.pfbr.pfbr_problem import Method, Problem

__all__ = ["LOGISTIC", "logistic_methods"]


def _base(problem: Problem, particles: int) -> AnyLearner:
    operator = Operator(dim=problem.size, **OPERATOR).begin()
    return pfbr(problem.model, operator, particles, fallback=False)


def _slow(t: Array) -> Array:
    """1 / (150 + t)."""
    return 1.0 / (150.0 + t.astype(float))


def _falling(t: Array) -> Array:
    """(t + 2)^-0.7."""
    return (t.astype(float) + 2.0) ** -0.7


def _table(total: int) -> tuple[Method, ...]:
    """All methods for a stream of so many rows."""

    def variational(problem: Problem, particles: int) -> AnyLearner:
        return room.svi(problem.model, samples=20, iterations=30, rate=0.3)

    def whole_variational(problem: Problem, particles: int) -> AnyLearner:
        return room.svi(problem.model, samples=100, total=total, rate=_slow)

    def cooling(t: Array) -> Array:
        return 0.005 * (1.0 + t.astype(float)) ** -0.55

    return (
        Method("PFBR, ours", build_trained("PFBR, ours"), note="trained on turned digits of the first part"),
        Method("PFBR, our base", _base, note="without training"),
        METHODS["EKF"],
        METHODS["affine map"],
        METHODS["stochastic EnKF"],
        Method("one-pass SMC", build_plain(room.one_pass_smc, threshold=0.7)),
        Method(
            "bootstrap with MALA",
            build_plain(room.particle_filter, move=room.Metropolis(30, "langevin")),
            note="30 moves after resampling",
        ),
        Method(
            "tempered SMC",
            build_plain(room.tempered_smc, moves=room.Metropolis(30, "langevin")),
            note="30 moves at each temperature",
        ),
        Method(
            "PMD, published",
            build_plain(room.MirrorDescent, total=total, threshold=0.5),
            note="one step, of which no more than keeps half of the particles",
        ),
        Method("SVI", variational, note="30 steps of .3 with 20 draws"),
        Method("SVI, published", whole_variational, note="100 draws, steps 1 / (150 + t)"),
        Method("SGLD", build_plain(room.Langevin, iterations=30), note="30 steps"),
        Method(
            "SGLD, published",
            build_plain(room.Langevin, total=total, iterations=10, rate=cooling),
            note="10 steps of .005 (1 + t)^-.55",
        ),
        Method(
            "NPV", build_plain(room.NonparametricVariational, components=1), note="one component, 30 steps"
        ),
        Method(
            "NPV, published",
            build_plain(room.NonparametricVariational, total=total, rate=_falling),
            note="eight components, one step (t + 2)^-.7",
        ),
    )


LOGISTIC = tuple(method.name for method in _table(1))
"""The names of all methods."""


def logistic_methods(total: int, *names: str) -> tuple[Method, ...]:
    """Return some of the methods.

    Arguments:
        total: the number of rows of a whole stream.
        names: the names of the methods.
    """
    table = {method.name: method for method in _table(total)}
    return tuple(table[name] for name in names)
