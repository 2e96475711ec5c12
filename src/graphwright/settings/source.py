"""Where a run's settings come from: a preset, a YAML file, the folder of an earlier run, or data alone."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from graphwright.settings.base import SettingsError
from graphwright.settings.overrides import Layer, Override, apply
from graphwright.settings.schema import CORES, Run
from graphwright.settings.tasks import ColoringTask
from graphwright.settings.yaml_file import read_settings

FOLDER = Path(__file__).parents[1] / "configs"
SUFFIX = "-cpu"
"""What a name without its scale means: the preset for the machine that everybody has."""


@dataclass(frozen=True)
class Preset:
    """A preset's name, its file and what it is for."""

    name: str
    path: Path

    @property
    def summary(self) -> str:
        """Its first line, which is a comment."""
        with self.path.open(encoding="utf-8") as file:
            return file.readline().removeprefix("#").strip()


def presets() -> tuple[Preset, ...]:
    """All presets, by name."""
    return tuple(Preset(path.stem, path) for path in sorted(FOLDER.glob("*.yaml")))


def find_preset(name: str) -> Preset | None:
    """The preset of this name; coloring10 stands for coloring10-cpu."""
    known = {preset.name: preset for preset in presets()}
    return known.get(name) or known.get(name + SUFFIX)


def no_preset(name: str, shown: str) -> SettingsError:
    """The error about a preset that there is not."""
    names = [preset.name for preset in presets()]
    short = [name.removesuffix(SUFFIX) for name in names]
    near = get_close_matches(name, [*short, *names], 1)
    hint = f"did you mean {near[0]}?" if near else f"the presets are {', '.join(names)}"
    return SettingsError(f"{shown}; {hint}")


CONFIG = "config.yaml"
CONFIGS = (CONFIG, "config.json")
"""What a run folder's settings are called, and were."""
MOLECULE_FILES = (".parquet", ".csv", ".tsv", ".smi", ".smiles", ".ism", ".txt")
"""How the names of files with SMILES end; each but the first may end in .gz, too."""
SPECTRUM_FILES = (".mgf", ".msp")
"""How the names of files end that can only be spectra; each may end in .gz, too."""
PEAK_COLUMNS = {"mzs", "intensities"}
"""By which a table of spectra, such as MassSpecGym's, is told from one of molecules: both have SMILES."""
TABLE_FILES = (".parquet", ".csv", ".jsonl", ".ndjson")
"""How the names of files end that may be a person's own table of pairs."""
TABLE_TARGETS = ({"nodes", "edges"}, {"graph"})
"""Columns, one of these sets, by which such a table is told from one of molecules or spectra."""
ANY_SIZE = re.compile(r"coloring(?P<n>[0-9]{1,3})(?P<scale>-cpu|-paper)?")
"""Names of Colorings; presets exist for the paper's sizes."""
MANIFEST = "manifest.json"
"""What a folder holds that `graphwright data prepare` has made."""
MOLECULE_PRESET = "fingerprint2molecule-cpu"
"""What molecules are trained with where nobody says."""
SPECTRUM_PRESET = "ms2scaffold-cpu"
"""What spectra are trained with where nobody says."""
TABLE_SETTINGS = (
    Override("task.kind", "table"),
    Override("matching.kind", "conditional_gradient"),
    Override("loss.adjacency", 2.0),
    Override("train.optimizer", "muon"),
    Override("train.learning_rate", 4e-3),
    Override("train.averaging", 0.999),
    Override("train.devices", CORES),
    Override("train.workers", 0),
    Override("train.validate_every", 500),
)
"""What a person's own table is trained with where nobody says: what proved best on the tasks that come along."""


def load_run(source: str, overrides: Sequence[Override] = ()) -> Run:
    """The settings that a preset's name, a YAML file, a run folder or data stand for, with overrides on top.

    coloring15 is the preset of the next larger size, made for 15 regions. A YAML file starts from the defaults, or
    from a preset if it says `preset: NAME`. A file with SMILES, or a folder that `data prepare` has made, stands
    for the preset for molecules on these data, with their elements; a file of spectra, for that for spectra; a
    table of inputs and graphs, for `TABLE_SETTINGS`.
    Overrides that give a budget (epochs, steps or minutes) replace the budget underneath.
    """
    if is_table_data(source):
        return apply([TABLE_SETTINGS, [Override("task.data", source)], overrides])
    layers = _layers(settings_file(source))
    return apply([*layers, *_data_layers(source), *_size_layers(source, layers), overrides])


