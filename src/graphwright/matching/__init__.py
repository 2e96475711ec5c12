"""Who provides the plan between predicted slots and target nodes."""

from graphwright.matching.learned import LearnedMatcher, epsilon_of
from graphwright.matching.matcher import LabelMatcher, Match, Matcher, SolverMatcher, identity_plan

__all__ = [
    "LabelMatcher",
    "LearnedMatcher",
    "Match",
    "Matcher",
    "SolverMatcher",
    "epsilon_of",
    "identity_plan",
]
