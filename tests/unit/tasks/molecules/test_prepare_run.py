"""A whole preparation: killed anywhere it loses no row and doubles none; what does not fit is refused by name."""

import csv
import gzip
import os
from collections import Counter
from functools import partial
from itertools import product
from operator import eq
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("rdkit")
from graphwright.tasks.molecules import find_data
from graphwright.tasks.molecules.prepare import (
    InProcess,
    ManifestError,
    Prepared,
    PrepareSettings,
    Source,
    SourceError,
    prepare,
    read_manifest,
)
from graphwright.tasks.molecules.prepare import run as run_module
from graphwright.tasks.molecules.prepare.folder import repeated_rows

SETTINGS = PrepareSettings(shard_rows=20, list_rejected=True)
BAD = ["", "C.C", "nonsense", "C" * 40, "[CH2]C"]


def molecules(start: int, count: int) -> list[str]:
    return pq.read_table(find_data("qm9"), columns=["smiles"]).slice(start, count)["smiles"].to_pylist()


@pytest.fixture
def sources(tmp_path) -> list[Source]:
    """Two files of 50 and 40 rows: the second repeats ten molecules of the first, and two of its own."""
    first, second = molecules(0, 45), molecules(35, 33)
    one, two = tmp_path / "one.csv", tmp_path / "CID-SMILES.gz"
    one.write_text("id,smiles\n" + "".join(f"a{at},{text}\n" for at, text in enumerate(first + BAD)))
    lines = [*second, *second[-2:], *BAD]
    two.write_bytes(gzip.compress("".join(f"{at}\t{text}\n" for at, text in enumerate(lines)).encode()))
    return [Source.of(one), Source.of(two)]


def small_batches(monkeypatch) -> None:
    monkeypatch.setattr(run_module, "BATCH_ROWS", 7)


def run(sources: list[Source], out: Path, settings: PrepareSettings = SETTINGS, **options) -> Prepared:
    return prepare(sources, out, settings, InProcess(), **options)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def listing(folder: Path) -> list[dict[str, str]]:
    with gzip.open(folder / "rejected.csv.gz", "rt", newline="") as file:
        return list(csv.DictReader(file))


def shards(folder: Path) -> list[pa.Table]:
    return [pq.read_table(path) for path in sorted((folder / "shards").glob("*.parquet"))]


def test_every_row_is_a_molecule_or_listed_exactly_once(sources, tmp_path):
    result = run(sources, tmp_path / "out")
    assert result.rows == 90
    found = Counter(
        (result.manifest.shards[at].source, row)
        for at, shard in enumerate(shards(tmp_path / "out"))
        for row in shard["row"].to_pylist()
    )
    paths = [str(source.path) for source in sources]
    found.update((paths.index(line["source"]), int(line["row"])) for line in listing(tmp_path / "out"))
    assert found == Counter({(0, row): 1 for row in range(1, 51)} | {(1, row): 1 for row in range(1, 41)})
    reasons = Counter(line["reason"] for line in listing(tmp_path / "out"))
    assert reasons == {count.reason: count.count for count in result.rejected}
    assert reasons == {
        "duplicate": 12,
        "empty": 2,
        "several fragments": 2,
        "unparsable": 2,
        "too large": 2,
        "radical": 2,
    }


def test_the_first_of_each_connectivity_stays(sources, tmp_path):
    run(sources, tmp_path / "out")
    keys = [key for shard in shards(tmp_path / "out") for key in shard["connectivity"].to_pylist()]
    assert len(set(keys)) == len(keys) == 68
    repeated = [line["row"] for line in listing(tmp_path / "out") if line["reason"] == "duplicate"]
    assert repeated == [*map(str, range(1, 11)), "34", "35"]


def test_shards_hold_splits_apart_and_agree_with_the_manifest(sources, tmp_path):
    result = run(sources, tmp_path / "out", PrepareSettings(shard_rows=30))
    assert [(record.source, record.first, record.rows, record.last) for record in result.manifest.shards] == [
        (0, 1, 30, False),
        (0, 31, 20, True),
        (1, 1, 30, False),
        (1, 31, 10, True),
    ]
    names = ("train", "val", "test")
    for record, shard in zip(result.manifest.shards, shards(tmp_path / "out"), strict=True):
        splits = shard["split"].to_pylist()
        assert splits == sorted(splits, key=names.index)
        assert record.molecules == tuple(splits.count(name) for name in names)
    assert result.molecules == tuple(
        sum(record.molecules[at] for record in result.manifest.shards) for at in range(3)
    )
    assert not (tmp_path / "out" / "rejected.csv.gz").exists()


class KilledError(BaseException):
    """As good as SIGKILL: nothing in the code under test waits for it."""


