"""Who is ahead: each stream with its best online peer and the batch models, and all that credo loses.

The best online peer of a stream is the one of the least log loss among those that have run on it. A batch
model that is fitted anew keeps every row, and is an upper line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from default_dirty import KINDS
from default_groups import clean_of, dirt_of, group_of
from default_standing import Table
from result_markdown import line

__all__ = ["BATCH", "ahead", "dirt_said", "dirty_costs", "losses", "online", "stands"]

Scores: TypeAlias = Mapping[str, Any]

OURS = "credo"
BATCH = ("LightGBM, refitted", "forest, refitted")
"""The methods that are fitted anew on all rows so far."""

TOLERANCE = 1.02
"""How far above the least an error is that is no loss."""

LARGEST_ECE = 0.03
COVERS = (0.88, 0.92)
DEAREST = 0.05
"""What a dirty copy may cost, in nats."""

GROUPS = {"unseen": "unseen table", "held": "held stream", "chosen": "chosen stream", "wide": "wide stream"}


def online(row: Mapping[str, Scores]) -> dict[str, Scores]:
    """The scores of the online peers of a stream."""
    return {peer: scores for peer, scores in row.items() if peer != OURS and peer not in BATCH}


def _best(row: Mapping[str, Scores], metric: str) -> str | None:
    if row:
        return min(row, key=lambda peer: row[peer][metric])
    return None


def _word(scores: Scores) -> str:
    if scores["error"] is not None:
        return "error"
    return "rmse"


def number(value: float) -> str:
    """Three decimals, four of what is below 0.1, and whole numbers of what is large."""
    size = abs(value)
    decimals = 4 if size < 0.1 else 3 if size < 10 else 2 if size < 100 else 0
    return f"{value:,.{decimals}f}"


def _bold(texts: Sequence[str], values: Sequence[float | None]) -> list[str]:
    least = min(value for value in values if value is not None)
    return [f"**{text}**" if value == least else text for text, value in zip(texts, values, strict=True)]


def stands(table: Table) -> str:
    """Each stream: the log loss of credo, of its best online peer and of the batch models, and what else."""
    batch = [peer for peer in BATCH if any(peer in row for row in table.values())]
    short = [peer.split(",")[0] for peer in batch]
    head = ["stream", OURS, "best online peer", "", *batch]
    head += [", ".join([f"error or RMSE: {OURS}", "online", *short]), "ECE, or coverage"]
    lines = [line(head), line(["---", "--:", "--:", "---", *["--:"] * (len(batch) + 2)])]
    for name, row in table.items():
        peers = online(row)
        own = row.get(OURS)
        best = _best(peers, "log_loss")
        shown = [own, peers[best] if best else None, *(row.get(peer) for peer in batch)]
        values = [scores["log_loss"] if scores else None for scores in shown]
        texts = _bold(["" if value is None else number(value) for value in values], values)
        word = _word(next(iter(row.values())))
        least = _best(peers, word)
        errors = [own, peers[least] if least else None, *(row.get(peer) for peer in batch)]
        wrong = ", ".join("-" if scores is None else number(scores[word]) for scores in errors)
        calibration = "ece" if word == "error" else "coverage"
        sure = f"{own[calibration]:.3f}" if own else ""
        lines.append(line([name, texts[0], texts[1], best or "", *texts[2:], wrong, sure]))
    return "\n".join(lines)


def ahead(table: Table) -> str:
    """A paragraph: on how many streams credo is ahead, by log loss and by error, and who has not run."""
    ours = {name: row for name, row in table.items() if OURS in row}

    def won(peers: Mapping[str, Mapping[str, Scores]], metric: str | None, most: float = 1.0) -> str:
        good = 0
        for name, others in peers.items():
            word = metric or _word(ours[name][OURS])
            good += ours[name][OURS][word] <= most * min(scores[word] for scores in others.values())
        return f"{good} of {len(peers)}"

    by_peer = {name: others for name, row in ours.items() if (others := online(row))}
    lines = [
        f"credo has a smaller log loss than every online peer that has run on {won(by_peer, 'log_loss')} "
        f"streams, and an error or RMSE at most 2% above the least of theirs on "
        f"{won(by_peer, None, TOLERANCE)}."
    ]
    for peer in BATCH:
        batch = {name: {peer: row[peer]} for name, row in ours.items() if peer in row}
        if batch:
            lines.append(
                f"Beside {peer}, its log loss is smaller on {won(batch, 'log_loss')}, and its error or RMSE "
                f"at most 2% larger on {won(batch, None, TOLERANCE)}."
            )
    if absent := [name for name in table if name not in ours]:
        lines.append(f"credo has not run on {', '.join(absent)}.")
    return "\n".join(lines)


def losses(table: Table) -> str:
    """Every score by which credo is behind, or not what it should be: by stream, the score, ours and theirs.

    Log loss: whoever has less. Error or RMSE: whoever has less by more than 2%. Calibration after 2,000 rows,
    or of all where there are no more: an ECE above 0.03, or 90% intervals that cover less than 0.88 or more
    than 0.92. A dirty copy: a cost above 0.05 nats.
    """
    lines = [line(["stream", "", "score", "credo", "better, or the aim", "by whom"])]
    lines.append(line(["---", "---", "---", "--:", "--:", "---"]))
    for name, row in table.items():
        if OURS in row:
            clean = table.get(clean_of(name), {}).get(OURS)
            where = ("copy of an " if dirt_of(name) else "") + GROUPS[group_of(clean_of(name))]
            lines += [line([name, where, *cells]) for cells in _lost(row, clean if dirt_of(name) else None)]
    return "\n".join(lines)


def _lost(row: Mapping[str, Scores], clean: Scores | None) -> Iterator[list[str]]:
    own = row[OURS]
    word = _word(own)
    for metric, title, most in (
        ("log_loss", "log loss", 1.0),
        (word, word.upper() if word == "rmse" else word, TOLERANCE),
    ):
        better = {
            peer: scores[metric]
            for peer, scores in row.items()
            if peer != OURS and most * scores[metric] < own[metric]
        }
        # the best of all, and the best online peer where that is another one
        for peer in dict.fromkeys(_firsts(better)):
            yield [title, number(own[metric]), number(better[peer]), peer]
    if clean is not None:
        if own["log_loss"] - clean["log_loss"] > DEAREST:
            yield ["log loss", number(own["log_loss"]), number(clean["log_loss"]), "credo, clean"]
        return
    kind = "ece" if word == "error" else "coverage"
    late = own[f"{kind}_settled"]
    sure = own[kind] if late is None else late
    if kind == "ece" and sure > LARGEST_ECE:
        yield ["ECE", number(sure), f"at most {LARGEST_ECE}", ""]
    if kind == "coverage" and not COVERS[0] <= sure <= COVERS[1]:
        yield ["coverage of 90% intervals", number(sure), f"{COVERS[0]} to {COVERS[1]}", ""]


def _firsts(better: Mapping[str, float]) -> list[str]:
    """The best of all, and the best online."""
    steady = [peer for peer in better if peer not in BATCH]
    return [min(some, key=lambda peer: better[peer]) for some in (list(better), steady) if some]


def dirt_said(table: Table) -> str:
    """How many dirty copies cost credo little, and on how many it is ahead of all that have run there."""
    costs = {name: cost for name, cost in _costs(table)}
    if not costs:
        return "credo has not run on dirty copies."
    near = sum(cost <= DEAREST for cost in costs.values())
    rivals = {name: online(table[name]) for name in costs}
    others = [name for name in costs if rivals[name]]
    first = sum(
        table[name][OURS]["log_loss"] < min(scores["log_loss"] for scores in rivals[name].values())
        for name in others
    )
    worst = max(costs, key=lambda name: costs[name])
    return (
        f"On {near} of the {len(costs)} copies that credo has run on, its log loss is at most {DEAREST} nats "
        f"above that of the clean table; the dearest is `{worst}`, {costs[worst]:+.3f}.\n"
        f"It is ahead of every online peer that has run on the copy on {first} of {len(others)}."
    )


def dirty_costs(table: Table) -> str:
    """What each kind of dirt costs credo, stream by stream, and the best online peer beside it."""
    lines = [line(["stream", "clean", *(f"{kind}: cost, credo, best peer" for kind in KINDS)])]
    lines.append(line(["---", "--:", *["--:"] * len(KINDS)]))
    costs = dict(_costs(table))
    for name in dict.fromkeys(clean_of(name) for name in costs):
        cells = [name, number(table[name][OURS]["log_loss"])]
        for kind in KINDS:
            copy = f"{name}~{kind}"
            if copy not in costs:
                cells.append("")
                continue
            cost = f"{costs[copy]:+.3f}"
            cost = f"**{cost}**" if costs[copy] > DEAREST else cost
            best = _best(peers := online(table[copy]), "log_loss")
            own = number(table[copy][OURS]["log_loss"])
            cells.append(f"{cost}, {own}, {number(peers[best]['log_loss']) if best else '-'}")
        lines.append(line(cells))
    return "\n".join(lines)


def _costs(table: Table) -> Iterator[tuple[str, float]]:
    for name, row in table.items():
        clean = table.get(clean_of(name), {})
        if dirt_of(name) and OURS in row and OURS in clean:
            yield name, row[OURS]["log_loss"] - clean[OURS]["log_loss"]
