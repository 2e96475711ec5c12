"""Tables of any form are understood, and what is wrong with a row is said with its place."""

import csv
import json

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from graphwright.graphs import Graph, is_isomorphic, to_json
from graphwright.settings import load_run
from graphwright.tasks.table import InputKind, Table, TableDataset, TableTask, understand
from tiny_tables import path_row, rows, write_jsonl


def table(path, **settings):
    return Table(TableTask(data=str(path), **settings))


def only_rejection(tmp_path, at=10, **changes):
    """What is said of a single changed row among sixty."""
    given = rows()
    given[at] = {key: value for key, value in (given[at] | changes).items() if value != "absent"}
    found = table(write_jsonl(tmp_path / "pairs.jsonl", given)).rejections()
    assert len(found) == 1
    assert found[0].row == at + 1
    assert found[0].detail.startswith(f"{tmp_path / 'pairs.jsonl'}, row {at + 1}, ")
    return found[0].reason, found[0].detail.partition(f"row {at + 1}, ")[2]


def test_parquet_jsonl_and_csv_say_the_same(tmp_path):
    given = rows()
    first = understand(TableTask(data=str(write_jsonl(tmp_path / "a.jsonl", given))))
    parquet.write_table(pa.Table.from_pylist(given), tmp_path / "a.parquet")
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(given[0]))
        writer.writeheader()
        writer.writerows(
            {key: json.dumps(value) if isinstance(value, list) else value for key, value in row.items()}
            for row in given
        )
    for name in ("a.parquet", "a.csv"):
        other = understand(TableTask(data=str(tmp_path / name)))
        assert (other.form, other.vocabulary, other.capacity) == (first.form, first.vocabulary, first.capacity)
        assert other.counts() == first.counts() == "40 train, 10 validation, 10 test"
        for mine, its in zip(first.samples["train"], other.samples["train"], strict=True):
            assert mine.graph == its.graph
            assert np.array_equal(mine.value, its.value)
        assert Table.settings_for(str(tmp_path / name)) is not None
    assert first.form.kind is InputKind.SET
    assert first.vocabulary.nodes == ("end", "inner")
    assert first.capacity == 5


@pytest.mark.parametrize("key", ["links", "edges"])
def test_node_link_json_as_networkx_writes_it(tmp_path, key):
    graph = nx.Graph()
    graph.add_node("a", label="x")
    graph.add_node("b", label="y")
    graph.add_edge("a", "b", label="double")
    text = json.dumps(nx.node_link_data(graph, edges=key))
    given = [{"size": at, "graph": text} for at in range(60)]
    found = understand(TableTask(data=str(write_jsonl(tmp_path / "a.jsonl", given))))
    sample = found.samples["train"][0]
    assert sample.graph.node_names == ["x", "y"]
    assert sample.graph.edge_names == ["double"]
    assert found.form.kind is InputKind.VECTOR


