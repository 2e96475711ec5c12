"""Figures over seeds, selection, tables, frontiers, hours."""

import csv
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphwright.experiments import (
    Configuration,
    Estimate,
    Job,
    Scale,
    Store,
    estimates,
    expand,
    read_grid,
    wall_seconds,
)
from graphwright.experiments.estimate import START, Cost, measured_cost, training_time
from graphwright.experiments.figures import draw_grid, frontier, spread_apart, write_figure
from graphwright.experiments.grid import FOLDER, parse_grid
from graphwright.experiments.table import (
    Average,
    Measured,
    average,
    markdown,
    measure,
    read_samples,
    rows_of,
    write_csv,
)
from graphwright.metrics.evaluation import Interval, bootstrap_interval
from graphwright.settings import SettingsError
from tiny import tiny_settings

RUN = tiny_settings()


def values(*shape, seed=0):
    return np.random.default_rng(seed).random(shape)


def test_with_one_seed_the_interval_is_that_over_samples():
    one = values(1, 300)
    found, expected = average(one, np.arange(300)), bootstrap_interval(one[0])
    assert found.mean == pytest.approx(one.mean())
    assert found.interval.low == pytest.approx(expected.low, abs=0.004)
    assert found.interval.high == pytest.approx(expected.high, abs=0.004)


def test_groups_are_drawn_whole():
    groups = np.repeat(np.arange(30), 10)
    one = np.repeat(values(1, 30), 10, axis=1)
    found, expected = average(one, groups), bootstrap_interval(one[0], groups.tolist())
    assert found.interval.low == pytest.approx(expected.low, abs=0.02)
    assert found.interval.high - found.interval.low > 2 * (
        average(one, np.arange(300)).interval.high - average(one, np.arange(300)).interval.low
    )


def test_seeds_that_disagree_widen_the_interval():
    same = np.full((3, 200), 5.0)
    assert average(same, np.arange(200)).interval == Interval(5.0, 5.0)
    apart = same + np.array([[-1.0], [0.0], [1.0]])
    found = average(apart, np.arange(200))
    assert found.seeds == (4.0, 5.0, 6.0)
    assert (found.interval.low, found.interval.high) == pytest.approx((4.0, 6.0), abs=0.4)


def configuration(method, series=None, column="N = 10", jobs=2, baseline=None, metric="edit"):
    trains = [RUN.train.model_copy(update={"seed": seed, "metric": metric}) for seed in range(jobs)]
    runs = [RUN.model_copy(update={"train": train}) for train in trains]
    return Configuration(
        column, method, series or method, True, 10.0, tuple(Job(run, 5, baseline) for run in runs)
    )


def measured(method, series=None, column="N = 10", edit=3.0, validation=1.0, **changes):
    figures = {
        "aligned_edit": Average(edit, Interval(edit - 1, edit + 1), (edit - 0.5, edit + 0.5)),
        "isomorphic": Average(25.0, Interval(20.0, 30.0), (24.0, 26.0)),
    }
    training = {"seconds": 90.0, "steps": 1200.0, "seconds_per_sample": 0.004, "best_validation": validation}
    found = Measured(configuration(method, series, column), figures, training, ("a" * 16, "b" * 16), ())
    return replace(found, **changes)


def scaling_rows():
    grid = read_grid("scaling")
    cells = [
        measured("Mirror, 20 x 20", "Mirror"),
        measured("Matcher, 0.75 eps", "Matcher", edit=1.0, validation=2.0),
        measured("Matcher, eps", "Matcher", edit=2.0, validation=1.5),
        measured("Matcher, eps", "Matcher", column="N = 20", validation=9.0),
        measured(
            "Matcher, 1.5 eps", "Matcher", column="N = 20", figures={}, training={}, keys=(), missing=("gone",)
        ),
    ]
    return grid, rows_of(grid, cells)


