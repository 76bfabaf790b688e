"""The specification of a model, as a user gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from credo.bandits.named_agents import AGENTS, policy_of
from credo.core.errors import CredoError, require_choice
from credo.core.names import Task
from credo.core.setting import Setting, settings_of
from credo.recipes.options import Options
from credo.serve.allowed import require_fields, require_known, says, whole
from credo.tables.schema import TARGET_KINDS, ColumnSpec, Kind, Schema, TargetSpec

__all__ = ["BanditSpec", "ModelSpec", "TableSpec", "read_spec", "require_name"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
KindName: TypeAlias = Literal["number", "truth", "category", "time", "text"]
"""The kinds of values that a column may hold."""

KINDS: dict[KindName, Kind] = {
    "number": "numeric",
    "truth": "boolean",
    "category": "categorical",
    "time": "datetime",
    "text": "text",
}
UnitName: TypeAlias = Literal["second", "minute", "hour", "day", "week"]
"""The units of time."""

UNITS: dict[UnitName, float] = {
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86_400.0,
    "week": 604_800.0,
}
"""The seconds of the units of time."""

SLOTS = 32
"""The features that the categories, or the words, of a column share if the columns were named."""

OPTIONS = settings_of(Options)
"""The options of a learner."""


def _schema(setting: Setting) -> dict[str, Any]:
    """The schema of an option, for the document."""
    number = {int: "integer", float: "number"}.get(setting.kind)
    kinds = [number or "string", "null"]
    schema: dict[str, Any] = {"type": kinds, "description": setting.help}
    if number is not None:
        schema["minimum"] = setting.low
        kinds += ["string"] if setting.choices else []
    elif setting.choices:
        schema["enum"] = [*setting.choices, None]
    if setting.high is not None:
        schema["maximum"] = setting.high
    return schema


_Name: TypeAlias = Annotated[str, says("a text that is not empty", min_length=1)]
_Options: TypeAlias = Annotated[
    dict[str, Annotated[str | float | int | None, says("a text, a number or null")]],
    says(
        "the options of a learner by name",
        extra_json_schema={
            "properties": {name: _schema(setting) for name, setting in OPTIONS.items()},
            "propertyNames": {"enum": list(OPTIONS)},
        },
    ),
]


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

    target: Annotated[str, says("the name of a column", min_length=1)]
    task: Task | None = None
    classes: (
        Annotated[
            tuple[str, ...],
            says("at least two different labels", min_length=2, extra_json_schema={"uniqueItems": True}),
        ]
        | None
    ) = None
    columns: dict[str, KindName] | None = None
    first: Annotated[int, whole(10, 10_000)] = 100
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    levels: tuple[Annotated[float, says("between 0 and 1", gt=0, lt=1)], ...] = ()
    options: _Options = {}  # msgspec copies it
    base: Annotated[str, says("a SHA-256", pattern="^[0-9a-f]{64}$")] | None = None
    time_unit: UnitName | None = None
    lateness: Annotated[float, says("finite and at least 0", ge=0)] = 1.0

    @property
    def seconds(self) -> float | None:
        """The seconds of the unit of time; None if rows have no times."""
        if self.time_unit is None:
            return None
        return UNITS[self.time_unit]

    def schema(self) -> Schema | None:
        """The schema of the columns, if they are named; None if they are inferred."""
        if self.columns is None:
            return None
        columns = tuple(
            ColumnSpec(name, KINDS[kind], has_missing=True, slots=SLOTS * (kind in ("category", "text")))
            for name, kind in self.columns.items()
            if name not in self.drop
        )
        task = self.task or ("classification" if self.classes else "regression")
        why = f"target {self.target!r}: {task}, as asked"
        return Schema(TargetSpec(self.target, task, self.classes or (), why=why), columns, (), ())


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

    arms: Annotated[tuple[_Name, ...], says("different names", extra_json_schema={"uniqueItems": True})] = ()
    inputs: Annotated[int, whole(1, 100_000)] | None = None
    features: Annotated[int, whole(0, 10_000)] = 32
    agent: str = "default"
    policy: str | None = None
    window: Annotated[int, whole(1, 10_000_000)] = 10_000
    timeout: Annotated[float, says("finite and above 0", gt=0)] | None = None
    on_missing: Annotated[float, says("a finite number")] | None = None
    seed: Annotated[int, whole(0, 2**31 - 1)] = 0
    brought: Annotated[int, whole(2, 10_000)] | None = None
    arm_features: Annotated[int, whole(2, 10_000)] = 16


ModelSpec: TypeAlias = TableSpec | BanditSpec

_SPECS: dict[str, type[ModelSpec]] = {"table": TableSpec, "bandit": BanditSpec}


def require_name(name: str) -> str:
    """Refuse what is no name of a model."""
    if not NAME.fullmatch(name):
        raise CredoError.must_be(
            "name",
            "1 to 100 letters, digits, dots, hyphens and underscores, of which the first is a letter or "
            "a digit",
            name,
        )
    return name


def read_spec(content: dict[str, Any]) -> ModelSpec:
    """A specification from JSON data; a `CredoError` names what is not allowed."""
    kind = require_choice("kind", content.get("kind", "table"), _SPECS)
    said = {name: value for name, value in content.items() if name != "kind"}
    require_known(f"a {kind}", said, _SPECS[kind].__struct_fields__)
    require_fields(said, _SPECS[kind])
    if kind == "table" and "target" not in said:
        raise CredoError("target is missing.", field="target")
    spec: ModelSpec = msgspec.convert({**said, "kind": kind}, ModelSpec)
    if isinstance(spec, TableSpec):
        _require_table(spec)
    else:
        _require_bandit(spec)
    return spec


def _require_table(spec: TableSpec) -> None:
    if spec.classes is not None and len(set(spec.classes)) < len(spec.classes):
        raise CredoError.must_be("classes", "at least two different labels", list(spec.classes))
    for name, value in spec.options.items():
        if name not in OPTIONS:
            raise CredoError(
                f"options.{name} is no option of a learner; they are {', '.join(OPTIONS)}.", field="options"
            )
        setting = OPTIONS[name]
        if setting.kind is str and not isinstance(value, str | None):
            raise CredoError.must_be(f"options.{name}", "a text", value)
        setting.require(f"options.{name}", value)
    if spec.columns is not None:
        _require_columns(spec, spec.columns)


def _require_columns(spec: TableSpec, columns: Mapping[str, KindName]) -> None:
    """Refuse named columns that make no table."""
    if spec.target in columns:
        raise CredoError(f"columns must not hold the target, {spec.target!r}.", field="columns")
    if not set(columns) - set(spec.drop):
        raise CredoError("columns must hold at least one column; got none.", field="columns")
    if spec.task is not None and TARGET_KINDS[spec.task].classed and spec.classes is None:
        raise CredoError("classes must hold the labels where columns are named; got none.", field="classes")


def _require_bandit(spec: BanditSpec) -> None:
    policy_of(spec.policy)
    require_choice("agent", spec.agent, AGENTS)
    if spec.brought is not None:
        _require_brought(spec)
    elif len(spec.arms) < 2 or len(set(spec.arms)) < len(spec.arms):
        raise CredoError.must_be("arms", "at least two different names", list(spec.arms))
    if spec.agent == "network" and spec.inputs is None and not spec.features:
        raise CredoError("agent network needs contexts; got features = 0 and no inputs.", field="agent")


def _require_brought(spec: BanditSpec) -> None:
    if spec.arms:
        raise CredoError("arms must be left out if decisions bring theirs (brought).", field="arms")
    if spec.inputs is not None or spec.features < 2:
        raise CredoError(
            "features must be at least 2 if decisions bring arms: contexts come by name.", field="features"
        )
    if spec.agent == "beta":
        raise CredoError(
            "agent must not be beta if decisions bring arms, whose features it ignores.", field="agent"
        )
