"""The experiments of the particle flow Bayes rule (Chen, Dai & Song 2019, arXiv 1902.00640).

They are `pfbr_gaussian`, `pfbr_mixture`, `pfbr_lds` and `pfbr_lorenz`, where particles are compared with an
exact posterior or by their forecasts, and `pfbr_logistic_meta` and `pfbr_logistic_vi`, where classifiers are
learned online. From the bottom up, what they share:

    pfbr_problem    a problem as a learner sees it, and a method: a name and how its learner is built
    pfbr_methods    the table of methods; another method is another entry
    pfbr_scores     the scores of a set of particles against a posterior
    pfbr_following  a learner goes through sequences, and every belief is scored
    pfbr_timing     seconds of an update
    pfbr_trials     methods on a problem, and the rows of their table
    pfbr_figure     how a method looks

`credo_papers` says how an experiment is divided into files.
"""

__all__: list[str] = []
