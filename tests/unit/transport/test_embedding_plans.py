"""Plans from embeddings: what they are made of, and what they refuse."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphwright.transport import inner_product_plan, l1_plan, sinkhorn
from graphwright.transport.native import kernels_for
from tiny import embeddings, further_costs

PLANS = [l1_plan, inner_product_plan]
COUNTS = [0, 1, 4, 8, 9]


def padded(nodes: Tensor, counts: list[int], padding: Tensor, n: int) -> Tensor:
    """Sample by sample."""
    parts = nodes.split(counts)
    return torch.stack([torch.cat([part, padding.expand(n - len(part), -1)]) for part in parts])


def costs(embedding_plan, slots: Tensor, nodes: Tensor) -> Tensor:
    """As they are defined, with the (b, n, n, d) intermediate."""
    if embedding_plan is l1_plan:
        return (slots[:, :, None] - nodes[:, None]).abs().sum(3)
    cost = -(slots[:, :, None] * nodes[:, None]).sum(3)
    return cost - cost.amin((1, 2), keepdim=True)


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_a_plan_is_sinkhorn_of_the_cost_divided_by_its_sum(embedding_plan):
    slots, nodes, padding = embeddings(COUNTS, 9, 5)
    raw = costs(embedding_plan, slots, padded(nodes, COUNTS, padding, 9))
    expected = sinkhorn(raw / raw.sum((1, 2), keepdim=True), 1e-3, 7).matrix
    plan = embedding_plan(slots, nodes, torch.tensor(COUNTS), padding, 1e-3, 7)
    torch.testing.assert_close(plan, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_further_costs_are_added_before_the_cost_is_divided_by_its_sum(embedding_plan):
    slots, nodes, padding = embeddings(COUNTS, 9, 5)
    further = further_costs(COUNTS, 9)
    given = (slots, nodes, torch.tensor(COUNTS), padding, 1e-3, 7)
    raw = costs(embedding_plan, slots, padded(nodes, COUNTS, padding, 9)) + further
    expected = sinkhorn(raw / raw.sum((1, 2), keepdim=True), 1e-3, 7).matrix
    plan = embedding_plan(*given, further)
    torch.testing.assert_close(plan, expected, atol=1e-10, rtol=0)
    assert (plan - embedding_plan(*given)).abs().max() > 0.05
    torch.testing.assert_close(embedding_plan(*given, 0 * further), embedding_plan(*given), atol=1e-12, rtol=0)


@pytest.mark.parametrize("with_further", [False, True])
@pytest.mark.parametrize("embedding_plan", PLANS)
@pytest.mark.parametrize("counts", [[3, 0, 4], [4, 4, 4], [0, 0, 0], [1, 2, 3]])
def test_plans_pass_gradcheck(embedding_plan, counts, with_further):
    variables = [tensor.requires_grad_() for tensor in embeddings(counts, 4, 7)]
    further = further_costs(counts, 4) if with_further else None

    def plan(slots, nodes, padding):
        return embedding_plan(slots, nodes, torch.tensor(counts), padding, 2e-2, 6, further)

    assert torch.autograd.gradcheck(plan, variables)


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_further_costs_get_no_gradient_and_are_not_changed(embedding_plan):
    slots, nodes, padding = (tensor.requires_grad_() for tensor in embeddings([2, 3], 4, 5))
    further = further_costs([2, 3], 4).requires_grad_()
    before = further.detach().clone()
    plan = embedding_plan(slots, nodes, torch.tensor([2, 3]), padding, 1e-2, 5, further)
    plan.square().sum().backward()
    assert further.grad is None
    assert torch.equal(further, before)
    assert all(tensor.grad.abs().max() > 0 for tensor in (slots, nodes, padding))


@pytest.mark.parametrize("embedding_plan", PLANS)
@pytest.mark.parametrize(
    ("further", "message"),
    [
        (torch.zeros(2, 4, 3), "further must have shape"),
        (torch.zeros(4, 4), "further must have shape"),
        (torch.zeros(2, 4, 4).double(), "further is torch.float64, slots"),
        (torch.full((2, 4, 4), float("nan")), r"further is not finite \(sample 0\)"),
    ],
)
def test_further_costs_that_do_not_fit_are_refused(embedding_plan, further, message):
    slots, nodes, padding = embeddings([2, 3], 4, 3, dtype=torch.float32)
    with pytest.raises(ValueError, match=message):
        embedding_plan(slots, nodes, torch.tensor([2, 3]), padding, 0.1, 2, further)


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(0, 3))
def test_a_sample_has_the_plan_that_it_has_alone(counts, seed):
    slots, nodes, padding = embeddings(counts, 6, 4, seed)
    further = further_costs(counts, 6, seed) if seed % 2 else None
    together = l1_plan(slots, nodes, torch.tensor(counts), padding, 1e-3, 5, further)
    for at, part in enumerate(nodes.split(counts)):
        own = None if further is None else further[at : at + 1]
        alone = l1_plan(slots[at : at + 1], part, torch.tensor(counts[at : at + 1]), padding, 1e-3, 5, own)
        torch.testing.assert_close(together[at], alone[0], atol=1e-12, rtol=0)


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_an_empty_batch_has_no_plans(embedding_plan):
    slots, nodes, padding = (tensor.requires_grad_() for tensor in embeddings([], 4, 3))
    plan = embedding_plan(slots, nodes, torch.zeros(0, dtype=torch.int64), padding, 0.1, 2)
    assert plan.shape == (0, 4, 4)
    plan.sum().backward()
    assert not padding.grad.any()


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_any_strides_of_inputs_and_gradient_will_do(embedding_plan):
    counts = torch.tensor([3, 1])
    slots, nodes, padding = embeddings([3, 1], 4, 5)
    further = further_costs([3, 1], 4)
    results = []
    for strided in (False, True):
        given = [slots, nodes, padding]
        if strided:
            wide = torch.stack([padding, padding], 1)
            given = [slots.mT.contiguous().mT, nodes.mT.contiguous().mT, wide[:, 0]]
        variables = [tensor.detach().requires_grad_() for tensor in given]
        own = further.mT.contiguous().mT if strided else further
        plan = embedding_plan(variables[0], variables[1], counts, variables[2], 1e-2, 5, own)
        # The gradient of a sum over the samples is one matrix, expanded.
        wanted = (plan.sum(0) * torch.linspace(0, 1, 16, dtype=plan.dtype).view(4, 4)).sum()
        results.append([plan.detach(), *torch.autograd.grad(wanted, variables)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("with_further", [False, True])
def test_columns_beyond_the_nodes_are_one_to_the_last_bit(with_further):
    slots, nodes, padding = embeddings(COUNTS, 9, 5, dtype=torch.float32)
    further = further_costs(COUNTS, 9, dtype=torch.float32) if with_further else None
    plan = l1_plan(slots, nodes, torch.tensor(COUNTS), padding, 1e-4, 20, further)
    for sample, count in enumerate(COUNTS):
        columns, first = plan[sample, :, count:], plan[sample, :, count : count + 1]
        if kernels_for(plan) is None:  # torch's sums depend on where in a vector register a column stands
            torch.testing.assert_close(columns, first.expand_as(columns))
        else:
            assert columns.eq(first).all()


@pytest.mark.parametrize("embedding_plan", PLANS)
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([-1, 7], "counts must lie between 0 and 4"),
        ([1, 5], "counts must lie between 0 and 4"),
        ([2, 3], "counts sum to 5, and there are 6 nodes"),
        ([2, 2, 2], "counts"),
        ([1.5, 4.5], "counts must be int64 on cpu"),
    ],
)
def test_counts_that_do_not_fit_are_refused(embedding_plan, counts, message):
    with pytest.raises(ValueError, match=message):
        embedding_plan(torch.zeros(2, 4, 3), torch.zeros(6, 3), torch.tensor(counts), torch.zeros(3), 0.1, 2)


def test_distances_too_large_for_a_sum_are_refused():
    slots, nodes, padding = (1e36 * tensor for tensor in embeddings([2, 3], 4, 30, dtype=torch.float32))
    with pytest.raises(ValueError, match="finite"):
        l1_plan(slots, nodes, torch.tensor([2, 3]), padding, 0.1, 2)


@pytest.mark.parametrize("name", ["slots", "nodes", "padding"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_embeddings_that_are_not_finite_are_refused_by_name(name, bad):
    given = dict(zip(("slots", "nodes", "padding"), embeddings([2, 3], 4, 3), strict=True))
    given[name].view(-1)[0] = bad
    with pytest.raises(ValueError, match=f"^({name} must be|cost is not) finite"):
        l1_plan(**given, counts=torch.tensor([2, 3]), epsilon=0.1, iterations=2)
