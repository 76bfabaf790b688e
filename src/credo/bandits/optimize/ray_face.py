"""A searcher for Ray Tune, which asks an optimiser for the configuration of each trial."""

from __future__ import annotations

import json
import math
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from credo.bandits.optimize.optimizer import Optimizer
from credo.bandits.optimize.promises import AcquisitionName
from credo.bandits.optimize.variables import Parameter
from credo.core.errors import CredoError, FormatError, require_integer

if TYPE_CHECKING:
    from ray.tune.search import Searcher

__all__ = ["ray_searcher"]

# The two parts of a saved searcher.
_OPTIMIZER = "optimizer.credo"
_TRIALS = "trials.json"


def ray_searcher(
    space: Mapping[str, Any] | None = None,
    *,
    metric: str | None = None,
    mode: str | None = None,
    acquisition: AcquisitionName = "ei",
    deterministic: bool = False,
    seed: int = 0,
) -> Searcher:
    """A searcher for `ray.tune.TuneConfig(search_alg=...)`, by Bayesian optimisation without settings.

    An `Optimizer` chooses all parameters of a trial together. Trials that run are pending, and trials that
    failed, or whose metric is not finite, are points to keep away from. What Tune saves of the searcher is
    the optimiser, in credo's format and without pickle: a search that is restored goes on bit by bit.

    Arguments:
        space: domains of Ray Tune by name, nested as a configuration is: `uniform`, `loguniform`, `randint`,
            `lograndint`, their quantised forms, and `choice`; other values are constants. None leaves it to
            Tune, which hands over `param_space`.
        metric: the name of the metric; None leaves it to `TuneConfig(metric=...)`.
        mode: "min" or "max"; None leaves it to `TuneConfig(mode=...)`.
        acquisition: how the next point is chosen, as for `Optimizer`.
        deterministic: whether a configuration has the same metric whenever it is tried.
        seed: the seed of all draws.

    Returns:
        The searcher, a `ray.tune.search.Searcher`.

    Raises:
        CredoError: Ray Tune is not installed, a domain is none of these, or a name has a slash.

    Example:
        >>> from ray import tune  # doctest: +SKIP
        >>> config = tune.TuneConfig(  # doctest: +SKIP
        ...     search_alg=bandits.optimize.ray_searcher(), metric="loss", mode="min", num_samples=50
        ... )
        >>> tune.Tuner(objective, tune_config=config, param_space=space).fit()  # doctest: +SKIP
    """
    require_integer("seed", seed, 0, 2**32 - 1)
    try:
        from ray.tune.search import Searcher
    except ImportError as error:
        raise CredoError(
            "ray_searcher needs Ray Tune, which is not installed: pip install 'ray[tune]'."
        ) from error

    class Search(_Asking, Searcher):
        """The searcher."""

        def __init__(self) -> None:
            Searcher.__init__(self, metric, mode)
            _Asking.__init__(self, space, metric, mode, acquisition, deterministic, seed)

    return Search()


