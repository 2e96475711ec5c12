"""Optimal transport between predicted and target graphs: pure functions on batches of dense tensors."""

from graphwright.transport.assignment import (
    assign,
    assignment_potentials,
    permutation_matrix,
    round_to_permutation,
)
from graphwright.transport.conditional_gradient import conditional_gradient
from graphwright.transport.divergences import Divergence, Factors, factorise, pair_divergence
from graphwright.transport.embedding_plans import EmbeddingPlan, inner_product_plan, l1_plan
from graphwright.transport.mirror_descent import Projection, mirror_descent, project
from graphwright.transport.multi_start import Solver, aligning_plan, multi_start
from graphwright.transport.problem import MatchingProblem, Plan, QuadraticForm, marginal_errors, uniform_plan
from graphwright.transport.relaxations import (
    EdgeTerm,
    Objective,
    Order,
    Reading,
    Relaxation,
    SelfLoops,
    relaxed_objective,
)
from graphwright.transport.sinkhorn import sinkhorn

__all__ = [
    "Divergence",
    "EdgeTerm",
    "EmbeddingPlan",
    "Factors",
    "MatchingProblem",
    "Objective",
    "Order",
    "Plan",
    "Projection",
    "QuadraticForm",
    "Reading",
    "Relaxation",
    "SelfLoops",
    "Solver",
    "aligning_plan",
    "assign",
    "assignment_potentials",
    "conditional_gradient",
    "factorise",
    "inner_product_plan",
    "l1_plan",
    "marginal_errors",
    "mirror_descent",
    "multi_start",
    "pair_divergence",
    "permutation_matrix",
    "project",
    "relaxed_objective",
    "round_to_permutation",
    "sinkhorn",
    "uniform_plan",
]
