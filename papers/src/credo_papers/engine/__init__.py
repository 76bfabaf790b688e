"""The engine that runs any experiment, whatever its paper.

From the bottom up:

    plain_data    what JSON and .npz files can hold
    purposes      what a stream of random numbers is for: to be scored, to tune, to test
    portions      how much is done
    quantities    a row of the table: ours beside the published number; means and standard errors
    cell_folder   finished pieces, kept so that an interrupted run goes on where it stopped
    sweep         a grid of settings times many streams, compiled once
    any_learner   a learner whose kind of belief is decided by its name
    experiment    an experiment, and its outcome
    registry      all experiments by name
    particle_scores, discrepancies  how well particles stand for a distribution
    printing      a bar while an experiment runs, a table when it is done
    reproduction  a finished experiment and its files
    runner        `reproduce`, which runs an experiment and writes its files

The modules are imported one by one, since `sweep` and `any_learner` import JAX and the others do not.
"""

__all__: list[str] = []
