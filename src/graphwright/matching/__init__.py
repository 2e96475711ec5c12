"""Who provides the plan between predicted slots and target nodes."""

from graphwright.matching.learned import LearnedMatcher, Temperature
from graphwright.matching.matcher import LabelMatcher, Match, Matcher, SolverMatcher, identity_plan

__all__ = [
    "LabelMatcher",
    "LearnedMatcher",
    "Match",
    "Matcher",
    "SolverMatcher",
    "Temperature",
    "identity_plan",
]
