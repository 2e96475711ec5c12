"""What is fuzzed: a reader, files that it can read, words of its format, and what it may raise.

A target is called with the bytes of a file. It returns where the reader takes them or refuses them as it declares,
by the file's name; anything else is a finding. The tests call the same functions (tests/property/test_readers.py).
"""

from __future__ import annotations

import atexit
import base64
import io
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from torch import Tensor

from graphwright.graphs import from_json, to_json
from graphwright.graphs.molecules import MoleculeError, graph_from_molecule, molecule_vocabulary, parse_smiles
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.checkpoint import CheckpointError
from graphwright.inference.memory_limit import TooLargeError
from graphwright.inference.model import load_model
from graphwright.settings import SettingsError, load_run, to_yaml
from graphwright.spectra import Spectrum, SpectrumError, read_spectra
from graphwright.spectra.files import READERS, SpectrumSource
from graphwright.tasks.molecules.source import elements_of, read_smiles
from graphwright.tasks.split import SPLITS
from graphwright.tasks.table import TableDataset, TableTask, understand
from graphwright.tasks.table.understood import _understood
from graphwright.training.state import progress_of

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
SIZE_LIMIT = 2**24
"""Bytes that a reader of spectra may unpack."""


class Finding(AssertionError):  # noqa: N818, it is what it is called
    """A reader did what it does not declare, other than by an exception."""


@dataclass(frozen=True)
class Target:
    """A reader. file: under which name it finds the bytes. words: for mutations, which leave JSON what it is."""

    name: str
    file: str
    read: Callable[[Path], None]
    seeds: tuple[bytes, ...]
    words: tuple[str, ...] = ()
    is_json: bool = False

    def __call__(self, data: bytes) -> None:
        """Read these bytes; raises what the reader does not declare."""
        path = folder() / self.file
        path.write_bytes(data)
        self.read(path)


@cache
def folder() -> Path:
    """Where the bytes are put: in memory, if the system has such a folder."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="graphwright-fuzz-", dir=memory if memory.is_dir() else None))
    owner = os.getpid()

    def remove() -> None:
        # A session that ends by a finding is a forked copy of this process, and others still need the folder.
        if os.getpid() == owner:
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)
    return made


def _refused(error: Exception, path: Path) -> None:
    """A declared error names the file and, as a person is to read it, is one line."""
    if path.name not in str(error):
        raise Finding(f"an error that does not name the file: {error!r}") from error


def _spectra(path: Path, form: str | None = None) -> None:
    source = SpectrumSource(path, SIZE_LIMIT)
    try:
        if form is None:
            for _ in read_spectra(path, partial(_refused, path=path), SIZE_LIMIT):
                pass
            return
        for result in READERS[form](source):
            if not isinstance(result, Spectrum):
                _refused(result, path)
    except SpectrumError as error:
        _refused(error, path)


def _smiles(path: Path) -> None:
    try:
        table = read_smiles(path)
        for split in SPLITS:
            table.rows(split)
    except ValueError as error:
        _refused(error, path)
        return
    vocabulary = molecule_vocabulary(elements_of(table.smiles.to_pylist()) or ["C"])
    for text in table.smiles.to_pylist():
        try:
            graph_from_molecule(parse_smiles(text or ""), vocabulary)
        except MoleculeError:
            continue


def _table(path: Path) -> None:
    _understood.cache_clear()  # two inputs of one length within one tick of the clock would pass for one
    try:
        table = understand(TableTask(data=str(path)))
    except ValueError as error:
        _refused(error, path)
        return
    table.unused()
    for split in SPLITS:
        if table.samples[split]:
            data = TableDataset(table, split)
            inputs, _ = data.batch(range(len(data)))
            tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
            # NaN is an energy that is not known.
            if any(tensor.isinf().any() for tensor in tensors):
                raise Finding("an input that is not finite")


def _graph(path: Path) -> None:
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return
    try:
        graph = from_json(data)
    except ValueError:
        return
    again = from_json(json.loads(json.dumps(to_json(graph))))
    if again != graph:
        raise Finding(f"{graph} is {again} once it was written and read")


def _settings(path: Path) -> None:
    try:
        run = load_run(str(path))
    except SettingsError as error:
        _refused(error, path)
        if "\n" in str(error):
            raise Finding(f"an error of several lines: {error}") from error
        return
    path.write_text(to_yaml(run), encoding="utf-8")
    if load_run(str(path)) != run:
        raise Finding(f"{run} is {load_run(str(path))} once it was written and read")


MODEL = GOLDEN / "checkpoints" / "0.1.0" / "model"


@cache
def _model() -> tuple[Path, dict[str, Any]]:
    """A folder with a model's tensors, and what is said beside them."""
    room = folder() / "model"
    shutil.copytree(MODEL, room, dirs_exist_ok=True)  # another session of this process may have been here
    note: dict[str, Any] = json.loads((room / "model.json").read_text())
    return room, note


