"""The commands of `credo bandit`; what they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from credo.cli.flags import whole
from credo.cli.starting import starting
from credo.cli.words import flowing
from credo.core.errors import require_integer
from credo.core.integers import LARGEST_SEED

__all__ = ["bandit"]

_EXAMPLES = """
Examples:

  credo bandit run statlog --seeds 5
  credo bandit run bernoulli --agent beta --policy thompson
  credo bandit evaluate log.jsonl --policy uniform --policy red
  credo bandit replay log.jsonl
  cat requests.jsonl | credo bandit decide shop.credo - --arms red,blue
"""

bandit = App(
    name="bandit",
    help="Choose, see the reward of that choice only, learn, and choose better.",
    help_epilogue=_EXAMPLES,
    help_format="plaintext",
    sort_key=5,
)

Whole = Annotated[int, Parameter(converter=whole, allow_leading_hyphen=True)]


@bandit.command(sort_key=1)
@flowing
def run(
    environment: str,
    /,
    *,
    agent: str = "default",
    policy: str | None = None,
    seeds: Whole = 10,
    steps: Whole | None = None,
    delay: Whole = 0,
    divisor: Annotated[float | None, Parameter(allow_leading_hyphen=True)] = None,
    seed: Whole = 0,
    out: Path | None = None,
) -> int:
    """Let an agent play in an environment, several times, and report what it earned.

    The result is a table, and a folder with report.html, report.json and plots: regret with a band over the
    runs, choices by arm, whether probabilities of being the best were true, and propensities.

    Parameters
    ----------
    environment
        A generator (bernoulli, gaussian, linear, logistic, products, wheel, and some of them -drifting or
        -jumping), or a data set with classes, such as statlog: a row is a context, and the reward is 1 for
        its class.
    agent
        default (needs no settings), linear, network, or beta (a chance for each arm, without contexts).
    policy
        thompson, ucb:WIDTH, egreedy:EPSILON, squarecb:GAMMA, greedy or uniform; by default the agent's own.
    seeds
        How many runs, each in a world, or an order of the rows, of its own.
    steps
        Decisions of a run; by default 5,000, or all rows where there are fewer.
    delay
        After how many further decisions a reward is learned.
    divisor
        Divide rewards by this before the agent sees them, so that they are of the order of 1; by default 50
        for the wheel, and 1 otherwise.
    seed
        Of the worlds and the draws.
    out
        The folder for the results; by default runs/bandit-ENVIRONMENT.
    """
    require_integer("--seed", seed, 0, LARGEST_SEED)
    with starting():
        from credo.cli.bandit_run import Play, run_bandit

    return run_bandit(Play(environment, agent, policy, seeds, steps, delay, divisor, seed, out))
