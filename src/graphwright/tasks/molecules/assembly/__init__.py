"""Molecules put together from a fingerprint: no model, only bits and the environments of real molecules."""

from graphwright.tasks.molecules.assembly.alphabet import Alphabet, make_alphabet, shipped_alphabet
from graphwright.tasks.molecules.assembly.assemble import Assembled, Assembly, Limits, assemble
from graphwright.tasks.molecules.assembly.ranking import FingerprintEffort, fingerprint_candidates

__all__ = [
    "Alphabet",
    "Assembled",
    "Assembly",
    "FingerprintEffort",
    "Limits",
    "assemble",
    "fingerprint_candidates",
    "make_alphabet",
    "shipped_alphabet",
]
