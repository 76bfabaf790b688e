"""The official codes: cloned or found in a folder, imported as they are, and wrapped into one call a stream.

The codes are those of the papers: BONG (petergchang/bong), rebayes (probml/rebayes), rebayes-mini
(gerdm/rebayes-mini, the code of BONE), posteriors (normal-computing/posteriors) and dynamax (probml/dynamax).
They run unchanged. Two things are done for them from outside: `jax.tree_map`, which JAX has removed since,
is put back, and `posteriors` is told a version where it was not installed.
"""

# The official codes and their requirements are in no environment of this repository.
# pyright: reportMissingImports=false

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

__all__ = [
    "REPOSITORIES",
    "bong_full",
    "bong_low_rank",
    "bong_monte_carlo",
    "dynamax_kalman",
    "open_codes",
    "posteriors_diagonal",
    "rebayes_full",
    "rebayes_lofi",
    "rebayes_mini_full",
    "rebayes_mini_run_lengths",
]

REPOSITORIES = {
    "bong": "https://github.com/petergchang/bong",
    "rebayes": "https://github.com/probml/rebayes",
    "rebayes-mini": "https://github.com/gerdm/rebayes-mini",
    "posteriors": "https://github.com/normal-computing/posteriors",
    "dynamax": "https://github.com/probml/dynamax",
}
"""The folder of each code and where it is published."""

Apply: TypeAlias = Callable[[Any, Any], Any]
"""From a flat vector of parameters and a row to the outputs."""

Call: TypeAlias = Callable[[], Any]
"""One pass over a stream."""


def open_codes(folder: Path, *, clone: bool) -> None:
    """Make the codes importable.

    Arguments:
        folder: where the repositories lie, or are to be cloned.
        clone: whether to clone those that are missing.
    """
    for name, address in REPOSITORIES.items():
        if not (folder / name).is_dir():
            if not clone:
                raise SystemExit(f"{folder / name} does not exist; --clone fetches {address}")
            subprocess.run(["git", "clone", "--depth", "1", address, str(folder / name)], check=True)
        sys.path.insert(0, str(folder / name))
    if not hasattr(jax, "tree_map"):
        jax.tree_map = jax.tree.map  # type: ignore[attr-defined]
    known = importlib.metadata.version

    def version(distribution_name: str) -> str:
        if distribution_name == "posteriors":
            return "0"
        return known(distribution_name)

    importlib.metadata.version = version


def _scan(update: Callable[[Any, Any, Any, Any], Any], state: Any, xs: Any, ys: Any) -> Call:
    """A compiled scan of an update alone, with a key of its own for each row."""

    @jax.jit
    def run(state: Any, keys: Any, xs: Any, ys: Any) -> Any:
        return jax.lax.scan(lambda s, row: (update(s, *row), None), state, (keys, xs, ys))[0]

    keys = jax.random.split(jax.random.key(0), len(xs))
    return lambda: run(state, keys, xs, ys)


def _normal_log_prob(mean: Any, cov: Any, y: Any) -> Any:
    return -0.5 * jnp.sum((y - mean) ** 2 / jnp.diag(jnp.atleast_2d(cov)))


def _bernoulli_log_prob(mean: Any, cov: Any, y: Any) -> Any:
    return jnp.sum(y * jnp.log(mean + 1e-6) + (1 - y) * jnp.log1p(1e-6 - mean))


