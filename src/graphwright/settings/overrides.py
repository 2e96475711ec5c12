"""Settings given by name, in a command, a YAML file or Python; layer upon layer, to a validated run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pydantic import ValidationError

from graphwright.settings.base import SettingsError
from graphwright.settings.options import FURTHER, Option, nearest_option, options, options_of, section_names
from graphwright.settings.schema import Run
from graphwright.settings.tasks import DEFAULT_KIND, TASKS

BUDGET = ("train.epochs", "train.steps", "train.minutes")
"""Giving one of these replaces whatever budget there was."""


@dataclass(frozen=True)
class Override:
    """A key such as "model.width", its value as written (None: nothing), and the file and line, if any."""

    key: str
    value: str | float | None
    origin: str = ""

    @property
    def shown(self) -> str:
        """How an error message names it."""
        return f"{self.origin}: {self.key}" if self.origin else f"--{self.key}"

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


@dataclass(frozen=True)
class DataSettings:
    """What data alone are trained with: settings, on top of a preset's if one is named."""

    overrides: tuple[Override, ...]
    preset: str | None = None


def unknown(key: str, shown: str) -> SettingsError:
    """The error about a key that is no option."""
    near = nearest_option(key)
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


Layer = Sequence[Override]
KIND = "task.kind"


def apply(layers: Sequence[Layer]) -> Run:
    """The defaults with every layer laid over them, the last on top; an error names the setting at fault."""
    chosen = _merge(layers)
    kind = _kind(chosen)
    sections: dict[str, dict[str, str | float | None]] = {}
    for override in chosen.values():
        sections.setdefault(override.option.section, {})[override.option.name] = override.setting
    if not chosen.keys() & set(BUDGET):
        sections.setdefault("train", {})["minutes"] = Run().train.minutes
    try:
        return Run.model_validate(sections)
    except ValidationError as error:
        raise _in_one_line(error, chosen, kind) from error


def _kind(chosen: dict[str, Override]) -> str:
    """The kind of task; a setting that only another kind has is an error."""
    given = chosen.get(KIND)
    kind = DEFAULT_KIND if given is None else str(given.value)
    if given is not None and kind not in TASKS:
        raise refused(given, given.option)
    known = options_of(kind)
    for override in chosen.values():
        if override.key not in known:
            names = (option.name for option in known.values() if option.section == "task")
            raise of_another_kind(override, kind, names)
    return kind


def _merge(layers: Sequence[Layer]) -> dict[str, Override]:
    """The override of every key that counts. A layer that gives a budget replaces the budget below it."""
    chosen: dict[str, Override] = {}
    for layer in layers:
        for override in layer:
            _ = override.option  # the first unknown name is the error, before any value
        replaced = {override.key for override in layer}
        if any(override.is_budget for override in layer):
            replaced |= set(BUDGET)
        if _changes_kind(layer, chosen):
            # What another kind of task was set to says nothing about this one.
            replaced |= {key for key in chosen if key.startswith("task.")}
        # Not an update in place: the order, latest last, tells whom to blame.
        chosen = {key: override for key, override in chosen.items() if key not in replaced}
        chosen |= {override.key: override for override in layer}
    return chosen


def _changes_kind(layer: Layer, chosen: dict[str, Override]) -> bool:
    before = chosen[KIND].value if KIND in chosen else DEFAULT_KIND
    return any(override.key == KIND and override.value != before for override in layer)


def _in_one_line(error: ValidationError, chosen: dict[str, Override], kind: str) -> SettingsError:
    """The first of pydantic's complaints, about one setting or about several that do not fit together."""
    first = error.errors(include_url=False)[0]
    # A complaint about a task names its kind, too.
    section, *names = [str(part) for part in first["loc"] if part != kind] or [""]
    if names:
        # The weight of another package's term lies one level deeper.
        key = f"{section}.{names[-1] if names[0] == FURTHER else names[0]}"
        return refused(chosen[key], options_of(kind)[key])
    reason = first["msg"].removeprefix("Value error, ")
    # Names within a section, and keys where the complaint is about several sections.
    involved = [
        override
        for override in chosen.values()
        if override.key in reason.split()
        or (override.option.section == section and override.option.name in reason.split())
    ]
    # The command line comes last and is what the person has just typed.
    blamed = involved[-1].shown if involved else section
    return SettingsError(f"{blamed}: {reason}" if blamed else reason)
