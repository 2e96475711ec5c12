"""The order of molecules in shards: a fair shuffle, a pure function of seed, step and rank, reading few blocks."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphwright.tasks.molecules.shards import BLOCKS_AT_ONCE, LANES, WINDOW, ShardOrder

MANY = tuple([40] * 50 + [7, 1, 39] + [40] * 47)
FEW = (40, 40, 13)


def steps(count: int, sizes: tuple[int, ...] = MANY, **options) -> list[list[tuple[int, int]]]:
    return list(islice(ShardOrder(**{"block_sizes": sizes, "batch_size": 16, "seed": 0} | options), count))


@pytest.mark.parametrize("sizes", [MANY, FEW])
def test_thirty_steps_are_seventeen_and_the_rest(sizes):
    whole = steps(30, sizes)
    assert steps(17, sizes) + steps(13, sizes, first=17) == whole


@pytest.mark.parametrize("sizes", [MANY, FEW])
@pytest.mark.parametrize("rank", [0, 1])
def test_starting_at_any_step_of_any_epoch_gives_the_tail(sizes, rank):
    per_epoch = ShardOrder(sizes, 16, 0).steps_per_epoch
    whole = steps(2 * per_epoch + 3, sizes, rank=rank, ranks=2)
    for first in range(0, 2 * per_epoch, 1 + per_epoch // 7):
        assert steps(len(whole) - first, sizes, rank=rank, ranks=2, first=first) == whole[first:]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=80).filter(lambda sizes: sum(sizes) >= 24),
    st.sampled_from([1, 2, 6, 8, 12, 24]),
    st.integers(0, 3),
    st.integers(0, 5),
)
def test_an_epoch_sees_every_molecule_at_most_once_and_misses_less_than_a_batch(sizes, batch_size, seed, epoch):
    order = ShardOrder(tuple(sizes), batch_size, seed)
    n = order.steps_per_epoch
    batches = list(islice(ShardOrder(tuple(sizes), batch_size, seed, first=epoch * n), n))
    assert {len(batch) for batch in batches} == {batch_size}
    assert {number for batch in batches for _, number in batch} == {epoch}
    seen = [index for batch in batches for index, _ in batch]
    assert len(set(seen)) == len(seen) > sum(sizes) - batch_size
    assert set(seen) <= set(range(sum(sizes)))


@pytest.mark.parametrize("sizes", [MANY, FEW])
@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_ranks_partition_each_epoch_and_any_number_deals_the_same_joint_batches(sizes, ranks):
    alone = steps(2 * ShardOrder(sizes, 16, 0).steps_per_epoch, sizes)
    dealt = [steps(len(alone), sizes, rank=rank, ranks=ranks) for rank in range(ranks)]
    for at, batch in enumerate(alone):
        shares = [own[at] for own in dealt]
        assert {len(share) for share in shares} == {16 // ranks}
        assert sorted(pair for share in shares for pair in share) == sorted(batch)


def test_a_rank_reads_its_own_blocks():
    blocks = np.repeat(np.arange(len(MANY)), MANY)
    per_epoch = ShardOrder(MANY, 16, 0).steps_per_epoch
    read = [
        {int(blocks[index]) for batch in steps(per_epoch, rank=rank, ranks=4) for index, _ in batch}
        for rank in range(4)
    ]
    # Only a block on the border of two lanes may be read by two ranks, and there are as many borders as lanes.
    assert sum(map(len, read)) <= len(MANY) + LANES


@pytest.mark.parametrize("batch_size", [16, 15, 8, 64])
def test_batches_in_a_row_touch_no_more_blocks_than_a_loader_keeps(batch_size):
    blocks = np.repeat(np.arange(400), 10)
    batches = steps(4000 // batch_size, (10,) * 400, batch_size=batch_size)
    recent: list[int] = []
    reads = 0
    for index in (index for batch in batches for index, _ in batch):
        block = int(blocks[index])
        if block in recent:
            recent.remove(block)
        else:
            reads += 1
        recent = [*recent, block][-BLOCKS_AT_ONCE:]
    assert reads <= 400 + 2 * LANES  # each block once, those on the border of two lanes or windows twice


def test_epochs_and_seeds_differ_and_nothing_stays_in_place():
    per_epoch = ShardOrder(MANY, 16, 0).steps_per_epoch
    whole = [[index for batch in steps(per_epoch, first=per_epoch * e) for index, _ in batch] for e in range(3)]
    other = [index for batch in steps(per_epoch, seed=1) for index, _ in batch]
    for first, second in [(whole[0], whole[1]), (whole[1], whole[2]), (whole[0], other)]:
        assert np.mean(np.array(first) == np.array(second)) < 0.01
    assert abs(np.corrcoef(whole[0], np.arange(len(whole[0])))[0, 1]) < 0.25


def test_a_batch_mixes_many_blocks():
    blocks = np.repeat(np.arange(400), 10)
    mixed = [len({int(blocks[index]) for index, _ in batch}) for batch in steps(50, (10,) * 400, batch_size=64)]
    assert np.mean(mixed) > 0.7 * LANES * WINDOW


def test_few_blocks_are_shuffled_as_a_whole():
    counts = np.zeros(93)
    for epoch in range(200):
        ((index, _), *_), *_ = steps(1, FEW, first=epoch * ShardOrder(FEW, 16, 0).steps_per_epoch)
        counts[index] += 1
    assert counts.max() <= 12  # 200 draws among 93: one in 10^5 such counts is above it


def test_what_cannot_be_dealt_is_refused():
    with pytest.raises(ValueError, match="batch_size 16 is more than the 5 training samples"):
        ShardOrder((2, 3), 16, 0)
    with pytest.raises(ValueError, match="batch_size 16 is not a multiple of the 3 processes"):
        ShardOrder(MANY, 16, 0, ranks=3)
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        ShardOrder(MANY, 0, 0)
