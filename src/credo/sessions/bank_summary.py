"""What a bank has learned about its members, as JSON data and in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

import jax
import numpy as np

from credo.adapt import Bank, Calibrated, Calibration, Experts, Stacking
from credo.adapt.nested import within
from credo.core.groups import pick
from credo.covariances import Diagonal
from credo.learners import GaussianClasses, NearestNeighbours, RecursiveLearner
from credo.recipes.tasks import RECIPES
from credo.sessions import bank_words as words
from credo.sessions.bank_words import Widths
from credo.sessions.change_tally import ChangeSummary, ChangeTally

if TYPE_CHECKING:
    from credo.sessions.session import Session

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from credo.beliefs import Gaussian
from credo.core.types import Array
from credo.covariances import Covariance
from credo.linalg.jacobians import DenseRows
from credo.recipes.members import Member

__all__ = [
    "BankSummary",
    "Effect",
    "MemberSummary",
    "contrasts",
    "latest_weights",
    "linear_effects",
    "narrowed",
    "summarize_bank",
]


class Effects(NamedTuple):
    """The largest effects: feature and class (n, 2), means and sds (n,), and the weight of linear members."""

    places: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    weight: float


def contrasts(outputs: int, classes: int) -> np.ndarray:
    """What is reported of C outputs, as a matrix (classes, C) or (1, 1): the one output, or each class
    against the mean of all, since logits matter by their differences alone. Of a number it is the first: a
    second one is its dispersion.
    """
    if outputs == 1 or not classes:
        return np.eye(1, outputs)
    logits = np.eye(classes, outputs, k=0 if outputs >= classes else -1)
    return np.asarray(logits - logits.mean(axis=0))


def linear_places(members: Sequence[object]) -> list[int]:
    """The places of the members that are linear in what they are given, and whose outputs are all means."""
    return [
        k
        for k, member in enumerate(members)
        if isinstance(member, Member) and member.network.kind == "linear" and member.noise == "shared"
    ]


def linear_effects(bank: Bank[Any], members: Sequence[object], classes: int, most: int) -> Effects | None:
    """The `most` largest effects by the linear members of a bank, but for those of mean 0; None if no
    member is linear in what it is given.

    mean = sum_k w_k m_k, var = sum_k w_k (v_k + (m_k - mean)^2), with w_k the weights among linear members.
    The noise variance of a member is the unit of its variances. Cost: n P^2 by a full covariance.
    """
    slots = linear_places(members)
    if not slots:
        return None
    beliefs = jax.tree.map(np.asarray, bank.beliefs)
    weights = np.exp(np.asarray(bank.log_weights))
    inner = [_inside(pick(beliefs, k)) for k in slots]
    where = _positions(inner[0])  # (D, C)
    against = contrasts(where.shape[1], classes)
    total = float(weights[slots].sum())
    share = weights[slots] / total if total > 0 else np.full(len(slots), 1.0 / len(slots))
    every = np.stack([np.asarray(one.mean, float)[where] @ against.T for one in inner])
    centre = np.tensordot(share, every, axes=1)
    order = np.argsort(-np.abs(centre), axis=None, kind="stable")[:most]
    places = np.stack(np.unravel_index(order, centre.shape), axis=1)
    places = places[np.abs(centre)[tuple(places.T)] > 0]
    rows = np.zeros((len(places), inner[0].unravel.size))
    rows[np.arange(len(places))[:, None], where[places[:, 0]]] = against[places[:, 1]]
    means = every[:, places[:, 0], places[:, 1]]
    mean = centre[tuple(places.T)]
    variances = np.stack([_variances(one, rows) for one in inner])
    var = share @ (variances + (means - mean) ** 2)
    return Effects(places, mean, np.sqrt(np.maximum(var, 0.0)), min(total, 1.0))


def _inside(belief: object) -> Gaussian:
    inner = belief.belief if isinstance(belief, Calibration) else belief
    assert isinstance(inner, Gaussian)
    return inner


def _positions(belief: Gaussian) -> np.ndarray:
    """Where the weights of the features stand in the vector of parameters (D, C)."""
    size = belief.unravel.size
    shapes = jax.eval_shape(belief.unravel, jax.ShapeDtypeStruct((size,), belief.mean.dtype))
    ends = np.cumsum([math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)])
    parts = np.split(np.arange(size), ends[:-1])
    tree: Any = jax.tree.unflatten(jax.tree.structure(shapes), parts)
    return np.asarray(tree[-1]["w"]).reshape(shapes[-1]["w"].shape)


def _variances(belief: Gaussian, rows: np.ndarray) -> np.ndarray:
    """The variances of some linear functions (n, P) of the parameters (n,)."""
    if not len(rows):
        return np.zeros(0)
    unit = 1.0 if belief.noise is None else float(belief.noise.mean)
    return unit * np.asarray(_pushed(belief.cov, rows.astype(belief.mean.dtype)), float)


@jax.jit
def _pushed(cov: Covariance, rows: Array) -> Array:
    pushed: Array = jnp.diagonal(cov.push(cov.admit(DenseRows(rows))))
    return pushed


SHOWN = 20
"""The most effects that are named."""

LATEST = 4
"""Whether the world moves is told from the last of so many parts of the rows."""


class MemberSummary(TypedDict):
    """A member: its weight at the end, its mean weight over all rows, and how often it failed."""

    name: str
    weight: float
    mean_weight: float
    failures: int


class Effect(TypedDict):
    """The mean and the standard deviation of the effect of a feature on an output."""

    feature: str
    output: NotRequired[str]
    mean: float
    sd: float


class BankSummary(TypedDict):
    """What a bank has learned about its members.

    `walks` has mean weights over the latest rows, by the variance that parameters gain at a row; `scales`,
    `sharpness` (of the logits of classes), `heavy_tails`, `stacked` (the weight of the regression on what the
    members forecast), `noise_by_inputs` and `switching` (by the rate) are as at the end. `changes` are those
    that were reported. `sentences` say it at length, and `short` in at most four of them.
    """

    members: list[MemberSummary]
    leading: str
    leading_over_all_rows: str
    walks: dict[str, float]
    walks_over_rows: int
    scales: dict[str, float]
    sharpness: dict[str, float]
    heavy_tails: float
    stacked: float
    noise_by_inputs: float
    switching: dict[str, float]
    linear_weight: float
    linear_mean_weight: float
    effects_of: str
    effects: list[Effect]
    changes: ChangeSummary
    sentences: list[str]
    short: list[str]


def latest_weights(tally: ChangeTally) -> tuple[np.ndarray, int]:
    """The mean weights of the members over the latest quarter of the rows (K,), and how many those are."""
    blocks = max(1, len(tally.grid) // LATEST)
    rows = int(tally.counts[-blocks:].sum())
    return tally.grid[-blocks:].sum(axis=0) / max(rows, 1), rows


def summarize_bank(session: Session) -> BankSummary | None:
    """What the bank of a session has learned about its members; None if it is no bank, or has no row."""
    tally = session.changes
    members = session.members
    belief = within(session.belief, Bank)
    learner = within(session.learner, Experts)
    if tally is None or not tally.rows or belief is None or learner is None:
        return None
    if not members:
        return None
    now = np.asarray(tally.latest, float)
    names = tally.experts
    mean = tally.grid.sum(axis=0) / tally.rows
    recent, rows = latest_weights(tally)
    widths = _widths(learner, belief, _stacked(session.belief))
    effects = linear_effects(belief, members, len(session.encoding.classes), SHOWN)
    first = words.leaders(members, now, mean)
    broken = words.failure_words(names, tally.failures, tally.broken.astype(int).tolist())
    level = _level(session)
    moves = words.motion(members, recent, rows, now, level)
    wide = words.width_words(widths)
    noise = words.noise_words(members, now, widths)
    narrow = _capital(words.narrowed_words(members, narrowed(learner), len(session.encoding.features)))
    changed = words.change_words(tally)
    whole = [first, broken and _capital(broken), level, moves, changed, wide, _capital(noise), narrow]
    forecasts = "; ".join(filter(None, [wide, noise]))
    moves = "; ".join(filter(None, [moves, changed if tally.reported else ""]))
    short = [first + (f"; {broken}" if broken else ""), level, moves, _capital(forecasts), narrow]
    rates = np.atleast_1d(np.asarray(learner.switching, float)).tolist()
    joint = belief.log_joint
    shares = [1.0] if joint is None else np.exp(np.asarray(joint)).sum(axis=-1).tolist()
    return {
        "members": [
            {"name": name, "weight": float(now[k]), "mean_weight": float(mean[k]), "failures": int(fails)}
            for k, (name, fails) in enumerate(zip(names, tally.failures, strict=True))
        ],
        "leading": names[int(np.argmax(now))],
        "leading_over_all_rows": names[int(np.argmax(mean))],
        "walks": {f"{walk:g}": share for walk, share in words.walk_shares(members, recent).items()},
        "walks_over_rows": rows,
        "scales": {f"{scale:g}": share for scale, share in widths.scales.items()},
        "sharpness": {f"{factor:g}": share for factor, share in widths.sharpness.items()},
        "heavy_tails": widths.tails,
        "stacked": widths.stacked,
        "noise_by_inputs": words.input_noise(members, now),
        "switching": {f"{rate:g}": share for rate, share in zip(rates, shares, strict=True)},
        "linear_weight": effects.weight if effects else 0.0,
        "linear_mean_weight": float(mean[linear_places(members)].sum()),
        "effects_of": _unit(session),
        "effects": _named(session, effects) if effects and session.encoding.features else [],
        "changes": tally.reported_changes(),
        "sentences": [f"{sentence}." for sentence in whole if sentence],
        "short": [f"{sentence}." for sentence in short if sentence],
    }


def _level(session: Session) -> str:
    """How the level of a target that is a number has changed; empty if it has not."""
    if not session.regression or not len(session.tally.recent):
        return ""
    mean = float(session.scaler.mean()[0])
    count = int(session.scaler.count[0])
    return words.level_words(session.encoding.target, session.tally.recent[:, 1], mean, count)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def narrowed(learner: Experts) -> list[bool]:  # type: ignore[type-arg]
    """Of each member of a bank, whether it keeps the variances of its parameters alone."""
    inside = jax.tree.map(np.asarray, learner.bank)
    inner = [within(pick(inside, k), RecursiveLearner) for k in range(learner.size)]
    return [one is not None and isinstance(one.family, Diagonal) for one in inner]


def _stacked(belief: object) -> float:
    """The weight of the regression on what the members forecast."""
    around = within(belief, Stacking)
    if around is None:
        return 0.0
    return float(around.share)


def _widths(learner: Experts, belief: Bank, stacked: float = 0.0) -> Widths:  # type: ignore[type-arg]
    """The weights of scales, over the members that have several, and of tails and sharpness, over all."""
    inside, beliefs = jax.tree.map(np.asarray, (learner.bank, belief.beliefs))
    weights = np.exp(np.asarray(belief.log_weights))
    scales: dict[float, float] = {}
    sharpness: dict[float, float] = {}
    tails = 0.0
    for k, weight in enumerate(weights.tolist()):
        member = pick(inside, k)
        calibration = pick(beliefs, k)
        if not isinstance(member, Calibrated) or not isinstance(calibration, Calibration):
            if not isinstance(member, GaussianClasses | NearestNeighbours):  # these have no variance
                scales[1.0] = scales.get(1.0, 0.0) + weight
            continue
        own = _numbers(member.variance_factors)
        factors = _numbers(member.sharpness)
        # the candidates with the forecast's own tails and sharpness come first, then those with others
        shares = weight * np.exp(calibration.log_weights).reshape(-1, len(own))
        if np.size(member.scales):  # another has one width, whatever is believed
            for scale, share in zip(own, shares.sum(axis=0).tolist(), strict=True):
                scales[scale] = scales.get(scale, 0.0) + share
        if factors:
            for factor, share in zip((1.0, *factors), shares.sum(axis=1).tolist(), strict=True):
                sharpness[factor] = sharpness.get(factor, 0.0) + share
        else:
            tails += float(shares[1:].sum())
    whole = sum(scales.values())
    # where hardly any member has a variance, its scales say nothing of the forecasts
    believed = {scale: share / whole for scale, share in sorted(scales.items()) if whole > words.FEW}
    return Widths(believed, tails, dict(sorted(sharpness.items())), stacked)


def _numbers(values: object) -> list[float]:
    return [float(f"{value:.6g}") for value in np.asarray(values, float).tolist()]


def _unit(session: Session) -> str:
    """What an effect is a change of."""
    target = session.encoding.target
    classes = session.encoding.classes
    if session.regression:
        return RECIPES[session.settings.task].effect.format(target)
    if len(classes) == 2:
        return f"the log odds of {classes[1]!r} against {classes[0]!r}"
    return "the logit of a class above the mean of all classes"


def _named(session: Session, effects: Effects) -> list[Effect]:
    """The largest effects by the names of features and classes, in the target's own units."""
    scale = 1.0
    if session.settings.target.standardised:
        sd = float(session.scaler.sd()[0])
        scale = sd if sd > 0 else 1.0
    features = session.encoding.features
    classes = session.encoding.classes
    named: list[Effect] = []
    for (d, c), mean, sd in zip(effects.places.tolist(), effects.mean, effects.sd, strict=True):
        effect: Effect = {"feature": features[d], "mean": scale * float(mean), "sd": scale * float(sd)}
        if len(classes) > 2:
            effect["output"] = classes[c]
        named.append(effect)
    return named
