"""The tables of docs/results/speed.md, from the records of `python -m benchmarks`: `python -m figures.speed`.

What stands between `<!-- NAME -->` and `<!-- end NAME -->` is written by this module; a test compares it with the
records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from figures.results import RESULTS, read_json, table, with_block
from graphwright.files import write_text

PAGE = RESULTS / "speed.md"
RECORDS = RESULTS / "bench"
Row = dict[str, Any]


class Rows:
    """The rows of one run of all benchmarks."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def of(self, benchmark: str, name: str | None = None) -> Iterator[Row]:
        """Those of a benchmark, or of one name in it."""
        return (row for row in self.rows if row["benchmark"] == benchmark and name in (None, row["name"]))

    def one(self, benchmark: str, name: str, n: int, threads: int, peer: str = "") -> Row | None:
        """The row with a peer whose name begins so; None where that peer was not there."""
        for row in self.of(benchmark, name):
            if (row["n"], row["threads"]) == (n, threads) and row["peer"].startswith(peer):
                return row
        return None

    def sizes(self, benchmark: str, name: str) -> list[tuple[int, int]]:
        """(threads, n) that were measured, in order."""
        return sorted({(row["threads"], row["n"]) for row in self.of(benchmark, name)})


def times(row: Row | None) -> str:
    return "" if row is None else f"{row['ratio']:.1f}x"


def digits(milliseconds: float) -> str:
    return f"{milliseconds:.3f}"


PLAIN, SHARP = "sinkhorn forward + backward", "sinkhorn forward + backward, sharp"


def sinkhorn(rows: Rows) -> str:
    """Ours beside three peers, on one thread and on two."""
    lines = []
    for threads, n in rows.sizes("sinkhorn", SHARP):
        eager, batch, ott = (
            rows.one("sinkhorn", PLAIN, n, threads, peer) for peer in ("eager", "ot.batch", "ott")
        )
        assert eager is not None
        figures = [f"{1000 * eager['ours_ms']:.1f}", f"{1000 * eager['peer_ms']:.0f}"]
        ratios = [times(row) for row in (eager, batch, ott, rows.one("sinkhorn", SHARP, n, threads))]
        lines.append([str(n), str(threads), *figures, *ratios])
    headings = ["n", "threads", "ours, µs", "eager autograd, µs", "ratio", "to `ot.batch`", "to ott-jax"]
    return table([*headings, "to eager, sharp"], lines)


def memory(rows: Rows) -> str:
    (row,) = rows.of("sinkhorn", f"{PLAIN}, peak memory")
    ours, peer = row["ours_peak_mib"], row["peer_peak_mib"]
    return (
        f"Peak memory of both passes at n = 60, batch 1,536: {ours:.0f} MiB against {peer:.0f} of eager autograd."
    )


def matcher(rows: Rows) -> str:
    """The learned plan with and without its target encoder beside Any2Graph's solver."""
    lines = []
    for threads, n in rows.sizes("matcher", "learned plan"):
        beside = [
            rows.one("matcher", name, n, threads, f"conditional gradient, ot.emd, {state}")
            for name in ("learned plan", "learned plan, target encoder")
            for state in ("untrained", "trained")
        ]
        alone, trained, encoder, both = (row for row in beside if row is not None)
        cells = [digits(alone["ours_ms"]), f"{alone['peer_ms']:.2f}", times(alone)]
        cells += [f"{trained['peer_ms']:.2f}", times(trained), digits(encoder["ours_ms"])]
        lines.append([str(n), str(threads), *cells, f"{times(encoder)}, {times(both)}"])
    headings = ["n", "threads", "learned plan, ms", "solver, untrained predictor, ms", "ratio"]
    return table(
        [*headings, "solver, trained predictor, ms", "ratio", "plan with target encoder, ms", "ratios"], lines
    )


def since(_: Rows) -> str:
    """Samples per second by an earlier commit and now."""
    record = read_json(RECORDS / "since-59c5948.json")
    commit = record["now"]["commit"][:7]
    lines = [
        [
            f"`{row['preset']}`",
            f"{median(row['earlier']):,.0f}",
            f"{median(row['now']):,.0f}",
            f"**{row['ratio']:.2f}x**",
        ]
        for row in record["rows"]
    ]
    return table(["network of", f"samples/s by {record['earlier']}", f"by {commit}", "ratio"], lines)


def whole_machine(rows: Rows) -> str:
    """The presets as they are, a process for each core."""
    lines = [
        [
            f"`{row['name'].removeprefix('whole machine, ')}`",
            f"{row['samples_per_second']:,.0f}",
            f"{row['peer_samples_per_second']:,.0f}",
            times(row),
        ]
        for row in rows.of("training")
        if row["name"].startswith("whole machine")
    ]
    return table(["preset", "samples/s, a process for each core", "one process of two threads", "ratio"], lines)


