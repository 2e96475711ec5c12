"""A person's own table as a task, and what to train it with where nobody says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from graphwright.files import columns_of
from graphwright.graphs import Attribute, Graph, Vocabulary
from graphwright.graphs.drawing import positions_of
from graphwright.graphs.molecules import BONDS, is_molecule, smiles_from_graph
from graphwright.models import Inputs, SetInputs, SpectrumInputs
from graphwright.settings import CONFIG, CORES, DataSettings, InputForm, Model, Override, SettingsError, SlotKind
from graphwright.tasks.likeness import Likeness
from graphwright.tasks.page import UNSEEN, Case, Ion, ShownInput, TaskPage, Wish
from graphwright.tasks.spectra.task import PEAK_COLUMNS, draw_spectrum
from graphwright.tasks.split import SPLITS, Split
from graphwright.tasks.table.file import EDGES, GRAPH, SMILES, Row, RowError, is_json_table
from graphwright.tasks.table.form import (
    CONDITIONS,
    Form,
    InputKind,
    Value,
    as_rows,
    form_likeness,
    is_one_value,
)
from graphwright.tasks.table.pictures import PICTURE_FILES
from graphwright.tasks.table.understood import (
    LoneRows,
    Owners,
    TableDataset,
    TableSample,
    TableTask,
    Understood,
    attributes_text,
    name_of,
    named_vocabulary,
    rejection,
    table_at,
    understand,
)
from graphwright.tasks.task import (
    LONGEST_NAME,
    BadInput,
    Choice,
    NamedInput,
    Positions,
    RejectedRow,
    Task,
    draw_text,
    register_task,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class TableInput:
    """An input that has been read already. index: of its row in the file, from 0, if it comes from one."""

    value: Value
    index: int | None = None


LINES = (".jsonl", ".ndjson")
TABLE_FILES = (".parquet", ".csv", ".tsv", ".json", *LINES)
"""How the names of files end that may be a person's own table of pairs."""
TABLE_TARGETS = ({EDGES}, {GRAPH}, {SMILES})
"""Columns, one of these sets, by which such a table is told from one of molecules or spectra."""
TABLE_SETTINGS = (
    Override("task.kind", "table"),
    Override("matching.kind", "conditional_gradient"),
    Override("loss.adjacency", 2.0),
    Override("train.optimizer", "muon"),
    Override("train.learning_rate", 4e-3),
    Override("train.averaging", 0.999),
    Override("train.devices", CORES),
    Override("train.workers", 0),
    Override("train.validate_every", 500),
)
"""What a table is trained with where nobody says: what proved best on the tasks that come along."""


