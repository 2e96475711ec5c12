"""The grids are the paper's: how many configurations, which values, what they share."""

import re

import pytest

from graphwright.experiments import Scale, expand, grid_names, read_grid
from graphwright.experiments.grid import Changes, build_run, parse_grid
from graphwright.settings import Run, SettingsError, load_run
from graphwright.settings.schema import ModelKind
from graphwright.training import build_matcher

EPSILONS = {  # the paper's table of candidates, in units of 1e-6
    10: (22.5, 30.0, 45.0),
    20: (5.625, 7.5, 11.25),
    30: (2.5, 3.33, 5.0),
    40: (1.406, 1.875, 2.813),
    50: (0.9, 1.2, 1.8),
    60: (0.625, 0.833, 1.25),
}


def epsilon_of(run: Run) -> float:
    """What the run's plans are regularised with."""
    return build_matcher(run).epsilon


def of_the_paper(name, scale):
    return [each for each in expand(read_grid(name), scale) if each.paper and each.trained]


@pytest.mark.parametrize("scale", [Scale.SMOKE, Scale.PAPER])
@pytest.mark.parametrize(("name", "count"), [("frontier", 14), ("scaling", 24), ("table2", 15), ("table1", 12)])
def test_grids_expand_to_the_configurations_of_the_paper(name, count, scale):
    configurations = of_the_paper(name, scale)
    assert len(configurations) == count
    assert len({job.key for each in configurations for job in each.jobs}) == sum(
        len(each.jobs) for each in configurations
    )
    assert len({(each.column, each.method) for each in configurations}) == count


@pytest.mark.parametrize("scale", list(Scale))
def test_every_grid_loads_at_every_scale(scale):
    trained = {"table1", "table2", "frontier", "scaling", "comparison", "tokens", "ablations"}
    assert set(grid_names()) == trained | {"examples"}
    for name in grid_names():
        for each in expand(read_grid(name), scale):
            assert "{" not in each.method
            assert each.jobs


def test_scaling_has_the_papers_epsilons():
    found = {}
    for each in expand(read_grid("scaling"), Scale.PAPER):
        matching = each.jobs[0].run.matching
        assert each.jobs[0].run.task.capacity == each.x
        if each.series == "Matcher":
            found.setdefault(int(each.x), []).append(1e6 * epsilon_of(each.jobs[0].run))
        else:
            assert (matching.kind, matching.tau, matching.inner, matching.outer) == ("mirror", 0.1, 20, 20)
    for n, values in EPSILONS.items():
        assert found[n] == pytest.approx(values, rel=2e-3)


def test_frontier_has_the_papers_steps():
    runs = [each.jobs[0].run for each in expand(read_grid("frontier"), Scale.PAPER)]
    mirror = {(run.matching.inner, run.matching.outer) for run in runs if run.matching.kind == "mirror"}
    assert mirror == {(inner, outer) for inner in (1, 10, 100) for outer in (10, 100)}
    learned = [run for run in runs if run.matching.kind == "learned"]
    assert [epsilon_of(run) for run in learned] == pytest.approx([1e-5] * 8)
    steps = {(run.matching.iterations, run.loss.marginals) for run in learned}
    assert steps == {(count, weight) for count in (5, 10, 50, 100) for weight in (0.0, 1.0)}


def test_table1_gives_any2graph_half_the_epochs_at_the_papers_scale():
    cells = {(each.column, each.method): each.jobs[0].run for each in expand(read_grid("table1"), Scale.PAPER)}
    for column, epochs in (
        ("Coloring 10", 120),
        ("Coloring 20", 120),
        ("MS2Scaffold", 100),
        ("Fingerprint2Mol", 10),
    ):
        assert cells[column, "Any2Graph + Matcher"].train.epochs == epochs
        assert cells[column, "Any2Graph"].train.epochs == epochs // 2
        assert cells[column, "Any2Graph"].matching.kind == "conditional_gradient"
        assert cells[column, "Relationformer"].model.kind is ModelKind.RELATIONFORMER


