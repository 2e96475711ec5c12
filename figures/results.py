"""The tables of docs/results.md, from records alone: `python -m figures.results [--records DIR]`.

What stands between `<!-- NAME -->` and `<!-- end NAME -->` is written by this module; a test compares it with the
records. With `--records` finished runs of another folder, such as that of `graphwright reproduce --out`, are put
beside the pages in docs/results first.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from graphwright.experiments import Scale, Store, expand, read_grid, take_over
from graphwright.experiments.figures import write_figure
from graphwright.experiments.reproduction import write_page
from graphwright.experiments.table import Measured, measure, relaxation
from graphwright.files import write_text
from graphwright.graphs.drawing import PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results.md"
GPU = ROOT / "docs" / "gpu.md"
RESULTS = ROOT / "docs" / "results"
ABLATIONS = RESULTS / "ablations.md"
GRIDS = ("table1", "table2", "comparison", "scaling", "frontier", "tokens", "ablations")
SHIPPED = ("coloring10", "coloring20", "coloring-any2graph", "qm9", "fingerprint2molecule", "ms2scaffold")
NOT_YET = "not run yet"


@dataclass(frozen=True)
class Runs:
    """What is known of every configuration of a grid at the `cpu` scale, and the record of every key."""

    name: str
    measured: tuple[Measured, ...]
    records: dict[str, dict[str, Any]]

    def links(self, measured: Measured) -> str:
        """Every record behind a row."""
        folder = f"results/{self.name}-{Scale.CPU}/records"
        return " ".join(f"[{key[:6]}]({folder}/{key}.json)" for key in measured.keys)


def read_runs(store: Store) -> dict[str, Runs]:
    every = {}
    for name in GRIDS:
        measured = tuple(measure(each, store) for each in expand(read_grid(name), Scale.CPU))
        jobs = [job for each in measured for job in each.configuration.jobs if job.key in each.keys]
        every[name] = Runs(name, measured, {job.key: store.record(job) or {} for job in jobs})
    return every


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Without columns in which nothing stands."""
    told = [at for at in range(len(headings)) if any(row[at] for row in rows)]
    lines = [[row[at] for at in told] for row in (headings, *rows)]
    return "\n".join([line(lines[0]), f"|{'---|' * len(told)}", *map(line, lines[1:])])


def shown(measured: Measured, name: str) -> str:
    """A mean, and behind it every seed's."""
    figure = measured.figures.get(name)
    if figure is None:
        return ""
    return with_seeds(figure.mean, figure.seeds)


def with_seeds(average: float, seeds: Sequence[float]) -> str:
    """An average, and behind it what it is of, where that is more than one."""
    each = ", ".join(f"{seed:.2f}" for seed in seeds)
    return f"{average:.2f}" + (f" ({each})" if len(seeds) > 1 else "")


def samples_of(record: Mapping[str, Any]) -> float:
    """That a run has seen."""
    seen: float = record["settings"]["train"]["batch_size"] * record["training"]["steps"]
    return seen


def spent(measured: Measured, runs: Runs) -> str:
    """Budget and hardware of a row."""
    training = measured.training
    if "references" in training:
        return f"no training; looks at {training['references']:,.0f} samples"
    if "steps" not in training:
        return NOT_YET
    by_cores: dict[str, list[dict[str, Any]]] = {}
    for key in measured.keys:
        by_cores.setdefault(cores_of(runs.records[key]["hardware"]), []).append(runs.records[key])
    return "; ".join(
        f"{mean(run['training']['processor_seconds'] for run in own) / 60:.0f} min of {cores}, "
        f"{mean(samples_of(run) for run in own) / 1000:,.0f} thousand samples"
        for cores, own in by_cores.items()
    )


def cores_of(hardware: Mapping[str, Any]) -> str:
    """The cores that a run had, by the processor's plain name."""
    processor = re.sub(r"\(R\)| Processor", "", hardware["processor"])
    processor = re.sub(r", family (\d+), model (\d+)", r" \1/\2", processor)
    return f"{hardware['threads']} {processor} core{'s' if hardware['threads'] > 1 else ''}"


FIGURES = ("aligned_edit", "aligned_exact", "edit", "isomorphic")
HEADINGS = ("aligned edit", "aligned exact, %", "edit", "isomorphic, %")


