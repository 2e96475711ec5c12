"""A file of pairs, understood: which column is what, which rows are usable; and its splits as data sets."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from graphwright.graphs import Attribute, Graph, GraphBatch, Vocabulary
from graphwright.graphs.molecules import BONDS, molecule_vocabulary
from graphwright.models import Inputs
from graphwright.settings import TaskSettings
from graphwright.tasks.split import SPLIT_NAMES, SPLITS, Split, split_by_hash
from graphwright.tasks.table.file import (
    ATTRIBUTES,
    DIRECTED,
    EDGES,
    GRAPH,
    NODES,
    SMILES,
    Row,
    RowError,
    TableFile,
    parsed,
    read_table,
    target_columns,
    target_of,
    unused_fields,
)
from graphwright.tasks.table.form import USUAL, Form, InputKind, Value, find_form, moments
from graphwright.tasks.task import RejectedRow, Samples, UnusableError

SPLIT, ID = "split", "id"
TARGETS = (NODES, EDGES, GRAPH, ATTRIBUTES, SMILES, DIRECTED, SPLIT, ID)
"""Columns that are no input unless `task.inputs` says so."""
NAMELESS = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""What a column is called that nobody named: pandas writes the numbers of the rows there."""
DECIMAL = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?|-?\d+e-\d+")
"""What a number becomes as a label, if it is not a whole one."""
NEEDED: dict[Split, int] = {"train": 20, "validation": 2, "test": 0}
"""Rows without which there is no training; test rows are for evaluation alone."""
MOST_NODES = 250


class Owners(StrEnum):
    """Which node an element of the input may stand for, where elements may be nodes."""

    INFERRED = "inferred"
    """In order, if every training graph has as many nodes as its input has elements; else any."""
    ORDER = "order"
    FREE = "free"


class TableTask(TaskSettings):
    """Table: a person's own file of pairs, one row an input and its graph."""

    input_kinds = ("vector", "tokens", "set", "picture", "bits", "spectrum", "several")
    default_encoder = "columns"

    kind: Literal["table"] = "table"
    """What is predicted from what: table, graphs from the columns of your own file."""
    data: Annotated[str, Field(min_length=1)] = "pairs.parquet"
    """File of pairs (parquet, jsonl, csv ...): columns nodes and edges, graph, or smiles_target, and the input."""
    inputs: str = ""
    """Columns that are the input, with commas between them; empty: all but those of the graph, split and id."""
    capacity: Annotated[int, Field(ge=0, le=250)] = 0
    """Largest number of nodes, N; larger graphs are left out; 0: as many as the largest training graph has."""
    node_labels: str = ""
    """Labels that a node may have, a JSON list; empty: those in the training rows."""
    edge_labels: str = ""
    """Labels that an edge may have, a JSON list; empty: those in the training rows."""
    attributes: str = ""
    """Numbers of nodes to predict, names with commas between them; []: none; empty: all in the training rows."""
    form: str = ""
    """Kind of the input, mean and deviation of its numbers, its tokens, as JSON; empty: found in the data."""
    side: Annotated[int, Field(ge=0, le=512, multiple_of=4)] = 0
    """Pixels to a side that pictures are brought to; 0: as most training pictures have, at most 96."""
    owners: Owners = Owners.INFERRED
    """Whether element i of a set or list is node i of its graph (order) or any (free); inferred: by sizes."""
    diffusion: bool = True
    """Also predict how many neighbours of each label a node has, and match by it."""


@dataclass(frozen=True, eq=False)
class TableSample:
    """One row: its number in the file, what it is called, its input and its graph."""

    row: int
    name: str
    value: Value
    graph: Graph