class Killer:
    """An `os.replace` that dies at some of its calls, before or after the file is in its place."""

    def __init__(self, monkeypatch) -> None:
        self.replace, self.calls = os.replace, 0
        self.fatal, self.after = (lambda call: False), False  # noqa: ARG005
        monkeypatch.setattr(os, "replace", self)

    def __call__(self, source, target) -> None:
        self.calls += 1
        dies = self.fatal(self.calls)
        if not dies or self.after:
            self.replace(source, target)
        if dies:
            raise KilledError


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(sources, tmp_path, monkeypatch):
    small_batches(monkeypatch)
    killer = Killer(monkeypatch)
    run(sources, tmp_path / "straight")
    moments = killer.calls
    # Manifest, five shards with a listing each, two shards without duplicates and theirs, all listings, manifest.
    assert moments == 1 + 10 + 4 + 1 + 1
    for moment, after in product(range(1, moments + 1), (False, True)):
        out = tmp_path / f"killed-{moment}-{after}"
        killer.calls, killer.fatal, killer.after = 0, partial(eq, moment), after
        with pytest.raises(KilledError):
            run(sources, out)
        killer.fatal = partial(eq, 0)
        run(sources, out)
        assert contents(out) == contents(tmp_path / "straight"), f"killed at file {moment}, {after=}"


@pytest.mark.parametrize(("pace", "after"), [(4, False), (3, True), (5, False)])
def test_killed_again_and_again_it_still_ends_in_the_same_bytes(sources, tmp_path, monkeypatch, pace, after):
    run(sources, tmp_path / "straight")
    killer = Killer(monkeypatch)
    killer.fatal, killer.after = (lambda call: call % pace == 0), after
    kills = 0
    for _attempt in range(30):
        try:
            run(sources, tmp_path / "out")
            break
        except KilledError:
            kills += 1
    assert kills >= 3
    assert contents(tmp_path / "out") == contents(tmp_path / "straight")


def test_a_request_to_stop_ends_between_batches_and_the_rest_follows(sources, tmp_path, monkeypatch):
    small_batches(monkeypatch)
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        return asked == 6

    with pytest.raises(KeyboardInterrupt):
        run(sources, tmp_path / "out", stopped=stopped)
    assert len(shards(tmp_path / "out")) == 1
    assert not read_manifest(tmp_path / "out").complete
    resumed = run(sources, tmp_path / "out")
    assert resumed.usage.rows == 70
    run(sources, tmp_path / "straight")
    assert contents(tmp_path / "out") == contents(tmp_path / "straight")


def test_a_lost_shard_is_made_again(sources, tmp_path):
    run(sources, tmp_path / "straight", stopped=lambda: False)
    asked = iter(range(100))
    with pytest.raises(KeyboardInterrupt):
        run(sources, tmp_path / "out", stopped=lambda: next(asked) == 4)
    (tmp_path / "out" / "shards" / "000-000001.parquet").unlink()
    run(sources, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "straight")