@register_task(TableTask)
@dataclass(frozen=True)
class Table(Task):
    """From the columns of a file to the graph of the row."""

    settings: TableTask

    files = "tables with the columns of the input (parquet, jsonl, json, csv, tsv)"
    example_file = "inputs.csv"

    @classmethod
    def settings_for(cls, source: str) -> DataSettings | None:
        """For a person's own table of inputs and graphs, by its name and its columns, `TABLE_SETTINGS`."""
        path = Path(source)
        if path.is_dir():
            inside = _table_in(path)
            return None if inside is None else DataSettings((*TABLE_SETTINGS, Override("task.data", str(inside))))
        suffix = path.suffix.lower()
        if suffix not in TABLE_FILES:
            return None
        # No other task takes lines of JSON, or tables without SMILES: what they lack, this one's reader says best.
        is_table = suffix in LINES or _is_table(path) or _is_nobodys(path)
        return DataSettings((*TABLE_SETTINGS, Override("task.data", source))) if is_table else None

    @property
    def page(self) -> TablePage:
        return TablePage(self)

    @property
    def name(self) -> str:
        return Path(self.settings.data).stem

    @property
    def summary(self) -> str:
        labels = [
            _count(len(self.vocabulary.nodes), "node label"),
            _count(len(self.vocabulary.edges) - 1, "edge label"),
        ]
        numbers = len(self.vocabulary.attributes)
        told = ", ".join([*labels, *([f"{_count(numbers, 'number')} of each node"] if numbers else [])])
        return f"From {self.form.described}, to graphs of up to {self.capacity} nodes ({told}; data {self.name})."

    @cached_property
    def form(self) -> Form:
        """The form of the inputs: as the settings say, or as in the data."""
        return Form.from_text(self.settings.form) if self.settings.form else self.understood.form

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The labels that the settings name, or those of the training rows."""
        return named_vocabulary(self.settings) or self.understood.vocabulary

    @property
    def capacity(self) -> int:
        """Largest number of nodes."""
        return self.settings.capacity or self.understood.capacity

    @property
    def understood(self) -> Understood:
        return understand(self.settings)

    def resolved(self) -> TableTask:
        """The settings with all that a trained model must know without the data; too few rows are refused."""
        self.understood.refuse_too_few()
        known = {
            "capacity": self.capacity,
            "node_labels": json.dumps(self.vocabulary.nodes, ensure_ascii=False),
            "edge_labels": json.dumps(self.vocabulary.edges[1:], ensure_ascii=False),
            "attributes": attributes_text(self.vocabulary.attributes),
            "form": self.form.text,
            "owners": self.understood.owners,
        }
        return self.settings.model_copy(update=known)

    def resolved_encoder(self, model: Model) -> str:
        """That of the form, where the settings leave it to the columns."""
        return self.form.encoder if model.encoder == self.settings.default_encoder else model.encoder

    def choice(self) -> Choice:
        return choose(self)

    def likeness(self) -> Likeness:
        return form_likeness(self.form)

    def rejections(self) -> list[RejectedRow]:
        """The unusable rows of all splits."""
        return self.understood.all_rejected()

    def explained(self) -> list[tuple[str, str]]:
        """What was understood of the file."""
        data = self.understood
        unused = data.unused()
        splits = data.counts() + ("" if data.by_column else " (by hash: there is no column split)")
        return [
            ("rows", f"{len(data.file):,}, {len(data.all_rejected()):,} of them unusable"),
            ("splits", splits),
            ("input", f"{data.form.described}; read by the encoder {data.form.encoder}"),
            ("target", " and ".join(data.target)),
            ("node labels", _listed(data.vocabulary.nodes)),
            ("edge labels", _listed(data.vocabulary.edges[1:])),
            ("numbers of a node", _listed([_described(each) for each in data.vocabulary.attributes]) or "none"),
            *([("not used", ", ".join(unused))] if unused else []),
            ("capacity", f"{data.capacity} nodes"),
            *([("elements", OWNED[data.owners])] if data.form.owning else []),
        ]

    def data(self, split: Split, *, seed: int | None = None, limit: int | None = None) -> TableDataset:
        """A split of the settings' file."""
        if seed is not None:
            raise ValueError(f"the rows of {self.name} are read, not generated: there is no seed to change")
        return TableDataset(self.understood, split, limit)

    def data_from(self, path: Path, *, limit: int | None = None) -> TableDataset:
        """All rows of another file of pairs."""
        known = self.settings.model_copy(update={"form": self.form.text, "capacity": self.capacity})
        if named_vocabulary(self.settings) is None:
            known = self.resolved()
        return TableDataset(understand(known, path), "test", limit)

    def lone_rows(self, path: Path) -> LoneRows:
        """The rows of a file, read one by one."""
        return LoneRows.of(path, self.form, self.vocabulary, self.capacity)

    @property
    def input_form(self) -> InputForm:
        return self.form.input_form

    def is_one(self, given: Any) -> bool:
        """One row: a mapping of columns, or the value of the only column."""
        if isinstance(given, TableInput | Mapping):
            return True
        if isinstance(given, list | tuple) and given and all(isinstance(e, TableInput | Mapping) for e in given):
            return False
        return not self._is_batch(given) and is_one_value(given, self.form)

    def inputs(self, given: Any) -> Inputs:
        """A batch from one row or many: mappings of columns, or the values of the only column."""
        if self._is_batch(given):
            batch: Inputs = given
            return batch
        if isinstance(given, TableInput):
            given = [given]
        if isinstance(given, list | tuple) and any(isinstance(each, TableInput) for each in given):
            return self.form.collate([self._read(each) for each in given])
        return self.form.collate([self.form.read(row) for row in as_rows(given, self.form)])

    def _read(self, given: Any) -> Value:
        if isinstance(given, TableInput):
            return given.value
        (row,) = as_rows(given, self.form)
        return self.form.read(row)

    def _is_batch(self, given: Any) -> bool:
        """Whether it is what `collate` makes, as far as that can be told from what a person has."""
        if isinstance(given, SetInputs | SpectrumInputs):
            return True
        if isinstance(given, tuple):
            return self.form.kind is InputKind.SEVERAL and all(isinstance(each, Tensor) for each in given)
        codes = self.form.kind in (InputKind.TOKENS, InputKind.BITS)
        return codes and isinstance(given, Tensor) and given.ndim == 2 and not given.is_floating_point()

    def file_of(self, given: Any) -> Path | None:
        """A SMILES may end as a file's name does, and is one only where such a file is there; JSON is none."""
        if (
            isinstance(given, str)
            and given.lstrip().startswith(("{", "["))
            and self.form.kind is not InputKind.BITS
        ):
            return None
        if self.form.kind is not InputKind.BITS or not isinstance(given, str):
            return super().file_of(given)
        is_file = given.lower().endswith(TABLE_FILES) or (len(given) <= LONGEST_NAME and Path(given).is_file())
        return Path(given) if is_file else None

    def read_words(self, words: Sequence[str]) -> Iterator[NamedInput | BadInput]:
        """The rows of files, pictures, or SMILES themselves."""
        for word in words:
            path = self.file_of(word)
            if path is None and self.form.kind is InputKind.BITS:
                yield self._named({self.form.columns[0]: word}, word, _in_a_name(word), Path(), word)
            else:
                yield from self.read(path or Path(word))

    def read(self, path: Path) -> Iterator[NamedInput | BadInput]:
        """The input of every row of a file, which need not have a graph; or a picture, where that is the input."""
        if self.form.kind is InputKind.PICTURE and path.suffix.lower() in PICTURE_FILES:
            yield self._named({self.form.columns[0]: path.name}, str(path), path.stem, path.parent, str(path))
            return
        yield from self.read_rows(path, path.parent)

    def read_rows(self, path: Path, beside: Path | None) -> Iterator[NamedInput | BadInput]:
        """The inputs of a table's rows; beside: where relative paths of pictures begin, None: not followed."""
        try:
            file = table_at(path)
        except ValueError as error:
            yield BadInput(str(error))
            return
        needed = [name for name in self.form.columns if name not in CONDITIONS]
        missing = [name for name in needed if name not in file.columns]
        if missing:
            there = ", ".join(file.columns)
            yield BadInput(f"{path} has no column {missing[0]}, which the model reads; it has {there}")
            return
        for index, (row, number) in enumerate(zip(file.rows, file.numbers, strict=True)):
            if isinstance(row, RowError):
                yield BadInput(rejection(path, number, row).detail)
                continue
            name = name_of(row, number)
            stem, where = f"{path.stem}-{_in_a_name(name)}", f"{path}, row {number}"
            yield self._named(row, f"{path}:{name}", stem, beside, where, index)

    def _named(
        self, row: Row, name: str, stem: str, beside: Path | None, where: str, index: int | None = None
    ) -> NamedInput | BadInput:
        try:
            return NamedInput(name, stem, TableInput(self.form.read(row, beside), index))
        except RowError as error:
            return BadInput(f"{where}, {error}")

    def statistics(self, samples: Iterable[TableSample]) -> list[tuple[str, str]]:
        """Sizes, labels, lengths of the inputs."""
        listed = list(samples)
        rows = super().statistics(listed)
        counted = [self.form.elements(sample.value) for sample in listed]
        lengths = np.array([count for count in counted if count is not None])
        if not len(lengths):
            return rows
        return [*rows, ("elements of an input", f"{lengths.min()} to {lengths.max()}, mean {lengths.mean():.2f}")]

    def title(self, sample: TableSample) -> str:
        return f"row {sample.row}"

    def input_of(self, sample: TableSample) -> TableInput:
        return TableInput(sample.value)

    def draw_input(self, given: TableInput, axes: Axes) -> None:
        """Bars of a vector, a list of tokens, points of a set by their first two numbers, a picture, peaks."""
        _draw(given.value, self.form, axes)

    def positions(self, sample: TableSample) -> Positions:
        """As the nodes say where they are, or where they fit."""
        own = self.node_positions(sample.graph)
        return super().positions(sample) if own is None else own

    def node_positions(self, graph: Graph) -> Positions | None:
        """(n, 2), y downwards, as the nodes say: theirs is upwards, as inputs are drawn, unless in a picture."""
        own = positions_of(graph)
        return own if own is None or self.form.has_pictures else own * np.array([1.0, -1.0])

    def draw_graph(self, graph: Graph, axes: Axes, positions: Positions | None) -> None:
        """As any graph; where it is seen in a picture, y is downwards in both."""
        super().draw_graph(graph, axes, positions)
        if self.form.has_pictures and positions is None and positions_of(graph) is not None:
            axes.invert_yaxis()

    def text(self, graph: Graph) -> str | None:
        """The SMILES, where graphs are molecules."""
        if graph.vocabulary.edges != BONDS or not is_molecule(graph):
            return None
        return smiles_from_graph(graph)


