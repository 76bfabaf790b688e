"""A service of many models, which learn and answer over HTTP and lose nothing that they acknowledged.

`credo serve DIR` starts it. What comes is written into a journal (SQLite), and then learned, in the order of
the journal, by one thread; so the state of a model is a function of its lines,

    state after line n = f(first state, line 1, ..., line n)

bit by bit, however lines were grouped. Snapshots save the state after some line; after a crash the newest one
that is whole and the lines after it give the state back. An answer is sent once its line is on the disk.

The parts: `journal_store` (lines, answers and snapshots), `writing` (the thread that commits), `learning`
(the thread that learns), `building` (models are built and compiled), `snapshots`, `app` (HTTP), `Client`.
The packages of the extra "serve" are imported by those who need them alone.
"""

from credo.serve.client import Client, ServiceError

__all__ = ["Client", "ServiceError"]
