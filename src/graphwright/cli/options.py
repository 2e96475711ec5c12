"""Options that commands share: how logits become graphs, and settings among the words of a command line."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from inspect import getdoc

from graphwright.inference.decoders import DECODERS
from graphwright.settings import Override, SettingsError


def add_decode_option(parser: argparse.ArgumentParser, default: str) -> None:
    """`--decode`; `default` says in words what happens without it."""
    ways = "; ".join(f"{name}, {getdoc(DECODERS[name])}" for name in DECODERS)
    parser.add_argument(
        "--decode",
        choices=DECODERS.names(),
        help=f"how logits become graphs: {ways}. Default: {default}",
    )


def take_overrides(words: Sequence[str], own: Collection[str]) -> tuple[list[str], list[Override]]:
    """The words without the settings, and the settings; options named in `own` stay where they are."""
    rest: list[str] = []
    overrides: list[Override] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if not name.startswith("--") or name == "--" or name in own:
            rest.append(word)
            continue
        _refuse_misspelt(name, own)
        key = name.removeprefix("--")
        option = Override(key, None).option  # an unknown name is the error, whether or not a value follows
        if not equals:
            if not waiting or waiting[0].startswith("--"):
                raise SettingsError(f"{name} needs a value, {option.allowed}")
            value = waiting.pop(0)
        overrides.append(Override(key, value))
    return rest, overrides


def _refuse_misspelt(name: str, own: Collection[str]) -> None:
    near = get_close_matches(name, own, 1, cutoff=0.8)
    if near and "." not in name:
        raise SettingsError(f"{name}: there is no such option; did you mean {near[0]}?")
