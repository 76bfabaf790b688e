"""What the report says of a bank: its members, and the effect of each feature."""

from __future__ import annotations

from credo.cli.html_report import Grid, Line, Section
from credo.sessions.bank_summary import BankSummary, Effect

__all__ = ["meaning", "parts", "shown"]

SMALL = 0.01
"""The weight from which on linear members have a part in the forecasts that is worth a look."""


NAMES = (
    "A weight is the probability that the member predicts best. Of a member, walk is the variance that each "
    "of its parameters gains at a row, prior the scale of their variances before any row, clip the largest "
    "size of a standardised number that it sees (3 where nothing is said), and noise the factor by which "
    "what it knows of the noise fades at a row."
)


def shown(effect: Effect) -> str:
    """What an effect is called: the feature, and the class where there are several."""
    return f"{effect['feature']} → {effect['output']}" if "output" in effect else effect["feature"]


def meaning(bank: BankSummary) -> str:
    """What the numbers of the effects mean."""
    return (
        f"An effect is the change of {bank['effects_of']} where a column rises by one standard deviation, "
        "or where a category is present, and all other columns stay as they are."
    )


def _trust(bank: BankSummary) -> str:
    """How much linear members have to say."""
    weight, mean = bank["linear_weight"], bank["linear_mean_weight"]
    sentence = f"Linear members have {weight:.1%} of the weight now and had {mean:.1%} over all rows. "
    if weight < SMALL:
        return sentence + "These effects say next to nothing about the forecasts, which are not linear."
    return sentence + "Effects are mixed over them by their weights."


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
        NAMES,
        f"Weights of the walks, over the latest {bank['walks_over_rows']:,} rows: {walks}. "
        f"Weights now of the scales of the computed variance: {scales}; "
        + (f"of the factors of the logits: {factors}; " if factors else "")
        + f"of the chance that another member takes over before a row: {rates}.",
    ]
    sections = [Section("Members", sentences, Grid(heads, lines), "member")]
    if bank["effects"]:
        effects = [
            Line(shown(effect), (f"{effect['mean']:+.3g}", f"{effect['sd']:.2g}"))
            for effect in bank["effects"]
        ]
        grid = Grid(("effect", "standard deviation"), effects)
        sections.append(Section("Effects of the columns", [meaning(bank), _trust(bank)], grid, "feature"))
    return sections
