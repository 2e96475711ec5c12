"""What another package adds is used through the command line, without a word of it in this one."""

import json
import re
from itertools import product
from pathlib import Path

import pytest
import yaml

from plugins import graphwright_with, python_with, write_plugin

TINY = {
    "task.capacity": 4,
    "task.min_size": 2,
    "task.samples": 400,
    "model.encoder_width": 16,
    "model.width": 16,
    "model.layers": 1,
    "model.heads": 2,
    "model.head_width": 16,
    "matching.kind": "labels",
    "train.steps": 3,
    "train.batch_size": 4,
    "train.workers": 0,
    "train.threads": 1,
    "train.devices": 1,
    "train.accelerator": "cpu",
    "train.validate_every": 3,
    "train.validation_samples": 4,
}

ENCODER = """
import torch
from torch import nn
from graphwright.models import Encoder
from graphwright.settings import ENCODERS


@ENCODERS.register("pixels")
class Pixels(Encoder):
    reads = ("picture",)

    def __init__(self, width):
        super().__init__()
        self.colour = nn.Linear(3, width)

    @classmethod
    def build(cls, form, model):
        return cls(model.encoder_width)

    def forward(self, images):
        return self.colour(images.flatten(2).mT)
"""


MATCHING = """
import torch
from graphwright.matching import Match, Matcher
from graphwright.settings import MATCHINGS


@MATCHINGS.register("backwards")
class Backwards(Matcher):
    @classmethod
    def check(cls, run):
        if run.train.seed == 13:
            raise ValueError("matching.kind backwards does not go with train.seed 13")

    @classmethod
    def build(cls, run, vocabulary, slots):
        return cls()

    def forward(self, states, prediction, target, prior=None):
        plan = torch.eye(target.capacity).flip(0).repeat(len(target), 1, 1)
        return Match(plan, plan.new_zeros(len(plan)), {"plan_entropy": 0.25})
"""

LOSS_TERM = '''
from graphwright.losses import LOSS_TERMS


@LOSS_TERMS.register("size")
def size(prediction, target, settings):
    """Squared error of the number of nodes.

    Whatever the plan is.
    """
    error = prediction.presence.sigmoid().sum(1) - target.sizes
    return lambda plan: error.square() + 0 * plan.sum((1, 2))
'''


def trained(plugins: Path, **settings: object) -> Path:
    folder = plugins / "run"
    words = [
        f"--{key}={value}"
        for key, value in (TINY | {name.replace("__", "."): each for name, each in settings.items()}).items()
    ]
    result = graphwright_with(plugins, "train", "coloring10", f"--out={folder}", *words)
    assert result.returncode == 0, result.stderr
    return folder


def refused(plugins: Path, *words: str) -> str:
    result = graphwright_with(plugins, "train", "coloring10", f"--out={plugins / 'run'}", *words)
    assert result.returncode == 2, result.stderr
    return result.stderr


def test_an_encoder_of_another_package(tmp_path):
    plugins = write_plugin(tmp_path, "pixels", ENCODER)
    folder = trained(plugins, model__encoder="pixels")
    assert 'encoder: "pixels"' in (folder / "config.yaml").read_text()
    evaluated = graphwright_with(plugins, "evaluate", str(folder), "--samples=4")
    assert evaluated.returncode == 0, evaluated.stderr
    assert "pixels" in graphwright_with(plugins, "train", "--help").stdout
    assert "cannot read the inputs of task.kind fingerprint" in refused(
        plugins, "--task.kind=fingerprint", "--model.encoder=pixels"
    )


@pytest.mark.parametrize("encoder", ["pixels", "segfromer"])
def test_an_unknown_encoder_is_an_error_before_anything_else(encoder, tmp_path):
    message = refused(tmp_path, f"--model.encoder={encoder}")
    known = "fingerprint, vector, tokens, set, columns, cnn, segformer, spectrum, several"
    assert f"--model.encoder must be one of {known}, got '{encoder}'" in message
    assert not (tmp_path / "run").exists()


