"""Peaks as rows of features, for an encoder."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# With m/z and intensity, sixteen features: every element of the MassBank molecules, and the sodium of [M+Na]+.
ELEMENTS = ("C", "H", "N", "O", "S", "Cl", "F", "P", "Br", "I", "Si", "B", "As", "Na")
# About the largest usual count in a fragment, so that features lie mostly between 0 and 1.
ELEMENT_SCALES = (20.0, 20.0, 5.0, 5.0, 2.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0)
MZ_SCALE = 1000.0
TOKEN_WIDTH = 2 + len(ELEMENTS)
RAW_TOKEN_WIDTH = 2


def raw_tokens(mzs: ArrayLike, intensities: ArrayLike) -> NDArray[np.float32]:
    """(n, 2): m/z / 1000 and intensity over the largest."""
    intensities = np.asarray(intensities, dtype=np.float64)
    return np.stack(
        [np.asarray(mzs, dtype=np.float64) / MZ_SCALE, intensities / intensities.max(initial=1e-300)], axis=1
    ).astype(np.float32)


def annotated_tokens(mzs: ArrayLike, intensities: ArrayLike, counts: ArrayLike) -> NDArray[np.float32]:
    """(n, 16): the raw token, then the counts (n, 14) of `ELEMENTS`, each over its scale; 0 if unexplained."""
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.shape[1] != len(ELEMENTS):
        raise ValueError(f"counts must be (n, {len(ELEMENTS)}), got {counts.shape}")
    scaled = (counts / np.array(ELEMENT_SCALES)).astype(np.float32)
    return np.concatenate([raw_tokens(mzs, intensities), scaled], axis=1)


def most_intense(intensities: ArrayLike, most: int) -> NDArray[np.int64]:
    """Ascending places of the `most` most intense peaks; of equally intense ones the first."""
    order = np.argsort(-np.asarray(intensities), kind="stable")[:most]
    return np.sort(order).astype(np.int64)
