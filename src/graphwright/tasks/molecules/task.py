"""Fingerprint2Molecule as a task, and the reading of its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field
from torch import Tensor

from graphwright.decoding import Candidates
from graphwright.files import shipped_table, write_text
from graphwright.graphs import Graph, Prediction, Vocabulary
from graphwright.graphs.molecules import (
    BONDS,
    MoleculeError,
    graph_from_molecule,
    molecule_vocabulary,
    parse_smiles,
)
from graphwright.models import Inputs
from graphwright.settings import Capacity, DataSettings, InputForm, TaskSettings
from graphwright.settings.source import CONFIGS
from graphwright.tasks.molecules.dataset import MoleculeDataset, MoleculeSample, molecule_statistics
from graphwright.tasks.molecules.fingerprint import (
    BITS,
    Fingerprint,
    FingerprintLikeness,
    bits_of_tokens,
    fingerprint_batch,
    fingerprint_of,
    is_one_molecule,
)
from graphwright.tasks.molecules.prepare.folder import MANIFEST
from graphwright.tasks.molecules.shards import ShardDataset
from graphwright.tasks.molecules.source import SmilesTable, elements_of, find_data, read_smiles
from graphwright.tasks.molecules.targets import (
    MoleculeTask,
    data_overrides,
    draw_bits,
    molecule_sheet,
    structure_svg,
)
from graphwright.tasks.page import TRAINED, Case, ShownInput, TaskPage, in_a_sentence
from graphwright.tasks.split import Split
from graphwright.tasks.task import LONGEST_NAME, BadInput, NamedInput, file_stem, register_task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rdkit.Chem import Mol


FILES = (".parquet", ".csv", ".tsv", ".smi", ".smiles", ".ism", ".txt")
"""How the names of files with SMILES end; each but the first may end in .gz, too."""
PRESET = "fingerprint2molecule-cpu"
"""What molecules are trained with where nobody says."""


class FingerprintTask(TaskSettings):
    """Fingerprint2Molecule: the active bits of an ECFP4 fingerprint; the graph is the molecule's heavy atoms."""

    input_kinds = ("bits",)
    default_encoder = "fingerprint"

    kind: Literal["fingerprint"] = "fingerprint"
    """What is predicted from what: fingerprint, molecules from their ECFP4 bits."""
    data: Annotated[str, Field(min_length=1)] = "qm9"
    """Shipped data (qm9, molecules), a file with SMILES (parquet, csv, tsv, smi), or a prepared folder."""
    capacity: Capacity = 32
    """Largest number of heavy atoms, N; larger molecules are left out."""
    elements: str = ""
    """Element symbols that a node may have, such as C N O F; empty: those in the data."""
    diffusion: bool = True
    """Also predict how many neighbours of each element an atom has, and match by it."""


