"""What a person sends (text, a file, the wish for an example) as a case: an input, drawn, and its truth."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from graphwright.graphs import Graph
from graphwright.graphs.molecules import MoleculeError, graph_from_molecule, parse_smiles
from graphwright.inference import SavedModel
from graphwright.server.drawing import figure_uri, picture_uri
from graphwright.server.limits import PEAKS, PIXELS, ROWS, SMILES, RefusedError
from graphwright.server.schema import Example, GivenExample, GivenText, Input, ModelCard, Peak, Sliders
from graphwright.spectra import Spectrum, SpectrumError, annotate, clean, read_spectra
from graphwright.tasks import BadInput, NamedInput
from graphwright.tasks.molecules.fingerprint import bits_of_tokens
from graphwright.tasks.spectra.prepared import murcko_scaffold

UNSEEN = 500
"""Samples of a test split among which an example is chosen."""
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
PICTURES = ("PNG", "JPEG", "WEBP", "BMP", "GIF")
"""Formats that Pillow reads without the help of other programs."""
LINE = 20_000
"""Characters of a line of a table."""
MOST_NOISE = 0.3
CAFFEINE = """BEGIN IONS
TITLE=caffeine
PEPMASS=195.0877
FORMULA=C8H10N4O2
ADDUCT=[M+H]+
COLLISION_ENERGY=35
SMILES=Cn1cnc2c1c(=O)n(C)c(=O)n2C
69.0447 12
83.0604 10
110.0713 40
138.0662 100
195.0877 60
END IONS
"""
MOLECULES = (
    ("Caffeine", "Cn1cnc2c1c(=O)n(C)c(=O)n2C"),
    ("Aspirin", "CC(=O)Oc1ccccc1C(=O)O"),
    ("Paracetamol", "CC(=O)Nc1ccc(O)cc1"),
    ("Nicotine", "CN1CCCC1c1cccnc1"),
    ("Ibuprofen", "CC(C)Cc1ccc(C(C)C(=O)O)cc1"),
    ("Toluene", "Cc1ccccc1"),
    ("Histamine", "NCCc1c[nH]cn1"),
    ("Uracil", "O=c1cc[nH]c(=O)[nH]1"),
    ("Proline", "OC(=O)C1CCCN1"),
)


@dataclass(frozen=True, eq=False)
class Case:
    """given: what the model takes. truth: the graph that it should find, if that is known.

    positions: (t, 2) where the truth's nodes stand in a picture of this side. in_scope: whether the model can know
    such graphs at all. rows: names of all inputs that came with this one, which is `row`, from 1.
    """

    given: Any
    input: Input
    truth: Graph | None = None
    positions: Any = None
    side: float | None = None
    in_scope: bool = True
    notes: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    row: int = 1


def card(name: str, origin: str, model: SavedModel) -> ModelCard:
    """What the page needs to know of a model."""
    task = model.task
    kind = str(model.run.task.kind)
    known = {
        "coloring": ("From a picture to its graph", None),
        "fingerprint": ("From a fingerprint to its molecule", "SMILES, or 2048 zeros and ones; one a line"),
        "spectrum": (
            "From a mass spectrum to its scaffold",
            "a peak list, or a record in a file's format",
        ),
    }
    columns = ", ".join(getattr(getattr(task, "form", None), "columns", ())) or "names and values"
    title, text = known.get(kind, ("From a row of a table to its graph", f"a row as JSON: {columns}"))
    return ModelCard(
        name=name,
        origin="run" if origin == "run" else "shipped",
        kind=kind,
        title=title,
        summary=task.summary,
        limits=task.limits,
        files="square colour pictures (PNG, JPEG, WebP, BMP, GIF)" if kind == "coloring" else task.files,
        takes_text=text,
        examples=_examples(kind, model),
        adducts=getattr(task, "adducts", []),
        sliders=_sliders(model) if kind == "coloring" else None,
    )


def case_of_text(model: SavedModel, given: GivenText) -> Case:
    match str(model.run.task.kind):
        case "coloring":
            raise RefusedError("This model reads pictures, not text: drop a picture, or take an example.")
        case "fingerprint":
            return _molecule_case(model, given.text, given.row)
        case "spectrum":
            with _written(_as_record(given).encode(), "") as path:
                return _spectrum_case(model, path, given.row, given.formula, "the pasted text")
        case _:
            with _written(_json_lines(given.text).encode(), ".jsonl") as path:
                return _file_case(model, path, given.row, "the pasted text")


def case_of_file(model: SavedModel, data: bytes, name: str, row: int) -> Case:
    """Of a file's bytes. Of its name only the ending counts, if it is a known one; the rest is for messages."""
    if not data:
        raise RefusedError("The file is empty.")
    if data[:2] == b"\x1f\x8b":
        raise RefusedError("The file is compressed (gzip): unpack it first.")
    shown = _shown(name)
    suffix = next((each for each in SUFFIXES if shown.lower().endswith(each)), "")
    kind = str(model.run.task.kind)
    if kind == "coloring":
        data, suffix = _checked_picture(data, shown), ".png"
    elif kind == "fingerprint" and suffix in ("", ".smi", ".txt"):
        return _molecule_case(model, _decoded(data, shown), row)
    elif suffix in (".csv", ".tsv", ".jsonl", ".ndjson") and max(map(len, data.splitlines()), default=0) > LINE:
        raise RefusedError(f"{shown}: a line has more than {LINE:,} characters.")
    with _written(data, suffix) as path:
        if kind == "spectrum":
            return _spectrum_case(model, path, row, "", shown)
        return _file_case(model, path, row, shown)


