"""Optimal transport between predicted and target graphs: pure functions on batches of dense tensors."""

from graphwright.transport.divergences import Divergence, Factors, factorise, pair_divergence
from graphwright.transport.embedding_plans import EmbeddingPlan, inner_product_plan, l1_plan
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
from graphwright.transport.solvers import (
    Projection,
    Solver,
    aligning_plan,
    assign,
    assignment_potentials,
    conditional_gradient,
    mirror_descent,
    multi_start,
    permutation_matrix,
    project,
    round_to_permutation,
)

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
