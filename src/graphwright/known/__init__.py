"""Known graphs: recognised as wholes, recalled from remembered inputs, and chosen from."""

from graphwright.known.decoding import Known, Placement, known_candidates
from graphwright.known.head import Recogniser, Recognition
from graphwright.known.library import Library, Memory, Recalling

__all__ = [
    "Known",
    "Library",
    "Memory",
    "Placement",
    "Recalling",
    "Recogniser",
    "Recognition",
    "known_candidates",
]