@dataclass(frozen=True, eq=False)
class Understood:
    """A file and what it holds. rejected: the unusable rows; those of no split are under None.

    owners: `ORDER` where element i of an input is node i, else `FREE`.
    """

    file: TableFile
    form: Form
    vocabulary: Vocabulary
    capacity: int
    target: tuple[str, ...]
    by_column: bool
    owners: Owners
    samples: dict[Split, list[TableSample]]
    rejected: dict[Split | None, list[RejectedRow]]

    @property
    def path(self) -> Path:
        return self.file.path

    def all_rejected(self) -> list[RejectedRow]:
        """The unusable rows of all splits, in the file's order."""
        return sorted((each for rows in self.rejected.values() for each in rows), key=lambda each: each.row)

    def counts(self) -> str:
        """Usable rows of every split, in words."""
        return ", ".join(f"{len(self.samples[split]):,} {split}" for split in SPLITS)

    def unused(self) -> list[str]:
        """What the file says and nothing is made of, in words."""
        nameless = [
            name for name in self.file.columns if NAMELESS.fullmatch(name) and name not in self.form.columns
        ]
        columns = [f"the column {name}" if name else "a column without a name" for name in nameless]
        if self.target != (GRAPH,):
            return columns
        numbers = {sample.row for split in SPLITS for sample in self.samples[split]}
        nodes: set[str] = set()
        edges: set[str] = set()
        for row, number in zip(self.file.rows, self.file.numbers, strict=True):
            if number in numbers and not isinstance(row, RowError):
                own_nodes, own_edges = unused_fields(row, self.vocabulary.attribute_names)
                nodes, edges = nodes | own_nodes, edges | own_edges
        fields = [f"nodes' {name}" for name in sorted(nodes)] + [f"edges' {name}" for name in sorted(edges)]
        return [*columns, *fields]

    def refuse_too_few(self) -> None:
        """An error that says how many rows there are in which split, and how many it takes."""
        short = [split for split, needed in NEEDED.items() if len(self.samples[split]) < needed]
        if not short:
            return
        takes = ", ".join(f"at least {needed} {split}" for split, needed in NEEDED.items() if needed)
        rejected = self.all_rejected()
        first = f"; {len(rejected):,} rows are unusable, the first: {rejected[0].detail}" if rejected else ""
        how = "by the column split" if self.by_column else "80, 10 and 10 % by a hash, as there is no column split"
        raise ValueError(
            f"{self.path} has too few usable rows: {self.counts()} ({how}); training takes {takes}{first}"
        )


def understand(settings: TableTask, path: Path | None = None) -> Understood:
    """The settings' file, or another one, all of whose rows are test rows."""
    where = Path(settings.data) if path is None else path
    try:
        return _understood(settings, where, path is not None, _stamp(where))
    except RecursionError as error:
        raise ValueError(f"{where}: its JSON is nested too deeply") from error


Stamp = tuple[int, int]
"""Size and time of a file: another one is another state."""


def _stamp(path: Path) -> Stamp:
    status = path.stat() if path.is_file() else None
    return (0, 0) if status is None else (status.st_size, status.st_mtime_ns)


def table_at(path: Path) -> TableFile:
    """The rows of a file, which is read once as long as it does not change."""
    return _read_once(path, _stamp(path))


@lru_cache(maxsize=8)
def _read_once(path: Path, stamp: Stamp) -> TableFile:  # noqa: ARG001
    return read_table(path)


