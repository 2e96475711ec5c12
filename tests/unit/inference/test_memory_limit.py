"""What does not fit into the memory is refused by an estimate, before it is taken."""

import json
import shutil

import pytest
import torch

from graphwright.cli import main as cli
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference import memory_limit
from graphwright.inference.memory_limit import TooLargeError, count_weights, free_memory, refuse_larger
from graphwright.inference.model import load_model
from graphwright.settings import Override, load_run
from graphwright.training import loop, train
from graphwright.training.assembly import build_network
from tiny import WITH_STATE, tiny_settings


@pytest.fixture
def little(monkeypatch):
    """A machine with two megabytes left, on which every model is worth counting."""
    monkeypatch.setattr(memory_limit, "free_memory", lambda: 2_000_000)
    monkeypatch.setattr(memory_limit, "ORDINARY", 0)


def test_some_memory_is_free_and_a_container_leaves_less(tmp_path, monkeypatch):
    free = free_memory()
    assert free is not None
    assert free > 2**20
    for name, text in (("max", "9000000"), ("current", "5000000"), ("stat", "anon 1\ninactive_file 1000\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    monkeypatch.setattr(memory_limit, "CGROUP", tmp_path)
    assert free_memory() == 4_001_000
    (tmp_path / "memory.max").write_text("max")
    assert free_memory() > 2**20


def test_where_nothing_tells_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(memory_limit, "free_memory", lambda: None)
    refuse_larger(10**18, "this takes", "try less")


@pytest.mark.parametrize(
    "run",
    [
        tiny_settings(model={"layers": 3, "encoder_blocks": 2}, matching=WITH_STATE | {"target_layers": 4}),
        load_run("qm9-cpu", [Override("model.layers", "3")]),
        load_run("coloring10-cpu"),
    ],
    ids=["coloring", "molecules", "preset"],
)
def test_weights_are_counted_without_being_made(run):
    before = torch.get_rng_state()
    counted = count_weights(run, build_network)
    assert torch.equal(torch.get_rng_state(), before)
    made = build_network(run)
    assert counted == sum(tensor.numel() for tensor in (*made.parameters(), *made.buffers()))
    assert counted < memory_limit._most_weights(run)


@pytest.mark.usefixtures("little")
def test_a_model_too_large_to_train_is_refused_before_anything_is_written(tmp_path):
    run = tiny_settings(model={"width": 512})
    with pytest.raises(
        TooLargeError, match=r"this model has [\d,]+ weights: training it takes at least .* 2\.0 MB"
    ):
        train(run, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_batch_too_large_is_refused_and_asking_changes_nothing(tmp_path, monkeypatch):
    run = tiny_settings(model={"dropout": 0.2}, matching=WITH_STATE, train={"steps": 2})
    train(run, tmp_path / "unasked")
    monkeypatch.setattr(loop, "LARGE_BATCH", 8)
    train(run, tmp_path / "asked")
    ends = [checkpoints.load(tmp_path / name / "checkpoints" / "last").tensors for name in ("unasked", "asked")]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    monkeypatch.setattr(memory_limit, "free_memory", lambda: 100_000)
    with pytest.raises(TooLargeError, match=r"a step of train\.batch_size 8 takes at least .* try a smaller one"):
        train(run, tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_a_model_too_large_to_predict_with_is_a_sentence_and_exit_code_2(tiny_run, tmp_path, capsys):
    """Settings that ask for far more than the file has: nothing of that size is ever built."""
    shutil.copytree(tiny_run, tmp_path / "run")
    for name in ("best", "last"):
        path = tmp_path / "run" / "checkpoints" / f"{name}.json"
        record = json.loads(path.read_text())
        record["facts"]["settings"]["model"] |= {"width": 2_000_000, "layers": 100_000}
        del record["facts_sha256"]
        path.write_text(json.dumps(record))
    assert cli.main(["predict", str(tmp_path / "run"), "any.png"]) == cli.USAGE
    told = capsys.readouterr().err
    assert "weights: it takes at least" in told
    assert "Traceback" not in told


def test_a_file_of_weights_too_large_is_refused_unread(tiny_run, monkeypatch):
    monkeypatch.setattr(memory_limit, "free_memory", lambda: 1000)
    with pytest.raises(TooLargeError, match=r"safetensors takes at least .* of memory, and 0\.0 MB are free"):
        load_model(str(tiny_run))