def rows_beside_the_paper(runs: Runs) -> str:
    """Task, method, where rows differ in it their divergence and reading, the paper's two figures, ours, what was
    spent, records."""
    printed = read_grid(runs.name).printed
    relaxations = [relaxation(each.configuration) for each in runs.measured]
    differ = len({each for each in relaxations if each}) > 1
    rows = []
    for each, told in zip(runs.measured, relaxations, strict=True):
        column, method = each.configuration.column, each.configuration.method
        paper = " / ".join(f"{value:g}" for value in printed.get(method, {}).get(column, ()))
        figures = [shown(each, name) for name in FIGURES]
        rows.append([column, method, told if differ else "", paper, *figures, spent(each, runs), runs.links(each)])
    headings = ["task", "method", "divergence, reading", "paper: edit / GI, %", *HEADINGS]
    return table([*headings, "our budget", "records"], rows)


@dataclass(frozen=True)
class LastRun:
    """What the weights of a shipped model took since they were begun with others, or with none."""

    test: dict[str, Any]
    samples: int
    hours: float
    """To the best checkpoint."""
    minutes: float
    """The whole run."""
    cores: int
    began_with: str

    @classmethod
    def of(cls, name: str) -> LastRun:
        record = read_json(ROOT / "models" / name / "record.json")
        progress, train, hardware = record["progress"], record["settings"]["train"], record["hardware"]
        processes = 1 if train["devices"] == "auto" else int(train["devices"])  # of processors, that is
        start = Path(train.get("start_from") or "nothing").name
        return cls(
            test=record["test"],
            samples=progress["step"] * train["batch_size"],
            hours=progress["seconds"] / 3600,
            minutes=train["minutes"],
            cores=processes * (train["threads"] or hardware["threads"]),
            began_with="its own earlier weights" if start == name else start,
        )


def shipped_models(_: dict[str, Runs]) -> str:
    """The models that ship, by their own records."""
    rows = []
    for name in SHIPPED:
        run = LastRun.of(name)
        low, high = run.test["isomorphic_interval"]
        budget = f"{run.samples / 1e6:.2f} million samples, {60 * run.hours:.0f} of {run.minutes:.0f} min"
        figures = [f"**{run.test['isomorphic']:.1f}** ({low:.1f} to {high:.1f})", f"{run.test['edit']:.2f}"]
        figures += [f"{run.test['aligned_exact']:.1f}", f"{run.test['aligned_edit']:.2f}"]
        spent_on = [budget, str(run.cores), run.began_with]
        rows.append([f"`{name}`", f"{run.test['samples']:,}", *figures, *spent_on, f"`models/{name}/record.json`"])
    headings = ["model", "test samples", "isomorphic, %", "edit"]
    headings += ["slots alone: aligned exact, %", "slots alone: aligned edit"]
    return table([*headings, "last run, to its best weights", "cores", "begun with", "record"], rows)


def by_column(runs: Runs, metric: str) -> str:
    """A row for every method, a column for every task: one figure and its records."""
    columns = list(dict.fromkeys(each.configuration.column for each in runs.measured))
    methods = list(dict.fromkeys(each.configuration.method for each in runs.measured))
    cells = {(each.configuration.method, each.configuration.column): each for each in runs.measured}

    def cell(method: str, column: str) -> str:
        each = cells.get((method, column))
        if each is None:
            return ""
        return f"{shown(each, metric)} {runs.links(each)}".strip() or NOT_YET

    return table(["", *columns], [[method, *(cell(method, column) for column in columns)] for method in methods])


def compute(every: dict[str, Runs]) -> str:
    """Runs, samples and core-hours of every table, of all of them, and what a row of the paper is."""
    rows: list[list[str]] = []
    spent_on: dict[str, tuple[float, float]] = {}
    for name, runs in every.items():
        trained = [each for each in runs.measured if each.configuration.trained]
        asked = {job.key for each in trained for job in each.configuration.jobs}
        kept = {key: runs.records[key] for each in trained for key in each.keys}
        own = {key: (samples_of(run), run["training"]["processor_seconds"] / 3600) for key, run in kept.items()}
        spent_on |= own
        rows.append([f"`{name}`", f"{len(own)} of {len(asked)}", *amounts(own.values())])
    rows.append(["all, a run that several share counted once", f"{len(spent_on)}", *amounts(spent_on.values())])
    last = [LastRun.of(name) for name in SHIPPED]
    shipped = amounts([(run.samples, run.hours * run.cores) for run in last])
    rows.append(["the shipped models' last runs, to their best weights", f"{len(last)}", *shipped])
    paper = [f"{PAPER_SAMPLES / 1e6:.1f}", f"{PAPER_HOURS:.0f} of a V100, at most"]
    rows.append(["the paper's Any2Graph + Matcher, Coloring 10", "1", *paper])
    return table(["", "runs", "million samples", "core-hours"], rows)


