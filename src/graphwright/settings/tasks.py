"""The settings of every kind of task: what is predicted from what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Discriminator, Field, Tag, model_validator

from graphwright.settings.base import Count, NotNegative, Settings

Capacity = Annotated[int, Field(ge=1, le=250)]


class ColoringTask(Settings):
    """Coloring: a picture of coloured regions; the graph says which regions touch and what colours they have."""

    kind: Literal["coloring"] = "coloring"
    """What is predicted from what: coloring, graphs of regions from pictures."""
    capacity: Capacity = 10
    """Largest number of regions, N."""
    min_size: Count = 5
    """Smallest number of regions."""
    side: Annotated[int, Field(ge=0)] = 0
    """Pixels per side; 0 means 4 N."""
    noise: NotNegative = 0.02
    """Standard deviation of the pixel noise."""
    blur: NotNegative = 0.0
    """Standard deviation of the Gaussian blur, in pixels."""
    min_pixels: Annotated[int, Field(ge=0)] = 0
    """Regions and contacts of fewer pixels are left out of the graph."""
    samples: Annotated[int, Field(ge=0)] = 0
    """Samples in all splits; 0 means 20,000 N."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Which data set: sample i is a pure function of seed, split and i."""

    @model_validator(mode="after")
    def _sizes_in_order(self) -> Self:
        if self.min_size > self.capacity:
            raise ValueError(f"min_size {self.min_size} is more than capacity {self.capacity}")
        return self


class FingerprintTask(Settings):
    """Fingerprint2Molecule: the active bits of an ECFP4 fingerprint; the graph is the molecule's heavy atoms."""

    kind: Literal["fingerprint"] = "fingerprint"
    """What is predicted from what: fingerprint, molecules from their ECFP4 bits."""
    data: Annotated[str, Field(min_length=1)] = "qm9"
    """Shipped data (qm9, molecules), a file with SMILES (parquet, csv, tsv, smi), or a prepared folder."""
    capacity: Capacity = 32
    """Largest number of heavy atoms, N; larger molecules are left out."""
    elements: str = ""
    """Element symbols that a node may have, such as C N O F; empty: those in the data."""
    diffusion: bool = True
    """Also predict how many neighbours of each element an atom has, and match by it."""


TaskSettings = ColoringTask | FingerprintTask

TASKS: dict[str, type[TaskSettings]] = {
    get_args(task.model_fields["kind"].annotation)[0]: task for task in get_args(TaskSettings)
}
"""Settings of every kind of task, the default kind first."""
DEFAULT_KIND = next(iter(TASKS))


def task_kind(given: Any) -> str:
    """The kind of a task's settings, given as such or as a mapping; settings older than kinds have none."""
    if isinstance(given, Mapping):
        return str(given.get("kind", DEFAULT_KIND))
    return str(getattr(given, "kind", DEFAULT_KIND))


AnyTask = Annotated[
    Annotated[ColoringTask, Tag("coloring")] | Annotated[FingerprintTask, Tag("fingerprint")],
    Discriminator(task_kind),
]
