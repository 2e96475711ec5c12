"""Prepared shards as a torch dataset: random access in bounded memory, and the order that makes it cheap."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from torch import Tensor

from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.graphs.molecules import molecule_vocabulary
from graphwright.tasks.molecules.dataset import MoleculeSample, collate_molecules
from graphwright.tasks.molecules.prepare.folder import SHARDS, Manifest, ManifestError, ShardRecord, read_manifest
from graphwright.tasks.split import SPLITS, Split, check_split
from graphwright.tasks.task import Batches, Samples

LANES, WINDOW = 8, 4
"""Streams that a batch is drawn from, and blocks that each of them mixes; fewer streams mix as many together."""

BLOCKS_AT_ONCE = 2 * LANES * WINDOW
"""Blocks that batches in a row touch at most: each lane's window, and the one that it moves to."""

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ShardOrder(Batches):
    """Batches that need few blocks at a time.

    block_sizes: molecules in each block; indices count through the blocks in order.

    Each epoch shuffles the blocks, lays them end to end and cuts that row into lanes of equal length. A lane is
    shuffled within windows of a few blocks, and every batch takes as much from each lane. Dealt to the ranks in
    turn, a joint batch gives each rank whole lanes (if their number allows): a rank reads its own blocks alone,
    yet any number of ranks sees the same joint batches. What few blocks hold is shuffled as a whole.
    """

    block_sizes: tuple[int, ...]
    batch_size: int
    seed: int
    first: int = 0
    rank: int = 0
    ranks: int = 1

    @cached_property
    def samples(self) -> int:  # type: ignore[override]  # derived here, given elsewhere; nobody writes it
        """Molecules in all blocks."""
        return sum(self.block_sizes)

    @property
    def lanes(self) -> int:
        """Lanes: up to eight, so that they share a batch evenly; the number of ranks has no say in it."""
        return gcd(self.batch_size, LANES)

    def epoch(self, number: int) -> Callable[[int], IntArray]:
        order = _Epoch(np.array(self.block_sizes, np.int64), self.lanes, self.seed, number)
        return lambda at: order.batch(at, self.batch_size)


class _Epoch:
    """The order of one epoch, of which only the windows in use are ever laid out."""

    def __init__(self, sizes: IntArray, lanes: int, seed: int, epoch: int) -> None:
        self.lanes, self.window, self.key = lanes, LANES * WINDOW // lanes, (seed, epoch)
        random = np.random.default_rng(self.key)
        self.blocks = random.permutation(len(sizes))
        self.firsts = np.concatenate([[0], np.cumsum(sizes)])
        """(blocks + 1,) index of the first molecule of each block."""
        self.starts = np.concatenate([[0], np.cumsum(sizes[self.blocks])])
        """(blocks + 1,) where each shuffled block starts."""
        self.length = int(self.starts[-1]) // lanes
        few = len(sizes) <= LANES * WINDOW
        self.whole = random.permutation(self.starts[-1]) if few else None
        self._windows: dict[int, tuple[int, IntArray]] = {}

    def batch(self, at: int, size: int) -> IntArray:
        """(size,) indices of a batch; position j comes from lane j % lanes."""
        share = size // self.lanes
        if self.whole is not None:
            return self.whole[at * size : (at + 1) * size]
        parts = [self._lane(lane, at * share, (at + 1) * share) for lane in range(self.lanes)]
        return np.stack(parts, axis=1).reshape(-1)

    def _lane(self, lane: int, low: int, high: int) -> IntArray:
        """Indices at the positions low..high-1 of a lane."""
        runs: list[IntArray] = []
        position, end = lane * self.length + low, lane * self.length + high
        while position < end:
            start, order = self._window(lane, position)
            part = order[position - start : end - start]
            runs.append(part)
            position += len(part)
        return np.concatenate(runs)

    def _window(self, lane: int, position: int) -> tuple[int, IntArray]:
        """The window of a lane that holds a position: where it starts, and its shuffled indices."""
        start, order = self._windows.get(lane, (0, np.zeros(0, np.int64)))
        if start <= position < start + len(order):
            return start, order
        number = (int(np.searchsorted(self.starts, position, side="right")) - 1) // self.window
        low = max(int(self.starts[number * self.window]), lane * self.length)
        behind = min((number + 1) * self.window, len(self.blocks))
        high = min(int(self.starts[behind]), (lane + 1) * self.length)
        # Lanes from 1: numpy takes a key that ends in zeros for the same without them.
        positions = low + np.random.default_rng((*self.key, 1 + lane, number)).permutation(high - low)
        block = np.searchsorted(self.starts, positions, side="right") - 1
        order = self.firsts[self.blocks[block]] + positions - self.starts[block]
        self._windows[lane] = low, order
        return low, order


