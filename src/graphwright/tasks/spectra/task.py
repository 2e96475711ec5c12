"""MS2Scaffold as a task, and its drawings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphwright.decoding import Formula
from graphwright.files import columns_of
from graphwright.graphs import Graph, Vocabulary, save_figure
from graphwright.graphs.drawing import empty_sheet
from graphwright.graphs.molecules import (
    BONDS,
    MoleculeError,
    graph_from_molecule,
    molecule_vocabulary,
    parse_smiles,
)
from graphwright.known import Library
from graphwright.known.library import Bag, Memory
from graphwright.models import Inputs, SpectrumInputs
from graphwright.settings import DataSettings, InputForm
from graphwright.spectra import Spectrum, SpectrumError, annotate, clean, parse_formula, read_spectra
from graphwright.tasks.molecules.targets import MoleculeTask, data_overrides, draw_structure
from graphwright.tasks.molecules.task import LONGEST_SMILES
from graphwright.tasks.page import Case, Ion, ShownInput, ShownPeak, TaskPage, in_a_sentence
from graphwright.tasks.spectra.dataset import NoSpectrumError, SpectrumDataset, SpectrumSample, spectrum_statistics
from graphwright.tasks.spectra.encoded import (
    EncodedSpectrum,
    SpectrumTask,
    TrainingUnit,
    bad_inputs,
    bounds_of,
    describe,
    is_one_spectrum,
    read_inputs,
    scope_of,
    spectrum_batch,
)
from graphwright.tasks.spectra.memory import SpectrumLikeness, bags_of_words, baselines, spectrum_memory
from graphwright.tasks.spectra.prepared import (
    SpectrumTable,
    find_spectra,
    murcko_scaffold,
    read_spectrum_table,
    structure_of,
)
from graphwright.tasks.split import Split
from graphwright.tasks.task import BadInput, Baseline, NamedInput, register_task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


EXPLAINED, UNEXPLAINED = "#2b50d8", "#999999"
NAMED = 6
"""Peaks that are named by their sub-formula, the most intense that do not stand in each other's way."""
APART = 0.13
"""Least distance of two names, as a share of the m/z range."""


def draw_spectrum(spectrum: EncodedSpectrum, axes: Axes) -> None:
    """A stick for every peak, blue where a sub-formula explains it, and the precursor as a dashed line."""
    mzs, heights, explained = spectrum.mzs, spectrum.intensities, spectrum.explained
    for chosen, color in ((~explained, UNEXPLAINED), (explained, EXPLAINED)):
        axes.vlines(mzs[chosen], 0, heights[chosen], colors=color, linewidth=1.2)
    precursor = float(spectrum.precursor[0]) * 1000
    if precursor:
        axes.axvline(precursor, color="#bbbbbb", linestyle="--", linewidth=0.8)
    for at in _named(spectrum, precursor):
        axes.annotate(
            str(spectrum.subformulas()[at]), (mzs[at], heights[at]), (0, 2), textcoords="offset points",
            ha="center", va="bottom", fontsize=6, color=EXPLAINED,
        )  # fmt: skip
    axes.set_ylim(0, 1.15)
    axes.set_yticks([])
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.tick_params(labelsize=7)
    axes.set_xlabel(f"m/z; {describe(spectrum)}", fontsize=7)


def spectrum_sheet(samples: Sequence[SpectrumSample], columns: int = 3) -> Figure:
    """Spectra, each beside its scaffold."""
    figure, panels = empty_sheet(len(samples), columns, cell=(5.4, 2.4), widths=(1.6, 1))
    for sample, (left, right) in zip(samples, panels, strict=False):
        left.set_axis_on()
        draw_spectrum(sample.spectrum, left)
        left.set_title(sample.identifier, fontsize=8)
        draw_structure(sample.graph, right)
    return figure


