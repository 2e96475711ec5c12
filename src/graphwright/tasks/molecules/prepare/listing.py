"""rejected.csv.gz: every rejected row, if asked for."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
from collections.abc import Iterable
from pathlib import Path

from graphwright.files import replacing
from graphwright.tasks.molecules.prepare.rejection import LONGEST_TEXT, Rejection

LISTING, PARTS = "rejected.csv.gz", "rejected"
COLUMNS = ("source", "row", "id", "text", "reason", "detail")


def write_part(folder: Path, name: str, source: str, rejections: Iterable[Rejection]) -> None:
    """The rejections of one shard, in a file of their own until the run is complete."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for rejection in rejections:
        shown = (rejection.text[:LONGEST_TEXT], str(rejection.reason), rejection.detail[:LONGEST_TEXT])
        writer.writerow((source, rejection.row, rejection.id, *shown))
    parts = folder / PARTS
    parts.mkdir(exist_ok=True)
    with replacing(parts / name) as draft:
        draft.write_bytes(gzip.compress(text.getvalue().encode("utf-8", "replace"), mtime=0))


def join_parts(folder: Path) -> None:
    """One listing of all parts; gzip allows its members to be laid end to end."""
    with replacing(folder / LISTING) as draft, draft.open("wb") as joined:
        joined.write(gzip.compress((",".join(COLUMNS) + "\n").encode(), mtime=0))
        for part in sorted((folder / PARTS).glob("*.csv.gz")):
            with part.open("rb") as file:
                shutil.copyfileobj(file, joined)


def remove_parts(folder: Path) -> None:
    """The parts, once they are joined."""
    shutil.rmtree(folder / PARTS, ignore_errors=True)