def bong_full(apply: Apply, size: int, xs: Any, ys: Any, *, alone: bool) -> Call:
    """The extended Kalman filter of BONG (`fg_bong`, linplugin), with unit noise.

    Arguments:
        apply: the model.
        size: P.
        xs, ys: the rows.
        alone: whether the update is scanned alone, without the predict step that BONG's own runner takes.
    """
    from bong.src import bong
    from bong.util import run_rebayes_algorithm

    def noise(params: Any, x: Any) -> Any:
        return jnp.eye(1)

    start = bong.init_bong(jnp.zeros(size), jnp.eye(size))
    if alone:

        def update(state: Any, key: Any, x: Any, y: Any) -> Any:
            return bong.update_lfg_bong(key, state, x, y, _normal_log_prob, apply, noise)

        return _scan(update, start, xs, ys)
    agent = bong.fg_bong(jnp.zeros(size), jnp.eye(size), _normal_log_prob, apply, noise, linplugin=True)
    run = jax.jit(
        lambda key, xs, ys: run_rebayes_algorithm(
            key, agent, xs, ys, init_state=start, transform=lambda *_: jnp.zeros(())
        )[0]
    )
    return lambda: run(jax.random.key(0), xs, ys)


def bong_monte_carlo(apply: Apply, size: int, xs: Any, ys: Any, samples: int) -> Call:
    """BONG with a full covariance and the empirical Fisher of draws (`fg_bong`), for binary labels."""
    from bong.src import bong

    def probability(params: Any, x: Any) -> Any:
        return jax.nn.sigmoid(apply(params, x))

    def update(state: Any, key: Any, x: Any, y: Any) -> Any:
        return bong.update_fg_bong(
            key, state, x, y, _bernoulli_log_prob, probability, lambda *_: jnp.ones(()), samples, True
        )

    return _scan(update, bong.init_bong(jnp.zeros(size), jnp.eye(size)), xs, ys)


def bong_low_rank(apply: Apply, start: Any, var: float, rank: int, xs: Any, ys: Any) -> Call:
    """BONG with a low-rank precision and linearised Hessians (`dlrg_bong`, linplugin), for one-hot labels."""
    from bong.src import bong

    def probs(params: Any, x: Any) -> Any:
        return jax.nn.softmax(apply(params, x))

    def cov(params: Any, x: Any) -> Any:
        p = probs(params, x)
        return jnp.diag(p) - jnp.outer(p, p) + 1e-6 * jnp.eye(p.shape[0])

    def update(state: Any, key: Any, x: Any, y: Any) -> Any:
        return bong.update_ldlrg_bong(key, state, x, y, _normal_log_prob, probs, cov)

    size = start.shape[0]
    state = bong.init_bong_dlr(start, jnp.full((size, 1), 1.0 / var), jnp.zeros((size, rank)))
    return _scan(update, state, xs, ys)


def rebayes_full(apply: Apply, size: int, xs: Any, ys: Any) -> Call:
    """The update of rebayes' full-covariance extended Kalman filter, with unit noise."""
    from rebayes.extended_kalman_filter import ekf

    agent = ekf.RebayesEKF(
        1.0, 0.0, lambda params, x: jnp.atleast_1d(apply(params, x)), lambda *_: jnp.eye(1), method="fcekf"
    )
    state = agent.init_bel(jnp.zeros(size), 1.0)
    state = state.replace(nobs=0, obs_noise_var=0.0)
    return _scan(lambda s, key, x, y: agent.update_state(s, x, y), state, xs, ys[:, None])


def rebayes_mini_full(apply: Apply, size: int, xs: Any, ys: Any) -> Call:
    """The extended filter of rebayes-mini (Joseph's form), with unit noise, by its own `scan`."""
    from rebayes_mini.methods.base_filter import ExtendedFilter

    agent = ExtendedFilter(lambda params, x: jnp.atleast_1d(apply(params, x)), lambda mean: jnp.eye(1), 0.0)
    state = agent.init_bel(jnp.zeros(size), 1.0)
    run = jax.jit(lambda state, xs, ys: agent.scan(state, ys, xs)[0])
    return lambda: run(state, xs, ys)


