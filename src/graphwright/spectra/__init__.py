"""Mass spectra: files, collision energies, adducts, sub-formulas of peaks, similarity."""

from graphwright.spectra.annotated import AnnotatedPeaks, AnnotationSummary, annotate_parquet, load_annotated
from graphwright.spectra.collision_energy import CollisionEnergy, parse_collision_energy
from graphwright.spectra.files import read_spectra
from graphwright.spectra.formula import Adduct, Composition, parse_adduct, parse_formula
from graphwright.spectra.similarity import Nearest, bin_peaks, bin_spectra, nearest_precursor, nearest_spectra
from graphwright.spectra.spectrum import (
    ELEMENTS,
    Origin,
    Spectrum,
    SpectrumError,
    annotated_tokens,
    clean,
    most_intense,
    raw_tokens,
    tidy_peaks,
)
from graphwright.spectra.subformulas import (
    Explanation,
    SubformulaTable,
    annotate,
    explain,
    subformula_table,
    table_of,
)

__all__ = [
    "ELEMENTS",
    "Adduct",
    "AnnotatedPeaks",
    "AnnotationSummary",
    "CollisionEnergy",
    "Composition",
    "Explanation",
    "Nearest",
    "Origin",
    "Spectrum",
    "SpectrumError",
    "SubformulaTable",
    "annotate",
    "annotate_parquet",
    "annotated_tokens",
    "bin_peaks",
    "bin_spectra",
    "clean",
    "explain",
    "load_annotated",
    "most_intense",
    "nearest_precursor",
    "nearest_spectra",
    "parse_adduct",
    "parse_collision_energy",
    "parse_formula",
    "raw_tokens",
    "read_spectra",
    "subformula_table",
    "table_of",
    "tidy_peaks",
]
