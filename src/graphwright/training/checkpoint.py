"""Checkpoints: tensors in safetensors, the rest in JSON, committed atomically, checked on reading."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

FORMAT = 1


class CheckpointError(ValueError):
    """A checkpoint that cannot be trusted: missing, truncated or altered."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Tensors by name, and JSON-able facts beside them."""

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write `path`.json, which names its tensor file and that file's checksum.

    The tensor file comes first under a name of its own; renaming the JSON into place is the one moment at which
    the new checkpoint replaces the old, so a kill at any time leaves a whole one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name}.draft"
    save_file({name: tensor.detach().contiguous().cpu() for name, tensor in checkpoint.tensors.items()}, draft)
    digest = _digest(draft)
    tensor_file = path.parent / f"{path.name}-{digest[:12]}.safetensors"
    _sync(draft)
    os.replace(draft, tensor_file)
    record = {"format": FORMAT, "tensors": tensor_file.name, "sha256": digest, "facts": dict(checkpoint.facts)}
    note = path.parent / f".{path.name}.json.draft"
    note.write_text(json.dumps(record, indent=2) + "\n")
    _sync(note)
    os.replace(note, _note(path))
    for other in path.parent.glob(f"{path.name}-*.safetensors"):
        if other != tensor_file:
            other.unlink()


def load(path: Path) -> Checkpoint:
    """Read a checkpoint, or raise `CheckpointError` naming the file at fault."""
    note = _note(path)
    try:
        record = json.loads(note.read_text())
    except FileNotFoundError as error:
        raise CheckpointError(f"{note} does not exist") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{note} is damaged: {error}") from error
    if not isinstance(record, dict) or not {"format", "tensors", "sha256", "facts"} <= set(record):
        raise CheckpointError(f"{note} is not a checkpoint of graphwright")
    if record["format"] != FORMAT:
        raise CheckpointError(f"{note} has format {record['format']}, this version reads {FORMAT}")
    tensor_file = path.parent / Path(str(record["tensors"])).name
    if not tensor_file.exists():
        raise CheckpointError(f"{tensor_file}, which {note} names, does not exist")
    if _digest(tensor_file) != record["sha256"]:
        raise CheckpointError(f"{tensor_file} is truncated or altered: its checksum is not the one in {note}")
    try:
        return Checkpoint(load_file(tensor_file), record["facts"])
    except SafetensorError as error:
        raise CheckpointError(f"{tensor_file} is damaged: {error}") from error


def exists(path: Path) -> bool:
    """Whether a checkpoint was committed under this name."""
    return _note(path).exists()


def _note(path: Path) -> Path:
    return path.parent / f"{path.name}.json"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
