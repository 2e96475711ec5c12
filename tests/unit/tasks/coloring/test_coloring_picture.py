import numpy as np
import pytest
from scipy.stats import kstest

from graphwright.tasks.coloring import COLORS, RGB, VOCABULARY
from graphwright.tasks.coloring.picture import paint, standard_noise
from graphwright.tasks.coloring.sample import SYMMETRIES, turn_image, turn_pixels

LABELS = np.array([[0, 0, 1], [2, 0, 1], [2, 3, 3]])
CODES = np.array([3, 0, 2, 1])


def test_vocabulary() -> None:
    assert VOCABULARY.nodes == COLORS == ("blue", "green", "red", "yellow")
    assert RGB["yellow"] == (1.0, 0.8, 0.4)


def test_regions_have_their_colours() -> None:
    image = paint(LABELS, CODES, 0, 0, np.random.default_rng(0))
    assert image.shape == (3, 3, 3)
    assert image.dtype == np.float32
    for (row, column), label in np.ndenumerate(LABELS):
        expected = RGB[COLORS[CODES[label]]]
        np.testing.assert_allclose(image[:, row, column], expected, rtol=1e-6)


def test_noise_is_standard_normal() -> None:
    noise = standard_noise(200_001, np.random.default_rng(0))
    assert noise.shape == (200_001,)
    assert kstest(noise, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 5 / 200_000**0.5
    assert abs((noise**4).mean() - 3) < 5 * (96 / 200_000) ** 0.5


@pytest.mark.parametrize("sigma", [0.02, 0.1])
def test_noise_has_the_asked_deviation_and_is_clipped(sigma: float) -> None:
    labels = np.zeros((120, 120), np.intp)
    rng = np.random.default_rng(0)
    blue, yellow = (paint(labels, np.array([code]), sigma, 0, rng) for code in (0, 3))
    assert abs(blue.std(axis=(1, 2)) - sigma).max() < 5 * sigma / (2 * labels.size) ** 0.5
    assert yellow.max() == 1
    assert 0.4 < (yellow[0] == 1).mean() < 0.6  # the red of yellow is 1: half of the noise is cut
    assert min(blue.min(), yellow.min()) >= 0


def test_blur_mixes_neighbours_and_keeps_the_rest() -> None:
    labels = np.repeat([[0, 1]], 10, axis=1).repeat(20, axis=0)
    codes = np.array([0, 2])
    sharp, soft = (paint(labels, codes, 0, blur, np.random.default_rng(0)) for blur in (0, 0.4))
    np.testing.assert_allclose(soft[:, :, :7], sharp[:, :, :7], atol=1e-6)
    np.testing.assert_allclose(soft[1], sharp[1], atol=1e-6)  # both have the same green
    assert (soft[0, :, 9] > sharp[0, :, 9] + 0.01).all()
    assert (soft[0, :, 10] < sharp[0, :, 10] - 0.01).all()


def test_symmetries_are_eight_and_take_pixels_along() -> None:
    image = np.random.default_rng(0).random((3, 5, 5), np.float32)
    pixels = np.argwhere(np.ones((5, 5)))
    turned = [turn_image(image, code) for code in range(SYMMETRIES)]
    assert len({copy.tobytes() for copy in turned}) == 8
    assert np.array_equal(turned[0], image)
    assert np.array_equal(turned[4], image[:, :, ::-1])
    assert np.array_equal(turned[1], np.rot90(image, axes=(1, 2)))
    for code, copy in enumerate(turned):
        row, column = turn_pixels(pixels, 5, code).T
        assert np.array_equal(copy[:, row, column], image[:, *pixels.T])
        assert copy.flags.c_contiguous
