"""Checkpoints: whole or refused, and compact where they are handed on."""

import ast
import contextlib
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import graphwright
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.checkpoint import Checkpoint, CheckpointError, compacted, expanded


def example(seed: int = 0) -> Checkpoint:
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        "weight": torch.randn(3, 4, generator=generator),
        "turned": torch.randn(3, 4, generator=generator).mT,
        "scalar": torch.tensor(float(seed)),
        "empty": torch.zeros(0, 2),
        "flag": torch.tensor(True),
        "bytes": torch.arange(5, dtype=torch.uint8),
        "half": torch.randn(3, generator=generator).bfloat16(),
    }
    return Checkpoint(tensors, {"step": seed, "third": 1 / 3, "nothing": None, "list": [1.5, "ä"]})


def same(first: Checkpoint, second: Checkpoint) -> bool:
    return (
        first.facts == second.facts
        and first.tensors.keys() == second.tensors.keys()
        and all(torch.equal(tensor, second.tensors[name]) for name, tensor in first.tensors.items())
        and all(tensor.dtype == second.tensors[name].dtype for name, tensor in first.tensors.items())
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    checkpoints.save(tmp_path / "last", example())
    return tmp_path / "last"


def tensor_file(path: Path) -> Path:
    (file,) = path.parent.glob("last-*.safetensors")
    return file


def alter(path: Path, **changes: object) -> None:
    note = path.with_suffix(".json")
    note.write_text(json.dumps(json.loads(note.read_text()) | changes))


def test_what_is_saved_is_loaded(path):
    assert same(checkpoints.load(path), example())
    assert checkpoints.exists(path)


def test_a_new_checkpoint_replaces_the_old_and_leaves_two_files(path):
    checkpoints.save(path, example(1))
    assert same(checkpoints.load(path), example(1))
    assert sorted(file.suffix for file in path.parent.iterdir()) == [".json", ".safetensors"]


def test_saving_the_same_again_keeps_it(path):
    checkpoints.save(path, example())
    assert same(checkpoints.load(path), example())


def test_checkpoints_of_other_names_in_the_folder_are_left_alone(path):
    checkpoints.save(path.with_name("best"), example(2))
    checkpoints.save(path, example(1))
    assert same(checkpoints.load(path.with_name("best")), example(2))


def test_a_missing_checkpoint_is_named(tmp_path):
    assert not checkpoints.exists(tmp_path / "last")
    with pytest.raises(CheckpointError, match=r"last\.json does not exist"):
        checkpoints.load(tmp_path / "last")


def test_missing_tensors_are_named(path):
    name = tensor_file(path).name
    tensor_file(path).unlink()
    with pytest.raises(CheckpointError, match=rf"{name}, which .*last\.json names, does not exist"):
        checkpoints.load(path)


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_truncated_tensors_are_named(path, keep):
    file = tensor_file(path)
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match=rf"{file.name} is truncated or altered"):
        checkpoints.load(path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_one_altered_bit_among_the_tensors_is_noticed(path, share):
    file = tensor_file(path)
    data = bytearray(file.read_bytes())
    data[int(share * len(data))] ^= 1
    file.write_bytes(data)
    with pytest.raises(CheckpointError, match=rf"{file.name} is truncated or altered"):
        checkpoints.load(path)


def test_an_altered_fact_is_noticed(path):
    record = json.loads(path.with_suffix(".json").read_text())
    alter(path, facts=record["facts"] | {"step": 5})
    with pytest.raises(CheckpointError, match=r"last\.json is altered"):
        checkpoints.load(path)


def test_a_note_from_before_facts_had_a_checksum_is_read(path):
    alter(path, facts_sha256=None)
    assert same(checkpoints.load(path), example())


@pytest.mark.parametrize("keep", [0, 1, 50, -3])
def test_a_truncated_note_is_named(path, keep):
    note = path.with_suffix(".json")
    note.write_text(note.read_text()[:keep])
    with pytest.raises(CheckpointError, match=r"last\.json is damaged"):
        checkpoints.load(path)


def test_a_note_that_is_not_text_is_named(path):
    path.with_suffix(".json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CheckpointError, match=r"last\.json is damaged"):
        checkpoints.load(path)


@pytest.mark.parametrize("text", ["[]", "{}", '"hello"', "12", '{"format": 1, "weights": "x"}'])
def test_a_foreign_file_is_named(path, text):
    path.with_suffix(".json").write_text(text)
    with pytest.raises(CheckpointError, match=r"last\.json is not a checkpoint of graphwright"):
        checkpoints.load(path)


@pytest.mark.parametrize("number", [0, 2, "1", None])
def test_another_format_is_named(path, number):
    alter(path, format=number)
    with pytest.raises(CheckpointError, match=rf"last\.json has format {number}, this version reads 1"):
        checkpoints.load(path)


def test_a_folder_in_the_place_of_the_note_is_named(tmp_path):
    (tmp_path / "last.json").mkdir()
    with pytest.raises(CheckpointError, match=r"last\.json is damaged"):
        checkpoints.load(tmp_path / "last")


@pytest.mark.parametrize("name", ["..", "", ".", "/etc/passwd", "../../secret.safetensors", 7])
def test_a_note_cannot_name_tensors_outside_its_folder(path, name):
    alter(path, tensors=name)
    with pytest.raises(CheckpointError, match="does not exist"):
        checkpoints.load(path)


def test_tensors_that_are_not_safetensors_are_named(path):
    import hashlib

    file = tensor_file(path)
    file.write_bytes(b"not tensors")
    alter(path, sha256=hashlib.sha256(b"not tensors").hexdigest())
    with pytest.raises(CheckpointError, match=rf"{file.name} is damaged"):
        checkpoints.load(path)


class Killed(BaseException):
    """The end of a process, for the code that runs at that moment."""


@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_either_rename_leaves_one_whole_checkpoint(path, monkeypatch, which, after):
    calls = []

    def replace(source: Path, target: Path) -> None:
        calls.append(target)
        if len(calls) == which and not after:
            raise Killed
        rename(source, target)
        if len(calls) == which:
            raise Killed

    rename = os.replace
    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(Killed):
        checkpoints.save(path, example(1))
    assert same(checkpoints.load(path), example(1 if which == 2 and after else 0))
    monkeypatch.setattr(os, "replace", rename)
    checkpoints.save(path, example(2))
    assert same(checkpoints.load(path), example(2))
    assert len(list(path.parent.iterdir())) == 2  # what the kill left behind is gone


def test_a_kill_while_tensors_are_written_leaves_the_old_checkpoint(path, monkeypatch):
    def half_written(_: object, file: Path) -> None:
        Path(file).write_bytes(b"half")
        raise Killed

    monkeypatch.setattr(checkpoints, "save_file", half_written)
    with pytest.raises(Killed):
        checkpoints.save(path, example(1))
    assert same(checkpoints.load(path), example())


def test_reading_while_a_run_goes_on_gets_the_newer_checkpoint(path, monkeypatch):
    read = checkpoints._read_note
    notes = []

    def overtaken(name: Path) -> dict[str, object]:
        notes.append(read(name))
        if len(notes) == 1:
            checkpoints.save(path, example(1))  # between reading the note and opening the tensors
        return notes[-1]

    monkeypatch.setattr(checkpoints, "_read_note", overtaken)
    assert same(checkpoints.load(path), example(1))


def test_matrices_come_back_to_half_a_step_of_their_rows_scale():
    matrix = torch.randn(50, 40, generator=torch.Generator().manual_seed(0)) * torch.logspace(-6, 3, 50)[:, None]
    back = expanded(compacted({"weight": matrix}))["weight"]
    assert back.dtype == torch.float32
    steps = matrix.abs().amax(1, keepdim=True) / 127
    assert ((back - matrix).abs() <= 0.5001 * steps).all()


def test_rows_of_zeros_and_what_is_no_matrix_survive():
    weights = {"zeros": torch.zeros(3, 4), "bias": torch.randn(5), "kernel": torch.randn(2, 3, 3, 3)}
    small = compacted(weights)
    assert {name: tensor.dtype for name, tensor in small.items()} == {
        "zeros": torch.int8,
        "zeros:scales": torch.float32,
        "bias": torch.float16,
        "kernel": torch.float16,
    }
    back = expanded(small)
    assert set(back) == set(weights)
    assert torch.equal(back["zeros"], weights["zeros"])
    torch.testing.assert_close(back["kernel"].float(), weights["kernel"], rtol=1e-3, atol=1e-6)


def test_other_numbers_and_older_models_are_left_alone():
    weights = {"steps": torch.arange(4), "double": torch.randn(2, 2, dtype=torch.float64)}
    assert all(torch.equal(compacted(weights)[name], tensor) for name, tensor in weights.items())
    halves = {"weight": torch.randn(2, 2).half()}
    assert torch.equal(expanded(halves)["weight"], halves["weight"])


def test_any_bit_may_flip_and_is_noticed_or_changes_nothing(path):
    """What may change are blanks between the facts, and the name of a checksum that older notes have not."""
    rng = random.Random(0)
    whole = example()
    for file, flips in ((path.with_suffix(".json"), 150), (tensor_file(path), 50)):
        good = file.read_bytes()
        for _ in range(flips):
            at, bit = rng.randrange(len(good)), rng.randrange(8)
            file.write_bytes(good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :])
            with contextlib.suppress(CheckpointError):
                assert same(checkpoints.load(path), whole), (file.name, at, bit)
        file.write_bytes(good)
    assert same(checkpoints.load(path), whole)


def test_any_length_is_noticed(path):
    for file in (path.with_suffix(".json"), tensor_file(path)):
        good = file.read_bytes()
        for length in range(0, len(good) - 2, max(1, len(good) // 40)):
            file.write_bytes(good[:length])
            with pytest.raises(CheckpointError, match=r"last"):
                checkpoints.load(path)
        file.write_bytes(good)


@pytest.mark.parametrize(
    ("field", "value"),
    [("sha256", 7), ("sha256", None), ("facts", []), ("facts", None), ("facts_sha256", 0), ("format", [1])],
)
def test_fields_of_another_kind_are_refused(path, field, value):
    alter(path, **{field: value})
    with pytest.raises(CheckpointError, match=r"last"):
        checkpoints.load(path)


def test_notes_as_deep_as_a_stack_are_refused(path):
    path.with_suffix(".json").write_text('{"facts": ' + "[" * 100_000)
    with pytest.raises(CheckpointError, match="damaged"):
        checkpoints.load(path)


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def unpickling(source: str) -> list[str]:
    """What in a module could run code from a file."""
    tree = ast.parse(source)
    modules = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    wrong = [name for name in modules if name in ("dill", "joblib", "shelve", "cloudpickle")]
    wrong += [
        str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "pickle"
    ]
    for name, call in calls(tree):
        given = {word.arg: ast.unparse(word.value) for word in call.keywords}
        if name == "torch.load" and given.get("weights_only") != "True":
            wrong.append("torch.load")
        if name in ("np.load", "numpy.load") and given.get("allow_pickle", "False") != "False":
            wrong.append("np.load")
        # What was pickled in the same breath is nobody else's.
        own = call.args and ast.unparse(call.args[0]).startswith("pickle.dumps(")
        if name.endswith(("pickle.load", "pickle.Unpickler")) or (name.endswith("pickle.loads") and not own):
            wrong.append(name)
        if name in ("yaml.load", "yaml.unsafe_load", "yaml.full_load"):
            wrong.append(name)
    return wrong


def test_no_pickle_is_ever_loaded():
    assert unpickling("import torch\ntorch.load(path)") == ["torch.load"]  # the check can fail
    assert unpickling("pickle.load(file)\nnp.load(path, allow_pickle=True)") == ["pickle.load", "np.load"]
    assert unpickling("pickle.loads(path.read_bytes())") == ["pickle.loads"]
    assert unpickling("from pickle import loads") == ["pickle"]
    assert unpickling("pickle.loads(pickle.dumps(task))") == []
    assert unpickling("torch.load(path, weights_only=True)") == []
    modules = sorted(Path(graphwright.__file__).parent.rglob("*.py"))
    assert len(modules) > 100
    assert {module.name: wrong for module in modules if (wrong := unpickling(module.read_text("utf-8")))} == {}
