"""What the input columns of a table hold, by their values, and rows as encoders take them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphwright.graphs.molecules import MoleculeError, parse_smiles
from graphwright.models import Inputs, SetInputs, own_encoder
from graphwright.settings import ENCODERS, InputForm
from graphwright.spectra import Origin, Spectrum, tidy_peaks
from graphwright.tasks.coloring.picture import shrunk
from graphwright.tasks.likeness import EuclideanLikeness, Floats, KernelLikeness, Likeness
from graphwright.tasks.molecules.fingerprint import (
    BITS,
    FingerprintLikeness,
    active_bits,
    bit_matrix,
    fingerprint_of,
    tokens,
)
from graphwright.tasks.spectra.encoded import EncodedSpectrum, SpectrumTask, encode_as, stack
from graphwright.tasks.table.file import Row, RowError, about, parsed
from graphwright.tasks.table.pictures import Pixels, is_picture_cell, read_pixels, usual_side
from graphwright.tasks.task import Samples

USUAL = 0.8
"""Share of the rows whose values must be alike for the others to be faults, not another kind."""
Value = NDArray[Any] | EncodedSpectrum | tuple[Any, ...]
"""A vector (d,), the codes of a list of tokens (k,), a set of vectors (k, d), a picture (3, side, side) in bytes,
the active bits of a molecule (k,), a spectrum; or a tuple of such where several kinds are read together."""
READING = SpectrumTask()
"""How spectra are read: as MS2Scaffold does, without a word to the contrary."""
SPECTRA = ("peaks", "spectrum")
"""What a column of [m/z, intensity] pairs must be called, lest it be a set of vectors."""
CONDITIONS = ("precursor_mz", "adduct", "collision_energy", "formula", "charge")
"""Columns that belong to a spectrum, where there is one; each may be empty."""


class InputKind(StrEnum):
    """What an input is."""

    VECTOR = "vector"
    TOKENS = "tokens"
    SET = "set"
    PICTURE = "picture"
    BITS = "bits"
    SPECTRUM = "spectrum"
    SEVERAL = "several"


@dataclass(frozen=True)
class Form:
    """Columns, how many numbers each holds, and what training rows said of them.

    widths: numbers of each column of a vector, or of an element of a set. mean, deviation: of these numbers, one
    after another. words: tokens, in the order of their codes. side: pixels of a picture. parts: of an input of
    several kinds, one of each; the first is the one whose elements may be nodes, if there is one.
    """

    kind: InputKind
    columns: tuple[str, ...]
    widths: tuple[int, ...] = ()
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    words: tuple[str, ...] = ()
    side: int = 0
    parts: tuple[Form, ...] = ()

    @classmethod
    def from_text(cls, text: str) -> Form:
        """As `text` wrote it into a run's settings."""
        try:
            return cls._of(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"task.form is not what a run writes there: {error}") from error

    @classmethod
    def _of(cls, given: Mapping[str, Any]) -> Form:
        lists = {name: tuple(given[name]) for name in ("columns", "widths", "mean", "deviation", "words")}
        # Older runs have neither.
        parts = tuple(cls._of(part) for part in given.get("parts", ()))
        form = cls(InputKind(given["kind"]), **lists, side=int(given.get("side", 0)), parts=parts)
        if len(form.mean) != sum(form.widths) or len(form.deviation) != sum(form.widths) or not form.columns:
            raise ValueError("its lists do not fit together")
        return form

    @property
    def text(self) -> str:
        """For a run's settings."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @property
    def numbers(self) -> int:
        """Numbers of a vector, or of an element of a set."""
        return sum(self.widths)

    @property
    def encoder(self) -> str:
        """The name of the encoder that reads it."""
        return own_encoder(self.kind)

    @property
    def owning(self) -> bool:
        """Whether its elements may be nodes: of several parts, those of the only one that has any."""
        if self.kind is InputKind.SEVERAL:
            return [part.owning for part in self.parts].count(True) == 1
        return ENCODERS[self.encoder].owning

    @property
    def has_pictures(self) -> bool:
        return InputKind.PICTURE in {self.kind, *(part.kind for part in self.parts)}

    @property
    def described(self) -> str:
        names = ", ".join(self.columns)
        match self.kind:
            case InputKind.VECTOR:
                return f"{names}: a vector of {self.numbers} number{'s' if self.numbers > 1 else ''}"
            case InputKind.TOKENS:
                return f"{names}: a list of tokens, {len(self.words):,} different ones"
            case InputKind.SET:
                return f"{names}: a set of vectors of {self.numbers} number{'s' if self.numbers > 1 else ''}"
            case InputKind.PICTURE:
                return f"{names}: a picture, brought to {self.side} x {self.side} pixels"
            case InputKind.BITS:
                return f"{names}: a SMILES, read as its fingerprint"
            case InputKind.SPECTRUM:
                return f"{names}: a mass spectrum"
            case InputKind.SEVERAL:
                return "; ".join(part.described for part in self.parts)

    @property
    def input_form(self) -> InputForm:
        """For encoders."""
        sizes = {
            InputKind.TOKENS: len(self.words),
            InputKind.PICTURE: self.side,
            InputKind.BITS: BITS,
            InputKind.SPECTRUM: len(READING.adducts.split()),
        }
        parts = tuple(part.input_form for part in self.parts)
        return InputForm(self.kind, sizes.get(self.kind, self.numbers), self.described, parts)

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {word: code for code, word in enumerate(self.words)}

    def read(self, row: Row, beside: Path | None = Path()) -> Value:
        """The input of a row, standardised; `RowError` says what is wrong.

        beside: where relative paths of pictures begin; None: none are followed.
        """
        if self.kind is InputKind.SEVERAL:
            return tuple(part.read(row, beside) for part in self.parts)
        first = self.columns[0]
        if self.kind is InputKind.VECTOR:
            cells = [_present(row, name) for name in self.columns]
            parts = zip(cells, self.columns, self.widths, strict=True)
            return self._standard(np.concatenate([_vector(*part) for part in parts]))
        if self.kind is InputKind.PICTURE:
            return read_pixels(_present(row, first), first, self.side, beside)
        cell = _present(row, first)
        match self.kind:
            case InputKind.TOKENS:
                return np.array([self._code(word) for word in _words(cell, first)], np.int64)
            case InputKind.BITS:
                return _bits(cell, first)
            case InputKind.SPECTRUM:
                return _spectrum(cell, row, first)
            case _:
                return self._standard(_set(cell, first, self.numbers))

    def raw(self, value: NDArray[Any]) -> NDArray[np.float64]:
        """The numbers as the file has them."""
        result: NDArray[np.float64] = np.asarray(value, np.float64) * self.deviation + self.mean
        return result

    def _tidy(self, value: NDArray[Any]) -> NDArray[np.float64]:
        """The raw numbers, without the digits that single precision has made up; there is no -0."""
        digits = 5 - np.floor(np.log10(np.array(self.deviation)))
        return np.asarray(np.round(self.raw(value) * 10**digits) / 10**digits + 0.0, np.float64)

    def written(self, value: Any) -> dict[str, Any] | None:
        """The cells of a row with this input; None where what was read, such as bits, does not tell them."""
        first = self.columns[0]
        match self.kind:
            case InputKind.VECTOR:
                ends = np.cumsum(self.widths)[:-1].tolist()
                cells = [_short(part) for part in np.split(self._tidy(value), ends)]
                whole = zip(self.columns, cells, self.widths, strict=True)
                return {name: list(cell) if width > 1 else cell[0] for name, cell, width in whole}
            case InputKind.SET:
                return {first: [list(_short(each)) for each in self._tidy(value).reshape(-1, self.numbers)]}
            case InputKind.TOKENS:
                return {first: [self.words[code] for code in value.tolist()]}
            case InputKind.SEVERAL:
                parts = [part.written(each) for part, each in zip(self.parts, value, strict=True)]
                joint = {name: cell for part in parts for name, cell in (part or {}).items()}
                return None if None in parts else joint
            case _:
                return None

    def elements(self, value: Any) -> int | None:
        """How many elements of an input may be nodes; None where that is nothing that it has."""
        if self.kind is InputKind.SEVERAL:
            return self.parts[0].elements(value[0])
        return len(value) if self.owning else None

    def collate(self, values: Sequence[Any]) -> Inputs:
        """A batch as the encoder takes it; of several parts, all their tensors in a row."""
        match self.kind:
            case InputKind.VECTOR:
                return torch.from_numpy(np.stack(values).astype(np.float32))
            case InputKind.PICTURE:
                return torch.from_numpy(np.stack(values).astype(np.float32) / 255)
            case InputKind.BITS:
                return tokens(values)
            case InputKind.SPECTRUM:
                return stack(values)
            case InputKind.TOKENS:
                start, padding = len(self.words), len(self.words) + 1
                codes = np.full((len(values), 1 + max(map(len, values))), padding, np.int64)
                codes[:, 0] = start
                for line, value in zip(codes, values, strict=True):
                    line[1 : 1 + len(value)] = value
                return torch.from_numpy(codes)
            case InputKind.SET:
                # At least one position: nobody has tested attention to none.
                most = max(1, *map(len, values)) if values else 1
                padded = np.zeros((len(values), most, self.numbers), np.float32)
                mask = np.zeros((len(values), most), np.bool_)
                for at, value in enumerate(values):
                    padded[at, : len(value)] = value
                    mask[at, : len(value)] = True
                return SetInputs(torch.from_numpy(padded), torch.from_numpy(mask))
            case InputKind.SEVERAL:
                batches = [part.collate([value[at] for value in values]) for at, part in enumerate(self.parts)]
                return tuple(
                    tensor for each in batches for tensor in ((each,) if isinstance(each, torch.Tensor) else each)
                )

    def _standard(self, numbers: NDArray[np.float64]) -> NDArray[np.float32]:
        with np.errstate(over="ignore", invalid="ignore"):
            exact: NDArray[np.float64] = (numbers - np.array(self.mean)) / np.array(self.deviation)
            scaled = exact.astype(np.float32)
        if not np.isfinite(scaled).all():
            worst = numbers.flat[int(np.flatnonzero(~np.isfinite(scaled))[0])]
            raise RowError("too large", ", ".join(self.columns), f"{worst:g} is too large")
        return scaled

    def _code(self, word: str) -> int:
        if word not in self._codes:
            raise RowError("unknown token", self.columns[0], f"no training row has the token {word!r}")
        return self._codes[word]


def find_form(rows: Sequence[Row], columns: Sequence[str], path: Path, side: int = 0) -> Form:
    """The form that most training rows have; an error names a column that is no input.

    side: that pictures are brought to; 0: what most of them have.
    """
    spectrum = next((name for name in columns if _is_spectrum(rows, name)), None)
    conditions = [name for name in CONDITIONS if spectrum is not None and name in columns]
    kinds = {name: _kind(rows, name, path) for name in columns if name not in conditions}
    named: dict[InputKind, list[str]] = {}
    for name, (kind, _) in kinds.items():
        named.setdefault(kind, []).append(name)
    for kind, names in named.items():
        if kind is not InputKind.VECTOR and len(names) > 1:
            listed = ", ".join(f"{name} ({kind})" for name, (kind, _) in kinds.items())
            raise ValueError(
                f"{path}: of every kind but numbers only one column can be read, and the input columns are "
                f"{listed}; choose with --task.inputs A,B"
            )
    parts = []
    for kind, names in named.items():
        match kind:
            case InputKind.VECTOR | InputKind.SET:
                widths = tuple(kinds[name][1] for name in names)
                parts.append(_measured_form(rows, kind, tuple(names), widths, path))
            case InputKind.TOKENS:
                own = names[0]
                words = {word for row in rows for word in _words_of(row, own)}
                parts.append(Form(kind, (own,), words=tuple(sorted(words))))
            case InputKind.PICTURE:
                cells = (row[names[0]] for row in rows if row.get(names[0]) is not None)
                parts.append(Form(kind, (names[0],), side=side or usual_side(cells, path.parent)))
            case InputKind.SPECTRUM:
                parts.append(Form(kind, (names[0], *conditions)))
            case _:
                parts.append(Form(kind, (names[0],)))
    if len(parts) == 1:
        return parts[0]
    parts.sort(key=lambda part: not part.owning)
    return Form(InputKind.SEVERAL, tuple(name for part in parts for name in part.columns), parts=tuple(parts))


def _words_of(row: Row, name: str) -> list[str]:
    """None where they cannot be read."""
    return _usable(lambda row: _words(_present(row, name), name), row)


def _measured_form(
    rows: Sequence[Row], kind: InputKind, names: tuple[str, ...], widths: tuple[int, ...], path: Path
) -> Form:
    form = Form(kind, names, widths, (0.0,) * sum(widths), (1.0,) * sum(widths))
    values = [value for row in rows for value in _usable(lambda row: [form.read(row)], row)]
    if not values:
        usable = f"no training row has usable numbers in {', '.join(names)}"
        raise ValueError(f"{path}: {usable}; the first: {_first_fault(form, rows)}")
    table = np.concatenate([np.asarray(value, np.float64).reshape(-1, sum(widths)) for value in values])
    if not len(table):
        raise ValueError(f"{path}: every training row's {names[0]} is empty")
    return Form(kind, names, widths, *moments(table))


def _first_fault(form: Form, rows: Sequence[Row]) -> str:
    """What is wrong with the first row that cannot be read."""
    for row in rows:
        try:
            form.read(row)
        except RowError as error:
            return str(error)
    return "there is no row"


def moments(table: NDArray[np.float64]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of the columns of a table (m, d)."""
    deviation = table.std(0)
    # A column that never changes says nothing; it must not be divided by nothing.
    scale = np.where(deviation > 1e-12 * np.maximum(1, np.abs(table.mean(0))), deviation, 1.0)
    return _short(table.mean(0)), _short(scale)