@pytest.mark.parametrize(
    ("changes", "reason", "said"),
    [
        ({"edges": [[0, 0]]}, "self-loop", "edges: edge 0 joins node 0 to itself"),
        ({"edges": [[0, 9]]}, "index out of range", "edges: edge 0 names node 9, the graph has 4 (from 0)"),
        ({"edges": [[0, -1]]}, "index out of range", "edges: edge 0 names node -1"),
        ({"edges": [[0, 1, "a"], [1, 0, "b"]]}, "duplicate edge", "joins nodes 0 and 1 again, as 'b'; before it"),
        ({"edges": [[0]]}, "not a pair", "edges: edge 0 must be [i, j] or [i, j, label], got [0]"),
        ({"edges": [["a", "b"]]}, "not an index", "edges: edge 0 must name nodes by their places"),
        ({"edges": "[[0, 1]"}, "unreadable JSON", "edges: the JSON cannot be read"),
        ({"edges": "absent"}, "missing value", "edges: there is none"),
        ({"nodes": None}, "missing value", "nodes: there is none"),
        (
            {"nodes": ["end", None], "edges": []},
            "not a label",
            "nodes: label 1 must be text or a number, got None",
        ),
        ({"nodes": ["end", float("nan")], "edges": []}, "NaN", "nodes: label 1 is NaN"),
        ({"nodes": [], "edges": []}, "empty graph", "nodes: the graph has no node"),
        ({"directed": True}, "directed graph", "directed: it is directed, and only undirected graphs"),
        ({"points": [[float("nan"), 1.0]]}, "NaN", "points: a number of element 0 is NaN"),
        ({"points": [[float("inf"), 1.0]]}, "NaN", "points: a number of element 0 is infinite"),
        ({"points": [[1.0]]}, "wrong length", "points: element 0 must be 2 numbers, got [1.0]"),
        ({"points": 3}, "not a list", "points: expected a list of vectors, got '3'"),
        ({"points": None}, "missing value", "points: there is none"),
        ({"split": "trian"}, "unknown split", "split: expected train, validation, test, got 'trian'"),
        (
            {"split": "test", "nodes": ["odd"], "edges": []},
            "unknown label",
            "no training row has the node label 'odd'",
        ),
        (
            {"split": "test", "edges": [[0, 1, "odd"]]},
            "unknown label",
            "edges: no training row has the edge label 'odd'",
        ),
        (
            {"split": "validation", "nodes": ["end"] * 7, "edges": []},
            "larger than the capacity",
            "nodes: the graph has 7 nodes, more than the capacity 5",
        ),
    ],
)
def test_a_row_that_is_no_sample_is_listed_with_file_row_and_field(tmp_path, changes, reason, said):
    found, detail = only_rejection(tmp_path, **changes)
    assert found == reason
    assert said in detail


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"directed": True}, "directed graph"),
        ({"edges": [{"source": 0, "target": 0}]}, "self-loop"),
        ({"edges": [{"source": 0, "target": 8}]}, "index out of range"),
        ({"edges": [{"source": 0, "target": 1, "label": "a"}, {"source": 1, "target": 0}]}, "duplicate edge"),
        ({"nodes": 3}, "not node-link JSON"),
        ({"multigraph": True}, "multigraph"),
    ],
)
def test_node_link_rows_are_refused_alike(tmp_path, change, reason):
    good = to_json(pair())
    given = [{"x": at, "graph": good | (change if at == 3 else {})} for at in range(60)]
    found = table(write_jsonl(tmp_path / "a.jsonl", given)).rejections()
    assert [(each.row, each.reason) for each in found] == [(4, reason)]
    assert "row 4, graph: " in found[0].detail


def pair():
    return Graph.build(["a", "b"], [(0, 1)])


def test_an_edge_that_is_given_in_both_orders_is_one_edge(tmp_path):
    given = rows(60, lambda _: {"edges": [[0, 1], [1, 0], [1, 2]]})
    found = understand(TableTask(data=str(write_jsonl(tmp_path / "a.jsonl", given))))
    assert not found.all_rejected()
    assert found.samples["train"][0].graph.edges.tolist() == [[0, 1], [1, 2]]


def refusal(path, **settings):
    with pytest.raises(ValueError, match=path.name) as error:
        table(path, **settings).resolved()
    assert "\n" not in str(error.value)
    return str(error.value)


def without(*names):
    return [{key: value for key, value in row.items() if key not in names} for row in rows()]


def test_what_a_file_lacks_is_said(tmp_path):
    path = tmp_path / "a.jsonl"
    assert "has a column nodes but no column edges" in refusal(write_jsonl(path, without("edges")))
    assert "has no graph: columns nodes and edges, or a column graph, are missing; it has id, points" in refusal(
        write_jsonl(path, without("nodes", "edges"))
    )
    assert "has no input column" in refusal(write_jsonl(path, without("points")))
    both = rows(60, lambda _: {"graph": {}})
    assert "keep one way to give the graph" in refusal(write_jsonl(path, both))
    assert "has no rows" in refusal(write_jsonl(path, []))
    write_jsonl(path, rows())
    assert "has no column colour, which task.inputs names" in refusal(path, inputs="colour")
    text = rows(60, lambda _: {"points": "some words"})
    assert "column points holds text, such as 'some words'" in refusal(write_jsonl(path, text))
    mixed = rows(60, lambda _: {"weight": 1.5})
    assert "the input columns are points (set), weight (vector)" in refusal(write_jsonl(path, mixed))
    hidden = [row | {"attributes": [[1.0]]} for row in linked(lambda _, __: {})]
    assert "numbers of nodes go into the graph's nodes" in refusal(write_jsonl(path, hidden))
    write_jsonl(path, linked(lambda _, node: {"x": node}))
    assert "task.attributes: nodes of training rows have no number 'z'; they have x" in refusal(
        path, attributes="z"
    )
    assert "does not exist" in refusal(tmp_path / "none.jsonl")
    assert "a table's name ends in .parquet, .jsonl, .ndjson, .csv, not in .txt" in refusal(tmp_path / "none.txt")


