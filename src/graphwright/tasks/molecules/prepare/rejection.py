"""Rows that do not become graphs, and why: counted, and listed if asked for."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from graphwright.files import replacing
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


LISTING, PARTS = "rejected.csv.gz", "rejected"
COLUMNS = ("source", "row", "id", "text", "reason", "detail")


def write_part(folder: Path, name: str, source: str, rejections: Iterable[Rejection]) -> None:
    """The rejections of one shard, in a file of their own until the run is complete."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for rejection in rejections:
        shown = (rejection.text[:LONGEST_TEXT], str(rejection.reason), rejection.detail[:LONGEST_TEXT])
        writer.writerow((source, rejection.row, rejection.id, *shown))
    parts = folder / PARTS
    parts.mkdir(exist_ok=True)
    with replacing(parts / name) as draft:
        draft.write_bytes(gzip.compress(text.getvalue().encode("utf-8", "replace"), mtime=0))


def join_parts(folder: Path) -> None:
    """One listing of all parts; gzip allows its members to be laid end to end."""
    with replacing(folder / LISTING) as draft, draft.open("wb") as joined:
        joined.write(gzip.compress((",".join(COLUMNS) + "\n").encode(), mtime=0))
        for part in sorted((folder / PARTS).glob("*.csv.gz")):
            with part.open("rb") as file:
                shutil.copyfileobj(file, joined)


def remove_parts(folder: Path) -> None:
    """The parts, once they are joined."""
    shutil.rmtree(folder / PARTS, ignore_errors=True)
