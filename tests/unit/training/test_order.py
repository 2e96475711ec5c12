"""The order of samples: a pure function of seed, step and rank."""

from itertools import islice

import pytest

from graphwright.training.schedule import StepOrder


def steps(count: int, **options) -> list[list[tuple[int, int]]]:
    return list(islice(StepOrder(**{"samples": 30, "batch_size": 6, "seed": 0} | options), count))


@pytest.mark.parametrize("epoch", range(4))
def test_every_sample_comes_once_per_epoch(epoch):
    seen = [pair for batch in steps(20)[5 * epoch : 5 * epoch + 5] for pair in batch]
    assert sorted(index for index, _ in seen) == list(range(30))
    assert {number for _, number in seen} == {epoch}


def test_the_tail_that_fills_no_batch_is_dropped_and_differs_between_epochs():
    order = steps(40, samples=32)
    epochs = [frozenset(index for batch in order[5 * e : 5 * e + 5] for index, _ in batch) for e in range(8)]
    assert all(len(epoch) == 30 for epoch in epochs)
    assert len(set(epochs)) > 1


def test_epochs_and_seeds_shuffle_differently():
    first, second, other = steps(5), steps(10)[5:], steps(5, seed=1)
    assert [i for batch in first for i, _ in batch] != [i for batch in second for i, _ in batch]
    assert first != other
    assert first == steps(5)
    assert [i for batch in first for i, _ in batch] != list(range(30))


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
def test_any_number_of_ranks_deals_the_same_joint_batches(ranks):
    alone = steps(12)
    dealt = [steps(12, rank=rank, ranks=ranks) for rank in range(ranks)]
    for at, batch in enumerate(alone):
        shares = [own[at] for own in dealt]
        assert {len(share) for share in shares} == {6 // ranks}
        assert sorted(pair for share in shares for pair in share) == sorted(batch)


@pytest.mark.parametrize("first", [0, 1, 4, 5, 6, 13])
@pytest.mark.parametrize("rank", [0, 1])
def test_starting_at_any_step_gives_the_tail(first, rank):
    whole = steps(20, rank=rank, ranks=2)
    assert steps(20 - first, rank=rank, ranks=2, first=first) == whole[first:]


def test_steps_per_epoch_counts_whole_batches():
    assert StepOrder(32, 6, 0).steps_per_epoch == 5
    assert StepOrder(6, 6, 0).steps_per_epoch == 1


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(ValueError, match="batch_size 7 is more than the 6 training samples"):
        StepOrder(6, 7, 0)


def test_a_batch_that_the_ranks_cannot_share_is_refused():
    with pytest.raises(ValueError, match="batch_size 7 is not a multiple of the 2 processes"):
        StepOrder(20, 7, 0, ranks=2)