@lru_cache(maxsize=8)
def _understood(settings: TableTask, path: Path, whole: bool, stamp: Stamp) -> Understood:
    """Once for every state of the file: a run asks for its splits one by one."""
    file = _read_once(path, stamp)
    inputs = input_columns(settings, file)
    target = target_columns(file.columns, inputs, path)
    by_column = SPLIT in file.columns and not whole
    splits: list[Split | RowError] = [
        "test" if whole else _split(row, number, by_column)
        for row, number in zip(file.rows, file.numbers, strict=True)
    ]
    _refuse_edge_index(file, target)
    graphs = [_graph(row, target) for row in file.rows]
    training = [
        (row, graph)
        for row, graph, split in zip(file.rows, graphs, splits, strict=True)
        if split == "train" and isinstance(graph, Graph) and not isinstance(row, RowError)
    ]
    if not training and not (
        settings.form and settings.node_labels and settings.edge_labels and settings.capacity
    ):
        raise _nothing_to_learn_from(file, splits, graphs)
    form = (
        Form.from_text(settings.form)
        if settings.form
        else find_form([row for row, _ in training], inputs, path, settings.side)
    )
    values = [None if isinstance(row, RowError) else _value(row, form, path.parent) for row in file.rows]
    fitting = [
        graph
        for graph, split, value in zip(graphs, splits, values, strict=True)
        if split == "train" and isinstance(graph, Graph) and value is not None and not isinstance(value, RowError)
    ]
    capacity = settings.capacity or min(MOST_NODES, max((graph.size for graph in fitting), default=1))
    fitting = [graph for graph in fitting if graph.size <= capacity]
    vocabulary = _vocabulary(settings, fitting, path)
    samples: dict[Split, list[TableSample]] = {split: [] for split in SPLITS}
    rejected: dict[Split | None, list[RejectedRow]] = {None: [], **{split: [] for split in SPLITS}}
    for row, number, split, graph, value in zip(file.rows, file.numbers, splits, graphs, values, strict=True):
        fault = next((each for each in (row, split, graph, value) if isinstance(each, RowError)), None)
        if fault is None:
            assert isinstance(graph, Graph)
            assert not isinstance(row, RowError)
            assert not isinstance(split, RowError)
            assert value is not None
            assert not isinstance(value, RowError)
            made = _sample(row, number, graph, value, vocabulary, capacity, target)
            if isinstance(made, TableSample):
                samples[split].append(made)
                continue
            fault = made
        rejected[None if isinstance(split, RowError) else split].append(rejection(path, number, fault))
    owners = _owners(settings, form, samples["train"], path)
    return Understood(file, form, vocabulary, capacity, target, by_column, owners, samples, rejected)


@dataclass(frozen=True, eq=False)
class LoneRows:
    """The rows of a file, each read alone when it is asked for: what all training rows say is known already."""

    file: TableFile
    form: Form
    vocabulary: Vocabulary
    capacity: int
    target: tuple[str, ...]

    @classmethod
    def of(cls, path: Path, form: Form, vocabulary: Vocabulary, capacity: int) -> LoneRows:
        """A ValueError where it is no table, or has no graphs."""
        file = table_at(path)
        return cls(file, form, vocabulary, capacity, target_columns(file.columns, form.columns, path))

    def of_split(self, split: Split) -> list[int]:
        """Indices of its rows in the file, usable or not."""
        by_column = SPLIT in self.file.columns
        rows = zip(self.file.rows, self.file.numbers, strict=True)
        return [at for at, (row, number) in enumerate(rows) if _split(row, number, by_column) == split]

    def sample(self, at: int) -> TableSample | RowError:
        """What the row at an index says, or what is wrong with it."""
        row, number = self.file.rows[at], self.file.numbers[at]
        graph = _graph(row, self.target)
        if isinstance(row, RowError):
            return row
        if isinstance(graph, RowError):
            return graph
        value = _value(row, self.form, self.file.path.parent)
        if isinstance(value, RowError):
            return value
        return _sample(row, number, graph, value, self.vocabulary, self.capacity, self.target)

    def graph(self, at: int) -> Graph | RowError:
        """The graph of the row at an index, whatever its input, and without numbers that not all nodes have."""
        graph = _graph(self.file.rows[at], self.target)
        if isinstance(graph, RowError):
            return graph
        if _lacking(graph, self.vocabulary):
            graph = replace(graph, attributes=None)
        return _unfit(graph, self.vocabulary, self.capacity, self.target) or graph.with_vocabulary(self.vocabulary)


def _owners(settings: TableTask, form: Form, training: Sequence[TableSample], path: Path) -> Owners:
    """What the settings say, or `ORDER` where every training graph has as many nodes as its input elements."""
    if settings.owners is Owners.ORDER and not form.owning:
        raise ValueError(f"task.owners order needs an input whose elements may be nodes, got {form.described}")
    apart = [sample for sample in training if form.elements(sample.value) != sample.graph.size]
    if settings.owners is Owners.ORDER and apart:
        elements, size = form.elements(apart[0].value), apart[0].graph.size
        raise ValueError(
            f"task.owners order: {path}, row {apart[0].row} has {elements} elements and a graph of {size} nodes"
        )
    if settings.owners is not Owners.INFERRED:
        return settings.owners
    # The bits of a fingerprint are sorted by number: their order is no atom's.
    ordered = form.owning and InputKind.BITS not in {form.kind, *(part.kind for part in form.parts)}
    return Owners.ORDER if training and ordered and not apart else Owners.FREE


