"""Settings of MS2Scaffold."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from graphwright.settings.choices import Capacity, Count, NotNegative, Positive, Share, TaskSettings


class PeakTokens(StrEnum):
    """What an encoder is told of a peak."""

    ANNOTATED = "annotated"
    RAW = "raw"


class TrainingUnit(StrEnum):
    """What an epoch goes through once."""

    MOLECULE = "molecule"
    SPECTRUM = "spectrum"


class SpectrumTask(TaskSettings):
    """MS2Scaffold: the peaks of a tandem mass spectrum; the graph is the molecule's Murcko scaffold."""

    input_kinds = ("spectrum",)
    default_encoder = "spectrum"

    kind: Literal["spectrum"] = "spectrum"
    """What is predicted from what: spectrum, scaffolds from tandem mass spectra."""
    data: Annotated[str, Field(min_length=1)] = "massbank_ms2scaffold"
    """Shipped data (massbank_ms2scaffold), or a file of spectra with SMILES (MassSpecGym's tsv, parquet, msp)."""
    capacity: Capacity = 32
    """Largest number of scaffold atoms, N; larger scaffolds are left out."""
    elements: str = ""
    """Element symbols that a node may have, such as C N O S; empty: those in the data."""
    adducts: str = "[M+H]+ [M+Na]+"
    """Adducts with a token of their own; all others share that of an unknown one."""
    diffusion: bool = True
    """Also predict how many neighbours of each element an atom has, and match by it."""
    tokens: PeakTokens = PeakTokens.ANNOTATED
    """Whether peaks come with the sub-formulas that explain them, where the formula is known, or raw always."""
    peaks: Count = 128
    """Most peaks of a spectrum, the most intense."""
    tolerance: Positive = 10.0
    """Largest error in ppm of a sub-formula that explains a peak."""
    unit: TrainingUnit = TrainingUnit.MOLECULE
    """What an epoch of training goes through once: molecules, one random spectrum of each, or spectra."""
    hide_formula: Share = 0.25
    """Share of training spectra whose formula is hidden, so that the model also learns to do without."""
    hide_conditions: Share = 0.1
    """Share of training spectra whose collision energy is hidden; the same for adduct and precursor m/z."""
    drop_peaks: Share = 0.1
    """Share of the peaks of a training spectrum that is left out."""
    jitter: NotNegative = 0.2
    """Standard deviation of the noise on the logarithm of training intensities."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Which spectra and variations training draws: a pure function of seed, index and epoch."""