def test_a_complete_folder_is_left_alone(sources, tmp_path):
    run(sources, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.parquet")}
    again = run(sources, tmp_path / "out")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert again.usage.rows == 0
    assert again.rows == 90


@pytest.mark.parametrize("shard_rows", [7, 10, 49, 50, 51, 1000])
def test_the_size_of_shards_changes_nothing_about_the_molecules(sources, tmp_path, shard_rows):
    result = run(sources, tmp_path / "out", PrepareSettings(shard_rows=shard_rows))
    found = sorted(
        (record.source, row, smiles)
        for record, shard in zip(result.manifest.shards, shards(tmp_path / "out"), strict=True)
        for row, smiles in zip(shard["row"].to_pylist(), shard["smiles"].to_pylist(), strict=True)
    )
    assert len(found) == 68
    reference = run(sources, tmp_path / "reference")
    assert result.rejected == reference.rejected
    assert result.molecules == reference.molecules
    assert [record.last for record in result.manifest.shards].count(True) == 2


def test_a_changed_source_is_refused_by_name(sources, tmp_path):
    run(sources, tmp_path / "out")
    path = sources[0].path
    path.write_text(path.read_text() + "z,CC\n")
    with pytest.raises(ManifestError, match=rf"{path} is not the source that .*out was started from"):
        run(sources, tmp_path / "out")


def test_a_source_changed_in_place_is_refused(sources, tmp_path):
    run(sources, tmp_path / "out")
    path = sources[0].path
    path.write_text(path.read_text().replace("a3,", "b3,"))
    with pytest.raises(ManifestError, match=str(path)):
        run(sources, tmp_path / "out")


def test_other_settings_sources_or_versions_are_refused(sources, tmp_path, monkeypatch):
    run(sources, tmp_path / "out")
    with pytest.raises(ManifestError, match=r"max_atoms was 32 when .*out was started, now it is 20"):
        run(sources, tmp_path / "out", SETTINGS.model_copy(update={"max_atoms": 20}))
    with pytest.raises(ManifestError, match="was started from 2 sources, not 1"):
        run(sources[:1], tmp_path / "out")
    with pytest.raises(ManifestError, match="is not the source"):
        run(sources[::-1], tmp_path / "out")
    with pytest.raises(ManifestError, match=r"one.csv: smiles_column was None when .* now it is smiles"):
        run([Source.of(sources[0].path, "smiles"), sources[1]], tmp_path / "out")
    monkeypatch.setattr("rdkit.rdBase.rdkitVersion", "1999.01.1")
    with pytest.raises(ManifestError, match=r"was started with rdkit .* this is 1999\.01\.1"):
        run(sources, tmp_path / "out")


def test_a_folder_of_something_else_is_not_touched(sources, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("precious")
    with pytest.raises(ManifestError, match=r"out is not empty and has no manifest\.json"):
        run(sources, out)
    assert (out / "thesis.tex").read_text() == "precious"


def test_two_processes_cannot_prepare_one_folder(sources, tmp_path):
    pytest.importorskip("fcntl")
    from graphwright.tasks.molecules.prepare.folder import lock_preparation

    with (
        lock_preparation(tmp_path / "out"),
        pytest.raises(ManifestError, match="is being prepared by process "),
    ):
        run(sources, tmp_path / "out")
    run(sources, tmp_path / "out")


def test_a_damaged_shard_or_manifest_is_named(sources, tmp_path):
    asked = iter(range(100))
    with pytest.raises(KeyboardInterrupt):
        run(sources, tmp_path / "out", stopped=lambda: next(asked) == 3)
    shard = tmp_path / "out" / "shards" / "000-000000.parquet"
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"000-000000\.parquet is not a shard of graphwright, or damaged"):
        run(sources, tmp_path / "out")
    (tmp_path / "out" / "manifest.json").write_text("{")
    with pytest.raises(ManifestError, match=r"manifest\.json is damaged"):
        run(sources, tmp_path / "out")


def test_a_file_without_a_usable_row_is_an_error_that_says_why(tmp_path):
    path = tmp_path / "bad.smi"
    path.write_text("nonsense\nC.C\nrubbish\n")
    with pytest.raises(
        SourceError,
        match=r"bad\.smi: none of its 3 rows can be used: unparsable 2 \(first: row 1, 'nonsense'\); several",
    ):
        run([Source.of(path)], tmp_path / "out")
    empty = tmp_path / "empty.csv"
    empty.write_text("smiles\n")
    with pytest.raises(SourceError, match=r"empty\.csv has no rows"):
        run([Source.of(empty)], tmp_path / "other")


def test_a_source_of_duplicates_alone_is_no_error(sources, tmp_path):
    copy = tmp_path / "copy.csv"
    copy.write_bytes(sources[0].path.read_bytes())
    result = run([sources[0], Source.of(copy)], tmp_path / "out")
    assert sum(result.molecules) == 45
    assert run([sources[0], Source.of(copy)], tmp_path / "out").rows == 100


@pytest.mark.parametrize("keys_in_memory", [1, 3, 10, 1000])
def test_repeats_are_found_in_any_number_of_passes(tmp_path, keys_in_memory):
    import numpy as np

    random = np.random.default_rng(0)
    tables = [random.integers(0, 40, size) for size in (30, 0, 17, 8)]
    paths = [tmp_path / f"{at}.parquet" for at in range(len(tables))]
    for path, keys in zip(paths, tables, strict=True):
        pq.write_table(pa.table({"connectivity": pa.array(keys, pa.uint64())}), path)
    seen: set[int] = set()
    for keys, packed in zip(
        tables, repeated_rows(paths, [len(keys) for keys in tables], keys_in_memory), strict=True
    ):
        expected = []
        for key in keys.tolist():
            expected.append(key in seen)
            seen.add(key)
        assert np.unpackbits(packed, count=len(keys)).astype(bool).tolist() == expected


def test_progress_never_goes_back_and_ends_at_one(sources, tmp_path, monkeypatch):
    small_batches(monkeypatch)
    seen = []
    run(sources, tmp_path / "out", report=seen.append)
    shares = [progress.fraction for progress in seen if progress.stage == "preparing"]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert seen[-1].molecules + seen[-1].rejected == 90


def test_the_cost_is_added_up(sources, tmp_path):
    usage = run(sources, tmp_path / "out").usage
    assert (usage.rows, usage.molecules) == (90, 80)
    assert usage.cpu_seconds > 0
    assert usage.projected_core_hours == pytest.approx(80_900_000 * usage.cpu_seconds / 80 / 3600)
    assert next(iter(usage.peaks.values())) > 10**7