def _note(path: Path) -> None:
    room, _ = _model()
    path.replace(room / "model.json")
    _load(room)


def _facts(path: Path) -> None:
    """The facts alone, so that no checksum is in the way: whoever makes such a checkpoint means it."""
    room, note = _model()
    try:
        facts = json.loads(path.read_bytes())
        text = json.dumps({**note, "facts": facts, "facts_sha256": None})
    except (ValueError, RecursionError):
        return
    (room / "model.json").write_text(text)
    _load(room)


def _load(room: Path) -> None:
    try:
        model = load_model(str(room))
        str(model)
    except CheckpointError as error:
        _refused(error, room / "model.json")
    except TooLargeError:
        return
    try:
        progress_of(checkpoints.load(room / "model"))
    except CheckpointError:
        return


def _parquet(columns: dict[str, Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def _mzml(compressed: bool) -> bytes:
    def array(numbers: Sequence[float], kind: str) -> str:
        raw = np.array(numbers, "<f8").tobytes()
        packed = base64.b64encode(zlib.compress(raw) if compressed else raw).decode()
        how = "MS:1000574" if compressed else "MS:1000576"
        named = {"MS:1000514": "m/z array", "MS:1000515": "intensity array"}[kind]
        said = "zlib compression" if compressed else "no compression"
        return (
            f'<binaryDataArray encodedLength="{len(packed)}"><cvParam accession="MS:1000523" name="64-bit float"/>'
            f'<cvParam accession="{how}" name="{said}"/><cvParam accession="{kind}" name="{named}"/>'
            f"<binary>{packed}</binary></binaryDataArray>"
        )

    return (
        '<?xml version="1.0"?><mzML xmlns="http://psi.hupo.org/ms/mzml"><run><spectrumList count="1">'
        '<spectrum index="0" id="scan=1" defaultArrayLength="2">'
        '<cvParam accession="MS:1000511" name="ms level" value="2"/>'
        '<cvParam accession="MS:1000127" name="centroid spectrum" value=""/>'
        '<precursorList count="1"><precursor><selectedIonList count="1"><selectedIon>'
        '<cvParam accession="MS:1000744" name="selected ion m/z" value="100.5"/>'
        '<cvParam accession="MS:1000041" name="charge state" value="1"/></selectedIon></selectedIonList>'
        '<activation><cvParam accession="MS:1000045" name="collision energy" value="30"/></activation>'
        f'</precursor></precursorList><binaryDataArrayList count="2">{array([50.5, 60.25], "MS:1000514")}'
        f"{array([1.0, 0.5], 'MS:1000515')}</binaryDataArrayList></spectrum></spectrumList></run></mzML>"
    ).encode()


ROWS: list[dict[str, Any]] = [
    {"x": [1.5, 2.0], "nodes": ["a", "b"], "edges": [[0, 1]], "split": "train"},
    {"x": [0.5, 1.0], "nodes": ["a", "b", "a"], "edges": [[0, 1, "e"], [1, 2, "f"]], "split": "train"},
    {"x": [2.5, 0.0], "nodes": 2, "edges": [], "split": "val"},
]
GRAPHS: list[dict[str, Any]] = [
    {
        "points": [[0.5, 1], [1, 0.5]],
        "graph": {
            "nodes": [{"id": 0, "label": "a", "w": 1.5}, {"id": "q", "label": "b", "w": [2]}],
            "edges": [{"source": 0, "target": "q", "label": "e"}],
        },
        "split": "train",
    },
    {"points": [[1, 2]], "graph": {"nodes": [{"id": [1, 2]}], "links": []}, "split": "test"},
]
PEAKS: list[dict[str, Any]] = [
    {"peaks": [[50.5, 1.0], [60.0, 2.0]], "precursor_mz": 80.1, "adduct": "[M+H]+", "formula": "C5H4O",
     "charge": 1, "collision_energy": 20, "smiles_target": "CCO", "split": "train"}
]  # fmt: skip
WORDS: list[dict[str, Any]] = [
    {"text": ["the", "cat"], "smiles": "CCO", "nodes": ["n", "v"], "edges": [[0, 1]],
     "attributes": [{"w": 1.5}, {"w": 2}], "id": "r1", "split": "train"}
]  # fmt: skip


def _jsonl(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _table_parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    """Lists and objects as JSON, so that rows may differ in what they hold."""
    texts = {name: [json.dumps(row[name]) for row in rows] for name in rows[0] if name != "split"}
    return _parquet(texts | {"split": [row["split"] for row in rows]}, compression="none")


def _golden(*names: str) -> tuple[bytes, ...]:
    return tuple((GOLDEN / "spectra" / name).read_bytes() for name in names)


MARKS = ("NaN", "1e999", "-1", "0", "1e-400", "1" * 400, "\\ud800", "\\u0000", "null", "true", "\ufeff", "²", "١")
"""Numbers and characters that are seldom thought of."""
BRACKETS = ("{", "}", "[", "]", '"', ":", ",", "[[", "]]", '":', '{"')
PEAK_KEYS = ("precursor", "pepmass", "charge", "adduct", "[M+H]+", "[M-H]-", "collision energy", "ms level")
NODE_LINK = ("nodes", "edges", "links", "id", "label", "source", "target", "directed", "multigraph")
COLUMNS = (*NODE_LINK, "graph", "attributes", "smiles_target", "split", "train", "peaks", "bytes", "path", ".png")
SMILES_WORDS = (
    "smiles",
    "id",
    "split",
    "train",
    "c1ccccc1",
    "[",
    "]",
    "%",
    "@",
    "\t",
    ",",
    '"',
    "(",
    ")",
    "=",
    "#",
)
YAML_WORDS = (
    "preset: ", "task:", "model:", "loss:", "train:", "matching:", "kind: ", "width: ", "steps: ", "capacity: ",
    "coloring10", "table", "&a ", "*a", "<<: ", "? ", "- ", "|", ">", "!!", "%", "---", "...", "~", "\n  ", "none",
)  # fmt: skip
MZML_WORDS = (
    "<spectrum>", "</spectrum>", "<cvParam ", "accession=", "MS:1000511", "MS:1000574", "MS:1000523", "value=",
    "<binary>", "</binary>", "<!DOCTYPE", "<!ENTITY", "&amp;", "<precursor>", "encodedLength=",
)  # fmt: skip

TARGETS: dict[str, Target] = {
    target.name: target
    for target in [
        Target(
            "mgf",
            "input.mgf",
            partial(_spectra, form="mgf"),
            _golden("library.mgf"),
            (*MARKS, *PEAK_KEYS, "BEGIN IONS\n", "END IONS\n", "=", "NUM PEAKS=", "FORMULA="),
        ),
        Target(
            "msp",
            "input.msp",
            partial(_spectra, form="msp"),
            _golden("mona.msp", "nist.msp"),
            (
                *MARKS,
                *PEAK_KEYS,
                "Name: ",
                "Num Peaks: ",
                "Comments: ",
                "Formula: ",
                "\n\n",
                ";",
                '"ms level=MS2"',
            ),
        ),
        Target(
            "massbank",
            "input.txt",
            partial(_spectra, form="massbank"),
            _golden("record.massbank.txt"),
            (
                *MARKS,
                "ACCESSION: ",
                "//\n",
                "PK$PEAK: ",
                "PK$NUM_PEAK: ",
                "AC$MASS_SPECTROMETRY: ",
                "DEPRECATED: ",
            ),
        ),
        Target(
            "spectra-tsv",
            "input.tsv",
            partial(_spectra, form="massspecgym"),
            (b"identifier\tmzs\tintensities\tcollision_energy\nX1\t50.5,60.25\t1.0,0.5\t30.0\nX2\t50\t1\t\n",),
            (*MARKS, "mzs", "intensities", "\t", "\n", ",", ";", "formula", "precursor_mz", "adduct"),
        ),
        Target(
            "spectra-json",
            "input.json",
            partial(_spectra, form="json"),
            (
                b'[{"mzs": [50.5, 60.25], "intensities": [1, 0.5], "formula": "CH4"}, {"peaks": [[1.5, 2]]}]',
                b'{"spectrum": "50.5:1 60:2", "metaData": [{"name": "ms level", "value": "MS2"}]}\n'
                b'{"peaks_json": "[[1, 2]]"}',
                b'{"spectra": [{"peaks": [[1, 2]], "collision_energy": 30, "charge": 1}]}',
            ),
            (
                *MARKS,
                *BRACKETS,
                "spectra",
                "peaks",
                "peaks_json",
                "mzs",
                "intensities",
                "spectrum",
                "name",
                "value",
            ),
            is_json=True,
        ),
        Target(
            "spectra-parquet",
            "input.parquet",
            partial(_spectra, form="parquet"),
            (
                _parquet(
                    {"mzs": [[50.5, 60.25], [1.0]], "intensities": [[1.0, 0.5], [1.0]], "formula": ["CH4", None]},
                    compression="none",
                ),
            ),
        ),
        Target("mzml", "input.mzml", partial(_spectra, form="mzml"), (_mzml(True), _mzml(False)), MZML_WORDS),
        Target(
            "spectra-sniffed",
            "input",
            _spectra,
            (*_golden("library.mgf", "mona.msp", "record.massbank.txt"), _mzml(True), b'[{"peaks": [[1, 2]]}]'),
            ("BEGIN IONS", "ACCESSION: ", "<mzML", "PAR1", "\x1f\x8b", "mzs\tintensities", "name:", "[", "{"),
        ),
        Target(
            "smiles",
            "input.smi",
            _smiles,
            (b"CCO ethanol\nc1ccccc1 benzene\n\n[Na+].[Cl-]\tsalt\n", b"241\tc1ccccc1\n702\tCCO\n"),
            SMILES_WORDS,
        ),
        Target(
            "smiles-csv",
            "input.csv",
            _smiles,
            (b'smiles,id,split\nCCO,1,train\n"CC(=O)N",2,val\n', b"name,canonical_smiles\nx,C1CC1\n"),
            SMILES_WORDS,
        ),
        Target("smiles-tsv", "input.tsv", _smiles, (b"id\tsmiles\n1\tCCO\n2\tC#N\n",), SMILES_WORDS),
        Target(
            "smiles-parquet",
            "molecules.parquet",
            _smiles,
            (_parquet({"smiles": ["CCO", "C"], "split": ["train", "val"]}, compression="none"),),
        ),
        Target(
            "table-jsonl",
            "table.jsonl",
            _table,
            tuple(_jsonl(rows) for rows in (ROWS, GRAPHS, PEAKS, WORDS)),
            (*MARKS, *BRACKETS, *COLUMNS),
            is_json=True,
        ),
        Target(
            "table-csv",
            "table.csv",
            _table,
            (
                b'x,y,nodes,edges,split\n1.5,2,"[""a"", ""b""]","[[0, 1]]",train\n2,3,2,[],test\n',
                b'text,smiles_target,id,split\n"[""the""]",CCO,r1,train\n',
                b'points,graph,split\n"[[1, 2]]","{""nodes"": [{""id"": 0}], ""edges"": []}",train\n',
            ),
            (*MARKS, *BRACKETS, *COLUMNS, '""', '"[', ']"', "\n", ","),
        ),
        Target(
            "table-parquet",
            "table.parquet",
            _table,
            tuple(_table_parquet(rows) for rows in (ROWS, GRAPHS, PEAKS, WORDS)),
        ),
        Target(
            "graph",
            "graph.json",
            _graph,
            ((GOLDEN / "graph.json").read_bytes(), *(json.dumps(row["graph"]).encode() for row in GRAPHS)),
            (*MARKS, *BRACKETS, *NODE_LINK),
            is_json=True,
        ),
        Target(
            "settings",
            "settings.yaml",
            _settings,
            (
                b"preset: coloring20\nmodel:\n  width: 64\n  heads: 2\n",
                b"task: {kind: table, data: pairs.csv}\ntrain:\n  steps: 9\nmodel.width: 32\n",
                b"matching: {kind: labels, temperature: 1e-3}\nloss:\n  self_loops: excluded\n",
            ),
            (*MARKS, *BRACKETS, *YAML_WORDS),
        ),
        Target(
            "checkpoint",
            "note.json",
            _note,
            ((MODEL / "model.json").read_bytes(),),
            (*MARKS, *BRACKETS, "format", "tensors", "sha256", "facts", "facts_sha256", "..", "/"),
            is_json=True,
        ),
        Target(
            "checkpoint-facts",
            "facts.json",
            _facts,
            (
                json.dumps(json.loads((MODEL / "model.json").read_text())["facts"]).encode(),
                b'{"progress": {"step": 3}}',
            ),
            (
                *MARKS,
                *BRACKETS,
                "settings",
                "task",
                "model",
                "kind",
                "table",
                "progress",
                "step",
                "decoder",
                "test",
            ),
            is_json=True,
        ),
    ]
}
