"""Every task and every encoder that comes along keeps the contracts that others are held to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from graphwright.graphs import Vocabulary
from graphwright.models import SetEncoder
from graphwright.settings import ENCODERS, TASKS, InputForm
from graphwright.tasks import BadInput, Samples, Task, task_of
from graphwright.tasks.coloring import Coloring, ColoringDataset, ColoringTask
from graphwright.tasks.molecules import FingerprintTask
from graphwright.tasks.spectra import SpectrumTask
from graphwright.tasks.table import TableTask
from graphwright.testing import check_encoder, check_task
from tiny_molecules import tiny_file
from tiny_spectra import row_of, write_mgf, write_spectra
from tiny_tables import rows, write_jsonl

Made = tuple[Task, Path]
"""A task on small data, and a file of inputs for it."""


def coloring(folder: Path) -> Made:
    # A smaller picture is none for SegFormer.
    task = task_of(ColoringTask(capacity=5, min_size=3, samples=400, side=32))
    picture = (255 * task.data("test", seed=1)[0].image.transpose(1, 2, 0)).round().astype(np.uint8)
    Image.fromarray(picture).save(folder / "picture.png")
    return task, folder / "picture.png"


def fingerprint(folder: Path) -> Made:
    inputs = folder / "some.smi"
    inputs.write_text("CCO\nnot_smiles\nc1ccccc1\n")
    return task_of(FingerprintTask(data=str(tiny_file(folder)), capacity=9)), inputs


def spectrum(folder: Path) -> Made:
    data = write_spectra(folder / "spectra.parquet")
    inputs = write_mgf(folder / "some.mgf", [row_of("Cc1ccccc1", "test", at) for at in range(2)], formula=True)
    return task_of(SpectrumTask(data=str(data), capacity=8)), inputs


def table(name: str, change: Callable[[int], dict[str, Any]]) -> Callable[[Path], Made]:
    def made(folder: Path) -> Made:
        given = rows(60, change)
        if name != "points":
            for row in given:
                del row["points"]
        data = write_jsonl(folder / f"{name}.jsonl", given)
        return task_of(TableTask(data=str(data))), write_jsonl(folder / "some.jsonl", given[:3])

    return made


def words(at: int) -> dict[str, Any]:
    return {"words": ["end", *["inner"] * (1 + at % 3), "end"]}


def numbers(at: int) -> dict[str, Any]:
    return {"length": 3.0 + at % 3, "noise": float(np.sin(at))}


MADE: dict[str, Callable[[Path], Made]] = {
    "coloring": coloring,
    "fingerprint": fingerprint,
    "spectrum": spectrum,
    "table of sets": table("points", lambda _: {}),
    "table of tokens": table("words", words),
    "table of vectors": table("numbers", numbers),
    "table of sets and numbers": table("points", numbers),
}
READ_BY = {
    "fingerprint": "fingerprint",
    "vector": "table of vectors",
    "tokens": "table of tokens",
    "set": "table of sets",
    "columns": "table of sets",
    "cnn": "coloring",
    "segformer": "coloring",
    "spectrum": "spectrum",
    "several": "table of sets and numbers",
}
"""A task that each encoder reads."""


def test_all_tasks_and_encoders_are_looked_at():
    assert {name.partition(" ")[0] for name in MADE} == set(TASKS.names())
    assert set(READ_BY) == set(ENCODERS.names())


@pytest.mark.parametrize("name", MADE)
def test_a_task_that_comes_along(name, tmp_path):
    check_task(*MADE[name](tmp_path))


@pytest.mark.parametrize("name", READ_BY)
def test_an_encoder_that_comes_along(name, tmp_path):
    check_encoder(name, MADE[READ_BY[name]](tmp_path)[0])


class Broken(Samples):
    """Samples that break one promise."""

    def __init__(self, data: Samples, **methods: Callable[..., Any]) -> None:
        self.data, self.methods = data, methods

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: Any) -> Any:
        return self.methods.get("__getitem__", type(self.data).__getitem__)(self.data, index)

    def collate(self, samples: Any) -> Any:
        return self.methods.get("collate", type(self.data).collate)(self.data, samples)

    def digest(self) -> str:
        return str(self.methods.get("digest", type(self.data).digest)(self.data))


def ever_darker(data, index):
    sample = data[index]
    return replace(sample, image=sample.image / next(COUNTER))


def another_graph_each_epoch(data, index):
    return data[index] if isinstance(index, int) else data[(index[0] + index[1]) % len(data)]


def first_for_ever(data, index):
    return data[index[0] if isinstance(index, tuple) else min(index, len(data) - 1)]


def one_input_less(data, samples):
    inputs, target = data.collate(samples)
    return inputs[1:], target


def turned(data, samples):
    inputs, target = data.collate(samples)
    return inputs.flip(-1), target


def backwards(data, samples):
    inputs, _ = data.collate(samples)
    return inputs, data.collate(samples[::-1])[1]


def wider(data, samples):
    inputs, target = data.collate(samples)
    return inputs, target.pad(target.capacity + 1)


def another_digest(_):
    return f"{next(COUNTER):064}"


def short_digest(_):
    return "abc"


def one_digest(_):
    return "0" * 64


COUNTER = count(1)
BROKEN_SAMPLES = {
    "a sample is a pure function of settings, split and index": {"__getitem__": ever_darker},
    "an epoch changes how an input is seen, not its graph": {"__getitem__": another_graph_each_epoch},
    "an index past the end is an IndexError": {"__getitem__": first_for_ever},
    "inputs have a row for each of 6 samples": {"collate": one_input_less},
    "inputs makes of an input what collate makes of its sample": {"collate": turned},
    "collate keeps the samples' graphs and their order": {"collate": backwards},
    "targets are padded to the capacity": {"collate": wider},
    "the same data have the same digest": {"digest": another_digest},
    "digest\\(\\) is a SHA-256 in 64 hexadecimal digits": {"digest": short_digest},
    "another seed draws other data": {"digest": one_digest},
    "samples can be pickled, for data workers": {"digest": lambda _: "0" * 64},
}


@pytest.mark.parametrize("sentence", BROKEN_SAMPLES)
def test_samples_that_break_a_promise_are_found_out(sentence, tmp_path, monkeypatch):
    task, file = coloring(tmp_path)
    data = type(task).data
    monkeypatch.setattr(
        type(task), "data", lambda *at, **how: Broken(data(*at, **how), **BROKEN_SAMPLES[sentence])
    )
    with pytest.raises(AssertionError, match=sentence):
        check_task(task, file)


def raises(*_: Any, **__: Any) -> Any:
    raise OSError("no")


BROKEN_TASKS: dict[str, dict[str, Any]] = {
    "no graph has more nodes than the task's capacity, 3": {"capacity": 3},
    "graphs have the labels of the task's vocabulary": {"vocabulary": Vocabulary(("a",))},
    "`input_kinds`, picture, and the task's input_form is of kind bits": {"input_form": InputForm("bits", 4)},
    "read yields NamedInput or BadInput, got str": {"read": lambda _, path: [str(path)]},
    "a file that is not there is one BadInput that names it.*raised OSError: no": {
        "read": lambda self, path: read_picture_of(self, path) if path.exists() else raises()
    },
    "read gives the inputs in .*: too dark": {"read": lambda *_: [BadInput("too dark")]},
    "write_drawing writes an SVG at its path with .svg added": {"write_drawing": lambda *_: None},
    "sheet draws samples; it raised OSError: no": {"sheet": raises},
    "no input is generated for two splits": {
        "data": lambda self, _, seed=None: ColoringDataset(self.config, "test", seed or 0)
    },
    "have no seed to change": {"generated": False},
    "summary is a text, got None": {"summary": None},
}
read_picture_of = Coloring.read


@pytest.mark.parametrize("sentence", BROKEN_TASKS)
def test_tasks_that_break_a_promise_are_found_out(sentence, tmp_path, monkeypatch):
    task, file = coloring(tmp_path)
    for name, value in BROKEN_TASKS[sentence].items():
        monkeypatch.setattr(Coloring, name, value)
    with pytest.raises(AssertionError, match=sentence):
        check_task(task, file)


def encoded_by(change: Callable[..., Any]) -> dict[str, Any]:
    """A forward pass of sets that goes wrong on the way."""
    forward = SetEncoder.forward
    return {"forward": lambda self, inputs: change(self, inputs, lambda given=inputs: forward(self, given))}


def without_mask(_, inputs, whole):
    return whole(inputs._replace(mask=torch.ones_like(inputs.mask)))


def mask_forgotten(_, __, whole):
    return whole().values


def mean_of_the_batch(_, __, whole):
    tokens = whole()
    return tokens._replace(values=tokens.values - tokens.values.mean(0, keepdim=True))


def random_tokens(_, __, whole):
    tokens = whole()
    return tokens._replace(values=tokens.values + torch.rand_like(tokens.values))


def numpys_noise(self, _, whole):
    tokens = whole()
    return tokens._replace(values=tokens.values + (np.random.random() if self.training else 0))


def half_as_wide(_, __, whole):
    tokens = whole()
    return tokens._replace(values=tokens.values[:, :, ::2])


def whole_unused(self, _, whole):
    tokens = whole()
    return tokens._replace(values=tokens.values.detach() + self.element[0].weight.sum())


def inputs_changed(_, inputs, whole):
    inputs.values.mul_(0.5)
    return whole()


def owns_padding(_, __, whole):
    tokens = whole()
    return tokens._replace(owning=torch.ones_like(tokens.owning))


BROKEN_ENCODERS = {
    "as many real tokens alone as in a batch": without_mask,
    "only real tokens stand for nodes": owns_padding,
    "`owning`\\) says which; it gave None": mask_forgotten,
    "do not depend on padding or on the rest of the batch": mean_of_the_batch,
    "in evaluation the same inputs give the same tokens": random_tokens,
    "in training all randomness is torch's": numpys_noise,
    "tokens have shape \\(b, k, encoder_width\\)": half_as_wide,
    "the gradient reaches every parameter.*none reached whole": whole_unused,
    "an encoder leaves its inputs as they are": inputs_changed,
}


@pytest.mark.parametrize("sentence", BROKEN_ENCODERS)
def test_encoders_that_break_a_promise_are_found_out(sentence, tmp_path, monkeypatch):
    task, _ = MADE["table of sets"](tmp_path)
    for name, value in encoded_by(BROKEN_ENCODERS[sentence]).items():
        monkeypatch.setattr(SetEncoder, name, value)
    with pytest.raises(AssertionError, match=sentence):
        check_encoder("set", task)


def test_an_encoder_of_other_inputs_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="reads bits, the inputs of coloring5 are of kind picture"):
        check_encoder("fingerprint", coloring(tmp_path)[0])