RELAXED_PLANS = RESULTS / "ablations" / "plans-under-relaxations.json"


def relaxed_plans(_: dict[str, Runs]) -> str:
    """How undecided plans stay under every relaxation, and what is then left of the loss, from the logs."""
    runs = read_json(RELAXED_PLANS)["runs"]
    columns = dict.fromkeys((run["column"], run["step"]) for run in runs)

    def cell(method: str, column: str, name: str) -> str:
        seeds = [run[name] for run in runs if (run["method"], run["column"]) == (method, column)]
        return with_seeds(mean(seeds), seeds)

    rows = [
        [method, *(cell(method, column, name) for column, _ in columns for name in ("plan_entropy", "adjacency"))]
        for method in dict.fromkeys(run["method"] for run in runs)
    ]
    headings = [
        f"{column}, after {step:,} steps: {name}"
        for column, step in columns
        for name in ("entropy of a plan's column, nats", "edges' loss")
    ]
    return table(["", *headings], rows)


def amounts(spent_on: Iterable[tuple[float, float]]) -> list[str]:
    """Million samples and core-hours of (samples, hours)."""
    samples, hours = np.array([*spent_on, (0.0, 0.0)]).sum(0)
    return [f"{samples / 1e6:.2f}", f"{hours:.2f}"]


def one_change(runs: Runs, *, learned: bool) -> str:
    """The ablations of the learned matcher, or all others: a row each."""
    rows = []
    for each in runs.measured:
        if (each.configuration.jobs[0].run.matching.kind == "learned") is learned:
            figures = [shown(each, name) or NOT_YET for name in ("isomorphic", "edit")]
            rows.append([each.configuration.method, *figures, links_from_results(runs.links(each))])
    return table(["Coloring 10, 500 steps", "isomorphic, % (each seed)", "edit", "records"], rows)


def links_from_results(links: str) -> str:
    """Links of a page in docs, as one in docs/results has them."""
    return links.replace("](results/", "](")


@dataclass(frozen=True)
class Curve:
    """An edit distance of `factor` samples**-`power`."""

    factor: float
    power: float

    def at(self, samples: float) -> float:
        return float(self.factor * samples**-self.power)

    @classmethod
    def fitted(cls, points: Sequence[tuple[float, float]]) -> Curve:
        """Least squares of the logarithms."""
        samples, edits = np.log(np.array(points, dtype=np.float64)).T
        slope, intercept = np.polyfit(samples, edits, 1)
        return cls(float(np.exp(intercept)), float(-slope))


PAPER_SAMPLES = 19_200_000
"""120 epochs of 160,000 pictures: the `coloring10-paper` preset."""
PAPER_HOURS = 20.0
"""What these took on a V100, at most."""
PROJECTED = {
    "conditional gradient": ("as the preset", "Coloring 10", "conditional gradient"),
    "mirror": ("mirror", "Coloring 10", "mirror"),
    "learned": ("learned", "Coloring 10", "learned"),
    "conditional gradient, no diffusion": (
        "without diffusion",
        "Coloring 10, no diffusion",
        "conditional gradient",
    ),
}
"""What is projected: the ablation of 500 steps; column and method of the comparison, with its six minutes."""
CHECK = "coloring10"
"""The shipped model, trained by conditional gradient, whose slots alone say how far the first curve holds."""


@dataclass(frozen=True)
class Projection:
    """The test edit distances of whole runs of two lengths, each run's rate let down to its own end.

    points: (samples, edit) of every seed, the short runs' first; links: to their records.
    """

    points: tuple[tuple[tuple[float, float], ...], ...]
    links: str

    @property
    def curve(self) -> Curve:
        return Curve.fitted([point for length in self.points for point in length])

    def range_at(self, samples: float) -> tuple[float, float]:
        """The least and the most that a curve through one seed of each length says."""
        said = [Curve.fitted(seeds).at(samples) for seeds in product(*self.points)]
        return min(said), max(said)


def projections(every: dict[str, Runs]) -> dict[str, Projection | None]:
    """By plan; None where a length has not been run."""
    projected: dict[str, Projection | None] = {}
    for name, (ablation, column, method) in PROJECTED.items():
        asked = (("ablations", "Coloring 10", ablation), ("comparison", column, method))
        lengths = [(every[grid], one_of(every[grid], where, what)) for grid, where, what in asked]
        if all(measured.keys for _, measured in lengths):
            points = tuple(
                tuple(
                    (samples_of(runs.records[key]), edit)
                    for key, edit in zip(measured.keys, measured.figures["edit"].seeds, strict=True)
                )
                for runs, measured in lengths
            )
            projected[name] = Projection(points, " ".join(runs.links(measured) for runs, measured in lengths))
        else:
            projected[name] = None
    return projected