def write_candidate(path: Path, spectrum: EncodedSpectrum, graph: Graph, title: str, smiles: str | None) -> None:
    """A spectrum and a scaffold that may be behind it, as SVG whose text can be searched."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
    draw_spectrum(spectrum, left)
    draw_structure(graph, right, smiles=smiles)
    right.set_title(title, fontsize=9)
    with rc_context({"svg.fonttype": "none"}):
        save_figure(figure, path)


def _named(spectrum: EncodedSpectrum, precursor: float) -> list[int]:
    mzs, chosen = spectrum.mzs, list[int]()
    reach = APART * max(float(np.ptp(np.append(mzs, precursor or mzs[-1]))), 1.0)
    for at in np.argsort(-spectrum.intensities, kind="stable").tolist():
        if spectrum.explained[at] and all(abs(mzs[at] - mzs[other]) >= reach for other in chosen):
            chosen.append(at)
        if len(chosen) == NAMED:
            break
    return chosen


NAME = "ms2scaffold"
PRESET = "ms2scaffold-cpu"
"""What spectra are trained with where nobody says."""
FILES = (".mgf", ".msp")
"""How the names of files end that can only be spectra; each may end in .gz, too."""
PEAK_COLUMNS = {"mzs", "intensities"}
"""By which a table of spectra, such as MassSpecGym's, is told from one of molecules: both have SMILES."""


