"""What a task is: samples, an encoder for their inputs, a vocabulary for their graphs, and how both are shown."""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import Dataset, Sampler

from graphwright.decoding import Candidates, Formula
from graphwright.graphs import Graph, GraphBatch, Prediction, Vocabulary, draw, layout, save_figure
from graphwright.graphs.drawing import empty_sheet
from graphwright.known import Library
from graphwright.known.library import Bag, Memory
from graphwright.models import Inputs, build_encoder
from graphwright.settings import TASKS, DataSettings, InputForm, Model, Override, Run, TaskSettings
from graphwright.tasks.likeness import Likeness
from graphwright.tasks.page import AnyPage, TaskPage
from graphwright.tasks.split import Membership, Split

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LONGEST_STEM = 60
Positions = NDArray[np.float64]
LONGEST_NAME = 255
"""Characters of a file's name: what is longer is none."""


@dataclass(frozen=True)
class RejectedRow:
    """A row of a file that no sample is made of: its number there, the sort of fault, the fault, and the text."""

    row: int
    reason: str
    detail: str
    text: str = ""


class UnusableError(ValueError):
    """Data no row of which can be learned from; rejected: all of them, with their faults."""

    def __init__(self, message: str, rejected: Sequence[RejectedRow]) -> None:
        super().__init__(message)
        self.rejected = tuple(rejected)


class Batches(Sampler[list[tuple[int, int]]], ABC):
    """Batches of (index, epoch) from step `first` on, for ever: a pure function of seed, step and rank.

    A global batch is dealt to the ranks in turn, so that any number of processes sees the same joint batches.
    Subclasses are dataclasses that have these fields.
    """

    samples: int
    batch_size: int
    first: int
    rank: int
    ranks: int

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {self.batch_size}")
        if self.batch_size > self.samples:
            raise ValueError(f"batch_size {self.batch_size} is more than the {self.samples} training samples")
        if self.batch_size % self.ranks:
            raise ValueError(f"batch_size {self.batch_size} is not a multiple of the {self.ranks} processes")

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in an epoch; its tail is dropped."""
        return self.samples // self.batch_size

    @abstractmethod
    def epoch(self, number: int) -> Callable[[int], NDArray[np.int64]]:
        """The order of an epoch: from a step's number in it to the indices (batch_size,) of the joint batch."""

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        step = self.first
        while True:
            number = step // self.steps_per_epoch
            batch_at = self.epoch(number)
            for at in range(step % self.steps_per_epoch, self.steps_per_epoch):
                yield [(int(index), number) for index in batch_at(at)[self.rank :: self.ranks]]
                step += 1


class Samples(Dataset[Any], ABC):
    """A split of a data set: `samples[index]` is a sample as it is, `samples[index, epoch]` as training has it.

    A sample has its target in the attribute `graph`.
    """

    owners: bool = False
    """Whether batches say which tokens of an input can stand for which node, in `GraphBatch.owners`, as far as the
    data know: training asks for it where a model's slots are tokens."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, index: int | tuple[int, int], /) -> Any: ...

    @abstractmethod
    def collate(self, samples: Sequence[Any]) -> tuple[Inputs, GraphBatch]:
        """Inputs (b, ...) and padded targets of some samples."""

    @abstractmethod
    def digest(self) -> str:
        """SHA-256 that tells these data from others."""

    def batch(self, indices: Sequence[int]) -> tuple[Inputs, GraphBatch]:
        """Inputs and targets of the samples at these indices, as they are."""
        return self.collate([self[index] for index in indices])

    def graph(self, index: int) -> Graph:
        """The graph of a sample as it is, without its input where that takes time to make."""
        graph: Graph = self[index].graph
        return graph

    @property
    def rejected(self) -> Sequence[RejectedRow]:
        """The unusable rows among those looked at so far, of data that come from files."""
        return ()

    def unusable(self) -> dict[str, int]:
        """How many rows were unusable so far, by reason, the commonest first."""
        return dict(Counter(each.reason for each in self.rejected).most_common())

    def membership(self, indices: Sequence[int]) -> Membership | None:  # noqa: ARG002
        """Molecules and formulas of some samples, where several may be of one molecule."""
        return None

    def bounds(self, indices: Sequence[int]) -> list[Formula | None] | None:  # noqa: ARG002
        """How many atoms of each element the graphs of some samples have at most, as far as that is known."""
        return None

    def order(self, batch_size: int, seed: int, first: int = 0, rank: int = 0, ranks: int = 1) -> Batches | None:  # noqa: ARG002
        """Batches from step `first` on, this rank's share of each, such as block by block; None: in any order."""
        return None


