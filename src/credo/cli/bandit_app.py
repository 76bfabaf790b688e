"""The commands of `credo bandit`; what they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from credo.cli.command_words import examples_of, flowing, source_of, starting
from credo.cli.flags import number, whole
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

Seed = Annotated[int, whole(high=LARGEST_SEED)]


@bandit.command(sort_key=1, help_epilogue=examples_of("bandit run"))
@flowing
def run(  # noqa: PLR0913 - flags of a command
    environment: str,
    /,
    *,
    agent: str = "default",
    policy: str | None = None,
    seeds: Annotated[int, whole(1)] = 10,
    steps: Annotated[int | None, whole(1)] = None,
    delay: Annotated[int, whole()] = 0,
    divisor: Annotated[float | None, number(positive=True)] = None,
    seed: Seed = 0,
    out: Path | None = None,
) -> int:
    """Run an agent in an environment, several times, and report what it earned.

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
        The number of runs, each with its own world or order of the rows.
    steps
        The number of decisions in a run; by default 5,000, or all rows if there are fewer.
    delay
        The number of further decisions after which a reward is learned.
    divisor
        Divide rewards by this before the agent sees them, so that they are of the order of 1; by default 50
        for the wheel, and 1 otherwise.
    seed
        The seed of the worlds and the draws.
    out
        The folder for the results; by default runs/bandit-ENVIRONMENT.
    """
    with starting():
        from credo.cli.bandit_run import Play, run_bandit

    return run_bandit(Play(environment, agent, policy, seeds, steps, delay, divisor, seed, out))


@bandit.command(sort_key=2, help_epilogue=examples_of("bandit evaluate"))
@flowing
def evaluate(  # noqa: PLR0913 - flags of a command
    log: str,
    /,
    *,
    policy: Annotated[list[str] | None, Parameter(negative="")] = None,
    estimator: Annotated[list[str] | None, Parameter(negative="")] = None,
    interval: str = "likelihood",
    level: float = 0.95,
    clip: Annotated[float | None, number(positive=True)] = None,
    reward_range: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    format: str | None = None,
    seed: Seed = 0,
    out: Path | None = None,
    report: Path | None = None,
) -> int:
    """Estimate what policies would have earned, from the log of another one.

    The log must have, for every decision, the probability with which its arm was chosen. The result is a
    table with intervals, and warnings if the log says little about a policy.

    Parameters
    ----------
    log
        JSON lines of credo or of VW (dsjson), a CSV file or folder of the Open Bandit data, FOLDER/MODEL for
        what a bandit of credo serve decided, FOLDER being that of the service, or - for standard input.
    policy
        uniform, greedy (of a regression of the rewards), or the name of an arm that is always chosen; may be
        given several times. By default all of them, as far as the log has data about them.
    estimator
        ips, snips, clipped, direct, dr, sn-dr or switch; dr-ps, dr-os or switch-slope, which choose a bound
        of the weights; or dr-adaptive, for logs of learning agents in a world that stays. May be given
        several times. By default dr.
    interval
        likelihood, bootstrap (for rows that do not depend on each other), bernstein (holds for any number of
        such rows) or sequence (holds at all times together).
    level
        The probability with which the interval should contain the truth.
    clip
        The bound of the weights; by default the root of the number of rows for clipped and switch, what the
        log suggests for dr-ps, dr-os and switch-slope, and none for others.
    reward_range
        The least and the greatest reward that can occur, such as 0,1; by default those of the log.
    format
        credo, dsjson or open-bandit; by default it is detected.
    seed
        The seed of the bootstrap.
    out
        A JSON file for the estimates.
    report
        A folder for report.html, report.json and plots: each policy over the time of the log, and how much of
        the log speaks about it.
    """
    with starting():
        from credo.cli.bandit_evaluation import Evaluation, evaluate_log

    words = Evaluation(
        source_of(log),
        policy or [],
        estimator or ["dr"],
        interval,
        level,
        clip,
        reward_range,
        format,
        seed,
        out,
        report,
    )
    return evaluate_log(words)


@bandit.command(sort_key=4, help_epilogue=examples_of("bandit decide"))
@flowing
def decide(  # noqa: PLR0913 - flags of a command
    saved: Path,
    source: str = "-",
    /,
    *,
    arms: str | None = None,
    agent: str | None = None,
    policy: str | None = None,
    features: Annotated[int | None, whole(2)] = None,
    window: Annotated[int | None, whole(1)] = None,
    timeout: Annotated[float | None, number(positive=True)] = None,
    on_missing: Annotated[float | None, Parameter(allow_leading_hyphen=True)] = None,
    seed: Seed | None = None,
    log: Path | None = None,
    checkpoint: Annotated[float, number()] = 30.0,
    strict: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Decide for contexts that come as JSON lines, and learn from their rewards.

    {"context": {"age": 31, "device": "phone"}} is answered by a decision, with its id, the arm, and its
    propensity; "id" gives it an id of your own, "arms" names those that are allowed, and "size" asks for so
    many in an order (a slate). {"id": "0-0", "reward": 1} is answered by what happened to the reward, and
    with "part": "a name" it is added to the one that comes last. {"id": "0-1", "rewards": [0, 1, 0]} are the
    rewards of a slate: what lies below the first that is not 0 was not seen, unless "seen" is "all" or has
    the probability of each place. Rewards may come late. {"context": ..., "arm": "red", "reward": 1,
    "propensity": 0.2} is a choice that was made elsewhere, from which the agent learns. The agent is saved at
    the end, at Ctrl-C and SIGTERM too, and the same command continues it as if it had never stopped.

    Parameters
    ----------
    saved
        The file of the agent; if it does not exist, a new agent is created, and --arms is needed.
    source
        A file of JSON lines, or - for standard input.
    arms
        The names of the arms of a new agent, separated by commas, such as red,blue.
    agent
        default, linear, network, or beta (rewards 0 and 1, contexts are ignored), for a new agent. Without
        contexts the default is beta.
    policy
        thompson, ucb:WIDTH, egreedy:EPSILON, squarecb:GAMMA, greedy or uniform, for a new agent.
    features
        How many places contexts by name have, for a new agent: one for a number, one for each value of a
        text; by default 32.
    window
        How many decisions wait for their rewards, for a new agent; by default 10,000.
    timeout
        For how many seconds a reward counts, for a new agent; by default as long as the window.
    on_missing
        The reward that is learned if none came within the window, for a new agent; by default nothing is
        learned.
    seed
        The seed of the draws, for a new agent; by default 0.
    log
        A file to which decisions and rewards are appended, for `credo bandit evaluate`.
    checkpoint
        Save the agent when a line comes and so many seconds have passed; 0 saves it at the end only.
    strict
        Stop at the first bad line; by default it is answered by {"error": ...}, and nothing changes.
    """
    with starting():
        from credo.cli.bandit_decisions import Decider, decide_lines

    words = Decider(
        saved,
        source_of(source),
        arms,
        agent,
        policy,
        features,
        window,
        timeout,
        on_missing,
        seed,
        log,
        checkpoint,
        strict,
    )
    return decide_lines(words)


