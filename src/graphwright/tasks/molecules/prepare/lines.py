"""Lines of a text file, plain or gzipped, in bounded memory."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

LONGEST_LINE = 2**20
"""Bytes of a line that are read; what is beyond belongs to no SMILES that could be used."""

_BUFFER = 2**20
_GZIP = b"\x1f\x8b"


class SourceError(ValueError):
    """A source that cannot be read: the message names the file and what is wrong with it."""


class LineReader:
    """Lines without their ends. Bytes that are not UTF-8 become U+FFFD: a matter of the row, not of the run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read = 0
        """Lines read so far."""
        self._raw: BinaryIO = path.open("rb")
        self._size = max(path.stat().st_size, 1)
        zipped = self._raw.read(2) == _GZIP
        self._raw.seek(0)
        self._file: BinaryIO = (
            io.BufferedReader(gzip.GzipFile(fileobj=self._raw), _BUFFER) if zipped else self._raw
        )

    @property
    def fraction(self) -> float:
        """Share of the file's bytes that was read."""
        return min(self._raw.tell() / self._size, 1.0)

    def __iter__(self) -> Iterator[str]:
        try:
            while line := self._file.readline(LONGEST_LINE):
                part = line
                while len(part) == LONGEST_LINE and not part.endswith(b"\n"):
                    part = self._file.readline(LONGEST_LINE)
                if not self.read and line.startswith(b"\xef\xbb\xbf"):
                    line = line[3:]
                self.read += 1
                yield line.decode("utf-8", "replace").rstrip("\r\n")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SourceError(f"{self.path} is damaged somewhere after line {self.read:,}: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
        self._raw.close()