def one_of(runs: Runs, column: str, method: str) -> Measured:
    """What was measured of a method in a column."""
    (measured,) = [
        each
        for each in runs.measured
        if (each.configuration.column, each.configuration.method) == (column, method)
    ]
    return measured


def projection_table(every: dict[str, Runs]) -> str:
    """What the curve through our runs says of longer ones, and what a longer one was."""
    checked = LastRun.of(CHECK)
    rows = []
    for name, projection in projections(every).items():
        if projection is None:
            rows.append([name, NOT_YET, "", "", "", ""])
            continue
        lengths = [
            f"{samples / 1000:,.0f} thousand: {edit:.2f}"
            for samples, edit in (map(mean, zip(*length, strict=True)) for length in projection.points)
        ]
        low, high = projection.range_at(checked.samples)
        near, far = (projection.curve.at(samples) for samples in (checked.samples, PAPER_SAMPLES))
        said = [f"{projection.curve.power:.2f}", f"{near:.2f} ({low:.2f} to {high:.2f})", f"{far:.2f}"]
        rows.append([name, ", ".join(lengths), *said, projection.links])
    headings = ["plan", "samples: edit, test", "falls by the power"]
    headings += [f"at {samples / 1e6:.1f} million" for samples in (checked.samples, PAPER_SAMPLES)]
    return table([*headings, "records"], rows)


def draw_projection(every: dict[str, Runs]) -> Drawing:
    """Edit distance against samples seen, as measured and as extrapolated, beside the paper and what ships."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(7, 4.6), layout="constrained")
    panel = drawing.subplots()
    for (name, projection), color in zip(projections(every).items(), PALETTE, strict=False):
        if projection is None:
            continue
        points = [point for length in projection.points for point in length]
        panel.plot(*zip(*points, strict=True), "o", color=color, markersize=4, label=name)
        ends = np.geomspace(min(points)[0], PAPER_SAMPLES, 40)
        panel.plot(ends, [projection.curve.at(end) for end in ends], "--", color=color, linewidth=1)
        lows, highs = zip(*(projection.range_at(end) for end in ends), strict=True)
        panel.fill_between(ends, lows, highs, color=color, alpha=0.12, linewidth=0)
    slots = read_json(RESULTS / "views" / f"{CHECK}-plain.json")["edit"]
    label = f"{CHECK} as it ships, slots alone"
    panel.plot(LastRun.of(CHECK).samples, slots, "*", color="k", markersize=11, label=label)
    paper = read_grid("table1").printed["Any2Graph + Matcher"]["Coloring 10"][0]
    panel.plot(PAPER_SAMPLES, paper, "D", color="k", label="paper: Any2Graph + Matcher (aligned, its own model)")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("samples seen")
    panel.set_ylabel("edit distance, Coloring 10, test")
    rate = PAPER_SAMPLES / PAPER_HOURS
    hours = panel.secondary_xaxis("top", functions=(lambda x: np.divide(x, rate), lambda x: np.multiply(x, rate)))
    hours.set_xlabel("hours of a V100 at the paper's speed (20 hours for its 19.2 million samples)", fontsize=8)
    panel.grid(alpha=0.3, which="both")
    panel.legend(fontsize=8)
    return drawing


PENALTY = {"Matcher": "without the penalty", "Matcher + KL": "with it"}
"""Series of the frontier, as the figure calls them."""


def draw_penalty(every: dict[str, Runs]) -> Drawing:
    """Error and exact graphs against Sinkhorn steps, with and without the penalty on the marginals."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 3.6), layout="constrained")
    panels = drawing.subplots(1, 2)
    for panel, metric in zip(panels, ("aligned_edit", "isomorphic"), strict=True):
        for (series, name), color in zip(PENALTY.items(), PALETTE, strict=False):
            own = [each for each in every["frontier"].measured if each.configuration.series == series]
            known = [each for each in own if metric in each.figures]
            steps = [each.configuration.jobs[0].run.matching.iterations for each in known]
            figures = [each.figures[metric] for each in known]
            panel.plot(steps, [figure.mean for figure in figures], "o-", color=color, label=name)
            for step, figure in zip(steps, figures, strict=True):
                if figure.interval is not None:
                    panel.plot([step, step], [figure.interval.low, figure.interval.high], color=color, alpha=0.6)
        panel.set_xscale("log")
        panel.set_xticks([5, 10, 50, 100], ["5", "10", "50", "100"])
        panel.minorticks_off()
        panel.set_xlabel("Sinkhorn steps")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("aligned edit distance")
    panels[1].set_ylabel("isomorphic, %")
    panels[0].legend(fontsize=8)
    return drawing