@register_task(SpectrumTask)
@dataclass(frozen=True)
class MS2Scaffold(MoleculeTask):
    """From a tandem mass spectrum to the Murcko scaffold of the molecule."""

    settings: SpectrumTask
    formula: str | None = None
    """Molecular formula of the spectra in files that do not say theirs."""

    own_baselines = True
    files = "tandem mass spectra (mgf, msp, mzML, MassBank records, MassSpecGym tsv, json, parquet)"
    example_file = "spectra.mgf"

    @classmethod
    def settings_for(cls, source: str) -> DataSettings | None:
        """For a file of spectra, by its name or by its columns, the preset on these data."""
        path = Path(source)
        plain = path.name.lower().removesuffix(".gz")
        table = plain.endswith((".tsv", ".txt", ".parquet")) and columns_of(path) >= PEAK_COLUMNS
        return DataSettings(data_overrides(source), PRESET) if table or plain.endswith(FILES) else None

    @property
    def page(self) -> SpectrumPage:
        return SpectrumPage(self)

    @property
    def name(self) -> str:
        """With the data's name, if they are not the shipped ones."""
        stem = Path(self.settings.data).stem
        return NAME if stem == f"massbank_{NAME}" else f"{NAME}-{stem}"

    @property
    def summary(self) -> str:
        return (
            f"From the peaks of a tandem mass spectrum to the molecule's Murcko scaffold, up to {self.capacity} "
            f"atoms of {', '.join(self.vocabulary.nodes)} (MS2Scaffold, data {Path(self.settings.data).stem})."
        )

    @property
    def limits(self) -> str:
        """What a model has never seen."""
        return (
            f"Spectra must be centroided MS2 spectra of positive ions, best {' and '.join(self.adducts)}, of high "
            f"resolution, of molecules that have a ring and a scaffold of at most {self.capacity} atoms. Without "
            "the molecular formula it knows less. The training molecules are few: a scaffold unlike all of theirs "
            "is rarely found."
        )

    @property
    def capacity(self) -> int:
        """Largest number of scaffold atoms."""
        return self.settings.capacity

    @property
    def adducts(self) -> list[str]:
        return self.settings.adducts.split()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The elements that the settings name, or those of the data's scaffolds."""
        named = tuple(self.settings.elements.split())
        # Checked against the periodic table where RDKit is needed anyway, when data are read.
        if named:
            return Vocabulary(named, BONDS)
        elements = self._table.elements()
        if not elements:
            raise NoSpectrumError(f"{self._table.path} has no scaffold to learn: a SMILES with a ring is expected")
        return molecule_vocabulary(elements)

    def resolved(self) -> SpectrumTask:
        """The settings with the elements in the data named, which a trained model must know without them."""
        return self.settings.model_copy(update={"elements": " ".join(self.vocabulary.nodes)})

    @property
    def _table(self) -> SpectrumTable:
        return _table(find_spectra(self.settings.data), self.settings.tolerance)

    def data(self, split: Split, *, seed: int | None = None, limit: int | None = None) -> SpectrumDataset:
        """A split of the settings' data. Training spectra come by molecule or one by one, as the settings say.

        Those of the other splits come one by one in an order by hash, so that the first of them are a fair sample:
        files have the spectra of a molecule one after the other.
        """
        if seed is not None:
            raise ValueError(f"the spectra of {self.name} are read, not generated: there is no seed to change")
        table = self._table
        rows = table.rows(split)
        if split == "train":
            return self._dataset(table, rows, limit, self.settings.unit)
        order = sorted(
            rows.tolist(), key=lambda row: hashlib.sha256(str(table.identifiers[row]).encode()).digest()
        )
        return self._dataset(table, np.array(order, np.int64), limit, TrainingUnit.SPECTRUM)

    def data_from(self, path: Path, *, limit: int | None = None) -> SpectrumDataset:
        """All rows of a file of spectra with structures, one by one in the file's order."""
        table = _table(find_spectra(str(path)), self.settings.tolerance)
        return self._dataset(table, np.arange(len(table)), limit, TrainingUnit.SPECTRUM)

    def _dataset(
        self, table: SpectrumTable, rows: NDArray[np.int64], limit: int | None, unit: TrainingUnit
    ) -> SpectrumDataset:
        vocabulary = molecule_vocabulary(self.vocabulary.nodes)
        rejected = table.rejections(vocabulary.nodes, self.capacity)
        refused = {each.row for each in rejected}
        usable = [row for row in rows.tolist() if row not in refused]
        names = table.molecules if unit is TrainingUnit.MOLECULE else np.arange(len(table))
        units: dict[Any, list[int]] = {}
        for row in usable:
            units.setdefault(names[row], []).append(row)
        arrays = [np.array(unit, np.int64) for unit in units.values()][:limit]
        mine = set(rows.tolist())
        return SpectrumDataset(
            table, arrays, vocabulary, self.settings, [each for each in rejected if each.row in mine]
        )

    def baselines(self, samples: SpectrumDataset, indices: Sequence[int]) -> list[Baseline]:
        """The commonest scaffold, and those of the nearest training spectra."""
        return baselines(self.data("train"), samples, indices)

    def references(self) -> SpectrumDataset:
        """Training spectra one by one: of molecules only the first spectrum would be seen."""
        return replace(self, settings=self.settings.model_copy(update={"unit": TrainingUnit.SPECTRUM})).data(
            "train"
        )

    def likeness(self) -> SpectrumLikeness:
        return SpectrumLikeness()

    @property
    def input_form(self) -> InputForm:
        """Peaks, and one of so many adducts."""
        return InputForm("spectrum", len(self.adducts))

    def is_one(self, given: Any) -> bool:
        """One spectrum, or one pair of peaks."""
        return is_one_spectrum(given)

    def inputs(self, given: Any) -> SpectrumInputs:
        """A batch of `Spectrum`, pairs (mzs, intensities) or encoded spectra; one or many."""
        return spectrum_batch(self.settings, given)

    def input_bounds(self, given: Any) -> list[Formula | None]:
        """At most which atoms the scaffold of each input can have, where its formula is known."""
        return bounds_of(self.settings, given, self.vocabulary)

    def bags(self, inputs: Inputs) -> Bag:
        """Words of peaks and losses."""
        if not isinstance(inputs, SpectrumInputs):
            raise ValueError(f"words are of spectra, got {type(inputs).__name__}")
        return bags_of_words(inputs)

    def memory(self, library: Library) -> Memory:
        """Some spectra of every training molecule."""
        return spectrum_memory(self.data("train"), library)

    def read(self, path: Path) -> Iterator[NamedInput | BadInput]:
        return read_inputs(self.settings, path, self.formula, self.remarks)

    def remarks(self, given: Spectrum) -> list[str]:
        """What to say of a spectrum as it was read."""
        known = ["a molecule of the training set"] if self._is_known(given) else []
        return [*scope_of(given, self.vocabulary, self.capacity), *known]

    def _is_known(self, spectrum: Spectrum) -> bool:
        """Whether a spectrum says what it is of, and a training spectrum is of the same."""
        key = (spectrum.inchikey or "").partition("-")[0]
        try:
            if not key and spectrum.smiles:
                key = structure_of(spectrum.smiles).connectivity
            return bool(key) and key in _training_molecules(
                find_spectra(self.settings.data), self.settings.tolerance
            )
        except (ValueError, ImportError, OSError):  # no molecule, or no data: nobody knows
            return False

    def with_formula(self, formula: str) -> MS2Scaffold:
        """The same task, for spectra of molecules of this formula, where their file does not say it."""
        return replace(self, formula=str(parse_formula(formula)))

    def facts(self, given: EncodedSpectrum) -> dict[str, Any]:
        """Formula and peaks, with the sub-formulas that explain them."""
        peaks = zip(given.mzs, given.intensities, given.subformulas(), strict=True)
        return {
            "formula": given.formula,
            "peaks": [
                {"mz": round(float(mz), 5), "intensity": round(float(height), 5), "formula": part and str(part)}
                for mz, height, part in peaks
            ],
        }

    def statistics(self, samples: Iterable[SpectrumSample]) -> list[tuple[str, str]]:
        return spectrum_statistics(samples, self.vocabulary, self.adducts)

    def sheet(self, samples: Sequence[SpectrumSample]) -> Figure:
        return spectrum_sheet(samples)

    def input_of(self, sample: SpectrumSample) -> EncodedSpectrum:
        return sample.spectrum

    def draw_input(self, given: EncodedSpectrum, axes: Axes) -> None:
        """The peaks, those explained in colour."""
        draw_spectrum(given, axes)

    def write_drawing(
        self, path: Path, given: EncodedSpectrum, graph: Graph, title: str, text: str | None = None
    ) -> None:
        """Spectrum and scaffold, as SVG."""
        if (text or self.text(graph)) is None:
            title += " (not a valid molecule)"
        write_candidate(path.with_name(path.name + ".svg"), given, graph, title, text)