def case_of_example(model: SavedModel, given: GivenExample) -> Case:
    """Of an unseen sample of the model's own task."""
    kind = str(model.run.task.kind)
    if kind == "coloring":
        return _coloring_example(model, given)
    samples = model.task.data("test", limit=UNSEEN)
    if not len(samples):
        raise RefusedError("There is no test sample to take as an example.")
    at = given.number % min(len(samples), UNSEEN)
    sample = samples[at]
    if kind == "fingerprint":
        return _molecule_case(model, sample.smiles, 1)
    value = model.task.input_of(sample)
    truth = samples.batch([at])[1].graphs()[0]
    if kind == "spectrum":
        shown = _encoded_spectrum(model, value, f"{sample.identifier}, which the model has not seen")
        return Case([value], shown, truth)
    return Case([value], _figure_input(model, value, f"row {at + 1} of the test split"), truth)


# Pictures of coloured regions.


def _sliders(model: SavedModel) -> Sliders:
    config = model.task.config  # type: ignore[attr-defined]
    return Sliders(
        least_regions=config.min_size,
        most_regions=config.capacity,
        noise=config.noise,
        most_noise=MOST_NOISE,
    )


def _coloring_example(model: SavedModel, given: GivenExample) -> Case:
    from graphwright.tasks.coloring import ColoringDataset

    config = model.task.config  # type: ignore[attr-defined]
    regions = given.regions or config.capacity
    if not config.min_size <= regions <= config.capacity:
        raise RefusedError(f"This model knows pictures of {config.min_size} to {config.capacity} regions.")
    noise = config.noise if given.noise is None else min(given.noise, MOST_NOISE)
    # Another number of regions in a picture of the same side.
    config = replace(config, capacity=regions, min_size=regions, noise=noise)
    data = ColoringDataset(config, "test", seed=model.run.task.seed)  # type: ignore[attr-defined]
    sample = data[given.number % len(data)]
    shown = Input(
        name=f"example {given.number}",
        caption=f"{config.side} × {config.side} pixels, {regions} regions, noise {noise:.2f}",
        image=picture_uri(sample.image),
    )
    return Case(
        [model.task.input_of(sample)], shown, sample.graph, model.task.positions(sample), float(config.side)
    )