@pytest.mark.parametrize(
    ("column", "preset"),
    [
        ("Coloring 10", "coloring10"),
        ("Coloring 20", "coloring20"),
        ("MS2Scaffold", "ms2scaffold"),
        ("Fingerprint2Mol", "fingerprint2molecule"),
    ],
)
def test_table1_has_the_relationformer_of_the_presets(column, preset):
    def row(scale):
        return next(
            each.jobs[0].run
            for each in expand(read_grid("table1"), scale)
            if (each.column, each.method) == (column, "Relationformer")
        )

    run, own = row(Scale.PAPER), load_run(f"relationformer-{preset}-paper")
    assert run == own.model_copy(update={"train": own.train.model_copy(update={"metric": run.train.metric})})
    assert row(Scale.CPU).loss == own.loss


@pytest.mark.parametrize("scale", list(Scale))
def test_the_runs_of_J_in_table2_and_of_the_examples_are_those_of_table1(scale):
    table1 = {
        each.column: each.jobs
        for each in expand(read_grid("table1"), scale)
        if each.method == "Any2Graph + Matcher"
    }
    table2 = [each for each in expand(read_grid("table2"), scale) if "no diffusion" not in each.column]
    assert {each.column for each in table2} <= table1.keys()
    for each in table2:
        assert (each.jobs == table1[each.column]) == (each.method == "J(T; f, A*)")
    for each in expand(read_grid("examples"), scale):
        assert each.jobs == table1[each.column]


def test_table2_reads_the_swapped_orders_as_the_specification_says():
    losses = {
        each.method: each.jobs[0].run.loss
        for each in expand(read_grid("table2"), Scale.CPU)
        if "Color" in each.column
    }
    assert {name: (loss.objective, loss.divergence, loss.order) for name, loss in losses.items()} == {
        "J(T; f, A*)": ("J", "cross_entropy", "prediction_first"),
        "J_a(T; f, A*)": ("J_a", "kl", "prediction_first"),
        "J_b(T; f, A*)": ("J_b", "kl", "prediction_first"),
        "J_a(T; A*, f)": ("J_a", "kl", "target_first"),
        "J_b(T; A*, f)": ("J_b", "kl", "target_first"),
    }
    assert losses["J_a(T; A*, f)"].reading == "literal"
    assert losses["J_b(T; A*, f)"].reading == "role_preserving"


CPU_COLUMNS = {
    "table1": ["Coloring 10", "Coloring 20", "MS2Scaffold", "QM9", "Fingerprint2Mol"],
    "table2": ["Coloring 10", "Coloring 10, no diffusion", "Coloring 20", "MS2Scaffold"],
    "frontier": ["Coloring 20"],
    "scaling": ["N = 10", "N = 20", "N = 30", "N = 40"],
}
ONE_SEED = ("MS2Scaffold", "QM9", "Fingerprint2Mol", "N = 30", "N = 40")


@pytest.mark.parametrize("name", list(CPU_COLUMNS))
def test_the_cpu_scale_has_the_tasks_that_its_columns_are_called_by(name):
    cells = expand(read_grid(name), Scale.CPU)
    assert list(dict.fromkeys(each.column for each in cells)) == CPU_COLUMNS[name]
    for each in cells:
        task = each.jobs[0].run.task
        capacity = {"MS2Scaffold": 32, "QM9": 9, "Fingerprint2Mol": 32}.get(each.column)
        assert task.capacity == (capacity or int(re.search(r"\d+", each.column).group()))
        if task.kind == "coloring":
            assert task.diffusion != ("no diffusion" in each.column)


def test_coloring_in_the_tables_and_in_scaling_is_that_of_the_comparison():
    """One run serves all of them."""
    keys = {job.key for each in expand(read_grid("comparison"), Scale.CPU) for job in each.jobs}
    methods = ("Any2Graph", "Any2Graph + Matcher", "Mirror descent", "J(T; f, A*)", "Mirror", "Matcher, eps")
    for name, columns in CPU_COLUMNS.items():
        for each in expand(read_grid(name), Scale.CPU):
            if name != "frontier" and each.column in (*columns[:2], "Coloring 20") and each.method in methods:
                assert keys.issuperset(job.key for job in each.jobs), (name, each.column, each.method)


