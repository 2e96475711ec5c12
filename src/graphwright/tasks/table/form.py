"""What the input columns of a table hold, found from their values, and rows as encoders take them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphwright.models import Inputs, SetInputs
from graphwright.tasks.likeness import EuclideanLikeness, Floats, KernelLikeness, Likeness
from graphwright.tasks.table.file import Row, RowError, parsed
from graphwright.tasks.task import Samples

USUAL = 0.8
"""Share of the rows whose values must be alike for the others to be faults, not another kind."""
Value = NDArray[np.float32] | NDArray[np.int64]
"""A vector (d,), the codes of a list of tokens (k,), or a set of vectors (k, d)."""


class InputKind(StrEnum):
    """What an input is; also the name of the encoder that reads it."""

    VECTOR = "vector"
    TOKENS = "tokens"
    SET = "set"


@dataclass(frozen=True)
class Form:
    """Columns, how many numbers each holds, and what training rows said of them.

    widths: numbers of each column of a vector, or of an element of a set. mean, deviation: of these numbers, one
    after another. words: tokens, in the order of their codes.
    """

    kind: InputKind
    columns: tuple[str, ...]
    widths: tuple[int, ...] = ()
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    words: tuple[str, ...] = ()

    @classmethod
    def from_text(cls, text: str) -> Form:
        """As `text` wrote it into a run's settings."""
        try:
            given = json.loads(text)
            lists = {name: tuple(given[name]) for name in ("columns", "widths", "mean", "deviation", "words")}
            form = cls(InputKind(given["kind"]), **lists)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"task.form is not what a run writes there: {error}") from error
        if len(form.mean) != sum(form.widths) or len(form.deviation) != sum(form.widths) or not form.columns:
            raise ValueError("task.form is not what a run writes there: its lists do not fit together")
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
    def described(self) -> str:
        names = ", ".join(self.columns)
        match self.kind:
            case InputKind.VECTOR:
                return f"{names}: a vector of {self.numbers} number{'s' if self.numbers > 1 else ''}"
            case InputKind.TOKENS:
                return f"{names}: a list of tokens, {len(self.words):,} different ones"
            case InputKind.SET:
                return f"{names}: a set of vectors of {self.numbers} number{'s' if self.numbers > 1 else ''}"

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {word: code for code, word in enumerate(self.words)}

    def read(self, row: Row) -> Value:
        """The input of a row, standardised; `RowError` says what is wrong."""
        cells = [_present(row, name) for name in self.columns]
        match self.kind:
            case InputKind.VECTOR:
                parts = zip(cells, self.columns, self.widths, strict=True)
                return self._standard(np.concatenate([_vector(*part) for part in parts]))
            case InputKind.TOKENS:
                return np.array([self._code(word) for word in _words(cells[0], self.columns[0])], np.int64)
            case InputKind.SET:
                return self._standard(_set(cells[0], self.columns[0], self.numbers))

    def raw(self, value: Value) -> NDArray[np.float64]:
        """The numbers as the file has them."""
        result: NDArray[np.float64] = np.asarray(value, np.float64) * self.deviation + self.mean
        return result

    def collate(self, values: Sequence[Value]) -> Inputs:
        """(b, d) vectors, (b, 1 + k) codes with a start token, padded, or sets."""
        match self.kind:
            case InputKind.VECTOR:
                return torch.from_numpy(np.stack(values).astype(np.float32))
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

    def _standard(self, numbers: NDArray[np.float64]) -> NDArray[np.float32]:
        scaled: NDArray[np.float64] = (numbers - np.array(self.mean)) / np.array(self.deviation)
        return scaled.astype(np.float32)

    def _code(self, word: str) -> int:
        if word not in self._codes:
            raise RowError("unknown token", self.columns[0], f"no training row has the token {word!r}")
        return self._codes[word]


