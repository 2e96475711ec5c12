"""The compiled kernels come and go: no compiler, a failing one, a damaged cache, switched off."""

import logging
import subprocess
import sys
import time

import pytest
import torch

from graphwright.transport import sinkhorn
from graphwright.transport.native import library
from graphwright.transport.native.library import BuildError, load_kernels

needs_kernels = pytest.mark.skipif(load_kernels() is None, reason="no compiled kernels here")


def test_a_failing_compiler_is_named_in_one_line_and_torch_takes_over(monkeypatch, caplog):
    def fail() -> None:
        raise BuildError("no C++ compiler on the path")

    monkeypatch.setattr(library, "build_library", fail)
    monkeypatch.delenv("GRAPHWRIGHT_NATIVE", raising=False)
    load_kernels.cache_clear()
    try:
        with caplog.at_level(logging.WARNING, "graphwright"):
            assert load_kernels() is None
            plan = sinkhorn(torch.rand(1, 3, 3), 0.1, 5)
        assert "no C++ compiler on the path" in caplog.text
        assert len(caplog.records) == 1
        assert plan.matrix.isfinite().all()
    finally:
        load_kernels.cache_clear()


def test_a_compiler_that_rejects_the_source_says_which_and_why(monkeypatch, tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "kernels.cpp:1: error: no vectors" >&2\nexit 1\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("GRAPHWRIGHT_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BuildError, match=r"compiler failed: kernels\.cpp:1: error: no vectors"):
        library.build_library()
    assert not [path for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock"]


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BuildError, match="no-such-compiler"):
        library.build_library()


@pytest.fixture
def copying(monkeypatch, tmp_path):
    """A cache of its own and a compiler that takes a moment, notes that it ran, and copies a good library."""
    good = library.build_library()
    compiler, ran = tmp_path / "compiler", tmp_path / "ran"
    compiler.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exit 0\necho $$ >> "{ran}"\n'
        f'while [ "$1" != -o ]; do shift; done\nhead -c 5000 "{good}" > "$2"; sleep 0.3; cp "{good}" "$2"\n'
    )
    compiler.chmod(0o755)
    ran.touch()
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("GRAPHWRIGHT_CACHE", str(tmp_path / "cache"))
    return good.read_bytes(), ran


@needs_kernels
@pytest.mark.parametrize("damage", ["empty", "start", "half", "last", "bit", "text", "note", "no note"])
def test_a_damaged_library_in_the_cache_is_built_anew(copying, damage):
    """To open half of one would end the process, not raise an error."""
    good, ran = copying
    cached = library.build_library()
    note = cached.with_suffix(".sha256")
    match damage:
        case "empty" | "start" | "half" | "last":
            cached.write_bytes(good[: {"empty": 0, "start": 5000, "half": len(good) // 2}.get(damage, -1)])
        case "bit":
            cached.write_bytes(good[:9000] + bytes([good[9000] ^ 1]) + good[9001:])
        case "text":
            cached.write_bytes(b"half a libra")
        case "note":
            note.write_bytes(b"\xff")
        case "no note":
            note.unlink()
    load_kernels.cache_clear()
    try:
        assert load_kernels() is not None
        assert cached.read_bytes() == good
        assert library.build_library() == cached
        assert len(ran.read_text().splitlines()) == 2
    finally:
        load_kernels.cache_clear()


BUILDING = """
import ctypes
from graphwright.transport.native import library
ctypes.CDLL(str(library.build_library()))
"""


@needs_kernels
def test_processes_that_build_at_once_build_it_once(copying):
    good, ran = copying
    processes = [subprocess.Popen([sys.executable, "-c", BUILDING]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert len(ran.read_text().splitlines()) == 1
    assert library.build_library().read_bytes() == good


@needs_kernels
def test_a_process_killed_while_it_builds_is_in_nobodys_way(copying):
    good, ran = copying
    process = subprocess.Popen([sys.executable, "-c", BUILDING])
    while not ran.read_text():
        time.sleep(0.01)
    process.kill()
    process.wait()
    cached = library.build_library()
    assert cached.read_bytes() == good
    assert sorted(path.suffix for path in cached.parent.iterdir()) == [".lock", ".sha256", ".so"]


def test_without_a_home_the_cache_is_asked_for(monkeypatch):
    def homeless() -> None:
        raise RuntimeError("Could not determine home directory.")

    for name in ("GRAPHWRIGHT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(library.Path, "home", homeless)
    with pytest.raises(BuildError, match="GRAPHWRIGHT_CACHE"):
        library.build_library()


def test_kernels_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("GRAPHWRIGHT_NATIVE", "off")
    load_kernels.cache_clear()
    try:
        assert load_kernels() is None
    finally:
        load_kernels.cache_clear()
