"""Published results, computed again with credo and shown beside the published numbers.

`reproduce(name)` runs an experiment and writes its numbers, the data behind its figure, and the figure.
`names()` lists the experiments, and `find(name)` loads one.

There is a room for each paper (`kalman` for the background experiments, `lofi`, `bong`, `bone`, `pfbr`, and
`bandits` for decisions), and `engine` holds what runs any experiment. Beside them stand what comparisons need
and credo does not, made of the same parts: `baselines`, the agents of the field, and `published_flow`, the
particle flow Bayes rule of its authors.

`credo reproduce NAME` is the module NAME in the room of its paper, where a hyphen becomes an underscore. That
module has the function `run`. The other parts of the experiment stand beside it:

    NAME_world.py    the data and the streams
    NAME_plan.py     sizes, settings, grids and published numbers
    NAME_learner.py  the learners, and the program that takes them through a stream
    NAME_table.py    the rows of the table, the series and the arrays
    NAME_figure.py   the figure

An experiment of fewer than 150 lines is the one file NAME.py, in which the comments `# World`, `# Learner`,
`# Plan` and `# Run` stand before the same parts. What several experiments of a paper share is divided alike:
`bone_world.py`, `bong_exact_plan.py`. To add an experiment, write its module and add an entry to
`engine/registry.py`; a new paper is a new folder.

Numbers are means over seeds with their standard error, s / sqrt(n). Hyper-parameters are tuned on streams
that are not scored.
"""

from credo_papers.engine.experiment import Experiment, Outcome
from credo_papers.engine.quantities import Row
from credo_papers.engine.registry import find, names
from credo_papers.engine.reproduction import Result
from credo_papers.engine.runner import reproduce

__all__ = ["Experiment", "Outcome", "Result", "Row", "find", "names", "reproduce"]
