"""Turn settings into a learner and its prior belief."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import credo
from credo.cli import defaults
from credo.cli.options import (
    ITERATED,
    RULES,
    WRAPPED,
    Settings,
    parse_drift,
    parse_model,
    parse_posterior,
    spell_drift,
)
from credo.cli.wrapping import require_memory, require_wrapping, wrap
from credo.core.errors import CredoError, require_choice, require_positive
from credo.learners import Learner

__all__ = ["build", "network", "resolve"]


def network(model: str, outputs: int, shape: tuple[int, ...]) -> Any:
    """The network of a `--model`."""
    kind, widths = parse_model(model)
    if kind == "cnn":
        if len(shape) < 2:
            raise CredoError(
                f"--model cnn needs images; this data has {shape[0]} features: use linear or mlp:50."
            )
        return credo.CNN(outputs, activation=defaults.activation(True))
    return (
        credo.Linear(outputs)
        if kind == "linear"
        else credo.MLP(outputs, widths, defaults.activation(len(shape) > 1))
    )


def outputs_of(task: str, classes: int) -> int:
    """How many outputs a model has: one for numbers and for two classes, else one a class."""
    return 1 if task == "regression" or classes == 2 else classes


def count_parameters(net: Any, shape: tuple[int, ...]) -> int:
    """P, without computing anything."""
    made = jax.eval_shape(lambda: net.init(jax.random.key(0), shape))
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(made))


def resolve(
    asked: dict[str, Any], task: str, shape: tuple[int, ...], classes: int, ordered: bool
) -> tuple[Settings, int]:
    """Fill in what the user left open, and refuse what does not fit together.

    Arguments:
        asked: `model`, `posterior`, `method`, `curvature`, `drift`, `prior_var`, `noise_var`,
            `learning_rate`, `iterations`, `seed`; None or "auto" where nothing was asked for.
        task, shape, classes: of the data.
        ordered: whether the rows are one stream.

    Returns:
        The settings, and the number P of parameters.
    """
    images, method = len(shape) > 1, asked["method"]
    curvature = asked["curvature"] or "lin-hess"
    chosen = asked["model"] or "auto"
    model = defaults.model(task, shape, classes) if chosen == "auto" else chosen
    kind, widths = parse_model(model)
    size = count_parameters(network(model, outputs_of(task, classes), shape), shape)
    drift = asked["drift"] or "auto"
    drift = (defaults.drift(images, ordered) if method in RULES else "none") if drift == "auto" else drift
    drift = spell_drift(drift)
    require_wrapping(drift, method)
    posterior = asked["posterior"] or "auto"
    if method not in RULES:
        if posterior != "auto":
            raise CredoError(
                f"--posterior {posterior} does not fit --method {method}, which keeps no uncertainty; "
                "use --method bong."
            )
        posterior = "none"
    elif posterior == "auto":
        cubic = method in ("bog", "bbb") or curvature == "mc-hess"
        still = parse_drift(drift)[0] in ("none", "run-length")
        posterior = defaults.posterior(size, images, not still or cubic)
    else:
        rank = parse_posterior(posterior)[1]
        if rank is not None and rank > size:
            raise CredoError(
                f"the rank of --posterior low-rank must be at most the number of parameters, {size}; "
                f"got {rank}."
            )
    require_memory(posterior, size, drift)
    for option, value in (("--prior-var", "prior_var"), ("--noise-var", "noise_var")):
        if asked[value] is not None:
            require_positive(option, asked[value])
    if asked["noise_var"] is not None and task != "regression":
        raise CredoError(
            "--noise-var is for regression; this target is classified (--task regression to override)."
        )
    prior_var = defaults.prior_scale(kind, task, images) if asked["prior_var"] is None else asked["prior_var"]
    rate = asked["learning_rate"] or defaults.LEARNING_RATE.get(method)
    if posterior.startswith("low-rank"):
        posterior = f"low-rank:{parse_posterior(posterior)[1]}"
    if kind == "mlp":
        model = "mlp:" + ",".join(map(str, widths))
    settings = Settings(
        task,
        model,
        posterior,
        method,
        curvature,
        drift,
        float(prior_var),
        asked["noise_var"],
        rate,
        asked["seed"],
        (asked["iterations"] or defaults.ITERATIONS[method]) if method in ITERATED else None,
    )
    return settings, size


def build(settings: Settings, shape: tuple[int, ...], classes: int) -> tuple[Learner, Any]:
    """The learner and its prior belief.

    Arguments:
        settings: resolved settings.
        shape: of one row of inputs.
        classes: how many there are (0 for regression).
    """
    net = network(settings.model, outputs_of(settings.task, classes), shape)
    params = net.init(jax.random.key(settings.seed), shape)
    model = credo.Model(net, _likelihood(settings, classes))
    if not settings.uncertain:
        return _gradient(settings, model, params, shape)
    name, rank = parse_posterior(settings.posterior)
    family = {"full": credo.Full, "diagonal": credo.Diagonal}[name]() if rank is None else credo.LowRank(rank)
    learner = credo.RecursiveLearner(
        model, family, _curvature(settings, rank), _rule(settings), _dynamics(settings.drift)
    )
    var = defaults.prior_var(net, params, len(shape) > 1, settings.prior_var)
    wrapped = wrap(settings.drift, learner)
    return wrapped, wrapped.init(params, var=var)


def _curvature(settings: Settings, rank: int | None) -> Any:
    if settings.curvature == "mc-hess":
        return credo.MonteCarloHessian(defaults.SAMPLES, rank=rank or 10)
    if settings.curvature == "mc-ef":
        return credo.MonteCarloEmpiricalFisher(defaults.SAMPLES)
    return (
        credo.LinearizedGaussNewton()
        if settings.curvature == "lin-hess"
        else credo.LinearizedEmpiricalFisher()
    )


def _rule(settings: Settings) -> Any:
    """The rule of a method that keeps a posterior.

    Plain gradients are by mean and variance (or factors), whatever the posterior: one learning rate then
    moves the mean alike for all of them.
    """
    rate, steps = settings.learning_rate, settings.iterations
    parameters = None if settings.posterior.startswith("low-rank") else "moment"
    if settings.method == "blr":
        return credo.BLRRule(rate, steps)
    if settings.method == "bbb":
        return credo.BBBRule(rate, steps, parameters)
    return (
        credo.BOGRule(rate, parameters) if settings.method == "bog" else credo.BONGRule(iterations=steps or 1)
    )


def _likelihood(settings: Settings, classes: int) -> Any:
    if settings.task == "classification":
        return credo.Bernoulli() if classes == 2 else credo.Categorical(classes)
    if settings.noise_var is not None:
        return credo.Normal(settings.noise_var)
    if not settings.uncertain or settings.curvature != "lin-hess":
        return credo.Normal(defaults.FIXED_NOISE)
    return credo.Normal(credo.InverseGamma(*defaults.NOISE))


def _gradient(settings: Settings, model: Any, params: Any, shape: tuple[int, ...]) -> tuple[Learner, Any]:
    require_choice("--method", settings.method, ("sgd", "momentum", "adam", "replay"))
    dynamics = _dynamics(settings.drift)
    replay = settings.method == "replay"
    learner = credo.GradientLearner(
        model, settings.learning_rate, "sgd" if replay else settings.method, 1, 10 if replay else 1, dynamics
    )
    wrapped: Any = wrap(settings.drift, learner)
    label = np.float32(0) if settings.task == "regression" else np.int32(0)
    return wrapped, wrapped.init(params, example=(np.zeros(shape, np.float32), label))


def _dynamics(text: str) -> Any:
    name, numbers = parse_drift(text)
    if name in WRAPPED:
        return credo.dynamics.Static()
    made = {
        "none": credo.dynamics.Static,
        "walk": credo.RandomWalk,
        "ou": credo.OrnsteinUhlenbeck,
        "inflation": credo.Inflation,
        "decay": credo.Decay,
        "shrink-perturb": credo.ShrinkPerturb,
    }
    return made[name](*numbers)
