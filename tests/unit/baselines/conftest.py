"""Small data of every task; prepared spectra go to a folder that is thrown away."""

from collections.abc import Iterator

import pytest

from graphwright.settings import Run
from graphwright.tasks.spectra import prepared
from tiny import tiny_settings
from tiny_molecules import molecule_settings, tiny_file
from tiny_spectra import spectrum_settings, write_spectra


@pytest.fixture(scope="session")
def spectrum_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "cache_folder", lambda: folder)
        yield spectrum_settings(write_spectra(tmp_path_factory.mktemp("spectra") / "few.parquet"))


@pytest.fixture(scope="session")
def molecule_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return molecule_settings(tiny_file(tmp_path_factory.mktemp("molecules")))


@pytest.fixture
def picture_run() -> Run:
    return tiny_settings()


@pytest.fixture(params=["picture_run", "molecule_run", "spectrum_run"])
def any_run(request: pytest.FixtureRequest) -> Run:
    run: Run = request.getfixturevalue(request.param)
    return run
