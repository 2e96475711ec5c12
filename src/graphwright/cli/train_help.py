"""The long help of `graphwright train`: every setting and every preset, from the schema and the files."""

from __future__ import annotations

import textwrap
from enum import Enum

from graphwright.settings import Option, presets, sections

COLUMN = 33


def preset_list() -> str:
    """One line for every preset."""
    found = presets()
    width = max(len(preset.name) for preset in found)
    return "\n".join(f"{preset.name:<{width}}  {preset.summary}" for preset in found)


def settings_help(width: int) -> str:
    """Presets, then all sections with their settings, wrapped to `width`."""
    names = ", ".join(preset.name for preset in presets())
    parts = [
        _paragraph(
            f"presets (--list says what each is; without its ending a name means the -cpu one): {names}", width
        ),
        _paragraph(
            "settings, each given as --section.field VALUE or --section.field=VALUE; a preset sets some of them, "
            "the others have these defaults:",
            width,
        ),
    ]
    for section in sections():
        lines = [_paragraph(f"{section.name}: {section.meaning}", width)]
        lines += [_entry(option, width) for option in section.options]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def shown(value: object) -> str:
    """A value as it would be typed."""
    if isinstance(value, Enum):
        return str(value.value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _entry(option: Option, width: int) -> str:
    allowed = option.allowed[0].upper() + option.allowed[1:]
    words = f"{option.meaning} {allowed}; default {shown(option.default)}."
    lines = textwrap.wrap(words, max(width - COLUMN, 30), break_on_hyphens=False)
    name = f"  --{option.key}"
    if len(name) >= COLUMN:
        lines.insert(0, "")
    indented = f"\n{' ' * COLUMN}".join(lines)
    return f"{name:<{COLUMN}}{indented}".rstrip()


def _paragraph(words: str, width: int) -> str:
    return textwrap.fill(words, width, break_on_hyphens=False)
