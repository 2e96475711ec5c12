"""What a task is: samples, an encoder for their inputs, a vocabulary for their graphs, and how both are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import nn

from graphwright.decoding import Candidates, Formula
from graphwright.graphs import Graph, GraphBatch, Prediction, Vocabulary
from graphwright.known import Library
from graphwright.known.memory import Bag, Memory
from graphwright.models import Inputs
from graphwright.settings import Model
from graphwright.tasks.membership import Membership
from graphwright.tasks.split import Split

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Places = NDArray[np.float64]


@dataclass(frozen=True)
class Rejection:
    """A row of a file that no sample is made of: its number there, the sort of fault, the fault, and the text."""

    row: int
    reason: str
    detail: str
    text: str = ""


class Samples(Protocol):
    """A split of a data set: `samples[index]` is a sample as it is, `samples[index, epoch]` as training has it."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int | tuple[int, int], /) -> Any: ...

    def collate(self, samples: Sequence[Any]) -> tuple[Inputs, GraphBatch]:
        """Inputs (b, ...) and padded targets of some samples."""

    def batch(self, indices: Sequence[int]) -> tuple[Inputs, GraphBatch]:
        """Inputs and targets of the samples at these indices, as they are."""

    def graph(self, index: int) -> Graph:
        """The graph of a sample as it is, without its input where that takes time to make."""

    def digest(self) -> str:
        """SHA-256 that tells these data from others."""


@runtime_checkable
class Selective(Protocol):
    """Samples of a file some of whose rows may be unusable."""

    @property
    def rejected(self) -> Sequence[Rejection]:
        """The unusable rows among those looked at so far, in this process."""


@runtime_checkable
class Counting(Protocol):
    """Samples that know how many unusable rows were met, in this process and in data workers."""

    def unusable(self) -> dict[str, int]:
        """Rows by reason, the commonest first."""


def unusable_rows(samples: Samples) -> dict[str, int]:
    """Rows that no sample was made of so far, by reason, the commonest first."""
    if isinstance(samples, Counting):
        return samples.unusable()
    if isinstance(samples, Selective):
        return dict(Counter(each.reason for each in samples.rejected).most_common())
    return {}


@runtime_checkable
class Grouped(Protocol):
    """Samples several of which may be of one molecule, so that figures by molecule say more."""

    def membership(self, indices: Sequence[int]) -> Membership:
        """Molecules and formulas of some samples."""


@runtime_checkable
class Owned(Protocol):
    """Samples that know which tokens of an input can stand for which node of its graph."""

    owners: bool
    """Whether batches say so, in `GraphBatch.owners`: only to train a model whose slots are tokens."""


@runtime_checkable
class Bounded(Protocol):
    """Samples of whose graphs it is known how many atoms of each element they have at most."""

    def bounds(self, indices: Sequence[int]) -> list[Formula | None]:
        """The bounds of some samples, None where there is none."""


class Order(Protocol):
    """Batches of (index, epoch) for ever, a pure function of seed, step and rank."""

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in an epoch."""

    def __iter__(self) -> Iterator[list[tuple[int, int]]]: ...


@runtime_checkable
class Ordered(Protocol):
    """Samples that want to be read in an order of their own, such as block by block."""

    def order(self, batch_size: int, seed: int, first: int = 0, rank: int = 0, ranks: int = 1) -> Order:
        """Batches from step `first` on, this rank's share of each."""


@dataclass(frozen=True, eq=False)
class NamedInput:
    """One input read from a file: how to call it, and files made of it, the input itself, and a word about it."""

    name: str
    stem: str
    value: Any
    note: str = ""


@dataclass(frozen=True)
class BadInput:
    """Something in a file that cannot be read as an input; `message` names the file and the place."""

    message: str


@dataclass(frozen=True, eq=False)
class Extra:
    """A metric that only this task has: values (m,), one per sample, shares in 0..1 if `share`."""

    name: str
    values: NDArray[np.float64]
    share: bool = True


@dataclass(frozen=True, eq=False)
class Baseline:
    """A simple method and the graph that it answers to each of some samples."""

    name: str
    graphs: list[Graph]


@runtime_checkable
class Compared(Protocol):
    """A task that knows simple methods which a model must beat."""

    def baselines(self, samples: Any, indices: Sequence[int]) -> list[Baseline]:
        """Their answers to some samples of a data set of this task."""


@runtime_checkable
class Bounding(Protocol):
    """A task whose inputs may say how many atoms of each element their graphs have at most."""

    def bounds(self, given: Any) -> list[Formula | None]:
        """The bounds of what `inputs` takes, None where there is none."""