COLUMNS = ("smiles", "atoms", "bonds", "fingerprint")


@dataclass(frozen=True)
class BlockAddress:
    """A row group of a shard: `first` is the index, in the split, of its first molecule."""

    shard: str
    row_group: int
    first: int
    size: int


class ShardDataset(Samples):
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
        self.folder, self.split = folder, split
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
        address = self.blocks[int(np.searchsorted(self._firsts, at, side="right")) - 1]
        return self._cache.block(address).sample(at - address.first, self._codes, self.vocabulary)

    def order(self, batch_size: int, seed: int, first: int = 0, rank: int = 0, ranks: int = 1) -> ShardOrder:
        """Batches for a loader's `batch_sampler`, from step `first` on."""
        sizes = tuple(block.size for block in self.blocks)
        return ShardOrder(sizes, batch_size, seed, first, rank, ranks)

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
class _Lists:
    """Lists of numbers end to end: list i is values[starts[i]:starts[i + 1]]."""

    values: NDArray[Any]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, column: pa.ListArray) -> _Lists:
        return cls(column.values.to_numpy(), column.offsets.to_numpy().astype(np.int64))

    def __getitem__(self, at: int) -> NDArray[Any]:
        return self.values[self.starts[at] : self.starts[at + 1]]


@dataclass(frozen=True, eq=False)
class _Block:
    """A decoded row group."""

    smiles: pa.StringArray
    atoms: _Lists
    bonds: _Lists
    bits: _Lists

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
        self._blocks: OrderedDict[BlockAddress, _Block] = OrderedDict()

    def block(self, address: BlockAddress) -> _Block:
        block = self._blocks.get(address)
        if block is None:
            block = _read_block(self.folder / address.shard, address)
            self.reads += 1
            self._blocks[address] = block
            if len(self._blocks) > self.size:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(address)
        return block

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_blocks": OrderedDict()}  # a worker reads for itself


def _read_block(path: Path, block: BlockAddress) -> _Block:
    try:
        with pq.ParquetFile(path) as file:
            table = file.read_row_group(block.row_group, columns=list(COLUMNS), use_threads=False)
    except (pa.ArrowException, OSError, IndexError) as error:
        raise ManifestError(f"{path} is missing or damaged: {error}") from error
    if table.num_rows != block.size:
        raise ManifestError(
            f"{path}: row group {block.row_group} has {table.num_rows} molecules, the manifest says {block.size}"
        )
    smiles, *lists = (pa.concat_arrays(table[name].chunks) for name in COLUMNS)
    return _Block(smiles, *(_Lists.of(column) for column in lists))


def _blocks(shards: Sequence[ShardRecord], split: int, block_rows: int) -> list[BlockAddress]:
    """Where the molecules of a split are: its row groups, those of earlier splits skipped."""
    blocks, first = [], 0
    for shard in shards:
        row_group = sum(-(-size // block_rows) for size in shard.molecules[:split])
        left = shard.molecules[split]
        while left:
            size = min(left, block_rows)
            blocks.append(BlockAddress(shard.name, row_group, first, size))
            row_group, first, left = row_group + 1, first + size, left - size
    return blocks


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
