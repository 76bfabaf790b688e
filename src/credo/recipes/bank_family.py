"""The uncertainty that members of a bank keep, by what a row costs with it."""

from __future__ import annotations

import math

from credo.covariances import Diagonal, Full, UnitBlocks
from credo.covariances.unit_blocks import layers_of
from credo.recipes import defaults
from credo.recipes.architecture import Network
from credo.recipes.networks import leaf_shapes

__all__ = ["MemberFamily", "family_of", "numbers_of", "unit_cost"]

MemberFamily = Full | UnitBlocks | Diagonal
"""The families of the members of a bank for tables."""


def unit_cost(network: Network, outputs: int, inputs: int) -> int:
    """The numbers in the covariances of all units: m n^2 a layer of m units with n inputs each."""
    layers = layers_of(leaf_shapes(network, outputs, (inputs,)))
    return sum(units * size**2 for size, units in layers)


def family_of(network: Network, outputs: int, inputs: int) -> MemberFamily:
    """The richest family with which a row of so many inputs costs little: the whole covariance of C outputs
    and P parameters if C P^2 is at most `defaults.FULL_COST`, that of every unit if its numbers are at most
    `defaults.UNIT_COST`, and else the variances.
    """
    size = sum(math.prod(leaf) for leaf in leaf_shapes(network, outputs, (inputs,)))
    if outputs * size**2 <= defaults.FULL_COST:
        return Full("dense")
    if unit_cost(network, outputs, inputs) <= defaults.UNIT_COST:
        return UnitBlocks()
    return Diagonal()


def numbers_of(family: MemberFamily, network: Network, outputs: int, inputs: int) -> int:
    """The count of numbers that a family keeps for a network grown to so many outputs and inputs."""
    if isinstance(family, UnitBlocks):
        return unit_cost(network, outputs, inputs)
    size = sum(math.prod(leaf) for leaf in leaf_shapes(network, outputs, (inputs,)))
    if isinstance(family, Full):
        return size**2
    return size
