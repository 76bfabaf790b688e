"""Extended Kalman filters with Fisher curvature, as transforms: `build` gives an `init` and an `update`.

A transform needs only a function `log_likelihood(params, batch) -> (value, aux)`; there is no `Model` and no
`Likelihood`. The belief is a Gaussian N(mu, S), its covariance diagonal (`diag_fisher`) or dense
(`dense_fisher`). With a batch of B rows, the rows' gradients g_i of the log-likelihood at the old mean, and a
learning rate lr, one update is

    S'     = S + Q                                              the drift of the parameters
    inv(S) = inv(S') + lr * mean_i g_i g_i'                     (for `diag_fisher` its diagonal)
    mu     = mu + lr * S * mean_i g_i                           with the updated covariance

The empirical Fisher information, the mean of g_i g_i', stands in for the Hessian of the log-likelihood
(Ollivier 2018, arXiv 1703.00209), so that the precision never falls. A batch counts as one observation of
strength lr, whatever B; lr = B is Bayes' rule for B independent rows, as far as that curvature allows. `lr`
may be a schedule, a function of the number of updates so far, as in optax.

`diag_fisher.learner` and `dense_fisher.learner` put the same arithmetic behind the five verbs of a learner,
so that it works in every wrapper.
"""

from credo.ekf import dense_fisher, diag_fisher
from credo.ekf.transform import FisherLearner, Transform

__all__ = ["FisherLearner", "Transform", "dense_fisher", "diag_fisher"]
