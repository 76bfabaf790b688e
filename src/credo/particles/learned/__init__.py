"""Proposals of particle filters that are networks, and their training.

A proposal q(z_t | z_{t-1}, y_t) is normal with a diagonal covariance. Its mean and standard deviations are a
network's answer to the parent and the observation ("mlp"), or also to a recurrent summary of all observations
so far ("gru"). It is trained to raise the filter's own estimate of the log evidence,

    E sum_t log sum_n W_n w_n,

which is a lower bound of the log evidence: AESMC (Le, Igl, Rainforth, Jin & Wood 2018), FIVO (Maddison et al.
2017), VSMC (Naesseth, Linderman, Ranganath & Blei 2018). Gradients go through the draws and the weights; the
score of the resampled ancestors, which has a large variance, is left out, as all three do. The weights
correct whatever the network says, so the filter stays consistent for any network.
"""

from credo.particles.learned.proposal import LearnedProposal, ProposalNetwork, learned_filter
from credo.particles.learned.training import ProposalTraining, train_proposal

__all__ = ["LearnedProposal", "ProposalNetwork", "ProposalTraining", "learned_filter", "train_proposal"]
