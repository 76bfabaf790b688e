"""Decisions: bandits and Bayesian optimisation around any learner.

An `Agent` is a learner of rewards, a design (how arms share the learner) and a policy (how an arm is chosen).
"""

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.choice import Choice
from credo.bandits.environments import AnyEnvironment, ArmsByChance, ArmsByPlan, BernoulliArms, Classification, ConstantArm, Context, ContextDesign, ContextualArms, ContextualState, Drift, Environment, GaussianArms, Intercept, Jumps, KnownRewards, LogColumns, LoggedReplay, MaskedState, Motion, Products, ProductsState, RewardUnit, RowsState, Still, Wheel, arm_key, environment_names, every_arm, load
from credo.bandits.estimators import ESTIMATORS, INTERVALS, AgentPolicy, Bounds, Comparison, DirectModel, Estimate, EstimatorName, IntervalName, RowPolicy, Target, TargetPolicy, arm_values, compare, confidence_sequence, evaluate, target_pmfs
from credo.bandits.logs import LOG_FORMATS, Log, LogFormat, LogSource, ReadCounts
from credo.bandits.play import play
from credo.bandits.policies import UCB, BayesUCB, Boltzmann, EpsilonGreedy, Fixed, Greedy, Guarded, InformationDirected, Policy, SquareCB, Thompson, TopTwo, Uniform
from credo.bandits.report import Report
from credo.bandits.scaling import Scaler
from credo.bandits.best import probability_best

__all__ = [
    "Agent",
    "AgentBelief",
    "AgentPolicy",
    "AnyEnvironment",
    "ArmsByChance",
    "ArmsByPlan",
    "BayesUCB",
    "BernoulliArms",
    "Boltzmann",
    "Bounds",
    "Choice",
    "Classification",
    "Comparison",
    "ConstantArm",
    "Context",
    "ContextDesign",
    "ContextualArms",
    "ContextualState",
    "DirectModel",
    "Drift",
    "ESTIMATORS",
    "Environment",
    "EpsilonGreedy",
    "Estimate",
    "EstimatorName",
    "Fixed",
    "GaussianArms",
    "Greedy",
    "Guarded",
    "INTERVALS",
    "InformationDirected",
    "Intercept",
    "IntervalName",
    "Jumps",
    "KnownRewards",
    "LOG_FORMATS",
    "Log",
    "LogColumns",
    "LogFormat",
    "LogSource",
    "LoggedReplay",
    "MaskedState",
    "Motion",
    "Policy",
    "Products",
    "ProductsState",
    "ReadCounts",
    "Report",
    "RewardUnit",
    "RowPolicy",
    "RowsState",
    "Scaler",
    "SquareCB",
    "Still",
    "Target",
    "TargetPolicy",
    "Thompson",
    "TopTwo",
    "UCB",
    "Uniform",
    "Wheel",
    "arm_key",
    "arm_values",
    "compare",
    "confidence_sequence",
    "environment_names",
    "evaluate",
    "every_arm",
    "load",
    "play",
    "probability_best",
    "target_pmfs",
]
