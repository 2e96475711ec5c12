"""Words of peaks: one vector for one fragment, whatever spectrum it is in."""

import itertools

import pytest
import torch

from graphwright.models.encoders.spectrum import BUCKETS, MULTIPLIERS, PRIME, PeakWords, peak_codes
from graphwright.spectra.spectrum import ELEMENT_SCALES, ELEMENTS, MZ_SCALE

PROTON = 1.007


def words(width=8) -> PeakWords:
    torch.manual_seed(0)
    return PeakWords(width).double()


def token(mz, **atoms) -> torch.Tensor:
    counts = [atoms.get(element, 0) / scale for element, scale in zip(ELEMENTS, ELEMENT_SCALES, strict=True)]
    return torch.tensor([mz / MZ_SCALE, 0.5, *counts], dtype=torch.float64)


BENZYL = token(91.054, C=7, H=7)
NITRO = token(138.055, C=7, H=8, N=1, O=2)


def of(model, peak, precursor) -> torch.Tensor:
    return model(peak[None, None], precursor[None])[0, 0]


def test_a_fragment_and_its_loss_are_the_same_word_at_any_intensity_and_measured_mz():
    model = words()
    again = BENZYL.clone()
    again[:2] = torch.tensor([91.061 / MZ_SCALE, 0.1])
    assert torch.equal(of(model, again, NITRO), of(model, BENZYL, NITRO))


def test_fragment_and_loss_are_words_of_their_own():
    model, other = words(), token(152.071, C=8, H=10, N=1, O=2)
    fragment_same = of(model, BENZYL, NITRO) - of(model, BENZYL, other)
    assert fragment_same.abs().max() > 1e-3  # the loss differs
    longer = token(105.07, C=8, H=9)
    loss_same = of(model, BENZYL, NITRO) - of(model, longer, other)
    assert loss_same.abs().max() > 1e-3  # the fragment differs
    # What they share cancels: f(benzyl) - f(longer) is the same beside either loss.
    unknown = torch.zeros(16, dtype=torch.float64)
    torch.testing.assert_close(loss_same, of(model, BENZYL, unknown) - of(model, longer, unknown))


def test_unexplained_peaks_are_named_by_their_bin():
    model, precursor = words(), token(138.055)
    here, near, far = (of(model, token(mz), precursor) for mz in (91.0541, 91.0549, 91.0651))
    assert torch.equal(here, near)
    assert (here - far).abs().max() > 1e-3
    assert (here - of(model, BENZYL, precursor)).abs().max() > 1e-3


@pytest.mark.parametrize("atoms", [{"C": 7, "H": 8, "N": 1, "O": 2}, {"C": 3, "H": 9, "Si": 1, "Na": 1}])
def test_a_formula_is_a_word_per_element_and_one_for_its_unsaturation(atoms):
    model = words()

    def vector(kind, amount):
        rows = (
            (torch.tensor([kind, amount])[:, None] * torch.tensor(MULTIPLIERS[:2]) % PRIME).sum(0)
            % PRIME
            % BUCKETS
        )
        return model.vectors(rows).sum(0)

    bonds = {"C": 2, "Si": 2, "N": 1}
    unsaturation = sum(bonds.get(e, 0 if e in "OS" else -1) * n for e, n in atoms.items())
    expected = vector(2, unsaturation) + sum(vector(3 + ELEMENTS.index(e), n) for e, n in atoms.items())
    torch.testing.assert_close(model.formula(token(138.0, **atoms)[None])[0], expected)


def test_without_a_formula_there_is_no_word_of_it():
    assert words().formula(token(138.055)[None]).abs().max() == 0


def test_few_fragments_share_their_vector():
    model = words(2)
    fragments = torch.stack(
        [
            token(100.0, C=c, H=h, N=n, O=o)
            for c, h, n, o in itertools.product(range(1, 15), range(9), range(3), range(3))
        ]
    )
    vectors = model(fragments[None], torch.zeros(1, 16, dtype=torch.float64))[0]
    distinct = len(torch.unique(vectors.round(decimals=9), dim=0))
    assert distinct > 0.995 * len(fragments)


def test_a_word_keeps_its_rows_from_version_to_version():
    fragment, loss = peak_codes(BENZYL[None, None], NITRO[None])
    assert (fragment % BUCKETS).tolist() == [[[1379, 2927]]]
    numbers = torch.tensor([1, 0, 0, 1, 1, 2, *[0] * 10])  # kind, amount, then the loss HNO2
    expected = (numbers[:, None] * torch.tensor(MULTIPLIERS) % PRIME).sum(0) % PRIME
    assert torch.equal(loss[0, 0], expected)
