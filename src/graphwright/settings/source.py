"""Where a run's settings come from: a preset, a YAML file, the folder of an earlier run, or data alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from graphwright.settings.choices import TASKS, SettingsError
from graphwright.settings.overrides import DataSettings, Layer, Override, apply, read_settings
from graphwright.settings.schema import Run

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


def _preset(name: str, shown: str = "") -> Preset:
    """The preset of this name, or an error."""
    preset = find_preset(name)
    if preset is None:
        raise no_preset(name, shown or f"there is no preset {name!r}")
    return preset


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
COUNTED = ("model.known_graphs",)
"""Settings that a run finds out by itself."""


def load_run(source: str, overrides: Sequence[Override] = ()) -> Run:
    """The settings that a preset's name, a YAML file, a run folder or data stand for, with overrides on top.

    A YAML file starts from the defaults, or from a preset if it says `preset: NAME`. What data stand for
    by themselves `Task.settings_for` says: a file with SMILES for the preset for molecules on these data, for
    instance; and coloring15 for the preset of the next larger size, made for 15 regions.
    Overrides that give a budget (epochs, steps or minutes) replace the budget underneath.
    """
    _refuse_counted(overrides)
    data = data_settings(source)
    if data is None:
        return apply([*_layers(settings_file(source)), overrides])
    below = [] if data.preset is None else _layers(_preset(data.preset).path)
    return apply([*below, data.overrides, overrides])


def _refuse_counted(given: Sequence[Override]) -> None:
    """A run's own file holds what was counted for it. From anybody else it would be replaced without a word."""
    for override in given:
        if override.key in COUNTED and str(override.value) != str(override.option.default):
            raise SettingsError(f"{override.shown} cannot be set: a run counts it in its training data")


def settings_file(source: str) -> Path:
    """The file behind a source; an error says what was looked for."""
    path = Path(source)
    data = data_settings(source)
    if data is not None:
        return path if data.preset is None else _preset(data.preset).path
    separated = any(mark in source for mark in (os.sep, os.altsep) if mark)
    looks_like_path = separated or path.suffix in (".yaml", ".yml", ".json")
    preset = None if looks_like_path else find_preset(source)
    if preset is not None:
        return preset.path
    if path.is_dir():
        file = next((path / name for name in CONFIGS if (path / name).exists()), None)
        if file is None:
            raise SettingsError(f"{path} is neither a run's folder, with a {CONFIG}, nor a folder of data")
        return file
    if looks_like_path or path.exists():
        return path
    raise no_preset(source, f"there is no preset, file or run folder {source!r}")


def is_run_folder(source: str) -> bool:
    """Whether a source is the folder of an earlier run."""
    return settings_file(source).parent == Path(source)


def data_settings(source: str) -> DataSettings | None:
    """What data, or a name that is no preset's, stand for by themselves; the task registered last says first."""
    answers = (TASKS[kind].settings_for(source) for kind in reversed(TASKS.names()))
    return next((settings for settings in answers if settings is not None), None)


def _layers(path: Path) -> list[Layer]:
    """A file's settings, above those of the presets that it starts from."""
    file = read_settings(path)
    if path.name not in CONFIGS:
        _refuse_counted(file.overrides)
    if file.preset is None:
        return [file.overrides]
    name = str(file.preset.value)
    preset = _preset(name, f"{file.preset.shown}: there is no preset {name!r}")
    if preset.path.resolve() == path.resolve():
        raise SettingsError(f"{file.preset.shown}: {name} cannot start from itself")
    return [*_layers(preset.path), file.overrides]
