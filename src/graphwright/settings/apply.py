"""Overrides, layer upon layer, to a validated run."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from graphwright.settings.errors import SettingsError
from graphwright.settings.overrides import BUDGET, Override, refused
from graphwright.settings.schema import Run

Layer = Sequence[Override]


def apply(layers: Sequence[Layer]) -> Run:
    """The defaults with every layer laid over them, the last on top; an error names the setting at fault."""
    chosen = _merge(layers)
    sections: dict[str, dict[str, str | float | None]] = {}
    for override in chosen.values():
        sections.setdefault(override.option.section, {})[override.option.name] = override.setting
    if not chosen.keys() & set(BUDGET):
        sections.setdefault("train", {})["minutes"] = Run().train.minutes
    try:
        return Run.model_validate(sections)
    except ValidationError as error:
        raise _in_one_line(error, chosen) from error


def _merge(layers: Sequence[Layer]) -> dict[str, Override]:
    """The override of every key that counts. A layer that gives a budget replaces the budget below it."""
    chosen: dict[str, Override] = {}
    for layer in layers:
        for override in layer:
            _ = override.option  # the first unknown name is the error, before any value
        replaced = {override.key for override in layer}
        if any(override.is_budget for override in layer):
            replaced |= set(BUDGET)
        # Not an update in place: the order, latest last, tells whom to blame.
        chosen = {key: override for key, override in chosen.items() if key not in replaced}
        chosen |= {override.key: override for override in layer}
    return chosen


def _in_one_line(error: ValidationError, chosen: dict[str, Override]) -> SettingsError:
    """The first of pydantic's complaints, about one setting or about several that do not fit together."""
    first = error.errors(include_url=False)[0]
    section, *names = (str(part) for part in first["loc"])
    if names:
        return refused(chosen[f"{section}.{names[0]}"])
    reason = first["msg"].removeprefix("Value error, ")
    involved = [
        override
        for override in chosen.values()
        if override.option.section == section and override.option.name in reason.split()
    ]
    # The command line comes last and is what the person has just typed.
    shown = involved[-1].shown if involved else section
    return SettingsError(f"{shown}: {reason}")
