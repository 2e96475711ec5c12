"""Tandem mass spectra to tokens: a Transformer over peaks, precursor and adduct."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphwright.models.encoders.peak_words import PeakWords
from graphwright.models.encoders.tokens import Tokens
from graphwright.models.transformer import encoder_layers
from graphwright.spectra.tokens import MZ_SCALE, TOKEN_WIDTH

LONGEST, WAVES = 512.0, 16
"""Wavelengths in Da, each half of the one before: down to 0.016 Da, the error of a poor instrument."""
ENERGY_SCALE = 4.0
SPECIAL = 3
"""Tokens before the peaks: summary, precursor, adduct."""
GROUP = 16
"""Spectra of like size that are encoded together: most have few peaks, and a batch's longest has a hundred."""


class SpectrumInputs(NamedTuple):
    """Spectra as the encoder takes them.

    peaks: (b, k, 16) annotated tokens of `spectra.tokens`, counts 0 where nothing explains a peak or no formula is
    known. mask: (b, k), true at real peaks. precursor: (b, 16), the precursor's token, m/z 0 where it is unknown,
    counts of the ion where the formula is known. adduct: (b,) codes, 0 for one unknown. energy: (b,) eV, NaN for
    unknown.
    """

    peaks: Tensor
    mask: Tensor
    precursor: Tensor
    adduct: Tensor
    energy: Tensor


class SpectrumEncoder(nn.Module):
    """A set of peaks, without positions; more tokens stand for the precursor, the adduct and the whole.

    The whole is the sum of the words of its peaks and its formula, weighted by the root of intensity, and goes
    around the attention: from a few thousand molecules a network learns more from a bag of words than from what
    attention makes of them.

    The first layer sees every peak beside the precursor, so that it can tell the neutral loss too. m/z also
    comes as sines and cosines of many wavelengths: the mass defect, a few mDa of hundreds of Da, is what tells the
    elements of a raw peak, and a network reads nothing so fine from one number. The collision energy's vector,
    or a learned one where it is unknown, is added to every token.
    """

    waves: Tensor

    def __init__(self, adducts: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.register_buffer("waves", torch.pi * 2 ** torch.arange(1.0, WAVES + 1) / LONGEST, persistent=False)
        # Of a peak: its token, the root of its intensity, the waves of its m/z and of what it lost.
        self.peak = nn.Linear(TOKEN_WIDTH + 1 + 4 * WAVES, width)
        self.precursor = nn.Linear(TOKEN_WIDTH + 2 * WAVES, width)
        self.beside = nn.Linear(TOKEN_WIDTH + 2 * WAVES, width, bias=False)
        self.unknown_precursor = nn.Parameter(torch.randn(width) / width**0.5)
        self.mixed = nn.Sequential(nn.GELU(), nn.Dropout(dropout), nn.Linear(width, width))
        self.adduct = nn.Embedding(adducts + 1, width)
        self.energy = nn.Sequential(nn.Linear(1, width), nn.GELU(), nn.Linear(width, width))
        self.unknown_energy = nn.Parameter(torch.randn(width) / width**0.5)
        nn.init.normal_(self.adduct.weight, std=width**-0.5)
        self.words = PeakWords(width)
        self.summary = nn.Sequential(nn.GELU(), nn.Dropout(dropout), nn.Linear(width, width))
        self.layers = encoder_layers(width, layers, heads, dropout)

    def forward(self, inputs: SpectrumInputs) -> Tokens:
        """-> tokens (b, 3 + k, width): summary, precursor, adduct, then the peaks in their order."""
        peaks, mask = inputs.peaks, inputs.mask
        if peaks.ndim != 3 or peaks.shape[2] != TOKEN_WIDTH:
            raise ValueError(f"peaks must have shape (b, k, {TOKEN_WIDTH}), got {tuple(peaks.shape)}")
        if mask.is_meta or len(mask) <= GROUP:
            values = self._encode(inputs)
        else:
            # Up to the last peak, wherever the padding is.
            lengths = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).amax(1)
            order = lengths.argsort(stable=True)
            parts = [
                self._encode(_select(inputs, group, int(lengths[group[-1]])))
                for group in torch.split(order, GROUP)
            ]
            k = SPECIAL + mask.shape[1]
            values = torch.cat([functional.pad(part, (0, 0, 0, k - part.shape[1])) for part in parts])
            values = values[order.argsort()]
        whole = torch.cat([mask.new_ones(mask.shape[0], SPECIAL), mask], 1)
        return Tokens(values, whole if mask.is_meta or not bool(mask.all()) else None)

    def _encode(self, inputs: SpectrumInputs) -> Tensor:
        """(b, 3 + k, width)."""
        peaks, mask, precursor, adduct, energy = inputs
        known = precursor[:, :1] > 0
        whole = torch.cat([precursor, self._waves(precursor[:, 0])], 1) * known
        first = torch.where(known, self.precursor(whole), self.unknown_precursor)
        lost = self._waves(precursor[:, :1] - peaks[:, :, 0]) * known[:, :, None]
        features = [peaks, peaks[:, :, 1:2].clamp_min(0).sqrt(), self._waves(peaks[:, :, 0]), lost]
        words = self.words(peaks, precursor)
        seen = self.peak(torch.cat(features, 2)) + self.beside(whole)[:, None] + words
        mixed = self.mixed(torch.cat([first[:, None], seen], 1))
        weights = peaks[:, :, 1].clamp_min(0).sqrt() * mask
        counted = (weights[:, None] @ words)[:, 0] + self.words.formula(precursor)
        summary = self.summary(counted + first)
        tokens = torch.cat([summary[:, None], mixed[:, :1], self.adduct(adduct)[:, None], mixed[:, 1:]], 1)
        tokens = tokens + self._energy(energy)[:, None]
        # Attention without a mask is faster, and a single spectrum needs none.
        needs_mask = mask.is_meta or not bool(mask.all())
        seen_by_all = torch.cat([mask.new_ones(mask.shape[0], SPECIAL - 1), mask], 1) if needs_mask else None
        attended = self.layers(tokens[:, 1:], seen_by_all)
        return torch.cat([tokens[:, :1], attended], 1)

    def _waves(self, scaled: Tensor) -> Tensor:
        """m/z over `MZ_SCALE`, (...) -> (..., 2 * WAVES)."""
        phase = scaled[..., None] * MZ_SCALE * self.waves
        return torch.cat([phase.sin(), phase.cos()], -1)

    def _energy(self, energy: Tensor) -> Tensor:
        """(b,) eV -> (b, width)."""
        known = ~energy.isnan()
        scaled = torch.where(known, energy, 0.0).log1p() / ENERGY_SCALE
        return torch.where(known[:, None], self.energy(scaled[:, None]), self.unknown_energy)


def _select(inputs: SpectrumInputs, samples: Tensor, length: int) -> SpectrumInputs:
    """Some of the spectra, the first `length` peaks of each."""
    chosen = SpectrumInputs(*(tensor[samples] for tensor in inputs))
    return chosen._replace(peaks=chosen.peaks[:, :length], mask=chosen.mask[:, :length])
