"""Who provides the plan between predicted slots and target nodes."""

from graphwright.matching.learned import LearnedMatcher, RefinedMatcher, Temperature
from graphwright.matching.matcher import Match, Matcher
from graphwright.matching.solvers import LabelMatcher, SolverMatcher, in_order
from graphwright.matching.taught import TaughtMatcher, imitation_loss

__all__ = [
    "LabelMatcher",
    "LearnedMatcher",
    "Match",
    "Matcher",
    "RefinedMatcher",
    "SolverMatcher",
    "TaughtMatcher",
    "Temperature",
    "imitation_loss",
    "in_order",
]
