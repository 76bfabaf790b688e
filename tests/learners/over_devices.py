"""Learning on four devices that XLA pretends to have, and on one: gaps and what was exchanged, as JSON."""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo

INPUTS, CLASSES, RANK = 7, 3, 5
KINDS = "all-gather|all-reduce|all-to-all|collective-permute|collective-broadcast|reduce-scatter"
SHARING = re.compile(rf"= (.*?) (?:{KINDS})(?:-start)?\(")


def largest(program: str) -> int:
    """The most numbers of an array that devices exchange in a compiled program."""
    shapes = [
        shape
        for line in program.splitlines()
        for kind in SHARING.findall(line)
        for shape in re.findall(r"[a-z0-9]+\[([0-9,]*)\]", kind)
    ]
    return max(math.prod(int(size) for size in shape.split(",") if size) for shape in shapes)


def compare(name: str, learner: Any, prior: Any, rows: int = 0) -> dict[str, Any]:
    """Six steps on both sides."""
    mesh = jax.make_mesh((2, 2), ("a", "b"))
    placed, over = credo.shard(learner, prior, mesh)
    step = jax.jit(lambda learner, belief, x, y: learner.step(belief, x, y))
    rng = np.random.default_rng(0)
    shape = (rows,) if rows else ()
    first = (jnp.asarray(rng.normal(size=(*shape, INPUTS))), jnp.asarray(rng.integers(0, CLASSES, shape)))
    exchanged = largest(str(step.lower(placed, over, *first).compile().as_text()))
    (x, y), alone = first, prior
    for _ in range(6):
        x, y = jnp.asarray(rng.normal(size=(*shape, INPUTS))), jnp.asarray(rng.integers(0, CLASSES, shape))
        alone, _ = step(learner, alone, x, y)
        over, info = step(placed, over, x, y)
        assert bool(info.ok)
    assert len(over.mean.sharding.device_set) == 4 and not over.mean.sharding.is_fully_replicated
    shares = {shard.data.shape for shard in over.mean.addressable_shards}
    assert shares == {(over.mean.shape[0] // 4,)}
    pairs = ((learner, alone), (placed, over))
    scores = [np.asarray(each.forecast(belief, x).log_prob(y)) for each, belief in pairs]
    _, back = credo.unshard(placed, over)
    gaps = [np.abs(scores[0] - scores[1]).max(), np.abs(np.asarray(alone.mean - back.mean)).max()]
    precisions = [np.linalg.inv(np.asarray(one.cov.dense())) for one in (alone, back)]
    gaps.append(np.abs(precisions[0] - precisions[1]).max())
    moved = np.abs(np.asarray(alone.mean - prior.mean)).max()
    return {"name": name, "gaps": list(map(float, gaps)), "exchanged": exchanged, "moved": float(moved)}


def main() -> None:
    """Compare learners."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")
    net = credo.MLP(CLASSES, (13,), "tanh")  # neither 13 nor 3 is divided by 4, nor is 7
    params = jax.tree.map(lambda leaf: leaf.astype(float), net.init(0, (INPUTS,)))
    model = credo.Model(net, credo.Categorical(CLASSES))
    walk, back = credo.RandomWalk(1e-4), credo.OrnsteinUhlenbeck(0.99)
    low, whitened = credo.LowRank(RANK), credo.LowRank(RANK, projection="whitened")
    cases = [
        ("low-rank", credo.bong(model, low, dynamics=walk), 0),
        ("low-rank rows", credo.bong(credo.joint(model), whitened, dynamics=back), 2),
        ("diagonal", credo.bong(model, credo.Diagonal(), dynamics=walk), 0),
    ]
    found = [compare(name, learner, learner.init(params, var=0.2), rows) for name, learner, rows in cases]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