DRAWINGS: dict[str, Callable[[dict[str, Runs]], Drawing]] = {
    "projection": draw_projection,
    "penalty": draw_penalty,
}
"""Figures of the page that are of no grid's own."""


def paper_presets(_: dict[str, Runs]) -> str:
    """A real step of every preset of the paper's size on this machine, by `python -m benchmarks.paper_presets`."""
    rows = []
    for each in read_json(RESULTS / "paper-presets" / "steps.json"):
        hours_of_a_sample = each["milliseconds_per_sample"] / 3.6e6
        rows.append(
            [
                f"`{each['preset']}`",
                f"{(each['predictor'] + each['matcher']) / 1e6:.1f} million",
                f"{each['batch']:,} in {each['parts']} part{'s' if each['parts'] > 1 else ''}",
                f"{each['peak_gigabytes']:.1f} GB",
                f"{each['processor_seconds']:.0f} s",
                f"{each['megabytes_per_sample']:.1f} MB",
                f"{each['milliseconds_per_sample']:.3g}",
                f"{hours_of_a_sample * each['samples_per_epoch']:,.3g}",
                f"{each['samples'] / 1e6:.1f} million",
                f"{hours_of_a_sample * each['samples']:,.0f}",
            ]
        )
    headings = ["preset", "parameters", "batch", "peak of the process", "the process took", "a sample keeps"]
    return table([*headings, "ms per sample", "hours per epoch", "samples in all", "hours in all"], rows)


@cache
def read_json(path: Path) -> Any:
    content = json.loads(path.read_text(encoding="utf-8"))
    return content


Block = Callable[[dict[str, Runs]], str]
BLOCKS: dict[Path, dict[str, Block]] = {
    PAGE: {
        "table1": lambda every: rows_beside_the_paper(every["table1"]),
        "shipped": shipped_models,
        "table2": lambda every: rows_beside_the_paper(every["table2"]),
        "plans": relaxed_plans,
        "comparison": lambda every: by_column(every["comparison"], "isomorphic"),
        "scaling": lambda every: rows_beside_the_paper(every["scaling"]),
        "frontier": lambda every: rows_beside_the_paper(every["frontier"]),
        "tokens": lambda every: rows_beside_the_paper(every["tokens"]),
        "compute": compute,
        "projection": projection_table,
    },
    ABLATIONS: {
        "solvers": lambda every: one_change(every["ablations"], learned=False),
        "matcher": lambda every: one_change(every["ablations"], learned=True),
    },
    GPU: {"presets": paper_presets},
}
"""What stands between the marks of every page."""


def filled(page: str, blocks: Mapping[str, Block], every: dict[str, Runs]) -> str:
    """A page with every block as the records have it."""
    for name, write in blocks.items():
        page = with_block(page, name, write(every))
    return page


def with_block(page: str, name: str, text: str) -> str:
    """A page with something else between the marks of a name."""
    pattern = re.compile(rf"<!-- {name} -->\n.*?<!-- end {name} -->", re.DOTALL)
    if len(pattern.findall(page)) != 1:
        raise ValueError(f"a page must have one block <!-- {name} --> ... <!-- end {name} -->")
    return pattern.sub(lambda _: f"<!-- {name} -->\n\n{text}\n\n<!-- end {name} -->", page)


def write_pages(every: dict[str, Runs], store: Store, folder: Path) -> None:
    """The page of every grid, as `graphwright reproduce` leaves it, and the figures that are of no grid's own."""
    for name, runs in every.items():
        write_page(read_grid(name), Scale.CPU, runs.measured, store, folder / f"{name}-{Scale.CPU}")
    for name, draw in DRAWINGS.items():
        write_figure(folder, draw(every), name)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m figures.results", description=__doc__)
    parser.add_argument("--records", type=Path, action="append", default=[], metavar="DIR")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for source in (*given.records, RESULTS):
            print(f"{take_over(source, store)} finished runs of {source}")
        every = read_runs(store)
        write_pages(every, store, RESULTS)
    for page, blocks in BLOCKS.items():
        write_text(page, filled(page.read_text(encoding="utf-8"), blocks, every))


if __name__ == "__main__":
    main()
