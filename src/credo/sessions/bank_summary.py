"""Findings of a bank about its members, as JSON data and in sentences.

The sentences say who leads, whether the world moves, and which widths are believed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Bank, Calibrated, Calibration, Experts, Stacking
from credo.adapt.nested import within
from credo.beliefs import Gaussian, InverseGamma
from credo.core.groups import pick
from credo.core.types import Array, ArrayLike
from credo.covariances import Covariance, Diagonal
from credo.learners import GaussianClasses, NearestNeighbours, RecursiveLearner
from credo.linalg.jacobians import DenseRows
from credo.recipes.image_members import ImageMember
from credo.recipes.members import MOST_COMPARED, POISSON, Member, NearMember, TableMember
from credo.recipes.tasks import RECIPES
from credo.sessions.change_tally import ChangeSummary, ChangeTally

if TYPE_CHECKING:
    from credo.sessions.session import Session

__all__ = [
    "AnyMember",
    "BankSummary",
    "Effect",
    "MemberSummary",
    "Widths",
    "change_words",
    "contrasts",
    "failure_words",
    "latest_weights",
    "leaders",
    "level_words",
    "linear_effects",
    "motion",
    "narrowed",
    "narrowed_words",
    "noise_words",
    "summarize_bank",
    "walk_of",
    "wide_counts",
    "width_words",
]


AnyMember = TableMember | ImageMember
"""A member of a bank for tables or for images."""

FEW = 0.05
"""A share that is not worth a word."""

SURE = 2 / 3
LEAST_ROWS = 50
"""The share of the evidence, and the number of rows, from which on it is said whether the weights move."""


@dataclass(frozen=True)
class Widths:
    """Weights over a bank: of each factor of the computed variance, of tails heavier than the noise's own,
    and of each factor of the outputs of classes, 1 where they are as members believe; and of the regression
    on what the members forecast.
    """

    scales: Mapping[float, float]
    tails: float = 0.0
    sharpness: Mapping[float, float] = field(default_factory=dict)
    stacked: float = 0.0


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
    """The findings of a bank about its members.

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
    """The findings of a session's bank about its members; None if it is no bank, or has no row."""
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
    first = leaders(members, now, mean)
    broken = failure_words(names, tally.failures, tally.broken.astype(int).tolist())
    level = _level(session)
    moves = motion(members, recent, rows, now, level)
    wide = width_words(widths)
    noise = noise_words(members, now, widths)
    narrow = _capital(narrowed_words(members, narrowed(learner), len(session.encoding.features)))
    changed = change_words(tally)
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
        "walks": {f"{walk:g}": share for walk, share in walk_shares(members, recent).items()},
        "walks_over_rows": rows,
        "scales": {f"{scale:g}": share for scale, share in widths.scales.items()},
        "sharpness": {f"{factor:g}": share for factor, share in widths.sharpness.items()},
        "heavy_tails": widths.tails,
        "stacked": widths.stacked,
        "noise_by_inputs": input_noise(members, now),
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
    """The change of the level of a target that is a number, in words; empty if there is none."""
    if not session.regression or not len(session.tally.recent):
        return ""
    mean = float(session.scaler.mean()[0])
    count = int(session.scaler.count[0])
    return level_words(session.encoding.target, session.tally.recent[:, 1], mean, count)


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
    # in NumPy: each eager operation of JAX would be a program of its own, fetched or compiled for one number
    shares = np.exp(np.asarray(around.log_joint, float)).sum(axis=0)
    return float(shares[1])


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
        own = [0.0] * member.plugin + _numbers(member.scales)
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
    believed = {scale: share / whole for scale, share in sorted(scales.items()) if whole > FEW}
    return Widths(believed, tails, dict(sorted(sharpness.items())), stacked)


def _numbers(values: object) -> list[float]:
    return [float(f"{value:.6g}") for value in np.asarray(values, float).tolist()]


def _unit(session: Session) -> str:
    """The quantity of which an effect is a change."""
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


class Effects(NamedTuple):
    """The largest effects: feature and class (n, 2), means and sds (n,), and the weight of linear members."""

    places: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    weight: float


