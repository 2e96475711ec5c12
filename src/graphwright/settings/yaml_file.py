"""Settings in YAML: read as overrides that know their line, written with every field explained."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphwright.settings.base import SettingsError
from graphwright.settings.options import section_names, sections, sections_of
from graphwright.settings.overrides import Override, unknown_section
from graphwright.settings.schema import Run

if TYPE_CHECKING:
    from yaml import Node

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
        raise SettingsError(f"{path} cannot be read: {error}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SettingsError(f"{path}:{line}: not valid YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise SettingsError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
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
        raise SettingsError(f"{override.shown} must be {override.option.allowed}, got {_kind(node)}")
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
        yield str(key.value), f"{path}:{key.start_mark.line + 1}", value


def _kind(node: Node) -> str:
    return "a list" if isinstance(node.value, list) and node.tag.endswith("seq") else "a section"


def _scalar(node: Node) -> str | None:
    return node.value if isinstance(node.value, str) else None


def _plain(value: str | float | None) -> str:
    """A value that YAML 1.1 and 1.2 read alike: 1e-05 is text to the former, 1.0e-05 is a number to both."""
    if isinstance(value, str):
        # Not JSON's escapes: it writes characters beyond 16 bits as two, which YAML does not put together.
        return f'"{"".join(_escaped(character) for character in value)}"'
    text = json.dumps(value)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if isinstance(value, float) and e and "." not in mantissa else text


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"
