"""Spectra: from a tandem mass spectrum to the scaffold of the molecule."""

from graphwright.tasks.spectra.dataset import NoSpectrumError, SpectrumDataset, SpectrumSample
from graphwright.tasks.spectra.encoded import EncodedSpectrum, PeakTokens, SpectrumTask, TrainingUnit, encode
from graphwright.tasks.spectra.prepared import Scaffold, SpectrumTable, murcko_scaffold, read_spectrum_table
from graphwright.tasks.spectra.task import MS2Scaffold

__all__ = [
    "EncodedSpectrum",
    "MS2Scaffold",
    "NoSpectrumError",
    "PeakTokens",
    "Scaffold",
    "SpectrumDataset",
    "SpectrumSample",
    "SpectrumTable",
    "SpectrumTask",
    "TrainingUnit",
    "encode",
    "murcko_scaffold",
    "read_spectrum_table",
]