TASK = '''
import hashlib
from typing import Literal

import torch

from graphwright.graphs import Graph, GraphBatch, Vocabulary
from graphwright.settings import Capacity, DataSettings, InputForm, Override
from graphwright.tasks import BadInput, NamedInput, Samples, Task, TaskSettings, register_task

LETTERS = "abc"
START, PADDING = len(LETTERS), len(LETTERS) + 1


class WordsTask(TaskSettings):
    """Words: the letters of a word; the graph is the path of its letters."""

    input_kinds = ("tokens",)
    default_encoder = "tokens"

    kind: Literal["words"] = "words"
    """What is predicted from what: words, paths from their letters."""
    data: str = "words.words"
    """File with a word in every line."""
    capacity: Capacity = 4
    """Most letters of a word."""


class Word:
    def __init__(self, text):
        self.text = text
        path = [(at, at + 1) for at in range(len(text) - 1)]
        self.graph = Graph.build(list(text), path, ["edge"] * len(path)).with_vocabulary(VOCABULARY)


VOCABULARY = Vocabulary(nodes=tuple(LETTERS))


def codes(texts):
    longest = max(map(len, texts))
    rows = [[START, *map(LETTERS.index, text), *[PADDING] * (longest - len(text))] for text in texts]
    return torch.tensor(rows)


class Words(Samples):
    def __init__(self, texts, capacity):
        self.texts, self.capacity = texts, capacity

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return Word(self.texts[index[0] if isinstance(index, tuple) else index])

    def collate(self, samples):
        graphs = GraphBatch.collate([sample.graph for sample in samples], self.capacity)
        return codes([sample.text for sample in samples]), graphs

    def digest(self):
        return hashlib.sha256(repr(self.texts).encode()).hexdigest()


@register_task(WordsTask)
class FromWords(Task):
    files = "words, one a line"

    @classmethod
    def settings_for(cls, source):
        if not source.endswith(".words"):
            return None
        return DataSettings((Override("task.kind", "words"), Override("task.data", source)))

    @property
    def name(self):
        return "words"

    @property
    def vocabulary(self):
        return VOCABULARY

    @property
    def capacity(self):
        return self.settings.capacity

    @property
    def input_form(self):
        return InputForm("tokens", len(LETTERS))

    def data(self, split, *, seed=None, limit=None):
        with open(self.settings.data) as file:
            texts = file.read().split()
        start = {"train": 0, "validation": 1, "test": 2}[split]
        return Words(texts[start::3][:limit], self.capacity)

    def inputs(self, given):
        return codes([given] if isinstance(given, str) else given)

    def read(self, path):
        for number, text in enumerate(path.read_text().split(), 1):
            if set(text) <= set(LETTERS):
                yield NamedInput(f"{path}:{number}", f"{path.stem}-{number}", text)
            else:
                yield BadInput(f"{path}:{number}: {text!r} has other letters than {LETTERS}")

    def input_of(self, sample):
        return sample.text
'''


def test_a_task_of_another_package(tmp_path):
    plugins = write_plugin(tmp_path, "some_words", TASK)
    words = ["".join(each) for size in (2, 3, 4) for each in product("abc", repeat=size)]
    data = tmp_path / "mine.words"
    data.write_text("\n".join(words))
    settings = [f"--{key}={value}" for key, value in TINY.items() if key not in ("task.min_size", "task.samples")]

    def done(*words: str) -> str:
        result = graphwright_with(plugins, *words)
        assert result.returncode == 0, result.stderr
        return result.stdout

    folder = tmp_path / "run"
    done("train", str(data), f"--out={folder}", "--model.encoder_heads=2", *settings)
    config = (folder / "config.yaml").read_text()
    assert 'kind: "words"' in config
    assert "# Most letters of a word." in config
    assert 'encoder: "tokens"' in config
    assert (folder / "samples.png").exists()
    facts = tmp_path / "facts.json"
    done("evaluate", str(folder), "--samples=5", f"--json={facts}")
    assert json.loads(facts.read_text())["task"] == "words"
    asked, answered = tmp_path / "asked.txt", tmp_path / "answered.json"
    asked.write_text("abc\ncab\nxyz\n")
    predicted = graphwright_with(
        plugins, "predict", str(folder), str(asked), f"--json={answered}", f"--draw={tmp_path}"
    )
    assert (predicted.returncode, "'xyz' has other letters than abc" in predicted.stderr) == (1, True)
    assert [each["file"] for each in json.loads(answered.read_text())] == [f"{asked}:1", f"{asked}:2"]
    assert "<svg" in (tmp_path / "asked-1.svg").read_text()
    done("report", str(folder), "--samples=5")
    done("export", str(folder), str(tmp_path / "given"), "--samples=5")
    assert "graphwright predict given FILE" in (tmp_path / "given" / "README.md").read_text()
    assert "node labels found" in done("data", "inspect", str(data), f"--out={tmp_path / 'sheet.png'}")


def test_a_task_that_nobody_has_registered_is_refused_by_name(tmp_path):
    expected = "--task.kind must be one of coloring, fingerprint, spectrum, table, got 'words'"
    assert expected in refused(tmp_path, "--task.kind=words")


