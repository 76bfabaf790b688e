"""What an ingredient of the default is worth: its log loss without and with it.

    python benchmarks/default_members.py                  # the streams that no choice has seen
    python benchmarks/default_members.py mixed bananas    # some streams
    python benchmarks/default_members.py --without "no regression on the members"

By default members without a network are left out.

The evidence of the first 3,000 rows at most, in nats a row, of the standardised target where it is a number.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from default_ablation import VARIATIONS, varied
from default_ours import session_of
from default_streams import CHOSEN, HELD, Stream, stream

from credo.live.runner import Runner

MOST = 3000


def log_loss(rows: Stream) -> float:
    """Minus the mean log evidence of the rows of a stream, as the learner of a session sees them."""
    told: list[np.ndarray] = []
    learn: Any = Runner._learn_rows

    def noted(self: Runner, *arguments: Any) -> Any:
        part = learn(self, *arguments)
        told.append(np.asarray(part.info.log_evidence, float))
        return part

    with patch.object(Runner, "_learn_rows", noted):
        session_of(rows).learn(rows.rows)
    return -float(np.concatenate(told).mean())


def main() -> None:
    """Print the table, stream by stream."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("streams", nargs="*", help="names; by default those that no choice has seen")
    parser.add_argument("--without", default="networks only", choices=VARIATIONS, help="what is left out")
    arguments = parser.parse_args()
    names = arguments.streams or list(HELD)
    if unknown := [name for name in names if name not in {**CHOSEN, **HELD}]:
        sys.exit(f"name streams of default_streams.py; got {', '.join(unknown)}")
    print("| stream | rows | without | with | |\n|---|--:|--:|--:|--:|")
    for name in names:
        whole = stream(name)
        first = {key: cells[:MOST] for key, cells in whole.columns.items()}
        rows = whole._replace(columns=first, target=whole.target[:MOST])
        losses = []
        for variation in (arguments.without, None):
            with nullcontext() if variation is None else varied(variation):
                losses.append(log_loss(rows))
        before, after = losses
        cells = (name, f"{len(rows.target):,}", f"{before:.3f}", f"{after:.3f}", f"{after - before:+.4f}")
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