def test_too_few_rows_are_counted_split_by_split(tmp_path):
    found = refusal(write_jsonl(tmp_path / "a.jsonl", rows(12)))
    assert "has too few usable rows: 8 train, 2 validation, 2 test (by the column split)" in found
    assert "training takes at least 20 train, at least 2 validation" in found
    nothing = refusal(write_jsonl(tmp_path / "a.jsonl", rows(12, lambda _: {"split": "test"})))
    assert "no usable training row in 12 rows (0 train, 0 validation, 12 test)" in nothing


def test_a_quote_that_is_never_closed_names_its_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,nodes,edges\n1,"[""a""]",[]\n2,"[""a""],[]\n3,"[""a""]",[]\n')
    assert "row 2, which begins in line 3: " in refusal(path)


def test_a_csv_row_of_another_length_is_listed(tmp_path):
    path = tmp_path / "a.csv"
    lines = ['"[""a""]",[],1.5\n'] * 40
    path.write_text("nodes,edges,x\n" + "".join(lines[:3]) + "1,2\n" + "".join(lines[3:]))
    (found,) = table(path).rejections()
    assert (found.row, found.reason) == (4, "wrong number of cells")


def test_broken_lines_of_json_are_listed(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", rows())
    path.write_text(path.read_text() + "{broken\n[1]\n")
    assert [(each.row, each.reason) for each in table(path).rejections()] == [
        (61, "unreadable JSON"),
        (62, "unreadable JSON"),
    ]


def test_kinds_of_input(tmp_path):
    path = tmp_path / "a.jsonl"

    def form(change, **settings):
        given = [{key: value for key, value in row.items() if key != "points"} for row in rows(60, change)]
        return understand(TableTask(data=str(write_jsonl(path, given)), **settings)).form

    several = form(lambda at: {"a": at, "b": [1.0, at / 2]})
    assert (several.kind, several.columns, several.numbers) == (InputKind.VECTOR, ("a", "b"), 3)
    train = [at for at in range(60) if at % 6 < 4]
    assert several.mean[0] == pytest.approx(np.mean(train), rel=1e-6)
    assert several.deviation == pytest.approx((np.std(train), 1.0, np.std(train) / 2), rel=1e-6)
    words = form(lambda at: {"a": ["x", "y"][: 1 + at % 2]})
    assert (words.kind, words.words) == (InputKind.TOKENS, ("x", "y"))
    assert form(lambda at: {"a": list(range(1 + at % 4))}).kind is InputKind.TOKENS
    assert form(lambda _: {"a": ["x"], "b": 2.0}, inputs="b").columns == ("b",)
    assert form(lambda at: {"a": True, "b": at}).numbers == 2


def test_a_token_that_training_never_saw_is_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    given = without("points")
    for at, row in enumerate(given):
        row["words"] = ["new"] if at == 5 else ["old"]
    (found,) = table(write_jsonl(path, given)).rejections()
    assert (found.reason, found.row) == ("unknown token", 6)


def test_the_split_by_hash_goes_by_the_id(tmp_path):
    given = without("split")
    first = understand(TableTask(data=str(write_jsonl(tmp_path / "a.jsonl", given))))
    turned = understand(TableTask(data=str(write_jsonl(tmp_path / "b.jsonl", given[::-1]))))
    assert not first.by_column
    for split in ("train", "validation", "test"):
        assert {each.name for each in first.samples[split]} == {each.name for each in turned.samples[split]}
    assert len(first.samples["train"]) > 40


def test_settings_of_a_run_say_all_that_a_model_needs(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", rows())
    known = table(path).resolved()
    path.unlink()
    alone = Table(known)
    assert alone.capacity == 5
    assert alone.vocabulary.nodes == ("end", "inner")
    assert alone.form.kind is InputKind.SET
    assert tuple(alone.inputs([[0.5, 0.0], [0.1, 1.0]]).values.shape) == (1, 2, 2)
    assert tuple(alone.inputs([np.zeros((3, 2)), np.zeros((1, 2))]).mask.sum(1)) == (3, 1)


def test_predictions_can_be_the_next_tables_graphs(tmp_path):
    found = understand(TableTask(data=str(write_jsonl(tmp_path / "a.jsonl", rows()))))
    given = [{"x": 1.0 * at, "graph": to_json(sample.graph)} for at, sample in enumerate(found.samples["train"])]
    again = understand(TableTask(data=str(write_jsonl(tmp_path / "b.jsonl", given))))
    assert is_isomorphic(again.samples["train"][0].graph, found.samples["train"][0].graph)


def test_a_table_is_told_from_molecules(tmp_path):
    assert load_run(str(write_jsonl(tmp_path / "a.jsonl", rows()))).task.kind == "table"
    (tmp_path / "m.csv").write_text("smiles\nCCO\n")
    assert load_run(str(tmp_path / "m.csv")).task.kind == "fingerprint"
    assert path_row(0)["split"] == "train"


def linked(fields):
    """Node-link rows: `fields` gives a node's further fields from row and node."""
    found = []
    for at, row in enumerate(rows()):
        graph = to_json(Graph.build(row["nodes"], row["edges"]))
        graph["nodes"] = [node | fields(at, node["id"]) for node in graph["nodes"]]
        found.append({"x": at, "graph": graph, "split": row["split"]})
    return found


SAID = {
    "vectors": lambda at, node: [node, 10 * at],
    "objects": lambda at, node: {"x": node, "y": 10 * at},
    "numbers": lambda _, node: node,
}


@pytest.mark.parametrize("kind", SAID)
def test_a_column_of_attributes_is_read_and_measured_on_training_rows(tmp_path, kind):
    given = rows(60, lambda at: {"attributes": [SAID[kind](at, node) for node in range(3 + at % 3)]})
    found = understand(TableTask(data=str(write_jsonl(tmp_path / "a.jsonl", given))))
    assert not found.all_rejected()
    assert found.form.columns == ("points",)
    names = {"vectors": ("attributes[0]", "attributes[1]"), "objects": ("x", "y"), "numbers": ("attributes",)}[
        kind
    ]
    assert found.vocabulary.attribute_names == names
    seen = [node for at in range(60) if at % 6 < 4 for node in range(3 + at % 3)]
    assert found.vocabulary.attributes[0].mean == pytest.approx(np.mean(seen), rel=1e-6)
    assert found.vocabulary.attributes[0].deviation == pytest.approx(np.std(seen), rel=1e-6)
    sample = found.samples["test"][0]
    assert sample.graph.attributes[:, 0].tolist() == list(range(sample.graph.size))
    target = TableDataset(found, "train").batch(range(40))[1]
    assert float(target.attributes[target.mask].mean(0).abs().max()) < 1e-5
    assert float((target.attributes[target.mask].std(0, correction=0) - 1).abs().max()) < 1e-5


def test_numbers_of_node_link_nodes_are_attributes_and_other_fields_are_told(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", linked(lambda at, n: {"pos": [n, at], "size": 2 * n, "name": "odd"}))
    own = table(path)
    assert own.vocabulary.attribute_names == ("pos[0]", "pos[1]", "size")
    assert dict(own.explained())["not used"] == "nodes' name"
    assert dict(own.explained())["numbers of a node"].startswith("pos[0] (mean ")
    assert table(path, attributes="size").vocabulary.attribute_names == ("size",)
    assert table(path, attributes="[]").vocabulary.attributes == ()
    known = own.resolved()
    path.unlink()
    assert Table(known).vocabulary == own.vocabulary
    older = known.model_copy(update={"attributes": ""})
    assert Table(older).vocabulary.attributes == ()


@pytest.mark.parametrize(
    ("attributes", "reason", "said"),
    [
        ([[1.0, 2.0]] * 3, "wrong length", "attributes: 3 entries for 4 nodes"),
        ([[1.0, 2.0]] * 3 + [[1.0]], "not a number", "attributes: entry 0 must be attributes[0], got [1.0, 2.0]"),
        ([[1.0, 2.0]] * 3 + [[1.0, "a"]], "not a number", "attributes: entry 0 must be attributes[0], got"),
        ([[1.0, 2.0]] * 3 + [[1.0, None]], "not a number", "attributes: entry 0 must be attributes[0], got"),
        ([[1.0, float("inf")]] * 4, "NaN", "attributes: [0].attributes is inf"),
        ([[1.0]] * 4, "missing number", "do not all have the number 'attributes[1]', as those of training rows"),
        (7, "not a list", "attributes: expected a list, an entry for each node, got 7"),
        (None, "missing value", "attributes: there is none"),
    ],
)
def test_attributes_that_no_sample_is_made_of_are_listed(tmp_path, attributes, reason, said):
    given = rows(60, lambda at: {"attributes": [[node, at] for node in range(3 + at % 3)]})
    given[10]["attributes"] = attributes
    (found,) = table(write_jsonl(tmp_path / "pairs.jsonl", given)).rejections()
    assert (found.row, found.reason) == (11, reason)
    assert said in found.detail