def logged(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_a_matching_of_another_package(tmp_path):
    plugins = write_plugin(tmp_path, "backwards", MATCHING)
    folder = trained(plugins, matching__kind="backwards", train__log_every=1)
    assert logged(folder)[0]["plan_entropy"] == 0.25
    message = refused(plugins, "--matching.kind=backwards", "--train.seed=13", "--out=other")
    assert "--train.seed: matching.kind backwards does not go with train.seed 13" in message


def test_a_loss_term_of_another_package(tmp_path):
    plugins = write_plugin(tmp_path, "size", LOSS_TERM)
    folder = trained(plugins, loss__size=0.5, loss__marginals=0, train__log_every=1)
    record = logged(folder)[0]
    weights = yaml.safe_load((folder / "config.yaml").read_text())["loss"]
    own = ("presence", "node_labels", "edge_labels", "adjacency", "diffusion", "size")
    assert record["size"] > 0
    assert record["loss"] == pytest.approx(sum(weights[name] * record[name] for name in own), rel=1e-4)
    assert weights["size"] == 0.5
    resumed = graphwright_with(plugins, "train", str(folder), "--resume", "--train.steps=4")
    assert resumed.returncode == 0, resumed.stderr
    shown = graphwright_with(plugins, "train", "--help").stdout
    assert "--loss.size" in shown
    assert "Squared error of the number of nodes. A number at least 0; default 0." in shown
    assert "--loss.size must be a number at least 0, got '-1'" in refused(plugins, "--loss.size=-1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--matching.kind=labells"], "must be one of mirror, conditional_gradient, labels, order, learned, got"),
        (["--loss.size=1"], "--loss.size: there is no such setting"),
        (["--loss.divergence=squared"], "--loss.divergence: divergence must be cross_entropy or kl"),
        (
            ["--loss.divergence=squared", "--task.kind=table", "--task.data=no.csv"],
            "--loss.divergence: divergence",
        ),
    ],
)
def test_what_can_be_refused_is_refused_before_data_are_read(words, message, tmp_path):
    assert message in refused(tmp_path, *words)
    assert not (tmp_path / "run").exists()


DECODER = """
from dataclasses import replace

from graphwright.inference.decoders import DECODERS, PlainDecoder


@DECODERS.register("lonely")
class Lonely(PlainDecoder):
    '''one node and no edge, whatever was predicted'''

    def candidates(self, asked):
        return [
            replace(each, candidates=(replace(each.candidates[0], graph=each.candidates[0].graph.subgraph([0])),))
            for each in super().candidates(asked)
        ]
"""


def test_a_decoder_of_another_package(tmp_path):
    plugins = write_plugin(tmp_path, "lonely_decoder", DECODER)
    printed = graphwright_with(plugins, "evaluate", "--help").stdout
    assert "lonely, one node and no edge" in " ".join(printed.split())
    json_file = tmp_path / "figures.json"
    words = ["evaluate", "coloring10", "--samples", "3", "--decode", "lonely", "--json", str(json_file)]
    result = graphwright_with(plugins, *words)
    assert result.returncode == 0, result.stderr
    figures = json.loads(json_file.read_text())
    assert (figures["decode"], figures["isomorphic"]) == ("lonely", 0)
    words[-3] = "lovely"
    assert "lonely" in graphwright_with(plugins, *words).stderr


EXTENDING_PAGE = Path(__file__).parents[2] / "docs" / "extending.md"

PAGE_CHECK = """
import sys
from pathlib import Path

import extended
import graphwright as gw
from graphwright.tasks import task_of
from graphwright.testing import check_encoder, check_task
from PIL import Image

model = gw.load(sys.argv[1])
pictures = [model.task.data("test")[at].image for at in range(3)]
for predicted in model.predict(pictures, decode="trees"):
    assert len(predicted.graph.edges) == max(0, predicted.graph.size - 1)
picture = Path(sys.argv[1]) / "picture.png"
Image.fromarray((255 * pictures[0].transpose(1, 2, 0)).astype("uint8")).save(picture)
task = task_of(extended.DimTask(capacity=5, min_size=3, samples=400))
check_task(task, picture, samples=3)
check_encoder("pixels", task, samples=3)
"""


def test_everything_on_the_page_about_extending_works(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", EXTENDING_PAGE.read_text(), re.S | re.M)
    plugins = write_plugin(tmp_path, "extended", "\n".join(blocks))
    chosen = {"task.kind": "dim", "model.encoder": "pixels", "loss.size": 0.1, "train.metric": "same_degrees"}
    chosen |= {"matching.kind": "nodes", "train.log_every": 1}
    folder = tmp_path / "run"
    settings = [f"--{key}={value}" for key, value in (TINY | chosen).items()]
    trained = graphwright_with(plugins, "train", "coloring10", f"--out={folder}", *settings)
    assert trained.returncode == 0, trained.stderr
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert all(config[key.split(".")[0]][key.split(".")[1]] == value for key, value in chosen.items())
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert records[0]["size"] > 0
    assert any("same_degrees" in record for record in records)
    checked = python_with(plugins, "-c", PAGE_CHECK, str(folder))
    assert checked.returncode == 0, checked.stderr
