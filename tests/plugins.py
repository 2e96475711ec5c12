"""Packages that add to this one, made on the spot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import graphwright

SOURCE = Path(graphwright.__file__).parents[1]


def write_plugin(folder: Path, name: str, source: str) -> Path:
    """An installed package `name` of one module whose import registers something; -> what goes onto the path."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[graphwright]\n{name} = {name}\n")
    return folder


def python_with(plugins: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A new interpreter that sees the plugins: they are looked for once in a process."""
    path = os.pathsep.join([str(plugins), str(SOURCE)])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def graphwright_with(plugins: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line where the plugins are installed."""
    return python_with(plugins, "-m", "graphwright.cli.main", *arguments)
