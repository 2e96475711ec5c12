"""The Transformer over peaks: a set, whatever its order and padding."""

import pytest
import torch

from graphwright.models import GraphHead, GraphPredictor, NodeDecoder, SpectrumEncoder, SpectrumInputs, Tokens
from graphwright.models.encoders import spectrum as module
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
