"""Mass spectra: files, collision energies, adducts, sub-formulas of peaks, similarity."""

from graphwright.spectra.files import read_spectra
from graphwright.spectra.formula import Adduct, Composition, parse_adduct, parse_formula
from graphwright.spectra.similarity import Nearest, bin_peaks, bin_spectra, nearest_precursor, nearest_spectra
from graphwright.spectra.spectrum import (
    ELEMENTS,
    CollisionEnergy,
    Origin,
    Spectrum,
    SpectrumError,
    annotated_tokens,
    clean,
    most_intense,
    parse_collision_energy,
    raw_tokens,
    tidy_peaks,
)
from graphwright.spectra.subformulas import (
    AnnotatedPeaks,
    AnnotationSummary,
    Explanation,
    SubformulaTable,
    annotate,
    annotate_parquet,
    explain,
    load_annotated,
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