def contrasts(outputs: int, classes: int) -> np.ndarray:
    """The reported contrasts of C outputs, as a matrix (classes, C) or (1, C): the one output, or each class
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
    """The places of the weights of the features in the vector of parameters (D, C)."""
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
    unit, pushed = _pushed(belief.noise, belief.cov, rows.astype(belief.mean.dtype))
    return float(unit) * np.asarray(pushed, float)


@jax.jit
def _pushed(noise: InverseGamma | None, cov: Covariance, rows: Array) -> tuple[ArrayLike, Array]:
    """The unit of the variances, and the variances of linear functions (n, P) in that unit (n,)."""
    unit = 1.0 if noise is None else noise.mean
    pushed: Array = jnp.diagonal(cov.push(cov.admit(DenseRows(rows))))
    return unit, pushed


def walk_of(member: AnyMember) -> float:
    """The variance that each parameter of a member gains at each row; 0 where its world stands still."""
    if isinstance(member, Member):
        return member.walk
    return 0.0


def walk_shares(members: Sequence[AnyMember], weights: np.ndarray) -> dict[float, float]:
    """The weight of each walk of the members with weights (K,), from the slowest to the fastest."""
    shares = dict.fromkeys(sorted({walk_of(member) for member in members}), 0.0)
    for member, weight in zip(members, weights.tolist(), strict=True):
        shares[walk_of(member)] += weight
    return shares


def leaders(members: Sequence[AnyMember], now: np.ndarray, mean: np.ndarray) -> str:
    """Which member leads by the weights at the end (K,), and which by their means over all rows (K,)."""
    last = int(np.argmax(now))
    whole = int(np.argmax(mean))
    name = _bracketed(str(members[last]))
    first = f"Of {len(members)} members, {name} leads with {_percent(now[last])} of the weight"
    if last == whole:
        return f"{first} ({_percent(mean[last])} over all rows)"
    return f"{first}; over all rows {_bracketed(str(members[whole]))} does, with {_percent(mean[whole])}"


def _bracketed(name: str) -> str:
    """The name of a member as it stands in a sentence: "linear (static, prior 1)"."""
    network, _, rest = name.partition(", ")
    if rest:
        return f"{network} ({rest})"
    return network


def motion(
    members: Sequence[AnyMember],
    weights: np.ndarray,
    rows: int,
    now: np.ndarray | None = None,
    level: str = "",
) -> str | None:
    """Whether the relation of columns and target moves, by mean weights (K,) over the latest rows; None if
    no member walks. It moves where most weight is on members that walk faster than another with the same
    network; members without a network do not say. Where rows are few, where neither side has most of the
    weight, and where the member that leads by the weights `now` says the opposite, there is no evidence. If
    the `level` of the target moves, nothing is said to stand still.
    """
    networks = np.array([isinstance(member, Member | ImageMember) for member in members])
    total = float(weights[networks].sum())
    if total < FEW:
        return None
    weights = np.where(networks, weights, 0.0) / total
    slowest: dict[str, float] = {}
    for member in members:
        slowest[member.kind] = min(slowest.get(member.kind, np.inf), walk_of(member))
    walks = np.array([walk_of(member) for member in members])
    if not walks.any():
        return None
    faster = walks > np.array([slowest[member.kind] for member in members])
    share = float(weights[faster].sum())
    over = f"of the evidence of the latest {rows:,} rows"
    leader = int(np.argmax(now)) if now is not None else int(np.argmax(weights))
    still = float(weights[(walks == 0) & networks].sum())
    rests = share <= 0.5 and still > 0.5 * (1.0 - share)
    opposite = networks[leader] and (
        bool(faster[leader]) != (share > 0.5) or (rests and bool(walks[leader] > 0))
    )
    if rows < LEAST_ROWS or max(share, 1.0 - share) < SURE or opposite:
        return (
            "No evidence either way on whether the relation of columns and target moves: members that walk "
            f"have {_percent(share)} {over}"
        )
    if share > 0.5:
        shares = walk_shares(members, np.where(faster, weights, 0.0))
        walk = max(shares, key=lambda one: shares[one])
        most = f", {_percent(shares[walk])} by {walk:g} a row" if share - shares[walk] > FEW else ""
        by = "" if most else f" by {walk:g} a row"
        return (
            "The relation of columns and target is moving: members that walk"
            f"{by} have {_percent(share)} {over}{most}"
        )
    if rests:
        doubt = f"; members that walk have {_percent(1.0 - still)}" if 1.0 - still > FEW else ""
        start = "The relation of columns and target stands still: members"
        start = "The columns account for the level: members" if level else start
        return f"{start} that do not walk have {_percent(still)} {over}{doubt}"
    shares = walk_shares(members, np.where(faster, 0.0, weights))
    walk = max(shares, key=lambda one: shares[one])
    return (
        "The relation of columns and target hardly moves: the slowest walk that these networks have, by "
        f"{walk:g} a row, has {_percent(shares[walk])} {over}"
    )


LEVEL = 0.25
CLEAR = 4.0
"""By how many standard deviations the latest targets must be off the earlier ones to be another level, and by
how many standard errors."""


def level_words(target: str, latest: np.ndarray, mean: float, count: int) -> str:
    """The change of the level of a target, in words; empty if there is none, or if there are too few rows.

    The mean of the latest targets (n,) is compared with that of those before them, in standard deviations and
    in standard errors, for which neighbours that differ say how large the noise is.

    Arguments:
        target: the name of the target.
        latest: the latest targets, in the order of the rows.
        mean, count: the mean and the number of all targets, with the latest.
    """
    late = len(latest)
    early = count - len(latest)
    if min(late, early) < LEAST_ROWS:
        return ""
    now = float(latest.mean())
    before = (count * mean - late * now) / early
    noise = math.sqrt(0.5 * float(np.mean(np.diff(latest) ** 2)))
    error = noise * math.sqrt(1.0 / late + 1.0 / early)
    away = abs(now - before)
    if not (away > LEVEL * float(latest.std()) and away > CLEAR * error):
        return ""
    change = f", {now / before - 1:+.0%}" if before > 0 and now > 0 else ""
    way = "risen" if now > before else "fallen"
    means = f"the latest {late:,} rows have a mean of {now:.4g}, those before {before:.4g}{change}"
    return f"The level of {target} has {way}: {means}"


def width_words(widths: Widths) -> str:
    """Which scale of the variance of the outputs is believed, where members have one."""
    if not widths.scales:
        return ""
    first, *others = sorted(widths.scales, key=lambda scale: -widths.scales[scale])
    sentence = f"Forecasts use {_part(first)} of the variance computed for the outputs"
    sentence += f" (weight {_percent(widths.scales[first])})"
    if others and widths.scales[first] < 0.5:
        sentence += f", or {_part(others[0])} of it ({_percent(widths.scales[others[0]])})"
    return sentence


def _part(scale: float) -> str:
    return {0.0: "none", 1.0: "all"}.get(scale, f"{scale:g}")


def input_noise(members: Sequence[AnyMember], weights: np.ndarray) -> float:
    """The weight of the members whose noise follows the inputs."""
    own = [isinstance(member, Member) and member.noise == "input" for member in members]
    return float(weights[np.array(own, bool)].sum())


def wide_counts(members: Sequence[AnyMember], weights: np.ndarray) -> float:
    """The weight of the members whose counts have a dispersion, where others are Poisson; 0 elsewhere."""
    logs = [member.dispersion if isinstance(member, Member) else math.nan for member in members]
    if POISSON in logs:
        return float(weights[np.array(logs) > POISSON].sum())
    return 0.0


def noise_words(members: Sequence[AnyMember], weights: np.ndarray, widths: Widths) -> str:
    """The other beliefs in words: heavy tails, noise that follows the inputs, sharper classes, and a
    regression on what the members forecast; or nothing.
    """
    follows = input_noise(members, weights)
    parts = []
    if widths.tails > FEW:
        parts.append(f"heavy tails have weight {_percent(widths.tails)}")
    if follows > FEW:
        parts.append(f"noise that follows the inputs has weight {_percent(follows)}")
    spread = wide_counts(members, weights)
    if spread > FEW:
        parts.append(f"counts with more spread than a Poisson have weight {_percent(spread)}")
    sharper = {factor: share for factor, share in widths.sharpness.items() if factor != 1.0}
    if sum(sharper.values()) > FEW:
        best = max(sharper, key=lambda factor: sharper[factor])
        parts.append(f"logits that are {best:g} times as large have weight {_percent(sharper[best])}")
    if widths.stacked > FEW:
        parts.append(f"a regression on what all members forecast has weight {_percent(widths.stacked)}")
    return "; ".join(parts)


def change_words(tally: ChangeTally) -> str:
    """Which changes were reported, in words, and what they are."""
    meaning = ": losses became much larger, at once, than they had been" if tally.reported else ""
    return tally.reports() + meaning


def failure_words(names: Sequence[str], failures: np.ndarray, rows: Sequence[int]) -> str:
    """Which members failed, how often (K,), and at which row first; empty if none did."""
    if not len(rows):
        return ""
    counts = [(_bracketed(name), int(count)) for name, count in zip(names, failures, strict=True)]
    broken = [f"{name} {count:,} times" for name, count in counts if count > 1]
    broken += [name for name, count in counts if count == 1]
    who = " and ".join(broken[:3]) or "a member"
    more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
    return f"{who}{more} broke, first at row {rows[0]:,}: weighed out, and begun again from the prior"


def narrowed_words(members: Sequence[AnyMember], narrow: Sequence[bool], inputs: int) -> str:
    """The parts that a bank omits so that rows of a wide table cost little, in words; empty if it omits none.

    Arguments:
        members: the K members.
        narrow: whether each member keeps variances alone.
        inputs: the number of inputs.
    """
    kinds = dict.fromkeys(member.kind for member, alone in zip(members, narrow, strict=True) if alone)
    parts = [f"members of kind {' and '.join(kinds)} keep variances alone"] if kinds else []
    comparing = any(isinstance(member, NearMember | ImageMember) for member in members)
    if inputs > MOST_COMPARED and not comparing:
        parts.append("no member looks for rows that are alike")
    if parts:
        return f"the table is wide: {', and '.join(parts)}"
    return ""


def _percent(share: float) -> str:
    """A share in percent, without digits that nobody reads: "57%", or ">99%"."""
    if 0.995 < share < 1.0 - 1e-6:
        return ">99%"
    if 0.0 < share < 0.005:
        return "<1%"
    return f"{share:.0%}"