def _usable(read: Callable[[Row], Iterable[Any]], row: Row) -> list[Any]:
    try:
        return list(read(row))
    except RowError:
        return []


def _short(values: NDArray[np.float64]) -> tuple[float, ...]:
    """Seven digits are enough, and a person can read them."""
    return tuple(float(f"{value:.7g}") for value in values.tolist())


def _kind(rows: Sequence[Row], name: str, where: object) -> tuple[InputKind, int]:
    """What a column holds, and how many numbers."""
    shapes = Counter(_shape(row.get(name), name) for row in rows)
    known = Counter({shape: count for shape, count in shapes.items() if shape[0] not in ("nothing", "unreadable")})
    if not known:
        fault = next((said for row in rows if (said := _unreadable(row.get(name), name))), None)
        held = "nothing" if fault is None else f"nothing that can be read ({fault})"
        raise ValueError(
            f"{where}: column {name} holds {held} in the training rows; leave it out with --task.inputs"
        )
    kinds: Counter[str] = Counter()
    for (sort, _), count in known.items():
        kinds[sort] += count
    sort = kinds.most_common(1)[0][0]
    (_, width), most = max(((shape, count) for shape, count in known.items() if shape[0] == sort), key=_count)
    if sort == "pictures":
        return InputKind.PICTURE, 0
    if sort == "vectors" and name in SPECTRA and width == 2:
        return InputKind.SPECTRUM, 0
    if sort == "text" and _are_smiles(row.get(name) for row in rows):
        return InputKind.BITS, 0
    if sort in ("number", "vectors") or (sort in ("integers", "decimals") and most >= USUAL * known.total()):
        return (InputKind.SET if sort == "vectors" else InputKind.VECTOR), width
    if sort == "integers" and kinds["decimals"]:
        sort = "decimals"
    if sort in ("words", "integers"):
        return InputKind.TOKENS, 0
    example = next(row[name] for row in rows if _shape(row.get(name), name)[0] == sort)
    lengths = "lists of numbers of different lengths (a set is a list of lists)"
    held = lengths if sort == "decimals" else f"{sort}, such as {str(example)[:30]!r}"
    if sort == "text":
        held += " (split words into a list; numbers go without quotes)"
    raise ValueError(
        f"{where}: column {name} holds {held}; an input is a number, a list of numbers of one length, a list of "
        "tokens, a list of vectors, the path or the bytes of a picture, a SMILES, or peaks: choose the input "
        "columns with --task.inputs A,B"
    )