@runtime_checkable
class Checking(Protocol):
    """A task whose inputs can be computed from graphs, so that an answer can be checked."""

    def checked(
        self, prediction: Prediction, inputs: Inputs, count: int, *, programs: int | None, seconds: float
    ) -> list[Candidates]:
        """For every sample up to `count` graphs, those whose input is the given one first.

        programs: of valid decoding; None: any number. seconds: for one sample, after which the best must do.
        """


@runtime_checkable
class Remembering(Protocol):
    """A task whose inputs are bags of words, so that those of training can be remembered and compared."""

    def bags(self, inputs: Inputs) -> Bag:
        """Of a batch of inputs."""

    def memory(self, library: Library) -> Memory:
        """Training inputs whose graphs the library has."""


@runtime_checkable
class Informed(Protocol):
    """A task that knows more of its inputs where the molecular formula is known."""

    def with_formula(self, formula: str) -> Task:
        """The task for inputs of this formula, where their file does not say it."""


@runtime_checkable
class Explaining(Protocol):
    """A task that finds out by itself what a file holds, and can say what it found."""

    def explained(self) -> list[tuple[str, str]]:
        """What was understood of the file: names and values."""

    def rejections(self) -> list[Rejection]:
        """The unusable rows of all splits, in the file's order."""


@runtime_checkable
class Describing(Protocol):
    """A task with something to say about an input in JSON."""

    def facts(self, given: Any) -> dict[str, Any]:
        """Names and values."""


class Task(Protocol):
    """Everything that training, evaluation, prediction and reports need to know of a task."""

    @property
    def name(self) -> str:
        """What records call it, such as coloring10."""

    @property
    def summary(self) -> str:
        """One sentence for cards and reports: from what to what."""

    @property
    def limits(self) -> str:
        """What a model of this task must not be asked."""

    @property
    def files(self) -> str:
        """What kinds of file `read` takes."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The labels of its graphs."""

    @property
    def capacity(self) -> int:
        """Largest number of nodes."""

    @property
    def diffusion(self) -> bool:
        """Whether the predictor also predicts the neighbours' summed labels."""

    @property
    def ranked(self) -> bool:
        """Whether lists of candidates are the custom, so that evaluation says how often the truth is in them."""

    def data(self, split: Split, *, seed: int | None = None, limit: int | None = None) -> Samples:
        """A split; `seed` draws fresh data where data are generated. With a limit, only so many first samples are
        needed: none of them may then stand in for another."""

    def data_from(self, path: Path, *, limit: int | None = None) -> Samples:
        """All samples of a file in the schema of the task's own data."""

    def encoder(self, model: Model) -> nn.Module:
        """A fresh encoder of the inputs, as the settings say."""

    def inputs(self, given: Any) -> Inputs:
        """What a person has in hand, one or many, or values of `NamedInput`, as a batch of inputs."""

    def read(self, path: Path) -> Iterator[NamedInput | BadInput]:
        """The inputs in a file, and what in it cannot be read."""

    def extras(self, predicted: Sequence[Graph], targets: Sequence[Graph]) -> list[Extra]:
        """Metrics of its own."""

    def text(self, graph: Graph) -> str | None:
        """The graph in the notation of the trade, if there is one and the graph has it."""

    def statistics(self, samples: Iterable[Any]) -> list[tuple[str, str]]:
        """What `data inspect` prints of some samples: names and values."""

    def sheet(self, samples: Sequence[Any]) -> Figure:
        """What `data inspect` draws of some samples."""

    def input_of(self, sample: Any) -> Any:
        """The input of a sample, as `draw_input` takes it."""

    def places(self, sample: Any) -> Places:
        """(n, 2) where to draw the nodes of a sample's graph, y downwards."""

    def draw_input(self, given: Any, axes: Axes) -> None:
        """Draw the input of `read` or `input_of`."""

    def write_drawing(self, path: Path, given: Any, graph: Graph, title: str, text: str | None = None) -> None:
        """A drawing for `predict`, at `path` with .svg, and other suffixes, added.

        text: the graph as a decoder has written it, where that says more than the graph does.
        """

    def draw_graph(self, graph: Graph, axes: Axes, places: Places | None) -> None:
        """Draw a graph, at places (n, 2) if they are given."""


def input_beside_graph(task: Task, given: Any, graph: Graph, title: str) -> Figure:
    """A figure of an input and, to its right, of its graph."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    task.draw_input(given, left)
    task.draw_graph(graph, right, None)
    right.set_title(title, fontsize=10)
    return figure