@register_task(FingerprintTask)
@dataclass(frozen=True)
class Fingerprint2Molecule(MoleculeTask):
    """From the active bits of an ECFP4 fingerprint to the molecule."""

    settings: FingerprintTask

    checks_answers = True
    files = "SMILES (smi, txt, csv, tsv, parquet) or fingerprints (npy, or 2048 zeros and ones a line)"
    example_file = "molecules.smi"

    @classmethod
    def settings_for(cls, source: str) -> DataSettings | None:
        """For a file with SMILES, by its name, or a folder of prepared molecules, the preset on these data."""
        path = Path(source)
        if path.is_dir():
            is_data = (path / MANIFEST).is_file() and not any((path / name).exists() for name in CONFIGS)
        else:
            is_data = path.name.lower().removesuffix(".gz").endswith(FILES)
        return DataSettings(data_overrides(source), PRESET) if is_data else None

    @property
    def name(self) -> str:
        return Path(self.settings.data).stem

    @property
    def page(self) -> FingerprintPage:
        return FingerprintPage(self)

    @property
    def summary(self) -> str:
        return (
            f"From the active bits of a 2048-bit ECFP4 fingerprint to the molecule, up to {self.capacity} heavy "
            f"atoms of {', '.join(self.vocabulary.nodes)} (Fingerprint2Molecule, data {self.name})."
        )

    @property
    def limits(self) -> str:
        """What a model has never seen."""
        return (
            "Fingerprints must be RDKit's Morgan fingerprints of radius 2 with 2048 bits and without chirality, "
            f"of molecules of at most {self.capacity} heavy atoms like those it was trained on. Stereochemistry "
            "is not predicted; charges and hydrogens are recovered from the bonds, not predicted."
        )

    @property
    def capacity(self) -> int:
        """Largest number of heavy atoms."""
        return self.settings.capacity

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The elements that the settings name, or those in the data."""
        named = tuple(self.settings.elements.split())
        if named:
            # Checked against the periodic table where RDKit is needed anyway, when data are read.
            return Vocabulary(named, BONDS)
        if self._is_prepared:
            return self._shards("train").vocabulary
        table = _table(find_data(self.settings.data))
        elements = elements_of(table.smiles.to_pylist())
        if not elements:
            # Without an atom there is no molecule, which is an error that says why.
            MoleculeDataset(table, np.arange(len(table)), molecule_vocabulary(["C"]), self.capacity)
        return molecule_vocabulary(elements)

    def resolved(self) -> FingerprintTask:
        """The settings with the elements in the data named, which a trained model must know without them."""
        return self.settings.model_copy(update={"elements": " ".join(self.vocabulary.nodes)})

    @property
    def _is_prepared(self) -> bool:
        return Path(self.settings.data).is_dir()

    def _shards(self, split: Split) -> ShardDataset:
        named = tuple(self.settings.elements.split())
        vocabulary = molecule_vocabulary(named) if named else None
        return ShardDataset(Path(self.settings.data), split, vocabulary, self.capacity)

    def data(
        self, split: Split, *, seed: int | None = None, limit: int | None = None
    ) -> MoleculeDataset | ShardDataset:
        """A split of the settings' data, a file or a folder that `graphwright data prepare` has made."""
        if seed is not None:
            raise ValueError(f"the molecules of {self.name} are read, not generated: there is no seed to change")
        if self._is_prepared:
            return self._shards(split)
        table = _table(find_data(self.settings.data))
        return self._dataset(table, table.rows(split), limit)

    def data_from(self, path: Path, *, limit: int | None = None) -> MoleculeDataset | ShardDataset:
        """All rows of a file with SMILES, or the test split of a folder that `data prepare` has made."""
        if path.is_dir():
            return ShardDataset(path, "test", molecule_vocabulary(self.vocabulary.nodes), self.capacity)
        table = read_smiles(find_data(str(path)))
        return self._dataset(table, np.arange(len(table)), limit)

    def _dataset(self, table: SmilesTable, rows: Any, limit: int | None) -> MoleculeDataset:
        vocabulary = molecule_vocabulary(self.vocabulary.nodes)
        return MoleculeDataset(table, rows, vocabulary, self.capacity, limit)

    @property
    def input_form(self) -> InputForm:
        return InputForm("bits", BITS)

    def file_of(self, given: Any) -> Path | None:
        """A path, or text that is one by its ending or by a file's being there; other text is a SMILES."""
        if not isinstance(given, str):
            return super().file_of(given)
        named = given.lower().removesuffix(".gz").endswith((*FILES, ".npy"))
        return Path(given) if named or (len(given) < LONGEST_NAME and Path(given).is_file()) else None

    def is_one(self, given: Any) -> bool:
        """One molecule: a list of numbers is one, too."""
        return is_one_molecule(given)

    def inputs(self, given: Any) -> Tensor:
        """(b, k) tokens from SMILES, RDKit molecules, bit vectors (2048,), or tokens; one or many."""
        return fingerprint_batch(given)

    def checked(
        self, prediction: Prediction, inputs: Inputs, count: int, *, programs: int | None, seconds: float
    ) -> list[Candidates]:
        """Molecules that have the fingerprint, or come nearest to it; see `assembly.ranking`."""
        from graphwright.tasks.molecules.assembly.alphabet import alphabet_of
        from graphwright.tasks.molecules.assembly.ranking import FingerprintEffort, fingerprint_candidates

        assert isinstance(inputs, Tensor)  # as `inputs` and the data sets make them
        return fingerprint_candidates(
            prediction,
            self.vocabulary,
            bits_of_tokens(inputs),
            alphabet_of(self.vocabulary.nodes),
            self.capacity,
            count,
            FingerprintEffort(programs=programs, seconds=seconds),
        )

    def likeness(self) -> FingerprintLikeness:
        return FingerprintLikeness()

    def read(self, path: Path) -> Iterator[NamedInput | BadInput]:
        """The fingerprints of a file, or those of the SMILES in it."""
        return map(self._remarked, read_fingerprints(path))

    def read_words(self, words: Sequence[str]) -> Iterator[NamedInput | BadInput]:
        """Those in files, or of words that are SMILES."""
        for word in words:
            path = self.file_of(word)
            if path is not None:
                yield from self.read(path)
            else:
                yield self._remarked(_named(word, file_stem(word, "molecule"), word))

    def _remarked(self, one: NamedInput | BadInput) -> NamedInput | BadInput:
        """With a note where a molecule is none that the model can know, or one that it was trained on."""
        if isinstance(one, BadInput) or not one.text:
            return one
        return replace(one, note="; ".join(self.remarks(one.text)))

    def remarks(self, given: str) -> list[str]:
        """What to say of a SMILES."""
        from rdkit import Chem

        molecule = parse_smiles(given)
        try:
            graph_from_molecule(molecule, self.vocabulary, self.capacity)
        except MoleculeError as error:
            return [f"out of scope: {error.detail}"]
        trained = Chem.MolToSmiles(molecule, isomericSmiles=False) in self._trained
        return [TRAINED] if trained else []

    @property
    def _trained(self) -> frozenset[str]:
        if (
            self._is_prepared
            or not (path := Path(shipped_table(self.settings.data) or self.settings.data)).is_file()
        ):
            return frozenset()
        return _training_smiles(path)

    def statistics(self, samples: Iterable[MoleculeSample]) -> list[tuple[str, str]]:
        return molecule_statistics(samples, self.vocabulary).rows()

    def sheet(self, samples: Sequence[MoleculeSample]) -> Figure:
        return molecule_sheet(samples)

    def input_of(self, sample: MoleculeSample) -> Fingerprint:
        return Fingerprint(sample.bits)

    def draw_input(self, given: Fingerprint, axes: Axes) -> None:
        """The fingerprint as a field of 32 x 64 bits."""
        draw_bits(given.bits, axes)

    def write_drawing(
        self,
        path: Path,
        given: Any,  # noqa: ARG002
        graph: Graph,
        title: str,
        text: str | None = None,
    ) -> None:
        """An SVG by RDKit; of what is no molecule, the bare structure."""
        drawing = structure_svg(graph, text or self.text(graph), title)
        write_text(path.with_name(path.name + ".svg"), drawing)


