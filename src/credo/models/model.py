"""A model: outputs as a function of parameters and inputs, and a likelihood for the observations.

The networks of other libraries become `(apply, params)`. They are imported only when they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Literal

from credo.core.errors import CredoError
from credo.core.inputs import shapes_of
from credo.core.records import REGISTRY, record, record_name, static_field
from credo.core.trees import Unravel
from credo.core.types import Array, PyTree
from credo.likelihoods import Likelihood
from credo.likelihoods import Rows as JointRows
from credo.likelihoods.base import LikelihoodBase
from credo.linalg.jacobians import DenseRows, OuterRows, Rows
from credo.linalg.matrices import identity
from credo.models.networks import MLP, Linear

__all__ = ["Apply", "Model", "Picked", "View", "as_apply", "from_equinox", "from_flax", "is_affine", "joint"]

_LINEAR = frozenset(
    [
        "add",
        "add_any",
        "sub",
        "neg",
        "convert_element_type",
        "copy",
        "copy_p",
        "reshape",
        "transpose",
        "squeeze",
        "broadcast_in_dim",
        "concatenate",
        "slice",
        "pad",
        "rev",
        "reduce_sum",
        "cumsum",
        "split",
        "optimization_barrier",
    ]
)
"""Operations that are affine where all their operands are."""

_PRODUCTS = frozenset(["mul", "dot_general", "conv_general_dilated"])
"""Operations that are affine where one operand is and the other is constant."""

_IN_FIRST = frozenset(["div", "dynamic_slice", "gather"])
"""Operations that are affine in their first operand where the others are constant."""


def is_affine(function: Callable[[PyTree], Array], params: PyTree) -> bool:
    """Whether f(p) = f(0) + J p with one J for all p; the function is traced, and nothing is computed.

    It is so, for certain, where f is put together from sums, products with constants and changes of layout.
    Functions that are affine in a roundabout way count as not affine.
    """
    closed = jax.make_jaxpr(function)(params)
    return all(_moving(closed.jaxpr, [True] * len(closed.jaxpr.invars)) or [False])


def _moving(jaxpr: Jaxpr, inputs: list[bool]) -> list[bool] | None:
    """Which outputs depend on the inputs that do, each in an affine way; None if one may not be affine."""
    moving = {variable for variable, moves in zip(jaxpr.invars, inputs, strict=True) if moves}
    for equation in jaxpr.eqns:
        operands = [not isinstance(atom, Literal) and atom in moving for atom in equation.invars]
        if not any(operands):
            continue
        results = _step(equation, operands)
        if results is None:
            return None
        moving.update(v for v, moves in zip(equation.outvars, results, strict=True) if moves)
    return [not isinstance(atom, Literal) and atom in moving for atom in jaxpr.outvars]


def _step(equation: JaxprEqn, operands: list[bool]) -> list[bool] | None:
    """Which results of one operation depend on the parameters; None if one may not be affine."""
    name = equation.primitive.name
    if name in ("jit", "pjit"):
        return _moving(equation.params["jaxpr"].jaxpr, operands)
    if not all(
        jnp.issubdtype(jnp.dtype(getattr(v.aval, "dtype", bool)), jnp.floating) for v in equation.outvars
    ):
        return None
    fine = (
        name in _LINEAR
        or (name in _PRODUCTS and sum(operands) == 1)
        or (name in _IN_FIRST and not any(operands[1:]))
        or (name == "select_n" and not operands[0])
    )
    if fine:
        return [True] * len(equation.outvars)
    return None


Apply: TypeAlias = Callable[[PyTree, PyTree], Array]
"""A function from parameters and one row of inputs to the outputs, a scalar or (C,)."""


LAYERED = (MLP, Linear)
"""Networks that give their Jacobian as outer products."""

# The numbers of parameters and of outputs from which outer products are faster than an array of rows.
LARGE = 8192
MANY = 32


@record
class Function:
    """A plain function as a record, so that `Model.apply` is a pytree whatever it is."""

    function: Apply = static_field()

    def __call__(self, params: PyTree, x: PyTree) -> Array:
        """Call it."""
        return self.function(params, x)

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", None)
        if isinstance(name, str):
            return name
        return repr(self.function)


def as_apply(function: Apply) -> Apply:
    """A function as a record, so that it is part of a tree; a record, and what is no function, as it is."""
    known = REGISTRY.get(record_name(type(function))) is type(function)
    if known or not callable(function):
        return function
    return Function(function)


@runtime_checkable
class View(Protocol):
    """A network that sees a function of its inputs: apply(params, x) = network(params, see(x)).

    What is seen does not depend on the parameters, so the Jacobian is that of the network at `see(x)`.
    """

    @property
    def network(self) -> Apply:
        """The network, `apply(params, x)`."""
        ...

    def see(self, x: PyTree) -> Array:
        """The input of the network for one row x."""
        ...


@record
class Picked:
    """One output of a network with K outputs: apply(params, (x, k)) = network(params, x)[k].

    Observing output k alone teaches nothing about the weights that only other outputs use. It is the model of
    a bandit whose arms are the outputs of one network, and costs one row of a Jacobian rather than K.

    Attributes:
        network: `apply(params, x)`, with K outputs.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> net = credo.MLP(outputs=3, hidden=(4,))
        >>> model = credo.Model(credo.models.Picked(net), credo.Normal(0.1))
        >>> model.apply(net.init(0, (2,)), (jnp.ones(2), 1)).shape
        ()
    """

    network: Apply

    def __post_init__(self) -> None:
        object.__setattr__(self, "network", as_apply(self.network))

    @property
    def start(self) -> PyTree:
        """The parameters that the network starts from, if it has any of its own."""
        return getattr(self.network, "start", None)

    def __call__(self, params: PyTree, x: tuple[PyTree, Array]) -> Array:
        """The output."""
        inputs, which = x
        return self.network(params, inputs).reshape(-1)[which]


@record
class Model:
    """The model p(y | theta, x) = likelihood(y; eta = apply(theta, x)).

    Arguments:
        apply: `apply(params, x) -> eta` for one row x, where eta is a scalar or (C,). It is a function, which
            should be made only once because compiled code is kept per function, or a callable record, whose
            arrays are then hyper-parameters of the model.
        likelihood: a `Likelihood`.
        batched: whether x and y hold several rows that are linearised together, as `joint` sets it.

    Raises:
        CredoError: `apply` is not a function, or `likelihood` is not a `Likelihood`.

    Example:
        >>> from credo.likelihoods import Normal
        >>> model = Model(lambda w, x: x @ w, Normal(0.1))
        >>> model.apply(jnp.ones(2), jnp.ones(2))
        Array(2., dtype=float32)
    """

    apply: Apply
    likelihood: LikelihoodBase
    batched: bool = static_field(default=False)

    def __post_init__(self) -> None:
        if not callable(self.apply):
            raise CredoError(f"apply must be a function of (params, x); got {self.apply!r}.")
        object.__setattr__(self, "apply", as_apply(self.apply))
        if callable(self.likelihood) and not isinstance(self.likelihood, LikelihoodBase):
            raise CredoError(
                "likelihood must be a Likelihood; wrap a function as credo.Likelihood(log_prob)."
            )

    @property
    def each(self) -> Model:
        """The model of one row, which is the model itself unless it is joint."""
        if isinstance(self.likelihood, JointRows):
            return Model(self.apply, self.likelihood.each)
        return self

    def rows_of(self, eta: Array, x: PyTree) -> tuple[LikelihoodBase, Array]:
        """The likelihood of one row, and the outputs of each row (K, E).

        A joint model has as many rows as x, and one that joins its outputs has a row for each output.
        """
        if not isinstance(self.likelihood, JointRows):
            return self.likelihood, eta[None, :]
        count = jnp.shape(jax.tree.leaves(x)[0])[0] if self.batched else eta.shape[0]
        return self.likelihood.each, eta.reshape(count, -1)

    def outputs(self, vector: Array, unravel: Unravel, x: PyTree) -> Array:
        """eta at the parameters `vector` (P,): (C,), or (B C,) for a joint model."""
        return self._eta(unravel(vector), x)

    def affine(self, vector: Array, unravel: Unravel, x: PyTree) -> bool:
        """Whether the outputs at x are affine in the parameters, by the operations that `apply` is made of.

        Decided while a program is compiled, for no cost in the program. True is certain; see
        `credo.models.model.is_affine`.
        """
        return is_affine(lambda params: self._eta(params, x), unravel(vector))

    def _eta(self, params: PyTree, x: PyTree) -> Array:
        if self.batched:
            return jax.vmap(lambda row: self._row(params, row))(_rows(x)).reshape(-1)
        eta = self._row(params, x)
        self.likelihood.check(eta.shape[0])
        return eta

    def _row(self, params: PyTree, x: PyTree) -> Array:
        try:
            eta = self.apply(params, x)
        except (TypeError, ValueError, IndexError) as error:
            if isinstance(error, CredoError):
                raise
            raise CredoError(
                f"apply(params, x) fails for x of shape {shapes_of(x)} and params of shape "
                f"{shapes_of(params)}: {str(error).splitlines()[0].rstrip('.')}."
            ) from error
        if not isinstance(eta, Array) or eta.ndim > 1:
            shape = getattr(eta, "shape", type(eta).__name__)
            raise CredoError(f"apply must return a scalar or a vector (C,) for one row; got {shape}.")
        return eta.reshape(-1)

    def linearize(
        self, vector: Array, unravel: Unravel, x: PyTree, *, layered: bool = False
    ) -> tuple[Array, Rows]:
        """Like `jacobian`, but with the Jacobian as `Rows`.

        They are `OuterRows` if the network is made of dense layers, and is large enough for the saving to
        matter or `layered` asks for them however small it is; and otherwise `DenseRows`.
        """
        network = self._layered(vector, unravel, layered)
        if network is None:
            eta, jacobian = self.jacobian(vector, unravel, x)
            return eta, DenseRows(jacobian)
        params = unravel(vector)
        apply = self.apply

        def outer(row: PyTree) -> tuple[Array, OuterRows]:
            if not isinstance(apply, Picked):
                return network.linearize(params, apply.see(row) if isinstance(apply, View) else row)
            inputs, which = row
            eta, rows = network.linearize(params, inputs)
            return eta[which][None], rows.combine(jax.nn.one_hot(which, eta.shape[0], dtype=eta.dtype))

        if not self.batched:
            eta, rows = outer(x)
            self.likelihood.check(eta.shape[0])
            return eta, rows
        eta, rows = jax.vmap(outer)(x)
        return eta.reshape(-1), jax.tree.map(lambda leaf: leaf[:, 0], rows)

    def _layered(self, vector: Array, unravel: Unravel, small: bool = False) -> MLP | Linear | None:
        """The network, if it is made of dense layers and is large, or may be small."""
        network = self.apply.network if isinstance(self.apply, Picked | View) else self.apply
        if not isinstance(network, LAYERED) or set(unravel.dtypes) != {str(vector.dtype)}:
            return None
        large = vector.shape[0] >= LARGE or network.outputs >= MANY
        if large or small:
            return network
        return None

    def jacobian(self, vector: Array, unravel: Unravel, x: PyTree) -> tuple[Array, Array]:
        """The outputs eta (C,) and d eta / d theta (C, P), with one reverse pass an output."""
        if self._layered(vector, unravel) is not None:
            eta, layered = self.linearize(vector, unravel, x)
            return eta, layered.dense()
        if self.batched:
            each = self.each
            eta, rows = jax.vmap(lambda row: each.jacobian(vector, unravel, row))(_rows(x))
            return eta.reshape(-1), rows.reshape(-1, vector.shape[0])
        # The derivative is taken in the tree and laid out once: through the vector, every leaf's part would
        # be padded to P.
        eta, pullback = jax.vjp(lambda params: self._eta(params, x), unravel(vector))
        (tree,) = jax.vmap(pullback)(identity(eta.shape[0], eta.dtype))
        return eta, _flat(tree, vector)

    def gradients(
        self, vector: Array, unravel: Unravel, x: PyTree, y: PyTree, likelihood: LikelihoodBase
    ) -> tuple[Array, Array, Array]:
        """eta, log p(y | theta, x), and its gradient in theta, one row an observation: (C,), (), (B, P)."""
        if self.batched:
            assert isinstance(likelihood, JointRows)
            each = Model(self.apply, likelihood.each)
            eta, value, rows = jax.vmap(lambda a, b: each.gradients(vector, unravel, a, b, each.likelihood))(
                _rows(x), y
            )
            return eta.reshape(-1), jnp.sum(value), rows.reshape(-1, vector.shape[0])
        eta, pullback = jax.vjp(lambda params: self._eta(params, x), unravel(vector))
        (tree,) = pullback(likelihood.score(eta, y).astype(eta.dtype))
        return eta, likelihood.log_prob(eta, y), _flat(jax.tree.map(lambda leaf: leaf[None], tree), vector)

    def gradient_rows(
        self, vector: Array, unravel: Unravel, x: PyTree, y: PyTree, likelihood: LikelihoodBase
    ) -> tuple[Array, Rows]:
        """eta, and the gradient of log p(y | theta, x) as `Rows`, one row an observation.

        They are `OuterRows` under the conditions of `linearize`.
        """
        if self._layered(vector, unravel) is None:
            eta, _, gradients = self.gradients(vector, unravel, x, y, likelihood)
            return eta, DenseRows(gradients)
        eta, rows = self.linearize(vector, unravel, x)
        assert isinstance(rows, OuterRows)
        return eta, rows.combine(likelihood.score(eta, y))


def _rows(x: PyTree) -> PyTree:
    """The inputs of a joint model, if there are any."""
    if not jax.tree.leaves(x):
        raise CredoError(
            f"x must have a row for each row of y, since the model is joint; got {x!r}.", field="x"
        )
    return x


def _flat(tree: PyTree, like: Array) -> Array:
    """Leaves (k, ...) side by side as rows (k, P)."""
    return jnp.concatenate(
        [leaf.reshape(leaf.shape[0], -1).astype(like.dtype) for leaf in jax.tree.leaves(tree)], axis=1
    )


def joint(model: Model) -> Model:
    """The model of a mini-batch: x and y have a leading axis of B rows, whose log-likelihoods are *summed*.

    The rows are linearised together at the same parameters, so B rows are B observations in one step. This is
    exact for linear-Gaussian models. Missing rows (NaN y) are left out, and `weight` may be one number a row.

    Raises:
        CredoError: the model is joint already.

    Example:
        >>> from credo.likelihoods import Normal
        >>> joint(Model(lambda w, x: x @ w, Normal(0.1))).batched
        True
    """
    if model.batched:
        raise CredoError("this model is joint already; join it once.")
    return Model(model.apply, JointRows(model.likelihood), True)


def as_model(value: object) -> Model:
    """Refuse, with a hint, a value that is no `Model` or whose likelihood is not of the class asked for."""
    if not isinstance(value, Model):
        raise CredoError(f"model must be a credo.Model(apply, likelihood); got {type(value).__name__}.")
    if not isinstance(value.likelihood, LikelihoodBase):
        name = Likelihood.__name__
        raise CredoError(
            f"model.likelihood must be a credo.{name}, such as credo.Normal(0.1); got {value.likelihood!r}."
        )
    return value


@record
class _Equinox:
    structure: PyTree = static_field()
    params: PyTree = static_field(default=None)

    def __call__(self, params: PyTree, x: PyTree) -> Array:
        import equinox as eqx  # pyright: ignore[reportMissingImports]  # an extra of the user's

        outputs: Array = eqx.combine(params, self.structure)(x)
        return outputs


def from_equinox(module: PyTree) -> tuple[Apply, PyTree]:
    """Split an equinox module into `apply(params, x)` and its parameters (its floating-point arrays).

    Arguments:
        module: a callable equinox module of one row, without random layers such as dropout.

    Returns:
        A function for `Model`, and the parameter tree for `init`.

    Example:
        >>> import equinox, jax  # doctest: +SKIP
        >>> network = equinox.nn.MLP(3, 1, 20, 1, key=jax.random.key(0))  # doctest: +SKIP
        >>> apply, params = from_equinox(network)  # doctest: +SKIP
        >>> learner = credo.bong(credo.Model(apply, credo.Normal(0.1)), credo.Diagonal())  # doctest: +SKIP
        >>> belief = learner.init(params, var=0.1)  # doctest: +SKIP
    """
    import equinox as eqx  # pyright: ignore[reportMissingImports]  # an extra of the user's

    params, structure = eqx.partition(module, eqx.is_inexact_array)
    return _Equinox(structure, jax.tree.structure(params)), params


class FlaxModule(Protocol):
    """The part of a flax module that `from_flax` uses."""

    def apply(self, variables: PyTree, x: PyTree, /) -> Array:
        """The outputs for one row."""
        ...


@record
class _Flax:
    module: FlaxModule = static_field()

    def __call__(self, params: PyTree, x: PyTree) -> Array:
        return self.module.apply({"params": params}, x)


def from_flax(module: FlaxModule, variables: PyTree) -> tuple[Apply, PyTree]:
    """Make `apply(params, x)` and the parameters from a flax (linen) module and its initial variables.

    Arguments:
        module: a flax linen module of one row, without mutable collections such as batch statistics.
        variables: what `module.init(key, x)` returned.

    Returns:
        A function for `Model`, and the parameter tree for `init`.

    Example:
        >>> import flax.linen as nn, jax, jax.numpy as jnp  # doctest: +SKIP
        >>> module = nn.Dense(1)  # doctest: +SKIP
        >>> variables = module.init(jax.random.key(0), jnp.ones(3))  # doctest: +SKIP
        >>> apply, params = from_flax(module, variables)  # doctest: +SKIP
        >>> learner = credo.bong(credo.Model(apply, credo.Normal(0.1)), credo.Diagonal())  # doctest: +SKIP
        >>> belief = learner.init(params, var=0.1)  # doctest: +SKIP
    """
    return _Flax(module), variables["params"]
