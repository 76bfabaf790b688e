"""Policies: from what is believed about the expected rewards to the probability of every arm."""

from credo.bandits.policies.base import Policy
from credo.bandits.policies.thompson import Thompson

__all__ = ["Policy", "Thompson"]
