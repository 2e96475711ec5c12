"""Files of spectra, in the formats that people have."""

from graphwright.spectra.files.reading import READERS, format_of, read_spectra
from graphwright.spectra.files.record import SIZE_LIMIT, SpectrumSource

__all__ = ["READERS", "SIZE_LIMIT", "SpectrumSource", "format_of", "read_spectra"]