LIKE_SPANS = 4


def _draw(value: Any, form: Form, axes: Axes) -> None:
    match form.kind:
        case InputKind.VECTOR:
            axes.set_axis_on()
            axes.bar(np.arange(len(value)), form.raw(value))
        case InputKind.TOKENS:
            draw_text(" ".join(form.words[code] for code in value.tolist()), axes)
        case InputKind.SET:
            axes.set_axis_on()
            numbers = form.raw(value).reshape(-1, form.numbers)
            second = numbers[:, 1] if form.numbers > 1 else np.zeros(len(numbers))
            axes.scatter(numbers[:, 0], second, s=20)
            across, up = np.ptp(numbers[:, 0]), np.ptp(second)
            if min(across, up) > max(across, up) / LIKE_SPANS:  # of one kind, such as places: shapes are kept
                axes.set_aspect("equal", adjustable="datalim")
        case InputKind.PICTURE:
            axes.imshow(value.transpose(1, 2, 0))
        case InputKind.BITS:
            draw_text(f"a molecule of {len(value)} active bits", axes)
        case InputKind.SPECTRUM:
            axes.set_axis_on()
            draw_spectrum(value, axes)
        case InputKind.SEVERAL:
            _draw(value[0], form.parts[0], axes)
            return
    axes.tick_params(labelsize=7)


