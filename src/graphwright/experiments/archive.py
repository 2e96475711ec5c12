"""Finished runs of other machines: records that were committed beside a page become finished jobs again."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from graphwright.experiments.job import (
    FORMAT,
    RECORD,
    SAMPLES,
    Job,
    JobBusyError,
    Store,
    lock_job,
    read_json_object,
)
from graphwright.files import replacing, write_json, write_text
from graphwright.settings import Run
from graphwright.settings.choices import AnyTask

RECORDS = "records"
"""The folder of the records beside a table."""
PACKED = ".csv.gz"
"""The figures of every sample, beside a record of the same name."""


def pack_records(keys: list[str], store: Store, folder: Path) -> None:
    """The records of some jobs, and no others, beside a page, with the figures of their samples where known."""
    records = folder / RECORDS
    records.mkdir(parents=True, exist_ok=True)
    for stale in (*records.glob("*.json"), *records.glob(f"*{PACKED}")):
        if stale.name.partition(".")[0] not in keys:
            stale.unlink()
    for key in keys:
        write_text(records / f"{key}.json", (store.root / key / RECORD).read_text(encoding="utf-8"))
        samples = store.root / key / SAMPLES
        if samples.is_file():
            with replacing(records / f"{key}{PACKED}") as draft:
                # Without a time in it the same figures are the same bytes.
                draft.write_bytes(gzip.compress(samples.read_bytes(), mtime=0))


def take_over(folder: Path, store: Store) -> int:
    """Make finished jobs of all records under a folder that the store does not have; the result is how many.

    The folder holds pages with their records, or runs. A record counts for the job that its settings mean today,
    whatever it was called. Records of an older format, or with settings that there are no more, count for nothing.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder of records")
    taken = 0
    for path in sorted([*folder.rglob(f"{RECORDS}/*.json"), *folder.rglob(f"*/{RECORD}")]):
        record = read_json_object(path) or {}
        for job in _jobs_of(record):
            # Another process that is at it leaves a record of its own.
            with suppress(JobBusyError):
                taken += _finish(store.folder(job), record | {"key": job.key}, path)
    return taken


def _finish(home: Path, record: dict[str, Any], path: Path) -> bool:
    """A record and its samples in a job's folder; whether they were not there."""
    if (home / RECORD).exists():
        return False
    home.mkdir(parents=True, exist_ok=True)
    with lock_job(home):
        if (home / RECORD).exists():
            return False
        samples = _samples(path)
        if samples is not None:
            write_text(home / SAMPLES, samples)
        write_json(home / RECORD, record)
    return True


def _samples(path: Path) -> str | None:
    """The figures of every sample that are kept beside a record: packed, or as a run leaves them."""
    if path.name == RECORD:
        beside = path.with_name(SAMPLES)
        return beside.read_text(encoding="utf-8") if beside.is_file() else None
    packed = path.with_suffix(PACKED)
    return gzip.decompress(packed.read_bytes()).decode("utf-8") if packed.is_file() else None


def _jobs_of(record: dict[str, Any]) -> Iterator[Job]:
    """The job that a record is of, if it is of one that there still is."""
    if record.get("format") != FORMAT or "test" not in record:
        return
    samples, baseline = record.get("samples", record["test"]["samples"]), record.get("baseline")
    try:
        if baseline is None:
            yield Job(Run.model_validate(record["settings"]), samples)
        else:
            task = TypeAdapter(AnyTask).validate_python(record["settings"]["task"])
            yield Job(Run(task=task), samples, baseline["name"], baseline["settings"]["references"])
    except ValidationError:
        return
