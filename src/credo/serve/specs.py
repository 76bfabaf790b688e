"""What a user asks a model to be."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec

from credo.bandits.named_agents import AGENTS, policy_of
from credo.core.errors import (
    CredoError,
    require_choice,
    require_integer,
    require_nonnegative,
    require_positive,
    suggest,
)
from credo.recipes.settings import Options
from credo.serve.problems import Problem
from credo.tables.schema import ColumnSpec, Schema, TargetSpec
from credo.tables.tasks import TARGET_KINDS

__all__ = ["BanditSpec", "ModelSpec", "TableSpec", "read_spec", "require_name"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
KINDS = {
    "number": "numeric",
    "truth": "boolean",
    "category": "categorical",
    "time": "datetime",
    "text": "text",
}
UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0, "week": 604_800.0}
"""The seconds of the units of time."""

SLOTS = 32
"""The features that the categories, or the words, of a column share if the columns were named."""


def _says(**limits: Any) -> msgspec.Meta:
    """What the document says of a field beside its type; `read_spec` refuses it, by a sentence."""
    return msgspec.Meta(extra_json_schema=limits)


class TableSpec(msgspec.Struct, frozen=True, tag="table", tag_field="kind", forbid_unknown_fields=True):
    """A learner of rows.

    Its columns are named with what they hold, or inferred from the first rows, which wait in the journal.

    Arguments:
        target: the column to predict.
        task: "regression", "classification" or "count"; None infers it from the first rows.
        classes: all class labels; None lets new ones come.
        columns: what each column holds, "number", "truth", "category", "time" or "text", by its name.
        first: from how many rows the columns are inferred if they are not named.
        drop, categorical: columns to leave out, and columns that are categories whatever they hold.
        levels: the probabilities of the quantiles in forecasts of numbers.
        options: the options of `credo learn`: model, posterior, method, curvature, drift, prior_var,
            noise_var, learning_rate, iterations, seed, budget.
        base: the SHA-256 of a saved session that was sent, from which the model goes on.
        time_unit: "second", "minute", "hour", "day" or "week", where rows have times: what walks or forgets
            does so by the time between rows, in this unit, not by their number. None for rows without times.
        lateness: by how many units a row may be older than the latest; it is learned as if it came with that.
    """

    target: Annotated[str, _says(minLength=1)]
    task: Annotated[str, _says(enum=sorted(TARGET_KINDS))] | None = None
    classes: Annotated[tuple[str, ...], _says(minItems=2, uniqueItems=True)] | None = None
    columns: dict[str, Annotated[str, _says(enum=list(KINDS))]] | None = None
    first: Annotated[int, _says(minimum=10, maximum=10_000)] = 100
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    levels: tuple[Annotated[float, _says(exclusiveMinimum=0, exclusiveMaximum=1)], ...] = ()
    options: Annotated[
        dict[str, str | float | int | None], _says(propertyNames={"enum": list(Options.__dataclass_fields__)})
    ] = {}  # msgspec copies it
    base: Annotated[str, _says(pattern="^[0-9a-f]{64}$")] | None = None
    time_unit: Annotated[str, _says(enum=list(UNITS))] | None = None
    lateness: Annotated[float, _says(minimum=0)] = 1.0

    @property
    def seconds(self) -> float | None:
        """The seconds of the unit of time; None if rows have no times."""
        if self.time_unit is None:
            return None
        return UNITS[self.time_unit]

    def schema(self) -> Schema | None:
        """What the columns mean, if they are named; None if they are inferred."""
        if self.columns is None:
            return None
        columns = tuple(
            ColumnSpec(name, KINDS[kind], has_missing=True, slots=SLOTS * (kind in ("category", "text")))  # type: ignore[arg-type]
            for name, kind in self.columns.items()
            if name not in self.drop
        )
        task = self.task or ("classification" if self.classes else "regression")
        why = f"target {self.target!r}: {task}, as asked"
        return Schema(TargetSpec(self.target, task, self.classes or (), why=why), columns, (), ())  # type: ignore[arg-type]


class BanditSpec(msgspec.Struct, frozen=True, tag="bandit", tag_field="kind", forbid_unknown_fields=True):
    """A bandit, with the options of `credo bandit decide`.

    Arguments:
        arms: the names of the arms; none if decisions bring theirs.
        inputs: the length of contexts that are lists of numbers; None for contexts by name, or none.
        features: the places for contexts by name; 0 for no contexts.
        agent, policy: what `credo bandit decide` calls so.
        window: how many decisions are remembered.
        timeout: for how many seconds a reward counts.
        on_missing: the reward that is learned of a decision without one; None learns none.
        seed: the seed.
        brought: how many arms a decision may bring at most, each with its features; None for none.
        arm_features: the places for these features.
    """

    arms: Annotated[tuple[Annotated[str, _says(minLength=1)], ...], _says(uniqueItems=True)] = ()
    inputs: Annotated[int, _says(minimum=1, maximum=100_000)] | None = None
    features: Annotated[int, _says(minimum=0, maximum=10_000)] = 32
    agent: str = "default"
    policy: str | None = None
    window: Annotated[int, _says(minimum=1, maximum=10_000_000)] = 10_000
    timeout: Annotated[float, _says(exclusiveMinimum=0)] | None = None
    on_missing: float | None = None
    seed: Annotated[int, _says(minimum=0, maximum=2**31 - 1)] = 0
    brought: Annotated[int, _says(minimum=2, maximum=10_000)] | None = None
    arm_features: Annotated[int, _says(minimum=2, maximum=10_000)] = 16


ModelSpec: TypeAlias = TableSpec | BanditSpec

_SPECS: dict[str, type[ModelSpec]] = {"table": TableSpec, "bandit": BanditSpec}


def require_name(name: str) -> str:
    """Refuse what is no name of a model."""
    if not NAME.fullmatch(name):
        raise Problem(
            422,
            "name must be 1 to 100 letters, digits, dots, hyphens and underscores, of which the first is a "
            f"letter or a digit; got {name!r:.120}.",
            field="name",
        )
    return name


def read_spec(content: dict[str, Any]) -> ModelSpec:
    """A specification from JSON data; a `Problem` names what is not allowed."""
    kind = content.get("kind", "table")
    if kind not in ("table", "bandit"):
        raise Problem(422, f"kind must be table or bandit; got {kind!r:.60}.", field="kind")
    wanted = _SPECS[kind]
    names = [field.name for field in msgspec.structs.fields(wanted)]
    for name in content:
        if name != "kind" and name not in names:
            hint = suggest(name, names)
            raise Problem(
                422,
                f"{name} is no field of a {kind}; they are {', '.join(names)}. {hint}".strip(),
                field=name,
            )
    try:
        spec: ModelSpec = msgspec.convert({**content, "kind": kind}, ModelSpec)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        field = where.rstrip("`").split("[")[0] or None
        got = "" if field is None or field not in content else f"; got {content[field]!r:.60}"
        sentence = f"{field or 'the body'} is not what a {kind} takes: {what}{got}."
        raise Problem(422, sentence, field=field) from None
    try:
        _require_table(spec) if isinstance(spec, TableSpec) else _require_bandit(spec)
    except Problem:
        raise
    except CredoError as error:
        raise Problem(422, str(error), field=error.field) from None
    return spec


def _require_table(spec: TableSpec) -> None:
    require_integer("first", spec.first, 10, 10_000)
    if spec.task is not None and spec.task not in TARGET_KINDS:
        raise CredoError(f"task must be {_listed(TARGET_KINDS)}; got {spec.task!r:.60}.", field="task")
    if not spec.target:
        raise CredoError("target must be the name of a column; got ''.", field="target")
    for level in spec.levels:
        if not 0 < level < 1:
            raise CredoError(f"levels must be between 0 and 1; got {level:g}.", field="levels")
    if spec.classes is not None and (
        len(set(spec.classes)) < 2 or len(set(spec.classes)) < len(spec.classes)
    ):
        raise CredoError(
            f"classes must be at least two different labels; got {list(spec.classes)!r:.80}.", field="classes"
        )
    known = [field for field in Options.__dataclass_fields__]
    for name in spec.options:
        if name not in known:
            raise CredoError(
                f"options.{name} is no option of a learner; they are {', '.join(known)}.", field="options"
            )
    if spec.base is not None and not re.fullmatch("[0-9a-f]{64}", spec.base):
        raise CredoError(f"base must be a SHA-256; got {spec.base!r:.80}.", field="base")
    if spec.time_unit is not None:
        require_choice("time_unit", spec.time_unit, tuple(UNITS))
    require_nonnegative("lateness", spec.lateness)
    if spec.columns is not None:
        _require_columns(spec, spec.columns)


def _require_columns(spec: TableSpec, columns: Mapping[str, str]) -> None:
    """Refuse named columns that make no table."""
    for name, given in columns.items():
        if given not in KINDS:
            raise CredoError(
                f"columns.{name} must be {_listed(KINDS)}; got {given!r:.60}.", field=f"columns.{name}"
            )
    if spec.target in columns:
        raise CredoError(f"columns must not hold the target, {spec.target!r}.", field="columns")
    if not set(columns) - set(spec.drop):
        raise CredoError("columns must hold at least one column; got none.", field="columns")
    kind = next((kind for task, kind in TARGET_KINDS.items() if task == spec.task), None)
    if kind is not None and kind.classed and spec.classes is None:
        raise CredoError("classes must hold the labels where columns are named; got none.", field="classes")


def _require_bandit(spec: BanditSpec) -> None:
    if spec.brought is not None:
        _require_brought(spec, spec.brought)
    elif len(spec.arms) < 2 or len(set(spec.arms)) < len(spec.arms) or not all(spec.arms):
        raise CredoError(
            f"arms must be at least two different names; got {list(spec.arms)!r:.80}.", field="arms"
        )
    require_integer("window", spec.window, 1, 10_000_000)
    require_integer("seed", spec.seed, 0, 2**31 - 1)
    require_integer("features", spec.features, 0, 10_000)
    if spec.inputs is not None:
        require_integer("inputs", spec.inputs, 1, 100_000)
    if spec.timeout is not None:
        require_positive("timeout", spec.timeout)
    if spec.on_missing is not None and not math.isfinite(spec.on_missing):
        raise CredoError(f"on_missing must be a finite number; got {spec.on_missing}.", field="on_missing")
    policy_of(spec.policy)
    require_choice("agent", spec.agent, AGENTS)
    if spec.agent == "network" and spec.inputs is None and not spec.features:
        raise CredoError("agent network needs contexts; got features = 0 and no inputs.", field="agent")


def _require_brought(spec: BanditSpec, most: int) -> None:
    require_integer("brought", most, 2, 10_000)
    require_integer("arm_features", spec.arm_features, 2, 10_000)
    if spec.arms:
        raise CredoError("arms must be left out if decisions bring theirs (brought).", field="arms")
    if spec.inputs is not None or spec.features < 2:
        raise CredoError("features must be at least 2 if decisions bring arms: contexts come by name.")
    if spec.agent == "beta":
        raise CredoError("agent must not be beta if decisions bring arms, whose features it ignores.")


def _listed(names: Any) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"
