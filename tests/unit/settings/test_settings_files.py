"""Settings in files: YAML, run folders, and what is said about those that cannot be read."""

import json
import os
import subprocess
import sys

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphwright.settings import Override, Run, SettingsError, load_run, presets, to_yaml


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write my.yaml in an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def function(text):
        (tmp_path / "my.yaml").write_text(text)
        return "my.yaml"

    return function


def message(source, *overrides):
    with pytest.raises(SettingsError) as error:
        load_run(source, overrides)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_file_starts_from_the_defaults(write):
    run = load_run(write("model:\n  width: 64\nmatching: {kind: labels, temperature: 1e-3}\n"))
    assert (run.model.width, run.matching.kind, run.matching.temperature) == (64, "labels", 1e-3)
    assert (run.task, run.loss, run.train) == (Run().task, Run().loss, Run().train)


@pytest.mark.parametrize("text", ["", "# nothing\n", "model:\n"])
def test_an_empty_file_is_the_defaults(write, text):
    assert load_run(write(text)) == Run()


def test_a_file_can_start_from_a_preset_and_overrides_come_on_top(write):
    source = write("preset: coloring20\nmodel:\n  width: 64\n  heads: 2\n")
    preset = load_run("coloring20")
    run = load_run(source, [Override("model.heads", "8")])
    assert run == preset.model_copy(update={"model": preset.model.model_copy(update={"width": 64, "heads": 8})})


def test_a_files_budget_replaces_the_presets_and_an_override_the_files(write):
    source = write("preset: coloring10-paper\ntrain:\n  steps: 9\n")
    assert (load_run(source).train.epochs, load_run(source).train.steps) == (None, 9)
    train = load_run(source, [Override("train.minutes", "5")]).train
    assert (train.epochs, train.steps, train.minutes) == (None, None, 5)


def test_a_dotted_name_at_the_top_is_the_setting(write):
    assert load_run(write("model.width: 64\n")).model.width == 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "matching:\n  kind: learned\n  temp: 3\n",
            "my.yaml:3: matching.temp: there is no such setting; did you mean matching.temperature",
        ),
        ("\nmodle:\n  width: 3\n", "my.yaml:2: modle: there is no such section; did you mean model?"),
        ("zzz: [1]\n", "my.yaml:1: zzz: there is no such section; the sections are task, model, "),
        (
            "temperature: 3\n",
            "my.yaml:1: temperature: there is no such setting; did you mean matching.temperature",
        ),
        ("model:\n  width: wide\n", "my.yaml:2: model.width must be a whole number at least 1, got 'wide'"),
        ("model:\n  width: true\n", "my.yaml:2: model.width must be a whole number at least 1, got 'true'"),
        ("model:\n  width:\n", "my.yaml:2: model.width must be a whole number at least 1, got nothing"),
        ("model:\n  width: [64]\n", "my.yaml:2: model.width must be a whole number at least 1, got a list"),
        ("model:\n  width: {a: 1}\n", "my.yaml:2: model.width must be a whole number at least 1, got a section"),
        ("model:\n  qqq: [64]\n", "my.yaml:2: model.qqq: there is no such setting; model has encoder, "),
        ("loss:\n  objective: K\n", "my.yaml:2: loss.objective must be one of J, J_a, J_b, got 'K'"),
        (
            "model:\n  encoder: segform\n",
            "my.yaml:2: model.encoder must be one of fingerprint, vector, tokens, set, columns, "
            "cnn, segformer, spectrum, several, got 'segform'; did",
        ),
        (
            "matching:\n  kind: learnt\n",
            "my.yaml:2: matching.kind must be one of mirror, conditional_gradient, labels, order, learned",
        ),
        ("model:\n  heads: 4\n  width: 130\n", "my.yaml:3: model.width: width 130 is not a multiple of heads 4"),
        ("train:\n  minutes: null\n", "my.yaml:2: train.minutes: give a budget: epochs, steps or minutes"),
        ("model: 5\n", "my.yaml:1: expected model to hold settings such as encoder"),
        ("model: [5]\n", "my.yaml:1: expected model to hold settings such as encoder"),
        ("- 5\n", "my.yaml:1: expected the sections task, model, matching, loss, train"),
        ("just words\n", "my.yaml:1: expected the sections task, model, matching, loss, train"),
        ("model:\n  width: 8\n  width: 16\n", "my.yaml:3: model.width is given twice"),
        ("model:\n  width: 8\nmodel.width: 16\n", "my.yaml:3: model.width is given twice"),
        ("preset: colouring10\n", "my.yaml:1: preset: there is no preset 'colouring10'; did you mean coloring10?"),
        ("model:\n  width: 8\n heads: 2\n", "my.yaml:3: not valid YAML: "),
        ("model: {width: 8\ntrain:\n", "my.yaml:2: not valid YAML: "),
        ("a: 1\n---\nb: 2\n", "my.yaml:2: not valid YAML: "),
        ("a: \x01\n", "my.yaml: not valid YAML: "),
        ("[" * 5000, "my.yaml: not valid YAML: "),
        ("model: !!python/object/apply:os.system ['true']\n", "my.yaml:1: expected model to hold settings"),
    ],
)
def test_every_fault_is_told_in_one_line_with_file_and_line(write, text, expected):
    assert message(write(text)).startswith(expected)


