"""`graphwright data`: look at a data set, prepare large corpora, count atom environments."""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn, track
from rich.progress import Progress as ProgressBar
from rich.table import Table

from graphwright.cli.shared import DONE, INTERRUPTED, take_overrides
from graphwright.files import refuse_overwriting, replacing
from graphwright.graphs import save_figure
from graphwright.settings import Override, load_run
from graphwright.tasks import SPLITS, RejectedRow, UnusableError, task_of
from graphwright.training.processes import Interrupts

if TYPE_CHECKING:
    from graphwright.tasks.molecules.prepare import Engine, PreparationProgress, Prepared, PrepareSettings, Source

MEGABYTE = 2**20


def declare(parser: argparse.ArgumentParser) -> None:
    parser.description = "Look at a data set."
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    inspect = actions.add_parser(
        "inspect",
        help="statistics, what is unusable and why, and a sheet of examples",
        description="Print the statistics of a task's samples and how many rows of a file are unusable for what "
        "reason, and draw a sheet of examples. Settings are given as to train: --task.inputs a,b.",
    )
    inspect.add_argument(
        "source",
        metavar="PRESET|CONFIG|DATA",
        help="a preset, e.g. coloring20 or qm9, a YAML file, a file with SMILES or spectra, your own table of "
        "inputs and graphs, or a prepared folder",
    )
    inspect.add_argument("--split", choices=SPLITS, default="train")
    inspect.add_argument("--samples", type=int, default=2000, help="how many to look at (default 2000)")
    inspect.add_argument("--out", type=Path, metavar="PNG", help="where the sheet goes (default SOURCE-sheet.png)")
    inspect.add_argument("--rejected", type=Path, metavar="CSV", help="list the unusable rows in this file")
    inspect.set_defaults(run=run_inspect)
    add_prepare(actions)
    add_environments(actions)


OWN = ("--split", "--samples", "--out", "--rejected", "--help")


def split_inspect(words: Sequence[str]) -> tuple[list[str], list[Override]]:
    """The command line without the settings in it, and these: `--task.inputs` as training takes it."""
    return take_overrides(words, OWN)


def run_inspect(arguments: argparse.Namespace) -> int:
    console = Console()
    if arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1, got {arguments.samples}")
    task = task_of(load_run(arguments.source, arguments.overrides).task)
    refuse_overwriting([Path(arguments.source)], rejected=arguments.rejected, out=arguments.out)
    try:
        explained, rejected = task.explained(), task.rejections()
    except UnusableError as error:
        _tell(console, error.rejected)
        if arguments.rejected is not None:
            _list(arguments.rejected, error.rejected)
            console.print(f"wrote {arguments.rejected}")
        raise
    # Before the samples: where there is none in this split, this says why.
    if explained:
        console.print(_table(explained))
        _tell(console, rejected)
    whole = task.data(arguments.split)
    # Not one of the samples looked at may stand in for an unusable row.
    data = task.data(arguments.split, limit=arguments.samples)
    count = min(arguments.samples, len(data))
    rows = task.statistics(data[index] for index in track(range(count), console=console, transient=True))
    rejected = rejected or list(data.rejected)
    console.print(_table([("samples in the split", f"{len(whole):,}"), *rows, *_rejections(rejected)]))
    if arguments.rejected is not None:
        _list(arguments.rejected, rejected)
        console.print(f"wrote {arguments.rejected}")
    out = arguments.out or Path(f"{Path(arguments.source).stem}-sheet.png")
    out.parent.mkdir(parents=True, exist_ok=True)
    save_figure(task.sheet([data[index] for index in range(min(9, count))]), out, dpi=80)
    console.print(f"wrote {out}")
    return 0


def _tell(console: Console, rejected: Sequence[RejectedRow]) -> None:
    for each in rejected:
        console.print(f"unusable: {each.detail}", markup=False, highlight=False, soft_wrap=True)


def _rejections(rejected: Sequence[RejectedRow]) -> list[tuple[str, str]]:
    counts = Counter(each.reason for each in rejected)
    return [(f"unusable: {reason}", f"{count:,}") for reason, count in counts.most_common()]