@dataclass(frozen=True, eq=False)
class NamedInput:
    """One input read from a file: how to call it, and files made of it, the input itself, and a word about it.

    title: what the file itself calls it. text: the input as one can read it, such as a SMILES.
    """

    name: str
    stem: str
    value: Any
    note: str = ""
    title: str = ""
    text: str = ""


@dataclass(frozen=True)
class BadInput:
    """Something in a file that cannot be read as an input; `message` names the file and the line."""

    message: str


@dataclass(frozen=True, eq=False)
class Extra:
    """A metric that only this task has: values (m,), one per sample, shares in 0..1 if `share`.

    title: what pages and cards call it.
    """

    name: str
    title: str
    values: NDArray[np.float64]
    share: bool = True


@dataclass(frozen=True, eq=False)
class Baseline:
    """A simple method and the graph that it answers to each of some samples."""

    name: str
    graphs: list[Graph]


@dataclass(frozen=True)
class Choice:
    """Settings that depend on the data, and lines that say what was chosen and why."""

    overrides: tuple[Override, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task(ABC):
    """Everything that training, evaluation, prediction and reports need to know of a task.

    A task is one class: it says what its samples are, and what reads them; all else has a default. Registered by
    `register_task` it is known to settings, commands and reports by the kind of its settings. What it promises,
    `graphwright.testing.check_task` checks.
    """

    settings: TaskSettings

    settings_class: ClassVar[type[TaskSettings]]
    """What `settings` are; `register_task` sets it."""
    files: ClassVar[str] = "files"
    """What kinds of file `read` takes."""
    example_file: ClassVar[str] = "FILE"
    """What such a file may be called, in an example of a command."""
    ranked: ClassVar[bool] = False
    """Whether lists of candidates are the custom, so that evaluation says how often the truth is in them."""
    checks_answers: ClassVar[bool] = False
    """Whether inputs can be computed from graphs, so that `checked` can check an answer."""
    several_views: ClassVar[bool] = False
    """Whether inputs have `other_views`."""
    own_baselines: ClassVar[bool] = False
    """Whether `baselines` knows simple methods; else a model is compared with the nearest training input."""
    generated: ClassVar[bool] = False
    """Whether samples are generated, any number of them, so that simple methods look at a part."""

    @property
    def name(self) -> str:
        """What records call it, such as coloring10; by itself its kind."""
        return self.settings.kind

    @property
    @abstractmethod
    def vocabulary(self) -> Vocabulary:
        """The labels of its graphs."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """Largest number of nodes."""

    @abstractmethod
    def data(self, split: Split, *, seed: int | None = None, limit: int | None = None) -> Samples:
        """A split; `seed` draws fresh data where data are generated, and is a ValueError where they are read.

        With a limit, only so many first samples are needed: none of them may then stand in for another.
        """

    @property
    @abstractmethod
    def input_form(self) -> InputForm:
        """What an encoder must know of the inputs before any are seen."""

    @abstractmethod
    def inputs(self, given: Any) -> Inputs:
        """What a person has in hand, one or many, or values of `NamedInput`, as a batch of inputs."""

    def other_views(self, inputs: Inputs) -> Sequence[Inputs]:  # noqa: ARG002
        """Batches whose graphs are those of a batch of inputs, such as the same pictures turned."""
        return ()

    @abstractmethod
    def read(self, path: Path) -> Iterator[NamedInput | BadInput]:
        """The inputs in a file, and what in it cannot be read."""

    def file_of(self, given: Any) -> Path | None:
        """The file that is meant; None where an input itself was given.

        Text is a file by its ending or by the file's being there: in some tasks it is an input.
        """
        if not isinstance(given, str):
            return given if isinstance(given, Path) else None
        if "\n" in given:  # what is in a file, not its name
            return None
        path = Path(given)
        return path if path.suffix or (len(given) <= LONGEST_NAME and path.exists()) else None

    def is_one(self, given: Any) -> bool:
        """Whether it is one input, not several; told of no file."""
        return not isinstance(given, list | tuple)

    def read_words(self, words: Sequence[str]) -> Iterator[NamedInput | BadInput]:
        """The inputs that words of a command line name: those in files, or the words themselves."""
        for word in words:
            yield from self.read(self.file_of(word) or Path(word))

    @abstractmethod
    def input_of(self, sample: Any) -> Any:
        """The input of a sample, as `read` gives it and `draw_input` takes it."""

    def given(self, given: Any) -> tuple[Any, bool]:
        """What a person has in hand as `inputs` takes it, and whether it is one input, which gets one answer.

        A file of one input is one; one among others must be. What cannot be read is an error.
        """
        path = self.file_of(given)
        if path is not None:
            values = self._values(path)
            return values, len(values) == 1
        if self.is_one(given):
            return [given], True
        # Batches of several tensors are tuples, too, of a class of their own.
        if type(given) not in (list, tuple):
            return given, False
        return [each if self.file_of(each) is None else self._value(each) for each in given], False

    def _values(self, path: Path) -> list[Any]:
        read = list(self.read(path))
        bad = [each.message for each in read if isinstance(each, BadInput)]
        if bad:
            raise ValueError("\n".join(bad))
        return [each.value for each in read if isinstance(each, NamedInput)]

    def _value(self, given: str | Path) -> Any:
        values = self._values(Path(given))
        if len(values) != 1:
            raise ValueError(f"{given} holds {len(values):,} inputs: give such a file by itself, not in a list")
        return values[0]

    # What is said of it.

    @property
    def heading(self) -> str:
        """What tables of results call it."""
        return type(self).__name__

    @property
    def summary(self) -> str:
        """One sentence for cards and reports: from what to what."""
        return f"From {self.files} to graphs of up to {self.capacity} nodes ({self.name})."

    @property
    def limits(self) -> str:
        """What a model of this task must not be asked."""
        return (
            f"Inputs must be like those of {self.name}, with graphs of at most {self.capacity} nodes. On anything "
            "else it still answers, and is wrong."
        )

    @property
    def diffusion(self) -> bool:
        """Whether the predictor also predicts the neighbours' summed labels: the setting of this name, if any."""
        return bool(getattr(self.settings, "diffusion", False))

    def explained(self) -> list[tuple[str, str]]:
        """What was understood of a file by itself, for `data inspect`: names and values."""
        return []

    def statistics(self, samples: Iterable[Any]) -> list[tuple[str, str]]:
        """What `data inspect` prints of some samples: names and values."""
        graphs = [sample.graph for sample in samples]
        if not graphs:
            raise ValueError("samples must not be empty")
        return graph_statistics(graphs)

    def remarks(self, given: Any) -> list[str]:  # noqa: ARG002
        """What to say of an input as a person has it, before any prediction.

        Why it is out of scope, which then begins so, what was taken for granted, whether it was trained on.
        """
        return []

    def facts(self, given: Any) -> dict[str, Any]:  # noqa: ARG002
        """What to say about an input in JSON: names and values."""
        return {}

    def encoder(self, model: Model) -> nn.Module:
        """A fresh encoder of the inputs, as the settings say."""
        return build_encoder(self.input_form, model)

    # Settings that depend on the data.

    @classmethod
    def settings_for(cls, source: str) -> DataSettings | None:  # noqa: ARG003
        """What data alone stand for, a file or a folder; None where they are not of this task.

        Of several tasks that take them, the one registered last has them.
        """
        return None

    def choice(self) -> Choice:
        """What to train data with that are given alone, as one look at them says."""
        return Choice()

    def resolved(self) -> TaskSettings:
        """The settings with all named that a trained model must know without data; bad data are refused."""
        return self.settings

    def resolved_encoder(self, model: Model) -> str:
        """The encoder that is meant, where the settings leave it to the data."""
        return model.encoder

    # Further data.

    def data_from(self, path: Path, *, limit: int | None = None) -> Samples:  # noqa: ARG002
        """All samples of a file in the schema of the task's own data, whatever splits it names."""
        raise ValueError(f"{path}: there is no reading samples of {self.name} from a file")

    def rejections(self) -> list[RejectedRow]:
        """The unusable rows of all splits, in the file's order, where all of it is read at once."""
        return []

    def references(self) -> Samples:
        """The training samples that simple methods look at."""
        return self.data("train")

    # Answers.

    def extras(self, predicted: Sequence[Graph], targets: Sequence[Graph]) -> list[Extra]:  # noqa: ARG002
        return []

    def text(self, graph: Graph) -> str | None:  # noqa: ARG002
        """The graph in the notation of the trade, if there is one and the graph has it."""
        return None

    def likeness(self) -> Likeness:
        """How alike two inputs are: what the nearest neighbour and the kernel of the barycentre go by."""
        raise ValueError(f"no way is known to compare the inputs of {self.name}: give an encoder of them")

    def baselines(self, samples: Any, indices: Sequence[int]) -> list[Baseline]:  # noqa: ARG002
        """Answers, to some samples of a data set of this task, of simple methods that a model must beat."""
        return []

    def input_bounds(self, given: Any) -> list[Formula | None] | None:  # noqa: ARG002
        """How many atoms of each element the graphs of these inputs have at most, as far as known."""
        return None

    def checked(
        self,
        prediction: Prediction,  # noqa: ARG002
        inputs: Inputs,  # noqa: ARG002
        count: int,  # noqa: ARG002
        *,
        programs: int | None,  # noqa: ARG002
        seconds: float,  # noqa: ARG002
    ) -> list[Candidates]:
        """For every sample up to `count` graphs, those whose input is the given one first.

        programs: of valid decoding; None: any number. seconds: for one sample, after which the best must do.
        """
        raise ValueError(f"the answers of {self.name} cannot be checked against its inputs")

    def with_formula(self, formula: str) -> Task | None:  # noqa: ARG002
        """The task for inputs of this molecular formula, where their file does not say it; None: for none."""
        return None

    def bags(self, inputs: Inputs) -> Bag:  # noqa: ARG002
        """A batch of inputs as bags of words, by which those of `memory` are compared."""
        raise ValueError(f"the inputs of {self.name} are no bags of words")

    def memory(self, library: Library) -> Memory | None:  # noqa: ARG002
        """Training inputs, to be remembered, whose graphs the library has."""
        return None

    @property
    def page(self) -> AnyPage:
        """What `graphwright serve` asks of it."""
        return TaskPage(self)

    # Drawings.

    def sheet(self, samples: Sequence[Any]) -> Figure:
        """What `data inspect` draws of some samples: inputs beside their graphs."""
        figure, panels = empty_sheet(len(samples), columns=3, cell=(5.0, 2.9), widths=(1, 1))
        for sample, (left, right) in zip(samples, panels, strict=False):
            self.draw_input(self.input_of(sample), left)
            left.set_title(self.title(sample), fontsize=9)
            self.draw_graph(sample.graph, right, None)
            right.set_title(f"{sample.graph.size} nodes, {len(sample.graph.edges)} edges", fontsize=9)
        return figure

    def title(self, sample: Any) -> str:  # noqa: ARG002
        """What `sheet` writes above the input of a sample."""
        return ""

    def positions(self, sample: Any) -> Positions:
        """(n, 2) where to draw the nodes of a sample's graph, y downwards."""
        return layout(sample.graph)

    def own_positions(self, graph: Graph) -> Positions | None:  # noqa: ARG002
        """(n, 2), y downwards, of a graph that has a shape of its own, as molecules have; else None."""
        return None

    def draw_input(self, given: Any, axes: Axes) -> None:
        """Draw the input of `read` or `input_of`; as text where nobody knows better."""
        draw_text(str(given), axes)

    def draw_graph(self, graph: Graph, axes: Axes, positions: Positions | None) -> None:
        """Draw a graph, at positions (n, 2) if they are given."""
        draw(graph, axes, positions)

    def svg(self, graph: Graph, title: str, text: str | None = None) -> str:  # noqa: ARG002
        """A small drawing of a graph alone; `text` as in `write_drawing`."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(3.2, 2.6), layout="constrained")
        panel = figure.subplots()
        self.draw_graph(graph, panel, None)
        panel.set_title(title, fontsize=8)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg")
        return drawn.getvalue()

    def write_drawing(self, path: Path, given: Any, graph: Graph, title: str, text: str | None = None) -> None:  # noqa: ARG002
        """A drawing for `predict`, at `path` with .svg, and other suffixes, added.

        text: the graph as a decoder has written it, where that says more than the graph does.
        """
        save_figure(input_beside_graph(self, given, graph, title), path.with_name(path.name + ".svg"))


T = TypeVar("T", bound=type[Task])


def register_task(settings: type[TaskSettings]) -> Callable[[T], T]:
    """A decorator that makes a task known by the kind of its settings."""

    def registered(task: T) -> T:
        task.settings_class = settings
        return TASKS.register(settings.named_kind())(task)

    return registered


def task_of(settings: TaskSettings) -> Task:
    """The task that settings describe."""
    task = TASKS[settings.kind](settings)
    assert isinstance(task, Task)  # as `register_task` takes nothing else
    return task


def graph_statistics(graphs: Sequence[Graph]) -> list[tuple[str, str]]:
    """Sizes and labels of some graphs, for a table."""
    sizes = np.array([graph.size for graph in graphs])
    edges = np.array([len(graph.edges) for graph in graphs])
    nodes = Counter(name for graph in graphs for name in graph.node_names)
    joins = Counter(name for graph in graphs for name in graph.edge_names)
    return [
        ("looked at", f"{len(graphs):,}"),
        ("nodes", f"{sizes.min()} to {sizes.max()}, mean {sizes.mean():.2f}"),
        ("edges", f"{edges.min()} to {edges.max()}, mean {edges.mean():.2f}"),
        ("node labels found", _shares(nodes)),
        ("edge labels found", _shares(joins)),
    ]


def input_beside_graph(task: Task, given: Any, graph: Graph, title: str) -> Figure:
    """A figure of an input and, to its right, of its graph."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    task.draw_input(given, left)
    task.draw_graph(graph, right, None)
    right.set_title(title, fontsize=10)
    return figure


def file_stem(title: str, otherwise: str) -> str:
    """A name for files made of something: its title without special characters."""
    return re.sub(r"[^A-Za-z0-9]+", "_", title).strip("_")[:LONGEST_STEM] or otherwise


def draw_text(text: str, axes: Axes, most: int = 300) -> None:
    """An input as text, as far as there is room."""
    axes.set_axis_off()
    axes.text(0, 0.5, text[:most], wrap=True, va="center", fontsize=8, transform=axes.transAxes)


def _shares(counts: Counter[str], most: int = 8) -> str:
    total = max(1, counts.total())
    shown = ", ".join(f"{name} {100 * count / total:.1f} %" for name, count in counts.most_common(most))
    rest = f" and {len(counts) - most:,} more" if len(counts) > most else ""
    return (shown + rest) or "none"


MOST_KNOWN = 20_000
"""Training samples whose graphs count: the first so many."""


def known_graphs(task: Task) -> Library:
    """The distinct graphs of the training data, in the order in which they come."""
    data = task.data("train")
    return Library.of((data.graph(index) for index in range(min(len(data), MOST_KNOWN))), task.capacity)


@dataclass(frozen=True, eq=False)
class Resolved:
    """A run with everything named that its task and its model otherwise read off the data.

    library: the known graphs that were counted for it, where it recognises any: they need not be read again.
    """

    run: Run
    library: Library | None


def resolved(run: Run) -> Run:
    return resolve(run).run


def resolve(run: Run) -> Resolved:
    """Read off the data what a run's settings leave open."""
    task = task_of(run.task)
    settings, encoder = task.resolved(), task.resolved_encoder(run.model)
    library = known_graphs(task_of(settings)) if run.loss.recognition else None
    known = 0 if library is None else len(library)
    model = run.model.model_copy(update={"encoder": encoder, "known_graphs": known})
    return Resolved(run.model_copy(update={"task": settings, "model": model}), library)
