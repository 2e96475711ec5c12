"""Files written whole, the cache, and folders for one process at a time."""

import hashlib
import os
import threading
from pathlib import Path

import pytest

from graphwright.files import (
    LOCK,
    PAUSE,
    NoCacheError,
    cache_folder,
    is_locked,
    lock_folder,
    replacing,
    sha256_of,
    shipped_table,
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
    with lock_folder(tmp_path / "work", RuntimeError("busy")):
        assert is_locked(tmp_path / "work")
        with pytest.raises(RuntimeError, match="busy"), lock_folder(tmp_path / "work", RuntimeError("busy")):
            pass
    assert not is_locked(tmp_path / "work")
    with lock_folder(tmp_path / "work", RuntimeError("busy")):
        pass


def test_who_looks_is_not_taken_for_one_at_work(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / LOCK).touch()
    with (tmp_path / LOCK).open() as looking:
        fcntl.flock(looking, fcntl.LOCK_EX)
        end = threading.Timer(PAUSE, fcntl.flock, (looking, fcntl.LOCK_UN))
        end.start()
        assert not is_locked(tmp_path)
        end.join()
