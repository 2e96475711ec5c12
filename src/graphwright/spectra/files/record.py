"""One spectrum of a text file while its lines are being read."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphwright.spectra.files.fields import Fields
from graphwright.spectra.files.peak_lines import parse_peak_line
from graphwright.spectra.files.source import Source
from graphwright.spectra.spectrum import Spectrum, SpectrumError

PEAK_LIMIT = 2_000_000
TEXT_LIMIT = 4 * 2**20
"""Characters of one spectrum beside its peaks: without end they would fill the memory."""


@dataclass
class Record:
    """Fields and peaks read so far; the first problem is kept, so that the rest of the file can be read."""

    source: Source
    line: int
    fields: Fields = field(init=False)
    mzs: list[float] = field(default_factory=list)
    intensities: list[float] = field(default_factory=list)
    problem: SpectrumError | None = None
    _declared: tuple[int, int] | None = None
    _text: int = 0

    def __post_init__(self) -> None:
        self.fields = Fields(self.source.origin(self.line))

    def fail(self, problem: str, line: int) -> None:
        """Note what is wrong, unless something was before."""
        if self.problem is None:
            self.problem = self.source.error(problem, line)

    def has_room(self, text: str, line: int) -> bool:
        """Whether a line is worth keeping: not after a problem, nor beyond what any spectrum says."""
        self._text += len(text)
        if self._text > TEXT_LIMIT:
            self.fail(f"more than {TEXT_LIMIT:,} characters beside the peaks of one spectrum", line)
        return self.problem is None

    def note(self, key: str, value: str, line: int) -> None:
        """A key and its value."""
        if self.has_room(key + value, line):
            self.fields.add(key, value, line)

    def declare(self, number: str, line: int) -> None:
        """The number of peaks that the file announces."""
        if number.strip().isdecimal() and len(number) < 12:
            self._declared = int(number), line
        else:
            self.fail(f"the number of peaks was expected, got {number.strip()[:40]!r}", line)

    def add_peaks(self, text: str, line: int, *, several: bool) -> None:
        """Peaks of one line."""
        if self.problem is not None:
            return
        try:
            peaks = parse_peak_line(text, several=several)
        except ValueError as problem:
            self.fail(str(problem), line)
            return
        for mz, intensity in peaks:
            self.mzs.append(mz)
            self.intensities.append(intensity)
        if len(self.mzs) > PEAK_LIMIT:
            self.fail(f"more than {PEAK_LIMIT:,} peaks in one spectrum", line)

    def result(self) -> Spectrum | SpectrumError:
        """The spectrum, or what is wrong with it."""
        if self._declared and self._declared[0] != len(self.mzs):
            number, line = self._declared
            self.fail(f"{number} peaks announced, {len(self.mzs)} found", line)
        return self.problem or self.fields.spectrum(self.mzs, self.intensities)
