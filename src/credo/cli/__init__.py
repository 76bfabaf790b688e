"""The command line: `credo learn`, `keyed`, `predict`, `serve`, `bandit`, `flow`, `reproduce`, and two lists:
`datasets` and `cache`.

`credo learn SOURCE` reads a named data set, a file or standard input row by row: each row is predicted before
it is learned from (test-then-train), so every printed number is about rows that were not known yet. JAX is
imported only once there is something to compute. All errors are one sentence on standard error and exit
status 2; Ctrl-C saves the state and exits with 130.
"""

from credo.cli.main import main

__all__ = ["main"]
