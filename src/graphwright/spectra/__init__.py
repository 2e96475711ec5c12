"""Mass spectra: files, collision energies, adducts, sub-formulas of peaks, similarity."""

from graphwright.spectra.adducts import Adduct, parse_adduct
from graphwright.spectra.annotation import annotate, table_of
from graphwright.spectra.cleaning import clean
from graphwright.spectra.collision_energy import CollisionEnergy, parse_collision_energy
from graphwright.spectra.files import read_spectra
from graphwright.spectra.formula import Formula, parse_formula
from graphwright.spectra.prepared import AnnotatedPeaks, AnnotationSummary, annotate_parquet, load_annotated
from graphwright.spectra.similarity import Nearest, bin_peaks, bin_spectra, nearest_precursor, nearest_spectra
from graphwright.spectra.spectrum import Origin, Spectrum, SpectrumError, tidy_peaks
from graphwright.spectra.subformulas import Explanation, SubformulaTable, explain, subformula_table
from graphwright.spectra.tokens import ELEMENTS, annotated_tokens, most_intense, raw_tokens

__all__ = [
    "ELEMENTS",
    "Adduct",
    "AnnotatedPeaks",
    "AnnotationSummary",
    "CollisionEnergy",
    "Explanation",
    "Formula",
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