def _list(path: Path, rejected: Sequence[RejectedRow]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("row", "text", "reason", "detail"))
        writer.writerows((each.row, each.text, each.reason, each.detail) for each in rejected)


def _table(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table(show_header=False)
    for name, value in rows:
        table.add_row(name, value)
    return table


def add_prepare(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "prepare",
        help="large files of molecules to Parquet shards",
        description="Turn files of molecules into Parquet shards of graphs, fingerprints and splits.\n\n"
        "  graphwright data prepare molecules CID-SMILES.gz --out pubchem\n\n"
        "Ctrl-C, or any kill, loses no row: the same command goes on from the last whole shard.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["molecules"], metavar="molecules")
    parser.add_argument(
        "sources",
        nargs="+",
        type=Path,
        metavar="SOURCE",
        help="CID-SMILES, .smi, .smiles, .ism, .txt, .csv, .tsv (each also .gz) or .parquet",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="the folder of the shards")
    parser.add_argument("--smiles-column", metavar="NAME", help="column of the SMILES (default: guessed)")
    parser.add_argument("--id-column", metavar="NAME", help="column of the identifiers (default: guessed)")
    parser.add_argument(
        "--max-atoms", type=int, default=32, metavar="N", help="heavy atoms at most (default %(default)s)"
    )
    parser.add_argument(
        "--elements",
        metavar="SYMBOLS",
        help="elements to keep, comma separated (default C,N,O,F,S,Cl,Br,I,P,B,Si)",
    )
    parser.add_argument(
        "--shard-rows", type=int, default=65_536, metavar="N", help="rows of a source per shard (default 65536)"
    )
    parser.add_argument("--list-rejected", action="store_true", help="write every rejected row to rejected.csv.gz")
    parser.add_argument(
        "--engine",
        choices=["local", "ray"],
        default="local",
        help="processes of this machine, or a Ray cluster (RAY_ADDRESS, else a local one)",
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        metavar="N",
        help="processes to work in (default %(default)s, the cores of this machine)",
    )
    parser.set_defaults(run=run_prepare)


def run_prepare(arguments: argparse.Namespace) -> int:
    """Prepare, and say what came of it."""
    if arguments.processes < 1:
        raise ValueError(f"--processes must be at least 1, got {arguments.processes}")
    _require_rdkit()
    from graphwright.tasks.molecules.prepare import Source, prepare

    sources = [Source.of(path, arguments.smiles_column, arguments.id_column) for path in arguments.sources]
    settings = _settings(arguments)
    console = Console(highlight=False, soft_wrap=True)
    interrupts = Interrupts()
    _refuse_twice(sources)
    try:
        with closing(_engine(arguments)) as engine, _bar(console) as bar, interrupts:
            task = bar.add_task("preparing", total=1.0, molecules=0, rejected=0)

            def show(progress: PreparationProgress) -> None:
                bar.update(
                    task,
                    description=progress.stage,
                    completed=progress.fraction,
                    molecules=progress.molecules,
                    rejected=progress.rejected,
                )

            prepared = prepare(
                sources, arguments.out, settings, engine, report=show, stopped=lambda: interrupts.pending
            )
    except KeyboardInterrupt:
        print(
            f"interrupted; whole shards are in {arguments.out}. Give the same command again to go on.",
            file=sys.stderr,
        )
        return INTERRUPTED
    _print_prepared(console, prepared, arguments.out)
    return DONE


def _settings(arguments: argparse.Namespace) -> PrepareSettings:
    from pydantic import ValidationError

    from graphwright.tasks.molecules.prepare import PrepareSettings

    given = {"max_atoms": arguments.max_atoms, "shard_rows": arguments.shard_rows}
    if arguments.elements is not None:
        given["elements"] = tuple(name.strip() for name in arguments.elements.split(","))
    try:
        return PrepareSettings(**given, list_rejected=arguments.list_rejected)
    except ValidationError as error:
        first = error.errors()[0]
        name = "--" + str(first["loc"][0]).replace("_", "-")
        raise ValueError(f"{name}: {first['msg'].removeprefix('Value error, ')}, got {first['input']}") from error


def _engine(arguments: argparse.Namespace) -> Engine:
    from graphwright.tasks.molecules.prepare import InProcess, Processes, RayCluster

    if arguments.engine == "ray":
        return RayCluster(arguments.processes)
    return InProcess() if arguments.processes == 1 else Processes(arguments.processes)


def _refuse_twice(sources: list[Source]) -> None:
    seen: set[Path] = set()
    for source in sources:
        path = source.path.resolve()
        if path in seen:
            raise ValueError(f"{source.path} is given twice")
        seen.add(path)


def _require_rdkit() -> None:
    try:
        import rdkit  # noqa: F401
    except ImportError as error:
        raise ImportError("preparing molecules needs RDKit: pip install 'graphwright[chem]'") from error


def _bar(console: Console) -> ProgressBar:
    return ProgressBar(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[molecules]:,} molecules, {task.fields[rejected]:,} rejected"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def _print_prepared(console: Console, prepared: Prepared, out: Path) -> None:
    table = Table(show_header=False)
    train, validation, test = prepared.molecules
    table.add_row("rows read", f"{prepared.rows:,}")
    table.add_row("molecules", f"{train + validation + test:,}")
    table.add_row("train / validation / test", f"{train:,} / {validation:,} / {test:,}")
    table.add_row("shards", f"{len(prepared.manifest.shards):,}")
    for count in prepared.rejected:
        table.add_row(f"rejected: {count.reason}", f"{count.count:,}, first {count.text[:50]!r}")
    usage = prepared.usage
    if usage.molecules:
        from graphwright.tasks.molecules.prepare.batch import PUBCHEM_MOLECULES, peak_memory, this_worker

        workers = [peak for worker, peak in usage.peaks.items() if worker != this_worker()]
        table.add_row("molecules/s per core", f"{usage.molecules_per_core_second:,.0f}")
        table.add_row("rows/s per core", f"{usage.rows_per_core_second:,.0f}")
        table.add_row(
            "peak memory",
            f"{peak_memory() / MEGABYTE:,.0f} MB here"
            + (
                f", at most {max(workers) / MEGABYTE:,.0f} MB in each of {len(workers)} workers" if workers else ""
            ),
        )
        table.add_row(
            f"projected for {PUBCHEM_MOLECULES / 1e6:.1f}M molecules", _hours(usage.projected_core_hours)
        )
    else:
        console.print("nothing was left to do: this folder is complete")
    console.print(table)
    console.print(f"wrote {out}")


def _hours(hours: float) -> str:
    return f"{hours:,.1f} core-hours"


def add_environments(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "environments",
        help="the atom environments that --decode fingerprint puts molecules together from",
        description="Count the atom environments (radius 1 and 2) and ring systems in the training split of data "
        "sets, and write them with a record. What comes with the package was made so.",
    )
    parser.add_argument("data", nargs="*", metavar="DATA", help="shipped data or files (default: qm9 molecules)")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="NPZ", help="where they go; the record beside it"
    )
    parser.set_defaults(run=run_environments)


def run_environments(arguments: argparse.Namespace) -> int:
    from graphwright.tasks.molecules.assembly.alphabet import write_alphabet

    if arguments.out.suffix != ".npz":
        raise ValueError(f"--out must end in .npz, got {arguments.out}")
    console = Console()
    with ProgressBar(console=console, transient=True) as progress:
        task = progress.add_task("reading molecules", total=None)
        alphabet = write_alphabet(
            arguments.data or ["qm9", "molecules"],
            arguments.out,
            lambda done, total: progress.update(task, completed=done, total=total),
        )
    console.print(
        f"{len(alphabet):,} environments of radius 1, {len(alphabet.wide.ids):,} of radius 2, "
        f"{len(alphabet.rings.ids):,} ring systems"
    )
    console.print(f"wrote {arguments.out}")
    return 0