def test_of_a_series_the_best_validation_counts_not_the_best_test():
    _, rows = scaling_rows()
    assert [row.selected for row in rows] == [True, False, True, True, False]


def test_the_metric_of_a_run_says_which_validation_is_the_best():
    grid = read_grid("scaling")
    cells = [
        measured(
            name, "Matcher", validation=value, configuration=configuration(name, "Matcher", metric="isomorphic")
        )
        for name, value in (("low", 1.5), ("high", 2.0))
    ]
    assert [row.selected for row in rows_of(grid, cells)] == [False, True]


def test_a_grid_may_show_any_metric_of_the_table(tmp_path):
    store, wanted = Store(tmp_path), configuration("Any2Graph", column="Coloring 10", jobs=1)
    folder = store.folder(wanted.jobs[0])
    folder.mkdir()
    (folder / "record.json").write_text("{}")
    (folder / "samples.csv").write_text("sample,group,edit,node_accuracy\n0,0,2,0.5\n1,1,4,1.0\n")
    assert measure(wanted, store).figures.keys() == {"edit"}
    found = measure(wanted, store, ("node_accuracy",))
    assert (found.figures["edit"].mean, found.figures["node_accuracy"].mean) == (3.0, 75.0)
    grid = read_grid("table1").model_copy(update={"further_metrics": ("node_accuracy",)})
    rows = rows_of(grid, [found])
    assert "| isomorphic, % | node accuracy, % | training |" in markdown(grid, Scale.CPU, rows)
    write_csv(tmp_path / "table.csv", grid, rows)
    (row, *_) = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert (row["node_accuracy"], row["node_accuracy_seeds"]) == ("75.0", "75")


def test_a_grid_with_an_unknown_metric_is_refused(tmp_path):
    source = (FOLDER / "table1.yaml").read_text() + "\nfurther_metrics: [beauty]\n"
    (tmp_path / "table1.yaml").write_text(source)
    with pytest.raises(SettingsError, match=r"further_metrics.*there is no metric 'beauty'"):
        parse_grid("table1", tmp_path / "table1.yaml")


def test_a_table_has_the_papers_figures_ours_and_a_link_for_every_run():
    grid = read_grid("table1")
    cells = [
        measured("Any2Graph", column="Coloring 10"),
        measured("Relationformer", column="Coloring 10", keys=("a" * 16,), missing=("seed 1 failed: no good",)),
    ]
    text = markdown(grid, Scale.CPU, rows_of(grid, cells))
    (line,) = [line for line in text.splitlines() if line.startswith("| Any2Graph |")]
    assert line == (
        "| Any2Graph | 2.82 | 31.79 | 3.00 (2.00 to 4.00); 2.50, 3.50 |  |  "
        "| 25.00 (20.00 to 30.00); 24.00, 26.00 "
        "| 1.5 min, 1,200 steps, 4 ms per sample "
        "| [aaaaaa](records/aaaaaaaaaaaaaaaa.json) [bbbbbb](records/bbbbbbbbbbbbbbbb.json) |"
    )
    assert "seed 1 failed: no good |" in text
    assert "best of four starts of conditional gradient on J" in text
    for word in ("Data:", "Budget:", "Metric:"):
        assert f"- {word}" in text.split("## What differs from the paper")[1]


def test_what_the_paper_prints_of_no_method_has_rows_of_its_own(tmp_path):
    grid, rows = scaling_rows()
    lines = markdown(grid, Scale.CPU, rows).splitlines()
    assert [line for line in lines if "(Table 1)" in line] == [
        "| Any2Graph + Matcher (Table 1) | 2.3 | 45.46 |  |  |  |  |  |  |",
        "| Any2Graph + Matcher (Table 1) | 2.64 | 46.47 |  |  |  |  |  |  |",
    ]
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1
    write_csv(tmp_path / "table.csv", grid, rows)
    *_, last = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert (last["column"], last["method"]) == ("N = 20", "Any2Graph + Matcher (Table 1)")
    assert (last["printed_edit"], last["printed_isomorphic"], last["edit"]) == ("2.64", "46.47", "")


