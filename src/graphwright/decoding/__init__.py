"""From a prediction's logits to graphs."""

from graphwright.decoding.candidates import (
    Candidate,
    Candidates,
    agreed_candidates,
    order_in_words,
    plain_candidates,
    valid_candidates,
)
from graphwright.decoding.slots import Assignment, Slots, SlotScores, decode, harden, slot_scores
from graphwright.decoding.valence import Formula, FormulaRule
from graphwright.decoding.valid import NoMoleculeError, ValidDecoding, decode_valid

__all__ = [
    "Assignment",
    "Candidate",
    "Candidates",
    "Formula",
    "FormulaRule",
    "NoMoleculeError",
    "SlotScores",
    "Slots",
    "ValidDecoding",
    "agreed_candidates",
    "decode",
    "decode_valid",
    "harden",
    "order_in_words",
    "plain_candidates",
    "slot_scores",
    "valid_candidates",
]
