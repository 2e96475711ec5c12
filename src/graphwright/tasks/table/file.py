"""Rows of a Parquet, JSONL or CSV file, and the graph that a row says."""

from __future__ import annotations

import ast
import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from graphwright.files import check_row_counts, encoding_of, separator_of, sha256_of
from graphwright.graphs import Attribute, Graph, Vocabulary, from_json
from graphwright.graphs.convert import measurements
from graphwright.graphs.molecules import MoleculeError, graph_from_molecule, molecule_vocabulary, parse_smiles


class RowError(ValueError):
    """A row of which no sample is made. reason: the sort of fault, for counts. field: the column."""

    def __init__(self, reason: str, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.reason, self.field, self.detail = reason, field, detail


LONGEST_CELL = 2**27
"""Characters of a CSV cell: a large graph as JSON is longer than the 131,072 that Python allows unasked."""
Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class TableFile:
    """The rows of a file, or what is wrong with them; numbers: how a person counts them, from 1.

    Rows are counted below the header of a CSV file, lines in a JSONL file.
    """

    path: Path
    columns: tuple[str, ...]
    rows: list[Row | RowError]
    numbers: list[int]

    def __len__(self) -> int:
        return len(self.rows)

    def digest(self) -> str:
        """SHA-256 of the file."""
        return sha256_of(self.path)


def read_table(path: Path) -> TableFile:
    """All rows of a file; an error says in a sentence what the file lacks."""
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise ValueError(f"{path}: a table's name ends in {', '.join(READERS)}, not in {suffix or 'nothing'}")
    if not path.is_file():
        raise ValueError(f"{path} does not exist")
    try:
        table = READERS[suffix](path)
    except UnicodeDecodeError as error:
        fault = f"{error.reason} at byte {error.start}"
        raise ValueError(f"{path} is not UTF-8 text ({fault}): save it as UTF-8, Excel's CSV UTF-8") from error
    # Two columns of one name are a KeyError.
    except (OSError, KeyError, pa.ArrowException) as error:
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not len(table):
        raise ValueError(f"{path} has no rows")
    first = table.rows[0]
    if isinstance(first, RowError) and not table.columns:
        raise ValueError(f"{path} has no row that can be read; row {table.numbers[0]}, {first}")
    return table


def parsed(value: Any, field: str) -> Any:
    """A cell's value; text that is a list or an object, as JSON or Python writes it, is what it says."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        if "..." in value:
            detail = "numpy has written ... for a part of it: write lists, by tolist()"
            raise RowError("unreadable JSON", field, detail) from error
        with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return _plain(ast.literal_eval(_with_commas(value.strip())))
        raise RowError("unreadable JSON", field, f"the JSON cannot be read: {error}") from error


def _with_commas(text: str) -> str:
    """What numpy prints of an array, as Python writes a list: without commas ['a' 'b'] would be one text."""
    return text if "," in text else BETWEEN_ELEMENTS.sub(", ", text)


BETWEEN_ELEMENTS = re.compile(r"""(?<=[\d.'"\]])\s+(?=[\d.'"\[+-])""")


def _plain(value: Any) -> Any:
    """A Python value as JSON has it: tuples are lists; what JSON has not is a TypeError."""
    return json.loads(json.dumps(value))


def _parquet(path: Path) -> TableFile:
    check_row_counts(path)
    table = parquet.read_table(path)
    repeated = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if repeated:
        raise ValueError(f"{path} has two columns {repeated[0]!r}")
    rows: list[Row | RowError] = list(table.to_pylist())
    return TableFile(path, tuple(table.column_names), rows, list(range(1, len(rows) + 1)))


def _json(path: Path) -> TableFile:
    """Objects, one a line, or all of them in one list."""
    if _is_one_object(path):
        raise ValueError(
            f"{path} is one object, and a table is a list of objects, one a row: pandas writes it by "
            'to_json(orient="records")'
        )
    listed = _json_list(path)
    rows: list[Row | RowError] = []
    numbers: list[int] = []
    columns: dict[str, None] = {}
    with path.open(encoding=_encoding(path)) as lines:
        read = map(_json_line, lines) if listed is None else map(_json_row, listed)
        for number, row in enumerate(read, 1):
            if row is None:
                continue
            rows.append(row)
            numbers.append(number)
            if not isinstance(row, RowError):
                columns |= dict.fromkeys(row)
    return TableFile(path, tuple(columns), rows, numbers)


def _json_list(path: Path) -> list[Any] | None:
    """The rows of a file that is one list of objects; None of any other."""
    with path.open(encoding=_encoding(path)) as file:
        if not _begins_list(file.read(2**10)):
            return None
        file.seek(0)
        with suppress(ValueError, RecursionError):
            listed = json.load(file)
            return listed if isinstance(listed, list) else None
    return None


def _begins_list(start: str) -> bool:
    """Whether a text begins as a list of objects does."""
    return re.match(r"\s*\[\s*\{", start) is not None


def is_json_table(path: Path) -> bool:
    """Whether a .json file is a list of rows, or means to be one, not settings or a model."""
    try:
        with path.open(encoding=_encoding(path), errors="replace") as file:
            return _begins_list(file.read(2**10)) or _is_one_object(path)
    except OSError:
        return False


def _is_one_object(path: Path) -> bool:
    """Whether a .json file is a single object with the columns of a graph, as pandas writes a frame unasked."""
    if path.suffix.lower() != ".json":
        return False
    try:
        given = json.loads(path.read_text(encoding=_encoding(path), errors="replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(given, dict) and not {EDGES, GRAPH, SMILES}.isdisjoint(given)


def _encoding(path: Path) -> str:
    with path.open("rb") as file:
        return encoding_of(file.read(4))


def _json_line(line: str) -> Row | RowError | None:
    """None of an empty line."""
    if not line.strip():
        return None
    try:
        return _json_row(json.loads(line))
    except (ValueError, RecursionError) as error:
        return RowError("unreadable JSON", "the line", f"the JSON cannot be read: {error}; a row is one line")


def _json_row(row: Any) -> Row | RowError:
    if not isinstance(row, dict):
        return RowError("unreadable JSON", "the line", f"expected an object with the columns, got {_shown(row)}")
    return row


def _csv(path: Path) -> TableFile:
    rows: list[Row | RowError] = []
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        with path.open(encoding=_encoding(path), newline="") as lines:
            separator = separator_of(lines.readline())
            lines.seek(0)
            records = _records(path, lines, separator)
            header = tuple(name.strip() for name in next(records, []))
            repeated = sorted({name for name in header if name and header.count(name) > 1})
            if repeated:
                raise ValueError(f"{path} has two columns {repeated[0]!r}")
            for record in records:
                if not record:
                    continue
                if len(record) != len(header):
                    hint = " (a list goes between quotes)" if len(record) > len(header) else ""
                    fault = f"{len(record)} cells for {len(header)} columns{hint}"
                    rows.append(RowError("wrong number of cells", "the row", fault))
                else:
                    cells = zip(header, record, strict=True)
                    rows.append({name: _cell(text, separator == ";") for name, text in cells})
    finally:
        csv.field_size_limit(before)
    return TableFile(path, header, rows, list(range(1, len(rows) + 1)))


def _records(path: Path, lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    reader = csv.reader(lines, delimiter=separator, strict=True)
    begun, row = 1, 0
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            open_quote = "unexpected end" in str(error)
            fault = "a quote is opened and never closed" if open_quote else str(error)
            raise ValueError(f"{path}, row {row}, which begins in line {begun}: {fault}") from error
        yield record
        begun, row = reader.line_num + 1, row + 1


DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE)


def _cell(text: str, commas: bool) -> Any:
    """A number, nothing, or text; lists and objects stay text until somebody asks for them.

    commas: whether decimals may be written with one, as they are where cells are told apart by semicolons.
    """
    plain = text.strip()
    if not plain:
        return None
    if commas and DECIMAL_COMMA.fullmatch(plain):
        plain = plain.replace(",", ".")
    try:
        return int(plain) if plain.lstrip("+-").isdigit() else float(plain)
    except ValueError:
        return plain


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


READERS: dict[str, Callable[[Path], TableFile]] = {
    ".parquet": _parquet,
    ".jsonl": _json,
    ".ndjson": _json,
    ".json": _json,
    ".csv": _csv,
    ".tsv": _csv,
}
"""By the end of a file's name."""


NODES, EDGES, GRAPH, ATTRIBUTES, DIRECTED = "nodes", "edges", "graph", "attributes", "directed"
SMILES = "smiles_target"
UNLABELLED_NODE, UNLABELLED_EDGE = "node", "edge"
"""What nodes and edges without a label are called."""
MOST_UNLABELLED = 100_000
"""Nodes that a number stands for: far more than are predicted, and few enough to be made before that is told."""
LARGEST_NUMBER = 1e30
"""The largest that a node may have: of larger ones no mean and no deviation can be had in single precision."""


def target_columns(every: Sequence[str], inputs: Sequence[str], where: object) -> tuple[str, ...]:
    """The columns that hold the graph: graph, edges alone, or nodes, edges and perhaps attributes, or a SMILES.

    An error says what lacks.

    every: all columns of the file, of which some are the input.
    """
    columns = [name for name in every if name not in inputs]
    has_graph, listed = GRAPH in columns, [name for name in (NODES, EDGES) if name in columns]
    ways = [*([GRAPH] if has_graph else []), *([SMILES] if SMILES in columns else []), *listed[:1]]
    if len(ways) > 1:
        raise ValueError(f"{where} has a column {ways[0]} and a column {ways[1]}: keep one way to give the graph")
    if SMILES in columns:
        if ATTRIBUTES in columns:
            raise ValueError(f"{where} has a column {SMILES} and a column {ATTRIBUTES}: atoms have no numbers")
        return (SMILES,)
    if has_graph and ATTRIBUTES in columns:
        raise ValueError(
            f"{where} has a column {GRAPH} and a column {ATTRIBUTES}: numbers of nodes go into the graph's nodes"
        )
    if has_graph:
        return (GRAPH,)
    if len(listed) == 2:
        return (NODES, EDGES, ATTRIBUTES) if ATTRIBUTES in columns else (NODES, EDGES)
    there = f"it has {', '.join(every)}" if every else "it has none"
    if listed == [EDGES] and ATTRIBUTES in columns:
        raise ValueError(
            f"{where} has a column {ATTRIBUTES} but no column {NODES}, whose numbers they are; {there}"
        )
    if listed == [EDGES]:
        return (EDGES,)
    if listed:
        raise ValueError(f"{where} has a column {NODES} but no column {EDGES}: the graph needs both; {there}")
    near = [name for name in every if name.lower() in (NODES, EDGES, GRAPH, SMILES)]
    hint = f"; call {', '.join(near)} {', '.join(map(str.lower, near))}" if near else ""
    raise ValueError(
        f"{where} has no graph: columns {NODES} and {EDGES}, or {GRAPH}, or {SMILES}, are missing; {there}{hint} "
        "(a row is an input with its whole graph; molecules to learn from have a column smiles)"
    )


def target_of(row: Row, columns: Sequence[str]) -> Graph:
    """The graph of a row, under a vocabulary of its own labels; `RowError` says what is wrong."""
    for name in columns:
        if row.get(name) is None:
            raise RowError("missing value", name, "there is none")
    if row.get(DIRECTED):
        raise RowError("directed graph", DIRECTED, "it is directed, and only undirected graphs can be predicted")
    if tuple(columns) == (GRAPH,):
        graph = _node_link(parsed(row[GRAPH], GRAPH))
    elif tuple(columns) == (SMILES,):
        graph = _molecule(row[SMILES])
    elif tuple(columns) == (EDGES,):
        edges = parsed(row[EDGES], EDGES)
        graph = _listed(_nodes_joined(edges), edges, None)
    else:
        measured = parsed(row[ATTRIBUTES], ATTRIBUTES) if ATTRIBUTES in columns else None
        graph = _listed(parsed(row[NODES], NODES), parsed(row[EDGES], EDGES), measured)
    if not graph.size:
        raise RowError("empty graph", columns[0], "the graph has no node")
    if graph.attributes is not None and (np.abs(graph.attributes) > LARGEST_NUMBER).any():
        raise RowError("too large", columns[-1], f"a node's number is larger than {LARGEST_NUMBER:g}")
    return graph


def _nodes_joined(edges: Any) -> int:
    """As many nodes as the largest index among the edges says; what is wrong with them is not told here."""
    listed = edges if isinstance(edges, list) else []
    ends = [end for edge in listed if isinstance(edge, list | tuple) for end in edge[:2]]
    return 1 + max((int(end) for end in ends if isinstance(end, int | float) and 0 <= end < math.inf), default=-1)


def _listed(nodes: Any, edges: Any, attributes: Any) -> Graph:
    if isinstance(nodes, int) and not isinstance(nodes, bool) and nodes >= 0:
        if nodes > MOST_UNLABELLED:
            raise RowError("too large", NODES, f"{_shown(nodes)} nodes, at most {MOST_UNLABELLED:,} are read")
        nodes = [UNLABELLED_NODE] * nodes
    if not isinstance(nodes, list):
        raise RowError("not a list", NODES, f'expected a list of labels, as ["a", "b"], got {_shown(nodes)}')
    labels = [_label(label, NODES, f"label {at}") for at, label in enumerate(nodes)]
    if not isinstance(edges, list):
        raise RowError("not a list", EDGES, f"expected a list of pairs, as [[0, 1], [1, 2]], got {_shown(edges)}")
    labelled: dict[tuple[int, int], str] = {}
    for at, edge in enumerate(edges):
        if not isinstance(edge, list | tuple) or len(edge) not in (2, 3):
            raise RowError("not a pair", EDGES, f"edge {at} must be [i, j] or [i, j, label], got {_shown(edge)}")
        first, second = (_index(node, labels, at) for node in edge[:2])
        label = UNLABELLED_EDGE if len(edge) == 2 else _label(edge[2], EDGES, f"the label of edge {at}")
        _refuse_loop(first, second, at, EDGES)
        _add(labelled, (min(first, second), max(first, second)), label, at, EDGES)
    pairs = sorted(labelled)
    measured = {} if attributes is None else _measured(attributes, len(labels))
    return _graph(labels, pairs, [labelled[pair] for pair in pairs], EDGES, measured)


def _measured(attributes: Any, nodes: int) -> dict[str, list[float]]:
    """By name a number for every node, from a list of numbers, of vectors or of objects, one for each node."""
    if not isinstance(attributes, list):
        raise RowError(
            "not a list", ATTRIBUTES, f"expected a list, an entry for each node, got {_shown(attributes)}"
        )
    if len(attributes) != nodes:
        raise RowError("wrong length", ATTRIBUTES, f"{len(attributes)} entries for {nodes} nodes")
    fields = [each if isinstance(each, Mapping) else {ATTRIBUTES: each} for each in attributes]
    entries = [_numbers(field, at) for at, field in enumerate(fields)]
    names = list(dict.fromkeys(name for entry in entries for name in entry))
    for at, (field, entry) in enumerate(zip(fields, entries, strict=True)):
        given = sum(len(value) if isinstance(value, list) else 1 for value in field.values())
        if set(entry) != set(names) or given != len(entry):
            plain = f"{len(names)} number{'' if len(names) == 1 else 's'}"
            expected = ", ".join(name for name in names if not name.startswith(ATTRIBUTES)) or plain
            detail = f"entry {at} must be {expected}, got {_shown(attributes[at])}"
            raise RowError("not a number", ATTRIBUTES, detail)
    return {name: [entry[name] for entry in entries] for name in names}


def _numbers(field: Mapping[str, Any], at: int) -> dict[str, float]:
    """The numbers of one node, by name."""
    try:
        return {name: value for name, (value,) in measurements([field]).items()}
    except ValueError as error:
        raise RowError("NaN", ATTRIBUTES, f"entry {at}{str(error).removeprefix('nodes[0]')}") from error


def _molecule(text: Any) -> Graph:
    """Atoms and bonds of a SMILES, without hydrogens, under the vocabulary of its own elements."""
    if not isinstance(text, str):
        raise RowError("not a molecule", SMILES, f"expected a SMILES, got {_shown(text)}")
    try:
        molecule = parse_smiles(text)
        symbols = sorted({atom.GetSymbol() for atom in molecule.GetAtoms()} - {"H"})
        return graph_from_molecule(molecule, molecule_vocabulary(symbols or ["C"]))
    except MoleculeError as error:
        raise RowError("not a molecule", SMILES, about(text, error)) from error
    except ValueError as error:  # an atom that stands for any
        raise RowError("not a molecule", SMILES, f"{_shown(text)}: {error}") from error


def about(text: str, error: MoleculeError) -> str:
    """What is wrong with a SMILES, which is named once."""
    return error.detail if repr(text) in error.detail else f"{text[:60]!r}: {error.detail}"


def _node_link(data: Any) -> Graph:
    """networkx's form; both orders of an edge may be there, as long as they say the same."""
    if not isinstance(data, Mapping):
        raise RowError("not node-link JSON", GRAPH, f"expected an object with nodes and edges, got {_shown(data)}")
    if data.get("directed"):
        raise RowError("directed graph", GRAPH, "it is directed, and only undirected graphs can be predicted")
    if data.get("multigraph"):
        detail = "it is a multigraph, and only graphs without parallel edges can be predicted"
        raise RowError("multigraph", GRAPH, detail)
    # A Parquet struct has every key that any row has.
    key = "links" if data.get("edges") is None else "edges"
    links = data.get(key)
    nodes = data.get("nodes")
    if not isinstance(nodes, list) or not isinstance(links, list):
        raise RowError("not node-link JSON", GRAPH, "expected lists nodes and edges (or links)")
    labelled: dict[tuple[str, str], str] = {}
    kept = []
    for at, link in enumerate(links):
        if not isinstance(link, Mapping):
            raise RowError("not node-link JSON", GRAPH, f"{key}[{at}] must be an object, got {_shown(link)}")
        ends = [repr(link.get(side)) for side in ("source", "target")]
        _refuse_loop(ends[0], ends[1], at, GRAPH)
        label = str(link.get("label"))
        if _add(labelled, (min(ends), max(ends)), label, at, GRAPH):
            kept.append(link)
    try:
        graph = from_json({"nodes": nodes, "edges": kept})
    except ValueError as error:
        unknown = "which is not in nodes" in str(error)
        raise RowError("index out of range" if unknown else "not node-link JSON", GRAPH, str(error)) from error
    return graph


NODE_LINK = ({"id", "label"}, {"source", "target", "label", "key"})
"""Fields of nodes and edges in node-link JSON that are understood besides the nodes' numbers."""


def unused_fields(row: Row, numbers: Sequence[str]) -> tuple[set[str], set[str]]:
    """Fields of nodes and of edges, in a node-link graph that can be read, that nothing is made of."""
    data = parsed(row[GRAPH], GRAPH)
    used = NODE_LINK[0] | {name.partition("[")[0] for name in numbers}
    links = data.get("links") if data.get("edges") is None else data["edges"]
    return _fields(data["nodes"]) - used, _fields(links) - NODE_LINK[1]


def _fields(records: Sequence[Mapping[str, Any]]) -> set[str]:
    return {str(name) for record in records for name, value in record.items() if value is not None}


def _add(labelled: dict[Any, str], pair: Any, label: str, at: int, field: str) -> bool:
    """Whether the pair is new; another label for it is an error."""
    if pair not in labelled:
        labelled[pair] = label
        return True
    if labelled[pair] != label:
        ends = " and ".join(map(str, pair))
        detail = f"edge {at} joins nodes {ends} again, as {label!r}; before it was {labelled[pair]!r}"
        raise RowError("duplicate edge", field, detail)
    return False


def _refuse_loop(first: Any, second: Any, at: int, field: str) -> None:
    if first == second:
        detail = f"edge {at} joins node {first} to itself, and only graphs without such edges can be predicted"
        raise RowError("self-loop", field, detail)


def _index(node: Any, labels: Sequence[str], at: int) -> int:
    """The index of a node that an edge names by its index, or by its label where no other node has that."""
    if isinstance(node, float) and node.is_integer():
        node = int(node)
    if isinstance(node, str) and labels.count(node) == 1:
        return labels.index(node)
    if not isinstance(node, int) or isinstance(node, bool):
        alike = labels.count(node) if isinstance(node, str) else 0
        why = f"{_shown(node)}, which is the label of {alike} nodes" if alike else _shown(node)
        raise RowError("not an index", EDGES, f"edge {at} must name nodes by their index, from 0, got {why}")
    if not 0 <= node < len(labels):
        detail = f"edge {at} names node {node}, the graph has {len(labels)}, counted from 0"
        raise RowError("index out of range", EDGES, detail)
    return node


def _label(label: Any, field: str, what: str) -> str:
    if isinstance(label, float) and math.isnan(label):
        raise RowError("NaN", field, f"{what} is NaN")
    if isinstance(label, bool) or not isinstance(label, str | int | float):
        objects = isinstance(label, Mapping)
        hint = f" (nodes that are objects go into a column {GRAPH}, with their edges)" if objects else ""
        raise RowError("not a label", field, f"{what} must be text or a number, got {_shown(label)}{hint}")
    return str(label)


def _graph(
    labels: list[str],
    pairs: list[tuple[int, int]],
    names: list[str],
    field: str,
    measured: Mapping[str, list[float]],
) -> Graph:
    try:
        plain = Vocabulary.of(labels, names)
        own = Vocabulary(plain.nodes, plain.edges, tuple(map(Attribute, measured)))
        values = list(zip(*measured.values(), strict=True)) if measured else None
        return Graph.build(labels, pairs, names, own, values)
    except ValueError as error:
        raise RowError("not a graph", field, str(error)) from error
