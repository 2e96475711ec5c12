"""Shared fixtures."""

from pathlib import Path

import pytest

from graphwright.settings import ColoringTask, Matching, Model, Run, Train
from graphwright.training import train

TINY = Run(
    task=ColoringTask(capacity=4, min_size=2, samples=400),
    model=Model(encoder_width=16, encoder_blocks=1, width=16, layers=1, heads=2, head_width=16),
    matching=Matching(dimension=8, target_width=8, target_layers=1, epsilon=1e-3),
    train=Train(steps=3, batch_size=8, workers=0, log_every=1, validate_every=2, validation_samples=6, threads=1),
)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of three steps: everything that a run leaves behind, and nothing learned."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    train(TINY, folder)
    return folder
