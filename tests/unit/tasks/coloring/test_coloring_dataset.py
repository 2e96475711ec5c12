import hashlib
import pickle
from collections.abc import Sequence

import pytest
import torch
from torch.utils.data import DataLoader

from graphwright.tasks.coloring import COLORS, SPLITS, ColoringConfig, ColoringDataset, ColoringSample, Split

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]

Digest = tuple[bytes, bytes]


def _digest(sample: ColoringSample) -> Digest:
    """Of the picture, and of the map alone: noise must not be what makes two samples differ."""
    drawn = (sample.pixels, sample.graph.node_labels, sample.graph.edges)
    return (
        hashlib.sha256(sample.image).digest(),
        hashlib.sha256(b"".join(part.tobytes() for part in drawn)).digest(),
    )


def _digest_all(samples: Sequence[ColoringSample]) -> list[Digest]:
    return [_digest(sample) for sample in samples]


def _read(
    dataset: ColoringDataset, names: Sequence[int] | Sequence[tuple[int, int]], workers: int
) -> list[Digest]:
    loader = DataLoader(
        dataset,
        batch_size=50,
        sampler=names,  # type: ignore[arg-type]
        num_workers=workers,
        collate_fn=_digest_all,
    )
    return [digest for batch in loader for digest in batch]


def test_no_duplicates_among_twenty_thousand_over_four_workers() -> None:
    digests = _read(ColoringDataset(ColoringConfig(10)), range(20_000), workers=4)
    assert len({image for image, _ in digests}) == 20_000
    assert len({drawn for _, drawn in digests}) == 20_000


@pytest.mark.parametrize("workers", [1, 4])
def test_any_number_of_workers_gives_the_same_samples(workers: int) -> None:
    dataset = ColoringDataset(ColoringConfig(10), "train", 3)
    pairs = [(index * 37 % 1_000, index % 3) for index in range(200)]
    assert _read(dataset, range(200), workers) == _read(dataset, range(200), 0)
    assert _read(dataset, pairs, workers) == [_digest(dataset[pair]) for pair in pairs]


def test_splits_share_nothing() -> None:
    config = ColoringConfig(10)
    drawn = {
        split: {_digest(ColoringDataset(config, split)[index])[1] for index in range(300)} for split in SPLITS
    }
    assert len(set.union(*drawn.values())) == 900


def test_an_epoch_turns_training_samples_only() -> None:
    for split in SPLITS:
        dataset = ColoringDataset(ColoringConfig(10), split)
        views = [dataset[5, epoch] for epoch in range(40)]
        assert all(view.graph == dataset[5].graph for view in views)
        assert len({view.image.tobytes() for view in views}) == (8 if split == "train" else 1)
        assert {_digest(dataset[5, 17])} == {_digest(dataset[5, 17]), _digest(views[17])}


def test_samples_of_an_epoch_are_turned_independently() -> None:
    dataset = ColoringDataset(ColoringConfig(10))
    still = sum(dataset[index, 0].image.tobytes() == dataset[index].image.tobytes() for index in range(400))
    assert abs(still - 50) < 5 * (400 * 1 / 8 * 7 / 8) ** 0.5


def test_batches_are_padded_to_the_capacity() -> None:
    dataset = ColoringDataset(ColoringConfig(10), "test")
    loader = DataLoader(dataset, batch_size=6, collate_fn=dataset.collate)
    images, graphs = next(iter(loader))
    assert images.shape == (6, 3, 40, 40)
    assert images.dtype == torch.float32
    assert (len(graphs), graphs.capacity, graphs.vocabulary.nodes) == (6, 10, COLORS)
    assert graphs.graphs() == [dataset[index].graph for index in range(6)]


def test_length_and_iteration_end_with_the_split() -> None:
    dataset = ColoringDataset(ColoringConfig(5, samples=20), "validation")
    assert len(dataset) == 2
    assert len(list(dataset)) == 2  # the sequence protocol needs an IndexError
    for index in (2, -1):
        with pytest.raises(IndexError, match=f"sample {index} of a validation split of 2"):
            dataset[index]


def test_a_dataset_is_its_name() -> None:
    dataset = ColoringDataset(ColoringConfig(10), "test", 4)
    assert pickle.loads(pickle.dumps(dataset)) == dataset


@pytest.mark.parametrize(("split", "seed", "field"), [("dev", 0, "split"), ("train", -1, "seed")])
def test_bad_names_are_refused_at_once(split: Split, seed: int, field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field} must"):
        ColoringDataset(ColoringConfig(10), split, seed)
