"""The probability that each of K arms is best: that its expected reward is the largest.

`of_any_distribution` looks at the distribution that a learner states, and takes the first of these that fits:

- Independent arms with densities f_a and distribution functions F_a (`best_of_normals`, `best_of_betas`):
  P(a is best) = integral f_a(x) prod_{b != a} F_b(x) dx. A fixed rule around one arm misses arms that are
  much sharper, so the cells of the rule end at quantiles of all arms (`quadrature`).
- Arms on points x_am of their own, with weights w_am (`best_of_draws`):
  P(a is best) = sum_m w_am integral_0^1 prod_{b != a} (P(b < x_am) + s P(b = x_am)) ds, where s breaks ties.
- Arms with one unknown noise variance v: the average of the first over v (`noise_nodes`); two such arms, or
  independent ones, need the Student-t distribution (`of_normals`).
- Hypotheses about all arms: the average over them.
- Whatever else: the share of joint draws in which a is the largest (`best_of_draws`).
"""

from credo.bandits.best.of_any_distribution import probability_best

__all__ = ["probability_best"]
