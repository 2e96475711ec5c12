"""Peaks, losses and formulas by name: the same fragment in two spectra is the same word."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphwright.spectra.tokens import ELEMENT_SCALES, ELEMENTS, MZ_SCALE

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
"""Kinds of words; an element's is `FIRST_ELEMENT` plus its place."""
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
