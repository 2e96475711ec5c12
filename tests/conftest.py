"""Shared fixtures."""

from pathlib import Path

import pytest
import torch

from graphwright.training import train
from tiny import tiny_settings
from tiny_molecules import molecule_settings, tiny_file


def pytest_configure() -> None:
    """One thread: the tensors are small, and the cores may be shared."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of three steps: everything that a run leaves behind, and nothing learned."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    train(tiny_settings(train={"steps": 3, "validate_every": 2, "validation_samples": 6}), folder)
    return folder


@pytest.fixture(scope="session")
def tiny_molecule_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on a small file of molecules, unusable rows among them."""
    folder = tmp_path_factory.mktemp("molecules")
    run = molecule_settings(tiny_file(folder), train={"steps": 3, "validate_every": 2, "validation_samples": 6})
    train(run, folder / "tiny")
    return folder / "tiny"
