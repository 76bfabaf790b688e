"""Parts of a learner beside its verbs: how a belief begins and grows, and what decisions are made from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.beliefs.widening import embed
from credo.core.errors import CredoError, require_covariance, require_positive, require_representable
from credo.core.trees import Unravel, spread
from credo.core.types import Array, ArrayLike, DTypeLike, Key, PyTree
from credo.core.verbs import verb
from credo.covariances import Covariance
from credo.likelihoods import Expectation

__all__ = ["Expecting", "Extensible", "prior_covariance"]

B = TypeVar("B")
"""The kind of belief that a learner keeps."""


def prior_covariance(
    unravel: Unravel,
    dtype: DTypeLike,
    var: PyTree,
    cov: ArrayLike | None,
    family: Callable[[Array], Covariance],
    from_dense: Callable[[Array], Covariance],
) -> Covariance:
    """The prior covariance that the user described: by variances, or as a matrix (P, P) in their place."""
    if cov is None:
        for leaf in jax.tree.leaves(var):
            require_positive("var", leaf)
        return family(spread(var, unravel, dtype, field="var"))
    require_representable("cov", cov)
    dense = jnp.asarray(cov, dtype)
    if dense.shape != (unravel.size, unravel.size):
        raise CredoError(
            f"cov must be (P, P) = ({unravel.size}, {unravel.size}); got shape {dense.shape}.", field="cov"
        )
    require_covariance("cov", dense, singular=True)
    prior = from_dense(dense)
    if not isinstance(dense, Tracer) and not all(map(_known, jax.tree.leaves(prior))):
        raise CredoError(
            "cov must be positive definite for this family, which holds inverses of variances; Full() takes "
            "parameters that are known exactly.",
            field="cov",
        )
    return prior


def _known(leaf: Array) -> bool:
    """Whether an array has numbers alone."""
    return bool(np.all(np.isfinite(np.asarray(leaf))))


class Extensible(ABC, Generic[B]):
    """The part of a learner that makes beliefs and gives them room; every `Learner` derives from it."""

    @abstractmethod
    def init(self, params: PyTree = None, *, var: PyTree = 1.0) -> B:
        """The belief before any data.

        Arguments:
            params: the prior mean, a pytree of floating-point arrays.
            var: the prior variance: a number, an array (P,), or a tree like `params`.

        Returns:
            The belief, with `t` at 0. A learner may take further arguments, by keyword.
        """

    def widen(self, belief: B, params: PyTree = None, *, var: PyTree = 1.0, **others: PyTree) -> B:
        """The same belief inside more parameters, as for features or classes that appear later.

        With theta the parameters of the belief and phi those that are new,

            q(theta, phi) = q(theta) p(phi),   p = N(params, var) at the new parameters.

        Every leaf of the old parameters is a *corner* of the new leaf: what is new stands at the end of an
        axis. The result has the shapes of `init` with the same arguments. If a belief holds others, each
        is widened, priors included; arrays of a wrapper's own that have an entry an input grow at their end
        by the values of a first belief.

        Arguments:
            belief: what the narrower learner learned, which is not changed.
            params, var: as for `init` of this learner, whose model is the wider one (`Linear` and `MLP` take
                their numbers of inputs from the parameters, so that it is often the same learner). At the
                places of the old parameters they do not count.
            others: further arguments of `init`, such as `example`, or the `key` from which ensembles and
                particles draw their new parameters.

        Returns:
            The wider belief, with the clock of the old one.

        Raises:
            CredoError: the belief is not of this learner's kind, a leaf of the old parameters is larger than
                the new one, or this kind of belief cannot be widened.

        Exact for Gaussian, point and conjugate beliefs of every family: to go on is to have begun with all
        parameters, with inputs of 0 for features that were not there, while the dynamics leave a prior as it
        is (`Static`, `OrnsteinUhlenbeck`, `PriorBound`). What draws or averages over all P parameters goes on
        from the same belief in another way: Monte Carlo curvatures, and low-rank families whose base is
        "spherical" or whose first directions are random. Ensembles and particles draw their new parameters.
        Cost: that of `init`, and a copy. The method is not compiled.

        Example:
            A third feature appears after two rows:

            >>> import credo, jax.numpy as jnp
            >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
            >>> belief, _ = credo.run(learner, learner.init(jnp.zeros(2)), jnp.eye(2), jnp.ones(2))
            >>> belief = learner.widen(belief, jnp.zeros(3), var=4.0)
            >>> [round(value, 2) for value in belief.sd.tolist()]
            [0.3, 0.3, 2.0]
            >>> belief, info = learner.step(belief, jnp.ones(3), 3.0)
            >>> int(belief.t)
            3
        """
        prior: B = self.init(params, **{"var": var, **others})
        return embed(belief, prior)


class Expecting(Generic[B]):
    """The part of a learner that decisions are made from; every `Learner` derives from it."""

    @verb
    def expect(self, belief: B, x: PyTree) -> Expectation:
        """The belief about the expected observation E[y | theta, x], without the noise of y.

        Arguments:
            belief: the predicted belief.
            x: one row of inputs; or several rows for a joint model, whose numbers come with their joint
                distribution.

        Returns:
            The distribution of K numbers: one an output of the row (the class probabilities of a classifier),
            or one a row of a joint model.

        Raises:
            CredoError: the learner writes no `expectation`.
        """
        return self.expectation(belief, x)

    @verb
    def sample_function(self, belief: B, key: Key) -> Callable[[PyTree], Array]:
        """Draw a function x -> E[y | theta, x] from the belief.

        Arguments:
            belief: any belief of this learner.
            key: the key of the draw.

        Returns:
            A record that is called with one row x, and gives a scalar for one output, else (C,). It may be
            vmapped and differentiated. Outputs of networks are linearised at the mean of the belief.

        Raises:
            CredoError: the learner writes no `function_draw`.
        """
        return self.function_draw(belief, key)

    def expectation(self, belief: B, x: PyTree) -> Expectation:
        """The distribution of E[y | theta, x] under the belief. `expect` compiles this function.

        A learner that takes part in decisions writes it. The arguments are those of `expect`.

        Raises:
            CredoError: the subclass does not write it.
        """
        raise CredoError(f"{type(self).__name__} has no expectation(belief, x); write this method in it.")

    def function_draw(self, belief: B, key: Key) -> Callable[[PyTree], Array]:
        """One function drawn from the belief, as a record. `sample_function` compiles this function.

        Raises:
            CredoError: the subclass does not write it.
        """
        raise CredoError(f"{type(self).__name__} has no function_draw(belief, key); write this method in it.")

    def inputs_of(self, row: PyTree) -> PyTree:
        """The x that the verbs of this learner take for one row of its model's inputs: by default the row."""
        return row