def rejection(path: Path, number: int, fault: RowError) -> RejectedRow:
    """A fault with its row."""
    return RejectedRow(number, fault.reason, f"{path}, row {number}, {fault}")


def input_columns(settings: TableTask, file: TableFile) -> tuple[str, ...]:
    """The columns that the settings name, or all that are nothing else; an error where there is none."""
    chosen = tuple(name.strip() for name in settings.inputs.split(",") if name.strip())
    for name in chosen:
        if name not in file.columns:
            raise ValueError(
                f"{file.path} has no column {name}, which task.inputs names: {', '.join(file.columns)}"
            )
    if chosen:
        return chosen
    columns = tuple(name for name in file.columns if name not in TARGETS and not NAMELESS.fullmatch(name))
    if not columns:
        raise ValueError(
            f"{file.path} has no input column: besides {', '.join(file.columns)} there must be one with what the "
            "graph is predicted from"
        )
    return columns


def name_of(row: Row, number: int) -> str:
    """A row's id, or its number."""
    given = row.get(ID)
    return str(number) if given is None else str(given)


def _split(row: Row | RowError, number: int, by_column: bool) -> Split | RowError:
    if isinstance(row, RowError):
        return row
    if not by_column:
        return split_by_hash(name_of(row, number))
    given = row.get(SPLIT)
    split = SPLIT_NAMES.get(str(given).strip().lower())
    if split is None:
        return RowError("unknown split", SPLIT, f"expected {', '.join(SPLITS)}, got {str(given)[:40]!r}")
    return split


def _graph(row: Row | RowError, target: Sequence[str]) -> Graph | RowError:
    if isinstance(row, RowError):
        return row
    try:
        return target_of(row, target)
    except RowError as error:
        return error


def _refuse_edge_index(file: TableFile, target: Sequence[str]) -> None:
    """A ValueError where edges are given as two lists, of their first and of their second ends.

    With two edges a row alone cannot tell: all rows together do.
    """
    if EDGES not in target:
        return
    shapes = {shape for row in file.rows if (shape := _shape_of_edges(row)) is not None}
    halves = [shape[0] for shape in shapes if len(shape) == 2 and shape[0] == shape[1]]
    if len(halves) == len(shapes) and max(halves, default=0) > LONGEST_EDGE:
        raise ValueError(
            f"{file.path}: {EDGES} are two lists of ends in every row, as PyTorch Geometric's edge_index: an edge "
            "is a pair, as [[0, 1], [1, 2]]; list(zip(*edge_index)) gives pairs"
        )


LONGEST_EDGE = 3
"""Entries: two ends and a label."""


def _shape_of_edges(row: Row | RowError) -> tuple[int, ...] | None:
    """How many entries every edge of a row has; None where there is no list, which is told elsewhere."""
    try:
        given = None if isinstance(row, RowError) else parsed(row.get(EDGES), EDGES)
    except RowError:
        return None
    return tuple(len(each) if isinstance(each, list) else 0 for each in given) if isinstance(given, list) else None


def _value(row: Row, form: Form, beside: Path) -> Value | RowError:
    try:
        return form.read(row, beside)
    except RowError as error:
        return error


def _vocabulary(settings: TableTask, graphs: Sequence[Graph], path: Path) -> Vocabulary:
    named = named_vocabulary(settings)
    if named is not None:
        return named
    if graphs and graphs[0].vocabulary.edges == BONDS:
        return molecule_vocabulary(sorted({name for graph in graphs for name in graph.node_names}))
    plain = Vocabulary.of(
        (name for graph in graphs for name in graph.node_names),
        (name for graph in graphs for name in graph.edge_names),
    )
    _refuse_measurements(plain.nodes, f"{path}: nodes", "numbers of a node go into its attributes")
    _refuse_measurements(plain.edges[1:], f"{path}: edges", "weights are not predicted: leave them out")
    nodes = labels_of(settings.node_labels, "node_labels") or plain.nodes
    edges = labels_of(settings.edge_labels, "edge_labels") or plain.edges[1:]
    return Vocabulary(nodes, (plain.edges[0], *edges), _attributes(settings, graphs, path))