def _table_in(folder: Path) -> Path | None:
    """The only table of pairs in a folder, of pictures perhaps; None where there is none, or it is a run's."""
    if (folder / CONFIG).exists():
        return None
    tables = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in TABLE_FILES and path.is_file() and _is_table(path):
            tables.append(path)
    if len(tables) > 1:
        names = ", ".join(path.name for path in tables)
        raise SettingsError(f"{folder} holds several tables of graphs, {names}: give one of them")
    return tables[0] if tables else None


def _is_table(path: Path) -> bool:
    """Whether a file has the columns of a graph, as far as its beginning tells."""
    suffix = path.suffix.lower()
    if suffix == ".json":
        return is_json_table(path)
    columns = _keys(path) if suffix in LINES else columns_of(path, None)
    return any(wanted <= columns for wanted in TABLE_TARGETS)


def _is_nobodys(path: Path) -> bool:
    """Whether a file has columns, and none that a task of molecules or spectra learns from."""
    columns = set() if path.suffix.lower() == ".json" else columns_of(path, None)
    others = columns >= PEAK_COLUMNS or any("smiles" in name.lower() for name in columns)
    return bool(columns) and not others


def _keys(path: Path) -> set[str]:
    """Columns of the first line of a JSONL file."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            row = json.loads(next(lines, "{}"))
    except (OSError, ValueError):
        return set()
    return set(row) if isinstance(row, dict) else set()


def _listed(labels: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(labels[:most])
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most:,} more"


def _described(attribute: Attribute) -> str:
    return f"{attribute.name} (mean {attribute.mean:.4g}, deviation {attribute.deviation:.4g})"


def _in_a_name(text: str) -> str:
    """Text that is safe as part of a file's name."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in text)[:80]


