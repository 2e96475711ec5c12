"""Training spectra varied at random: what is measured again, never comes out the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from graphwright.tasks.spectra.encoded import UNKNOWN_ADDUCT, EncodedSpectrum


@dataclass(frozen=True)
class Variation:
    """Shares of spectra or peaks, and the spread of log-intensities; see `SpectrumTask`."""

    hide_formula: float
    hide_conditions: float
    drop_peaks: float
    jitter: float


def vary(spectrum: EncodedSpectrum, variation: Variation, rng: np.random.Generator) -> EncodedSpectrum:
    """A spectrum with peaks left out, intensities off, and some of what is known about it hidden."""
    # Always the same draws, so that one setting does not change what another one does.
    hide_formula, hide_energy, hide_adduct, hide_precursor = rng.random(4)
    kept = rng.random(len(spectrum.peaks)) >= variation.drop_peaks
    noise = np.exp(variation.jitter * rng.standard_normal(len(spectrum.peaks)))
    kept[np.argmax(spectrum.intensities)] = True  # a spectrum has at least one peak
    peaks = spectrum.peaks[kept].copy()
    peaks[:, 1] *= noise[kept]
    peaks[:, 1] /= peaks[:, 1].max()
    varied = replace(spectrum, peaks=peaks)
    if hide_formula < variation.hide_formula:
        varied = varied.without_formula()
    if hide_energy < variation.hide_conditions:
        varied = replace(varied, energy=np.nan)
    if hide_adduct < variation.hide_conditions:
        varied = replace(varied, adduct=UNKNOWN_ADDUCT)
    if hide_precursor < variation.hide_conditions:
        varied = replace(varied, precursor=np.zeros_like(varied.precursor))
    return varied