def test_the_rows_of_table2_say_their_divergence_and_reading(tmp_path):
    grid = read_grid("table2")
    cells = [
        measured(each.method, configuration=each)
        for each in expand(grid, Scale.CPU)
        if each.column == "Coloring 20"
    ]
    text = markdown(grid, Scale.CPU, rows_of(grid, cells))
    assert "| method | divergence, reading | paper: edit |" in text
    for start in (
        "| J(T; f, A*) | cross entropy, not swapped | 2.64 |",
        "| J_b(T; f, A*) | kl, not swapped | 22.42 |",
        "| J_a(T; A*, f) | kl, literal | 25.84 |",
        "| J_b(T; A*, f) | kl, role preserving | 13.61 |",
    ):
        assert start in text
    write_csv(tmp_path / "table.csv", grid, rows_of(grid, cells))
    lines = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert [(line["divergence"], line["order"], line["reading"]) for line in lines][-2:] == [
        ("kl", "target_first", "literal"),
        ("kl", "target_first", "role_preserving"),
    ]


def test_a_reason_cannot_break_a_table(tmp_path):
    store, grid = Store(tmp_path), read_grid("table1")
    broken = configuration("Any2Graph", column="Coloring 10", jobs=1)
    store.folder(broken.jobs[0]).mkdir()
    (store.folder(broken.jobs[0]) / "failure.json").write_text(json.dumps({"error": "bad: a | b\n\n  then c"}))
    found = measure(broken, store)
    assert found.missing == ("seed 0 failed: bad: a | b then c",)
    text = markdown(grid, Scale.CPU, rows_of(grid, [found]))
    assert r"| seed 0 failed: bad: a \| b then c |" in text


def test_bars_are_of_the_papers_metric_and_of_the_true_one_hatched_where_there_are_no_slots():
    grid = read_grid("table1")
    figures = {
        name: Average(value, Interval(value, value), (value,))
        for name, value in (("aligned_edit", 9.0), ("edit", 4.0), ("aligned_exact", 1.0), ("isomorphic", 25.0))
    }
    true = {name: figures[name] for name in ("edit", "isomorphic")}
    cells = [
        measured("Any2Graph", column="Coloring 10", figures=figures),
        measured("FGWBary", column="Coloring 10", figures=true),
    ]
    drawing = draw_grid(grid, Scale.CPU, rows_of(grid, cells))
    left, right = drawing.axes
    assert [bar.get_width() for bar in left.patches] == [9.0, 4.0]
    assert [bar.get_width() for bar in right.patches] == [1.0, 25.0]
    assert [[bar.get_hatch() is not None for bar in panel.patches] for panel in (left, right)] == [
        [False, True]
    ] * 2
    diamonds = [line for line in left.lines if line.get_marker() == "D"]
    assert [list(line.get_xdata()) for line in diamonds] == [[2.82, 6.73]]
    (legend,) = drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "paper",
        "one seed",
        "true, without slots to align",
    ]


def test_a_task_of_which_nothing_is_known_has_no_panel_of_bars():
    grid = read_grid("table1")
    figures = {"edit": Average(4.0, None, (4.0,)), "isomorphic": Average(25.0, None, (25.0,))}
    cells = [
        measured("Any2Graph", column="QM9", figures={}),  # neither run nor printed
        measured("Any2Graph", column="Coloring 10", figures=figures),
        measured("Any2Graph", column="Coloring 20", figures={}),  # printed by the paper
    ]
    titles = [panel.get_title() for panel in draw_grid(grid, Scale.CPU, rows_of(grid, cells)).axes]
    assert [title.partition(":")[0] for title in titles] == ["Coloring 10"] * 2 + ["Coloring 20"] * 2
    assert draw_grid(grid, Scale.CPU, rows_of(grid, cells[:1])).axes == []


