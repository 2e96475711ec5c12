"""Fixtures of the spectrum tests: prepared files go to a folder that is thrown away."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphwright.tasks.spectra import prepared
from graphwright.training import train
from tiny_spectra import spectrum_settings, write_spectra


@pytest.fixture(autouse=True, scope="session")
def prepared_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "cache_folder", lambda: folder)
        yield folder


@pytest.fixture(scope="session")
def spectra_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_spectra(tmp_path_factory.mktemp("spectra") / "few.parquet")


@pytest.fixture(scope="session")
def tiny_spectrum_run(
    tmp_path_factory: pytest.TempPathFactory, spectra_file: Path, prepared_elsewhere: Path
) -> Path:
    assert prepared_elsewhere.is_dir()
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    train(
        spectrum_settings(spectra_file, train={"steps": 3, "validate_every": 2, "validation_samples": 6}), folder
    )
    return folder
