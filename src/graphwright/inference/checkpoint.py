"""Checkpoints: tensors in safetensors, the rest in JSON, committed atomically, checked on reading."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from graphwright.files import WriteError, commit_draft, draft_of, replacing, sha256_of, writing
from graphwright.inference.memory_limit import refuse_larger

FORMAT = 1
ATTEMPTS = 5
"""Times to start reading again while a run in progress replaces the checkpoint being read."""
SCALES = ":scales"
"""Ends the name of the scales (rows, 1) of a matrix whose rows are whole numbers."""
LARGEST = 127


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
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(path)
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in checkpoint.tensors.items()}
    try:
        with writing(path):
            save_file(tensors, draft)
            digest = sha256_of(draft)
            tensor_file = path.parent / f"{path.name}-{digest[:12]}.safetensors"
            commit_draft(draft, tensor_file)
    except SafetensorError as error:
        raise WriteError(f"{path} cannot be written: {error}") from error
    finally:
        # On a full disk what was half written is in the way of everything else.
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    facts = dict(checkpoint.facts)
    record = {
        "format": FORMAT,
        "tensors": tensor_file.name,
        "sha256": digest,
        "facts_sha256": _facts_digest(facts),
        "facts": facts,
    }
    with replacing(_note(path)) as note:
        note.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        shutil.copymode(note, tensor_file)  # whoever may read the one may read the other
    for other in path.parent.glob(f"{path.name}-*.safetensors"):
        if other != tensor_file:
            other.unlink()


def load(path: Path) -> Checkpoint:
    """Read a checkpoint, or raise `CheckpointError` naming the file at fault."""
    for _ in range(ATTEMPTS):
        record = _read_note(path)
        try:
            return _load_tensors(path, record)
        except CheckpointError:
            # A run that goes on may have replaced the checkpoint after its note was read.
            if _read_note(path) == record:
                raise
    raise CheckpointError(f"{_note(path)} is replaced faster than it can be read")


def exists(path: Path) -> bool:
    """Whether a checkpoint was committed under this name."""
    return _note(path).exists()


def _read_note(path: Path) -> dict[str, Any]:
    note = _note(path)
    try:
        record = json.loads(note.read_text(encoding="utf-8"))
        facts = record.get("facts") if isinstance(record, dict) else None
        digest = _facts_digest(facts) if isinstance(facts, dict) else None
    except FileNotFoundError as error:
        raise CheckpointError(f"{note} does not exist") from error
    # Of bytes that are no text, of text that is no JSON and of numbers with too many digits alike.
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{note} is damaged: {error}") from error
    if not isinstance(record, dict) or not {"format", "tensors", "sha256", "facts"} <= set(record):
        raise CheckpointError(f"{note} is not a checkpoint of graphwright")
    if record["format"] != FORMAT:
        raise CheckpointError(f"{note} has format {record['format']}, this version reads {FORMAT}")
    # Notes older than the facts' checksum have none.
    if digest is None or record.get("facts_sha256") not in (None, digest):
        raise CheckpointError(f"{note} is altered: the checksum of its facts is not the one it names")
    return record


def _load_tensors(path: Path, record: dict[str, Any]) -> Checkpoint:
    note, tensor_file = _note(path), path.parent / Path(str(record["tensors"])).name
    if not tensor_file.is_file():
        raise CheckpointError(f"{tensor_file}, which {note} names, does not exist")
    refuse_larger(tensor_file.stat().st_size, f"{tensor_file} takes", "free some, or take a smaller model")
    try:
        if sha256_of(tensor_file) != record["sha256"]:
            raise CheckpointError(f"{tensor_file} is truncated or altered: its checksum is not the one in {note}")
        return Checkpoint(load_file(tensor_file), record["facts"])
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{tensor_file} is damaged: {error}") from error


def _note(path: Path) -> Path:
    return path.parent / f"{path.name}.json"


def _facts_digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def compacted(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices of single precision as whole numbers of 8 bits and a scale per row, the rest in half precision.

    A model is handed on more often than it is trained, and a weight has fewer certain digits than these.
    """
    result = {}
    for name, tensor in weights.items():
        if tensor.dtype != torch.float32:
            result[name] = tensor
        elif tensor.ndim == 2:
            scales = (tensor.abs().amax(1, keepdim=True) / LARGEST).clamp_min(torch.finfo(tensor.dtype).tiny)
            result[name] = (tensor / scales).round().to(torch.int8)
            result[name + SCALES] = scales
        else:
            result[name] = tensor.half()
    return result


def expanded(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights that were compacted; others as they are, for loading takes half precision back."""
    return {
        name: tensor * tensors[name + SCALES] if name + SCALES in tensors else tensor
        for name, tensor in tensors.items()
        if not name.endswith(SCALES)
    }