@cache
def _table(path: Path) -> SmilesTable:
    return read_smiles(path)


def read_fingerprints(path: Path) -> Iterator[NamedInput | BadInput]:
    """Every molecule of a file; the name is the file and the number of the line or row, from 1."""
    if not path.exists():
        yield BadInput(f"{path}: no such file")
        return
    rows: Iterable[tuple[int, Any, str]]
    try:
        if path.suffix.lower() == ".npy":
            rows = ((number, vector, "") for number, vector in enumerate(_vectors(path), 1))
        else:
            rows = _texts(path)
    except ValueError as error:
        yield BadInput(str(error))
        return
    for number, row, title in rows:
        yield _named(
            f"{path}:{number}", file_stem(title, f"{path.stem}-{number}"), "" if row is None else row, title
        )


def _named(name: str, stem: str, given: Any, title: str = "") -> NamedInput | BadInput:
    try:
        fingerprint = Fingerprint(fingerprint_of(given))
    except MoleculeError as error:
        return BadInput(f"{name}: {error}; expected a SMILES or {BITS} zeros and ones")
    except ValueError as error:
        return BadInput(f"{name}: {error}")
    text = given if isinstance(given, str) and set(given) - {"0", "1"} else ""
    return NamedInput(name, stem, fingerprint, title=title, text=text)


def _texts(path: Path) -> list[tuple[int, str | None, str]]:
    table = read_smiles(path)
    names = table.names or [""] * len(table)
    return list(zip(table.numbers.tolist(), table.smiles.to_pylist(), names, strict=True))


@cache
def _training_smiles(path: Path) -> frozenset[str]:
    """The SMILES of the training rows, as they are written; of a file without splits, which takes long, none."""
    table = _table(path)
    if table.split is None:
        return frozenset()
    return frozenset(table.smiles.take(table.rows("train")).drop_null().to_pylist())


def _vectors(path: Path) -> Any:
    try:
        array = np.load(path, allow_pickle=False)
    # A file without a byte is an EOFError, one that claims to be larger than the memory a MemoryError.
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise ValueError(f"{path} cannot be read as a NumPy array: {error}") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} is an archive of NumPy arrays; one array was expected")
    vectors = array[None] if array.ndim == 1 else array
    if vectors.ndim != 2 or vectors.shape[1] != BITS:
        raise ValueError(f"{path}: expected fingerprints of shape (m, {BITS}), got {array.shape}")
    if not len(vectors):
        raise ValueError(f"{path} holds no fingerprints")
    return vectors


