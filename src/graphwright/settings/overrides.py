"""One setting given by name: on the command line, in a YAML file or in Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from graphwright.settings.errors import SettingsError
from graphwright.settings.options import Option, nearest, options, section_names

BUDGET = ("train.epochs", "train.steps", "train.minutes")
"""Giving one of these replaces whatever budget there was."""


@dataclass(frozen=True)
class Override:
    """A key such as "model.width", its value as written (None: nothing), and the file and line, if any."""

    key: str
    value: str | float | None
    place: str = ""

    @property
    def shown(self) -> str:
        """How an error message names it."""
        return f"{self.place}: {self.key}" if self.place else f"--{self.key}"

    @property
    def option(self) -> Option:
        """The option that it sets, or an error that names the nearest."""
        found = options().get(self.key)
        if found is None:
            raise unknown(self.key, self.shown)
        return found

    @property
    def setting(self) -> str | float | None:
        """The value to validate: the word none stands for nothing where nothing is allowed."""
        absent = isinstance(self.value, str) and self.value.lower() in ("none", "null", "~", "")
        return None if absent and self.option.nullable else self.value

    @property
    def is_budget(self) -> bool:
        """Whether it sets how long training goes on."""
        return self.key in BUDGET and self.setting is not None


def unknown(key: str, shown: str) -> SettingsError:
    """The error about a key that is no option."""
    near = nearest(key)
    if near is not None:
        return SettingsError(f"{shown}: there is no such setting; did you mean {near.key} ({near.allowed})?")
    section = key.partition(".")[0]
    if section in section_names():
        names = ", ".join(option.name for option in options().values() if option.section == section)
        return SettingsError(f"{shown}: there is no such setting; {section} has {names}")
    return unknown_section(key, shown)


def unknown_section(name: str, shown: str) -> SettingsError:
    """The error about a section that there is not."""
    names = section_names()
    near = get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]}?" if near else f"the sections are {', '.join(names)}"
    return SettingsError(f"{shown}: there is no such section; {hint}")


def refused(override: Override, option: Option) -> SettingsError:
    """The error about a value that the option cannot take."""
    got = "nothing" if override.value is None else repr(override.value)
    choice = option.nearest_choice(override.value)
    hint = f"; did you mean {choice}?" if choice else ""
    return SettingsError(f"{override.shown} must be {option.allowed}, got {got}{hint}")


def of_another_kind(override: Override, kind: str, names: Iterable[str]) -> SettingsError:
    """The error about a setting that only another kind of task has."""
    return SettingsError(f"{override.shown}: a {kind} task has no such setting; it has {', '.join(names)}")
