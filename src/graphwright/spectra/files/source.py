"""A file as bytes or lines: compressed or not, in any usual encoding, within a size limit."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from graphwright.spectra.spectrum import Origin, SpectrumError

SIZE_LIMIT = 8 * 2**30
LINE_LIMIT = 64 * 2**20

_GZIP_MAGIC = b"\x1f\x8b"
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1f]")


class _TooLargeError(OSError):
    """More bytes came out of a file than its reader wanted."""


class _Limited(io.RawIOBase):
    """A stream that refuses to give more than `limit` bytes."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._stream, self._limit = stream, limit

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        # From the end, gzip would unpack everything to find it.
        if whence == io.SEEK_END:
            raise _TooLargeError
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        if self._stream.tell() > self._limit:
            raise _TooLargeError
        buffer[: len(data)] = data
        return len(data)


@dataclass(frozen=True)
class SpectrumSource:
    """A file of spectra; gzip is known by its first bytes and read in place.

    size_limit: most bytes that are read, after decompression, so that a small file cannot fill a machine.
    """

    path: Path
    size_limit: int = SIZE_LIMIT

    def origin(self, line: int = 0) -> Origin:
        """The place of a line of this file."""
        return Origin(str(self.path), "line", line)

    def error(self, problem: str, line: int = 0) -> SpectrumError:
        """What is wrong with a line, or with the file as a whole."""
        return SpectrumError(self.origin(line), problem)

    @contextmanager
    def bytes(self) -> Iterator[BinaryIO]:
        """The decompressed bytes; whatever goes wrong in reading them is a `SpectrumError`."""
        try:
            with open(self.path, "rb") as file:
                packed = file.peek(2)[:2] == _GZIP_MAGIC
                stream = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
                yield cast(BinaryIO, io.BufferedReader(_Limited(stream, self.size_limit), 2**16))
        except _TooLargeError:
            raise self.error(f"more than {self.size_limit:,} bytes, the limit") from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
            raise self.error(f"damaged gzip file: {problem}") from None
        except OSError as problem:
            raise self.error(f"cannot be read: {problem.strerror or problem}") from None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines without their ends; UTF-8, UTF-16 with a mark, or else Latin-1."""
        with self.text() as file:
            number = 0
            while True:
                number += 1
                try:
                    line = file.readline(LINE_LIMIT)
                except UnicodeError as problem:
                    raise self.error(f"not text: {problem}", number) from None
                if not line:
                    return
                if len(line) >= LINE_LIMIT:
                    raise self.error(f"a line of more than {LINE_LIMIT:,} characters", number)
                yield number, self.checked(line, number).rstrip("\n")

    @contextmanager
    def text(self) -> Iterator[io.TextIOWrapper]:
        """The decompressed text, line ends unified, without a byte-order mark; pass what it gives to `checked`."""
        with self.bytes() as stream:
            head = cast(io.BufferedReader, stream).peek(4)[:4]
            encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
            errors = "strict" if encoding == "utf-16" else "surrogateescape"
            yield io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline=None)

    def checked(self, text: str, line: int) -> str:
        """Text of this file, bytes that are no UTF-8 read as Latin-1; refuses binary data."""
        if _BINARY.search(text):
            raise self.error("binary data where text was expected", line)
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.encode("utf-8", "surrogateescape").decode("latin-1")
        return text