def find_form(rows: Sequence[Row], columns: Sequence[str], where: object) -> Form:
    """The form that most training rows have; an error names a column that is no input."""
    kinds = {name: _kind(rows, name, where) for name in columns}
    found = {kind for kind, _ in kinds.values()}
    if found != {InputKind.VECTOR} and len(columns) > 1:
        listed = ", ".join(f"{name} ({kind})" for name, (kind, _) in kinds.items())
        raise ValueError(
            f"{where}: only columns of numbers can be read together, and the input columns are {listed}; choose "
            "one with --task.inputs NAME, or several of numbers with --task.inputs A,B"
        )
    kind = found.pop()
    names = tuple(columns)
    if kind is InputKind.TOKENS:
        words = sorted(
            {word for row in rows for word in _usable(lambda row: _words(row[names[0]], names[0]), row)}
        )
        return Form(kind, names, words=tuple(words))
    widths = tuple(width for _, width in kinds.values())
    form = Form(kind, names, widths, (0.0,) * sum(widths), (1.0,) * sum(widths))
    numbers = [form.raw(value) for row in rows for value in _usable(lambda row: [form.read(row)], row)]
    table = np.concatenate([each.reshape(-1, sum(widths)) for each in numbers])
    if not len(table):
        raise ValueError(f"{where}: every training row's {names[0]} is empty")
    return Form(kind, names, widths, *moments(table))


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
    return tuple(float(f"{value:.7g}") for value in values)


def _kind(rows: Sequence[Row], name: str, where: object) -> tuple[InputKind, int]:
    """What a column holds, and how many numbers."""
    shapes = Counter(_shape(row.get(name), name) for row in rows)
    known = Counter({shape: count for shape, count in shapes.items() if shape[0] not in ("nothing", "unreadable")})
    if not known:
        raise ValueError(
            f"{where}: column {name} holds nothing in the training rows; leave it out with --task.inputs"
        )
    kinds: Counter[str] = Counter()
    for (sort, _), count in known.items():
        kinds[sort] += count
    sort = kinds.most_common(1)[0][0]
    (_, width), most = max(((shape, count) for shape, count in known.items() if shape[0] == sort), key=_count)
    if sort in ("number", "vectors") or (sort in ("integers", "decimals") and most >= USUAL * known.total()):
        return (InputKind.SET if sort == "vectors" else InputKind.VECTOR), width
    if sort == "integers" and kinds["decimals"]:
        sort = "decimals"
    if sort in ("words", "integers"):
        return InputKind.TOKENS, 0
    example = next(row[name] for row in rows if _shape(row.get(name), name)[0] == sort)
    lengths = "lists of numbers of different lengths (a set is a list of lists)"
    held = lengths if sort == "decimals" else f"{sort}, such as {str(example)[:30]!r}"
    raise ValueError(
        f"{where}: column {name} holds {held}; an input is a number, a list of numbers of one length, a list of "
        "tokens or a list of vectors: choose the input columns with --task.inputs A,B"
    )


def _count(pair: tuple[Any, int]) -> int:
    return pair[1]


def _shape(value: Any, name: str) -> tuple[str, int]:
    """The sort of a cell, and how many numbers it, or each of its elements, has."""
    try:
        value = parsed(value, name)
    except RowError:
        return "unreadable", 0
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "nothing", 0
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
    value = parsed(row.get(name), name)
    if value is None:
        raise RowError("missing value", name, "there is none")
    return value


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
    found = [
        [_finite(number, name, f"a number of element {at}") for number in each] for at, each in enumerate(value)
    ]
    return np.array(found, np.float64).reshape(-1, width)


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
    many = _elements(given, form)
    first = many[0] if many else None
    if form.kind is InputKind.SET and isinstance(first, list | tuple) and first:
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
        return [given]
    many = _elements(given, form)
    rows = [each for each in many if isinstance(each, Mapping)]
    if rows and len(rows) == len(many):
        return rows
    if len(form.columns) > 1:
        raise ValueError(f"expected a mapping with the columns {', '.join(form.columns)}, or several")
    return [{form.columns[0]: _lists(each)} for each in ([many] if is_one_value(given, form) else many)]


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


def form_likeness(form: Form) -> Likeness:
    """How inputs of a form are compared."""
    match form.kind:
        case InputKind.VECTOR:
            return VectorLikeness()
        case InputKind.SET:
            return SetLikeness()
        case InputKind.TOKENS:
            return TokenLikeness(len(form.words))