def settings_file(source: str) -> Path:
    """The file behind a source; an error says what was looked for."""
    path = Path(source)
    if is_table_data(source):
        return path
    data_preset = _preset_for_data(source)
    if data_preset is not None:
        return data_preset.path
    separated = any(mark in source for mark in (os.sep, os.altsep) if mark)
    looks_like_path = separated or path.suffix in (".yaml", ".yml", ".json")
    preset = None if looks_like_path else find_preset(source) or _preset_for_size(source)
    if preset is not None:
        return preset.path
    if path.is_dir():
        found = next((path / name for name in CONFIGS if (path / name).exists()), None)
        if found is None:
            raise SettingsError(f"{path} is no run folder: it holds no {CONFIG}")
        return found
    if looks_like_path or path.exists():
        return path
    raise no_preset(source, f"there is no preset, file or run folder {source!r}")


def is_run_folder(source: str) -> bool:
    """Whether a source is the folder of an earlier run."""
    return settings_file(source).parent == Path(source)


def is_molecule_data(source: str) -> bool:
    """Whether a source is a file with SMILES, by its name, or a folder of prepared molecules."""
    path = Path(source)
    if path.is_dir():
        return (path / MANIFEST).is_file() and not any((path / name).exists() for name in CONFIGS)
    return path.name.lower().removesuffix(".gz").endswith(MOLECULE_FILES)


def is_spectrum_data(source: str) -> bool:
    """Whether a source is a file of spectra, by its name or by its columns."""
    path = Path(source)
    plain = path.name.lower().removesuffix(".gz")
    if plain.endswith(SPECTRUM_FILES):
        return True
    return plain.endswith((".tsv", ".txt", ".parquet")) and _columns(path) >= PEAK_COLUMNS


def is_table_data(source: str) -> bool:
    """Whether a source is a person's own table of inputs and graphs, by its name and its columns."""
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix not in TABLE_FILES or path.is_dir():
        return False
    # No other task takes lines of JSON: what such a file lacks, the table's reader says best.
    separator = "," if suffix == ".csv" else "\t"
    return suffix in (".jsonl", ".ndjson") or any(wanted <= _columns(path, separator) for wanted in TABLE_TARGETS)


def _columns(path: Path, separator: str = "\t") -> set[str]:
    """What a table calls its columns; none of a file that cannot be read, which its reader tells better."""
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            return set(pq.read_schema(path).names)
        with path.open("rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            start = (gzip.GzipFile(fileobj=file) if packed else file).read(2**12)
    except (OSError, EOFError, ValueError, zlib.error):
        return set()
    line = (start.decode("utf-8-sig", "replace").splitlines() or [""])[0]
    return {cell.strip().strip('"').lower() for cell in line.split(separator)}


def _preset_for_data(source: str) -> Preset | None:
    """The preset that data alone stand for."""
    if is_spectrum_data(source):
        return find_preset(SPECTRUM_PRESET)
    return find_preset(MOLECULE_PRESET) if is_molecule_data(source) else None


def _data_layers(source: str) -> list[Layer]:
    if _preset_for_data(source) is None:
        return []
    return [[Override("task.data", source), Override("task.elements", "")]]


def _preset_for_size(source: str) -> Preset | None:
    """The preset that a Coloring of another size starts from: of the next larger size, or of the largest."""
    named = ANY_SIZE.fullmatch(source)
    if named is None or find_preset(source) is not None or int(named["n"]) == 0:
        return None
    scale = named["scale"] or SUFFIX
    sizes = [int(match["n"]) for preset in presets() if (match := ANY_SIZE.fullmatch(preset.name))]
    size = min((size for size in sizes if size >= int(named["n"])), default=max(sizes))
    return find_preset(f"coloring{size}{scale}")


def _size_layers(source: str, layers: list[Layer]) -> list[Layer]:
    if "/" in source or _preset_for_size(source) is None:
        return []
    named = ANY_SIZE.fullmatch(source)
    assert named is not None
    base, n = apply(layers), int(named["n"])
    smallest = min(base.task.min_size, n) if isinstance(base.task, ColoringTask) else 1
    return [
        [
            Override("task.capacity", n),
            Override("task.min_size", smallest),
        ]
    ]


def _layers(path: Path) -> list[Layer]:
    """A file's settings, above those of the presets that it starts from."""
    found = read_settings(path)
    if found.preset is None:
        return [found.overrides]
    name = str(found.preset.value)
    preset = find_preset(name)
    if preset is None:
        raise no_preset(name, f"{found.preset.shown}: there is no preset {name!r}")
    if preset.path.resolve() == path.resolve():
        raise SettingsError(f"{found.preset.shown}: {name} cannot start from itself")
    return [*_layers(preset.path), found.overrides]
