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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphwright.experiments import Scale, Store, expand, read_grid, take_over
from graphwright.experiments.figures import write_figure
from graphwright.experiments.reproduction import write_page
from graphwright.experiments.table import Measured, measure
from graphwright.files import write_text
from graphwright.graphs.drawing import PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results.md"
GPU = ROOT / "docs" / "gpu.md"
RESULTS = ROOT / "docs" / "results"
GRIDS = ("table1", "table2", "comparison", "scaling", "frontier")
BATCH = 64
"""Samples of a step of every run at the `cpu` scale."""
NOT_YET = "not run yet"


@dataclass(frozen=True)
class Runs:
    """What is known of every configuration of a grid at the `cpu` scale."""

    name: str
    measured: tuple[Measured, ...]

    def links(self, measured: Measured) -> str:
        """Every record behind a row."""
        folder = f"results/{self.name}-{Scale.CPU}/records"
        return " ".join(f"[{key[:6]}]({folder}/{key}.json)" for key in measured.keys)


def read_runs(store: Store) -> dict[str, Runs]:
    return {
        name: Runs(name, tuple(measure(each, store) for each in expand(read_grid(name), Scale.CPU)))
        for name in GRIDS
    }


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([line(headings), f"|{'---|' * len(headings)}", *(line(row) for row in rows)])


def shown(measured: Measured, name: str) -> str:
    """A mean, and behind it every seed's."""
    figure = measured.figures.get(name)
    if figure is None:
        return ""
    seeds = ", ".join(f"{seed:.2f}" for seed in figure.seeds)
    return f"{figure.mean:.2f}" + (f" ({seeds})" if len(figure.seeds) > 1 else "")


def spent(measured: Measured) -> str:
    """Budget and hardware of a row."""
    training = measured.training
    if "references" in training:
        return f"no training; looks at {training['references']:,.0f} samples"
    if "steps" not in training:
        return NOT_YET
    samples = BATCH * training["steps"]
    return f"{training['seconds'] / 60:.0f} min of one EPYC core, {samples / 1000:,.0f} thousand samples"


FIGURES = ("aligned_edit", "aligned_exact", "edit", "isomorphic")
HEADINGS = ("aligned edit", "aligned exact, %", "edit", "isomorphic, %")


def rows_beside_the_paper(runs: Runs) -> str:
    """Task, method, the paper's two figures, ours, what was spent, records."""
    printed = read_grid(runs.name).printed
    rows = []
    for each in runs.measured:
        column, method = each.configuration.column, each.configuration.method
        paper = printed.get(method, {}).get(column)
        told = ["", ""] if paper is None else [f"{value:g}" for value in paper]
        rows.append(
            [column, method, *told, *(shown(each, name) for name in FIGURES), spent(each), runs.links(each)]
        )
    return table(["task", "method", "paper: edit", "paper: GI, %", *HEADINGS, "our budget", "records"], rows)


def shipped_models(_: dict[str, Runs]) -> str:
    """The models that ship, by their own records."""
    rows = []
    for name in ("coloring10", "coloring20", "coloring-any2graph", "qm9", "fingerprint2molecule", "ms2scaffold"):
        record = read_json(ROOT / "models" / name / "record.json")
        test, progress, train = record["test"], record["progress"], record["settings"]["train"]
        low, high = test["isomorphic_interval"]
        millions = progress["step"] * train["batch_size"] / 1e6
        budget = f"{millions:.2f} million samples, {progress['seconds'] / 60:.0f} min"
        figures = [f"**{test['isomorphic']:.1f}** ({low:.1f} to {high:.1f})", f"{test['edit']:.2f}"]
        figures += [f"{test['aligned_exact']:.1f}", f"{test['aligned_edit']:.2f}"]
        rows.append([f"`{name}`", f"{test['samples']:,}", *figures, budget, f"`models/{name}/record.json`"])
    return table(
        [
            "model",
            "test samples",
            "isomorphic, %",
            "edit",
            "slots alone: aligned exact, %",
            "slots alone: aligned edit",
            "last run",
            "record",
        ],
        rows,
    )


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
        own = {
            key: (BATCH * each.training["steps"], each.training["processor_seconds"])
            for each in trained
            for key in each.keys
        }
        spent_on |= own
        rows.append([f"`{name}`", f"{len(own)} of {len(asked)}", *amounts(own)])
    rows.append(["all, a run that several share counted once", f"{len(spent_on)}", *amounts(spent_on)])
    paper = [f"{PAPER_SAMPLES / 1e6:.1f}", f"{PAPER_HOURS:.0f} of a V100, at most"]
    rows.append(["the paper's Any2Graph + Matcher, Coloring 10", "1", *paper])
    return table(["", "runs", "million samples", "core-hours"], rows)


def amounts(spent_on: dict[str, tuple[float, float]]) -> list[str]:
    """Million samples and core-hours of runs."""
    samples, seconds = (sum(each[at] for each in spent_on.values()) for at in (0, 1))
    return [f"{samples / 1e6:.2f}", f"{seconds / 3600:.2f}"]


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


