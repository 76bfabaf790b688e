"""Peak memory of one process that takes three steps of LIN-HESS at P = 10^6; started by `grid.py`."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
from ours import megabytes
from timing import peak_megabytes

import credo

FAMILIES = {"diagonal": credo.Diagonal(), "low-rank": credo.LowRank(10)}


def main(name: str) -> None:
    """Print what was run, the size of its belief and the peak, separated by tabs."""
    net = credo.MLP(10, (1257,))
    params = net.init(0, (784,))
    if name == "none":
        jax.block_until_ready(jax.jit(net)(params, jnp.ones(784)))
        print(f"the network alone\t{megabytes(params):.1f}\t{peak_megabytes():,.0f}")
        return
    learner = credo.bong(credo.Model(net, credo.Categorical(10)), FAMILIES[name])
    belief = learner.init(params, var=0.01)
    end, _ = credo.run(learner, belief, jnp.ones((3, 784)), jnp.arange(3))
    jax.block_until_ready(end)
    print(f"BONG, {name}, LIN-HESS\t{megabytes(belief):.1f}\t{peak_megabytes():,.0f}")


if __name__ == "__main__":
    main(sys.argv[1])