FEW_NUMBERS = 20
"""Different decimals that may be labels, such as orders of bonds."""


def _refuse_measurements(labels: Sequence[str], what: str, instead: str) -> None:
    """A ValueError where labels are measurements: every one would be a class of its own."""
    decimals = [label for label in labels if DECIMAL.fullmatch(label)]
    if len(decimals) > FEW_NUMBERS:
        told = f"have {len(decimals):,} different numbers for labels, such as {decimals[0]}"
        raise ValueError(f"{what} {told}; a label is one of a few, {instead}")


def named_vocabulary(settings: TableTask) -> Vocabulary | None:
    """The vocabulary, if the settings say all of it."""
    nodes = labels_of(settings.node_labels, "node_labels")
    edges = labels_of(settings.edge_labels, "edge_labels")
    attributes = written_attributes(settings)
    if not nodes or not edges or attributes is None:
        return None
    return Vocabulary(nodes, (Vocabulary().edges[0], *edges), attributes)


def attributes_text(attributes: Sequence[Attribute]) -> str:
    """For a run's settings."""
    return json.dumps([[each.name, each.mean, each.deviation] for each in attributes], ensure_ascii=False)


def written_attributes(settings: TableTask) -> tuple[Attribute, ...] | None:
    """The attributes as `attributes_text` wrote them; None where they are still to be measured."""
    text = settings.attributes.strip()
    if not text:
        # A run that is older than attributes has none.
        return () if settings.form else None
    if not text.startswith("["):
        return None
    try:
        return tuple(Attribute(name, float(mean), float(deviation)) for name, mean, deviation in json.loads(text))
    except (ValueError, TypeError) as error:
        raise ValueError(f"task.attributes must be names with commas between them, got {text[:60]!r}") from error


def _attributes(settings: TableTask, graphs: Sequence[Graph], path: Path) -> tuple[Attribute, ...]:
    """Those of most training graphs, or those named, with the mean and deviation of these graphs' nodes."""
    written = written_attributes(settings)
    if written is not None:
        return written
    having = Counter(name for graph in graphs for name in graph.vocabulary.attribute_names)
    names = tuple(name.strip() for name in settings.attributes.split(",") if name.strip())
    for name in names:
        if name not in having:
            known = ", ".join(having) or "none"
            raise ValueError(
                f"{path}: no training row's nodes have the number {name!r}, which task.attributes names; "
                f"they have {known}"
            )
    names = names or tuple(name for name, count in having.items() if count >= USUAL * len(graphs))
    values = [
        graph.attributes[:, [graph.vocabulary.attribute_names.index(name) for name in names]]
        for graph in graphs
        if graph.attributes is not None and set(names) <= set(graph.vocabulary.attribute_names)
    ]
    if not names or not values:
        return ()
    return tuple(Attribute(*each) for each in zip(names, *moments(np.concatenate(values)), strict=True))


def labels_of(text: str, name: str) -> tuple[str, ...]:
    """Labels from a JSON list in the settings."""
    if not text.strip():
        return ()
    try:
        labels = json.loads(text)
    except ValueError as error:
        raise ValueError(f"task.{name} must be a JSON list of labels, got {text[:60]!r}") from error
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"task.{name} must be a JSON list of labels, got {text[:60]!r}")
    return tuple(labels)


def _sample(
    row: Row,
    number: int,
    graph: Graph,
    value: Value,
    vocabulary: Vocabulary,
    capacity: int,
    target: Sequence[str],
) -> TableSample | RowError:
    fault = _unfit(graph, vocabulary, capacity, target)
    if fault is not None:
        return fault
    lacking = _lacking(graph, vocabulary)
    if lacking:
        detail = f"its nodes do not all have the number {lacking[0]!r}, as those of training rows have"
        return RowError("missing number", target[-1], detail)
    return TableSample(number, name_of(row, number), value, graph.with_vocabulary(vocabulary))


