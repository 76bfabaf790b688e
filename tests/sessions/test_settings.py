"""Settings: the small language, records in place of texts, and what does not fit together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from credo.core.errors import CredoError, FormatError
from credo.recipes.resolution import require_memory
from credo.sessions import Drift, Network, Options, Posterior, Settings, resolve


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "run-length:2",
            "`drift='run-length'` needs in [0, 1] for HAZARD, the chance of a change before a row; got 2.",
        ),
        (
            "run-length:.1,2.5",
            "needs a whole number at least 1 for CAPACITY, how many run lengths are kept; got 2.5.",
        ),
        ("run-length:.1,0", "needs a whole number at least 1 for CAPACITY"),
        ("run-length:.1,nan", "needs a whole number at least 1 for CAPACITY"),
        ("run-length:.1,2,3", "`drift='run-length'` takes at most 2 numbers"),
        ("mixture:-1", "`drift='mixture'` needs in [0, 1] for SWITCHING"),
        ("soft-reset:x", "with numbers after the colon; got 'soft-reset:x'"),
        ("soft-rest", "did you mean 'soft-reset'?"),
    ],
)
def test_numbers_out_of_range_are_named(text: str, says: str) -> None:
    with pytest.raises(CredoError) as caught:
        Drift.parse(text)
    assert says in str(caught.value)


def test_numbers_that_are_left_out_are_filled_in() -> None:
    assert Drift.parse("run-length:0.1") == Drift("run-length", (0.1, 5))
    assert str(Drift.parse("run-length:0.1")) == "run-length:0.1,5"
    assert str(Drift.parse("mixture")) == "mixture:0.01"
    assert Drift("walk").numbers == (1e-6,) and str(Drift("walk")) == "walk:1e-06"


def test_a_gradual_drift_keeps_the_spelling_it_was_written_in() -> None:
    assert str(Drift.parse("walk")) == "walk" and str(Drift.parse("inflation:1e-3")) == "inflation:1e-3"
    assert Drift.parse("inflation:1e-3") == Drift.parse("inflation:.001")


@pytest.mark.parametrize("text", ["linear", "mlp:50,50", "mlp:20", "cnn"])
def test_networks_come_back_from_their_text(text: str) -> None:
    assert str(Network.parse(text)) == text and Network.parse(Network.parse(text)) == Network.parse(text)


@pytest.mark.parametrize("text", ["full", "diagonal", "low-rank:7", "particles:50"])
def test_posteriors_come_back_from_their_text(text: str) -> None:
    assert str(Posterior.parse(text)) == text
    assert Posterior.parse(text.replace("-", "_").upper()) == Posterior.parse(text)


def test_posteriors_without_a_rank_refuse_one() -> None:
    with pytest.raises(CredoError, match="has no rank"):
        Posterior("full", 3)
    with pytest.raises(CredoError, match="takes nothing after a colon"):
        Posterior.parse("diagonal:3")
    with pytest.raises(CredoError, match="has no particles"):
        Posterior("full", particles=3)
    with pytest.raises(CredoError, match="with a whole number for the particles; got 'particles:many'"):
        Posterior.parse("particles:many")
    with pytest.raises(CredoError, match="at least 2; got 1"):
        Posterior.parse("particles:1")


@pytest.mark.parametrize("other", [{"method": "blr"}, {"curvature": "mc-ef"}, {"iterations": 3}])
def test_particles_are_learned_by_a_method_of_their_own(other: dict[str, Any]) -> None:
    with pytest.raises(CredoError, match="`posterior='particles'`"):
        resolve(Options(posterior="particles:50", **other), "regression", (3,), 0)


def test_records_and_texts_give_the_same_settings() -> None:
    texts = Options(model="mlp:4", posterior="low-rank:2", drift="walk:1e-5")
    records = Options(Network("mlp", (4,)), Posterior("low-rank", 2), drift=Drift("walk", (1e-5,)))
    assert resolve(texts, "regression", (3,), 0) == resolve(records, "regression", (3,), 0)


@pytest.mark.parametrize(
    "options", [Options(), Options(method="adam"), Options(method="blr", drift="mixture")]
)
def test_settings_come_back_from_json(options: Options) -> None:
    settings = resolve(options, "classification", (4,), 3)
    saved = json.loads(json.dumps(settings.to_dict()))
    assert Settings.from_dict(saved) == settings
    assert Settings.from_dict({**saved, "iterations": settings.iterations}).to_dict() == settings.to_dict()


@pytest.mark.parametrize("change", [{"task": "ranking"}, {"model": 3}, {"seed": None}, {"colour": "red"}])
def test_settings_of_another_version_are_refused(change: dict[str, object]) -> None:
    saved = resolve(Options(), "regression", (3,), 0).to_dict()
    with pytest.raises(FormatError):
        Settings.from_dict({**saved, **change})


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (Options(noise_var=-1.0), "noise_var"),
        (Options(prior_var=0.0), "prior_var"),
        (Options(method="magic"), "method"),
        (Options(curvature="x"), "curvature"),
        (Options(model="resnet"), "model"),
        (Options(learning_rate=2.0, method="blr"), "learning_rate"),
    ],
)
def test_a_refusal_names_its_setting_as_the_library_does(options: Options, field: str) -> None:
    with pytest.raises(CredoError) as caught:
        resolve(options, "regression", (3,), 0)
    assert caught.value.field == field and str(caught.value).startswith(field)
    assert "--" not in str(caught.value)


def test_beliefs_that_would_not_fit_in_memory_are_refused() -> None:
    changing = Drift("run-length")
    with pytest.raises(
        CredoError,
        match=r"would keep 6 covariances of 9000 x 9000 with `drift='run-length:0.005,5'`, 1[.]8",
    ):
        require_memory(Posterior("full"), 9000, changing)
    with pytest.raises(CredoError, match=r"would keep a 30000 x 30000 covariance, 3[.]4 GiB"):
        require_memory(Posterior("full"), 30_000, Drift())
    with pytest.raises(CredoError, match="use a smaller CAPACITY"):
        require_memory(Posterior("low-rank", 10), 10_000, Drift("run-length", (0.01, 9999)))
    require_memory(Posterior("full"), 8000, changing)
