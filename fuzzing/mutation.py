"""Changes to JSON that leave it JSON: what changes bytes alone seldom gets past the parser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

DEEP = 700
"""Lists in one another: fewer than JSON's parser takes, more than a careless function does."""
SIMPLE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3, 10**9, 2**63, 10**400, 0.5, -0.0, 1e-300, 1e300, float("inf"), float("nan"),
    "", "a", "\ud800", "\x00", "1", "C", "train", [], {}, [[]], [0, 1], [[0, 1]], [[0, 1, "e"]],
)  # fmt: skip


def mutate_json(text: bytes, random: Random, words: Sequence[str]) -> bytes | None:
    """The text with one to three of its values or keys changed, line by line where it is lines; None: no JSON."""
    lines = text.splitlines() if text.count(b"\n") and not text.startswith(b"[") else [text]
    try:
        values = [json.loads(line) for line in lines if line.strip()]
        for _ in range(random.randint(1, 3)):
            at = random.randrange(len(values))
            values[at] = _changed(values[at], random, words)
            if random.random() < 0.1:
                values.append(values[at])
        return b"\n".join(json.dumps(value).encode() for value in values)
    except (ValueError, RecursionError):
        return None


def _changed(value: Any, random: Random, words: Sequence[str]) -> Any:
    """One value somewhere inside is another, gone, doubled or under another name."""
    inside = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if _is_list(value) else []
    if not inside or random.random() < 0.1:
        return _new(value, random, words)
    key, old = random.choice(inside)
    how = random.random()
    if how < 0.7:
        changed = _changed(old, random, words)
        return {**value, key: changed} if isinstance(value, dict) else [*value[:key], changed, *value[key + 1 :]]
    if isinstance(value, dict):
        rest = {name: each for name, each in value.items() if name != key}
        if how < 0.8:
            return rest
        name = random.choice(words) if words else "x"
        return {**rest, name: old} if how < 0.9 else {**value, name: _new(old, random, words)}
    if how < 0.8:
        return [*value[:key], *value[key + 1 :]]
    return [*value[:key], old, old, *value[key + 1 :]] if how < 0.9 else [*value, _new(old, random, words)]


def _new(old: Any, random: Random, words: Sequence[str]) -> Any:
    kind = random.randrange(8)
    if kind == 0 and words:
        return random.choice(words)
    if kind == 1:
        return [old]
    if kind == 2:
        return {random.choice(words) if words else "x": old}
    if kind == 3 and isinstance(old, int | float) and abs(old) < 10**9:
        return old + random.choice([-1, 1, 0.5, 10**6])
    if kind == 4 and random.random() < 0.05:
        for _ in range(DEEP):
            old = [old]
        return old
    return random.choice(SIMPLE)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)