def test_progress_is_a_line_for_every_run_in_the_panel_of_its_task():
    grid = read_grid("comparison")
    runs = (((60.0, 10.0), (120.0, 20.0)), ((60.0, 12.0), (120.0, 24.0)))
    cells = [
        measured("learned", column="Coloring 10", progress=runs),
        measured("barycentre", "barycentre", column="Coloring 10", progress=((),)),  # not trained
        measured("mirror", column="Coloring 20"),  # not run yet
    ]
    (panel,) = draw_grid(grid, Scale.CPU, rows_of(grid, cells)).axes  # no other task has a run
    assert panel.get_title() == "Coloring 10"
    drawn = [line for line in panel.lines if len(line.get_xdata()) == 2 and line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in drawn] == [[1.0, 2.0], [1.0, 2.0]]
    assert [list(line.get_ydata()) for line in drawn] == [[10.0, 20.0], [12.0, 24.0]]
    printed = {"learned", "conditional gradient", "barycentre"}
    assert {text.get_text() for text in panel.texts} == {f"paper: {name}" for name in printed}
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["learned"]
    assert draw_grid(grid, Scale.CPU, rows_of(grid, cells[1:])).axes == []


def test_the_frontier_has_a_panel_for_edits_and_one_for_exact_graphs_and_names_every_point():
    grid = read_grid("frontier")
    figures = [(4.0, 10.0), (3.0, 20.0), (3.5, 15.0)]
    cells = [
        measured(
            f"Mirror, K_in {at}",
            "Mirror",
            figures={
                "aligned_edit": Average(edit, None, (edit,)),
                "isomorphic": Average(exact, None, (exact,)),
            },
            training={"seconds_per_sample": 0.008 + 0.001 * at},
        )
        for at, (edit, exact) in enumerate(figures)
    ]
    panels = draw_grid(grid, Scale.CPU, rows_of(grid, cells)).axes
    assert [panel.get_ylabel() for panel in panels] == ["aligned edit distance", "isomorphic graphs, %"]
    for panel, ys in zip(panels, zip(*figures, strict=True), strict=True):
        (points,) = [line for line in panel.lines if line.get_linestyle() == "None"]
        assert list(points.get_xdata()) == pytest.approx([8, 9, 10])
        assert list(points.get_ydata()) == list(ys)
        best = panel.lines[-1]  # the third costs more than the second and is worse
        assert (list(best.get_xdata()), list(best.get_ydata())) == (pytest.approx([8, 9]), list(ys[:2]))
        assert {text.get_text() for text in panel.texts} == {"K_in 0", "K_in 1", "K_in 2"}


def test_the_curve_says_seed_by_seed_how_far_a_method_is_from_the_first():
    grid = read_grid("scaling")

    def at(method, series, column, x, *seeds):
        edit = {"aligned_edit": Average(sum(seeds) / len(seeds), None, seeds)}
        found = measured(method, series, column, figures=edit)
        return replace(found, configuration=replace(found.configuration, x=x))

    cells = [
        at("Mirror", "Mirror", "N = 10", 10.0, 2.0, 4.0),
        at("Mirror", "Mirror", "N = 20", 20.0, 10.0),
        at("Matcher, eps", "Matcher", "N = 10", 10.0, 3.0, 3.0),
        at("Matcher, eps", "Matcher", "N = 20", 20.0, 8.0),
    ]
    _, ratio = draw_grid(grid, Scale.CPU, rows_of(grid, cells)).axes
    lines = {line.get_label(): line for line in ratio.lines}
    assert list(lines["Mirror"].get_ydata()) == [1.0, 1.0]
    assert list(lines["Matcher"].get_ydata()) == [1.0, 0.8]
    own_color = [line for line in ratio.lines if line.get_color() == lines["Matcher"].get_color()]
    seeds = [list(line.get_ydata()) for line in own_color if line is not lines["Matcher"]]
    assert seeds == [[1.5, 0.75], [0.8]]