def published(_: Rows) -> str:
    """Minutes of the whole machine to the paper's figure."""
    record: Any = read_json(RECORDS / "time-to-published.json")
    lines = [
        [row["name"].split(", ", 1)[1], f"**{row['minutes']:.1f}**", f"{row['samples']:,.0f}"] for row in record
    ]
    return table(["plan by", "minutes", "samples seen"], lines)


def steps(rows: Rows) -> str:
    """Samples per second of a step with every matching, and the plan's share of it."""
    kinds = ["learned", "mirror", "conditional_gradient", "labels", "order"]
    lines = []
    for threads, n in rows.sizes("training", "learned"):
        beside = [rows.one("training", kind, n, threads) for kind in kinds]
        cells = [
            "" if row is None else f"{row['samples_per_second']:.0f} ({100 * row['plan_share']:.1f} %)"
            for row in beside
        ]
        loop = rows.one("training", "loop", n, threads)
        cells.append("" if loop is None else f"{100 * loop['loop_overhead']:.1f} %")
        learned = beside[0]
        assert learned is not None
        lines.append([str(n), str(threads), *cells, f"{learned['ours_peak_mib']:.0f} MiB"])
    words = [kind.replace("_", " ") for kind in kinds]
    return table(["N", "threads", *words, "overhead of the loop", "peak memory, learned"], lines)


def presets(rows: Rows) -> str:
    """Every preset's step with the learned matcher."""
    lines = [
        [
            f"`{row['name'].removeprefix('learned, ')}`",
            str(row["n"]),
            f"{row['samples_per_second']:.0f}",
            f"{100 * row['plan_share']:.1f} %",
        ]
        for row in rows.of("training")
        if row["name"].startswith("learned, ")
    ]
    return table(["preset", "N", "samples/s", "share of the plan"], lines)


def plans(rows: Rows) -> str:
    """Our solvers beside POT's and scipy's."""
    lines = [
        [
            row["name"],
            row["peer"],
            str(row["n"]),
            str(row["threads"]),
            digits(row["ours_ms"]),
            digits(row["peer_ms"]),
            f"{row['ratio']:.1f}",
            f"{row['ours_objective']:.5f}",
            f"{row['peer_objective']:.5f}",
        ]
        for row in rows.of("plans")
    ]
    headings = ["solver", "peer", "n", "threads", "ours, ms", "peer's, ms", "ratio"]
    return table([*headings, "our objective", "the peer's"], lines)


def evaluation(rows: Rows) -> str:
    """A whole evaluation beside networkx and one dense alignment."""
    lines = [
        [
            row["name"].removeprefix("evaluation, "),
            f"{row['batch']:,}",
            f"{row['seconds']:.1f}",
            f"{row['ratio']:.2f}",
            f"{row['ours_objective']:.2f}",
            f"{row['peer_objective']:.2f}",
        ]
        for row in rows.of("evaluation")
    ]
    headings = ["predictions", "graphs", "seconds", "peer's time / ours", "mean edit distance"]
    return table([*headings, "the peer's"], lines)


def prediction(rows: Rows) -> str:
    """A picture's answer, and the same compiled."""
    lines = [
        [
            str(row["batch"]),
            str(row["threads"]),
            f"{row['ours_ms']:.2f}",
            f"{row['peer_ms']:.2f}",
            f"{row['ratio']:.2f}",
        ]
        for row in rows.of("prediction")
    ]
    return table(["batch", "threads", "ours, ms", "compiled, ms", "compiled / ours"], lines)


def data(rows: Rows) -> str:
    """Samples of a generated task."""
    lines = [
        [str(row["n"]), f"{row['samples_per_second']:,.0f}", f"{1000 / row['peer_ms']:,.1f}"]
        for row in rows.of("data")
    ]
    return table(["N", "samples/s, one core", "a plain loop over pixels"], lines)


def annotation(rows: Rows) -> str:
    """Spectra explained by sub-formulas."""
    lines = [
        [row["name"], f"{row['spectra_per_second']:,.0f}", f"{1000 / row['peer_ms']:,.0f}", times(row)]
        for row in rows.of("annotation")
    ]
    return table(["", "spectra a second", "a plain loop over all sub-formulas", "ratio"], lines)


BLOCKS: dict[str, Callable[[Rows], str]] = {
    "since": since,
    "published": published,
    "whole machine": whole_machine,
    "sinkhorn": sinkhorn,
    "memory": memory,
    "matcher": matcher,
    "steps": steps,
    "presets": presets,
    "plans": plans,
    "evaluation": evaluation,
    "prediction": prediction,
    "data": data,
    "annotation": annotation,
}


def filled(page: str) -> str:
    """The page with every block as the records have it."""
    recorded: Any = read_json(RECORDS / "all.json")
    rows = Rows(recorded)
    for name, write in BLOCKS.items():
        page = with_block(page, name, write(rows))
    return page


if __name__ == "__main__":
    write_text(PAGE, filled(PAGE.read_text(encoding="utf-8")))
