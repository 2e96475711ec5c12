"""Shared fixtures."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from graphwright.training import train
from graphwright.transport.native import library
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


BOTH_PATHS = (
    "unit/transport",
    "unit/losses",
    "unit/matching",
    "property/test_transport.py",
    "property/test_theory.py",
)
"""Tests of whatever computes plans run twice: with the compiled kernels, if there are any, and on torch alone."""
COMPARE_THEMSELVES = "test_native"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Both paths for the tests that are about plans."""
    path = metafunc.definition.path
    here = path.relative_to(Path(__file__).parent).as_posix()
    if here.startswith(BOTH_PATHS) and not path.name.startswith(COMPARE_THEMSELVES):
        metafunc.parametrize("plan_path", ["kernels", "torch"], indirect=True)


@pytest.fixture(autouse=True)
def plan_path(request: pytest.FixtureRequest) -> Iterator[None]:
    """Switches the kernels off where a test is run on torch alone."""
    if getattr(request, "param", "kernels") == "torch":
        with patch.object(library, "load_kernels", lambda: None):
            yield
    else:
        yield
