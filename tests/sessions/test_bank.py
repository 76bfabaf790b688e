"""The bank of learners that a session has where nothing is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.adapt.nested import within
from credo.core.errors import CredoError
from credo.live import runner
from credo.live.runner import _with_priors
from credo.recipes import assembly, defaults
from credo.recipes.auto import bank_of
from credo.recipes.members import (
    LINEAR,
    NearMember,
    NormalMember,
    TableMember,
    hidden_units,
    members_of,
    networks_of,
)
from credo.recipes.networks import Origin, family_of, numbers_of, unit_cost
from credo.sessions import Member, Network, Options, Session, resolve
from credo.sessions.bank_summary import change_words

Row = dict[str, object]
HIDDEN = Network("mlp", (3,))


@pytest.fixture(autouse=True, scope="module")
def few_members() -> Iterator[None]:
    """Few members in place of many, of all kinds; the list itself has a test of its own."""

    def few(task: str, *_: Any) -> tuple[TableMember, ...]:
        plain = (NormalMember(tied=True, share=0.5),) if task == "classification" else ()
        noise: Any = "input" if task == "regression" else "shared"
        return (
            Member(Network("linear"), 0.0, 1.0, forgetting=0.97),
            Member(Network("linear"), 1e-2, 16.0, 8.0, forgetting=0.9),
            Member(HIDDEN, 1e-4, 4.0, activation="tanh", noise=noise),
            *plain,
            NearMember(),
        )

    patch = pytest.MonkeyPatch()
    patch.setattr(assembly, "members_of", few)
    yield
    patch.undo()


def numbers(count: int, seed: int = 0) -> list[Row]:
    """A regression whose slope changes its sign after half of the rows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 2))
    slope = np.where(np.arange(count) < count // 2, 3.0, -3.0)
    y = 10.0 + slope * x[:, 0] + x[:, 1] + 0.1 * rng.normal(size=count)
    return [{"a": a, "b": b, "y": v} for (a, b), v in zip(x, y, strict=True)]


def classes(count: int, known: int, seed: int = 0) -> list[Row]:
    """Three classes, of which the third does not come in the first `known` rows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 2))
    late = (np.arange(count) >= known) & (x[:, 1] > 0.5)
    labels = np.where(late, "new", np.where(x[:, 0] > 0, "up", "down"))
    return [{"a": a, "b": b, "y": str(label)} for (a, b), label in zip(x, labels, strict=True)]


def same(one: Session, other: Session) -> None:
    for mine, theirs in zip(jax.tree.leaves(one.belief), jax.tree.leaves(other.belief), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_first_rows_of_a_bank_are_learned_by_a_program_made_in_haste(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runner, "HASTY", 30)
    learned: list[bool] = []
    usual = Session._pass

    def noted(self: Session, packed: Any, columns: Any, hasty: bool = False) -> Any:
        learned.extend([hasty] * len(columns.x))
        return usual(self, packed, columns, hasty)

    monkeypatch.setattr(Session, "_pass", noted)
    rows = classes(50, 50)
    whole, parts = (Session.from_rows(rows, "y", chunk=25) for _ in range(2))
    whole.learn(rows)
    assert learned == [True] * 30 + [False] * 20
    learned.clear()
    for start in range(29):
        parts.learn(rows[start : start + 1])
    parts = Session.load(parts.save(tmp_path / "bank.credo"), chunk=25)
    parts.learn(rows[29:])
    assert learned == [True] * 30 + [False] * 20
    same(whole, parts)
    assert whole.metrics() == pytest.approx(parts.metrics(), nan_ok=True)
    learned.clear()
    single = Session.from_rows(rows, "y", model="linear")
    single.learn(rows)
    assert learned == [False] * 50


@pytest.mark.optimised
@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(numbers(60), marks=pytest.mark.thorough, id="numbers"),  # it compiles two programs more
        pytest.param(classes(60, 60), id="classes"),
    ],
)
def test_rows_where_the_program_changes_have_the_same_bits_however_they_are_grouped(
    monkeypatch: pytest.MonkeyPatch, rows: list[Row]
) -> None:
    monkeypatch.setattr(runner, "HASTY", 30)
    sessions = []
    for size in (1, 7, 60):
        session = Session.from_rows(rows, "y", chunk=25)
        session.prepare()
        for start in range(0, 60, size):
            session.learn(rows[start : start + size])
        sessions.append(session)
    same(sessions[0], sessions[1])
    same(sessions[0], sessions[2])
    assert sessions[0].metrics() == pytest.approx(sessions[2].metrics(), nan_ok=True)


@pytest.mark.optimised
def test_a_bank_learns_by_chunks_and_through_a_file_bit_by_bit(tmp_path: Path) -> None:
    rows = numbers(120)
    whole, parts = (Session.from_rows(rows, "y", chunk=25) for _ in range(2))
    assert str(whole.settings.model) == "bank" and len(whole.members) == 4
    whole.learn(rows)
    for start, stop in ((0, 7), (7, 8), (8, 60)):
        parts.learn(rows[start:stop])
    parts = Session.load(parts.save(tmp_path / "bank.credo"), chunk=25)
    parts.learn(rows[60:])
    same(whole, parts)
    assert whole.metrics() == pytest.approx(parts.metrics(), nan_ok=True)
    assert whole.changes is not None and parts.changes is not None
    np.testing.assert_allclose(whole.changes.grid, parts.changes.grid)
    weights = whole.changes.summary().get("weights", {})
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-5)
    # the slope turned, so that the member that walks is believed, and the change is reported
    assert weights[str(whole.members[1])] > 0.5
    for tally in (whole.changes, parts.changes):
        found = tally.summary()
        (row,) = found.get("rows", [])
        assert 61 <= row <= 70 and found.get("began") == [61] and found.get("failed") == []
        assert change_words(tally).startswith(f"1 change was reported, at row {row}, of a segment that began")


@pytest.mark.thorough
def test_new_classes_get_room_in_every_member(tmp_path: Path) -> None:
    rows = classes(90, 60)
    session = Session.from_rows(rows[:50], "y", chunk=30)
    session.learn(rows)
    assert session.encoding.classes == ("down", "up", "new") and session.rows_used == 90
    forecast = session.predict([{"a": 0.0, "b": 2.0}])
    assert forecast.probs is not None and forecast.probs.shape == (1, 3)
    assert forecast.labels == ["new"] and forecast.probs.sum() == pytest.approx(1.0, abs=1e-5)
    again = Session.load(session.save(tmp_path / "classes.credo"), chunk=30)
    for one in (session, again):
        one.learn(rows[:5])
    same(session, again)


def test_a_bank_of_other_members_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session.from_rows(numbers(30), "y", chunk=25)
    saved = session.save(tmp_path / "bank.credo")
    monkeypatch.setattr(assembly, "members_of", lambda *_: session.members[:2])
    with pytest.raises(CredoError, match="a bank of 4 members, and the bank of this version of credo has 2"):
        Session.load(saved)


@pytest.mark.thorough
def test_counts_are_learned_by_a_bank() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    rows: list[Row] = [{"a": a, "y": int(rng.poisson(np.exp(1 + 0.5 * a)))} for a in x]
    session = Session.from_rows(rows, "y", task="count", chunk=40)
    session.learn(rows)
    assert session.tally.scored == 70 and session.metrics()["nlpd"] < session.tally.baseline()["nlpd"]


def test_members_for_counts_have_narrow_priors_of_their_log_rate() -> None:
    members = members_of("count", 3, 1, "default")
    assert {member.prior_var for member in members if isinstance(member, Member)} == {0.5}
    assert [member for member in members if not isinstance(member, Member)] == [NearMember(decay=2.0)]


def test_a_budget_or_a_model_asks_for_a_bank_and_other_choices_for_one_learner() -> None:
    def model(options: Options) -> str:
        return str(resolve(options, "regression", (3,), 0).model)

    assert model(Options()) == model(Options(seed=1)) == model(Options(budget="default")) == "bank"
    assert model(Options(model="bank")) == "bank" and model(Options(budget="thorough")) == "wide-bank"
    assert model(Options(budget="fast")) == "linear" and model(Options(drift="none")) == "mlp:20"
    with pytest.raises(CredoError, match=r"`drift='none'` is for a single learner, and `model='bank'`"):
        resolve(Options(model="bank", drift="none"), "regression", (3,), 0)
    with pytest.raises(
        CredoError, match="`posterior='full'` is for a single learner, and `budget='thorough'`"
    ):
        resolve(Options(budget="thorough", posterior="full"), "regression", (3,), 0)
    with pytest.raises(CredoError, match="budget must be"):
        resolve(Options(budget="huge"), "regression", (3,), 0)


def test_perceptrons_of_wide_tables_are_as_wide_as_their_units_may_keep_a_covariance() -> None:
    assert [hidden_units(inputs, 1) for inputs in (10, 100, 150, 250)] == [20, 20, 13, 20]
    assert [hidden_units(inputs, 10) for inputs in (10, 64, 100, 1000)] == [50, 50, 28, 50]
    kept = [
        type(family_of(Network("mlp", (hidden_units(n, 1),)), 1, n)).__name__ for n in (10, 100, 150, 250)
    ]
    assert kept == ["Full", "UnitBlocks", "UnitBlocks", "Diagonal"]
    assert unit_cost(Network("mlp", (28,)), 10, 100) == 28 * 101**2 + 10 * 29**2 <= defaults.UNIT_COST
    assert unit_cost(Network("mlp", (29,)), 10, 100) > defaults.UNIT_COST
    linear = [
        family_of(LINEAR, outputs, inputs) for outputs, inputs in ((1, 600), (1, 700), (50, 10), (50, 100))
    ]
    assert [type(family).__name__ for family in linear] == ["Full", "Diagonal", "UnitBlocks", "Diagonal"]
    assert numbers_of(linear[0], LINEAR, 1, 700) == 701**2
    assert numbers_of(linear[2], LINEAR, 50, 20) == 50 * 21**2
    assert numbers_of(linear[3], LINEAR, 50, 100) == 50 * 101


def test_the_list_of_members() -> None:
    numbers, labels = members_of("regression", 10, 1), members_of("classification", 10, 1)
    assert len(set(map(str, numbers))) == len(numbers) and len(set(map(str, labels))) == len(labels)
    assert len(numbers) <= 12 and len(members_of("regression", 10, 1, "wide")) > len(numbers)
    walks = {m.walk for m in numbers if isinstance(m, Member) and m.network.kind == "linear"}
    assert {0.0, 1e-4, 1e-3, 1e-2, 1e-1} <= walks
    assert any(isinstance(member, Member) and member.noise == "input" for member in numbers)
    assert not any(isinstance(member, Member) and member.noise == "input" for member in labels)
    assert Network("features", (200,)) not in networks_of(members_of("regression", 26, 1, "wide"))
    assert networks_of(members_of("classification", 10, 4))[-1] == Network("mlp", (50,))
    normal = [member for member in labels if isinstance(member, NormalMember)]
    assert {(member.tied, member.share) for member in normal} == {
        (True, 0.5),
        (False, 0.5),
        (False, 1.0),
        (False, 0.0),
    }
    near = [sum(isinstance(m, NearMember) for m in members_of("regression", size, 1)) for size in (100, 101)]
    assert near == [1, 0]


def test_around_the_bank_stands_a_regression_that_foresees_outliers_of_numbers() -> None:
    watched: list[Any] = [credo.auto(2, task) for task in ("regression", "classification", "count")]
    assert all(isinstance(learner, credo.Monitored) for learner in watched)
    numbers, classes, counts = (learner.learner for learner in watched)
    assert isinstance(numbers, credo.Stacked) and numbers.outliers == defaults.OUTLIERS
    assert isinstance(classes, credo.Stacked) and classes.outliers is None
    assert isinstance(counts, credo.Experts)


@pytest.mark.slow
def test_a_wider_belief_has_the_priors_of_the_wider_learner_wherever_its_bank_is() -> None:
    first = credo.auto(2, "classification", 3).init()
    other = credo.auto(2, "classification", 3, seed=1).init()
    stacks: list[Any] = [within(whole, credo.adapt.Stacking) for whole in (first, other)]
    banks: list[Any] = [within(one, credo.adapt.Bank) for one in (first, other, _with_priors(first, other))]
    assert banks[0].priors != banks[1].priors
    assert banks[2].priors == banks[1].priors and banks[2].beliefs == banks[0].beliefs
    assert _with_priors(stacks[0].stack, stacks[1].stack) is stacks[0].stack


@pytest.mark.slow
def test_the_bank_in_python_takes_the_five_verbs() -> None:
    learner: Any = credo.auto(inputs=2, task="classification")
    belief = learner.init()
    size = len(members_of("classification", 2, 1))
    assert len(belief.weights) == learner.learner.learner.size == size
    assert learner.forecast(belief, jnp.ones(2)).probs.shape == (2,)
    belief, info = learner.update(learner.predict(belief), jnp.ones(2), 1)
    assert bool(info.ok) and float(belief.weights.sum()) == pytest.approx(1.0, abs=1e-5)
    missing, info = learner.update(belief, jnp.asarray([1.0, jnp.nan]), 1)  # no member takes such a row
    assert missing == belief and not bool(info.ok)
    with pytest.raises(CredoError, match="task must be"):
        credo.auto(2, task="words")  # type: ignore[arg-type]


def test_members_without_a_network_have_their_own_settings() -> None:
    near = NearMember(decay=2.5, clip=2.0, forgetting=0.9, size=70)
    bayes = NormalMember(tied=True, share=0.3, clip=5.0)
    bank: Any = bank_of((near,), (2,), 0, 0, task="regression").learners
    memory: Any = bank.learner
    assert [type(one).__name__ for one in (bank, memory)] == ["Calibrated", "NearestNeighbours"]
    numbers = (memory.decay, memory.clip, memory.likelihood.var.forgetting)
    assert [float(value[0]) for value in numbers] == pytest.approx([2.5, 2.0, 0.9])
    assert (memory.size, memory.columns) == (70, 2)
    assert bank.plugin and jnp.shape(bank.scales) == (1, 0) and jnp.shape(bank.tails) == (1, 2)
    classes: Any = bank_of((bayes,), (2,), 2, 0, task="classification").learners
    assert type(classes).__name__ == "GaussianClasses" and classes.tied and not classes.missing
    assert [float(value[0]) for value in (classes.share, classes.clip)] == pytest.approx([0.3, 5.0])


def test_a_bank_that_grew_needs_the_memory_of_the_covariance_that_it_began_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assembly, "members", lambda *arguments: (Member(LINEAR),))
    settings, begun = resolve(Options(), "regression", (10,), 0), Origin(10, 10)
    assert assembly.inputs_fit(settings, (19_000,), 0, origin=begun)
    assert not assembly.inputs_fit(settings, (21_000,), 0, origin=begun)
    assert assembly.inputs_fit(settings, (21_000,), 0, origin=Origin(21_000, 21_000))
