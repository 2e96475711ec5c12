"""Settings given by name, in a command, a YAML file or Python; layer upon layer, to a validated run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from graphwright.settings.choices import DEFAULT_KIND, TASKS, SettingsError
from graphwright.settings.options import (
    FURTHER,
    Option,
    nearest_option,
    options,
    options_of,
    section_names,
    sections,
    sections_of,
)
from graphwright.settings.schema import RETIRED, Run

if TYPE_CHECKING:
    from yaml import Node


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
        option = options().get(self.key)
        if option is None:
            raise unknown(self.key, self.shown)
        return option

    @property
    def setting(self) -> str | float | None:
        """The value to validate: the word none stands for nothing where nothing is allowed."""
        absent = isinstance(self.value, str) and self.value.lower() in ("none", "null", "~", "")
        return None if absent and self.option.nullable else self.value

    @property
    def is_retired(self) -> bool:
        """Whether it says of a setting that went only that it does nothing, as a run's file of that time may."""
        if self.key not in RETIRED:
            return False
        nothing = RETIRED[self.key]
        return self.value == nothing or str(self.value).lower() == str(nothing).lower() or self.value == "null"

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
    for given in layers:
        layer = [override for override in given if not override.is_retired]
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


NULL = "tag:yaml.org,2002:null"
COMMENT_COLUMN = 40


@dataclass(frozen=True)
class SettingsFile:
    """What a YAML file says: the preset it starts from, if any, and its settings."""

    preset: Override | None
    overrides: tuple[Override, ...]


def read_settings(path: Path) -> SettingsFile:
    """Read a YAML (or JSON) file of sections; every complaint names the file and the line."""
    try:
        import yaml
    except ImportError as error:
        raise ImportError("reading settings needs PyYAML: pip install 'graphwright[train]'") from error
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except FileNotFoundError as error:
        raise SettingsError(f"{path} does not exist") from error
    except (OSError, UnicodeDecodeError) as error:
        raise _not_settings(path, f"{path} cannot be read: {error}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _not_settings(path, f"{path}:{line}: not valid YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise _not_settings(path, f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    if root is None:
        return SettingsFile(None, ())
    preset: Override | None = None
    overrides: list[Override] = []
    expected = "the sections " + ", ".join(section_names())
    for name, origin, node in _entries(root, path, expected):
        if name == "preset":
            preset = Override("preset", _scalar(node), origin)
        else:
            overrides += _settings(name, origin, node, path)
    _refuse_repeats(overrides)
    return SettingsFile(preset, tuple(overrides))


def _not_settings(path: Path, fault: str) -> SettingsError:
    """The fault, or, of a file that is hardly meant to be settings, that no task knows such data either."""
    if path.is_dir() or not path.suffix or path.suffix.lower() in (".yaml", ".yml", ".json"):
        return SettingsError(fault)
    formats = "csv, tsv, json, jsonl, parquet, smi, mgf, msp"
    return SettingsError(f"{path} is neither settings (yaml) nor data in a format that is known here: {formats}")


def to_yaml(run: Run) -> str:
    """A run as YAML, every setting with its meaning beside it; `read_settings` reads it back exactly."""
    lines = ["# Every setting of this run. Train again with the same settings: graphwright train THIS_FILE"]
    values = run.model_dump(mode="json")
    for section in sections_of(run.task.kind):
        lines += ["", f"# {section.meaning}", f"{section.name}:"]
        for option in section.options:
            entry = f"  {option.name}: {_plain(values[section.name].get(option.name, option.default))}"
            lines.append(f"{entry:<{COMMENT_COLUMN}}  # {option.meaning}")
    return "\n".join(lines) + "\n"


def _settings(name: str, origin: str, node: Node, path: Path) -> Iterator[Override]:
    """The settings of one entry at the top: a section, or a single one by its dotted name."""
    section = next((section for section in sections() if section.name == name), None)
    if section is None:
        if _scalar(node) is None:
            raise unknown_section(name, f"{origin}: {name}")
        yield _setting(name, origin, node)
    elif node.tag != NULL:
        for field, line, value in _entries(
            node, path, f"{name} to hold settings such as {section.options[0].name}"
        ):
            yield _setting(f"{name}.{field}", line, value)


def _setting(key: str, origin: str, node: Node) -> Override:
    override = Override(key, None if node.tag == NULL else _scalar(node), origin)
    if _scalar(node) is None:
        raise SettingsError(f"{override.shown} must be {override.option.allowed}, got {_kind_given(node)}")
    return override


def _refuse_repeats(overrides: Sequence[Override]) -> None:
    seen: set[str] = set()
    for override in overrides:
        if override.key in seen:
            raise SettingsError(f"{override.shown} is given twice")
        seen.add(override.key)


def _entries(node: Node, path: Path, expected: str) -> Iterator[tuple[str, str, Node]]:
    """Key, file and line, and value of every entry of a mapping."""
    from yaml import MappingNode

    if not isinstance(node, MappingNode):
        raise SettingsError(f"{path}:{node.start_mark.line + 1}: expected {expected}")
    for key, value in node.value:
        origin = f"{path}:{key.start_mark.line + 1}"
        if _scalar(key) is None:
            raise SettingsError(f"{origin}: expected {expected}, got {_kind_given(key)} for a name")
        yield str(key.value), origin, value


def _kind_given(node: Node) -> str:
    return "a list" if isinstance(node.value, list) and node.tag.endswith("seq") else "a section"


def _scalar(node: Node) -> str | None:
    return node.value if isinstance(node.value, str) else None


def _plain(value: str | float | None) -> str:
    """A value that YAML 1.1 and 1.2 read alike: 1e-05 is text to the former, 1.0e-05 is a number to both."""
    if isinstance(value, str):
        # Not JSON's escapes: it writes characters of more than 16 bits as two, which YAML does not join.
        return f'"{"".join(_escaped(character) for character in value)}"'
    text = json.dumps(value)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if isinstance(value, float) and e and "." not in mantissa else text


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"
