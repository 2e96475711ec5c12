"""Trees from brackets: ([]{()}) is a node for every pair, labelled by its kind, joined to the pair around it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from graphwright.graphs import Graph, GraphBatch, Vocabulary
from graphwright.models import Encoder, Tokens
from graphwright.settings import ENCODERS, Capacity, DataSettings, InputForm, Model, Override
from graphwright.tasks import SPLITS, BadInput, NamedInput, Samples, Split, Task, TaskSettings, register_task
from graphwright.tasks.split import split_by_hash

OPENING, CLOSING = "([{", ")]}"
CODES = {bracket: code for code, bracket in enumerate(OPENING + CLOSING)}
START, PADDING = len(CODES), len(CODES) + 1
"""What inputs of kind "tokens" begin with and end in."""
VOCABULARY = Vocabulary(nodes=("round", "square", "curly"))
SIZES = {"train": 1.0, "validation": 0.1, "test": 0.1}


class BracketsTask(TaskSettings):
    """Brackets: a text of nested brackets; the graph is the tree of which pair is directly inside which."""

    input_kinds = ("tokens",)
    default_encoder = "recurrent"

    kind: Literal["brackets"] = "brackets"
    """What is predicted from what: brackets, trees from texts."""
    capacity: Annotated[Capacity, Field(ge=4)] = 8
    """Most pairs of brackets; the fewest are half as many."""
    samples: Annotated[int, Field(ge=10)] = 100_000
    """Training samples; a tenth as many for validation, and for testing."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Which data set: sample i is a pure function of seed, split and i."""


def tree(text: str) -> Graph:
    """The tree of a text, nodes in the order of their opening brackets; a ValueError says what is wrong."""
    labels: list[int] = []
    edges: list[tuple[int, int]] = []
    around: list[int] = []
    for at, bracket in enumerate(text, 1):
        if bracket in OPENING:
            if labels and not around:
                raise ValueError(f"character {at}, {bracket!r}, is outside of the first pair")
            edges += [(around[-1], len(labels))] if around else []
            around.append(len(labels))
            labels.append(OPENING.index(bracket))
        elif not around or bracket != CLOSING[labels[around[-1]]]:
            raise ValueError(f"character {at}, {bracket!r}, closes nothing")
        else:
            around.pop()
    if around or not labels:
        raise ValueError("a bracket is not closed" if labels else "there are no brackets")
    return Graph(np.array(labels), np.array(edges).reshape(-1, 2), np.ones(len(edges)), VOCABULARY)


