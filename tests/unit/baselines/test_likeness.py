"""How inputs are compared: against the plain definitions and RDKit."""

import numpy as np
import pytest
import torch
from rdkit import Chem, DataStructs
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from torch import nn

from graphwright.baselines.predict import baseline_likeness
from graphwright.models import Tokens
from graphwright.tasks import task_of
from graphwright.tasks.coloring.picture import PixelLikeness, shrunk
from graphwright.tasks.likeness import EncoderLikeness
from graphwright.tasks.molecules.fingerprint import FingerprintLikeness, bit_matrix
from graphwright.tasks.spectra.memory import SpectrumLikeness
from tiny_molecules import SMILES

GENERATOR = GetMorganGenerator(radius=2, fpSize=2048)


def test_tanimoto_is_rdkits():
    fingerprints = [GENERATOR.GetFingerprint(Chem.MolFromSmiles(each)) for each in SMILES]
    matrix = bit_matrix([np.array(list(each.GetOnBits()), np.uint16) for each in fingerprints])
    found = FingerprintLikeness().similarity(matrix[:7], matrix)
    expected = [DataStructs.BulkTanimotoSimilarity(each, fingerprints) for each in fingerprints[:7]]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_empty_fingerprints_are_like_each_other():
    none = np.zeros(0, np.uint16)
    found = FingerprintLikeness().similarity(bit_matrix([none]), bit_matrix([np.array([3], np.uint16), none]))
    assert found.tolist() == [[0.0, 1.0]]


def test_pixels_are_compared_by_squared_distance():
    rng = np.random.default_rng(0)
    queries, references = (rng.random((count, 12)).astype(np.float32) for count in (3, 5))
    found = PixelLikeness().similarity(queries, references)
    expected = -((queries[:, None] - references[None]) ** 2).sum(2)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_a_gaussian_kernel_is_1_at_home_and_positive_definite():
    rng = np.random.default_rng(1)
    likeness, points = PixelLikeness(), rng.random((9, 4)).astype(np.float32)
    alike = likeness.similarity(points, points)
    scale = likeness.scale(alike)
    pairs = [((points[i] - points[j]) ** 2).sum() for i in range(9) for j in range(i)]
    assert scale == pytest.approx(np.median(pairs), rel=1e-4)
    kernel = likeness.kernel(alike, scale)
    np.testing.assert_allclose(np.diag(kernel), 1, atol=1e-5)
    assert np.linalg.eigvalsh(kernel.astype(np.float64)).min() > -1e-6


def test_a_large_picture_is_averaged_over_blocks():
    image = np.arange(3 * 130 * 130, dtype=np.float32).reshape(3, 130, 130)
    small = shrunk(image)
    assert small.shape == (3, 43, 43)
    assert small[1, 2, 5] == pytest.approx(image[1, 6:9, 15:18].mean())
    assert np.array_equal(shrunk(image[:, :64, :64]), image[:, :64, :64])


@pytest.mark.parametrize("fixture", ["picture_run", "molecule_run", "spectrum_run"])
def test_an_input_is_most_like_itself(fixture, request):
    task = task_of(request.getfixturevalue(fixture).task)
    samples, likeness = task.data("test", limit=6), baseline_likeness(task)
    features = likeness.features(samples, range(6))
    found = likeness.similarity(features, features)
    assert (found.diagonal() >= found.max(1) - 1e-4).all()
    assert (likeness.kernel(found, likeness.scale(found)).diagonal() > 0.999).all()


def test_spectra_share_bins_whatever_their_heaviest_peak(spectrum_run):
    task = task_of(spectrum_run.task)
    samples, likeness = task.data("test"), SpectrumLikeness()
    together = likeness.features(samples, range(4))
    apart = [likeness.features(samples, [index]) for index in range(4)]
    whole = likeness.similarity(together, together)
    for i in range(4):
        for j in range(4):
            assert likeness.similarity(apart[i], apart[j])[0, 0] == pytest.approx(whole[i, j], abs=1e-6)
    assert (whole < 0.999).any()


class Padded(nn.Module):
    """Tokens of which only the first is real."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, images: torch.Tensor) -> Tokens:
        tokens = self.layer(images.flatten(2).mT[:, :5])
        return Tokens(tokens, torch.arange(5).expand(len(images), -1) < 1)


def test_encoder_features_are_the_mean_of_the_real_tokens(picture_run):
    samples, encoder = task_of(picture_run.task).data("train"), Padded()
    encoder.train()
    found = EncoderLikeness(encoder).features(samples, [4, 2])
    with torch.no_grad():
        expected = encoder(samples.batch([4, 2])[0]).values[:, 0]
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)
    assert encoder.training


def test_an_encoder_goes_before_the_inputs_themselves(picture_run):
    assert isinstance(baseline_likeness(task_of(picture_run.task), Padded()), EncoderLikeness)
