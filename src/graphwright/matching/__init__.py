"""Who provides the plan between predicted slots and target nodes."""

from graphwright.matching.learned import LearnedMatcher, Temperature
from graphwright.matching.matcher import LabelMatcher, Match, Matcher, SolverMatcher, in_order

__all__ = [
    "LabelMatcher",
    "LearnedMatcher",
    "Match",
    "Matcher",
    "SolverMatcher",
    "Temperature",
    "in_order",
]
