"""The table of metrics: one entry is all that a metric takes, also from outside the package."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from graphwright.metrics import METRICS, PERCENT, Better, Metric, evaluate_graphs
from graphwright.metrics.metric import MetricTable
from graphwright.settings import to_yaml
from graphwright.training.log import columns, read_log
from plugins import graphwright_with, write_plugin
from tiny import cycle, star, tiny_settings

PLUGIN = """
import numpy as np
from graphwright.metrics import METRICS, PERCENT, Better, Metric

def same_degrees(report):
    degrees = [[sorted((graph.edge_matrix() > 0).sum(1)) for graph in graphs]
               for graphs in (report.predicted, report.targets)]
    return np.array([ours == theirs for ours, theirs in zip(*degrees)])

TITLE = "same degrees & nothing else"
METRICS.add(Metric("same_degrees", TITLE, PERCENT, Better.HIGHER, same_degrees, headline=True))
METRICS.add(Metric("surplus", "nodes too many or too few", "nodes", Better.LOWER, lambda report: np.array(
    [abs(one.size - other.size) for one, other in zip(report.predicted, report.targets)])))
"""


def test_a_metric_says_its_unit_and_which_way_is_better() -> None:
    isomorphic, edit = METRICS["isomorphic"], METRICS["edit"]
    assert (isomorphic.heading, isomorphic.column) == ("exactly right (isomorphic), %", "isomorphic, %")
    assert (edit.heading, METRICS["aligned_edit"].column) == ("edit distance", "aligned edit")
    assert (isomorphic.scale, edit.scale) == (100, 1)
    assert (isomorphic.in_words(12.34), edit.in_words(1.5)) == ("12.3 % isomorphic", "edit 1.50")
    assert (isomorphic.gain(60, 50), edit.gain(2, 3), edit.gain(3, 2)) == (10, 1, -1)


def test_a_summary_is_the_mean_of_every_metric() -> None:
    report = evaluate_graphs([cycle(3), cycle(4)], [cycle(3), star(3)])
    facts = report.to_json()
    assert {name for name in facts if not name.endswith("_interval")} == {"samples", *METRICS.names()}
    for metric in METRICS.entries():
        values = metric.values(report)
        assert facts[metric.name] == (None if values is None else metric.scale * values.mean())


def test_values_of_another_length_are_refused_by_name() -> None:
    short = Metric("short", "short", "", Better.LOWER, lambda report: np.zeros(len(report) - 1))
    with pytest.raises(ValueError, match=r"the metric short must give 2 values, one per sample, got shape \(1,\)"):
        short.values(evaluate_graphs([cycle(3), cycle(4)], [cycle(3), cycle(4)]))


def test_a_name_stands_for_one_metric() -> None:
    table = MetricTable("metric")
    for _ in range(2):  # a module may be imported anew
        table.add(METRICS["edit"])
    other = Metric("edit", "another", PERCENT, Better.HIGHER, lambda report: report.isomorphic)
    with pytest.raises(ValueError, match=r"'edit' is of graphwright\..*; that of .* needs another name"):
        table.add(other)


def test_a_log_has_a_column_for_every_number_that_a_run_logs(tiny_run: Path) -> None:
    """`isomorphic_skeleton` and `edit_proved_optimal` were in log.jsonl and silently not in log.csv."""
    logged = {name for record in read_log(tiny_run / "log.jsonl") for name in record}
    with (tiny_run / "log.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    # Regions of a picture have no numbers that an error could be measured of.
    told = set(METRICS.names()) - {"attribute_error"}
    assert {"isomorphic_skeleton", "edit_proved_optimal", *told} <= logged <= set(header)
    assert tuple(header) == columns()
    last = dict(zip(header, rows[-1], strict=True))
    assert all(last[name] for name in told)
    assert last["attribute_error"] == ""


@pytest.fixture(scope="module")
def plugged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A package with two metrics, and the folder of a run that chose one of them through the command line.

    Of every validation it tells that one, and the other because it is a headline.
    """
    plugins = write_plugin(tmp_path_factory.mktemp("plugins"), "more_metrics", PLUGIN)
    folder = tmp_path_factory.mktemp("runs")
    settings = tiny_settings(train={"steps": 4, "validate_every": 2, "validation_samples": 6})
    (folder / "tiny.yaml").write_text(to_yaml(settings))
    words = ("train", str(folder / "tiny.yaml"), "--out", str(folder / "run"), "--train.metric", "surplus")
    done = graphwright_with(plugins, *words)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if " % isomorphic, edit " in line]
    assert len(told) == 3
    assert all(re.search(r"\d % same degrees, surplus \d\.\d\d nodes", line) for line in told)
    return plugins, folder / "run"


