"""Peaks as lines of text: `m/z intensity`, in the ways in which people write that."""

from __future__ import annotations

import re

from graphwright.spectra.files.fields import parse_number

# Nearly every line of nearly every file: worth not taking apart.
_PLAIN = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]*)?)\s+([0-9]{1,15}(?:\.[0-9]*)?)\s*")
_QUOTED = re.compile(r'"[^"]*"?|\'[^\']*\'?')


def parse_peak_line(line: str, *, several: bool) -> list[tuple[float, float]]:
    """Peaks of a line: `m/z intensity`, after which an annotation may follow.

    Spaces, tabs, one comma or one colon part the two numbers, `;` or brackets part peaks; commas between digits
    are decimal commas where something else parts the numbers. With `several`, a line of four, six, ... numbers
    and nothing else is two, three, ... peaks. A point in one number of a peak and a comma in the other are
    refused: `100.5 1,234` means a thousand to those who write it.
    """
    plain = _PLAIN.fullmatch(line)
    if plain:
        return [(float(plain[1]), float(plain[2]))]
    peaks = []
    bare = _QUOTED.sub(" ", line) if '"' in line or "'" in line else line
    for group in re.split(r"[;()]" if bare.lstrip().startswith("(") else ";", bare):
        tokens = [token.rstrip(",") for token in re.split(r"[\s:]+", group) if token.rstrip(",")]
        if len(tokens) == 1 and tokens[0].count(",") == 1:
            tokens = tokens[0].split(",")
        if not tokens:
            continue
        if len(tokens) == 1:
            raise ValueError(f"a peak is two numbers, m/z and intensity, got {tokens[0][:40]!r}")
        numbers = _numbers(tokens) if several and len(tokens) > 2 and len(tokens) % 2 == 0 else None
        if numbers is None:
            tokens = tokens[:2]
            numbers = [parse_number(token) for token in tokens]
        if any("." in token for token in tokens) and any("," in token for token in tokens):
            raise ValueError(f"a decimal point and a comma in one line, {' '.join(tokens)[:40]!r}")
        peaks += list(zip(numbers[::2], numbers[1::2], strict=True))
    return peaks


def _numbers(tokens: list[str]) -> list[float] | None:
    try:
        return [parse_number(token) for token in tokens]
    except ValueError:
        return None