@bandit.command(sort_key=3, help_epilogue=examples_of("bandit replay"))
@flowing
def replay(
    log: str,
    /,
    *,
    agent: str = "default",
    policy: str | None = None,
    seeds: Annotated[int, whole(1)] = 5,
    seed: Seed = 0,
    format: str | None = None,
) -> int:
    """Train an agent on a log as if it had decided itself, and say what it earned.

    Row by row the agent chooses an arm. If this is the arm of the log, it sees the reward and learns; the
    other rows are left out. Rows are kept by their propensities, so that those that remain are distributed as
    if the agent had acted (Li, Chu, Langford and Wang, 2011).

    Parameters
    ----------
    log
        JSON lines of credo or of VW (dsjson), a CSV file or folder of the Open Bandit data, FOLDER/MODEL for
        what a bandit of credo serve decided, FOLDER being that of the service, or - for standard input.
    agent
        default, linear, network, or beta (rewards 0 and 1, contexts are ignored).
    policy
        thompson, ucb:WIDTH, egreedy:EPSILON, squarecb:GAMMA, greedy or uniform; by default the agent's own.
    seeds
        How many runs, which differ in the draws.
    seed
        The seed of the draws.
    format
        credo, dsjson or open-bandit; by default it is detected.
    """
    with starting():
        from credo.cli.bandit_run import Replay, replay_log

    return replay_log(Replay(source_of(log), agent, policy, seeds, seed, format))