@cache
def _training_molecules(path: Path, tolerance: float) -> frozenset[str]:
    table = _table(path, tolerance)
    return frozenset(table.molecules[table.rows("train")].tolist())


@cache
def _table(path: Path, tolerance: float) -> SpectrumTable:
    return read_spectrum_table(path, tolerance)


CAFFEINE = """BEGIN IONS
TITLE=caffeine
PEPMASS=195.0877
FORMULA=C8H10N4O2
ADDUCT=[M+H]+
COLLISION_ENERGY=35
SMILES=Cn1cnc2c1c(=O)n(C)c(=O)n2C
69.0447 12
83.0604 10
110.0713 40
138.0662 100
195.0877 60
END IONS
"""
MOST_PEAKS = 400
"""Peaks of a spectrum that a page draws, the most intense."""
MOST_BYTES = 2**28
"""Size of the largest file of spectra that a page reads, unpacked."""


class SpectrumPage(TaskPage[MS2Scaffold]):
    """Lists of peaks, and spectra in any format."""

    title = "From a mass spectrum to its scaffold"
    text_label = "A peak list or a spectrum"
    text_suffix = ""
    unseen = "An unseen spectrum"
    answer = "scaffold"
    empty = "there is no MS2 spectrum in it"

    @property
    def takes_text(self) -> str:
        return "a peak list, or a record in a file's format"

    @property
    def adducts(self) -> list[str]:
        return self.task.adducts

    def examples(self) -> list[tuple[str, str]]:
        return [("Caffeine", CAFFEINE)]

    def pasted(self, text: str, ion: Ion) -> str:
        """A bare list of peaks, made a record with what the form says; anything else as it is."""
        lines = [line for line in text.splitlines() if line.strip()]
        if not all(re.match(r"\s*[0-9.]", line) for line in lines):
            return text
        fields = [
            ("TITLE", "peak list"),
            ("PEPMASS", "" if ion.precursor is None else str(ion.precursor)),
            ("FORMULA", ion.formula),
            ("ADDUCT", ion.adduct),
        ]
        head = [f"{name}={value}" for name, value in fields if value]
        return "\n".join(["BEGIN IONS", *head, *lines, "END IONS", ""])

    def inputs(self, path: Path, formula: str) -> Iterator[NamedInput | BadInput]:
        """Spectra as they are measured: `read` keeps what the model sees of them."""
        problems: list[SpectrumError] = []
        for at, spectrum in enumerate(read_spectra(path, on_error=problems.append, size_limit=MOST_BYTES), 1):
            yield from bad_inputs(problems)
            if formula and spectrum.formula is None:
                spectrum = replace(spectrum, formula=formula)
            yield NamedInput(spectrum.identifier or spectrum.name or f"spectrum {at}", path.stem, spectrum)
        yield from bad_inputs(problems)

    def case(self, chosen: NamedInput, name: str, path: Path) -> Case:  # noqa: ARG002
        spectrum: Spectrum = chosen.value
        notes = []
        if spectrum.formula is None:
            notes.append("Without the molecular formula the model knows less, and no peak is explained.")
        elif spectrum.adduct is None:
            notes.append("Without the adduct no peak is explained.")
        if spectrum.smiles and len(spectrum.smiles) > LONGEST_SMILES:
            spectrum = replace(spectrum, smiles=None)
        notes += map(in_a_sentence, self.task.remarks(spectrum))
        return Case([spectrum], _measured(clean(spectrum), name), self._truth_of(spectrum.smiles), notes=notes)

    def sample_case(self, sample: SpectrumSample, name: str) -> Case:
        encoded = sample.spectrum
        facts = self.task.facts(encoded)
        peaks = [ShownPeak(each["mz"], each["intensity"], each["formula"]) for each in facts["peaks"]]
        said = [facts["formula"]] if facts["formula"] else []
        name = f"{sample.identifier}, which the model has not seen"
        shown = _shown_peaks(name, peaks, float(encoded.precursor[0]) * 1000 or None, said)
        return Case([encoded], shown, sample.graph)

    def _truth_of(self, smiles: str | None) -> Graph | None:
        """The scaffold of the molecule that a spectrum says it is of, where that is one to compare with."""
        if smiles is None:
            return None
        try:
            scaffold = murcko_scaffold(parse_smiles(smiles))
            return graph_from_molecule(parse_smiles(scaffold.smiles), self.task.vocabulary, self.task.capacity)
        except MoleculeError:
            return None


