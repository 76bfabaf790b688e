"""Segments of a curve: polynomials in the distance from where the segment began."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.moments import matched
from credo.adapt.nested import Around, at_time, floating
from credo.adapt.questions import Answer, Question
from credo.adapt.wrapper import Proposal, Wrapper
from credo.beliefs import Gaussian
from credo.core.errors import CredoError, require_integer, require_nonnegative
from credo.core.fields import field
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import RecursiveLearner

__all__ = ["Continuous", "LocalPolynomial", "Piece", "about"]


@record
class Piece(Around[Gaussian]):
    """A belief about the curve f(x) = sum_j w_j (x - origin)^j.

    Attributes:
        belief: the belief about the coefficients w (P,), constant first.
        origin: the x at which the segment began.
        place: the latest value of x.
        state: what the next observation does: 0 goes on, 1 begins the segment again from the prior, 2 begins
            it at the value of the curve.
        prior: the belief about the coefficients before any data.
        jump_var: the variance of the step between the segments, for state 2.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = LocalPolynomial(inner, degree=1)
        >>> belief, _ = learner.step(learner.init(jnp.zeros(2)), 3.0, 1.0)
        >>> float(belief.origin), int(belief.state)
        (3.0, 0)
    """

    belief: Gaussian
    origin: Array
    place: Array
    state: Array
    prior: Gaussian
    jump_var: Array = field("nonnegative")
    t: Array


@record
class Continuous:
    """The conditional prior of a segment that begins where the last one ends, for `LocalPolynomial`.

    The value of the curve at the first x of the segment keeps its moments under the earlier belief, plus a
    jump. The slope and the higher coefficients come from the prior (Fearnhead & Liu 2011; RL-MMPR in BONE).

    Arguments:
        jump_var: the variance of a step in the value, at least 0, in squared units of y.

    Raises:
        CredoError: `jump_var` is negative, or the learner is not a `LocalPolynomial`.

    Example:
        >>> import credo
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = credo.RunLength(LocalPolynomial(inner, 1), conditional_prior=Continuous(jump_var=0.1))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), 3.0, 1.0)
        >>> bool(info.ok)
        True
    """

    jump_var: ArrayLike = 0.0

    def __post_init__(self) -> None:
        require_nonnegative("jump_var", self.jump_var)

    def begin(self, parent: Piece, prior: Piece, dt: ArrayLike | None) -> Piece:
        """The parent's belief, which becomes a new segment when its first x is known.

        Raises:
            CredoError: the wrapper around it is not a `LocalPolynomial`.
        """
        if not isinstance(parent, Piece):
            raise CredoError(
                f"Continuous() is the conditional prior of a LocalPolynomial; got a {type(parent).__name__}."
            )
        state = jnp.full_like(parent.state, 2)
        return replace(parent, state=state, jump_var=as_like(self.jump_var, parent.jump_var))


@record
class LocalPolynomial(Wrapper[Piece, Gaussian]):
    """A polynomial in x - x_start, where x_start is the first x of the segment: a learner of scalar inputs.

    Alone it fits one polynomial. Inside `RunLength` each hypothesis has an x_start of its own, and the
    conditional prior decides what is known at x_start: nothing with `PriorReset()`, and the value of the
        curve
    so far with `Continuous()`.

    Arguments:
        learner: a `RecursiveLearner` of the coefficients w (P,), whose x are the features (1, u, ..., u^d)
            with u = x - x_start.
        degree: d = P - 1.

    Raises:
        CredoError: `degree` is negative, or `init` is given another number of parameters than `degree` + 1.

    The learner is exact if the inner learner is. A polynomial about one origin is a polynomial about any
    other, so mixtures over hypotheses are matched about the same origin, in their first two moments. x is one
    number, or (1,).

    Cost: that of the learner, and P^3 a step for beginning a segment.

    Example:
        >>> import credo
        >>> from credo.adapt import RunLength
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = RunLength(LocalPolynomial(inner, 1), conditional_prior=Continuous())
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), 3.0, 1.0)
        >>> float(belief.best.origin)
        3.0
    """

    learner: RecursiveLearner
    degree: int = static_field(default=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.degree, int):
            require_integer("degree", self.degree, 0)

    def wrap(self, prior: Gaussian) -> Piece:
        """The prior of the coefficients of every segment.

        Raises:
            CredoError: the prior has another number of parameters than degree + 1.
        """
        if prior.size != self.degree + 1:
            raise CredoError(f"params must be degree + 1 = {self.degree + 1} numbers; got {prior.size}.")
        zero = jnp.zeros((), floating(prior))
        whole = jnp.zeros((), jnp.int32)
        return Piece(prior, zero, zero, whole + 1, prior, zero, whole)

    def advance(self, belief: Piece, dt: ArrayLike | None) -> Piece:
        """Advance the belief by a step of time. A segment that has not begun has nothing that could move."""
        later = self.learner.time_update(belief.belief, dt)
        unmoved = at_time(belief.belief, later.t)
        return replace(belief, belief=select(belief.state == 1, unmoved, later))

    def _start(self, belief: Piece, x: ArrayLike) -> tuple[Piece, Array]:
        """The belief with the segment begun at x if it has not yet, and the features of x."""
        place = as_like(x, belief.place).reshape(())
        new = belief.state > 0
        origin = jnp.where(new, place, belief.origin)
        prior = at_time(belief.prior, belief.belief.t)
        there = about(belief, place)
        cov = belief.prior.cov.dense()
        old = there.belief.cov.dense()
        joined = cov.at[0, :].set(0.0).at[:, 0].set(0.0).at[0, 0].set(old[0, 0] + belief.jump_var)
        # Where this branch is not taken the matrix must still have a root.
        joined = jnp.where(belief.state == 2, joined, cov)
        joined = joined.at[0, 0].set(jnp.maximum(joined[0, 0], np.finfo(cov.dtype).tiny))
        continued = replace(
            prior, mean=prior.mean.at[0].set(there.belief.mean[0]), cov=self.learner.family.from_dense(joined)
        )
        inner = select(belief.state == 2, continued, select(belief.state == 1, prior, belief.belief))
        segment = replace(
            belief, belief=inner, origin=origin, place=place, state=jnp.zeros_like(belief.state)
        )
        return segment, _powers(place - origin, self.degree + 1)

    def ask(self, belief: Piece, x: PyTree, question: Question) -> Answer:
        segment, features = self._start(belief, x)
        return question(self.learner, segment.belief, features)

    def function_draw(self, belief: Piece, key: Key) -> Callable[[PyTree], Array]:
        """Refused, because what is believed at x depends on which places were passed before.

        Raises:
            CredoError: always.
        """
        raise CredoError(
            "a piecewise polynomial has no function for all x: its segments begin as x moves on."
        )

    def propose(
        self, belief: Piece, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Piece]:
        """Learn the coefficients about the origin of the segment."""
        segment, features = self._start(belief, x)
        learned, info = self.learner.measurement_update(segment.belief, features, y, weight, key)
        return Proposal(replace(segment, belief=learned), info.log_evidence, info.ok, info.extras)


def _powers(value: Array, size: int) -> Array:
    """(1, v, v^2, ...) of some length."""
    powers = [jnp.ones_like(value)]
    for _ in range(size - 1):
        powers.append(powers[-1] * value)
    return jnp.stack(powers)


def about(piece: Piece, origin: Array) -> Piece:
    """The same curve with coefficients about another origin: w'_i = sum_j C(j, i) delta^(j - i) w_j."""
    inner = piece.belief
    size = inner.mean.shape[0]
    dtype = inner.mean.dtype
    powers = _powers(origin - piece.origin, size)
    choose = [[float(math.comb(j, i)) for j in range(size)] for i in range(size)]
    gaps = np.maximum(np.arange(size)[None, :] - np.arange(size)[:, None], 0)
    matrix = jnp.asarray(choose, dtype) * powers[gaps]
    cov = inner.cov.linear(matrix, jnp.zeros((size, size), dtype))
    return replace(piece, belief=replace(inner, mean=matrix @ inner.mean, cov=cov), origin=origin)


@matched.register
def _(beliefs: Piece, weights: Array) -> Piece:
    """The mixture's moments, about the latest x."""
    first: Piece = jax.tree.map(lambda leaf: leaf[0], beliefs)
    # Where nothing was seen yet the coefficients are those of the prior about any origin.
    aligned = jax.vmap(lambda piece: select(piece.state == 1, piece, about(piece, piece.place)))(beliefs)
    heaviest = jnp.argmax(weights)
    return replace(
        first,
        belief=matched(aligned.belief, weights),
        origin=beliefs.place[heaviest],
        place=beliefs.place[heaviest],
        state=beliefs.state[heaviest],
    )
