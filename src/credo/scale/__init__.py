"""A learner for each key of a stream, in shards: over worker processes, exactly, whatever is killed.

The driver reads the source, encodes rows, standardises them by all rows before them (or leaves that to the
learners of the keys), and cuts them into batches, whose keys go to shards by a fixed hash. A shard is a
`Keyed` with the line up to which it has learned: rows up to there are passed over, so a batch may come twice.
The driver keeps the batches since the latest checkpoint of all shards, and sends them again to a worker that
begins again; after its own death it reads the source again from there. Each start of a shard takes a
generation by exclusive create, and an older one may not save.
"""

from credo.recipes.options import KeyedOptions
from credo.scale.keyed_run import KeyedResult, learn_keyed

__all__ = ["KeyedOptions", "KeyedResult", "learn_keyed"]
