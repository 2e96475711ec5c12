"""Tables of any form are understood, and what is wrong with a row is said with its place."""

import csv
import json
import shutil

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import parquet

from graphwright.graphs import Graph, is_isomorphic, to_json
from graphwright.graphs.molecules import molecule_vocabulary, smiles_from_graph
from graphwright.server.comparison import compare
from graphwright.server.drawing import graph_drawing
from graphwright.settings import load_run
from graphwright.spectra import Origin, Spectrum, tidy_peaks
from graphwright.tasks.molecules.fingerprint import fingerprint_batch
from graphwright.tasks.page import Ion, Wish
from graphwright.tasks.spectra.encoded import SpectrumTask, spectrum_batch
from graphwright.tasks.table import Form, InputKind, Owners, Table, TableDataset, TableTask, understand
from graphwright.testing import check_encoder, check_task
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
    written = (tmp_path / "a.csv").read_text()
    cells = list(csv.reader(written.splitlines()))
    for name, separator, encoding in (
        ("b.csv", ";", "utf-8"),
        ("c.csv", "\t", "utf-16"),
        ("d.tsv", "\t", "utf-8"),
    ):
        with (tmp_path / name).open("w", newline="", encoding=encoding) as file:
            csv.writer(file, delimiter=separator).writerows(cells)
    # As pandas writes them: numbers of rows under no name, and lists as Python does.
    with (tmp_path / "e.csv").open("w", newline="") as file:
        csv.writer(file).writerow(["", *given[0]])
        csv.writer(file).writerows([at, *row.values()] for at, row in enumerate(given))
    assert "['end', 'inner'" in (tmp_path / "e.csv").read_text()
    for name in ("f.json", "g.jsonl"):
        (tmp_path / name).write_text(json.dumps(given, indent=1))
    for path in sorted(tmp_path.iterdir()):
        name = path.name
        other = understand(TableTask(data=str(tmp_path / name)))
        assert (other.form, other.vocabulary, other.capacity) == (first.form, first.vocabulary, first.capacity)
        assert other.counts() == first.counts() == "40 train, 10 validation, 10 test"
        for mine, its in zip(first.samples["train"], other.samples["train"], strict=True):
            assert mine.graph == its.graph
            assert np.array_equal(mine.value, its.value)
        assert Table.settings_for(str(tmp_path / name)) is not None
        assert other.unused() == (["a column without a name"] if name == "e.csv" else [])
    assert first.form.kind is InputKind.SET
    assert first.vocabulary.nodes == ("end", "inner")
    assert first.capacity == 5


def test_arrays_as_numpy_prints_them_are_lists(tmp_path):
    """Without commas: Python would take the labels for one text, and the numbers for nothing."""
    given = rows()
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerow(given[0])
        csv.writer(file).writerows(
            [str(np.array(cell)) if isinstance(cell, list) else cell for cell in row.values()] for row in given
        )
    assert "['end' 'inner' 'end']" in path.read_text()
    other = understand(TableTask(data=str(path)))
    plain = understand(TableTask(data=str(write_jsonl(tmp_path / "a.jsonl", given))))
    for mine, its in zip(plain.samples["train"], other.samples["train"], strict=True):
        assert mine.graph == its.graph
        assert np.array_equal(mine.value, its.value)
    shortened = [{**row, "points": str(np.zeros((2000, 2)))} for row in given]
    said = refusal(write_jsonl(tmp_path / "b.jsonl", shortened))
    assert "column points holds nothing that can be read (numpy has written ... for a part of it" in said


