"""What the weights of a bank say in words, and the effects of its linear members."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.adapt import Each
from credo.adapt.nested import within
from credo.recipes.language import Network
from credo.recipes.members import LINEAR, Member, NearMember, NormalMember, members_of
from credo.sessions import ChangeTally, Steps, Tally, bank_summary
from credo.sessions.bank_summary import Widths, contrasts, latest_weights, linear_effects, narrowed

HIDDEN = Network("mlp", (20,))
MEMBERS = (
    Member(LINEAR),
    Member(LINEAR, 1e-2),
    Member(HIDDEN, 1e-4, activation="tanh"),
    Member(HIDDEN, 1e-3, noise="input"),
)


def test_the_leading_members_are_named() -> None:
    now = np.array([0.1, 0.7, 0.1, 0.1])
    alone = bank_summary.leaders(MEMBERS, now, now)
    assert (
        alone == "Of 4 members, linear (walk 0.01, prior 4) leads with 70% of the weight (70% over all rows)"
    )
    both = bank_summary.leaders(MEMBERS, now, now[::-1])
    assert both.endswith("; over all rows mlp:20 tanh (walk 0.0001, prior 4) does, with 70%")


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ((0.2, 0.8, 0.0, 0.0), "is moving: members that walk by 0.01 a row have 80% of the evidence of"),
        ((0.3, 0.57, 0.0, 0.13), "is moving: members that walk have 70% of the evidence of the latest 2,500"),
        ((0.9, 0.1, 0.0, 0.0), "stands still: members that do not walk have 90% of the evidence of the"),
        ((0.1, 0.0, 0.9, 0.0), "hardly moves: the slowest walk that these networks have, by 0.0001 a row, "),
        ((0.4, 0.6, 0.0, 0.0), "No evidence either way on whether the relation of columns and target moves"),
    ],
)
def test_whether_the_world_moves_is_told_by_members_that_walk_faster_than_others_of_their_network(
    weights: tuple[float, ...], words: str
) -> None:
    sentence = bank_summary.motion(MEMBERS, np.array(weights), 2500)
    assert sentence is not None and words in sentence and "latest 2,500 rows" in sentence
    assert bank_summary.motion(MEMBERS[:1], np.ones(1), 10) is None


def test_few_rows_and_a_leader_of_the_other_side_are_no_evidence() -> None:
    weights, none = np.array([0.1, 0.9, 0.0, 0.0]), "No evidence either way"
    still = np.array([0.9, 0.1, 0.0, 0.0])
    for rows, now, start in ((50, weights, "The relation"), (49, weights, none), (50, still, none)):
        sentence = bank_summary.motion(MEMBERS, weights, rows, now)
        assert sentence is not None and sentence.startswith(start), (rows, now)


def test_a_leader_that_walks_does_not_stand_beside_a_relation_that_stands_still() -> None:
    members = (MEMBERS[0], MEMBERS[2])  # a still one, and the slowest of its network, which walks
    weights = np.array([0.82, 0.18])
    for now, start in (
        (weights, "The relation of columns and target stands"),
        (weights[::-1], "No evidence"),
    ):
        sentence = bank_summary.motion(members, weights, 150, now)
        assert sentence is not None and sentence.startswith(start)


def test_a_level_that_rises_is_said_and_then_nothing_stands_still() -> None:
    noise = np.random.default_rng(0).normal(size=1000)
    for slope, noisy, words in ((0.6, 0.3, "has risen"), (-0.6, 0.3, "has fallen"), (0.0, 0.3, "")):
        y = 1.0 + slope * np.arange(1000) / 1000 + noisy * noise
        said = bank_summary.level_words("y", y[-200:], float(y.mean()), 1000)
        assert (words in said) if words else said == ""
        level = bank_summary.motion(MEMBERS, np.array([0.9, 0.1, 0.0, 0.0]), 200, level=said)
        assert level is not None and ("stands still" in level) == (not words)
    swing = 10 * np.sin(np.arange(1000) / 4)  # a season is no level
    assert bank_summary.level_words("y", swing[-200:], float(swing.mean()), 1000) == ""
    assert bank_summary.level_words("y", 9 + noise[:200], 1.0, 240) == ""  # too few rows before


def test_what_is_left_out_for_a_wide_table_is_said() -> None:
    near, apart = NearMember(), "no member looks for rows that are alike"
    assert bank_summary.narrowed_words((*MEMBERS, near), [False] * 5, 200) == ""
    few = bank_summary.narrowed_words(MEMBERS, [False, False, True, True], 200)
    assert few == "the table is wide: members of kind mlp:20 keep variances alone, and " + apart
    assert bank_summary.narrowed_words(MEMBERS, [False] * 4, 100) == ""
    said = []
    for inputs in (100, 160, 700):
        learner = within(credo.auto(inputs), credo.Experts)
        assert learner is not None
        members = members_of("regression", inputs, 1)
        said.append(bank_summary.narrowed_words(members, narrowed(learner), inputs))
    assert said == [
        "",
        f"the table is wide: {apart}",
        "the table is wide: members of kind linear and mlp:20 keep variances alone, and " + apart,
    ]


def test_a_regression_on_the_members_is_said() -> None:
    weights = np.array([1.0, 0.0, 0.0, 0.0])
    said = bank_summary.noise_words(MEMBERS, weights, Widths({}, stacked=0.912))
    assert said == "a regression on what all members forecast has weight 91%"
    assert bank_summary.noise_words(MEMBERS, weights, Widths({}, stacked=0.02)) == ""


def test_members_without_a_network_do_not_say_whether_the_world_moves() -> None:
    members = (*MEMBERS[:2], NearMember(), NormalMember(share=0.0))
    sentence = bank_summary.motion(members, np.array([0.02, 0.06, 0.9, 0.02]), 90)
    assert sentence is not None and "is moving: members that walk by 0.01 a row have 75% of" in sentence
    assert bank_summary.motion(members, np.array([0.01, 0.01, 0.9, 0.08]), 90) is None
    assert bank_summary.leaders(members, np.eye(4)[2], np.eye(4)[3]) == (
        "Of 4 members, nearest of 1,500 rows (decay 3) leads with 100% of the weight; "
        "over all rows base rates does, with 100%"
    )
    kinds = ["linear", "linear", "memory", "naive Bayes"]
    assert [member.kind for member in members] == kinds


def test_a_doubt_that_the_relation_stands_still_is_told_from_one_percent_on() -> None:
    start = "The relation of columns and target stands still: members that do not walk have "
    still = start + "{} of the evidence of the latest 90 rows"
    for share, words in ((1.0, "100%"), (0.9, "90%")):
        sentence = bank_summary.motion(MEMBERS[:2], np.array([share, 1.0 - share]), 90)
        doubt = "" if share == 1 else "; members that walk have 10%"
        assert sentence == still.format(words) + doubt


def test_widths_noise_and_failures_are_said() -> None:
    assert not bank_summary.width_words(Widths({}))
    assert bank_summary.width_words(Widths({0.0: 0.4, 0.1: 0.35, 1.0: 0.25})) == (
        "Forecasts use none of the variance computed for the outputs (weight 40%), or 0.1 of it (35%)"
    )
    weights = np.array([0.2, 0.2, 0.0, 0.6])
    noise = bank_summary.noise_words(MEMBERS, weights, Widths({1.0: 1.0}, tails=0.3))
    assert noise == "heavy tails have weight 30%; noise that follows the inputs has weight 60%"
    assert not bank_summary.noise_words(MEMBERS[:1], np.ones(1), Widths({1.0: 1.0}))
    sharp = bank_summary.noise_words(MEMBERS, 0 * weights, Widths({1.0: 1.0}, sharpness={1.0: 0.3, 1.3: 0.7}))
    assert sharp == "logits that are 1.3 times as large have weight 70%"
    names = [str(member) for member in MEMBERS]
    broken = bank_summary.failure_words(names, np.array([0, 2, 1, 0]), [1200, 1300, 1400])
    assert broken == (
        "linear (walk 0.01, prior 4) 2 times and mlp:20 tanh (walk 0.0001, prior 4) broke, first at row "
        "1,200: weighed out, and begun again from the prior"
    )
    assert not bank_summary.failure_words(names, np.zeros(4), [])


def test_a_tally_counts_which_member_failed_and_gives_the_weights_of_the_latest_rows() -> None:
    tally: ChangeTally | None = ChangeTally("none", ["a", "b"])
    assert tally is not None
    probs = np.tile([0.25, 0.75], (8, 1))
    probs[6:] = [1.0, 0.0]
    lengths = np.tile([0, 1], (8, 1))
    lengths[6, 1] = -1
    flags = np.arange(8) == 6
    tally.add(Steps(probs, lengths, np.zeros(8), flags, np.zeros(8)))
    arrays = tally.arrays()
    tally = ChangeTally.from_arrays("none", arrays, ["a", "b"])
    assert tally is not None and tally.failures.tolist() == [0.0, 1.0] and tally.broken.tolist() == [7]
    weights, rows = latest_weights(tally)
    assert weights.tolist() == [1.0, 0.0] and rows == 2
    del arrays["failures"]  # as in files from before
    tally = ChangeTally.from_arrays("none", arrays, ["a", "b"])
    assert tally is not None and tally.failures.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("classes", [0, 3])
def test_effects_are_mixed_over_the_linear_members_by_their_weights(classes: int) -> None:
    outputs = classes or 1
    distribution = credo.Categorical(3) if classes else credo.Normal(credo.InverseGamma(2.0, 0.5))
    inner = credo.extended_kalman(credo.Model(credo.Linear(outputs), distribution))
    learner = credo.Experts([credo.Calibrated(inner, scales=(0.0, 1.0)) for _ in range(2)])
    params = credo.Linear(outputs).init(jax.random.key(0), (2,))
    belief = learner.init(jax.tree.map(lambda leaf: leaf.astype(float), params))
    rng = np.random.default_rng(0)
    size = 3 * outputs
    means = rng.normal(size=(2, size))
    inside = credo.replace(belief.beliefs.belief, mean=jnp.asarray(means))
    unit = 1.0 if inside.noise is None else float(inside.noise.mean[0])
    belief = credo.replace(
        belief,
        beliefs=credo.replace(belief.beliefs, belief=inside),
        log_weights=jnp.log(jnp.array([0.25, 0.75])),
    )
    effects = linear_effects(belief, [Member(LINEAR), Member(LINEAR, 0.1)], classes, 4)
    assert effects is not None and effects.weight == pytest.approx(1.0)
    w = (
        np.stack([np.asarray(inside.unravel(jnp.asarray(mean))[0]["w"]) for mean in means])
        @ contrasts(outputs, classes).T
    )
    mean = 0.25 * w[0] + 0.75 * w[1]
    # unit prior variances; a contrast of three classes has 2/3 of them, and the noise is the unit of numbers
    own = 2 / 3 if classes else unit
    var = own + 0.25 * (w[0] - mean) ** 2 + 0.75 * (w[1] - mean) ** 2
    where = tuple(effects.places.T)
    np.testing.assert_allclose(effects.mean, mean[where], atol=1e-12)
    np.testing.assert_allclose(effects.sd, np.sqrt(var[where]), rtol=1e-10)
    largest = sorted(np.abs(mean).ravel(), reverse=True)[:4]
    np.testing.assert_allclose(np.abs(effects.mean), largest, atol=1e-12)
    if classes:
        np.testing.assert_allclose(contrasts(2, 3) @ np.ones(2), [-2 / 3, 1 / 3, 1 / 3])
    assert linear_effects(belief, [Member(HIDDEN), Member(HIDDEN)], classes, 4) is None


def test_the_scales_of_a_bank_are_weighed_over_all_members_and_others_have_the_scale_one() -> None:
    plain = credo.extended_kalman(credo.Model(credo.Linear(1), credo.Normal(0.1)))
    members: list[Any] = [plain, credo.Calibrated(plain, scales=(0.0, 1.0)), plain]
    learner: credo.Experts[Any] = credo.Experts(members)
    belief = learner.init(credo.Linear(1).init(0, (2,)))
    belief = credo.replace(belief, log_weights=jnp.log(jnp.array([0.2, 0.5, 0.3])))
    widths = bank_summary._widths(learner, belief)
    assert widths.scales == pytest.approx({0.0: 0.25, 1.0: 0.75}) and widths.tails == pytest.approx(0.0)


def test_the_weight_of_the_regression_on_forecasts_is_its_share() -> None:
    bank = credo.Experts([credo.BetaBernoulli(a=a) for a in (1.0, 3.0)])
    belief: Any = credo.Stacked(bank, credo.Bernoulli()).init()
    assert bank_summary._stacked(belief) == pytest.approx(float(belief.share)) == pytest.approx(0.1)


def test_members_without_a_variance_have_no_scales() -> None:
    plain = credo.GaussianClasses(2, credo.Bernoulli())
    model = credo.Model(credo.Linear(1), credo.Bernoulli())
    members: list[Any] = [plain, credo.Calibrated(credo.extended_kalman(model), scales=(0.0, 1.0))]
    learner: credo.Experts[Any] = credo.Experts(members)
    params = credo.Linear(1).init(0, (2,))
    for weight, scales in ((0.5, {0.0: 0.5, 1.0: 0.5}), (0.01, {})):
        belief = learner.init(Each((0.0, params)))
        belief = credo.replace(belief, log_weights=jnp.log(jnp.array([1.0 - weight, weight])))
        assert bank_summary._widths(learner, belief).scales == pytest.approx(scales)


def test_forecasts_before_scaling_are_tallied_beside_ours() -> None:
    one, y = np.ones(2), np.array([0.0, 3.0])
    scores = credo.metrics.Scores(y, one, one, -one, one / 2, None, {"linearized": -2 * one}, one, one > 0)
    tally = Tally("regression")
    tally.add(scores, -one, one)
    assert "nlpd_unscaled" not in tally.metrics()
    moments = np.stack([np.zeros(2), one], axis=1)
    tally.add(credo.replace(scores, compared={"linearized": moments}), -one, one)
    metrics = tally.metrics()
    assert metrics["nlpd_unscaled"] == 2.0 and metrics["coverage_90_unscaled"] == 0.5
    assert tally.pits.sum(axis=1).tolist() == [4.0, 2.0] and tally.pits[1, 10] == tally.pits[1, -1] == 1.0
    probs = np.array([[0.9, 0.1], [0.2, 0.8]])
    labels = credo.metrics.Scores(
        np.array([0, 0]), None, None, -one, None, probs, {"linearized": -one}, one, one > 0
    )
    tally = Tally("classification", 2)
    tally.add(credo.replace(labels, compared={"linearized": np.full((2, 2), 0.5)}), -one, one)
    again = Tally.from_arrays("classification", tally.arrays())
    assert again.metrics()["ece_unscaled"] == pytest.approx(0.5) and not again.pits.any()


def test_a_compared_forecast_gives_its_moments_or_its_probabilities() -> None:
    x, y = jnp.ones((3, 2)), jnp.array([1.0, 0.0, 1.0])
    for distribution in (credo.Normal(0.5), credo.Bernoulli()):
        learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, distribution))
        belief = learner.init(jnp.zeros(2))
        scores = credo.evaluate(learner, belief, (x, y), compare=["plugin"]).scores
        plain = learner.forecast(learner.predict(belief), x[0], method="plugin")
        first = plain.probs if scores.classification else jnp.stack([plain.mean, plain.sd])
        np.testing.assert_allclose(scores.compared["plugin"][0], first, rtol=1e-12)
        assert scores.rows(slice(2)).compared["plugin"].shape == (2, 2)
    assert jax.tree.leaves(scores.rows(slice(0)).compared)[0].shape == (0, 2)
