"""Nearest spectra and precursors."""

import numpy as np
import pytest

from graphwright.spectra import Origin, Spectrum, bin_peaks, bin_spectra, nearest_precursor, nearest_spectra


def spectrum(*peaks: tuple[float, float]) -> Spectrum:
    mzs, intensities = zip(*peaks, strict=True)
    return Spectrum(np.array(mzs), np.array(intensities), Origin("here"))


def test_peaks_of_one_bin_add_up_and_rows_have_length_one():
    matrix = bin_spectra([spectrum((10.01, 9.0), (10.09, 16.0), (20.0, 25.0))], 0.1, 0.5).toarray()
    assert matrix[0, [100, 200]] == pytest.approx([7 / np.sqrt(74), 5 / np.sqrt(74)])
    assert np.count_nonzero(matrix) == 2


def test_the_nearest_spectrum_and_its_cosine():
    references = bin_spectra([spectrum((10, 1)), spectrum((10, 3), (20, 4)), spectrum((10, 3), (20, 4))], 0.1)
    queries = bin_spectra([spectrum((10, 1), (20, 1)), spectrum((999.0, 1))], 0.1)
    found = nearest_spectra(queries, references)
    assert found.index.tolist() == [1, 0]
    assert found.cosine == pytest.approx([7 / (5 * np.sqrt(2)), 0.0])


def test_more_queries_than_go_at_once():
    random = np.random.default_rng(5)
    spectra = [spectrum(*((mz, 1.0) for mz in np.unique(random.integers(1, 60, 6)))) for _ in range(300)]
    matrix = bin_spectra(spectra, 1.0)
    full = (matrix @ matrix.T).toarray()
    found = nearest_spectra(matrix, matrix)
    np.testing.assert_allclose(found.cosine, full.max(1), atol=1e-12)
    np.testing.assert_allclose(full[np.arange(300), found.index], full.max(1), atol=1e-12)


def test_a_spectrum_without_peaks_is_like_nothing():
    matrix = bin_peaks([0, 0, 1], [50.0], [1.0], 0.1)
    assert nearest_spectra(matrix, matrix).cosine.tolist() == [0.0, 1.0]


def test_the_nearest_precursor_is_the_first_of_equals():
    references = [300.0, 100.0, 200.0, 100.0, 200.0]
    assert nearest_precursor([0.0, 100.1, 150.0, 199.0, 250.0, 900.0], references).tolist() == [1, 1, 1, 2, 2, 0]


@pytest.mark.parametrize("mz", [-1.0, 1e12, np.nan, np.inf])
def test_impossible_masses_are_refused(mz):
    with pytest.raises(ValueError, match="m/z must lie"):
        bin_peaks([0, 1], [mz], [1.0], 0.01)


def test_nothing_to_compare_with_is_refused():
    with pytest.raises(ValueError, match="no reference"):
        nearest_spectra(bin_spectra([spectrum((1, 1))], 0.1), bin_spectra([], 0.1))
    with pytest.raises(ValueError, match="no reference"):
        nearest_precursor([1.0], [])
    with pytest.raises(ValueError, match="positive"):
        bin_spectra([], 0.0)