def _count(pair: tuple[Any, int]) -> int:
    return pair[1]


def _is_spectrum(rows: Sequence[Row], name: str) -> bool:
    return name in SPECTRA and any(_shape(row.get(name), name) == ("vectors", 2) for row in rows)


TRIED, MOSTLY = 100, 0.5
"""Texts that are read to see whether a column holds SMILES, and the share that must be: hardly a word is one."""


def _are_smiles(texts: Iterable[Any]) -> bool:
    """Whether most of the first texts are molecules; never without RDKit."""
    tried = list(islice((text for text in texts if isinstance(text, str)), TRIED))
    try:
        return sum(_is_smiles(text) for text in tried) >= MOSTLY * len(tried)
    except ImportError:
        return False


def _is_smiles(text: str) -> bool:
    try:
        parse_smiles(text)
    except MoleculeError:
        return False
    return True


def _unreadable(value: Any, name: str) -> str | None:
    """What is wrong with a cell that is not even a value."""
    try:
        parsed(value, name)
    except RowError as error:
        return error.detail
    return None


def _shape(value: Any, name: str) -> tuple[str, int]:
    """The sort of a cell, and how many numbers it, or each of its elements, has."""
    try:
        value = parsed(value, name)
    except RowError:
        return "unreadable", 0
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "nothing", 0
    if is_picture_cell(value):
        return "pictures", 0
    if _is_number(value):
        return "number", 1
    if not isinstance(value, list):
        return ("text" if isinstance(value, str) else "objects"), 0
    if not value:
        return "nothing", 0
    if all(isinstance(each, int) for each in value):
        return "integers", len(value)
    if all(_is_number(each) for each in value):
        return "decimals", len(value)
    if all(isinstance(each, str) for each in value):
        return "words", 0
    if all(isinstance(each, list) and each and all(map(_is_number, each)) for each in value):
        return "vectors", len(value[0])
    return "mixed lists", 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _present(row: Row, name: str) -> Any:
    value = row.get(name)
    if value is None:
        raise RowError("missing value", name, "there is none")
    return parsed(value, name)