@pytest.mark.parametrize("name", [*CPU_COLUMNS, "comparison", "tokens"])
def test_all_runs_of_a_cpu_comparison_have_the_same_processor_time_threads_and_seeds(name):
    """Those of a column: what is compared with each other."""
    columns = {}
    for each in expand(read_grid(name), Scale.CPU):
        if each.trained:
            columns.setdefault(each.column, []).extend(job.run.train for job in each.jobs)
    assert columns
    for column, runs in columns.items():
        assert len({(run.minutes, run.threads, run.batch_size, run.steps, run.epochs) for run in runs}) == 1
        assert {run.clock for run in runs} == {"processor"}
        once = name == "frontier" or (name != "tokens" and column in ONE_SEED)
        assert {run.seed for run in runs} == ({0} if once else {0, 1})


def test_the_cpu_scale_fits_six_and_a_half_hours_of_two_cores():
    """Budgets alone: each run's minutes, one core each, and a minute for its start and its evaluation."""
    jobs = {
        job.key: job
        for name in ("table1", "table2", "frontier", "scaling")
        for each in expand(read_grid(name), Scale.CPU)
        if each.trained
        for job in each.jobs
    }
    assert sum((job.run.train.minutes + 1) / 60 for job in jobs.values()) / 2 < 6.5


def test_the_number_of_seeds_can_be_chosen():
    assert {len(each.jobs) for each in expand(read_grid("frontier"), Scale.SMOKE, seeds=3)} == {3}


def test_a_column_and_a_method_can_have_their_own_number_of_seeds_unless_one_is_asked_for(tmp_path):
    path = tmp_path / "own.yaml"
    column = "{name: own, start: {smoke: coloring4-cpu}, at: {smoke: {seeds: 2}}}"
    method = "{name: often, set: {}, at: {smoke: {seeds: 3}}}"
    changed = GOOD.replace("[Coloring 10]", f"[Coloring 10, {column}]")
    path.write_text(changed.replace("\nmethods: [", f"\nmethods: [{method}, "))
    grid = parse_grid("own", path)
    seeds = {(each.column, each.method): len(each.jobs) for each in expand(grid, Scale.SMOKE)}
    assert set(seeds) == {(name, row) for name in ("Coloring 10", "own") for row in ("often", "learned")}
    assert [seeds["Coloring 10", "learned"], seeds["own", "learned"]] == [1, 2]
    assert [seeds["Coloring 10", "often"], seeds["own", "often"]] == [3, 3]
    assert {len(each.jobs) for each in expand(grid, Scale.SMOKE, seeds=1)} == {1}


def test_the_comparison_has_every_way_to_find_a_plan():
    configurations = expand(read_grid("comparison"), Scale.CPU)
    every = {
        "learned": ("learned", "soft", 0.0),
        "learned, rounded": ("learned", "rounded", 1.0),
        "mirror": ("mirror",),
        "conditional gradient": ("conditional_gradient",),
        "labels": ("labels",),
    }
    found = {}
    for each in configurations:
        if each.trained:
            matching = each.jobs[0].run.matching
            options = (matching.kind, matching.plan.value, matching.linear_costs)
            learned = matching.kind == "learned"
            found.setdefault(each.column, {})[each.method] = options if learned else options[:1]
    assert any(methods == every for methods in found.values())
    assert all(methods.items() <= every.items() for methods in found.values())
    assert all({"learned", "conditional gradient"} <= methods.keys() for methods in found.values())
    assert [each.jobs[0].baseline for each in configurations if not each.trained] == ["barycentre", "nearest"]


def test_ablations_have_equal_steps_and_seeds_and_all_differ():
    columns = {}
    for each in expand(read_grid("ablations"), Scale.CPU):
        columns.setdefault(each.column, []).append(each)
    for configurations in columns.values():
        runs = [job.run.train for each in configurations for job in each.jobs]
        assert len({(run.steps, run.minutes, run.epochs, run.threads, run.batch_size) for run in runs}) == 1
        assert runs[0].steps
        assert {run.seed for run in runs} == {0, 1}
        assert len({each.jobs[0].key for each in configurations}) == len(configurations)


def test_changes_come_in_order_values_then_factors():
    layers = [
        Changes(
            set={"task.capacity": 5, "train.epochs": 7, "matching.kind": "learned", "matching.temperature": 1.0},
            times={"matching.temperature": 2},
        ),
        Changes(
            set={"task.capacity": 4, "task.min_size": 2, "matching.temperature": 1.6e-3},
            times={"train.epochs": 0.5},
        ),
    ]
    run = build_run("coloring10-cpu", layers, "x.yaml")
    assert (run.task.capacity, run.train.epochs, run.train.minutes) == (4, 4, None)
    assert run.matching.temperature == pytest.approx(3.2e-3)
    assert epsilon_of(run) == pytest.approx(4e-4)  # at dimension 64 twice as large


