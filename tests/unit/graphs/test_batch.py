"""Many graphs as padded, masked tensors."""

import pickle
import re
from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from graphwright.graphs import Attribute, Graph, GraphBatch, Vocabulary

ATOMS = Vocabulary(("C", "N", "O"), ("none", "single", "double"))
EMPTY = Graph.build(0, vocabulary=ATOMS)
LONE = Graph.build("NO", vocabulary=ATOMS)
CHAIN = Graph.build("CNO", [(0, 1), (1, 2)], ["double", "single"], ATOMS)
COMPLETE = Graph.build("CCNN", [(i, j) for i in range(4) for j in range(i)], ["single"] * 5 + ["double"], ATOMS)
EVERY = [CHAIN, EMPTY, COMPLETE, LONE]
LISTS = {"none": [], "one": [CHAIN], "zero nodes": [EMPTY], "isolated": [LONE, LONE], "mixed": EVERY}


def tensors(batch: GraphBatch) -> tuple[torch.Tensor, ...]:
    return batch.mask, batch.node_labels, batch.edge_labels


def same(first: GraphBatch, second: GraphBatch) -> bool:
    equal = (torch.equal(a, b) for a, b in zip(tensors(first), tensors(second), strict=True))
    return first.vocabulary == second.vocabulary and all(equal)


