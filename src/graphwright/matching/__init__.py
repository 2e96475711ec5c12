"""Who provides the plan between predicted slots and target nodes."""

from graphwright.matching.learned import LearnedMatcher, RefinedMatcher, inner_product_cost, l1_cost
from graphwright.matching.matcher import Match, Matcher
from graphwright.matching.solvers import LabelMatcher, SolverMatcher
from graphwright.matching.taught import TaughtMatcher, imitation_loss

__all__ = [
    "LabelMatcher",
    "LearnedMatcher",
    "Match",
    "Matcher",
    "RefinedMatcher",
    "SolverMatcher",
    "TaughtMatcher",
    "imitation_loss",
    "inner_product_cost",
    "l1_cost",
]
