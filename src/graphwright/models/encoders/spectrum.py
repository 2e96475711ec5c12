"""Tandem mass spectra to tokens: a Transformer over peaks, precursor and adduct."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphwright.models.arithmetic import Linear
from graphwright.models.encoders.encoder import AttentionEncoder, Tokens
from graphwright.models.transformer import encoder_layers
from graphwright.settings import ENCODERS
from graphwright.spectra.spectrum import ELEMENT_SCALES, ELEMENTS, MZ_SCALE, TOKEN_WIDTH

BUCKETS = 4096
BIN = 0.01
"""Da: a peak that no sub-formula explains is named by its m/z."""
HIGHEST = 10.0
"""m/z over `MZ_SCALE`; what lies above shares a bin."""
PRIME = 2**31 - 1
MULTIPLIERS = (
    (709841290, 1347998343), (552255366, 894945722), (1387757823, 1142182596), (571022716, 223290809),
    (97104700, 6776809), (2104755556, 1139996713), (1122111277, 1039583827), (618321925, 411595547),
    (542987068, 710636192), (2901441, 304062941), (1799371308, 755071550), (1488195646, 1234558366),
    (1591615381, 1750515154), (729200381, 1843696808), (1024628393, 786400189), (2089299138, 1529371611),
)  # fmt: skip
"""Drawn once; of a kind, an amount and the counts of `ELEMENTS`, for each of two hashes. Never to change: a word's
rows are part of what a model has learned."""
FRAGMENT, LOSS, UNSATURATION, FIRST_ELEMENT = range(4)
"""Kinds of words; an element's is `FIRST_ELEMENT` plus its index."""
VALENCES = {"C": 2, "Si": 2, "N": 1, "P": 1, "B": 1, "As": 1, "O": 0, "S": 0}
"""What an atom adds to twice the number of rings and double bonds; those not named take one off, as hydrogen."""


