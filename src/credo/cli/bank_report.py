"""What the report says of a bank: its members, and the effect of each feature, which is drawn, too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from credo.cli.html_report import Grid, Line, Picture, Section
from credo.plots import COMPACT_PALETTE, Times, compact_figure, count_rows, shortened
from credo.sessions import ChangeTally
from credo.sessions.bank_summary import BankSummary, Effect
from credo.sessions.bank_words import AnyMember, walk_of

__all__ = ["draw", "draw_effects", "has_effects", "legend_entries", "meaning", "parts", "shown"]

SMALL = 0.01
"""The weight from which on linear members have a part in the forecasts that is worth a look."""


NAMES = (
    "A weight is the probability that the member predicts best. Of a member, walk is the variance that each "
    "of its parameters gains at a row, prior the scale of their variances before any row, clip the largest "
    "size of a standardised number that it sees (3 unless its name says otherwise), and noise the "
    "factor by which what it knows of the noise fades at a row."
)


def shown(effect: Effect) -> str:
    """What an effect is called: the feature, and the class if there are several."""
    if "output" in effect:
        return f"{effect['feature']} → {effect['output']}"
    return effect["feature"]


def meaning(bank: BankSummary) -> str:
    """What the numbers of the effects mean."""
    return (
        f"An effect is the change of {bank['effects_of']} if a column rises by one standard deviation, "
        "or if a category is present, and all other columns stay the same."
    )


def _trust(bank: BankSummary) -> str:
    """How much linear members have to say."""
    weight = bank["linear_weight"]
    mean = bank["linear_mean_weight"]
    sentence = f"Linear members have {weight:.1%} of the weight now and had {mean:.1%} over all rows. "
    if weight < SMALL:
        return (
            sentence + "The effects of single columns by them would say almost nothing about the forecasts; "
            "the importance of the columns, from held-out rows or --importance, does."
        )
    return sentence + "Effects are mixed over them by their weights."


def has_effects(bank: BankSummary) -> bool:
    """Whether effects by the linear members say something about the forecasts."""
    return bool(bank["effects"]) and bank["linear_weight"] >= SMALL


def parts(bank: BankSummary) -> list[Section]:
    """The sections on a bank: its members by falling weight, and the largest effects."""
    members = sorted(bank["members"], key=lambda one: -max(one["weight"], one["mean_weight"]))
    failed = any(one["failures"] for one in members)
    lines = [
        Line(
            one["name"],
            (f"{one['weight']:.1%}", f"{one['mean_weight']:.1%}", *([f"{one['failures']:,}"] * failed)),
        )
        for one in members
    ]
    heads = ("weight now", "mean weight", *(["failures"] * failed))
    scales = ", ".join(f"{scale}: {share:.0%}" for scale, share in bank["scales"].items())
    rates = ", ".join(f"{rate}: {share:.0%}" for rate, share in bank["switching"].items())
    walks = ", ".join(
        f"{'none' * (walk == '0') or walk}: {share:.0%}" for walk, share in bank["walks"].items()
    )
    factors = ", ".join(f"{factor}: {share:.0%}" for factor, share in bank["sharpness"].items())
    sentences = [
        *bank["sentences"],
        *([_trust(bank)] if bank["effects"] and not has_effects(bank) else []),
        NAMES,
        f"Weights of the walks, over the latest {bank['walks_over_rows']:,} rows: {walks}. "
        f"Weights now of the scales of the computed variance: {scales}; "
        + (f"of the factors of the logits: {factors}; " if factors else "")
        + f"of the chance that another member takes over before a row: {rates}.",
    ]
    sections = [Section("Members", sentences, Grid(heads, lines), "member")]
    if has_effects(bank):
        effects = [
            Line(shown(effect), (f"{effect['mean']:+.3g}", f"{effect['sd']:.2g}"))
            for effect in bank["effects"]
        ]
        grid = Grid(("effect", "standard deviation"), effects)
        sections.append(Section("Effects of the columns", [meaning(bank), _trust(bank)], grid, "feature"))
    return sections


MAPS = ("Blues", "Oranges", "Greens", "Purples", "PuRd")
"""The colours of each kind of member, from light where it stands still to dark where it walks fast."""

# The most members that the legend names; a named one has this mean weight, or this weight in some block.
NAMED = 8
OFTEN = 0.015
ONCE = 0.3

LONGEST = 30
MARKED = 50


def draw(changes: ChangeTally, members: Sequence[AnyMember], times: Times = None) -> Picture:
    """The weight of each member after each row, one above the other."""
    share = changes.grid / np.maximum(changes.counts, 1)[:, None]
    edges = np.minimum(changes.size * np.arange(len(share) + 1), changes.rows) + 0.5
    names = changes.experts
    (named, others) = legend_entries(changes, members)
    rest = 1.0 - share[:, named].sum(axis=1)
    colours = _colours(members, named)
    with compact_figure() as drawing:
        drawing.figure.set_size_inches(7.2, 5.4)
        axes = drawing.panels[0]
        floor = np.zeros(len(share))
        for k in named:
            top = floor + share[:, k]
            axes.stairs(top, edges, baseline=floor, fill=True, color=colours[k], label=names[k])
            floor = top
        if rest.max() > 1e-3:
            label = f"the {others} others" if others > 1 else "the other one"
            axes.stairs(np.ones(len(share)), edges, baseline=floor, fill=True, color="#dddddd", label=label)
        axes.set_ylim(0, 1)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_xlabel("rows")
        axes.set_ylabel("weight of each member")
        for row in changes.alarms[:MARKED, 0]:
            axes.axvline(row, color="black", linewidth=0.8, alpha=0.6)
        axes.grid(False)
        count_rows(axes, times)
        drawing.figure.legend(loc="outside lower center", ncols=2, fontsize=8.5, reverse=True)
    darker = ", darker for members whose weights walk faster" if any(map(walk_of, members)) else ""
    lines = "; lines are reported changes" if changes.reported else ""
    how = "." if changes.size == 1 else f" (the mean of each block of {changes.size:,} rows)."
    return Picture(
        drawing.png, f"Members: how much each is believed after each row. One hue a kind{darker}{lines}{how}"
    )


def legend_entries(changes: ChangeTally, members: Sequence[AnyMember]) -> tuple[list[int], int]:
    """The members that the legend names, in the order of drawing, and how many others there are."""
    mean = changes.grid.sum(axis=0) / max(changes.rows, 1)
    most = (changes.grid / np.maximum(changes.counts, 1)[:, None]).max(axis=0)
    ranked = [k for k in np.argsort(-mean, kind="stable") if mean[k] > OFTEN or most[k] > ONCE][:NAMED]
    named = [k for k in _order(members) if k in ranked]
    return named, len(mean) - len(named)


def _order(members: Sequence[AnyMember]) -> list[int]:
    """The members, those with one network side by side, from the slowest to the fastest."""
    networks = list(dict.fromkeys(member.kind for member in members))

    def rank(place: int) -> tuple[int, float]:
        member = members[place]
        return networks.index(member.kind), walk_of(member)

    return sorted(range(len(members)), key=rank)


def _colours(members: Sequence[AnyMember], named: Sequence[int]) -> dict[int, tuple[float, ...]]:
    """The colour of each of the named members."""
    from matplotlib import colormaps

    networks = list(dict.fromkeys(member.kind for member in members))
    walks = sorted({walk_of(member) for member in members})
    colours: dict[int, tuple[float, ...]] = {}
    for number, network in enumerate(networks):
        own = [k for k in named if members[k].kind == network]
        shades = np.linspace(0.3, 0.95, len(own))
        if len(own) == 1:
            shades = np.array([0.3 + 0.65 * walks.index(walk_of(members[own[0]])) / max(len(walks) - 1, 1)])
        palette = colormaps[MAPS[number % len(MAPS)]]
        colours |= {k: palette(shade) for k, shade in zip(own, shades.tolist(), strict=True)}
    return colours


def draw_effects(bank: BankSummary) -> Picture:
    """The largest effects, with bars of two standard deviations to each side."""
    effects = bank["effects"][::-1]
    mean = np.array([effect["mean"] for effect in effects])
    sd = np.array([effect["sd"] for effect in effects])
    places = np.arange(len(effects))
    sure = np.abs(mean) > 2 * sd
    with compact_figure() as drawing:
        drawing.figure.set_size_inches(7.2, 1.3 + 0.27 * max(len(effects), 4))
        axes = drawing.panels[0]
        axes.axvline(0.0, color=COMPACT_PALETTE["grey"], linewidth=1.0)
        for which, colour in ((sure, COMPACT_PALETTE["blue"]), (~sure, COMPACT_PALETTE["grey"])):
            axes.errorbar(
                mean[which],
                places[which],
                xerr=2 * sd[which],
                fmt="o",
                color=colour,
                markersize=5,
                elinewidth=1.6,
                capsize=3,
            )
        axes.set_yticks(places, [shortened(shown(effect), LONGEST) for effect in effects], fontsize=9)
        axes.set_ylim(-0.7, len(effects) - 0.3)
        axes.set_xlabel(f"effect on {shortened(bank['effects_of'], 60)}")
        axes.grid(visible=False, axis="y")
    return Picture(
        drawing.png,
        f"Effects by the linear members, which have {bank['linear_weight']:.0%} of the weight, plus and "
        "minus two standard deviations; in grey if that includes zero.",
    )
