"""The objects of a JSON file, one by one, without holding the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from graphwright.spectra.files.source import LINE_LIMIT, Source

CHUNK = 2**16
_STRUCTURE = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')
_GAP = re.compile(r"[\s,]*")


def json_objects(source: Source) -> Iterator[tuple[int, str]]:
    """First line and text of every object of an array, or of objects that follow each other (JSON lines).

    Only brackets and strings are looked at: a spoilt object is for its reader to refuse, the next is found still.
    """
    scanner = _Scanner(source)
    with source.text() as file:
        while True:
            try:
                chunk = file.read(CHUNK)
            except UnicodeError as problem:
                raise source.error(f"not text: {problem}", scanner.line) from None
            if not chunk:
                break
            yield from scanner.feed(source.checked(chunk, scanner.line))
    scanner.finish()


@dataclass
class _Scanner:
    """Where in the nesting the text stands so far."""

    source: Source
    line: int = 1
    base: int = 0
    depth: int = 0
    begun: bool = False
    closed: bool = False
    in_string: bool = False
    escaped: bool = False
    start: int = 0
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def feed(self, chunk: str) -> Iterator[tuple[int, str]]:
        """Objects that end in this piece of the text."""
        at = kept = 0
        while at < len(chunk):
            if self.escaped:
                self.escaped, at = False, at + 1
                continue
            found = (_IN_STRING if self.in_string else _STRUCTURE).search(chunk, at)
            end = found.start() if found else len(chunk)
            if self.depth == self.base:
                self._check_gap(chunk[at:end])
            self.line += chunk.count("\n", at, end)
            at = end + 1
            if not found:
                break
            inside = self.depth > self.base
            if self._step(found[0]) and not inside and self.depth > self.base:
                self.start, kept = self.line, end
            elif inside and self.depth == self.base:
                yield self.start, "".join([*self.parts, chunk[kept:at]])
                self.parts, self.size = [], 0
        if self.depth > self.base:
            self.parts.append(chunk[kept:])
            self.size += len(chunk) - kept
            if self.size > LINE_LIMIT:
                raise self.source.error(f"an object of more than {LINE_LIMIT:,} characters", self.start)

    def finish(self) -> None:
        """Refuse a text that ends too early."""
        if self.depth > self.base:
            raise self.source.error("the file ends inside the object that begins here", self.start)
        if self.depth:
            raise self.source.error("the file ends before the ] of its array", self.line)

    def _step(self, mark: str) -> bool:
        """Go past one bracket, quote or backslash; whether it was a bracket that opens an object."""
        if self.in_string:
            self.escaped, self.in_string = mark == "\\", mark != '"'
            return False
        outside = self.depth == self.base
        if mark == "[" and not self.begun:
            self.begun, self.base, self.depth = True, 1, 1
            return False
        if mark == "]" and outside and self.base == 1:
            self.base, self.depth, self.closed = 0, 0, True
            return False
        if outside and (mark != "{" or self.closed):
            raise self.source.error(f"an object was expected, got {mark!r}", self.line)
        self.begun = True
        self.in_string = mark == '"'
        self.depth += {"{": 1, "[": 1, "}": -1, "]": -1, '"': 0}[mark]
        return mark == "{"

    def _check_gap(self, text: str) -> None:
        gap = _GAP.match(text)
        if gap and gap.end() < len(text):
            raise self.source.error(f"an object was expected, got {text[gap.end() : gap.end() + 20]!r}", self.line)
