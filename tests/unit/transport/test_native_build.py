"""The compiled kernels come and go: no compiler, a failing one, a damaged cache, switched off."""

import logging

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
    assert not list((tmp_path / "cache").iterdir())


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BuildError, match="no-such-compiler"):
        library.build_library()


@needs_kernels
def test_a_damaged_library_in_the_cache_is_built_anew(monkeypatch, tmp_path):
    good = library.build_library()
    compiler = tmp_path / "compiler"
    compiler.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exit 0\nwhile [ "$1" != -o ]; do shift; done\ncp "{good}" "$2"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("GRAPHWRIGHT_CACHE", str(tmp_path / "cache"))
    damaged = library.build_library()
    damaged.write_bytes(b"half a libra")
    load_kernels.cache_clear()
    try:
        assert load_kernels() is not None
        assert damaged.read_bytes() == good.read_bytes()
    finally:
        load_kernels.cache_clear()


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
