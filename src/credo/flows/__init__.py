"""Learned Bayes rules: operators that move particles from the prior to the posterior, and their training.

For every observation an operator gives a map T of the state, and a particle x of the prior becomes T x. With
the prior's density p, that of the particles is then p(x) / |det T'(x)|, exactly. An operator is trained on
tasks, sequences whose truth is known because it was simulated, and applied to sequences, priors, scales,
numbers of particles and lengths that it never saw. `Operator` needs no more of a model than log p(y | x).
"""

from credo.flows.densities import KernelDensity, NormalDensity, SetDensity, TransitionDensity
from credo.flows.guard import Guard
from credo.flows.learner import FlowFilter, pfbr
from credo.flows.objective import validate
from credo.flows.operator import FlowMap, FlowOperator, Operator
from credo.flows.simulated import SimulatedTasks, StaticTasks
from credo.flows.storage import History, load_operator, operator_names, save_operator
from credo.flows.tasks import LinearGaussianTasks, LinearSystemTasks, Stage, Tasks
from credo.flows.train import Plan, Training, train

__all__ = [
    "FlowFilter",
    "FlowMap",
    "FlowOperator",
    "Guard",
    "History",
    "KernelDensity",
    "LinearGaussianTasks",
    "LinearSystemTasks",
    "NormalDensity",
    "Operator",
    "Plan",
    "SetDensity",
    "SimulatedTasks",
    "Stage",
    "StaticTasks",
    "Tasks",
    "Training",
    "TransitionDensity",
    "load_operator",
    "operator_names",
    "pfbr",
    "save_operator",
    "train",
    "validate",
]