def test_the_curve_has_the_ratio_of_true_edits_too_since_it_may_say_the_opposite():
    def at(method, series, aligned, true):
        figures = {
            name: Average(value, None, (value,)) for name, value in (("aligned_edit", aligned), ("edit", true))
        }
        found = measured(method, series, "N = 10", figures=figures)
        return replace(found, configuration=replace(found.configuration, x=10.0))

    grid = read_grid("scaling")
    cells = [at("Mirror", "Mirror", 4.0, 2.0), at("Matcher, eps", "Matcher", 3.0, 3.0)]
    _, ratio = draw_grid(grid, Scale.CPU, rows_of(grid, cells)).axes
    dotted = [list(line.get_ydata()) for line in ratio.lines if line.get_linestyle() == ":"]
    assert dotted == [[1.0], [1.5]]


def test_only_what_had_rivals_is_called_selected():
    grid = read_grid("scaling")
    cells = [measured(f"Matcher, {name}", "Matcher", "N = 10") for name in ("eps", "1.5 eps")]
    alone = rows_of(grid, [replace(cells[0], training={"best_validation": 1.0})])
    assert "**selected**" not in markdown(grid, Scale.CPU, alone)
    both = rows_of(grid, [replace(each, training={"best_validation": at}) for at, each in enumerate(cells)])
    assert markdown(grid, Scale.CPU, both).count("**selected**") == 1


@given(st.lists(st.floats(0, 1), max_size=30).map(sorted), st.floats(0.001, 0.2))
def test_names_beside_a_panel_keep_their_distance_and_order(heights, gap):
    moved = spread_apart(heights, gap)
    assert len(moved) == len(heights)
    assert all(above - below >= gap * (1 - 1e-9) for below, above in itertools.pairwise(moved))
    assert all(height > -1e-9 for height in moved)
    assert not moved or moved[-1] <= max(1.0, gap * (len(moved) - 1)) + 1e-9
    if all(above - below >= gap for below, above in itertools.pairwise(heights)):
        assert moved == pytest.approx(heights)


@pytest.mark.parametrize("name", ["table1", "table2", "frontier", "scaling", "comparison", "tokens", "ablations"])
@pytest.mark.parametrize("scale", [Scale.CPU, Scale.PAPER])
def test_every_page_says_what_differs_in_the_budget(name, scale):
    lines = read_grid(name).scales[scale].differs
    assert any(line.startswith("Budget:") for line in lines)


def test_the_csv_has_every_figure(tmp_path):
    grid, rows = scaling_rows()
    write_csv(tmp_path / "table.csv", grid, rows)
    lines = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert [line["selected"] for line in lines] == ["True", "False", "True", "True", "False", "", ""]
    assert (lines[0]["aligned_edit"], lines[0]["aligned_edit_low"], lines[0]["aligned_edit_seeds"]) == (
        "3.0",
        "2.0",
        "2.5 3.5",
    )
    assert (lines[0]["training_seconds"], lines[0]["records"]) == ("90.0", f"{'a' * 16} {'b' * 16}")
    assert (lines[4]["aligned_edit"], lines[4]["missing"]) == ("", "gone")


@pytest.mark.parametrize("name", ["table1", "frontier", "scaling", "comparison"])
def test_figures_are_drawn_of_whatever_there_is_and_alike_every_time(name, tmp_path):
    grid = read_grid(name)
    column = grid.columns[0].name
    cells = [
        measured("Any2Graph", "Matcher", column),
        measured("FGWBary", "Mirror", column, figures={}, training={}, keys=(), missing=("missing",)),
    ]
    written = []
    for at in range(2):
        folder = tmp_path / str(at)
        folder.mkdir()
        write_figure(folder, draw_grid(grid, Scale.CPU, rows_of(grid, cells)))
        assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
        written.append((folder / "figure.svg").read_bytes())
    assert written[0] == written[1]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_the_frontier_is_what_nothing_dominates(points):
    kept = frontier(points)
    best = {(x, y) for x, y in points if not any((a, b) != (x, y) and a <= x and b <= y for a, b in points)}
    assert set(kept) == best
    assert kept == sorted(kept)