LONGEST_SMILES = 600
"""Characters of a SMILES that a page reads: far above any molecule that a model answers, far below one that fills
the memory."""
EXAMPLES = (
    ("Caffeine", "Cn1cnc2c1c(=O)n(C)c(=O)n2C"),
    ("Aspirin", "CC(=O)Oc1ccccc1C(=O)O"),
    ("Paracetamol", "CC(=O)Nc1ccc(O)cc1"),
    ("Nicotine", "CN1CCCC1c1cccnc1"),
    ("Ibuprofen", "CC(C)Cc1ccc(C(C)C(=O)O)cc1"),
    ("Toluene", "Cc1ccccc1"),
    ("Histamine", "NCCc1c[nH]cn1"),
    ("Uracil", "O=c1cc[nH]c(=O)[nH]1"),
    ("Proline", "OC(=O)C1CCCN1"),
)
"""Examples, by title; a page offers the first five that the model can know."""


@dataclass(frozen=True)
class _Line:
    """A line of text, read only if it is asked for."""

    number: int
    text: str


class FingerprintPage(TaskPage[Fingerprint2Molecule]):
    """Molecules, of which the model sees the bits alone, or bits."""

    title = "From a fingerprint to its molecule"
    text_label = "A SMILES"
    text_suffix = ".smi"
    one_line = True
    unseen = "An unseen molecule"
    empty = "there is no molecule in it: a SMILES such as CCO was expected"

    @property
    def takes_text(self) -> str:
        return "SMILES, or 2048 zeros and ones; one a line"

    def examples(self) -> list[tuple[str, str]]:
        known = [(title, smiles) for title, smiles in EXAMPLES if self._truth_of(parse_smiles(smiles)) is not None]
        return known[:5]

    def accepted(self, data: bytes, suffix: str) -> tuple[bytes, str]:
        if suffix not in ("", ".smi", ".txt"):
            return data, suffix
        try:
            return data.decode("utf-8-sig").encode(), ".smi"
        except UnicodeDecodeError as error:
            raise ValueError("not text; a SMILES a line was expected") from error

    def inputs(self, path: Path, formula: str) -> Iterator[NamedInput | BadInput]:
        """The lines of a text, unread: only the one that is asked for must be a molecule."""
        if path.suffix != ".smi":
            yield from super().inputs(path, formula)
            return
        lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
        for number, line in enumerate(filter(None, lines), 1):
            yield NamedInput(line.split()[0][:40], path.stem, _Line(number, line))

    def case(self, chosen: NamedInput, name: str, path: Path) -> Case:  # noqa: ARG002
        if not isinstance(chosen.value, _Line):
            return self._bits_case(chosen.value, name)
        word, _, title = chosen.value.text.partition(" ")
        if len(word) == BITS and not set(word) - {"0", "1"}:
            return self._bits_case(word, title or "fingerprint")
        if len(word) > LONGEST_SMILES:
            told = f"Line {chosen.value.number} has {len(word):,} characters"
            raise ValueError(f"{told}; a SMILES of at most {LONGEST_SMILES} is read.")
        try:
            return self._molecule_case(word, title.strip())
        except MoleculeError as error:
            raise ValueError(f"Line {chosen.value.number}: {error.detail}.") from error

    def sample_case(self, sample: Any, name: str) -> Case:  # noqa: ARG002
        return self._molecule_case(sample.smiles, "")

    def _bits_case(self, given: Any, name: str) -> Case:
        tokens = self.task.inputs([given])
        bits = bits_of_tokens(tokens)[0].tolist()
        return Case(tokens, ShownInput(name, f"{len(bits)} of {BITS} bits", bits=bits))

    def _molecule_case(self, smiles: str, name: str) -> Case:
        truth = self._truth_of(parse_smiles(smiles))
        tokens = self.task.inputs(smiles)
        bits = bits_of_tokens(tokens)[0].tolist()
        caption = f"{len(bits)} of {BITS} bits; the model sees only these, not the molecule"
        shown = ShownInput(name or smiles[:60], caption, text=smiles, bits=bits)
        notes = [in_a_sentence(remark) for remark in self.task.remarks(smiles)]
        return Case(tokens, shown, truth, in_scope=truth is not None, notes=notes)

    def _truth_of(self, molecule: Mol) -> Graph | None:
        """None where it is none that the model can know."""
        try:
            return graph_from_molecule(molecule, self.task.vocabulary, self.task.capacity)
        except MoleculeError:
            return None
