"""A split of a table as a torch dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torch.utils.data import Dataset

from graphwright.graphs import GraphBatch
from graphwright.models import Inputs
from graphwright.tasks.split import Split
from graphwright.tasks.table.understood import TableSample, Understood
from graphwright.tasks.task import Rejection


class TableDataset(Dataset[TableSample]):
    """The usable rows of a split, all in memory, in the file's order; `rejected` has the others."""

    def __init__(self, understood: Understood, split: Split, limit: int | None = None) -> None:
        self.understood, self.split = understood, split
        self.samples = understood.samples[split][:limit]
        if not self.samples:
            rejected = self.rejected
            first = f"; the first of {len(rejected):,} unusable ones: {rejected[0].detail}" if rejected else ""
            raise ValueError(f"{understood.path} has no usable {split} row ({understood.counts()}){first}")

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int | tuple[int, int]) -> TableSample:
        at = index[0] if isinstance(index, tuple) else index
        if not 0 <= at < len(self):
            raise IndexError(f"row {at} of a {self.split} split of {len(self)}")
        return self.samples[at]

    @property
    def rejected(self) -> list[Rejection]:
        """The unusable rows of the split, and those whose split nobody can tell."""
        return [*self.understood.rejected[self.split], *self.understood.rejected[None]]

    def unusable(self) -> dict[str, int]:
        """How many these are, by reason, the commonest first."""
        return dict(Counter(each.reason for each in self.rejected).most_common())

    def batch(self, indices: Sequence[int]) -> tuple[Inputs, GraphBatch]:
        """Inputs and graphs of some rows."""
        return self.collate([self[index] for index in indices])

    def collate(self, samples: Sequence[TableSample]) -> tuple[Inputs, GraphBatch]:
        """Inputs as the encoder takes them, and the graphs padded to the capacity."""
        inputs = self.understood.form.collate([sample.value for sample in samples])
        return inputs, GraphBatch.collate([sample.graph for sample in samples], self.understood.capacity)

    def digest(self) -> str:
        """SHA-256 of the file."""
        return self.understood.file.digest()
