"""A batch of predicted graphs."""

import re
from dataclasses import FrozenInstanceError

import pytest
import torch

from graphwright.graphs import Prediction
from graphwright.graphs.batch import NO_SELF_LOOP, without_self_loops

B, N, LABELS, CLASSES = 2, 3, 4, 5


def logits(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_a_prediction_knows_its_batch_and_capacity():
    prediction = Prediction(logits(B, N), logits(B, N, N), logits(B, N, LABELS), logits(B, N, LABELS))
    assert (len(prediction), prediction.capacity) == (B, N)


def test_binary_edge_logits_are_the_adjacency():
    edges = logits(B, N, N)
    assert torch.equal(Prediction(logits(B, N), edges).adjacency, edges)


def test_the_odds_of_an_edge_add_up_the_classes_of_a_categorical_head():
    edges = logits(B, CLASSES, N, N)
    joined = 1 - edges.softmax(1)[:, 0]
    torch.testing.assert_close(Prediction(logits(B, N), edges).adjacency.sigmoid(), joined)


def test_the_adjacency_is_finite_at_large_logits():
    edges = torch.tensor([1e4, -1e4, 1e4]).reshape(1, 3, 1, 1)
    assert Prediction(torch.zeros(1, 1), edges).adjacency.item() == 0
    assert Prediction(torch.zeros(1, 1), -edges).adjacency.item() == 2e4


def test_the_logits_of_a_prediction_cannot_be_replaced():
    prediction = Prediction(logits(B, N), logits(B, N, N))
    with pytest.raises(FrozenInstanceError):
        prediction.edges = logits(B, N, N)


@pytest.mark.parametrize(("b", "n"), [(0, 3), (1, 0), (1, 1)])
@pytest.mark.parametrize("classes", [(), (2,)])
def test_empty_batches_and_no_slots_are_predictions_too(b, n, classes):
    prediction = Prediction(logits(b, n), logits(b, *classes, n, n), logits(b, n, LABELS))
    assert (len(prediction), prediction.capacity) == (b, n)
    assert prediction.adjacency.shape == (b, n, n)


@pytest.mark.parametrize("classes", [(), (2,), (4,)])
def test_without_self_loops_the_diagonal_says_no_edge_and_the_rest_is_as_it_was(classes):
    given = logits(B, *classes, N, N)
    kept, found = given.clone(), without_self_loops(given)
    assert torch.equal(given, kept)
    assert found.dtype is given.dtype
    apart = ~torch.eye(N, dtype=torch.bool)
    assert torch.equal(found[..., apart], given[..., apart])
    diagonal = found.diagonal(dim1=-2, dim2=-1)
    if not classes:
        assert diagonal.eq(NO_SELF_LOOP).all()
        return
    assert diagonal[:, 0].min() > 0 > diagonal[:, 1:].max()
    assert (diagonal[:, 0] - diagonal[:, 1:].amax(1)).min() >= -NO_SELF_LOOP


def test_slots_of_several_labels_have_no_edge_to_themselves_with_logits_20_and_minus_20():
    diagonal = without_self_loops(logits(B, 4, N, N)).diagonal(dim1=-2, dim2=-1)
    assert torch.equal(diagonal, torch.tensor([20.0, -20.0, -20.0, -20.0])[None, :, None].expand(B, 4, N).double())


def test_the_diagonal_without_self_loops_carries_no_gradient():
    for classes in ((), (3,)):
        given = logits(B, *classes, N, N).requires_grad_()
        without_self_loops(given).sum().backward()
        expected = 1 - torch.eye(N, dtype=given.dtype)
        assert torch.equal(given.grad, expected.expand_as(given))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"presence": logits(N)}, "presence must have shape (b, n), got (3,)"),
        ({"presence": torch.ones(B, N).long()}, "presence must hold logits, got torch.int64"),
        ({"edges": logits(B, N)}, "edges must have shape (2, 3, 3) or (2, classes, 3, 3), got (2, 3)"),
        ({"edges": logits(B, N, N + 1)}, "edges must have shape (2, 3, 3) or (2, classes, 3, 3)"),
        ({"edges": logits(B + 1, N, N)}, "edges must have shape (2, 3, 3) or (2, classes, 3, 3)"),
        ({"edges": logits(B, N, N, CLASSES)}, "edges must have shape (2, 3, 3) or (2, classes, 3, 3)"),
        ({"edges": logits(B, 1, N, N)}, "edges must have a class besides none"),
        ({"edges": logits(B, N, N).float()}, "edges is torch.float32, presence torch.float64"),
        ({"edges": logits(B, N, N).to("meta")}, "edges is on meta, presence on cpu"),
        ({"node_labels": logits(B, N)}, "node_labels must have shape (2, 3, labels), got (2, 3)"),
        ({"node_labels": logits(B, LABELS, N)}, "node_labels must have shape (2, 3, labels)"),
        ({"node_labels": logits(B, N, LABELS).half()}, "node_labels is torch.float16, presence"),
        ({"node_labels": logits(B, N, LABELS).to("meta")}, "node_labels is on meta, presence on cpu"),
        ({"diffusion": logits(B, N + 1, LABELS)}, "diffusion must have shape (2, 3, labels)"),
        ({"diffusion": logits(B, N, LABELS).float()}, "diffusion is torch.float32, presence"),
    ],
)
def test_malformed_predictions_are_refused_by_argument(changed, message):
    sound = {"presence": logits(B, N), "edges": logits(B, N, N), "node_labels": logits(B, N, LABELS)}
    with pytest.raises(ValueError, match=re.escape(message)):
        Prediction(**{**sound, **changed})