SHOWN_FAULTS = 3
FEW_ROWS = 2000
"""Below so many training rows a wide model learns them by heart."""
TOKENS_ARE_SLOTS = "slots   every element of an input may be a node: no graph has more nodes than its input"
OWNED = {
    Owners.ORDER: "element i may stand for node i alone: every graph has as many nodes as its input has elements",
    Owners.FREE: "may stand for any node",
}
LARGEST_BATCH, SMALLEST_BATCH = 64, 4


def choose(table: Table) -> Choice:
    """Width and batch size for a table; capacity, labels and encoder are read off the data in any case."""
    data = table.understood
    data.refuse_too_few()
    rows = len(data.samples["train"])
    width = 128 if rows >= FEW_ROWS else 64
    batch = LARGEST_BATCH
    # Eight batches an epoch at the least: fewer repeat the same joint batches again and again.
    while batch > SMALLEST_BATCH and 8 * batch > rows:
        batch //= 2
    slots = _slots(data)
    numbers, unused = data.vocabulary.attribute_names, data.unused()
    hint = " (labels are read from the field label)" if any("' " in each for each in unused) else ""
    values = {
        "model.encoder": data.form.encoder,
        "model.slots": slots.value,
        "model.layers": 2 if slots is SlotKind.TOKENS else 3,
        "model.encoder_width": width,
        "model.width": width,
        "model.head_width": width,
        "train.batch_size": batch,
        "train.validation_samples": min(500, max(1, len(data.samples["validation"]))),
    }
    lines = [
        f"{data.path}: {data.counts()} rows"
        + ("" if data.by_column else ", split by hash (there is no column split)"),
        f"input   {data.form.described}: encoder {data.form.encoder}",
        f"graphs  at most {data.capacity} nodes, as the largest training graph; "
        f"{_count(len(data.vocabulary.nodes), 'node label')}, "
        f"{_count(len(data.vocabulary.edges) - 1, 'edge label')}",
        *([f"numbers of a node  {_listed(numbers)}, learnt in deviations from their means"] if numbers else []),
        *([TOKENS_ARE_SLOTS] if slots is SlotKind.TOKENS else []),
        *([f"owners  {OWNED[data.owners]}"] if slots is SlotKind.TOKENS and data.owners is Owners.ORDER else []),
        f"model   width {width} and batches of {batch}, for {rows:,} training rows",
        *([f"not used  {_listed(unused)}{hint}"] if unused else []),
        *_faults(data),
    ]
    return Choice(tuple(Override(key, value) for key, value in values.items()), tuple(lines))


def _slots(data: Understood) -> SlotKind:
    """Every element a slot, where it may stand for a node: a set never smaller than its graph."""
    samples = data.samples["train"]
    form = data.form
    enough = form.owning and all((form.elements(sample.value) or 0) >= sample.graph.size for sample in samples)
    return SlotKind.TOKENS if enough else SlotKind.LEARNED


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _faults(data: Understood) -> list[str]:
    rejected = data.all_rejected()
    if not rejected:
        return []
    counts = [f"{len(data.rejected[split]):,} {split}" for split in SPLITS]
    lost = data.rejected[None]
    by_split = ", ".join([*counts, *([f"{len(lost):,} of no split"] if lost else [])])
    more = len(rejected) - SHOWN_FAULTS
    return [
        f"left out {_count(len(rejected), 'unusable row')} ({by_split}):",
        *(f"  {each.detail}" for each in rejected[:SHOWN_FAULTS]),
        *([f"  and {more:,} more: `graphwright data inspect {data.path}` lists them"] if more > 0 else []),
    ]