def _bits(value: Any, name: str) -> NDArray[Any]:
    """Active bits of a SMILES, or of an RDKit molecule in hand."""
    try:
        if isinstance(value, str):
            return active_bits(parse_smiles(value))
        if hasattr(value, "GetAtoms"):
            return fingerprint_of(value)
    except MoleculeError as error:
        raise RowError("not a molecule", name, about(str(value), error)) from error
    raise RowError("not a molecule", name, f"expected a SMILES, got {str(value)[:40]!r}")


def _condition(row: Row, name: str) -> float | None:
    """A number that need not be there."""
    return None if row.get(name) is None else _finite(row[name], name, "the value")


def _spectrum(value: Any, row: Row, name: str) -> EncodedSpectrum:
    """Peaks, and what is known of their precursor, as MS2Scaffold reads them."""
    peaks = _set(value, name, 2)
    charge = _condition(row, "charge")
    texts = [str(row[each]) if row.get(each) not in (None, "") else None for each in ("adduct", "formula")]
    try:
        mzs, intensities = tidy_peaks(peaks[:, 0], peaks[:, 1])
        spectrum = Spectrum(
            mzs,
            intensities,
            Origin("the row"),
            precursor_mz=_condition(row, "precursor_mz"),
            collision_energy=_condition(row, "collision_energy"),
            charge=None if charge is None else int(charge),
            adduct=texts[0],
            formula=texts[1],
        )
        return encode_as(READING, spectrum)
    except ValueError as error:
        raise RowError("not a spectrum", name, str(error)) from error