def _measured(spectrum: Spectrum, name: str) -> ShownInput:
    formulas: list[str | None] = [None] * len(spectrum)
    errors: list[float | None] = [None] * len(spectrum)
    try:
        explained = annotate(spectrum)
        formulas = [None if part is None else str(part) for part in explained.formulas()]
        errors = [None if np.isnan(ppm) else round(float(ppm), 2) for ppm in explained.ppm]
    except ValueError:  # no formula, no adduct, or one that cannot be used
        pass
    peaks = [
        ShownPeak(round(float(mz), 5), round(float(height), 5), part, error)
        for mz, height, part, error in zip(spectrum.mzs, spectrum.intensities, formulas, errors, strict=True)
    ]
    said = [spectrum.formula, spectrum.adduct]
    if spectrum.collision_energy is not None:
        said.append(f"{spectrum.collision_energy:.0f} eV")
    return _shown_peaks(name, peaks, spectrum.precursor_mz, [word for word in said if word])


def _shown_peaks(name: str, peaks: list[ShownPeak], precursor: float | None, said: list[str]) -> ShownInput:
    explained = sum(peak.formula is not None for peak in peaks)
    words = [*said, f"{explained} of {len(peaks)} peaks explained" if explained else f"{len(peaks)} peaks"]
    kept = sorted(sorted(peaks, key=lambda peak: -peak.intensity)[:MOST_PEAKS], key=lambda peak: peak.mz)
    return ShownInput(name[:80], ", ".join(words), peaks=kept, precursor=precursor)
