"""The cleaning that the MassBank data went through, for spectra that are to be compared with it."""

from __future__ import annotations

from dataclasses import replace

from graphwright.spectra.spectrum import Spectrum
from graphwright.spectra.tokens import most_intense


def clean(spectrum: Spectrum, max_peaks: int = 256, above_precursor: float = 1.0) -> Spectrum:
    """Without peaks over precursor + `above_precursor` Da, the `max_peaks` most intense, largest intensity 1.

    Of equally intense peaks at the cut the one of smaller m/z stays. An unknown precursor removes nothing.
    """
    mzs, intensities = spectrum.mzs, spectrum.intensities
    if spectrum.precursor_mz is not None:
        below = mzs <= spectrum.precursor_mz + above_precursor
        mzs, intensities = mzs[below], intensities[below]
    if not mzs.size:
        raise ValueError(f"{spectrum.origin}: every peak lies above the precursor, m/z {spectrum.precursor_mz:g}")
    kept = most_intense(intensities, max_peaks)
    mzs, intensities = mzs[kept], intensities[kept]
    scaled = intensities / intensities.max()
    # A ratio over 1e308 leaves nothing of the smallest peaks.
    visible = scaled > 0
    return replace(spectrum, mzs=mzs[visible], intensities=scaled[visible])
