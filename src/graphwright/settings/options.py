"""The schema as a list of options: what each is called, may be, is by default and means."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from graphwright.losses import LOSS_TERMS
from graphwright.settings.choices import TASKS
from graphwright.settings.schema import Run

FURTHER = "further"
"""Where the loss keeps what is an option by itself: the weight of each term of another package."""
CLOSE = 0.6
"""Names less alike than this are no suggestion."""
SHORTENED = 0.9
"""Least likeness of a name to its beginning (eps, epsilon) or its initials (lr, learning_rate)."""


@dataclass(frozen=True)
class Option:
    """One field of the schema. `key` is section.name; `allowed` says in words what values it takes."""

    section: str
    name: str
    allowed: str
    choices: tuple[str, ...]
    nullable: bool
    default: object
    meaning: str

    @property
    def key(self) -> str:
        """How the option is called on the command line, without the dashes."""
        return f"{self.section}.{self.name}"

    def nearest_choice(self, value: object) -> str | None:
        """The choice that was probably meant."""
        close = get_close_matches(str(value).lower(), self.choices, 1)
        return close[0] if close else None


@dataclass(frozen=True)
class Section:
    """A section of the schema and what it is about; `kind` is that of the task whose settings they are, if any."""

    name: str
    meaning: str
    options: tuple[Option, ...]
    kind: str | None = None


@cache
def sections() -> tuple[Section, ...]:
    """All sections, in the schema's order; the task's comes once for every kind of task."""
    defaults = Run()
    result = []
    for name in Run.model_fields:
        if name == "task":
            result += [_section(name, TASKS[kind].settings_class.model_validate({}), kind) for kind in TASKS]
        else:
            result.append(_section(name, getattr(defaults, name), None))
    return tuple(result)


def sections_of(kind: str) -> tuple[Section, ...]:
    """The sections of a run whose task is of this kind."""
    return tuple(section for section in sections() if section.kind in (None, kind))


@cache
def options() -> dict[str, Option]:
    """All options by key, in the schema's order; of those that several kinds of task have, the first kind's."""
    listed: dict[str, Option] = {}
    for section in sections():
        for option in section.options:
            listed.setdefault(option.key, option)
    return listed


@cache
def options_of(kind: str) -> dict[str, Option]:
    """The options of a run whose task is of this kind, by key."""
    return {option.key: option for section in sections_of(kind) for option in section.options}


def section_names() -> tuple[str, ...]:
    """Every section's name, once."""
    return tuple(dict.fromkeys(section.name for section in sections()))


def nearest_option(key: str) -> Option | None:
    """The option that was probably meant by a key that is none."""
    likeness, option = max(
        ((_likeness(key, option), option) for option in options().values()), key=lambda pair: pair[0]
    )
    return option if likeness >= CLOSE else None


def _likeness(key: str, option: Option) -> float:
    """From 0 to 1. The name counts more than the section: a known name in the wrong section is the usual slip."""
    section, _, name = key.lower().replace("-", "_").rpartition(".")
    return 0.7 * _name_likeness(name, option.name) + 0.3 * SequenceMatcher(None, section, option.section).ratio()


def _name_likeness(name: str, known: str) -> float:
    if name == known:
        return 1.0
    ratio = SequenceMatcher(None, name, known).ratio()
    initials = "".join(word[0] for word in known.split("_"))
    shortened = name and (known.startswith(name) or (len(name) > 1 and name == initials))
    return SHORTENED + (1 - SHORTENED) * ratio if shortened else ratio


def _section(name: str, defaults: Any, kind: str | None) -> Section:
    # The loss's section is a dataclass of the core, the others are models of pydantic's.
    schema = TypeAdapter(type(defaults)).json_schema()
    # The kind says what all others mean.
    fields = sorted(schema["properties"].items(), key=lambda field: field[0] != "kind" or kind is None)
    options = [
        _option(name, field, _resolve(part, schema.get("$defs", {})), getattr(defaults, field))
        for field, part in fields
        if field != FURTHER
    ]
    if FURTHER in schema["properties"]:
        options += [_term(name, term) for term in LOSS_TERMS.names() if term not in schema["properties"]]
    return Section(name, inspect.getdoc(type(defaults)) or "", tuple(options), kind)


def _term(section: str, name: str) -> Option:
    """The weight of another package's loss term."""
    meaning = inspect.getdoc(LOSS_TERMS[name]) or ""
    return Option(section, name, "a number at least 0", (), False, 0.0, meaning.partition("\n")[0])


def _resolve(part: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a JSON schema with its reference, if it has one, put in place; its own words come first."""
    if "$ref" not in part:
        return dict(part)
    return {
        **definitions[part["$ref"].rpartition("/")[2]],
        **{name: part[name] for name in part if name != "$ref"},
    }


def _option(section: str, name: str, part: Mapping[str, Any], default: object) -> Option:
    kinds = part.get("anyOf", [part])
    value = next(kind for kind in kinds if kind.get("type") != "null")
    if (section, name) == ("task", "kind"):  # each kind of settings knows only its own
        value = {"enum": list(TASKS)}
    nullable = len(kinds) > 1
    return Option(
        section=section,
        name=name,
        allowed=_allowed(value) + (", or none" if nullable else ""),
        choices=tuple(value.get("enum", ())),
        nullable=nullable,
        default=default,
        meaning=part.get("description", ""),
    )


def _allowed(value: Mapping[str, Any]) -> str:
    """A JSON schema of one value in words."""
    if "enum" in value:
        return "one of " + ", ".join(value["enum"])
    if value["type"] == "boolean":
        return "true or false"
    if value["type"] == "string":
        # A pattern says nothing to a person: such a field puts its rule into words as its title.
        return "a path" if value.get("format") == "path" else value["title"] if "pattern" in value else "text"
    noun = "a whole number" if value["type"] == "integer" else "a number"
    bounds = [
        f"{words} {value[name]:g}"
        for name, words in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        )
        if name in value
    ]
    return f"{noun} {' and '.join(bounds)}" if bounds else noun