class _Asking:
    """Asks an optimiser that was told all trials that ended: what a `Searcher` needs beside its base."""

    def __init__(
        self,
        space: Mapping[str, Any] | None,
        metric: str | None,
        mode: str | None,
        acquisition: AcquisitionName,
        deterministic: bool,
        seed: int,
    ) -> None:
        self._metric = metric
        self._mode = mode
        self._space = _parameters(space or {})
        self._acquisition: AcquisitionName = acquisition
        self._deterministic = deterministic
        self._seed = seed
        self._search: Optimizer | None = None
        self._points: dict[str, Any] = {}

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        if self._space and config:
            return False
        self._space = self._space or _parameters(config)
        self._metric = metric or self._metric
        self._mode = mode or self._mode
        return True

    def _optimizer(self) -> Optimizer:
        if self._search is None:
            if not self._space:
                raise CredoError("space must have at least one domain of Ray Tune.", field="space")
            if self._mode not in ("min", "max") or not self._metric:
                raise CredoError(
                    f"metric and mode must be a name and 'min' or 'max'; got {self._metric!r} and "
                    f"{self._mode!r}.",
                    field="metric",
                )
            bounds = {name: one.bounds for name, one in self._space.items()}
            self._search = Optimizer(
                None,
                bounds,
                goal=cast("Any", self._mode),
                acquisition=self._acquisition,
                deterministic=self._deterministic,
                seed=self._seed,
            )
        return self._search

    def suggest(self, trial_id: str) -> dict[str, Any]:
        point = cast("dict[str, Any]", self._optimizer().ask())
        self._points[trial_id] = point
        return _nested({name: self._space[name].value_of(value) for name, value in point.items()})

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        point = self._points.pop(trial_id, None)
        if point is not None:
            value = None if error or not result else _finite(result.get(f"{self._metric}"))
            self._optimizer().tell(point, value)

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        if not pruned:
            flat = _flat(parameters)
            if missing := self._space.keys() - flat.keys():
                raise CredoError(
                    f"parameters must have {', '.join(sorted(missing))}, as the space has; got "
                    f"{', '.join(flat) or 'none'}.",
                    field="parameters",
                )
            point = {name: one.seen_as(flat[name]) for name, one in self._space.items()}
            self._optimizer().tell(point, None if error else _finite(value))

    def save(self, checkpoint_path: str) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            zipfile.ZipFile(checkpoint_path, "w") as parts,
        ):
            parts.write(self._optimizer().save(Path(folder) / _OPTIMIZER), _OPTIMIZER)
            parts.writestr(_TRIALS, json.dumps(self._points))

    def restore(self, checkpoint_path: str) -> None:
        try:
            with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(checkpoint_path) as parts:
                self._points = json.loads(parts.read(_TRIALS))
                self._search = Optimizer.load(parts.extract(_OPTIMIZER, folder))
        except (zipfile.BadZipFile, KeyError, json.JSONDecodeError) as wrong:
            raise FormatError(f"{checkpoint_path} holds no searcher that was saved here.") from wrong


def _finite(value: Any) -> float | None:
    """A metric as a number; None where it is missing or not finite."""
    if value is not None and math.isfinite(value):
        return float(value)
    return None


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested configuration with one name for each value, joined by slashes."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if "/" in name:
            raise CredoError(f"{name!r} must have no slash, which joins nested names.", field="space")
        path = f"{prefix}{name}"
        flat |= _flat(value, f"{path}/") if isinstance(value, Mapping) else {path: value}
    return flat


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration whose values have these names."""
    config: dict[str, Any] = {}
    for path, value in flat.items():
        *folders, name = path.split("/")
        inner = config
        for folder in folders:
            inner = inner.setdefault(folder, {})
        inner[name] = value
    return config


def _parameters(space: Mapping[str, Any]) -> dict[str, Parameter]:
    """The parameters of the domains of a space; constants are left out."""
    from ray.tune.search.sample import Domain

    found: dict[str, Parameter] = {}
    for name, one in _flat(space).items():
        if isinstance(one, Domain):
            found[name] = _parameter(name, one)
        elif isinstance(one, list) and name.endswith("/grid_search"):
            raise CredoError(
                f"{name.removesuffix('/grid_search')} must be a domain to search, not a grid.", field="space"
            )
    return found


def _parameter(name: str, domain: Any) -> Parameter:
    """The parameter of a domain."""
    from ray.tune.search.sample import Categorical, Float, Integer, LogUniform, Quantized, Uniform

    sampler: Any = domain.get_sampler()
    step = None
    if isinstance(sampler, Quantized):
        step = sampler.q
        sampler = sampler.sampler
    log = isinstance(sampler, LogUniform)
    if isinstance(domain, Categorical) and isinstance(sampler, Uniform):
        return Parameter(options=tuple(domain.categories))
    if isinstance(domain, Float) and (log or isinstance(sampler, Uniform)) and math.isfinite(domain.upper):
        return Parameter(float(domain.lower), float(domain.upper), step, log)
    if isinstance(domain, Integer) and (log or isinstance(sampler, Uniform)):
        # as in Ray, the upper end belongs to the range where values are quantised
        upper = int(domain.upper) - (0 if step else 1)
        return Parameter(int(domain.lower), upper, 1 if step is None else int(step), log)
    raise CredoError(
        f"{name} must be a uniform, loguniform, randint or lograndint domain, or a choice; got "
        f"{type(domain).__name__} with {type(sampler).__name__}.",
        field="space",
    )