@pytest.mark.parametrize("graphs", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("room", [None, 4, 7])
def test_a_batch_gives_back_its_graphs_at_any_capacity(graphs, room):
    batch = GraphBatch.collate(graphs, room, ATOMS)
    assert len(batch) == len(graphs)
    assert batch.capacity == (max((g.size for g in graphs), default=0) if room is None else room)
    assert batch.graphs() == graphs
    assert list(batch) == graphs
    assert all(graph.vocabulary == ATOMS for graph in batch)


def test_collating_writes_mask_labels_and_both_halves_of_the_matrix():
    batch = GraphBatch.collate([CHAIN, LONE])
    assert batch.mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.node_labels.tolist() == [[0, 1, 2], [1, 2, 0]]
    assert batch.edge_labels.tolist() == [[[0, 2, 0], [2, 0, 1], [0, 1, 0]], [[0] * 3] * 3]
    assert batch.sizes.tolist() == [3, 2]


def test_the_last_graph_is_number_minus_one_and_there_is_none_after_it():
    batch = GraphBatch.collate(EVERY)
    assert batch[-1] == LONE
    for index in (4, -5):
        with pytest.raises(IndexError, match=f"graph {index} of a batch of 4"):
            batch[index]


def test_the_vocabulary_travels_through_every_change():
    batch = GraphBatch.collate(EVERY)
    order = torch.arange(4).expand(4, 4)
    changed = [batch.pad(6), batch.unpad(), batch.to("cpu"), batch.to("meta"), batch.permute(order)]
    assert [other.vocabulary for other in changed] == [ATOMS] * 5


def test_an_empty_batch_has_the_vocabulary_it_is_given():
    assert GraphBatch.collate([], vocabulary=ATOMS).node_one_hot().shape == (0, 0, 3)
    assert GraphBatch.collate([]).vocabulary == Vocabulary()


def test_graphs_built_apart_can_share_a_batch_under_one_vocabulary():
    apart = [Graph.build("CO", [(0, 1)]), Graph.build("N")]
    shared = Vocabulary.of("CNO", ["edge"])
    batch = GraphBatch.collate([graph.with_vocabulary(shared) for graph in apart])
    assert batch.graphs() == apart


def test_adjacency_forgets_edge_labels():
    adjacency = GraphBatch.collate([CHAIN]).adjacency(torch.float64)
    assert adjacency.dtype == torch.float64
    assert adjacency.tolist() == [[[0, 1, 0], [1, 0, 1], [0, 1, 0]]]


def test_node_labels_as_one_hot_rows_are_zero_at_padding():
    one_hot = GraphBatch.collate([LONE], 3).node_one_hot()
    assert one_hot.dtype == torch.float32
    assert one_hot.tolist() == [[[0, 1, 0], [0, 0, 1], [0, 0, 0]]]


def test_edge_labels_as_one_hot_channels_have_no_edge_first_also_at_padding():
    channels = GraphBatch.collate([CHAIN], 4).edge_one_hot(torch.float64)
    assert channels.shape == (1, 3, 4, 4)
    assert channels.dtype == torch.float64
    assert torch.equal(channels.argmax(1)[0, :3, :3], torch.from_numpy(CHAIN.edge_matrix()))
    assert torch.equal(channels.sum(1), torch.ones(1, 4, 4, dtype=torch.float64))
    assert channels[0, 0, 3].tolist() == [1, 1, 1, 1]


def test_diffused_labels_count_the_neighbours_of_each_label():
    diffused = GraphBatch.collate([CHAIN, COMPLETE]).diffused_labels()
    assert diffused[0].tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert diffused[1].tolist() == [[1, 2, 0], [1, 2, 0], [2, 1, 0], [2, 1, 0]]


def test_the_mask_as_numbers_sums_to_the_sizes():
    batch = GraphBatch.collate(EVERY)
    assert batch.node_mask(torch.float64).dtype == torch.float64
    assert batch.node_mask().sum(1).tolist() == batch.sizes.tolist() == [3, 0, 4, 2]


@pytest.mark.parametrize("graphs", LISTS.values(), ids=LISTS)
def test_padding_is_collating_with_more_room_and_unpadding_undoes_it(graphs):
    batch = GraphBatch.collate(graphs, vocabulary=ATOMS)
    padded = batch.pad(batch.capacity + 3)
    assert same(padded, GraphBatch.collate(graphs, batch.capacity + 3, ATOMS))
    assert same(padded.unpad(), batch)
    assert same(batch.pad(batch.capacity), batch)


def test_padding_to_less_room_is_refused():
    with pytest.raises(ValueError, match="capacity 3 is below the batch's own, 4"):
        GraphBatch.collate(EVERY).pad(3)


def test_padding_adds_nothing_to_any_reading_of_the_batch():
    batch, padded = GraphBatch.collate(EVERY), GraphBatch.collate(EVERY).pad(6)
    assert torch.equal(padded.diffused_labels()[:, :4], batch.diffused_labels())
    assert torch.equal(padded.edge_one_hot()[..., :4, :4], batch.edge_one_hot())
    assert padded.adjacency()[:, 4:].abs().sum() == 0
    assert padded.node_one_hot()[:, 4:].abs().sum() == 0


def test_permuting_moves_each_graph_by_its_own_order():
    batch = GraphBatch.collate([CHAIN, LONE])
    order = torch.tensor([[2, 0, 1], [1, 0, 2]])
    assert batch.permute(order).graphs() == [CHAIN.permute([2, 0, 1]), LONE.permute([1, 0])]


def test_permuting_back_restores_the_batch():
    batch = GraphBatch.collate([COMPLETE, COMPLETE])
    order = torch.tensor([[2, 0, 3, 1], [3, 2, 1, 0]])
    assert not same(batch.permute(order), batch)
    assert same(batch.permute(order).permute(order.argsort(1)), batch)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (torch.tensor([[0, 1, 2], [0, 2, 1]]), "order must keep real nodes before padding (sample 1)"),
        (torch.tensor([[0, 1, 2], [0, 0, 2]]), "order must permute the nodes (sample 1)"),
        (torch.tensor([[0, 1, 3], [0, 1, 2]]), "order must permute the nodes (sample 0)"),
        (torch.tensor([[-1, 1, 2], [0, 1, 2]]), "order must permute the nodes (sample 0)"),
        (torch.tensor([0, 1, 2]), "order must be int64 of shape (2, 3), got torch.int64 (3,)"),
        (torch.tensor([[0.0, 1, 2], [0, 1, 2]]), "order must be int64 of shape (2, 3), got torch.float32"),
        (torch.empty(2, 3, dtype=torch.int64, device="meta"), "order is on meta, mask on cpu"),
    ],
)
def test_a_malformed_order_is_refused_by_sample(order, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        GraphBatch.collate([CHAIN, LONE]).permute(order)


def test_a_batch_moves_to_another_device_whole():
    moved = GraphBatch.collate(EVERY).to("meta")
    assert {tensor.device.type for tensor in tensors(moved)} == {"meta"}
    assert moved.adjacency().device.type == "meta"
    assert (len(moved), moved.capacity) == (4, 4)


def test_moving_to_its_own_device_changes_nothing():
    batch = GraphBatch.collate(EVERY)
    assert same(batch.to(torch.device("cpu")), batch)


def test_the_tensors_of_a_batch_cannot_be_replaced():
    batch = GraphBatch.collate(EVERY)
    with pytest.raises(FrozenInstanceError):
        batch.mask = batch.mask.clone()


def test_graphs_of_different_vocabularies_are_refused_by_sample():
    with pytest.raises(ValueError, match=r"graphs\[1\] has .*'node'.* see Graph.with_vocabulary"):
        GraphBatch.collate([CHAIN, Graph.build(2)])
    with pytest.raises(ValueError, match=r"graphs\[0\] has "):
        GraphBatch.collate([CHAIN], vocabulary=Vocabulary())


def test_a_graph_too_large_for_the_capacity_is_refused_by_sample():
    with pytest.raises(ValueError, match=r"graphs\[2\] has 4 nodes, more than the capacity 3"):
        GraphBatch.collate(EVERY, 3)


def test_a_negative_capacity_is_refused():
    with pytest.raises(ValueError, match="capacity must not be negative, got -1"):
        GraphBatch.collate([], -1)


def entry(field: str, *places: tuple[int, ...], value: int | bool) -> dict[str, torch.Tensor]:
    """A tensor of the batch of (CHAIN, LONE) with a value changed."""
    tensor = getattr(GraphBatch.collate([CHAIN, LONE]), field).clone()
    for place in places:
        tensor[place] = value
    return {field: tensor}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (entry("mask", (0, 0), value=False), "mask has a real node after padding (sample 0)"),
        (entry("mask", (1, 0), value=False), "mask has a real node after padding (sample 1)"),
        (entry("node_labels", (1, 0), value=3), "node_labels must lie in 0..2 (sample 1)"),
        (entry("node_labels", (1, 0), value=-1), "node_labels must lie in 0..2 (sample 1)"),
        (entry("node_labels", (1, 2), value=1), "node_labels must be 0 at padding (sample 1)"),
        (entry("edge_labels", (1, 0, 1), (1, 1, 0), value=3), "edge_labels must lie in 0..2 (sample 1)"),
        (entry("edge_labels", (1, 0, 1), (1, 1, 0), value=-1), "edge_labels must lie in 0..2 (sample 1)"),
        (entry("edge_labels", (1, 0, 2), (1, 2, 0), value=1), "edge_labels must be 0 at padding (sample 1)"),
        (entry("edge_labels", (1, 1, 1), value=1), "edge_labels must be 0 on the diagonal (sample 1)"),
        (entry("edge_labels", (1, 0, 1), value=1), "edge_labels must be symmetric (sample 1)"),
        ({"mask": torch.ones(2, 3)}, "mask must be bool of shape (b, n), got torch.float32 (2, 3)"),
        ({"mask": torch.ones(3).bool()}, "mask must be bool of shape (b, n), got torch.bool (3,)"),
        ({"node_labels": torch.zeros(2, 3)}, "node_labels must be int64 of shape (2, 3), got torch.float32"),
        ({"node_labels": torch.full((2, 3), torch.nan)}, "node_labels must be int64"),
        ({"node_labels": torch.zeros(2, 4).long()}, "node_labels must be int64 of shape (2, 3)"),
        ({"edge_labels": torch.zeros(2, 3, 3).int()}, "edge_labels must be int64 of shape (2, 3, 3)"),
        ({"edge_labels": torch.zeros(2, 3).long()}, "edge_labels must be int64 of shape (2, 3, 3)"),
        ({"edge_labels": torch.zeros(2, 3, 3).long().to("meta")}, "edge_labels is on meta, mask on cpu"),
        ({"mask": [[True]]}, "mask must be a tensor, got list"),
        ({"edge_labels": None}, "edge_labels must be a tensor, got NoneType"),
    ],
)
def test_malformed_tensors_are_refused_by_argument_and_sample(changed, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(GraphBatch.collate([CHAIN, LONE]), **changed)


MEASURED = Vocabulary(("a", "b"), attributes=(Attribute("x", 3.0, 2.0), Attribute("y")))


def measured(*labels: str, at: float = 0.0) -> Graph:
    numbers = [[at + 3 * node, -float(node)] for node in range(len(labels))]
    return Graph.build(list(labels), [(0, 1)], None, MEASURED, numbers)


def test_attributes_are_standardised_zero_at_padding_and_come_back_in_their_units():
    graphs = [measured("a", "b"), measured("b", "a", "b", at=0.5)]
    batch = GraphBatch.collate(graphs, 4)
    assert batch.attributes[0].tolist() == [[-1.5, 0.0], [0.0, -1.0], [0.0, 0.0], [0.0, 0.0]]
    for graph, again in zip(graphs, batch.graphs(), strict=True):
        assert again.attributes.tolist() == graph.attributes.tolist()


def test_attributes_go_with_their_nodes_through_every_change():
    graphs = [measured("a", "b"), measured("b", "a", "b", at=0.5)]
    batch = GraphBatch.collate(graphs, 3)
    for changed in (batch.pad(6), batch.pad(6).unpad(), batch.to("cpu")):
        assert [graph.attributes.tolist() for graph in changed.graphs()] == [g.attributes.tolist() for g in graphs]
    assert batch.select(torch.tensor([1]))[0].attributes.tolist() == graphs[1].attributes.tolist()
    order = torch.tensor([[1, 0, 2], [2, 0, 1]])
    for at, moved in enumerate(batch.permute(order).graphs()):
        by_hand = graphs[at].permute(order[at, : graphs[at].size].tolist())
        assert moved == by_hand
        assert moved.attributes.tolist() == by_hand.attributes.tolist()
    part = graphs[1].subgraph([2, 0])
    assert part.attributes.tolist() == graphs[1].attributes[[2, 0]].tolist()
    assert pickle.loads(pickle.dumps(part)).attributes.tolist() == part.attributes.tolist()


def test_attributes_follow_their_names_into_another_vocabulary():
    graph = measured("a", "b")
    turned = Vocabulary(("a", "b"), attributes=(Attribute("y"), Attribute("x")))
    assert graph.with_vocabulary(turned).attributes.tolist() == graph.attributes[:, ::-1].tolist()
    assert graph.with_vocabulary(Vocabulary(("a", "b"))).attributes is None
    with pytest.raises(ValueError, match="there is no attribute 'z' among"):
        graph.with_vocabulary(Vocabulary(("a", "b"), attributes=(Attribute("z"),)))


def test_attributes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"attributes must have shape \(2, 2\) \(the vocabulary names x, y\)"):
        Graph.build(["a", "b"], vocabulary=MEASURED, attributes=[[1.0], [2.0]])
    with pytest.raises(ValueError, match="attribute y of node 1 is nan"):
        Graph.build(["a", "b"], vocabulary=MEASURED, attributes=[[1.0, 2.0], [3.0, float("nan")]])
    with pytest.raises(ValueError, match=r"graphs\[1\] has no attributes, others have"):
        GraphBatch.collate([measured("a", "b"), Graph.build(["a"], vocabulary=MEASURED)])
    batch = GraphBatch.collate([measured("a", "b")], 3)
    with pytest.raises(ValueError, match=r"attributes must be 0 at padding \(sample 0\)"):
        replace(batch, attributes=batch.attributes + 1)
    with pytest.raises(ValueError, match="attributes must be float32 of shape"):
        replace(batch, attributes=batch.attributes[..., :1])
    with pytest.raises(ValueError, match="names 'x' twice"):
        Vocabulary(attributes=(Attribute("x"), Attribute("x")))
    with pytest.raises(ValueError, match=r"attribute x has mean 0\.0 and deviation 0"):
        Attribute("x", 0.0, 0)
