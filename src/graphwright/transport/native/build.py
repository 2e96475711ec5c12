"""Compile the kernels once, on first use, into a cache."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

from graphwright.files import NoCacheError, cache_folder

SOURCES = Path(__file__).parent
FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
    "-pthread",
)
LIMIT = 300
"""Seconds that a compiler may take."""


class BuildError(RuntimeError):
    """The kernels could not be compiled, and why."""


def build_library() -> Path:
    """The compiled library, from the cache if it was built before by this compiler for this processor."""
    compiler = find_compiler()
    try:
        target = cache_folder() / f"kernels-{build_fingerprint(compiler)}.so"
    except NoCacheError as error:
        raise BuildError(str(error)) from error
    if not target.exists():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # Compiled beside its place and moved there at once: other processes see all of it or nothing.
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                compiled = Path(folder) / "kernels.so"
                _compile(compiler, compiled)
                compiled.replace(target)
        except OSError as error:
            raise BuildError(f"cannot write to {target.parent}: {error.strerror}") from error
    return target


def find_compiler() -> str:
    """$CXX, or the first C++ compiler on the path."""
    named = os.environ.get("CXX")
    for name in [named] if named else ["c++", "g++", "clang++"]:
        found = shutil.which(name)
        if found:
            return found
    raise BuildError(f"no C++ compiler {named!r} ($CXX)" if named else "no C++ compiler on the path")


def build_fingerprint(compiler: str) -> str:
    """A hash of what the result depends on: sources, flags, compiler, and what -march=native means here."""
    digest = hashlib.sha256()
    for source in sorted(SOURCES.glob("*.[ch]pp")):
        digest.update(source.read_bytes())
    digest.update(f"{FLAGS} {torch.__version__}".encode())
    digest.update(_run(compiler, "--version").encode())
    digest.update(f"{platform.machine()} {_processor()}".encode())
    return digest.hexdigest()[:16]


def _compile(compiler: str, target: Path) -> None:
    """With OpenMP; a compiler without it makes kernels for one thread."""
    command = [compiler, *FLAGS, str(SOURCES / "kernels.cpp"), "-o", str(target)]
    # Torch's own OpenMP library, where it brings one, so that both share their threads.
    library = Path(torch.__file__).parent
    bundled = [*library.glob("lib/libgomp*.so*"), *library.parent.glob("torch.libs/libgomp*.so*")][:1]
    try:
        _run(*command, "-fopenmp", "-Wl,--as-needed", *map(str, bundled))
    except BuildError:
        _run(*command)


def _processor() -> str:
    """The processor's capabilities, where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT).stdout
    except subprocess.CalledProcessError as error:
        first = next(
            (line for line in error.stderr.splitlines() if "error" in line), f"exit code {error.returncode}"
        )
        raise BuildError(f"{command[0]} failed: {first.strip()}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]} failed: {error}") from error