@pytest.mark.parametrize("key", ["train.nonsense", "train.epochs", "model.encoder", "nowhere.at_all"])
def test_only_numbers_that_are_there_can_be_multiplied(key):
    with pytest.raises(SettingsError, match=f"x.yaml: times {key}: there is no number"):
        build_run("coloring10-cpu", [Changes(times={key: 2.0})], "x.yaml")


GOOD = """
title: t
summary: s
figure: bars
columns: [Coloring 10]
methods: [{name: learned, set: {matching.kind: learned}}]
scales: {smoke: {seeds: 1, samples: 2}}
"""


COLUMN = "[{name: own, start: {smoke: coloring4-cpu}}]"


def test_a_column_and_a_method_are_left_out_where_a_scale_does_not_have_them(tmp_path):
    path = tmp_path / "own.yaml"
    both = GOOD.replace("{smoke:", "{cpu: {seeds: 1, samples: 2}, smoke:")
    both = both.replace("[Coloring 10]", f"[Coloring 10, {COLUMN[1:-1]}]")
    path.write_text(
        both.replace("methods: [", "methods: [{name: few, scales: [cpu], set: {matching.kind: mirror}}, ")
    )
    grid = parse_grid("own", path)
    assert [(each.column, each.method) for each in expand(grid, Scale.SMOKE)] == [
        ("Coloring 10", "learned"),
        ("own", "learned"),
    ]
    assert [(each.column, each.method) for each in expand(grid, Scale.CPU)] == [
        ("Coloring 10", "few"),
        ("Coloring 10", "learned"),
    ]


def test_a_grid_of_ones_own_takes_shared_columns_and_settings(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(GOOD)
    (each,) = expand(parse_grid("own", path), Scale.SMOKE)
    assert each.column == "Coloring 10"
    assert each.jobs[0].run.train.steps == 2
    assert each.jobs[0].samples == 2
    with pytest.raises(SettingsError, match="own has no scale cpu, only smoke"):
        expand(parse_grid("own", path), Scale.CPU)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[", "not valid YAML"),
        ("- 1", "expected the fields"),
        (GOOD.replace("figure: bars", "figure: pie"), "figure: Input should be 'bars'"),
        (GOOD.replace("seeds: 1", "seeds: 0"), "scales.smoke.seeds"),
        (GOOD.replace("columns: [Coloring 10]", "columns: [Colouring]"), "columns.0"),
        (GOOD + "printed: {learned: {Nowhere: [1, 2]}}", "printed learned names the column Nowhere"),
        (GOOD + "beside: {other: {Nowhere: [1, 2]}}", "printed other names the column Nowhere"),
        (GOOD + "printed: {lerned: {Coloring 10: [1, 2]}}", "printed lerned is no method"),
        (GOOD + "beside: {learned: {Coloring 10: [1, 2]}}", "beside learned is a method"),
        (GOOD.replace("name: learned,", "name: learned, only: [Nowhere],"), "names the column Nowhere"),
        (GOOD.replace("{smoke:", "{smoke: {seeds: 1, samples: 2}, papers:"), "scales"),
        (
            GOOD.replace("{smoke:", "{cpu: {seeds: 1, samples: 2}, smoke:").replace("[Coloring 10]", COLUMN),
            "scale cpu",
        ),
        (GOOD + "colour: red", "colour"),
    ],
)
def test_a_bad_grid_is_refused_by_name(tmp_path, text, complaint):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        parse_grid("own", path)
    assert str(path) in str(caught.value)
    assert complaint in str(caught.value)


def test_an_unknown_setting_in_a_grid_names_the_nearest(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(GOOD.replace("matching.kind", "matching.knid"))
    with pytest.raises(SettingsError, match=r"own.yaml: matching.knid.*did you mean matching.kind"):
        expand(parse_grid("own", path), Scale.SMOKE)


def test_an_unknown_experiment_is_refused():
    with pytest.raises(SettingsError, match="no experiment 'table3': they are ablations, comparison"):
        read_grid("table3")
