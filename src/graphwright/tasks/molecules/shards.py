"""Prepared shards as a torch dataset: random access in bounded memory, and the order that makes it cheap."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.graphs.molecules import molecule_vocabulary
from graphwright.tasks.molecules.batch import collate_molecules
from graphwright.tasks.molecules.prepare.manifest import SHARDS, Manifest, ManifestError, read_manifest
from graphwright.tasks.molecules.prepare.shard_file import ShardRecord
from graphwright.tasks.molecules.sample import MoleculeSample
from graphwright.tasks.molecules.shard_order import BLOCKS_AT_ONCE, ShardOrder
from graphwright.tasks.split import SPLITS, Split, check_split

COLUMNS = ("smiles", "atoms", "bonds", "fingerprint")


@dataclass(frozen=True)
class BlockPlace:
    """A row group of a shard: `first` is the index, in the split, of its first molecule."""

    shard: str
    row_group: int
    first: int
    size: int


class ShardDataset(Dataset[MoleculeSample]):
    """One split of a folder that `graphwright data prepare molecules` has completed.

    Molecules are numbered in the order of sources and rows. Reading one reads its block of up to 4096; the last
    `cached_blocks` of them are kept, about a megabyte each: use `order`, whose neighbours share blocks.
    """

    def __init__(
        self,
        folder: Path,
        split: Split = "train",
        vocabulary: Vocabulary | None = None,
        capacity: int | None = None,
        cached_blocks: int = BLOCKS_AT_ONCE,
    ) -> None:
        check_split(split)
        self.folder, self.split, self.owners = folder, split, False
        self.manifest = _complete_manifest(folder)
        settings = self.manifest.settings
        self.vocabulary = vocabulary or molecule_vocabulary(settings.elements)
        self.capacity = settings.max_atoms if capacity is None else capacity
        if self.capacity < settings.max_atoms:
            raise ManifestError(
                f"{folder} holds molecules of up to {settings.max_atoms} atoms, not {self.capacity}"
            )
        self._codes = _codes(folder, settings.elements, self.vocabulary)
        self.blocks = tuple(_blocks(self.manifest.shards, SPLITS.index(split), self.manifest.block_rows))
        if not self.blocks:
            raise ManifestError(f"{folder} has no molecule in its {split} split")
        self._firsts = np.array([block.first for block in self.blocks], np.int64)
        self._length = self.blocks[-1].first + self.blocks[-1].size
        self._cache = _BlockCache(folder / SHARDS, cached_blocks)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int | tuple[int, int]) -> MoleculeSample:
        at = index[0] if isinstance(index, tuple) else index
        if not 0 <= at < len(self):
            raise IndexError(f"molecule {at} of {len(self)}")
        place = self.blocks[int(np.searchsorted(self._firsts, at, side="right")) - 1]
        return self._cache.block(place).sample(at - place.first, self._codes, self.vocabulary)

    def order(self, batch_size: int, seed: int, first: int = 0, rank: int = 0, ranks: int = 1) -> ShardOrder:
        """Batches for a loader's `batch_sampler`, from step `first` on."""
        sizes = tuple(block.size for block in self.blocks)
        return ShardOrder(sizes, batch_size, seed, first, rank, ranks)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, GraphBatch]:
        """Tokens and graphs of some molecules."""
        return self.collate([self[index] for index in indices])

    def collate(self, samples: Sequence[MoleculeSample]) -> tuple[Tensor, GraphBatch]:
        """(b, k) tokens, and the graphs padded to the capacity."""
        return collate_molecules(samples, self.vocabulary, self.capacity, owners=self.owners)

    def digest(self) -> str:
        """SHA-256 of what the shards were made from and what came of it, wherever the sources lay."""
        sources = tuple(source.model_copy(update={"path": ""}) for source in self.manifest.sources)
        return hashlib.sha256(
            self.manifest.model_copy(update={"sources": sources}).model_dump_json().encode()
        ).hexdigest()


@dataclass(frozen=True, eq=False)
class _Ragged:
    """Lists of numbers end to end: list i is values[starts[i]:starts[i + 1]]."""

    values: NDArray[Any]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, column: pa.ListArray) -> _Ragged:
        return cls(column.values.to_numpy(), column.offsets.to_numpy().astype(np.int64))

    def __getitem__(self, at: int) -> NDArray[Any]:
        return self.values[self.starts[at] : self.starts[at + 1]]


@dataclass(frozen=True, eq=False)
class _Block:
    """A decoded row group."""

    smiles: pa.StringArray
    atoms: _Ragged
    bonds: _Ragged
    bits: _Ragged

    def sample(self, at: int, codes: NDArray[np.uint8], vocabulary: Vocabulary) -> MoleculeSample:
        bonds = self.bonds[at].reshape(-1, 3)
        return MoleculeSample(self.bits[at], codes[self.atoms[at]], bonds, vocabulary, self.smiles[at].as_py())


class _BlockCache:
    """The blocks used last, in this process."""

    def __init__(self, folder: Path, size: int) -> None:
        if size < 1:
            raise ValueError(f"cached_blocks must be at least 1, got {size}")
        self.folder, self.size = folder, size
        self.reads = 0
        """Blocks decoded so far."""
        self._blocks: OrderedDict[BlockPlace, _Block] = OrderedDict()

    def block(self, place: BlockPlace) -> _Block:
        found = self._blocks.get(place)
        if found is None:
            found = _read_block(self.folder / place.shard, place)
            self.reads += 1
            self._blocks[place] = found
            if len(self._blocks) > self.size:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(place)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_blocks": OrderedDict()}  # a worker reads for itself


def _read_block(path: Path, place: BlockPlace) -> _Block:
    try:
        with pq.ParquetFile(path) as file:
            table = file.read_row_group(place.row_group, columns=list(COLUMNS), use_threads=False)
    except (pa.ArrowException, OSError, IndexError) as error:
        raise ManifestError(f"{path} is missing or damaged: {error}") from error
    if table.num_rows != place.size:
        raise ManifestError(
            f"{path}: row group {place.row_group} has {table.num_rows} molecules, the manifest says {place.size}"
        )
    smiles, *lists = (pa.concat_arrays(table[name].chunks) for name in COLUMNS)
    return _Block(smiles, *(_Ragged.of(column) for column in lists))


def _blocks(shards: Sequence[ShardRecord], split: int, block_rows: int) -> list[BlockPlace]:
    """Where the molecules of a split are: its row groups, those of earlier splits skipped."""
    places, first = [], 0
    for shard in shards:
        row_group = sum(-(-size // block_rows) for size in shard.molecules[:split])
        left = shard.molecules[split]
        while left:
            size = min(left, block_rows)
            places.append(BlockPlace(shard.name, row_group, first, size))
            row_group, first, left = row_group + 1, first + size, left - size
    return places


def _complete_manifest(folder: Path) -> Manifest:
    manifest = read_manifest(folder)
    if not manifest.complete:
        raise ManifestError(f"{folder} is not complete: give the command that prepares it again")
    return manifest


def _codes(folder: Path, elements: Sequence[str], vocabulary: Vocabulary) -> NDArray[np.uint8]:
    """(256,) atomic number to code in the vocabulary."""
    from rdkit.Chem import GetPeriodicTable

    codes = np.zeros(256, np.uint8)
    for symbol in elements:
        if symbol not in vocabulary.nodes:
            raise ManifestError(f"{folder} may hold {symbol}, which is none of {' '.join(vocabulary.nodes)}")
        codes[GetPeriodicTable().GetAtomicNumber(symbol)] = vocabulary.nodes.index(symbol)
    return codes