def test_a_spreadsheet_with_decimal_commas(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x;y;nodes;edges\n" + "".join(f'{at},25;-0,5;["a", "b"];[[0, 1]]\n' for at in range(60)))
    found = understand(TableTask(data=str(path)))
    assert not found.all_rejected()
    assert found.form.raw(found.samples["train"][0].value).tolist() == pytest.approx([0.25, -0.5], abs=1e-4)
    path.write_bytes('x,nodes,edges\n1,"[""grün""]",[]\n'.encode("cp1252"))
    assert "is not UTF-8 text" in refusal(path)
    assert "save it as UTF-8" in refusal(path)


def test_edges_may_name_nodes_by_labels_that_are_told_apart(tmp_path):
    named = rows(
        60, lambda _: {"nodes": ["tank", "pump", "valve"], "edges": [["tank", "pump"], ["pump", "valve"]]}
    )
    named[7] |= {"nodes": ["tank", "pump", "pump"]}
    own = table(write_jsonl(tmp_path / "a.jsonl", named))
    assert own.data("train")[0].graph.edges.tolist() == [[0, 1], [1, 2]]
    (only,) = own.rejections()
    assert only.detail.endswith(
        "edge 0 must name nodes by their index, from 0, got 'pump', which is the label of 2 nodes"
    )


def test_measurements_are_no_labels(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "a.jsonl"
    weighted = rows(60, lambda _: {"edges": [[0, 1, float(rng.random())], [1, 2, float(rng.random())]]})
    said = refusal(write_jsonl(path, weighted))
    assert "edges have 80 different numbers for labels" in said
    assert "weights are not predicted: leave them out" in said
    sized = rows(60, lambda at: {"nodes": rng.random(3 + at % 3).tolist()})
    assert "numbers of a node go into its attributes" in refusal(write_jsonl(path, sized))
    orders = rows(60, lambda at: {"edges": [[0, 1, 1.5], [1, 2, at % 2]]})
    assert table(write_jsonl(path, orders)).vocabulary.edges[1:] == ("0", "1", "1.5")


def test_edges_as_two_lists_of_ends_are_refused(tmp_path):
    """Also where some rows have two edges, and could be taken for pairs."""
    path = tmp_path / "a.jsonl"
    turned = [row | {"edges": [list(ends) for ends in zip(*row["edges"], strict=True)]} for row in rows()]
    assert min(len(row["edges"][0]) for row in turned) == 2
    assert "edges are two lists of ends in every row" in refusal(write_jsonl(path, turned))
    pairs = rows(60, lambda _: {"edges": [[0, 1], [1, 2]]})
    assert not table(write_jsonl(path, pairs)).rejections()


def test_what_nothing_is_made_of_is_told_before_training(tmp_path):
    colored = linked(lambda _, node: {"color": f"c{node % 2}"})
    lines = table(write_jsonl(tmp_path / "a.jsonl", colored)).choice().lines
    assert "not used  nodes' color (labels are read from the field label)" in lines


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
        ({"edges": [[0, 9]]}, "index out of range", "edges: edge 0 names node 9, the graph has 4, counted from 0"),
        ({"edges": [[0, -1]]}, "index out of range", "edges: edge 0 names node -1"),
        ({"edges": [[0, 1, "a"], [1, 0, "b"]]}, "duplicate edge", "joins nodes 0 and 1 again, as 'b'; before it"),
        ({"edges": [[0]]}, "not a pair", "edges: edge 0 must be [i, j] or [i, j, label], got [0]"),
        ({"edges": [["a", "b"]]}, "not an index", "edges: edge 0 must name nodes by their index"),
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


def test_a_row_says_what_is_wrong_with_its_own_cells_first(tmp_path):
    """Where no picture is there, capacity and labels are unknown, and not to blame."""
    missing = rows(60, lambda at: {"points": f"none{at}.png"})
    reasons = {each.reason for each in table(write_jsonl(tmp_path / "a.jsonl", missing)).rejections()}
    assert reasons == {"no such picture"}


def test_a_list_of_edges_alone_is_a_graph(tmp_path):
    listed = [{key: value for key, value in row.items() if key != "nodes"} for row in rows()]
    listed[0] |= {"edges": [[0, 10**12]]}
    listed[1] |= {"edges": [[0, "b"]]}
    listed[2] |= {"edges": []}
    own = table(write_jsonl(tmp_path / "a.jsonl", listed))
    assert own.capacity == 5
    assert is_isomorphic(own.data("train")[0].graph, Graph.build(["node"] * 3, [(0, 1), (1, 2)]))
    assert [each.reason for each in own.rejections()] == ["too large", "not an index", "empty graph"]
    (tmp_path / "a.csv").write_text("x,edges\n" + '1,"[[0, 1]]"\n' * 30)
    assert Table.settings_for(str(tmp_path / "a.csv")) is not None
    numbers = [row | {"attributes": [1.0]} for row in listed]
    assert "has a column attributes but no column nodes" in refusal(write_jsonl(tmp_path / "b.jsonl", numbers))


def test_what_a_file_lacks_is_said(tmp_path):
    path = tmp_path / "a.jsonl"
    assert "has a column nodes but no column edges" in refusal(write_jsonl(path, without("edges")))
    none = refusal(write_jsonl(path, without("nodes", "edges")))
    assert (
        "has no graph: columns nodes and edges, or graph, or smiles_target, are missing; it has id, points" in none
    )
    capitals = [{key.capitalize(): value for key, value in row.items()} for row in rows()]
    assert "it has Id, Points, Nodes, Edges, Split; call Nodes, Edges nodes, edges" in refusal(
        write_jsonl(path, capitals)
    )
    path.write_text(json.dumps(rows()[0], indent=2))
    assert "has no row that can be read; row 1, the line: the JSON cannot be read" in refusal(path)
    huge = rows(60, lambda _: {"points": 10**400})
    assert "no training row has usable numbers in points; the first: points: the value is infinite" in refusal(
        write_jsonl(path, huge)
    )
    (tmp_path / "a.csv").write_text("graph_id,source,target\n1,0,1\n")
    assert Table.settings_for(str(tmp_path / "a.csv")) is not None
    assert "(a row is an input with its whole graph" in refusal(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("id,canonical_smiles\n1,C\n")
    assert Table.settings_for(str(tmp_path / "b.csv")) is None
    (tmp_path / "a.json").write_text(json.dumps({"x": {"0": 1.5}, "edges": {"0": [[0, 1]]}}))
    assert Table.settings_for(str(tmp_path / "a.json")) is not None
    assert 'to_json(orient="records")' in refusal(tmp_path / "a.json")
    objects = rows(60, lambda _: {"nodes": [{"id": 0, "label": "a"}], "edges": []})
    assert "nodes that are objects go into a column graph" in refusal(write_jsonl(path, objects))
    assert "has no input column" in refusal(write_jsonl(path, without("points")))
    for column in ("graph", "smiles_target"):
        both = rows(60, lambda _, column=column: {column: "C"})
        assert "keep one way to give the graph" in refusal(write_jsonl(path, both))
    assert "has no rows" in refusal(write_jsonl(path, []))
    write_jsonl(path, rows())
    assert "has no column colour, which task.inputs names" in refusal(path, inputs="colour")
    text = rows(60, lambda _: {"points": "some words"})
    assert "column points holds text, such as 'some words'" in refusal(write_jsonl(path, text))
    twice = rows(60, lambda _: {"others": [[1.5]]})
    assert "the input columns are points (set), others (set); choose with" in refusal(write_jsonl(path, twice))
    hidden = [row | {"attributes": [[1.0]]} for row in linked(lambda _, __: {})]
    assert "numbers of nodes go into the graph's nodes" in refusal(write_jsonl(path, hidden))
    write_jsonl(path, linked(lambda _, node: {"x": node}))
    assert "nodes have the number 'z', which task.attributes names; they have x" in refusal(path, attributes="z")
    assert "does not exist" in refusal(tmp_path / "none.jsonl")
    assert "a table's name ends in .parquet, .jsonl, .ndjson, .json, .csv, .tsv, not in .txt" in refusal(
        tmp_path / "none.txt"
    )


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
        ([[1.0, 2.0]] * 3 + [[1.0]], "not a number", "attributes: entry 3 must be 2 numbers, got [1.0]"),
        ([[1.0, 2.0]] * 3 + [[1.0, "a"]], "not a number", "attributes: entry 3 must be 2 numbers, got"),
        ([[1.0, 2.0]] * 3 + [[1.0, None]], "not a number", "attributes: entry 3 must be 2 numbers, got"),
        ([[1.0, float("inf")]] * 4, "NaN", "attributes: entry 0.attributes is inf"),
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


def test_kinds_together_are_read_side_by_side_the_one_that_owns_nodes_first(tmp_path):
    given = rows(60, lambda at: {"weight": 2.0 * at, "words": ["a", "b"][: 1 + at % 2], "extra": [0.5, at]})
    path = write_jsonl(tmp_path / "a.jsonl", [{k: v for k, v in row.items() if k != "points"} for row in given])
    own = table(path)
    assert [(part.kind, part.columns) for part in own.form.parts] == [
        ("tokens", ("words",)),
        ("vector", ("weight", "extra")),
    ]
    assert (own.form.kind, own.form.encoder, own.form.owning) == (InputKind.SEVERAL, "several", True)
    assert Form.from_text(own.form.text) == own.form
    inputs = own.data("train").batch([0, 1])[0]
    assert [tuple(each.shape) for each in inputs] == [(2, 3), (2, 3)]
    assert all(
        torch.equal(a, b) for a, b in zip(own.inputs(given[0]), own.data("train").batch([0])[0], strict=True)
    )
    with pytest.raises(ValueError, match="expected a mapping with the columns words, weight, extra"):
        own.inputs([1.0, 2.0])
    older = json.loads(own.form.parts[1].text)
    del older["side"], older["parts"]
    assert Form.from_text(json.dumps(older)) == own.form.parts[1]


PICTURES = {
    "wide.png": ("RGB", (20, 10)),
    "tall.png": ("RGBA", (10, 20)),
    "grey.png": ("L", (16, 16)),
    "deep.png": ("I;16", (16, 16)),
    "palette.gif": ("P", (12, 12)),
}


def picture_rows(folder, path_of=lambda path: path.name, count=60):
    """Pictures of all modes and sizes in a folder, a row for each; all are dark on the left, white elsewhere."""
    folder.mkdir(exist_ok=True)
    for name, (mode, size) in PICTURES.items():
        pixels = np.full((size[1], size[0]), 255, np.uint8)
        pixels[:, : size[0] // 2] = 0
        if mode == "I;16":
            Image.fromarray(pixels.astype(np.uint16) * 257).save(folder / name)
            continue
        picture = Image.fromarray(pixels).convert(mode)
        if mode == "RGBA":
            picture.putalpha(Image.fromarray(np.where(pixels > 0, 0, 255).astype(np.uint8)))
        picture.save(folder / name)
    names = list(PICTURES)
    return [
        {"picture": path_of(folder / names[at % len(names)]), **{k: v for k, v in row.items() if k != "points"}}
        for at, row in enumerate(rows(count))
    ]


@pytest.mark.parametrize("stored", ["relative", "bytes", "hugging face"])
def test_pictures_of_any_size_and_mode_become_squares(tmp_path, stored):
    given = picture_rows(tmp_path / "pairs")
    path = tmp_path / "pairs" / "table.parquet"
    for row in given:
        content = (tmp_path / "pairs" / row["picture"]).read_bytes()
        if stored == "bytes":
            row["picture"] = content
        if stored == "hugging face":
            row["picture"] = {"bytes": content, "path": None}
    parquet.write_table(pa.Table.from_pylist(given), path)
    own = table(path)
    assert not own.rejections()
    assert (own.form.kind, own.form.side, own.form.encoder) == (InputKind.PICTURE, 16, "cnn")
    inputs, _ = own.data("train").batch(range(10))
    assert tuple(inputs.shape) == (10, 3, 16, 16)
    assert (float(inputs.min()), float(inputs.max())) == (0, 1)
    # Dark on the left, white on the right, whatever the mode; the letterbox has the border's colour.
    for picture in inputs:
        assert float(picture[:, 6:10, 4].max()) < 0.1
        assert float(picture[:, 6:10, 11].min()) > 0.9
    assert table(path, side=32).form.side == 32


def test_pictures_in_hand_and_pictures_that_cannot_be_read(tmp_path):
    given = picture_rows(tmp_path / "pairs")
    given[3]["picture"], given[10]["picture"] = "none.png", "torn.png"
    (tmp_path / "pairs" / "sub").mkdir()
    shutil.copy(tmp_path / "pairs" / "wide.png", tmp_path / "pairs" / "sub")
    given[2]["picture"] = "sub\\wide.png"  # as Windows has it
    (tmp_path / "pairs" / "torn.png").write_bytes(b"no picture")
    own = table(write_jsonl(tmp_path / "pairs" / "a.jsonl", given))
    missing, torn = own.rejections()
    assert (missing.row, missing.reason) == (4, "no such picture")
    assert f"row 4, picture: there is no file {tmp_path / 'pairs' / 'none.png'}" in missing.detail
    assert (torn.row, torn.reason) == (11, "not a picture")
    file = tmp_path / "pairs" / "wide.png"
    arrays = np.asarray(Image.open(file))
    from_file = own.inputs([next(own.read(file)).value])
    for held in (
        str(file),
        file,
        Image.open(file),
        arrays,
        arrays.transpose(2, 0, 1),
        (arrays / 255).astype(np.float32),
    ):
        assert torch.equal(own.inputs(held), from_file)
    assert tuple(own.inputs([file, Image.open(file)]).shape) == (2, 3, 16, 16)
    with pytest.raises(ValueError, match="floats must be 0 to 1"):
        own.inputs(arrays.astype(np.float32))
    # A page's visitor gives pictures, and names none of the machine's.
    (refused,) = own.page.inputs(write_jsonl(tmp_path / "asked.jsonl", [{"picture": str(file)}]), "")
    assert "row 1, picture: give the picture itself: paths are not followed here" in refused.message
    (taken,) = own.page.inputs(file, "")
    assert torch.equal(own.inputs([taken.value]), from_file)
    digest = own.data("train").digest()
    Image.new("RGB", (20, 10)).save(file)
    assert table(write_jsonl(tmp_path / "pairs" / "a.jsonl", [*given])).data("train").digest() != digest


def test_an_example_of_the_page_reads_its_own_row_alone(tmp_path):
    given = picture_rows(tmp_path / "pairs")
    path = write_jsonl(tmp_path / "pairs" / "a.jsonl", given)
    known = Table(table(path).resolved())
    last = max(at for at, row in enumerate(given) if row["split"] == "test")
    spoilt = [row if at == last else row | {"picture": "gone.png"} for at, row in enumerate(given)]
    write_jsonl(path, spoilt)
    for number in (0, 3, 10**6):  # whichever is asked for, the next that can be used
        example = known.page.example(number, Wish())
        assert example.shown.name == f"row {last + 1} of a.jsonl, of its test split"
        assert example.truth.node_names == given[last]["nodes"]
    write_jsonl(path, [row | {"picture": "gone.png"} for row in given])
    with pytest.raises(ValueError, match="has no usable test row to take as an example"):
        known.page.example(0, Wish())
    path.unlink()
    with pytest.raises(ValueError, match=r"^The table a\.jsonl of this run is not there any more: paste a row"):
        known.page.example(0, Wish())


def test_the_truth_of_a_row_of_a_file_is_its_own(tmp_path):
    """By its place: people's ids are not always different."""
    own = table(write_jsonl(tmp_path / "a.jsonl", rows()))
    alike = [row | {"id": "same"} for row in rows(3)]
    alike[1] |= {"edges": None}
    asked = write_jsonl(tmp_path / "asked.jsonl", alike)
    truths = [own.page.case(each, "a row", asked).truth for each in own.page.inputs(asked, "")]
    assert truths[1] is None
    assert [truth.node_names for truth in (truths[0], truths[2])] == [alike[0]["nodes"], alike[2]["nodes"]]
    inputs = write_jsonl(tmp_path / "inputs.jsonl", [{"points": row["points"]} for row in alike])
    assert [own.page.case(each, "a row", inputs).truth for each in own.page.inputs(inputs, "")] == [None] * 3


def test_a_folder_of_pictures_with_a_table_is_data(tmp_path):
    folder = tmp_path / "drawn"
    write_jsonl(folder / "table.jsonl", picture_rows(folder))
    assert load_run(str(folder)).task.data == str(folder / "table.jsonl")
    write_jsonl(folder / "more.jsonl", picture_rows(folder))
    with pytest.raises(
        ValueError, match=r"holds several tables of graphs, more.jsonl, table.jsonl: give one of them"
    ):
        load_run(str(folder))
    (folder / "more.jsonl").unlink()
    (folder / "config.yaml").write_text("")
    assert Table.settings_for(str(folder)) is None


MOLECULES = ["CCO", "c1ccccc1", "CC(=O)N", "CCN", "OCC=O", "C1CC1"]


def test_smiles_are_read_as_molecule_tasks_do(tmp_path):
    given = [{"input": MOLECULES[at % 6], "smiles_target": MOLECULES[at % 6]} for at in range(60)]
    given[7]["smiles_target"], given[8]["input"] = "C(", "C1"
    own = table(write_jsonl(tmp_path / "a.jsonl", given))
    assert (own.form.kind, own.form.encoder) == (InputKind.BITS, "fingerprint")
    assert {(each.row, each.reason) for each in own.rejections()} == {(8, "not a molecule"), (9, "not a molecule")}
    assert own.vocabulary == molecule_vocabulary(["C", "N", "O"])
    assert own.understood.owners is Owners.FREE
    tokens = own.data("train").batch([0])[0]
    assert torch.equal(own.inputs("CCO"), fingerprint_batch("CCO"))
    assert torch.equal(own.inputs(["CCO"]), own.inputs("CCO"))
    assert tokens.dtype == torch.int64
    sample = own.data("train")[0]
    assert own.text(sample.graph) == smiles_from_graph(sample.graph)
    (read,) = own.read_words(["CC.O"])
    assert read.name == "CC.O"


def test_spectra_are_read_as_their_task_does_with_what_is_known_of_them(tmp_path):
    def peaks(at):
        found = {"peaks": [[91.05 + at % 3, 10.0], [65.04, 3.0]], "precursor_mz": 122.06 if at % 2 else None}
        return found | {"adduct": "[M+H]+", "formula": "C7H7NO"}

    given = [{k: v for k, v in row.items() if k != "points"} for row in rows(60, peaks)]
    given[9]["peaks"] = [[91.0, -1.0]]
    own = table(write_jsonl(tmp_path / "a.jsonl", given))
    assert own.form.columns == ("peaks", "precursor_mz", "adduct", "formula")
    assert (own.form.kind, own.form.encoder) == (InputKind.SPECTRUM, "spectrum")
    inputs, _ = own.data("train").batch([0, 1])
    mzs, intensities = tidy_peaks([92.05, 65.04], [10.0, 3.0])
    known = {"precursor_mz": 122.06, "adduct": "[M+H]+", "formula": "C7H7NO"}
    expected = spectrum_batch(SpectrumTask(), Spectrum(mzs, intensities, Origin("x"), **known))
    for mine, its in zip(inputs, expected, strict=True):
        torch.testing.assert_close(mine[1:], its, rtol=0, atol=0, equal_nan=True)
    assert float(inputs.precursor[0].abs().sum()) == 0
    assert [(each.row, each.reason) for each in own.rejections()] == [(10, "not a spectrum")]
    alone = own.inputs([[92.05, 10.0], [65.04, 3.0]])
    assert tuple(alone.peaks.shape[:2]) == (1, 2)


def test_elements_own_nodes_in_order_where_sizes_always_agree_and_inspect_says_so(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", rows())
    own = table(path)
    assert own.understood.owners is Owners.ORDER
    assert dict(own.explained())["elements"].startswith("element i may stand for node i alone")
    assert own.resolved().owners == "order"
    data = own.data("train")
    assert data.batch([0])[1].owners is None
    data.owners = True
    inputs, target = data.batch([0, 1])
    assert target.owners.shape == (2, 1 + inputs.mask.shape[1], own.capacity)
    assert target.owners[0].nonzero().tolist() == [[1, 0], [2, 1], [3, 2]]
    free = table(path, owners="free").data("train")
    free.owners = True
    assert free.batch([0])[1].owners is None
    more = table(write_jsonl(tmp_path / "b.jsonl", rows(60, lambda at: {"points": [[0.0, at]] * (4 + at % 3)})))
    assert more.understood.owners is Owners.FREE
    with pytest.raises(ValueError, match=r"task.owners order: .*row 1 has 4 elements and a graph of 3 nodes"):
        table(tmp_path / "b.jsonl", owners="order").resolved()


def test_kinds_that_are_not_built_in_by_chance(tmp_path):
    """Every kind of input keeps what training, prediction and reports rely on."""
    folder = tmp_path / "pairs"
    kinds = {
        "picture": picture_rows(folder, count=40),
        "several": rows(40, lambda at: {"weight": float(at)}),
        "bits": [row | {"points": MOLECULES[at % 6]} for at, row in enumerate(rows(40))],
        "spectrum": [
            {k: v for k, v in row.items() if k != "points"} | {"peaks": [[91.0 + at, 5.0]] * (1 + at % 2)}
            for at, row in enumerate(rows(40))
        ],
    }
    for kind, given in kinds.items():
        path = write_jsonl(folder / f"{kind}.jsonl", given)
        own = table(path)
        assert own.form.kind == kind
        check_task(own, path, samples=3)
        check_encoder(own.form.encoder, own, samples=3)


def test_nodes_are_drawn_where_they_are_the_right_way_up(tmp_path):
    """A report's y is downwards, as in a picture; that of points is upwards."""
    corners = {"attributes": [{"x": 0, "y": 0}, {"x": 1, "y": 0}, {"x": 0, "y": 1}]}
    three = {"nodes": ["a"] * 3, "edges": [[0, 1]], **corners}
    points = table(write_jsonl(tmp_path / "a.jsonl", rows(60, lambda _: three)))
    assert points.positions(points.data("train")[0]).tolist() == [[-1, 1], [1, 1], [-1, -1]]
    case = points.page.sample_case(points.data("train")[0], "a row")
    assert case.positions.tolist() == [[-1, 1], [1, 1], [-1, -1]]
    # A prediction is drawn where it says that its nodes are; the truth is where it is.
    moved = Graph.build(["a"] * 3, [(0, 1)], vocabulary=case.truth.vocabulary, attributes=[[0, 1], [0, 0], [1, 0]])
    (compared,) = compare([moved], case.truth)
    drawn = graph_drawing(moved, {}, compared, true_positions=case.positions, own=points.page.where(moved))
    assert [(round(node.x), round(node.y)) for node in drawn.nodes] == [(0, 0), (0, 1), (1, 1)]
    assert [node.numbers for node in drawn.nodes] == [{"x": 0, "y": 1}, {"x": 0, "y": 0}, {"x": 1, "y": 0}]
    seen = [row | three for row in picture_rows(tmp_path / "pairs")]
    pictures = table(write_jsonl(tmp_path / "pairs" / "a.jsonl", seen))
    assert pictures.positions(pictures.data("train")[0]).tolist() == [[-1, -1], [1, -1], [-1, 1]]


@pytest.mark.parametrize(
    ("cells", "tells"),
    [
        (lambda at: {"points": [[0.029 * node, float(at)] for node in range(3)]}, True),
        (lambda at: {"points": [0.25 * at, 1.0, 3.0]}, True),
        (lambda at: {"points": at / 8}, True),
        (lambda at: {"points": ["a", "b", "ab"[at % 2]]}, True),
        (lambda at: {"points": [[0.5, float(at)]], "weight": at / 4}, True),
        (lambda at: {"points": MOLECULES[at % 6]}, False),
    ],
)
def test_a_row_is_shown_as_it_can_be_pasted_again(tmp_path, cells, tells):
    own = table(write_jsonl(tmp_path / "pairs.jsonl", rows(60, cells)))
    sample = own.data("test")[0]
    text = own.page.sample_case(sample, "a row").shown.text
    assert (text is not None) == tells
    if tells:
        assert json.loads(text) == cells(sample.row - 1)


def test_pasted_rows_may_be_one_object_many_or_the_value_of_the_only_column(tmp_path):
    page = table(write_jsonl(tmp_path / "pairs.jsonl", rows())).page
    for text in ('{"points":\n [[0.5, 1]]}', "[[0.5,\n1]]", '[{"points": [[0.5, 1]]}]'):
        assert json.loads(page.pasted(text, Ion())) == {"points": [[0.5, 1]]}
    assert len(page.pasted('[{"points": []}, {"points": []}]', Ion()).splitlines()) == 2
    with pytest.raises(
        ValueError, match=r"a row is JSON, as {\"points\": ...}, and this begins with 'points = 3'"
    ):
        page.pasted("points = 3", Ion())
    given = [{"input": MOLECULES[at % 6], "smiles_target": MOLECULES[at % 6]} for at in range(60)]
    molecules = table(write_jsonl(tmp_path / "molecules.jsonl", given)).page
    for text in ("[NH4+]\n\n CCO", '{"input": "[NH4+]"}\n{"input": "CCO"}'):
        lines = molecules.pasted(text, Ion()).splitlines()
        assert [json.loads(line) for line in lines] == [{"input": "[NH4+]"}, {"input": "CCO"}]


def test_a_row_in_hand_that_lacks_a_column_is_told_which(tmp_path):
    own = table(write_jsonl(tmp_path / "pairs.jsonl", rows()))
    with pytest.raises(ValueError, match=r"^a row needs points; points is missing, there is pts$"):
        own.inputs({"pts": [[0.5, 1]]})
    with pytest.raises(ValueError, match="expected points: a set of vectors of 2 numbers, or several; got str"):
        own.given('{"points": [[0.5, 1.5]]}')
