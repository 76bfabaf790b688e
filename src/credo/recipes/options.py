"""The settings that a user may choose, each declared once for all doors. Nothing here uses JAX or NumPy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, get_args

from credo.core.errors import CredoError, Named, require_integer
from credo.core.integers import LARGEST_SEED
from credo.core.names import CURVATURES, RULES, TASKS, CurvatureName, RuleName, Task
from credo.core.setting import Setting, require_settings
from credo.recipes.language import Drift, Network, Posterior

__all__ = [
    "EVERY",
    "FIXED",
    "METHODS",
    "PATHS",
    "BaselineName",
    "BudgetName",
    "ColumnOptions",
    "KeyedOptions",
    "LearnerWords",
    "MethodName",
    "NoiseVar",
    "NumberWords",
    "OptionWords",
    "Options",
    "ScaleName",
    "SeriesOptions",
    "TaskName",
]

TaskName: TypeAlias = Task
"""The kind of target: classes, numbers or counts."""

BaselineName: TypeAlias = Literal["sgd", "momentum", "adam", "replay"]
"""The methods that follow gradients and keep no posterior."""

MethodName: TypeAlias = RuleName | BaselineName
"""The methods: the update rules, which keep a posterior, and the gradient baselines."""

NoiseVar: TypeAlias = float | Literal["input"] | None
"""A noise variance that is known, that follows the inputs, or that is learned as one number."""

BudgetName: TypeAlias = Literal["fast", "default", "thorough"]
"""The amount of computation for a row: one learner, a bank of them, or a wider bank."""

METHODS: tuple[MethodName, ...] = (*RULES, *get_args(BaselineName))
"""All methods."""

_LEAST_VAR = 1e-18
_LARGEST_VAR = 1e18
"""The least and the largest variance that single precision holds with its square."""


@dataclasses.dataclass(frozen=True)
class Options:
    """The choices of a user; None leaves a choice to the session, which makes it from the data.

    Arguments:
        model: the network: a `Network`, or its text, such as "mlp:50,50".
        posterior: what is kept of the covariance: a `Posterior`, or its text, such as "low-rank:10".
        method: one of `METHODS`; "bong" by default.
        curvature: how a row's information is measured; "lin-hess" by default.
        drift: how the world may change: a `Drift`, or its text, such as "run-length:0.005,5".
        prior_var: the scale of the prior variances.
        noise_var: the noise variance of a regression, in units of the target's variance; learned by default.
            "input" learns a variance that follows the inputs.
        learning_rate: the learning rate, for the methods that have one.
        iterations: the number of steps for a row, for the methods that may take several.
        seed: the seed of the initial weights and of draws; 0 by default.
        budget: "fast" (one learner), "default" (a bank) or "thorough" (a wider bank).

    Example:
        >>> Options(model="mlp:20", drift=Drift("walk", (1e-5,))).model
        'mlp:20'
    """

    model: Annotated[
        Network | str | None, Setting("linear, mlp:WIDTH,WIDTH,..., cnn, features:NUMBER, bank or wide-bank.")
    ] = None
    posterior: Annotated[
        Posterior | str | None, Setting("full, diagonal, low-rank:RANK or particles:NUMBER.")
    ] = None
    method: Annotated[
        MethodName | str | None,
        Setting(
            "A posterior by natural gradients: bong (one step for each row; the default) or blr (several); "
            "by plain gradients: bog or bbb. Or a gradient baseline without a posterior: "
            "sgd, momentum, adam, replay.",
            choices=METHODS,
        ),
    ] = None
    curvature: Annotated[
        CurvatureName | str | None,
        Setting(
            "How a row's information is measured: lin-hess (the model linearised; the default), lin-ef "
            "(cheaper, and over-confident if predictions are bad), or with draws from the posterior: "
            "mc-hess (slow on networks), mc-ef.",
            choices=CURVATURES,
        ),
    ] = None
    drift: Annotated[
        Drift | str | None,
        Setting(
            "How the world may change. Gradually: none, walk:Q, ou:GAMMA, inflation:ALPHA, decay:GAMMA or "
            "shrink-perturb:SHRINK,SD. Abruptly, only for rows in time order (files, streams): "
            "run-length:HAZARD,CAPACITY keeps the likeliest times of the latest change and reports changes "
            "(by default 0.005,5), soft-reset:HAZARD goes back towards the prior as far as a row demands "
            "(0.05). mixture:SWITCHING weights experts that walk at different speeds (0.01)."
        ),
    ] = None
    prior_var: Annotated[
        float | None,
        Setting(
            "The scale of the prior variances: a weight's variance is this over its fan-in.",
            low=_LEAST_VAR,
            high=_LARGEST_VAR,
            positive=True,
        ),
    ] = None
    noise_var: Annotated[
        NoiseVar | str,
        Setting(
            "The noise variance of a regression, in units of the target's variance, or input, for one that "
            "follows the inputs; by default one number is learned.",
            low=_LEAST_VAR,
            high=_LARGEST_VAR,
            positive=True,
            choices=("input",),
        ),
    ] = None
    learning_rate: Annotated[
        float | None,
        Setting(
            "The learning rate of blr (at most 1; 0.5 by default), bog (0.01), bbb (0.001) and baselines.",
            positive=True,
        ),
    ] = None
    iterations: Annotated[
        int | None,
        Setting("Steps for each row, of blr and bbb (5 by default), or relinearisations of bong (1).", low=1),
    ] = None
    seed: Annotated[
        int | None,
        Setting(
            "The seed of the initial weights, the order of the rows and all draws; 0 by default.",
            high=LARGEST_SEED,
        ),
    ] = None
    budget: Annotated[
        BudgetName | str | None,
        Setting(
            "fast (one learner), default (a bank of learners, weighted by evidence as rows come) or "
            "thorough (a wider bank). The other options describe one learner.",
            choices=get_args(BudgetName),
        ),
    ] = None

    def plain(self) -> dict[str, Any]:
        """The choices that were made, as JSON data."""
        chosen = {name: one for name, one in vars(self).items() if one is not None}
        return {name: one if isinstance(one, int | float) else str(one) for name, one in chosen.items()}


class LearnerWords(TypedDict, total=False):
    """The options of every learner as keyword arguments, but for the network and the seed; see `Options`."""

    posterior: Posterior | str | None
    method: MethodName | None
    curvature: CurvatureName | None
    drift: Drift | str | None
    prior_var: float | None
    learning_rate: float | None
    iterations: int | None
    budget: BudgetName | None


class NumberWords(LearnerWords, total=False):
    """The options of learners of numbers as keyword arguments."""

    noise_var: NoiseVar


class OptionWords(NumberWords, total=False):
    """All options as keyword arguments."""

    model: Network | str | None
    seed: int | None


@dataclasses.dataclass(frozen=True)
class ColumnOptions:
    """Options for the columns of a table.

    Arguments:
        target: the column to predict.
        task: what is predicted; by default it is inferred.
        classes: all class labels, where the first rows may not show them all.
        drop: columns to leave out.
        categorical: columns that are categories although they look like numbers.
        strict: whether a row that cannot be split into cells is an error.

    Example:
        >>> ColumnOptions("price", drop=["id"]).drop
        ['id']
    """

    target: Annotated[str | None, Setting("The column to predict; needed for files.")] = None
    task: Annotated[
        TaskName | None,
        Setting(
            f"{', '.join(TASKS[:-1])} or {TASKS[-1]}; by default one of the first two is inferred and "
            "reported.",
            choices=TASKS,
        ),
    ] = None
    classes: Annotated[
        Sequence[str] | None,
        Setting("All class labels, separated by commas, if the first rows may not contain all of them."),
    ] = None
    drop: Annotated[Sequence[str], Setting("Columns to leave out, separated by commas.")] = ()
    categorical: Annotated[
        Sequence[str],
        Setting("Columns that are categories although they look like numbers, separated by commas."),
    ] = ()
    strict: Annotated[
        bool, Setting("Stop at the first bad row; by default bad rows are counted, reported and skipped.")
    ] = False


EVERY = Setting(
    "The number of rows between two forecasts that are scored; by default the horizon.", low=1, kind=int
)
"""The number of rows between two forecasts of a series."""

PATHS = Setting("The number of sample paths of a forecast; 100 by default.", low=2, high=100_000, kind=int)
"""The number of sample paths of a forecast of a series."""


@dataclasses.dataclass(frozen=True)
class SeriesOptions:
    """Options for a series.

    Arguments:
        time: the column of times.
        target: the column to predict.
        horizon: how many steps are forecast.
        lags: how many steps before a row the targets lie that it gets; by default they suit the seasons.
        seasons: the seasons in steps; by default those that suit the spacing of the times.
        known: the columns whose values are known in advance.
        least: the shortest lag that is used by default.

    Raises:
        CredoError: a number is not a whole one, or is too small.

    Example:
        >>> SeriesOptions("t", "y", 24).lags is None
        True
    """

    time: Annotated[
        str, Setting("The column of times: ISO dates or timestamps, or numbers with a common step.")
    ]
    target: str
    horizon: Annotated[
        int,
        Setting(
            "How many steps ahead are forecast. Rows then get lags and calendar features.", low=1, high=10_000
        ),
    ] = 1
    lags: Annotated[
        Sequence[int] | None,
        Setting(
            "The lags of the target that a row gets, in steps, such as 1,2,24; by default they fit the "
            "times.",
            low=1,
            high=100_000,
        ),
    ] = None
    seasons: Annotated[
        Sequence[int] | None,
        Setting(
            "The seasons in steps, such as 24,168; by default day, week or year, as fits the times.",
            low=2,
            high=100_000,
        ),
    ] = None
    known: Annotated[
        Sequence[str],
        Setting(
            "Other columns that are known in advance, separated by commas; all others are left out. Rows "
            "without a target at the end of the file have their values for the steps to come."
        ),
    ] = ()
    least: int = 1

    def __post_init__(self) -> None:
        require_settings(self)
        if self.lags is not None and not self.lags:
            raise CredoError("lags must be at least one whole number; got none.", field="lags")


ScaleName: TypeAlias = Literal["shared", "key"]
"""By which rows numbers are standardised where each key has a learner."""

FIXED = ("key", "time", "scale", "shards", "tile", "batch")
"""The settings, beside the target and the learner, that a run with one learner for each key cannot change."""


@dataclasses.dataclass(frozen=True)
class KeyedOptions:
    """Options for learning a source with one learner for each key.

    Arguments:
        key: the column of the keys; a cell is known by its text.
        columns: the target, and what else is known about the columns.
        learner: what is chosen about the learner, one for all keys; by default a linear model.
        time: the column of times: numbers, or ISO dates, which are counted in days. A step of a key is as
            long as the time since its latest row. None for steps of 1.
        scale: whether numbers and targets are standardised by the rows of all keys before ("shared") or by
            those of the same key ("key").
        shards: into how many parts the keys are divided, which cannot be changed later.
        workers: how many processes share the shards; 0 for none beside this one.
        ray: the address of a cluster of Ray whose actors the workers are, "local" for one in this machine;
            None for processes of this machine.
        tile: how many keys are stepped together; see `credo.Keyed`.
        evict: the most keys of a shard in memory; None for all.
        batch: the rows of a batch, which has a file of predictions for each shard.
        checkpoint: after how many batches the state is saved; so many are kept in memory.

    Raises:
        CredoError: a number is out of its range.

    Example:
        >>> KeyedOptions("user", ColumnOptions("y")).shards
        1
    """

    key: Annotated[str, Setting("The column of the keys.")]
    columns: ColumnOptions
    learner: Options = dataclasses.field(default_factory=Options)
    time: Annotated[
        str | None,
        Setting(
            "The column of times: numbers, or ISO dates, which are counted in days. A step of a key is as "
            "long as the time since its latest row; 1 by default."
        ),
    ] = None
    scale: Annotated[
        ScaleName,
        Setting(
            "shared: numbers and targets are standardised by the rows of all keys before; key: by those of "
            "the same key. shared by default.",
            choices=get_args(ScaleName),
        ),
    ] = "shared"
    shards: Annotated[
        int,
        Setting(
            "Into how many parts the keys are divided, well above the workers to come; it cannot be changed "
            "later. 1 by default.",
            low=1,
            high=4096,
        ),
    ] = 1
    workers: Annotated[int, Setting("How many processes share the shards; 0 for this one.")] = 0
    tile: Annotated[
        int,
        Setting(
            "How many keys are stepped together: 16 by default, 8 is better if few keys have most rows.",
            low=1,
            high=1024,
        ),
    ] = 16
    ray: Annotated[
        str | None,
        Setting(
            "The address of a cluster of Ray whose actors are the workers, such as 10.0.0.1:6379, or local. "
            "All machines must see the place of the run."
        ),
    ] = None
    evict: Annotated[
        int | None,
        Setting("The most keys of a shard in memory; the others lie in a file. All by default.", low=4),
    ] = None
    batch: Annotated[
        int, Setting("The rows of a file of predictions; 16384 by default.", low=1, high=2**20)
    ] = 16_384
    checkpoint: Annotated[
        int,
        Setting("Save the state after so many batches, which are kept in memory until then.", low=1),
    ] = 16

    def __post_init__(self) -> None:
        require_settings(self)
        require_integer("workers", self.workers, 0, self.shards)
        if self.ray is not None and not self.workers:
            raise CredoError(f"ray needs {Named('workers')}, the number of actors.", field="ray")

    def words(self) -> dict[str, Any]:
        """The options that cannot be changed later, as JSON data."""
        fixed = {name: getattr(self, name) for name in FIXED}
        return {**fixed, "target": self.columns.target, "learner": self.learner.plain()}
