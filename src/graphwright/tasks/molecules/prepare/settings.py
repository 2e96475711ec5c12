"""What a preparation keeps, and how it cuts its shards."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator

ELEMENTS = ("C", "N", "O", "F", "S", "Cl", "Br", "I", "P", "B", "Si")
"""The elements of nearly all organic molecules."""

BLOCK_ROWS = 4096
"""Molecules in a row group: what a loader reads, decodes and forgets at once."""


class PrepareSettings(BaseModel):
    """Everything besides the sources that decides what the shards hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_atoms: int = Field(32, ge=2, le=255, description="molecules with more heavy atoms are rejected")
    elements: tuple[str, ...] = Field(ELEMENTS, min_length=1, description="any other element is rejected")
    shard_rows: int = Field(65_536, ge=1, description="rows of a source that make one shard")
    list_rejected: bool = Field(False, description="write rejected.csv.gz")

    @field_validator("elements")
    @classmethod
    def _known_elements(cls, symbols: tuple[str, ...]) -> tuple[str, ...]:
        from graphwright.graphs.molecules import molecule_vocabulary

        return molecule_vocabulary(symbols).nodes
