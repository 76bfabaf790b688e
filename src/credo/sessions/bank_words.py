"""What the weights of a bank say, in words: who leads, whether the world moves, which widths are believed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from credo.recipes.image_members import ImageMember
from credo.recipes.members import MOST_COMPARED, POISSON, Member, TableMember
from credo.recipes.plain_members import NearMember
from credo.sessions.change_tally import ChangeTally

__all__ = [
    "AnyMember",
    "Widths",
    "change_words",
    "failure_words",
    "input_noise",
    "leaders",
    "level_words",
    "motion",
    "narrowed_words",
    "noise_words",
    "walk_of",
    "walk_shares",
    "wide_counts",
    "width_words",
]

AnyMember = TableMember | ImageMember
"""A member of a bank for tables or for images."""

FEW = 0.05
"""A share that is not worth a word."""

# The share of the evidence, and the number of rows, from which on it is said whether the weights move.
SURE = 2 / 3
LEAST_ROWS = 50


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


# By how many standard deviations the latest targets must be off the earlier ones to be another level, and
# by how many standard errors.
LEVEL = 0.25
CLEAR = 4.0


def level_words(target: str, latest: np.ndarray, mean: float, count: int) -> str:
    """How the level of a target has changed; empty if it has not, or if there are too few rows.

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
    """What else is believed: heavy tails, noise that follows the inputs, sharper classes, and a regression on
    what the members forecast; or nothing.
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
    """What a bank does without so that rows of a wide table cost little; empty if it does without nothing.

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
