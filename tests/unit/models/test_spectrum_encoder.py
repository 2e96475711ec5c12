"""Spectra to tokens: peaks, their words, precursor and adduct."""

import itertools

import pytest
import torch

from graphwright.models import GraphHead, GraphPredictor, NodeDecoder, SpectrumEncoder, SpectrumInputs, Tokens
from graphwright.models.encoders import spectrum as module
from graphwright.models.encoders.spectrum import BUCKETS, MULTIPLIERS, PRIME, PeakWords, peak_codes
from graphwright.spectra.spectrum import ELEMENT_SCALES, ELEMENTS, MZ_SCALE
from tiny import LABELLED


def encoder(**options) -> SpectrumEncoder:
    torch.manual_seed(0)
    return SpectrumEncoder(
        **{"adducts": 2, "width": 8, "layers": 2, "heads": 2, "dropout": 0.0} | options
    ).double()


def inputs(lengths, padded=None, seed=0) -> SpectrumInputs:
    """Random spectra of so many peaks, padded with rubbish."""
    generator = torch.Generator().manual_seed(seed)

    def rand(*shape):
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    b, k = len(lengths), max(lengths)
    peaks, precursor = rand(b, k, 16), rand(b, 16)
    adduct, energy = torch.randint(0, 3, (b,), generator=generator), 60 * rand(b)
    if padded is not None:
        peaks = torch.cat([peaks, 7 * rand(b, padded - k, 16)], 1)
    mask = torch.arange(peaks.shape[1]) < torch.tensor(lengths)[:, None]
    return SpectrumInputs(peaks, mask, precursor, adduct, energy)


def real(tokens: Tokens) -> torch.Tensor:
    """The values at real tokens, one after the other."""
    return tokens.values.flatten(0, 1) if tokens.mask is None else tokens.values[tokens.mask]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("lengths", [[5], [5, 3, 1], [1 + at % 7 for at in range(40)]])
def test_padding_changes_nothing(training, lengths):
    model = encoder().train(training)
    torch.testing.assert_close(real(model(inputs(lengths, padded=11))), real(model(inputs(lengths))))


@pytest.mark.parametrize("training", [True, False])
def test_the_order_of_the_peaks_changes_nothing_but_the_order_of_the_tokens(training):
    model, given = encoder().train(training), inputs([9, 9])
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    before, after = model(given).values, model(given._replace(peaks=given.peaks[:, order])).values
    torch.testing.assert_close(after[:, 3:], before[:, 3:][:, order])
    torch.testing.assert_close(after[:, :3], before[:, :3])


def test_order_and_padding_change_nothing_behind_the_decoder():
    model = GraphPredictor(
        encoder(), NodeDecoder(3, 8, 2, 2, 0.0, 8), GraphHead(8, 8, LABELLED, diffusion=True, product=True)
    ).double()
    given = inputs([6, 6, 6])
    order = torch.randperm(6, generator=torch.Generator().manual_seed(2))
    once, again = model(given), model(inputs([6, 6, 6], padded=13))
    torch.testing.assert_close(again.states, once.states)
    torch.testing.assert_close(model(given._replace(peaks=given.peaks[:, order])).states, once.states)


def test_groups_of_like_size_are_encoded_as_all_together_would_be(monkeypatch):
    model, given = encoder(), inputs([1 + (7 * at) % 12 for at in range(50)])
    grouped = real(model(given))
    monkeypatch.setattr(module, "GROUP", 1000)
    torch.testing.assert_close(real(model(given)), grouped)


def test_a_batch_is_its_spectra_one_by_one():
    model, given = encoder(), inputs([4, 2, 5])
    together = model(given)
    for at, length in enumerate((4, 2, 5)):
        one = SpectrumInputs(*(tensor[at : at + 1] for tensor in given))
        alone = model(one._replace(peaks=one.peaks[:, :length], mask=one.mask[:, :length]))
        assert alone.mask is None
        torch.testing.assert_close(together.values[at, : 3 + length], alone.values[0])


class Untouched(torch.nn.Module):
    """In place of the layers, to see what they are given."""

    def forward(self, tokens, src_key_padding_mask=None):
        assert src_key_padding_mask is None
        return tokens


def test_the_collision_energy_reaches_every_token_and_none_is_its_own_vector():
    model, given = encoder(), inputs([4])
    model.layers = Untouched()
    known = model(given).values
    other = model(given._replace(energy=given.energy + 5)).values - known
    torch.testing.assert_close(other, other[:, :1].expand_as(other))
    assert other.abs().max() > 0
    unknown = model(given._replace(energy=torch.full_like(given.energy, torch.nan))).values
    expected = known - model._energy(given.energy) + model.unknown_energy
    torch.testing.assert_close(unknown, expected)


def test_an_unknown_precursor_is_a_learned_vector_and_tells_no_loss():
    model, given = encoder(), inputs([4])
    hidden = given._replace(precursor=torch.zeros_like(given.precursor))
    result = model(hidden).values.square().matmul(torch.arange(8.0).double()).sum()
    result.backward()
    assert model.unknown_precursor.grad.abs().max() > 0
    assert model.precursor.weight.grad.abs().max() == 0
    assert torch.isfinite(result)


@pytest.mark.parametrize("field", ["precursor", "adduct", "peaks"])
def test_everything_given_matters(field):
    model, given = encoder(), inputs([4])
    changed = (given.adduct + 1) % 3 if field == "adduct" else getattr(given, field) * 0.9
    assert (model(given._replace(**{field: changed})).values - model(given).values).abs().max() > 1e-6


def test_a_few_millidaltons_are_told_apart():
    waves = encoder()._waves(torch.tensor([0.2001, 0.2001 + 3.6e-6], dtype=torch.float64))  # 3.6 mDa apart
    assert (waves[0] - waves[1]).abs().max() > 0.5


def test_wrong_shapes_are_refused():
    given = inputs([3])
    with pytest.raises(ValueError, match=r"peaks must have shape \(b, k, 16\), got \(1, 3, 15\)"):
        encoder()(given._replace(peaks=given.peaks[:, :, :15]))


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
