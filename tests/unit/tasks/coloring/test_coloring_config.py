from typing import Any

import pytest

from graphwright.tasks.coloring import SPLITS, ColoringConfig
from graphwright.tasks.coloring.sample import stream


def test_defaults_are_the_papers() -> None:
    for capacity in (10, 20, 30, 40, 50, 60):
        config = ColoringConfig(capacity)
        assert (config.min_size, config.side, config.noise) == (5, 4 * capacity, 0.02)
        assert config.samples == 20_000 * capacity
        assert [config.length(split) for split in SPLITS] == [
            16_000 * capacity,
            2_000 * capacity,
            2_000 * capacity,
        ]


def test_splits_share_all_samples() -> None:
    config = ColoringConfig(10, samples=10_007)
    assert [config.length(split) for split in SPLITS] == [8_007, 1_000, 1_000]


def test_any2graph() -> None:
    config = ColoringConfig.any2graph()
    assert (config.side, config.blur, config.min_pixels) == (32, 0.4, 3)
    assert config.length("train") == 100_000


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"capacity": 4}, "min_size 5 is more than capacity 4"),
        ({"capacity": 0}, "capacity"),
        ({"capacity": 10.0}, "capacity"),
        ({"capacity": 10, "min_size": 0}, "min_size"),
        ({"capacity": 10, "min_size": -1}, "min_size"),
        ({"capacity": 10, "side": 3}, "capacity must be at most side"),
        ({"capacity": 10, "side": -1}, "side"),
        ({"capacity": 10, "noise": -0.1}, "noise"),
        ({"capacity": 10, "noise": float("nan")}, "noise"),
        ({"capacity": 10, "blur": -1.0}, "blur"),
        ({"capacity": 10, "blur": float("inf")}, "blur"),
        ({"capacity": 10, "min_pixels": -1}, "min_pixels"),
        ({"capacity": 10, "min_pixels": 161}, "min_pixels"),
        ({"capacity": 10, "samples": 9}, "samples"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field}"):
        ColoringConfig(**settings)


def test_unknown_split_is_named() -> None:
    with pytest.raises(ValueError, match=r"^split must be one of train, validation, test, got 'dev'"):
        ColoringConfig(10).length("dev")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [(-1, 0, 0), (2**63, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_a_stream_outside_its_range_is_refused(name: tuple[int, int, int]) -> None:
    seed, index, epoch = name
    with pytest.raises(ValueError, match="must lie in"):
        stream(seed, "train", index, epoch)


def test_streams_differ_in_every_part_of_their_name() -> None:
    names = [
        (seed, split, index, epoch)
        for seed in (0, 1, 2**63 - 1)
        for split in SPLITS
        for index in (0, 1, 2**40)
        for epoch in (None, 0, 1)
    ]
    assert len({stream(*name).bytes(16) for name in names}) == len(names)
