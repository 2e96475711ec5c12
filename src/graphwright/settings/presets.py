"""The presets that come with the library: one YAML file each, whose first line says what it is."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from graphwright.settings.errors import SettingsError

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