def _checked_picture(data: bytes, shown: str) -> bytes:
    """The picture as PNG, if it is one of a few formats and not too large."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # looked at below, without a warning
    try:
        with Image.open(io.BytesIO(data), formats=PICTURES) as opened:
            if max(opened.size) > PIXELS:
                raise RefusedError(
                    f"{shown}: {opened.width} × {opened.height} pixels; at most {PIXELS} × {PIXELS} are read."
                )
            opened.load()
            picture = opened.convert("RGB") if opened.mode in ("CMYK", "YCbCr", "HSV") else opened
            buffer = io.BytesIO()
            picture.save(buffer, format="PNG")
    except RefusedError:
        raise
    except Exception as error:  # Pillow's plugins raise whatever they please at damaged files.
        raise RefusedError(f"{shown}: not a picture that can be read (PNG, JPEG, WebP, BMP or GIF).") from error
    return buffer.getvalue()


# Molecules.


def _molecule_case(model: SavedModel, text: str, row: int) -> Case:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise RefusedError("There is no molecule in it: a SMILES such as CCO was expected.")
    at = _row(row, len(lines))
    word, _, name = lines[at].partition(" ")
    rows = [line.split()[0][:40] for line in lines[:ROWS]]
    tokens: Any
    if len(word) == 2048 and not set(word) - {"0", "1"}:
        tokens = model.task.inputs(word)
        bits = bits_of_tokens(tokens)[0].tolist()
        shown = Input(name=name or "fingerprint", caption=f"{len(bits)} of 2048 bits", bits=bits)
        return Case(tokens, shown, rows=rows, row=at + 1)
    if len(word) > SMILES:
        raise RefusedError(f"Line {at + 1} has {len(word):,} characters; a SMILES of at most {SMILES} is read.")
    try:
        molecule = parse_smiles(word)
    except MoleculeError as error:
        raise RefusedError(f"Line {at + 1}: {error.detail}.") from error
    tokens = model.task.inputs(word)
    bits = bits_of_tokens(tokens)[0].tolist()
    shown = Input(
        name=name.strip() or word[:60],
        caption=f"{len(bits)} of 2048 bits; the model sees only these, not the molecule",
        text=word,
        bits=bits,
    )
    notes = [_sentence(remark) for remark in model.task.remarks(word)]
    try:
        truth = graph_from_molecule(molecule, model.vocabulary, model.task.capacity)
    except MoleculeError:
        return Case(tokens, shown, in_scope=False, notes=notes, rows=rows, row=at + 1)
    return Case(tokens, shown, truth, notes=notes, rows=rows, row=at + 1)


# Spectra.


def _as_record(given: GivenText) -> str:
    """A bare list of peaks, made a record with what the form says; anything else as it is."""
    lines = [line for line in given.text.splitlines() if line.strip()]
    if not all(re.match(r"\s*[0-9.]", line) for line in lines):
        return given.text
    fields = [
        ("TITLE", "peak list"),
        ("PEPMASS", "" if given.precursor is None else str(given.precursor)),
        ("FORMULA", given.formula),
        ("ADDUCT", given.adduct),
    ]
    head = [f"{name}={value}" for name, value in fields if value]
    return "\n".join(["BEGIN IONS", *head, *lines, "END IONS", ""])


def _spectrum_case(model: SavedModel, path: Path, row: int, formula: str, shown: str) -> Case:
    problems: list[SpectrumError] = []
    try:
        found = list(islice(read_spectra(path, on_error=problems.append, size_limit=2**28), max(ROWS, row)))
    except (ValueError, OSError, ImportError) as error:
        raise RefusedError(_told(error, path, shown)) from error
    if not found:
        told = _told(problems[0], path, shown) if problems else f"{shown}: there is no MS2 spectrum in it."
        raise RefusedError(told)
    at = _row(row, len(found))
    spectrum = found[at]
    if formula and spectrum.formula is None:
        spectrum = replace(spectrum, formula=formula)
    notes = [] if not problems else [f"{len(problems)} of the spectra cannot be read: {problems[0].problem}."]
    if spectrum.formula is None:
        notes.append("Without the molecular formula the model knows less, and no peak is explained.")
    elif spectrum.adduct is None:
        notes.append("Without the adduct no peak is explained.")
    if spectrum.smiles and len(spectrum.smiles) > SMILES:
        spectrum = replace(spectrum, smiles=None)
    notes += map(_sentence, model.task.remarks(spectrum))
    truth = None if spectrum.smiles is None else _scaffold(model, spectrum.smiles)
    try:
        cleaned = clean(spectrum)
    except ValueError as error:
        raise RefusedError(_told(error, path, shown)) from error
    rows = [each.identifier or each.name or f"spectrum {at + 1}" for at, each in enumerate(found[:ROWS])]
    drawn = _spectrum_input(cleaned, rows[at] if at < len(rows) else f"spectrum {at + 1}")
    return Case([spectrum], drawn, truth, notes=notes, rows=[name[:60] for name in rows], row=at + 1)


def _scaffold(model: SavedModel, smiles: str) -> Graph | None:
    """Of the molecule that a spectrum says it is of, where that is one to compare with."""
    try:
        scaffold = murcko_scaffold(parse_smiles(smiles))
        return graph_from_molecule(parse_smiles(scaffold.smiles), model.vocabulary, model.task.capacity)
    except MoleculeError:
        return None


def _spectrum_input(spectrum: Spectrum, name: str) -> Input:
    count = len(spectrum)
    formulas: list[str | None] = [None] * count
    errors: list[float | None] = [None] * count
    try:
        explained = annotate(spectrum)
        formulas = [None if part is None else str(part) for part in explained.formulas()]
        errors = [None if np.isnan(ppm) else round(float(ppm), 2) for ppm in explained.ppm]
    except ValueError:  # no formula, no adduct, or one that cannot be used
        pass
    peaks = [
        Peak(mz=round(float(mz), 5), intensity=round(float(height), 5), formula=part, error=error)
        for mz, height, part, error in zip(spectrum.mzs, spectrum.intensities, formulas, errors, strict=True)
    ]
    said = [spectrum.formula, spectrum.adduct]
    if spectrum.collision_energy is not None:
        said.append(f"{spectrum.collision_energy:.0f} eV")
    return _peaks_input(name, peaks, spectrum.precursor_mz, [word for word in said if word])


def _encoded_spectrum(model: SavedModel, given: Any, name: str) -> Input:
    facts = model.task.facts(given)
    peaks = [Peak(mz=each["mz"], intensity=each["intensity"], formula=each["formula"]) for each in facts["peaks"]]
    said = [facts["formula"]] if facts["formula"] else []
    return _peaks_input(name, peaks, float(given.precursor[0]) * 1000 or None, said)


def _peaks_input(name: str, peaks: list[Peak], precursor: float | None, said: list[str]) -> Input:
    explained = sum(peak.formula is not None for peak in peaks)
    words = [*said, f"{explained} of {len(peaks)} peaks explained" if explained else f"{len(peaks)} peaks"]
    kept = sorted(sorted(peaks, key=lambda peak: -peak.intensity)[:PEAKS], key=lambda peak: peak.mz)
    return Input(name=name[:80], caption=", ".join(words), peaks=kept, precursor=precursor)


# Rows of tables, and whatever else a task reads from files.


def _file_case(model: SavedModel, path: Path, row: int, shown: str) -> Case:
    try:
        found = list(islice(model.task.read(path), max(ROWS, row)))
    except (ValueError, OSError, ImportError) as error:
        raise RefusedError(_told(error, path, shown)) from error
    inputs = [each for each in found if isinstance(each, NamedInput)]
    problems = [_told(each.message, path, shown) for each in found if isinstance(each, BadInput)]
    if not inputs:
        raise RefusedError(problems[0] if problems else f"{shown}: there is no input in it.")
    at = _row(row, len(inputs))
    chosen = inputs[at]
    names = [_renamed(each.name, path, shown)[:60] for each in inputs[:ROWS]]
    name = names[at] if at < len(names) else f"input {at + 1}"
    kind = str(model.run.task.kind)
    notes = problems[:3]
    if kind == "coloring":
        side = int(chosen.value.shape[-1])
        drawn = Input(name=name, caption=f"read as {side} × {side} pixels", image=picture_uri(chosen.value))
    elif kind == "fingerprint":
        tokens: Any = model.task.inputs([chosen.value])
        bits = bits_of_tokens(tokens)[0].tolist()
        drawn = Input(name=name, caption=f"{len(bits)} of 2048 bits", bits=bits)
    else:
        drawn = _figure_input(model, chosen.value, name)
    truth = _true_graph(model, path, chosen) if kind not in ("coloring", "fingerprint") else None
    return Case([chosen.value], drawn, truth, notes=notes, rows=names, row=at + 1)


def _true_graph(model: SavedModel, path: Path, chosen: NamedInput) -> Graph | None:
    """Of an input whose file has graphs as well."""
    try:
        samples = model.task.data_from(path)
    except ValueError:  # inputs alone
        return None
    found = (samples[at] for at in range(len(samples)))
    return next((each.graph for each in found if f"{path}:{each.name}" == chosen.name), None)


def _figure_input(model: SavedModel, value: Any, name: str) -> Input:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4, 3.0), layout="constrained")
    model.task.draw_input(value, figure.subplots())
    return Input(name=name, caption="the input as the model reads it", image=figure_uri(figure))


def _json_lines(text: str) -> str:
    """One or several JSON objects, however they are broken into lines, as one a line."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text  # one a line already, or an error that the reader words better
    return "\n".join(json.dumps(each) for each in (found if isinstance(found, list) else [found]))


def _examples(kind: str, model: SavedModel) -> list[Example]:
    if kind == "spectrum":
        return [Example(title="Caffeine", text=CAFFEINE)]
    if kind != "fingerprint":
        return []
    found = []
    for title, smiles in MOLECULES:
        try:
            graph_from_molecule(parse_smiles(smiles), model.vocabulary, model.task.capacity)
        except MoleculeError:
            continue
        found.append(Example(title=title, text=smiles))
    return found[:5]


# Files, names, messages.


def _sentence(remark: str) -> str:
    """A remark of a task as the page says it."""
    told, colon, reason = remark.partition("out of scope: ")
    if colon and not told:
        return f"Out of this model's scope: {reason}. It answers all the same, and is wrong."
    return f"{remark[0].upper()}{remark[1:]}."


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


def _decoded(data: bytes, shown: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RefusedError(f"{shown}: not text; a SMILES a line was expected.") from error


def _row(row: int, count: int) -> int:
    if row > count:
        raise RefusedError(f"There is no input {row}: {count} could be read.")
    return row - 1