class PeakWords(nn.Module):
    """Learned vectors of what a peak is, what its ion lost, and how many atoms of an element there are.

    From scaled counts a network learns functions that are smooth in the formula; that C7H7+ means a benzyl group
    where C7H6+ does not, it learns from far fewer molecules if each has a vector of its own. These are sums
    of rows of a table, chosen by hash: that needs no list of formulas and takes any.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(BUCKETS, width)
        nn.init.normal_(self.vectors.weight, std=width**-0.5)

    def forward(self, peaks: Tensor, precursor: Tensor) -> Tensor:
        """Tokens (b, k, 16) and (b, 16) as of `spectra.tokens` -> (b, k, width), fragment plus loss."""
        fragment, loss = peak_codes(peaks, precursor)
        return self._sum(fragment) + self._sum(loss) * (precursor[:, :1, None] > 0)

    def formula(self, precursor: Tensor) -> Tensor:
        """(b, 16) -> (b, width): a word for the atoms of each element and one for their unsaturation."""
        counts = _counts(precursor)
        kinds = torch.arange(len(ELEMENTS), device=counts.device) + FIRST_ELEMENT
        none = torch.zeros_like(counts)[..., None].expand(-1, -1, len(ELEMENTS))
        elements = self._sum(_codes(kinds.expand_as(counts), counts, none))
        valences = torch.tensor([VALENCES.get(element, -1) for element in ELEMENTS], device=counts.device)
        unsaturation = self._sum(_codes(UNSATURATION, (counts * valences).sum(-1), none[:, 0]))
        words = (elements * (counts > 0)[..., None]).sum(1) + unsaturation
        return words * counts.any(-1)[:, None]

    def _sum(self, codes: Tensor) -> Tensor:
        """(..., 2) -> (..., width): two rows of a word, for two words seldom share both."""
        vectors: Tensor = self.vectors(codes % BUCKETS).sum(-2)
        return vectors


def peak_codes(peaks: Tensor, precursor: Tensor) -> tuple[Tensor, Tensor]:
    """The words that peaks and what their ions lost are, (b, k, 2) each: two numbers below `PRIME` a word.

    Tokens (b, k, 16) and (b, 16) as of `spectra.tokens`; where the precursor is unknown its losses mean nothing.
    """
    counts, whole = _counts(peaks), _counts(precursor)[:, None]
    explained = counts.any(-1)
    fragment = _codes(FRAGMENT, torch.where(explained, 0, _bin(peaks[:, :, 0])), counts)
    explained = explained & whole.any(-1)
    left = torch.where(explained, 0, _bin(precursor[:, :1] - peaks[:, :, 0]))
    return fragment, _codes(LOSS, left, (whole - counts) * explained[:, :, None])


def _counts(tokens: Tensor) -> Tensor:
    """(..., 16) -> (..., 14), integers."""
    return (tokens[..., 2:] * tokens.new_tensor(ELEMENT_SCALES)).round().long()


def _codes(kind: int | Tensor, amounts: Tensor, counts: Tensor) -> Tensor:
    """Numbers of words. kind: one, or (...). amounts: (...). counts: (..., 14). -> (..., 2)."""
    kinds = kind if isinstance(kind, Tensor) else torch.full_like(amounts, kind)
    numbers = torch.cat([kinds[..., None], amounts[..., None], counts], -1)
    multipliers = torch.tensor(MULTIPLIERS, device=numbers.device)
    # Products stay below 2^63 while numbers are below 2^32.
    return (numbers[..., None] * multipliers % PRIME).sum(-2) % PRIME


def _bin(scaled: Tensor) -> Tensor:
    """m/z over `MZ_SCALE` (...) -> (...), from 1: 0 is for words that have a formula."""
    return 1 + (scaled.clamp(0, HIGHEST) * (MZ_SCALE / BIN)).long()


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

    @property
    def nan_is_unknown(self) -> tuple[str, ...]:
        """The tensors where NaN stands for unknown."""
        return ("energy",)


@ENCODERS.register("spectrum")
class SpectrumEncoder(AttentionEncoder):
    """A set of peaks, without positions; more tokens stand for the precursor, the adduct and the whole.

    The whole is the sum of the words of its peaks and its formula, weighted by the root of intensity, and goes
    around the attention: from a few thousand molecules a network learns more from a bag of words than from what
    attention makes of them.

    The first layer sees every peak beside the precursor, so that it can tell the neutral loss too. m/z also
    comes as sines and cosines of many wavelengths: the mass defect, a few mDa of hundreds of Da, is what tells the
    elements of a raw peak, and a network reads nothing so fine from one number. The collision energy's vector,
    or a learned one where it is unknown, is added to every token.
    """

    reads = ("spectrum",)
    waves: Tensor

    def __init__(self, adducts: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__(adducts, width, layers, heads, dropout)
        self.register_buffer("waves", torch.pi * 2 ** torch.arange(1.0, WAVES + 1) / LONGEST, persistent=False)
        # Of a peak: its token, the root of its intensity, the waves of its m/z and of what it lost.
        self.peak = Linear(TOKEN_WIDTH + 1 + 4 * WAVES, width)
        self.precursor = Linear(TOKEN_WIDTH + 2 * WAVES, width)
        self.beside = Linear(TOKEN_WIDTH + 2 * WAVES, width, bias=False)
        self.unknown_precursor = nn.Parameter(torch.randn(width) / width**0.5)
        self.mixed = nn.Sequential(nn.GELU(), nn.Dropout(dropout), Linear(width, width))
        self.adduct = nn.Embedding(adducts + 1, width)
        self.energy = nn.Sequential(Linear(1, width), nn.GELU(), Linear(width, width))
        self.unknown_energy = nn.Parameter(torch.randn(width) / width**0.5)
        nn.init.normal_(self.adduct.weight, std=width**-0.5)
        self.words = PeakWords(width)
        self.summary = nn.Sequential(nn.GELU(), nn.Dropout(dropout), Linear(width, width))
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