def rebayes_lofi(apply: Apply, start: Any, var: float, rank: int, xs: Any, ys: Any) -> Call:
    """LOFI of rebayes (`RebayesLoFiDiagonal`): its update alone, for one-hot labels."""
    from rebayes.low_rank_filter import lofi

    def probs(params: Any, x: Any) -> Any:
        return jax.nn.softmax(apply(params, x))

    def cov(params: Any, x: Any) -> Any:
        p = probs(params, x)
        return jnp.diag(p) - jnp.outer(p, p) + 1e-3 * jnp.eye(p.shape[0])

    agent = lofi.RebayesLoFiDiagonal(1.0, 0.0, probs, cov, memory_size=rank)
    state = agent.init_bel(start, var)
    state = state.replace(nobs=0, obs_noise_var=0.0) if hasattr(state, "nobs") else state
    return _scan(lambda s, key, x, y: agent.update_state(s, x, y), state, xs, ys)


def rebayes_mini_run_lengths(apply: Apply, start: Any, capacity: int, xs: Any, ys: Any) -> Call:
    """`RLPRFilter` of rebayes-mini: run lengths with prior reset around its extended filter, unit noise."""
    from rebayes_mini.methods.adaptive import RLPRFilter
    from rebayes_mini.methods.base_filter import ExtendedFilter

    inner = ExtendedFilter(lambda params, x: jnp.atleast_1d(apply(params, x)), lambda mean: jnp.eye(1), 0.0)
    agent = RLPRFilter(0.01, capacity, inner)
    state = agent.init_bel(start, 1.0)
    run = jax.jit(lambda state, xs, ys: agent.scan(ys, xs, state)[0])
    return lambda: run(state, xs, ys[:, None])


def dynamax_kalman(matrices: list[Any], ys: Any) -> Call:
    """dynamax's `lgssm_filter`.

    Arguments:
        matrices: of the transition, the observation, and the covariances of the noise of both.
        ys: the observations (T, C).
    """
    from dynamax.linear_gaussian_ssm.inference import lgssm_filter, make_lgssm_params

    move, look, moved, seen = matrices
    params = make_lgssm_params(jnp.zeros(len(move)), jnp.eye(len(move)), move, moved, look, seen)
    run = jax.jit(lambda params, ys: lgssm_filter(params, ys).filtered_means)
    return lambda: run(params, ys)


def posteriors_diagonal(inputs: int, width: int, x: np.ndarray, y: np.ndarray) -> Call:
    """`posteriors`' ekf.diag_fisher over a network with one hidden layer and ten classes, a row a batch."""
    import torch
    from posteriors import ekf
    from torch.func import functional_call

    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = torch.nn.Sequential(torch.nn.Linear(inputs, width), torch.nn.ReLU(), torch.nn.Linear(width, 10))

    def log_likelihood(params: dict[str, Any], batch: tuple[Any, ...]) -> tuple[Any, ...]:
        rows, labels = batch
        logits = functional_call(network, params, rows)
        loss = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
        return -loss, torch.tensor([])

    xs = torch.as_tensor(x, dtype=torch.float32)[:, None]
    ys = torch.as_tensor(y, dtype=torch.long)[:, None]
    transform = ekf.diag_fisher.build(log_likelihood, lr=1.0, per_sample=True, init_sds=0.1)
    params = {name: p.detach().clone() for name, p in network.named_parameters()}

    def run() -> Any:
        state = transform.init(params)
        for row, label in zip(xs, ys, strict=True):
            state, _ = transform.update(state, (row, label))
        return SimpleNamespace(mean=state.params)

    return run


def or_absent(make: Callable[..., Any]) -> Callable[..., Any]:
    """The same call of an official code, or where it lacks a package a call that says so."""

    def made(*values: Any, **options: Any) -> Any:
        try:
            return make(*values, **options)
        except ImportError as error:
            why = f"{error.name} is not installed"

        def call() -> None:
            raise RuntimeError(why)

        return call

    return made


def guarded() -> SimpleNamespace:
    """All codes, each as `or_absent` makes it."""
    made = {name: globals()[name] for name in __all__ if name != "REPOSITORIES"}
    return SimpleNamespace(**{name: or_absent(make) for name, make in made.items()})
