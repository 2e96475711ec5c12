"""`graphwright train`: words to settings, the folder's rules, messages, exit codes. Nothing is trained here."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from graphwright import report, training
from graphwright.cli import main as cli
from graphwright.cli import train as train_command
from graphwright.cli.shared import take_overrides
from graphwright.cli.train import CHANGEABLE, OWN, is_unsaved
from graphwright.experiments import estimate
from graphwright.files import WriteError, lock_folder
from graphwright.inference import memory_limit
from graphwright.settings import Override, Run, SettingsError, load_run, options, presets, sections, to_yaml
from graphwright.training import footprint
from graphwright.training.state import Progress

METRICS = {"samples": 512, "isomorphic": 81.25, "edit": 0.5}


@dataclass
class Call:
    """What the training function was asked to do."""

    run: Run
    folder: Path
    resume: bool


def leave_run(folder, run, step):
    """What a run leaves behind, as far as the command line looks at it."""
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(to_yaml(run))
    (folder / "checkpoints/last.json").write_text(json.dumps({"facts": {"progress": {"step": step}}}))


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """An empty working directory, and a training function that only leaves a run of 1,234 steps behind."""
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    made = []

    def train(run, folder, *, resume, display):  # noqa: ARG001
        made.append(Call(run, folder, resume))
        leave_run(folder, run, 1234)
        return training.Trained(folder, Progress(step=1234, seconds=90.0), METRICS)

    monkeypatch.setattr(training, "train", train)
    monkeypatch.setattr(report, "write_samples", lambda folder: (folder / "samples.png").write_text(""))
    return made


def failing(monkeypatch, error, step=None):
    def train(run, folder, *, resume, display):  # noqa: ARG001
        if step is not None:
            leave_run(folder, run, step)
        raise error

    monkeypatch.setattr(training, "train", train)


@pytest.mark.parametrize(
    ("per_sample", "memory", "told"),
    [
        (1e6, 64e9, "about 2.54 GB for 1,536 of a batch of 1,536; 64.00 GB are free"),
        (1e7, 8e9, "it does not fit at once: give --train.accumulate 4"),
        (1e10, 8e9, "one sample alone is too much"),
        (1e10, None, "about 15361.00 GB for 1,536 of a batch of 1,536\ntime"),
    ],
)
def test_a_dry_run_prints_what_a_run_takes_and_trains_nothing(
    calls, capsys, monkeypatch, per_sample, memory, told
):
    need = footprint.Footprint(predictor=18_000_000, matcher=500_000, fixed=1_000_000_000, per_sample=per_sample)
    monkeypatch.setattr(footprint, "footprint", lambda _: need)
    monkeypatch.setattr(memory_limit, "free_memory", lambda *_: memory)
    monkeypatch.setattr(estimate, "measure_cost", lambda _: estimate.Cost(0.018, 0.0, epoch=200_000))
    assert cli.main(["train", "coloring10-paper", "--dry-run"]) == cli.DONE
    printed = capsys.readouterr().out
    assert "predictor 18,000,000, matcher 500,000" in printed
    assert "18 ms per sample here, 1 hours per epoch of 200,000 samples" in printed
    assert told in printed
    assert ("--train.accumulate" in printed) == ("--train.accumulate" in told)
    assert not calls
    assert not Path("runs").exists()


def test_a_dry_run_of_several_devices_divides_the_batch_among_them(calls, capsys, monkeypatch):
    need = footprint.Footprint(predictor=18_000_000, matcher=500_000, fixed=1_000_000_000, per_sample=1e7)
    monkeypatch.setattr(footprint, "footprint", lambda _: need)
    monkeypatch.setattr(memory_limit, "free_memory", lambda *_: 32_000_000_000)
    monkeypatch.setattr(estimate, "measure_cost", lambda _: estimate.Cost(0.018, 0.0, epoch=200_000))
    words = ["train", "coloring10-paper", "--dry-run", "--train.devices", "4"]
    assert cli.main(words) == cli.DONE
    printed = capsys.readouterr().out
    assert "about 4.84 GB for 384 of a batch of 1,536 on each of 4 devices; 8.00 GB are free" in printed
    assert "it does not fit at once: give --train.accumulate" not in printed
    assert "hours here, by one device; 4 share them" in printed
    assert not calls


def test_a_dry_run_counts_the_processes_and_gpus_that_a_run_would_have(calls, capsys, monkeypatch):
    need = footprint.Footprint(predictor=1_000_000, matcher=0, fixed=1_000_000_000, per_sample=1e7)
    monkeypatch.setattr(footprint, "footprint", lambda _: need)
    monkeypatch.setattr(memory_limit, "free_memory", lambda *_: 8_000_000_000)
    monkeypatch.setattr(estimate, "measure_cost", lambda _: estimate.Cost(0.018, 0.0, epoch=200_000))
    monkeypatch.setattr(train_command, "cores", lambda: 2)
    assert cli.main(["train", "coloring10-cpu", "--train.accelerator", "cpu", "--dry-run"]) == cli.DONE
    assert "for 32 of a batch of 64 on each of 2 devices; 4.00 GB are free" in capsys.readouterr().out
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert cli.main(["train", "coloring10-paper", "--dry-run"]) == cli.DONE
    assert "for 512 of a batch of 1,536 on each of 3 devices; 8.00 GB are free" in capsys.readouterr().out
    assert not calls


def test_a_preset_trains_in_a_folder_of_its_name(calls, capsys):
    assert cli.main(["train", "coloring10"]) == cli.DONE
    assert calls == [Call(load_run("coloring10-cpu"), Path("runs/coloring10"), False)]
    printed = capsys.readouterr().out
    assert "1,234 steps in 1.5 minutes; last validation: 81.2 % isomorphic, edit 0.50 (512 samples)" in printed
    assert "runs/coloring10/config.yaml" in printed
    assert "runs/coloring10/checkpoints/last.json" in printed
    assert "runs/coloring10/samples.png" in printed
    assert "metrics.json" not in printed  # only what is there
    assert "next: graphwright evaluate runs/coloring10" in printed


@pytest.mark.parametrize(
    "words",
    [
        "coloring10 --model.width 128 --matching.temperature=3e-5 --train.minutes 30 --out 'a b'",
        "--model.width 128 --out 'a b' --matching.temperature 3e-5 coloring10 --train.minutes=30",
        "'--out=a b' --train.minutes=30 --model.width=64 coloring10 --model.width=128 --matching.temperature=3e-5",
    ],
)
def test_settings_may_stand_anywhere(calls, words):
    assert cli.main(["train", *shlex.split(words)]) == cli.DONE
    expected = [
        Override("model.width", 128),
        Override("matching.temperature", 3e-5),
        Override("train.minutes", 30),
    ]
    assert calls == [Call(load_run("coloring10", expected), Path("a b"), False)]


@pytest.mark.parametrize(
    ("source", "folder"),
    [
        ("coloring10-paper", "runs/coloring10-paper"),
        ("mine/wide.yaml", "runs/wide"),
        ("mine/old", "runs/old"),
        ("mine/old/config.yaml", "runs/old"),
    ],
)
def test_the_folder_is_called_after_the_source(calls, source, folder):
    leave_run(Path("mine/old"), Run(), 5)
    Path("mine/wide.yaml").write_text("model: {width: 256}\n")
    assert cli.main(["train", source]) == cli.DONE
    assert [str(call.folder) for call in calls] == [folder]


@pytest.mark.parametrize("devices", ["cores", "1"])
def test_only_a_shell_starts_a_process_for_every_core(calls, monkeypatch, devices):
    """Who calls from Python could not be started again by its command."""
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setattr("graphwright.cli.train.cores", lambda: 2)
    words = ["train", "coloring10", "--train.devices", devices, "--out"]
    assert cli.main([*words, "python"]) == cli.DONE
    monkeypatch.setattr(sys, "argv", ["graphwright", *words, "shell"])
    assert cli.main() == cli.DONE
    assert [call.run.train.devices for call in calls] == [devices, "2" if devices == "cores" else "1"]


def test_a_used_folder_is_refused_with_both_ways_out(calls, capsys):
    leave_run(Path("runs/coloring10"), Run(), 12345)
    assert cli.main(["train", "coloring10"]) == cli.USAGE
    assert capsys.readouterr().err == (
        "graphwright: runs/coloring10 already holds a run, at step 12,345: go on with "
        "`graphwright train runs/coloring10 --resume`, or start a new one elsewhere with --out DIR\n"
    )
    assert calls == []


@pytest.mark.parametrize(
    "note", [None, "", "{", "[]", '{"facts": {}}', '{"facts": {"progress": {"step": "many"}}}']
)
def test_a_folder_of_something_else_is_refused_too(calls, capsys, note):
    Path("out/checkpoints").mkdir(parents=True)
    if note is not None:
        Path("out/checkpoints/last.json").write_text(note)
    assert cli.main(["train", "demo", "--out", "out"]) == cli.USAGE
    assert "out is not empty and holds no checkpoint: choose another with --out DIR" in capsys.readouterr().err
    assert cli.main(["train", "demo", "--out", "out", "--resume"]) == cli.USAGE
    assert "out holds no checkpoint, so there is nothing to resume" in capsys.readouterr().err
    assert calls == []


def test_an_empty_folder_is_free_and_a_file_is_no_folder(calls, capsys):
    Path("empty").mkdir()
    assert cli.main(["train", "demo", "--out", "empty"]) == cli.DONE
    assert [call.folder for call in calls] == [Path("empty")]
    Path("file").write_text("")
    assert cli.main(["train", "demo", "--out", "file"]) == cli.USAGE
    assert "file is a file, not a folder" in capsys.readouterr().err


def test_bad_settings_leave_no_folder_behind(calls, capsys):
    assert cli.main(["train", "demo", "--model.heads", "7"]) == cli.USAGE
    assert capsys.readouterr().err == "graphwright: --model.heads: width 96 is not a multiple of heads 7\n"
    assert not Path("runs").exists()
    assert calls == []


@pytest.mark.parametrize(
    "words", [["coloring20"], ["runs/coloring20"], ["anything.yaml", "--out", "runs/coloring20"]], ids=len
)
def test_resuming_takes_the_settings_from_the_folder(calls, capsys, words):
    run = load_run("coloring20", [Override("model.width", "64")])
    leave_run(Path("runs/coloring20"), run, 700)
    assert cli.main(["train", *words, "--resume"]) == cli.DONE
    assert calls == [Call(run, Path("runs/coloring20"), True)]
    assert "going on from step 700 of runs/coloring20, with the settings there" in capsys.readouterr().out


def test_a_folder_called_like_a_preset_is_resumed_by_its_own_settings(calls):
    run = load_run("demo", [Override("model.width", "64")])
    leave_run(Path("demo"), run, 7)
    assert cli.main(["train", "demo", "--out", "demo", "--resume"]) == cli.DONE
    assert calls == [Call(run, Path("demo"), True)]


def test_a_resumed_run_may_be_given_more_time(calls):
    leave_run(Path("runs/demo"), load_run("demo"), 700)
    assert cli.main(["train", "demo", "--resume", "--train.steps", "900", "--train.log_every", "5"]) == cli.DONE
    train = calls[0].run.train
    assert (train.steps, train.minutes, train.log_every) == (900, None, 5)


@pytest.mark.parametrize(
    "key", ["model.width", "task.seed", "train.seed", "train.learning_rate", "matching.temperature"]
)
def test_a_resumed_run_may_not_become_another(calls, capsys, key):
    leave_run(Path("runs/demo"), load_run("demo"), 700)
    assert cli.main(["train", "demo", "--resume", f"--{key}", "3"]) == cli.USAGE
    said = capsys.readouterr().err
    assert said.startswith(
        f"graphwright: --{key} cannot change when a run is resumed, only train.epochs, train.steps,"
    )
    assert said.count("\n") == 1
    assert calls == []


def test_what_may_change_are_settings_of_training():
    assert set(CHANGEABLE) <= {key for key in options() if key.startswith("train.")}


def test_resuming_what_was_never_started_is_refused(calls, capsys):
    assert cli.main(["train", "demo", "--resume"]) == cli.USAGE
    assert "runs/demo does not exist, so there is nothing to resume" in capsys.readouterr().err
    assert calls == []


def test_a_complete_run_says_how_to_go_on(calls, capsys):
    leave_run(Path("runs/demo"), load_run("demo"), 1234)
    assert cli.main(["train", "demo", "--resume"]) == cli.DONE
    assert "graphwright train runs/demo --resume --train.minutes 32" in capsys.readouterr().out
    assert len(calls) == 1


def test_an_interrupt_says_what_to_type(calls, monkeypatch, capsys):
    failing(monkeypatch, KeyboardInterrupt(), step=4321)
    assert cli.main(["train", "demo", "--out", "my run"]) == cli.INTERRUPTED
    said = capsys.readouterr().err
    assert said == "interrupted; step 4,321 is saved. Go on with:\n  graphwright train './my run' --resume\n"
    assert calls == []


def test_the_command_that_an_interrupt_gives_resumes_that_run(calls, monkeypatch, capsys):
    fake = training.train
    failing(monkeypatch, KeyboardInterrupt(), step=5)
    assert cli.main(["train", "coloring10", "--out", "demo"]) == cli.INTERRUPTED
    command = capsys.readouterr().err.splitlines()[1].split()
    monkeypatch.setattr(training, "train", fake)
    assert cli.main(command[1:]) == cli.DONE
    assert calls == [Call(load_run("coloring10"), Path("demo"), True)]


def test_an_interrupt_before_anything_was_saved_says_so(calls, monkeypatch, capsys):
    failing(monkeypatch, KeyboardInterrupt())
    assert cli.main(["train", "demo"]) == cli.INTERRUPTED
    assert "before anything was saved" in capsys.readouterr().err
    assert calls == []


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            training.DivergenceError("try a smaller train.learning_rate"),
            2,
            "graphwright: try a smaller train.learning",
        ),
        (ImportError("training needs Lightning"), 2, "graphwright: training needs Lightning"),
        (RuntimeError("boom"), 4, "internal error: RuntimeError: boom"),
    ],
)
def test_errors_of_training_have_their_exit_codes(calls, monkeypatch, capsys, error, code, said):
    monkeypatch.delenv("GRAPHWRIGHT_DEBUG", raising=False)
    failing(monkeypatch, error)
    assert cli.main(["train", "demo"]) == code
    assert said in capsys.readouterr().err
    assert calls == []


@pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "SLURM_PROCID"])
def test_only_the_first_of_many_processes_speaks(calls, monkeypatch, capsys, name):
    monkeypatch.setenv(name, "1")
    assert cli.main(["train", "demo"]) == cli.DONE
    assert capsys.readouterr().out == ""
    assert not Path("runs/demo/samples.png").exists()
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a preset, a YAML file or a run's folder; `graphwright train --list` shows the presets"),
        (["colouring10"], "there is no preset, file or run folder 'colouring10'; did you mean coloring10?"),
        (
            ["demo", "--matching.temp", "3"],
            "--matching.temp: there is no such setting; did you mean matching.temperature",
        ),
        (
            ["demo", "--temperature", "3"],
            "--temperature: there is no such setting; did you mean matching.temperature",
        ),
        (
            ["--matching.temp", "demo"],
            "--matching.temp: there is no such setting; did you mean matching.temperature",
        ),
        (["demo", "--resum"], "--resum: there is no such option; did you mean --resume?"),
        (["demo", "--model.width"], "--model.width needs a value, a whole number at least 1"),
        (["demo", "--model.width", "--resume"], "--model.width needs a value, a whole number at least 1"),
        (["demo", "--model.width="], "--model.width must be a whole number at least 1, got ''"),
        (
            ["demo", "--train.learning_rate", "-1e-3"],
            "--train.learning_rate must be a number above 0, got '-1e-3'",
        ),
        (["nowhere.yaml"], "nowhere.yaml does not exist"),
    ],
)
def test_wrong_words_are_answered_in_one_line(calls, capsys, words, said):
    assert cli.main(["train", *words]) == cli.USAGE
    error = capsys.readouterr().err
    assert error.startswith(f"graphwright: {said}")
    assert error.count("\n") == 1
    assert calls == []


def test_other_commands_take_no_settings(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["report", "runs/x", "--model.width", "3"])
    assert stop.value.code == cli.USAGE
    assert "unrecognized arguments: --model.width 3" in capsys.readouterr().err


def test_own_options_and_values_stay_in_place():
    words = ["train", "x", "--out", "d", "--resume", "-h", "--model.width", "-3", "--out=e", "--train.metric=edit"]
    rest, overrides = take_overrides(words, OWN)
    assert rest == ["train", "x", "--out", "d", "--resume", "-h", "--out=e"]
    assert overrides == [Override("model.width", "-3"), Override("train.metric", "edit")]
    with pytest.raises(SettingsError, match="needs a value"):
        take_overrides(["--model.width"], OWN)


@pytest.mark.parametrize("error", [ImportError("matplotlib?"), OSError("disk full"), ValueError("no checkpoint")])
def test_a_run_is_not_lost_for_want_of_a_picture(calls, monkeypatch, capsys, error):
    def write_samples(folder):  # noqa: ARG001
        raise error

    monkeypatch.setattr(report, "write_samples", write_samples)
    assert cli.main(["train", "demo"]) == cli.DONE
    printed = capsys.readouterr().out
    assert f"no samples.png: {error}" in printed
    assert "next: graphwright evaluate runs/demo" in printed
    assert len(calls) == 1


def test_the_list_has_a_line_for_every_preset(capsys):
    assert cli.main(["train", "--list"]) == cli.DONE
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [preset.name for preset in presets()]
    assert all(line.endswith(preset.summary) for line, preset in zip(lines, presets(), strict=True))


@pytest.mark.parametrize("columns", [60, 100, 400])
def test_the_help_explains_every_setting_and_names_every_preset(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit) as stop:
        cli.main(["train", "--help"])
    assert stop.value.code == cli.DONE
    printed = capsys.readouterr().out
    words = " ".join(printed.split())
    for section in sections():
        assert f" {section.name}: {section.meaning} --" in words
        for option in section.options:
            assert f"--{option.key} {option.meaning}" in words
    assert "--model.width Width of the node decoder. A whole number at least 1; default 128." in words
    assert (
        "--matching.cost How the learned matcher compares embeddings. One of l1, inner_product; default l1."
        in words
    )
    assert "--train.epochs" in words
    assert "or none; default none." in words
    assert all(preset.name in words for preset in presets())
    assert "SPEC" not in printed
    settings = printed[printed.index("settings, each") :].splitlines()
    assert max(map(len, settings)) <= max(min(columns, 115), 63)


def test_the_command_line_needs_no_lightning_until_it_trains(tmp_path):
    code = (
        "import sys; sys.modules['lightning'] = None\n"
        "from graphwright.cli.main import main\n"
        "assert main(['train', '--list']) == 0\n"
        "sys.exit(main(['train', 'demo']))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert result.returncode == cli.USAGE
    assert result.stderr == "graphwright: training needs Lightning Fabric: pip install 'graphwright[train]'\n"
    assert list(tmp_path.iterdir()) == []


def test_a_run_killed_before_its_first_checkpoint_starts_again_by_the_same_command(calls, capsys):
    """Whatever of its first files are there."""
    folder = Path("runs/demo")
    (folder / "checkpoints").mkdir(parents=True)
    for name in (
        "checkpoints/.lock",
        "checkpoints/.holder",
        "log.jsonl",
        ".log.csv.draft",
        "log.csv",
        "config.yaml",
        "checkpoints/.last.draft",
        "checkpoints/last-0123456789ab.safetensors",
    ):
        (folder / name).touch()
        assert is_unsaved(folder), name
    assert cli.main(["train", "demo", "--resume"]) == cli.USAGE
    assert "so there is nothing to resume: start again without --resume" in capsys.readouterr().err
    assert cli.main(["train", "demo"]) == cli.DONE
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["checkpoints/best.json", "notes.txt", "log.jsonl"])
def test_a_folder_with_something_to_lose_does_not_start_over(calls, name):
    folder = Path("runs/demo")
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints/.lock").touch()
    assert is_unsaved(folder)
    (folder / name).write_text('{"step": 7}\n')
    assert not is_unsaved(folder)
    assert cli.main(["train", "demo"]) == cli.USAGE
    assert calls == []


@pytest.mark.parametrize("words", [["demo", "--out", "here"], ["demo", "--out", "here", "--resume"], ["./here"]])
def test_a_folder_that_is_trained_in_is_refused_with_the_process(calls, capsys, words):
    leave_run(Path("here"), load_run("demo"), 7)
    words = [*words, "--out", "here"] if words == ["./here"] else words
    with lock_folder(Path("here/checkpoints"), RuntimeError):
        assert cli.main(["train", *words]) == cli.USAGE
    assert f"process {os.getpid()} is training in here: wait for it" in capsys.readouterr().err
    assert calls == []


def test_another_task_is_not_resumed(calls, capsys):
    leave_run(Path("mine"), load_run("coloring20"), 700)
    assert cli.main(["train", "coloring10", "--resume", "--out", "mine"]) == cli.USAGE
    said = capsys.readouterr().err
    assert "mine holds a run of another task than coloring10: task.capacity is 20, not 10" in said
    assert "graphwright train ./mine --resume" in said
    assert cli.main(["train", "qm9", "--resume", "--out", "mine"]) == cli.USAGE
    assert "task.kind is coloring, not " in capsys.readouterr().err
    assert calls == []
    assert cli.main(["train", "./mine", "--resume"]) == cli.DONE


def test_a_full_disk_names_the_file_and_what_is_saved(calls, monkeypatch, capsys):
    failing(monkeypatch, WriteError("out/log.csv cannot be written: No space left on device"), step=12)
    assert cli.main(["train", "demo", "--out", "out"]) == cli.USAGE
    assert capsys.readouterr().err == (
        "graphwright: out/log.csv cannot be written: No space left on device; step 12 is saved: "
        "graphwright train ./out --resume\n"
    )
    assert calls == []