def _lacking(graph: Graph, vocabulary: Vocabulary) -> list[str]:
    """Numbers that its nodes should have."""
    return [name for name in vocabulary.attribute_names if name not in graph.vocabulary.attribute_names]


def _unfit(graph: Graph, vocabulary: Vocabulary, capacity: int, target: Sequence[str]) -> RowError | None:
    """Why a model can know no such graph: its size, or a label."""
    if graph.size > capacity:
        detail = f"the graph has {graph.size} nodes, more than the capacity {capacity}"
        return RowError("larger than the capacity", target[0], detail)
    for names, known, field, what in (
        (graph.node_names, vocabulary.nodes, target[0], "node"),
        (graph.edge_names, vocabulary.edges, target[:2][-1], "edge"),
    ):
        unknown = sorted(set(names) - set(known))
        if unknown:
            return RowError("unknown label", field, f"no training row has the {what} label {unknown[0]!r}")
    return None


def _nothing_to_learn_from(
    file: TableFile, splits: Sequence[Split | RowError], graphs: Sequence[Graph | RowError]
) -> UnusableError:
    counts = Counter(split for split in splits if not isinstance(split, RowError))
    listed = ", ".join(f"{counts[split]:,} {split}" for split in SPLITS)
    faults = [
        rejection(file.path, number, fault)
        for number, *both in zip(file.numbers, splits, graphs, strict=True)
        for fault in [next((each for each in both if isinstance(each, RowError)), None)]
        if fault is not None
    ]
    first = f"; {faults[0].detail}" if faults else ""
    takes = f"training takes at least {NEEDED['train']}"
    message = f"{file.path} has no usable training row in {len(file):,} rows ({listed}); {takes}{first}"
    return UnusableError(message, faults)


class TableDataset(Samples):
    """The usable rows of a split, all in memory, in the file's order; `rejected` has the others."""

    def __init__(self, understood: Understood, split: Split, limit: int | None = None) -> None:
        self.understood, self.split = understood, split
        self.samples = understood.samples[split][:limit]
        if not self.samples:
            rejected = self.rejected
            first = f"; the first of {len(rejected):,} unusable ones: {rejected[0].detail}" if rejected else ""
            raise ValueError(f"{understood.path} has no usable {split} row ({understood.counts()}){first}")

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int | tuple[int, int]) -> TableSample:
        at = index[0] if isinstance(index, tuple) else index
        if not 0 <= at < len(self):
            raise IndexError(f"row {at} of a {self.split} split of {len(self)}")
        return self.samples[at]

    @property
    def rejected(self) -> list[RejectedRow]:
        """The unusable rows of the split, and those whose split nobody can tell."""
        return [*self.understood.rejected[self.split], *self.understood.rejected[None]]

    def collate(self, samples: Sequence[TableSample]) -> tuple[Inputs, GraphBatch]:
        """Inputs as the encoder takes them, and the graphs padded to the capacity."""
        form = self.understood.form
        inputs = form.collate([sample.value for sample in samples])
        graphs = GraphBatch.collate([sample.graph for sample in samples], self.understood.capacity)
        if self.owners and self.understood.owners is Owners.ORDER:
            graphs = replace(graphs, owners=_in_order([sample.graph.size for sample in samples], graphs.capacity))
        return inputs, graphs

    def digest(self) -> str:
        """SHA-256 of the file, and of the pictures that it names."""
        own = self.understood.file.digest()
        if not self.understood.form.has_pictures:
            return own
        joint = hashlib.sha256(own.encode())
        for sample in self.samples:
            for value in sample.value if isinstance(sample.value, tuple) else (sample.value,):
                if isinstance(value, np.ndarray) and value.dtype == np.uint8:
                    joint.update(value.tobytes())
        return joint.hexdigest()


def _in_order(sizes: Sequence[int], capacity: int) -> Tensor:
    """(b, 1 + k, n) owners: token 0 is nobody's, token 1 + i may stand for node i alone."""
    owners = torch.zeros(len(sizes), 1 + max(sizes, default=0), capacity, dtype=torch.bool)
    for owner, size in zip(owners, sizes, strict=True):
        owner[range(1, 1 + size), range(size)] = True
    return owners
