"""What may be wrong with one row of a table."""

from __future__ import annotations


class RowError(ValueError):
    """A row of which no sample is made. reason: the sort of fault, for counts. field: the column."""

    def __init__(self, reason: str, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.reason, self.field, self.detail = reason, field, detail