def random_text(rng: np.random.Generator, capacity: int) -> str:
    """Some nested brackets, one pair around all of them."""
    # There are few short ones: one that fell to a small split would fill it.
    pairs = int(rng.integers(capacity // 2, capacity + 1))
    text, kinds = "", list[int]()
    for _ in range(pairs):
        while len(kinds) > 1 and rng.random() < 0.5:
            text += CLOSING[kinds.pop()]
        kinds.append(int(rng.integers(len(OPENING))))
        text += OPENING[kinds[-1]]
    return text + "".join(CLOSING[kind] for kind in reversed(kinds))


def batch(texts: Sequence[str]) -> Tensor:
    """(b, k) codes, padded to the longest."""
    rows = [torch.tensor([START, *map(CODES.__getitem__, text)]) for text in texts]
    return pad_sequence(rows, batch_first=True, padding_value=PADDING)


@dataclass(frozen=True)
class Sample:
    """A text and its tree."""

    text: str

    @property
    def graph(self) -> Graph:
        return tree(self.text)


@dataclass(frozen=True)
class Texts(Samples):
    """A split, generated as it is read. A text belongs to one split, by its hash."""

    settings: BracketsTask
    split: Split
    seed: int

    def __len__(self) -> int:
        return int(SIZES[self.split] * self.settings.samples)

    def __getitem__(self, index: int | tuple[int, int]) -> Sample:
        at = index[0] if isinstance(index, tuple) else index  # the same in every epoch
        if not 0 <= at < len(self):
            raise IndexError(f"text {at} of {len(self)}")
        rng = np.random.default_rng([self.seed, SPLITS.index(self.split), at])
        while split_by_hash(text := random_text(rng, self.settings.capacity)) != self.split:
            pass
        return Sample(text)

    def collate(self, samples: Sequence[Sample]) -> tuple[Tensor, GraphBatch]:
        graphs = GraphBatch.collate([sample.graph for sample in samples], self.settings.capacity)
        return batch([sample.text for sample in samples]), graphs

    def digest(self) -> str:
        first = [self[at].text for at in range(min(100, len(self)))]
        return hashlib.sha256("\n".join(first).encode()).hexdigest()


@register_task(BracketsTask)
@dataclass(frozen=True)
class Brackets(Task):
    """From a text of brackets to its tree."""

    settings: BracketsTask

    files = "texts of brackets, one a line"
    generated = True

    @classmethod
    def settings_for(cls, source: str) -> DataSettings | None:
        """So that `graphwright train brackets` needs no file of settings."""
        if source != "brackets":
            return None
        small = {"encoder_width": 64, "width": 64, "layers": 2, "head_width": 64}
        overrides = [Override(f"model.{name}", value) for name, value in small.items()]
        return DataSettings((Override("task.kind", "brackets"), Override("matching.kind", "order"), *overrides))

    @property
    def name(self) -> str:
        return f"brackets{self.capacity}"

    @property
    def vocabulary(self) -> Vocabulary:
        return VOCABULARY

    @property
    def capacity(self) -> int:
        return self.settings.capacity

    @property
    def input_form(self) -> InputForm:
        return InputForm("tokens", len(CODES))

    def data(self, split: Split, *, seed: int | None = None, limit: int | None = None) -> Texts:  # noqa: ARG002
        return Texts(self.settings, split, self.settings.seed if seed is None else seed)

    def inputs(self, given: str | Sequence[str]) -> Tensor:
        return batch([given] if isinstance(given, str) else given)

    def read(self, path: Path) -> Iterator[NamedInput | BadInput]:
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            yield BadInput(f"{path}: {error}")
            return
        for number, line in enumerate(lines, 1):
            text = "".join(line.split())
            try:
                tree(text)
                yield NamedInput(f"{path}:{number}", f"{path.stem}-{number}", text)
            except ValueError as error:
                yield BadInput(f"{path}:{number}: {error}")

    def input_of(self, sample: Sample) -> str:
        return sample.text

    def text(self, graph: Graph) -> str | None:
        """The brackets of a tree that hangs on its first node."""
        inside: dict[int, list[int]] = {node: [] for node in range(graph.size)}
        for first, second in graph.edges.tolist():
            inside[first].append(second)
        if sorted(each for nodes in inside.values() for each in nodes) != list(range(1, graph.size)):
            return None

        def written(node: int) -> str:
            kind = graph.node_labels[node]
            return OPENING[kind] + "".join(map(written, inside[node])) + CLOSING[kind]

        return written(0)

    def facts(self, given: str) -> dict[str, Any]:
        return {"text": given}


@ENCODERS.register("recurrent")
class RecurrentEncoder(Encoder):
    """A recurrent network over a list of tokens, in both directions."""

    reads = ("tokens",)
    owning = True

    def __init__(self, words: int, width: int, layers: int) -> None:
        super().__init__()
        self.start, self.padding = words, words + 1
        self.embedding = nn.Embedding(words + 2, width)
        self.layers = nn.GRU(width, width // 2, layers, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(width)

    @classmethod
    def build(cls, form: InputForm, model: Model) -> Self:
        return cls(form.size, model.encoder_width, model.encoder_layers)

    def forward(self, codes: Tensor) -> Tokens:
        """codes (b, k), padded -> tokens (b, k, width)."""
        mask = codes != self.padding
        # Packed, so that the backward direction begins at the last token and not in the padding.
        packed = pack_padded_sequence(self.embedding(codes), mask.sum(1).cpu(), True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.layers(packed)[0], True, total_length=codes.shape[1])
        return Tokens(self.norm(states), mask, mask & (codes < self.start))