def test_an_override_is_blamed_for_what_it_broke_not_the_file(write):
    source = write("model:\n  width: 64\n")
    assert message(source, Override("model.width", "x")).startswith("--model.width must be")


def test_a_file_that_cannot_be_read_is_named(write, tmp_path):
    assert message("nowhere.yaml") == "nowhere.yaml does not exist"
    assert message("nowhere/run") == "nowhere/run does not exist"
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\xfa")
    assert message("bad.yaml").startswith("bad.yaml cannot be read: ")
    (tmp_path / "empty").mkdir()
    assert message("empty") == "empty is neither a run's folder, with a config.yaml, nor a folder of data"
    assert message(write("")[:-5]).startswith("there is no preset, file or run folder 'my'")


def test_a_run_folder_stands_for_its_settings(tmp_path):
    run = load_run("coloring20", [Override("model.width", "64")])
    (tmp_path / "config.yaml").write_text(to_yaml(run))
    assert load_run(str(tmp_path)) == run
    assert load_run(str(tmp_path / "config.yaml")) == run


def test_what_a_run_counts_is_read_from_its_own_file_and_refused_from_anybody_else(tmp_path):
    run = load_run("coloring20")
    counted = run.model_copy(update={"model": run.model.model_copy(update={"known_graphs": 7})})
    (tmp_path / "config.yaml").write_text(to_yaml(counted))
    assert load_run(str(tmp_path)) == counted
    with pytest.raises(SettingsError, match=r"^--model\.known_graphs cannot be set: a run counts it"):
        load_run("coloring20", [Override("model.known_graphs", "7")])
    (tmp_path / "my.yaml").write_text("model:\n  known_graphs: 7\n")
    with pytest.raises(SettingsError, match=r"my\.yaml:2: model\.known_graphs cannot be set"):
        load_run(str(tmp_path / "my.yaml"))
    (tmp_path / "my.yaml").write_text(to_yaml(run))
    assert load_run(str(tmp_path / "my.yaml")) == run


def test_an_older_run_folder_has_json(tmp_path):
    run = load_run("coloring20-paper")
    (tmp_path / "config.json").write_text(run.model_dump_json(indent=2))
    assert load_run(str(tmp_path)) == run


def test_a_bare_name_is_a_preset_before_it_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/config.yaml").write_text(to_yaml(Run()))
    assert load_run("demo").task.capacity == 4
    assert load_run(os.path.join(".", "demo")) == Run()


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset.name)
def test_every_preset_survives_being_written(preset, tmp_path):
    run = load_run(preset.name)
    (tmp_path / "config.yaml").write_text(to_yaml(run))
    assert load_run(str(tmp_path / "config.yaml")) == run


numbers = st.floats(min_value=1e-300, max_value=1e300)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    temperature=numbers, rate=numbers, minutes=st.none() | numbers, name=st.text(min_size=1), augment=st.booleans()
)
def test_any_run_survives_being_written_and_other_readers_see_the_same(
    tmp_path, temperature, rate, minutes, name, augment
):
    weights = f"folder/{name}"  # in a folder, since a path called none stands for no path
    run = Run.model_validate(
        {
            "model": {"encoder_weights": weights},
            "matching": {"temperature": temperature},
            "train": {"learning_rate": rate, "minutes": minutes, "steps": 3, "augment": augment},
        }
    )
    (tmp_path / "config.yaml").write_text(to_yaml(run), encoding="utf-8")
    assert load_run(str(tmp_path / "config.yaml")) == run
    assert yaml.safe_load(to_yaml(run)) == json.loads(run.model_dump_json())


def test_a_written_run_explains_itself():
    words = " ".join(to_yaml(load_run("demo")).split())
    assert " capacity: 4 # Largest number of regions, N. " in words


def test_without_yaml_the_extra_is_named():
    code = (
        "import sys; sys.modules['yaml'] = None\n"
        "from graphwright.settings import load_run, presets, to_yaml, Run\n"
        "assert presets()[0].summary and to_yaml(Run())\n"
        "try: load_run('demo')\n"
        "except ImportError as error: print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "reading settings needs PyYAML: pip install 'graphwright[train]'\n"