def test_a_configuration_without_results_says_why(tmp_path):
    found = measure(configuration("learned"), Store(tmp_path))
    assert (found.figures, found.keys) == ({}, ())
    assert found.missing == ("seed 0 missing", "seed 1 missing")
    assert measure(configuration("x", jobs=1, baseline="nearest"), Store(tmp_path)).missing == ("missing",)


def test_a_file_of_samples_without_samples_is_refused(tmp_path):
    (tmp_path / "samples.csv").write_text("sample,group,edit\n")
    with pytest.raises(ValueError, match=r"samples\.csv has no samples: delete its folder"):
        read_samples(tmp_path / "samples.csv")


COST = Cost(training=0.01, evaluation=0.1, epoch=80, preparation=2.0)


@pytest.mark.parametrize(
    ("train", "steps", "seconds"),
    [
        # A step of 8 samples takes 0.08 s, its share of a validation of 4 every 10 steps 0.04 s.
        ({"steps": 50}, 50, 6.0),
        ({"steps": None, "epochs": 3}, 30, 3.6),
        ({"steps": None, "minutes": 1.0}, 500, 60.0),
        ({"steps": 50, "minutes": 1.0}, 50, 6.0),
    ],
)
def test_training_takes_what_its_strictest_budget_says(train, steps, seconds):
    job = Job(tiny_settings(train={"validate_every": 10, **train}), samples=5)
    assert training_time(job, COST) == (steps, pytest.approx(seconds))


def test_shared_and_finished_jobs_are_counted_once_and_never(tmp_path):
    store = Store(tmp_path)
    first, again = configuration("first"), configuration("again")
    plain = configuration("nearest", jobs=1, baseline="nearest")
    folder = store.folder(first.jobs[1])
    folder.mkdir()
    (folder / "record.json").write_text("{}")
    found = list(estimates([first, again, plain], store, lambda _: COST))
    assert [each.missing for each in found] == [1, 0, 1]
    assert found[0].milliseconds == 10.0
    assert found[2].steps is None
    assert found[2].seconds == pytest.approx(START + 2.0 + 5 * 0.1)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(1, 3))
def test_wall_time_is_that_of_a_sound_schedule(lengths, jobs):
    each = [Estimate(configuration("x"), None, None, float(length), 1) for length in lengths]
    wall = wall_seconds(each, jobs)
    best = min(
        max(sum(length for length, at in zip(lengths, places, strict=True) if at == who) for who in range(jobs))
        for places in itertools.product(range(jobs), repeat=len(lengths))
    )
    assert best <= wall <= best * (4 / 3) + 1e-9  # Graham's bound for the longest first


def test_a_cost_is_measured_once(tmp_path, monkeypatch):
    job = Job(RUN, samples=5)
    cost = measured_cost(job, 1, tmp_path)
    assert cost.training > 0
    assert cost.evaluation > 0
    assert cost.epoch == 320
    monkeypatch.setattr("graphwright.experiments.estimate.measure_cost", lambda _: pytest.fail("known"))
    seeded = RUN.model_copy(update={"train": RUN.train.model_copy(update={"seed": 5, "steps": 99})})
    assert measured_cost(Job(seeded, samples=9), 1, tmp_path) == cost


def test_a_method_without_training_is_measured_too(tmp_path):
    cost = measured_cost(Job(RUN, samples=500, baseline="nearest", references=10), 1, tmp_path)
    assert (cost.training, cost.epoch) == (0.0, 0)
    assert cost.evaluation > 0