def validation_points(records: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
    """(samples seen, validation edit distance) of all runs, without the first validation, which knows little."""
    return [
        (BATCH * each["step"], each["edit"])
        for record in records
        for each in record["training"]["validations"][1:]
        if each["edit"] > 0
    ]


PAPER_SAMPLES = 19_200_000
"""120 epochs of 160,000 pictures: the `coloring10-paper` preset."""
PAPER_HOURS = 20.0
"""What these took on a V100, at most."""
PROJECTED = ("learned", "mirror", "conditional gradient")


def coloring10_runs(every: dict[str, Runs]) -> dict[str, tuple[Measured, list[dict[str, Any]]]]:
    """The configuration and the records of each projected way to find the plan, Coloring 10."""
    runs = every["comparison"]
    folder = RESULTS / f"{runs.name}-{Scale.CPU}" / "records"
    return {
        each.configuration.method: (each, [read_json(folder / f"{key}.json") for key in each.keys])
        for each in runs.measured
        if each.configuration.column == "Coloring 10" and each.configuration.method in PROJECTED
    }


def projection(every: dict[str, Runs]) -> str:
    """What the curve through our short runs says of longer ones, and what a longer one was."""
    rows = []
    for method, (each, records) in coloring10_runs(every).items():
        curve = Curve.fitted(validation_points(records))
        seen = BATCH * each.training["steps"]
        rows.append(
            [
                method,
                f"{seen / 1e6:.2f}",
                f"{curve.factor:.3g} / samples^{curve.power:.2f}",
                f"{curve.at(seen):.2f}",
                f"{curve.at(SHIPPED_SAMPLES):.2f}",
                f"{curve.at(PAPER_SAMPLES):.2f}",
                every["comparison"].links(each),
            ]
        )
    return table(
        ["plan", "million samples seen", "edit", "there", "at 0.7 million", "at 19.2 million", "records"], rows
    )


SHIPPED_SAMPLES = 700_000
"""What `coloring10` has seen, whose slots alone say how far the curve can be believed."""


def draw_projection(every: dict[str, Runs]) -> Drawing:
    """Edit distance against samples seen, as validated and as extrapolated, beside the paper and what ships."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(7, 4.6), layout="constrained")
    panel = drawing.subplots()
    for (method, (_, records)), color in zip(coloring10_runs(every).items(), PALETTE, strict=False):
        points = validation_points(records)
        panel.plot(*zip(*points, strict=True), "o", color=color, markersize=3, label=method)
        curve, ends = Curve.fitted(points), (min(points)[0], PAPER_SAMPLES)
        panel.plot(ends, [curve.at(end) for end in ends], "--", color=color, linewidth=1)
    slots = read_json(RESULTS / "views" / "coloring10-plain.json")["edit"]
    panel.plot(SHIPPED_SAMPLES, slots, "*", color="k", markersize=11, label="coloring10 as it ships, slots alone")
    paper = read_grid("table1").printed["Any2Graph + Matcher"]["Coloring 10"][0]
    panel.plot(PAPER_SAMPLES, paper, "D", color="k", label="paper: Any2Graph + Matcher (aligned)")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("samples seen")
    panel.set_ylabel("edit distance, Coloring 10, validation")
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


def paper_presets() -> str:
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


BLOCKS: dict[str, Callable[[dict[str, Runs]], str]] = {
    "table1": lambda every: rows_beside_the_paper(every["table1"]),
    "shipped": shipped_models,
    "table2": lambda every: rows_beside_the_paper(every["table2"]),
    "comparison": lambda every: by_column(every["comparison"], "isomorphic"),
    "scaling": lambda every: by_column(every["scaling"], "aligned_edit"),
    "frontier": lambda every: rows_beside_the_paper(every["frontier"]),
    "compute": compute,
    "projection": projection,
}


def filled(page: str, every: dict[str, Runs]) -> str:
    """The page of results with every block as the records have it."""
    for name, write in BLOCKS.items():
        page = with_block(page, name, write(every))
    return page


def with_block(page: str, name: str, text: str) -> str:
    """A page with something else between the marks of a name."""
    pattern = re.compile(rf"<!-- {name} -->\n.*?<!-- end {name} -->", re.DOTALL)
    if len(pattern.findall(page)) != 1:
        raise ValueError(f"a page must have one block <!-- {name} --> ... <!-- end {name} -->")
    return pattern.sub(lambda _: f"<!-- {name} -->\n\n{text}\n\n<!-- end {name} -->", page)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m figures.results", description=__doc__)
    parser.add_argument("--records", type=Path, action="append", default=[], metavar="DIR")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for source in given.records:
            print(f"{take_over(source, store)} finished runs of {source}")
        new = store.finished()
        print(f"{take_over(RESULTS, store)} finished runs of {RESULTS}")
        every = read_runs(store)
        for name, runs in every.items():
            page = RESULTS / f"{name}-{Scale.CPU}"
            trained = {key for each in runs.measured if each.configuration.trained for key in each.keys}
            # A page of before may have intervals of samples that are no longer there.
            if trained & new or (trained and not page.exists()):
                write_page(read_grid(name), Scale.CPU, runs.measured, store, page)
        for name, draw in DRAWINGS.items():
            write_figure(RESULTS, draw(every), name)
        write_text(PAGE, filled(PAGE.read_text(encoding="utf-8"), every))
    write_text(GPU, with_block(GPU.read_text(encoding="utf-8"), "presets", paper_presets()))


if __name__ == "__main__":
    main()
