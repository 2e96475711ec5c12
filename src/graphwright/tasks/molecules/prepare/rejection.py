"""Rows that do not become graphs, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from graphwright.graphs.molecules import Reason

LONGEST_TEXT = 200
"""Characters of a rejected row that are kept to be shown."""


class RejectionReason(StrEnum):
    """What rejections are counted by."""

    MALFORMED = "malformed row"
    EMPTY = Reason.EMPTY.value
    UNPARSABLE = Reason.UNPARSABLE.value
    UNSANITIZABLE = Reason.UNSANITIZABLE.value
    SEVERAL_FRAGMENTS = Reason.SEVERAL_FRAGMENTS.value
    TOO_LARGE = Reason.TOO_LARGE.value
    TOO_SMALL = "too small"
    UNKNOWN_ELEMENT = Reason.UNKNOWN_ELEMENT.value
    UNKNOWN_BOND = Reason.UNKNOWN_BOND.value
    CHARGED = "charged"
    RADICAL = "radical"
    UNSTABLE = "no stable SMILES"
    NO_INCHI = "no InChI"
    CRASHED = "crashed"
    DUPLICATE = "duplicate"


class RejectedMoleculeError(ValueError):
    """A molecule that is not taken."""

    def __init__(self, reason: RejectionReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Rejection:
    """A row of a source that is not taken; `row` counts from 1."""

    row: int
    id: str
    text: str
    reason: RejectionReason
    detail: str


class ReasonCount(BaseModel):
    """How many rows were rejected for a reason, and the first of them."""

    model_config = ConfigDict(frozen=True)

    reason: RejectionReason
    count: int
    row: int
    text: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} {self.count:,} (first: row {self.row:,}, {self.text!r})"


def count_reasons(rejections: Iterable[Rejection]) -> tuple[ReasonCount, ...]:
    """Counts by reason, in the order of `RejectionReason`."""
    return add_counts(
        ReasonCount(
            reason=rejection.reason,
            count=1,
            row=rejection.row,
            text=rejection.text[:LONGEST_TEXT],
            detail=rejection.detail[:LONGEST_TEXT],
        )
        for rejection in rejections
    )


def add_counts(counts: Iterable[ReasonCount]) -> tuple[ReasonCount, ...]:
    """Counts of several parts as one, each with the example that came first."""
    total: dict[RejectionReason, ReasonCount] = {}
    for own in counts:
        before = total.get(own.reason)
        total[own.reason] = (
            own if before is None else before.model_copy(update={"count": before.count + own.count})
        )
    return tuple(total[reason] for reason in RejectionReason if reason in total)