class TablePage(TaskPage[Table]):
    """Rows as JSON, and files of them, with their graphs where these have any."""

    title = "From a row of a table to its graph"
    text_label = "A row, as JSON"
    text_suffix = ".jsonl"
    unseen = "An unseen row"

    @property
    def takes_text(self) -> str:
        row = f"a row as JSON, with {', '.join(self.task.form.columns)}"
        return f"SMILES, one a line, or {row}" if self.task.form.kind is InputKind.BITS else row

    def pasted(self, text: str, ion: Ion) -> str:  # noqa: ARG002
        """JSON objects, however they are broken into lines, or the value of the only column, as one a line."""
        columns = self.task.form.columns
        if self.task.form.kind is InputKind.BITS and not text.lstrip().startswith("{"):
            return "\n".join(json.dumps({columns[0]: line.strip()}) for line in text.splitlines() if line.strip())
        if not text.lstrip().startswith(("{", "[")):
            raise ValueError(
                f'a row is JSON, as {{"{columns[0]}": ...}}, and this begins with {text.strip()[:20]!r}'
            )
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError):
            return text  # one a line already, or an error that the reader words better
        if isinstance(rows, list) and len(columns) == 1 and not any(isinstance(row, dict) for row in rows):
            rows = {columns[0]: rows}
        return "\n".join(json.dumps(row) for row in (rows if isinstance(rows, list) else [rows]))

    def inputs(self, path: Path, formula: str) -> Iterator[NamedInput | BadInput]:
        """A picture, or rows, which may hold pictures but not name any: no path is taken from a request."""
        if path.suffix.lower() in PICTURE_FILES:
            return super().inputs(path, formula)
        return self.task.read_rows(path, None)

    def drawn(self, value: TableInput, name: str) -> ShownInput:
        """With the row as it can be pasted again, where what was read tells that."""
        cells = self.task.form.written(value.value)
        text = None if cells is None else json.dumps(cells)
        where, _, row = name.rpartition(":")
        return replace(super().drawn(value, name), caption=f"row {row} of {where}" if where else name, text=text)

    def where(self, graph: Graph) -> Positions | None:
        return self.task.node_positions(graph)

    def case(self, chosen: NamedInput, name: str, path: Path) -> Case:
        return self._placed(replace(super().case(chosen, name, path), truth=self._truth(chosen, path)))

    def sample_case(self, sample: TableSample, name: str) -> Case:
        return self._placed(super().sample_case(sample, name))

    def _placed(self, case: Case) -> Case:
        return case if case.truth is None else replace(case, positions=self.where(case.truth))

    def example(self, number: int, wish: Wish) -> Case:  # noqa: ARG002
        """A row of the test split: it alone is read, for a file may have many, and pictures beside it."""
        path = Path(self.task.settings.data)
        if not path.is_file():
            raise ValueError(
                f"The table {path.name} of this run is not there any more: paste a row, or choose a file."
            )
        rows = self.task.lone_rows(path)
        indices = rows.of_split("test")[:UNSEEN]
        first = number % max(1, len(indices))
        read = (rows.sample(index) for index in (*indices[first:], *indices[:first]))
        sample = next((each for each in read if isinstance(each, TableSample)), None)
        if sample is None:
            raise ValueError(f"{path} has no usable test row to take as an example.")
        return self.sample_case(sample, f"row {sample.row} of {path.name}, of its test split")

    def _truth(self, chosen: NamedInput, path: Path) -> Graph | None:
        """The graph of the row that an input comes from, if it has one that the model can know."""
        given: TableInput = chosen.value
        if given.index is None:
            return None
        try:
            graph = self.task.lone_rows(path).graph(given.index)
        except ValueError:  # inputs alone
            return None
        return graph if isinstance(graph, Graph) else None