def _finite(value: Any, name: str, what: str) -> float:
    if not _is_number(value):
        raise RowError("not a number", name, f"{what} must be a number, got {str(value)[:40]!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RowError("NaN", name, f"{what} is {'NaN' if math.isnan(number) else 'infinite'}")
    return number


def _vector(value: Any, name: str, width: int) -> NDArray[np.float64]:
    numbers = value if isinstance(value, list) else [value]
    if len(numbers) != width:
        raise RowError("wrong length", name, f"expected {width} numbers, got {len(numbers)}")
    what = "the value" if width == 1 else "number {}"
    return np.array([_finite(each, name, what.format(at)) for at, each in enumerate(numbers)], np.float64)


def _set(value: Any, name: str, width: int) -> NDArray[np.float64]:
    if not isinstance(value, list):
        raise RowError("not a list", name, f"expected a list of vectors, got {str(value)[:40]!r}")
    for at, each in enumerate(value):
        if not isinstance(each, list) or len(each) != width:
            raise RowError("wrong length", name, f"element {at} must be {width} numbers, got {str(each)[:40]}")
    vectors = [
        [_finite(number, name, f"a number of element {at}") for number in each] for at, each in enumerate(value)
    ]
    return np.array(vectors, np.float64).reshape(-1, width)


def _words(value: Any, name: str) -> list[str]:
    value = parsed(value, name)
    if not isinstance(value, list):
        raise RowError("not a list", name, f"expected a list of tokens, got {str(value)[:40]!r}")
    for at, each in enumerate(value):
        if isinstance(each, bool) or not isinstance(each, str | int):
            raise RowError(
                "not a token", name, f"token {at} must be text or a whole number, got {str(each)[:40]!r}"
            )
    return [str(each) for each in value]


def is_one_value(given: Any, form: Form) -> bool:
    """Whether what a person has in hand is the value of one row, not of several."""
    if form.kind is InputKind.PICTURE:
        return not isinstance(given, list | tuple) and not (hasattr(given, "ndim") and given.ndim == 4)
    if form.kind is InputKind.BITS:
        return not isinstance(given, list | tuple)
    many = _elements(given, form)
    first = many[0] if many else None
    if form.kind in (InputKind.SET, InputKind.SPECTRUM) and isinstance(first, list | tuple) and first:
        first = first[0]
    return not isinstance(first, list | tuple | Mapping)


def _elements(given: Any, form: Form) -> list[Any]:
    plain = given.tolist() if isinstance(given, np.ndarray | torch.Tensor) else given
    if not isinstance(plain, Sequence) or isinstance(plain, str | bytes):
        raise ValueError(f"expected {form.described}, or several; got {type(given).__name__}")
    return [each.tolist() if isinstance(each, np.ndarray | torch.Tensor) else each for each in plain]


def as_rows(given: Any, form: Form) -> list[Row]:
    """What a person has in hand, one input or many, as rows of the table."""
    if isinstance(given, Mapping):
        given = [given]
    if isinstance(given, list | tuple) and given and all(isinstance(each, Mapping) for each in given):
        for row in given:
            _refuse_lacking(row, form)
        return list(given)
    if form.kind is InputKind.SEVERAL or (form.kind is InputKind.VECTOR and len(form.columns) > 1):
        raise ValueError(f"expected a mapping with the columns {', '.join(form.columns)}, or several")
    one, first = is_one_value(given, form), form.columns[0]
    if form.kind in (InputKind.PICTURE, InputKind.BITS):
        values = [given] if one else list(given)
        arrays = [each.detach().cpu().numpy() if isinstance(each, torch.Tensor) else each for each in values]
        return [{first: each} for each in arrays]
    many = _elements(given, form)
    return [{first: _lists(each)} for each in ([many] if one else many)]


def _refuse_lacking(row: Row, form: Form) -> None:
    """A ValueError where a column has another name than the model knows."""
    lacking = [name for name in form.columns if name not in row and name not in CONDITIONS]
    if lacking:
        there = ", ".join(map(str, row)) or "nothing"
        raise ValueError(f"a row needs {', '.join(form.columns)}; {lacking[0]} is missing, there is {there}")


def _lists(value: Any) -> Any:
    return [_lists(each) for each in value] if isinstance(value, list | tuple) else value


class VectorLikeness(EuclideanLikeness):
    """A table's vectors, standardised, by their squared distance."""

    name = "squared distance of the standardised numbers"

    def features(self, samples: Samples, indices: Sequence[int]) -> Floats:
        """(m, d)."""
        return np.stack([samples[index].value for index in indices])


class SetLikeness(EuclideanLikeness):
    """A table's sets of vectors: from every element of either to the nearest of the other, squared, on average."""

    name = "mean squared distance to the nearest element"

    def features(self, samples: Samples, indices: Sequence[int]) -> list[Floats]:
        """m arrays (k, d)."""
        return [samples[index].value for index in indices]

    def similarity(self, queries: Any, references: Any) -> Floats:
        """(q, m) minus the distances."""
        most = max(1, *map(len, references))
        padded = np.full((len(references), most, references[0].shape[1]), 0, np.float32)
        real = np.zeros((len(references), most), bool)
        for at, each in enumerate(references):
            padded[at, : len(each)], real[at, : len(each)] = each, True
        return -np.stack([_to_nearest(query, padded, real) for query in queries])


class TokenLikeness(KernelLikeness):
    """A table's lists of tokens by the cosine of how often each token occurs."""

    name = "cosine of the tokens' counts"

    def __init__(self, words: int) -> None:
        self.words = words

    def features(self, samples: Samples, indices: Sequence[int]) -> Floats:
        """(m, words) of length one, or nothing where a list is empty."""
        counts = np.stack([np.bincount(samples[index].value, minlength=self.words) for index in indices])
        lengths = np.sqrt((counts.astype(np.float32) ** 2).sum(1, keepdims=True))
        shares: Floats = (counts / np.maximum(lengths, 1)).astype(np.float32)
        return shares

    def similarity(self, queries: Floats, references: Floats) -> Floats:
        """(q, m) cosines."""
        cosines: Floats = queries @ references.T
        return cosines


def _to_nearest(query: Floats, references: Floats, real: NDArray[np.bool_]) -> Floats:
    """(m,) distances of a set (k, d) to padded sets (m, n, d), real (m, n) true at elements."""
    apart = ((query[None, :, None] - references[:, None]) ** 2).sum(3)
    apart[~np.broadcast_to(real[:, None], apart.shape)] = np.inf
    if not len(query):
        return np.where(real.any(1), np.inf, 0).astype(np.float32)
    there = apart.min(2).mean(1)
    back = np.where(real, apart.min(1), 0).sum(1) / np.maximum(real.sum(1), 1)
    distances: Floats = (there + back).astype(np.float32)
    return distances


class PictureLikeness(EuclideanLikeness):
    """A table's pictures by their pixels, averaged over blocks where they are large."""

    name = "squared distance of the pixels"

    def features(self, samples: Samples, indices: Sequence[int]) -> Floats:
        """(m, 3 side^2)."""
        return np.stack([shrunk(_shares(samples[index].value)).ravel() for index in indices])


def _shares(pixels: Pixels) -> Floats:
    shares: Floats = pixels.astype(np.float32) / np.float32(255)
    return shares


class SmilesLikeness(FingerprintLikeness):
    """A table's molecules by the Tanimoto similarity of their fingerprints."""

    def features(self, samples: Samples, indices: Sequence[int]) -> Any:
        """(m, 2048) sparse zeros and ones."""
        return bit_matrix([samples[index].value for index in indices])


WIDEST = 2000
"""m/z from which on all peaks share a bin."""


class PeakLikeness(KernelLikeness):
    """A table's spectra by the cosine of the roots of their intensities, in bins of 1 Da."""

    name = "cosine of the binned peaks"

    def features(self, samples: Samples, indices: Sequence[int]) -> Floats:
        """(m, bins) of length one."""
        rows = np.zeros((len(indices), WIDEST + 1), np.float32)
        for row, index in zip(rows, indices, strict=True):
            spectrum: EncodedSpectrum = samples[index].value
            np.add.at(row, np.minimum(spectrum.mzs, WIDEST).astype(np.int64), np.sqrt(spectrum.intensities))
        lengths = np.sqrt((rows**2).sum(1, keepdims=True))
        shares: Floats = rows / np.maximum(lengths, 1e-12)
        return shares

    def similarity(self, queries: Floats, references: Floats) -> Floats:
        """(q, m) cosines."""
        cosines: Floats = queries @ references.T
        return cosines


@dataclass(frozen=True, eq=False)
class SeveralLikeness(KernelLikeness):
    """Columns of several kinds by the mean of their kernels, each on the scale of its own distances."""

    parts: tuple[Likeness, ...]
    name: str = "mean of the columns' kernels"

    def features(self, samples: Samples, indices: Sequence[int]) -> list[Any]:
        """Those of every part."""
        return [part.features(_Part(samples, at), indices) for at, part in enumerate(self.parts)]  # type: ignore[arg-type]

    def similarity(self, queries: list[Any], references: list[Any]) -> Floats:
        """(q, m)."""
        kernels = []
        for part, query, reference in zip(self.parts, queries, references, strict=True):
            alike = part.similarity(query, reference)
            apart = -alike[alike < 0]
            kernels.append(part.kernel(alike, float(np.median(apart)) if len(apart) else 1.0))
        mean: Floats = np.mean(kernels, axis=0).astype(np.float32)
        return mean


@dataclass(frozen=True, eq=False)
class _PartValue:
    value: Any


@dataclass(frozen=True, eq=False)
class _Part:
    """Samples of which only one part of the input is seen."""

    samples: Samples
    part: int

    def __getitem__(self, index: int) -> _PartValue:
        return _PartValue(self.samples[index].value[self.part])


def form_likeness(form: Form) -> Likeness:
    """How inputs of a form are compared."""
    match form.kind:
        case InputKind.VECTOR:
            return VectorLikeness()
        case InputKind.SET:
            return SetLikeness()
        case InputKind.TOKENS:
            return TokenLikeness(len(form.words))
        case InputKind.PICTURE:
            return PictureLikeness()
        case InputKind.BITS:
            return SmilesLikeness()
        case InputKind.SPECTRUM:
            return PeakLikeness()
        case InputKind.SEVERAL:
            return SeveralLikeness(tuple(map(form_likeness, form.parts)))
