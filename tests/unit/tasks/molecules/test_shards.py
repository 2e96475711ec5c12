"""Shards as a dataset: the molecules that were prepared, at their places, in any process."""

import pickle
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from torch.utils.data import DataLoader

pytest.importorskip("rdkit")
from graphwright.graphs import Vocabulary
from graphwright.graphs.molecules import graph_from_molecule, molecule_vocabulary, parse_smiles
from graphwright.tasks import task_of
from graphwright.tasks.molecules import FingerprintTask, active_bits, find_data
from graphwright.tasks.molecules.fingerprint import active_bits_and_centres
from graphwright.tasks.molecules.prepare import InProcess, ManifestError, PrepareSettings, Source, prepare
from graphwright.tasks.molecules.prepare import folder as folder_module
from graphwright.tasks.molecules.shards import ShardDataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """600 molecules of QM9 in shards of 150, in blocks of 16 instead of 4096."""
    path = tmp_path_factory.mktemp("shards")
    pq.write_table(pq.read_table(find_data("qm9")).slice(0, 600), path / "qm9.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_module, "BLOCK_ROWS", 16)
        manifest = folder_module.Manifest.of
        patch.setattr(
            folder_module.Manifest,
            "of",
            lambda *given: manifest(*given).model_copy(update={"block_rows": 16}),
        )
        settings = PrepareSettings(max_atoms=9, elements=("C", "O", "N", "F"), shard_rows=150)
        prepare([Source.of(path / "qm9.parquet")], path / "out", settings, InProcess())
    return path / "out"


def prepared(folder: Path, split: str) -> list[str]:
    tables = [pq.read_table(path) for path in sorted((folder / "shards").glob("*.parquet"))]
    return [row["smiles"] for table in tables for row in table.to_pylist() if row["split"] == split]


@pytest.mark.parametrize(("split", "name"), [("train", "train"), ("validation", "val"), ("test", "test")])
def test_it_holds_what_was_prepared_in_order(folder, split, name):
    data = ShardDataset(folder, split)
    expected = prepared(folder, name)
    assert len(data) == len(expected) > 0
    assert [data[at].smiles for at in range(len(data))] == expected


def test_a_model_of_any_molecules_is_evaluated_on_the_test_split_of_a_folder(folder):
    task = task_of(FingerprintTask(data="molecules", capacity=12, elements="C N O S F"))
    data = task.data_from(folder)
    assert [data[at].smiles for at in range(len(data))] == prepared(folder, "test")
    assert data.vocabulary.nodes == ("C", "N", "O", "S", "F")
    assert data.capacity == 12


def test_a_sample_is_the_graph_and_the_fingerprint_of_its_smiles(folder):
    vocabulary = molecule_vocabulary(("F", "N", "S", "O", "C"))  # another order than the shards'
    data = ShardDataset(folder, "train", vocabulary, capacity=12)
    for at in range(0, len(data), 13):
        sample = data[at, 3]
        molecule = parse_smiles(sample.smiles)
        assert sample.graph == graph_from_molecule(molecule, vocabulary)
        assert sample.bits.tolist() == active_bits(molecule).tolist()
    tokens, graphs = data.batch([5, 6, 7])
    assert graphs.mask.shape == (3, 12)
    assert tokens[0, 1 : 1 + len(data[5].bits)].tolist() == data[5].bits.tolist()
    assert all(graphs[at] == data[5 + at].graph for at in range(3))


def test_a_batch_says_on_demand_which_token_is_of_which_atom(folder):
    """Shards hold no centres: they are RDKit's, of the SMILES, whose atoms are in the shard's order."""
    data = ShardDataset(folder, "train")
    data.owners = True
    tokens, graphs = data.batch(range(0, 60, 4))
    for row, owners, sample in zip(tokens, graphs.owners, range(0, 60, 4), strict=True):
        _, centres = active_bits_and_centres(parse_smiles(data[sample].smiles))
        expected = torch.zeros_like(owners)
        for atom, bits in enumerate(centres.tolist()):
            expected[:, atom] = torch.isin(row, torch.tensor(bits))
        assert torch.equal(owners, expected)


def test_a_run_that_resumes_sees_the_same_batches_in_any_worker(folder):
    data = ShardDataset(folder, "train")

    def batches(first: int, count: int, workers: int) -> list[torch.Tensor]:
        loader = DataLoader(
            data, batch_sampler=data.order(16, seed=1, first=first), collate_fn=_node_labels, num_workers=workers
        )
        return list(islice(loader, count))

    straight = batches(0, 50, 0)
    again = batches(0, 17, 0) + batches(17, 33, 2)
    assert all(torch.equal(one, two) for one, two in zip(straight, again, strict=True))
    assert len(straight) == 50


def _node_labels(samples) -> torch.Tensor:
    return torch.tensor([len(sample.smiles) + 100 * int(sample.bits.sum()) for sample in samples])


def test_an_epoch_in_order_reads_each_block_about_once(folder):
    data = ShardDataset(folder, "train", cached_blocks=40)
    order = data.order(16, seed=0)
    for batch in islice(order, order.steps_per_epoch):
        for pair in batch:
            data[pair]
    assert len(data.blocks) > 32
    assert data._cache.reads <= 1.2 * len(data.blocks)
    assert len(data._cache._blocks) <= 40


def test_it_travels_without_its_cache(folder):
    data = ShardDataset(folder, "test")
    data[0]
    copy = pickle.loads(pickle.dumps(data))
    assert len(copy._cache._blocks) == 0
    assert copy[0].smiles == data[0].smiles


def test_the_digest_tells_data_apart(folder, tmp_path):
    assert ShardDataset(folder, "train").digest() == ShardDataset(folder, "test").digest()
    (tmp_path / "a.smi").write_text("CCO\nCCC\nCCN\n")
    prepare([Source.of(tmp_path / "a.smi")], tmp_path / "one", PrepareSettings(), InProcess())
    (tmp_path / "b.smi").write_text("CCO\nCCC\nCCF\n")
    prepare([Source.of(tmp_path / "b.smi")], tmp_path / "two", PrepareSettings(), InProcess())
    digests = {ShardDataset(path).digest() for path in (folder, tmp_path / "one", tmp_path / "two")}
    assert len(digests) == 3


def test_what_does_not_fit_is_refused_by_name(folder, tmp_path):
    with pytest.raises(ManifestError, match="may hold F, which is none of C N O"):
        ShardDataset(folder, "train", molecule_vocabulary(("C", "N", "O")))
    with pytest.raises(ManifestError, match="holds molecules of up to 9 atoms, not 8"):
        ShardDataset(folder, "train", capacity=8)
    with pytest.raises(ManifestError, match=r"holds no prepared molecules: .*manifest\.json does not exist"):
        ShardDataset(tmp_path)
    with pytest.raises(ValueError, match="split must be one of"):
        ShardDataset(folder, "val")
    with pytest.raises(IndexError, match="molecule 100000 of"):
        ShardDataset(folder)[100_000]
    with pytest.raises(ValueError, match="cached_blocks must be at least 1"):
        ShardDataset(folder, cached_blocks=0)


def test_a_folder_that_is_not_complete_or_has_lost_a_shard_is_refused(tmp_path):
    source = tmp_path / "a.smi"
    source.write_text("CCO\nCCC\nCCN\n")
    with pytest.raises(KeyboardInterrupt):
        prepare([Source.of(source)], tmp_path / "out", PrepareSettings(), InProcess(), stopped=lambda: True)
    with pytest.raises(ManifestError, match="out is not complete: give the command that prepares it again"):
        ShardDataset(tmp_path / "out")
    prepare([Source.of(source)], tmp_path / "out", PrepareSettings(), InProcess())
    data = ShardDataset(tmp_path / "out")
    assert isinstance(data.vocabulary, Vocabulary)
    (tmp_path / "out" / "shards" / "000-000000.parquet").unlink()
    with pytest.raises(ManifestError, match=r"000-000000\.parquet is missing or damaged"):
        data[0]
    with pytest.raises(ManifestError, match="has no molecule in its validation split"):
        ShardDataset(tmp_path / "out", "validation")


def test_row_groups_never_hold_two_splits(folder):
    for path in (folder / "shards").glob("*.parquet"):
        with pq.ParquetFile(path) as file:
            for at in range(file.num_row_groups):
                group = file.read_row_group(at, columns=["split"])
                assert len(set(group["split"].to_pylist())) == 1
                assert group.num_rows <= 16
    assert np.all([block.size <= 16 for block in ShardDataset(folder).blocks])
