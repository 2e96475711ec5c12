"""mzML, through pyteomics (extra `spectra`)."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from graphwright.spectra.files.record import PEAK_LIMIT, Fields, SpectrumSource
from graphwright.spectra.spectrum import Floats, Origin, Spectrum, SpectrumError


def read_mzml(source: SpectrumSource) -> Iterator[Spectrum | SpectrumError]:
    """The MS2 spectra, and what is wrong with those that cannot be read; other levels are passed over.

    Collision energies are taken as mzML declares them, in eV; some converters write Thermo's normalised energy
    there. Profile spectra are refused, since their points are not peaks.
    """
    try:
        from pyteomics import mzml
    except ImportError:
        raise source.error("mzML needs pyteomics: pip install 'graphwright[spectra]'") from None
    with source.bytes() as stream:
        # mzML has no use for a document type, and entities defined in one can be made to grow without end.
        if b"<!DOCTYPE" in stream.peek(2**16) or b"<!ENTITY" in stream.peek(2**16):  # type: ignore[attr-defined]
            raise source.error("a document type declaration has no place in mzML")
        number = 0
        try:
            for number, data in enumerate(mzml.MzML(stream, use_index=False, decode_binary=False), start=1):
                if data.get("ms level") == 2:
                    yield _read_spectrum(Origin(str(source.path), "spectrum", number), data)
        except OSError:
            raise
        # The XML layers below raise whatever they meet, of no common type.
        except Exception as problem:
            origin = Origin(str(source.path), "spectrum", number + 1)
            raise SpectrumError(origin, f"not mzML that can be read: {str(problem)[:200]}") from None


def _read_spectrum(origin: Origin, data: Mapping[str, Any]) -> Spectrum | SpectrumError:
    if "profile spectrum" in data:
        return SpectrumError(origin, "a profile spectrum; centroids were expected")
    fields = Fields(origin)
    fields.add("identifier", str(data.get("id", "")), origin.number)
    fields.add("name", str(data.get("spectrum title", "")), origin.number)
    energy = None
    precursors = data.get("precursorList", {}).get("precursor", [])
    for precursor in precursors[:1]:
        for ion in precursor.get("selectedIonList", {}).get("selectedIon", [])[:1]:
            fields.add("precursor_mz", str(float(ion.get("selected ion m/z", 0))), origin.number)
            fields.add("charge", str(int(ion.get("charge state", 0))), origin.number)
        activation = precursor.get("activation", {})
        energy = activation.get("collision energy")
        normalised = activation.get("normalized collision energy")
        if energy is not None:
            fields.add("collision_energy", f"{float(energy):g} eV", origin.number)
        elif normalised is not None:
            fields.add("collision_energy", f"{float(normalised):g} NCE", origin.number)
    try:
        mzs, intensities = (
            _decoded(data[name]) if name in data else np.empty(0) for name in ("m/z array", "intensity array")
        )
    # Base64, zlib and numpy each refuse a spoilt array in their own way.
    except Exception as problem:
        return SpectrumError(origin, f"an array that cannot be decoded: {str(problem)[:200]}")
    return fields.spectrum(mzs, intensities)


def _decoded(packed: Any) -> Floats:
    """The numbers of an array; a small one that unpacks to more than any spectrum is refused before it does."""
    if "zlib" in (packed.compression or ""):
        most = 8 * PEAK_LIMIT
        if len(zlib.decompressobj().decompress(base64.b64decode(packed.data), most + 1)) > most:
            raise ValueError(f"more than {most:,} bytes, unpacked")
    return np.asarray(packed.decode(), dtype=np.float64)
