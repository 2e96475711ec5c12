"""What a person sends (text, a file, the wish for an example) as a case: an input, drawn, and its truth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from graphwright.graphs.molecules import BONDS
from graphwright.inference import SavedModel
from graphwright.server.drawing import PALETTE, figure_uri, node_colors, picture_uri, to_hex
from graphwright.server.limits import ROWS, RefusedError
from graphwright.server.schema import Example, GivenExample, GivenText, Input, ModelCard, Peak, Sliders
from graphwright.tasks import NamedInput
from graphwright.tasks.page import AnyPage, Case, Ion, ShownInput, Wish

SUFFIXES = (
    ".smi",
    ".txt",
    ".csv",
    ".tsv",
    ".npy",
    ".mgf",
    ".msp",
    ".mzml",
    ".json",
    ".jsonl",
    ".ndjson",
    ".parquet",
)
"""The only part of a file's name that counts."""
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")
LINE = 20_000
"""Characters of a line of a table."""
HOPELESS = 1000
"""Inputs that cannot be read, of one file, after which no more are tried."""
PROBLEMS = 3
"""Inputs that cannot be read, of one file, that are told."""


def card(name: str, origin: str, model: SavedModel) -> ModelCard:
    """What the page needs to know of a model."""
    task, page = model.task, model.task.page
    wishes = page.range()
    return ModelCard(
        name=name,
        origin="run" if origin == "run" else "shipped",
        kind=str(model.run.task.kind),
        title=page.title,
        summary=task.summary,
        standing=_sentence(model.standing),
        limits=task.limits,
        files=page.files,
        takes_text=page.takes_text,
        text_label=page.text_label,
        one_line=page.one_line,
        unseen=page.unseen,
        answer=page.answer,
        colors=_card_colors(model),
        examples=[Example(title=title, text=text) for title, text in page.examples()],
        adducts=list(page.adducts),
        sliders=None if wishes is None else Sliders(**asdict(wishes)),
    )


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].removesuffix('.')}." if words else ""


def _card_colors(model: SavedModel) -> dict[str, str]:
    """By which nodes are told apart beside the plan: none where elements have symbols, or labels are too many."""
    names = model.task.vocabulary.nodes
    if model.task.vocabulary.edges == BONDS or not 1 < len(names) <= len(PALETTE):
        return {}
    return node_colors(names, hex_colors(model.task.page))


def hex_colors(page: AnyPage) -> dict[str, str]:
    """Colours of node labels that are colours themselves."""
    return {name: to_hex(channels) for name, channels in page.colors.items()}


def shown_input(shown: ShownInput) -> Input:
    """As the page takes it."""
    image = None if shown.picture is None else picture_uri(shown.picture)
    return Input(
        name=shown.name,
        caption=shown.caption,
        image=image if shown.figure is None else figure_uri(shown.figure),
        text=shown.text,
        bits=None if shown.bits is None else list(shown.bits),
        peaks=None if shown.peaks is None else [Peak(**asdict(peak)) for peak in shown.peaks],
        precursor=shown.precursor,
    )


def case_of_text(model: SavedModel, given: GivenText) -> Case:
    page = model.task.page
    if page.takes_text is None:
        raise RefusedError(f"This model reads {page.files}, not text: choose a file, or take an example.")
    ion = Ion(given.formula, given.adduct, given.precursor)
    try:
        text = page.pasted(given.text, ion)
    except ValueError as error:
        raise RefusedError(_sentence(str(error))) from error
    with _written(text.encode(), page.text_suffix) as path:
        return _file_case(page, path, given.row, "the pasted text", given.formula)


def case_of_file(model: SavedModel, data: bytes, name: str, row: int) -> Case:
    """A case from a file's bytes. Only a known ending of its name counts; the rest is for messages."""
    if not data:
        raise RefusedError("The file is empty.")
    if data[:2] == b"\x1f\x8b":
        raise RefusedError("The file is compressed (gzip): unpack it first.")
    shown, page = _shown(name), model.task.page
    suffix = next((each for each in SUFFIXES if shown.lower().endswith(each)), "")
    if suffix in TABLES and max(map(len, data.splitlines()), default=0) > LINE:
        raise RefusedError(f"{shown}: a line has more than {LINE:,} characters.")
    try:
        data, suffix = page.accepted(data, suffix)
    except ValueError as error:
        raise RefusedError(f"{shown}: {error}.") from error
    with _written(data, suffix) as path:
        return _file_case(page, path, row, shown, "")


def case_of_example(model: SavedModel, given: GivenExample) -> Case:
    """A case from an unseen sample of the model's own task."""
    try:
        return model.task.page.example(given.number, Wish(given.regions, given.noise))
    except ValueError as error:
        raise RefusedError(str(error)) from error


def _file_case(page: AnyPage, path: Path, row: int, shown: str, formula: str) -> Case:
    """The input of this number, from 1, of our file, which messages call `shown`."""
    inputs: list[NamedInput] = []
    problems: list[str] = []
    try:
        for each in page.inputs(path, formula):
            if isinstance(each, NamedInput):
                inputs.append(each)
            else:
                problems.append(_told(each.message, path, shown))
            if len(inputs) == max(ROWS, row) or len(problems) == HOPELESS:
                break
        if not inputs:
            raise RefusedError(problems[0] if problems else f"{shown}: {page.empty}.")
        if row > len(inputs):
            raise RefusedError(f"There is no input {row}: {len(inputs)} could be read.")
        names = [_renamed(each.name, path, shown)[:60] for each in inputs[:ROWS]]
        name = names[row - 1] if row <= len(names) else f"input {row}"
        case = page.case(inputs[row - 1], name, path)
    except RefusedError:
        raise
    except (ValueError, OSError, ImportError) as error:
        raise RefusedError(_told(error, path, shown)) from error
    return replace(case, notes=[*problems[:PROBLEMS], *case.notes], rows=names, row=row)


# Files, names, messages.


@contextmanager
def _written(data: bytes, suffix: str) -> Iterator[Path]:
    """The bytes as a file of a name that is ours."""
    with TemporaryDirectory(prefix="graphwright-") as folder:
        path = Path(folder) / f"input{suffix}"
        path.write_bytes(data)
        yield path


def _shown(name: str) -> str:
    """A file's name for messages: the last part, what can be printed of it."""
    last = PurePosixPath(name.replace("\\", "/")).name
    return "".join(letter for letter in last if letter.isprintable())[-60:] or "the file"


def _told(message: object, path: Path, shown: str) -> str:
    """A message about our file, as one about theirs."""
    text = _renamed(str(message), path, shown)
    return text if text.endswith(".") else f"{text}."


def _renamed(text: str, path: Path, shown: str) -> str:
    return text.replace(str(path), shown).replace(path.name, shown)
