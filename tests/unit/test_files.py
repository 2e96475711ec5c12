"""Files written whole, the cache, and folders for one process at a time."""

import errno
import gzip
import hashlib
import os
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from graphwright import files
from graphwright.files import (
    HOLDER,
    LOCK,
    PAUSE,
    NoCacheError,
    ParquetError,
    TightlyPackedError,
    WriteError,
    cache_folder,
    cached,
    check_row_counts,
    draft_of,
    holder_of,
    is_locked,
    lock_folder,
    refuse_overwriting,
    replacing,
    sha256_of,
    shipped_table,
    unpacked,
    write_json,
    write_text,
)


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "note.txt"
    write_text(path, "old\n")

    def killed(*_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            write_text(path, "new\n")
    assert path.read_text() == "old\n"
    write_text(path, "newer ä\n")
    assert path.read_text(encoding="utf-8") == "newer ä\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_is_taken_away_when_its_writer_fails(tmp_path):
    def fail() -> None:
        with replacing(tmp_path / "table") as draft:
            draft.write_text("half")
            raise ValueError("no good")

    with pytest.raises(ValueError, match="no good"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_json_ends_in_a_line_end(tmp_path):
    write_json(tmp_path / "facts.json", {"a": 1})
    assert (tmp_path / "facts.json").read_text() == '{\n  "a": 1\n}\n'


def test_sha256_is_of_the_bytes(tmp_path):
    (tmp_path / "data").write_bytes(b"123")
    assert sha256_of(tmp_path / "data") == hashlib.sha256(b"123").hexdigest()


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    monkeypatch.setenv("GRAPHWRIGHT_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("GRAPHWRIGHT_CACHE")
    assert cache_folder() == tmp_path / "shared" / "graphwright"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder() == tmp_path / ".cache" / "graphwright"


def test_without_a_home_the_cache_is_asked_for(monkeypatch):
    def homeless() -> None:
        raise RuntimeError("Could not determine home directory.")

    for name in ("GRAPHWRIGHT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(NoCacheError, match="GRAPHWRIGHT_CACHE"):
        cache_folder()


def test_only_what_ships_has_a_shipped_table():
    assert shipped_table("no such data") is None


def test_a_folder_is_for_one_at_a_time(tmp_path):
    assert not is_locked(tmp_path / "work")
    with lock_folder(tmp_path / "work", RuntimeError):
        assert is_locked(tmp_path / "work")
        with (
            pytest.raises(RuntimeError, match=f"process {os.getpid()}$"),
            lock_folder(tmp_path / "work", RuntimeError),
        ):
            pass
    assert not is_locked(tmp_path / "work")
    assert holder_of(tmp_path / "work") == "another process"
    with lock_folder(tmp_path / "work", RuntimeError):
        (tmp_path / "work" / HOLDER).write_text("12 elsewhere")
        assert holder_of(tmp_path / "work") == "process 12 on elsewhere"


def test_what_cannot_be_written_is_named_and_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "note.txt"
    write_text(path, "old\n")

    def full(*_: object, **__: object) -> None:
        draft_of(path).touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(WriteError, match=r"note\.txt cannot be written: No space left on device"):
        write_text(path, "new\n")
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_of_other_files_keep_their_names(tmp_path):
    with pytest.raises(FileNotFoundError, match="elsewhere"), replacing(tmp_path / "note.txt"):
        (tmp_path / "elsewhere").read_text()


def test_a_folder_that_is_gone_is_named(tmp_path):
    with pytest.raises(WriteError, match=r"gone/note\.txt cannot be written: No such file"):
        write_text(tmp_path / "gone" / "note.txt", "")


def test_an_output_is_no_input(tmp_path):
    refuse_overwriting([tmp_path / "a"], json=tmp_path / "b", out=None)
    with pytest.raises(ValueError, match=r"--json .*a is an input"):
        refuse_overwriting([tmp_path / "a"], json=tmp_path / "b" / ".." / "a")


def test_a_read_only_cache_is_told_and_another_taken(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / "home").write_text("")  # a folder cannot be made in it, even by root
    taken = cached(tmp_path / "home" / "cache" / "kernels.so")
    assert taken.name == "kernels.so"
    assert taken.parent.stat().st_mode & 0o077 == 0
    assert taken == cached(tmp_path / "home" / "cache" / "kernels.so")
    assert "GRAPHWRIGHT_CACHE" in caplog.text
    assert str(taken.parent) in caplog.text
    taken.parent.chmod(0o777)  # what anybody may write to is not run
    other = cached(tmp_path / "home" / "cache" / "kernels.so").parent
    assert other not in (taken.parent, tmp_path)
    other.rmdir()


def test_a_writable_cache_is_taken_as_it_is(tmp_path, caplog):
    assert cached(tmp_path / "cache" / "kernels.so") == tmp_path / "cache" / "kernels.so"
    assert caplog.text == ""


def test_who_looks_is_not_taken_for_one_at_work(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / LOCK).touch()
    with (tmp_path / LOCK).open() as looking:
        fcntl.flock(looking, fcntl.LOCK_EX)
        end = threading.Timer(PAUSE, fcntl.flock, (looking, fcntl.LOCK_UN))
        end.start()
        assert not is_locked(tmp_path)
        end.join()


@pytest.mark.parametrize("filling", [b"\n", b"0"])
def test_a_gzip_bomb_is_refused_within_a_second(tmp_path, filling):
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(64):
            file.write(filling * 2**20)
    begun = time.process_time()
    with path.open("rb") as file, pytest.raises(TightlyPackedError, match=r"first [\d,]+ bytes unpack to 1[67],"):
        unpacked(file)
    assert time.process_time() - begun < 1


def test_a_bomb_of_many_small_members_is_one(tmp_path):
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"\n" * 2**20) * 20)
    with (tmp_path / "bomb.gz").open("rb") as file, pytest.raises(TightlyPackedError):
        unpacked(file)


def test_text_is_unpacked_from_its_start_and_what_is_none_left_alone(tmp_path):
    text = b"".join(b"%d\tCCO\n" % number for number in range(200_000))  # as regular as tables are
    packed, plain = tmp_path / "table.gz", tmp_path / "table"
    packed.write_bytes(gzip.compress(text * 9, 1))
    plain.write_bytes(text)
    with packed.open("rb") as file:
        assert unpacked(file).read() == text * 9
    with plain.open("rb") as file:
        assert unpacked(file) is file
        assert file.read() == text


def test_a_parquet_file_that_claims_rows_which_it_has_not_is_refused_unread(tmp_path, monkeypatch):
    """Nine thousand million of them in 1,486 bytes: pyarrow took memory for each."""
    claiming = Path(__file__).parents[1] / "golden" / "false_row_counts.parquet"
    with pytest.raises(ParquetError, match="it says 2 rows, and its parts say 8,835,233,406"):
        check_row_counts(claiming)
    with monkeypatch.context() as patch:
        patch.setattr(files, "ROWS_PER_BYTE", 0)
        parquet.write_table(pa.table({"a": [1]}), tmp_path / "one.parquet")
        with pytest.raises(ParquetError, match=r"it says 1 rows in [0-9]+ bytes"):
            check_row_counts(tmp_path / "one.parquet")
    for name, column in (("flat", [1, None, 3]), ("nested", [[1, 2], [], None])):
        parquet.write_table(pa.table({"a": column}), tmp_path / f"{name}.parquet", row_group_size=2)
        check_row_counts(tmp_path / f"{name}.parquet")
    parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "empty.parquet")
    check_row_counts(tmp_path / "empty.parquet")