def test_a_metric_of_another_package_is_logged_and_chooses_the_best_checkpoint(plugged: tuple[Path, Path]) -> None:
    _, run = plugged
    with (run / "log.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["isomorphic"]]
    assert len(rows) == 2
    assert all(0 <= float(row["same_degrees"]) <= 100 for row in rows)
    assert 'metric: "surplus"' in (run / "config.yaml").read_text()
    best = json.loads((run / "checkpoints" / "best.json").read_text())["facts"]["progress"]["best"]
    assert best == min(float(row["surplus"]) for row in rows)


def test_a_metric_of_another_package_is_evaluated(plugged: tuple[Path, Path], tmp_path: Path) -> None:
    plugins, run = plugged
    out = tmp_path / "figures.json"
    done = graphwright_with(plugins, "evaluate", str(run), "--samples", "8", "--json", str(out))
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())
    low, high = figures["same_degrees_interval"]
    assert 0 <= low <= figures["same_degrees"] <= high <= 100
    assert figures["surplus"] >= 0
    assert "same degrees & nothing else, %" in done.stdout


def test_a_metric_of_another_package_is_on_the_page_and_on_the_card(
    plugged: tuple[Path, Path], tmp_path: Path
) -> None:
    plugins, run = plugged
    page = tmp_path / "page.html"
    done = graphwright_with(plugins, "report", str(run), "--samples", "8", "--out", str(page))
    assert done.returncode == 0, done.stderr
    assert "<td>same degrees &amp; nothing else, %</td>" in page.read_text()
    assert "<td>nodes too many or too few, nodes</td>" in page.read_text()
    done = graphwright_with(plugins, "export", str(run), str(tmp_path / "model"), "--samples", "8")
    assert done.returncode == 0, done.stderr
    assert "| nodes too many or too few, nodes |" in (tmp_path / "model" / "README.md").read_text()


def test_help_and_errors_list_the_metrics_of_other_packages(plugged: tuple[Path, Path]) -> None:
    plugins, run = plugged
    done = graphwright_with(plugins, "train", "demo", "--out", str(run), "--train.metric", "surplu")
    assert done.returncode == 2
    assert "--train.metric must be one of isomorphic, edit, " in done.stderr
    assert "same_degrees, surplus, got 'surplu'; did you mean surplus?" in done.stderr


def test_a_metric_may_not_be_called_like_another_column_of_a_log(tmp_path: Path) -> None:
    source = PLUGIN.replace('"surplus"', '"loss"')
    plugins = write_plugin(tmp_path, "bad_metrics", source)
    (tmp_path / "tiny.yaml").write_text(to_yaml(tiny_settings()))
    done = graphwright_with(plugins, "train", str(tmp_path / "tiny.yaml"), "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "the metric 'loss' needs another name: a log has a column of this name" in done.stderr


def test_a_run_whose_metric_is_not_installed_is_refused(plugged: tuple[Path, Path], tmp_path: Path) -> None:
    _, run = plugged
    done = graphwright_with(tmp_path, "train", str(run / "config.yaml"), "--out", str(tmp_path / "again"))
    assert done.returncode == 2
    assert "train.metric" in done.stderr
    assert "'surplus'" in done.stderr
