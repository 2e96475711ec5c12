"""What `graphwright serve` asks of a task: what its inputs are called, how they are read, and how they are shown.

A task of its own kind of input overrides a few words and methods; without any its inputs are read from files, and
drawn, as `graphwright predict` does it. What cannot be used is a ValueError, whose sentence the page shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphwright.tasks.task import BadInput, NamedInput, Task

UNSEEN = 500
"""Samples of a test split among which an example is chosen."""


@dataclass(frozen=True)
class ShownPeak:
    """A peak of a spectrum. formula: of the part of the ion that explains it. error: of the m/z, in ppm."""

    mz: float
    intensity: float
    formula: str | None = None
    error: float | None = None


@dataclass(frozen=True, eq=False)
class ShownInput:
    """An input to look at: its name, its caption, and whatever there is of it.

    picture: (3, h, w) in 0..1. figure: any other drawing. text: in the notation of the trade.
    """

    name: str
    caption: str
    picture: NDArray[np.float32] | None = None
    figure: Figure | None = None
    text: str | None = None
    bits: Sequence[int] | None = None
    peaks: Sequence[ShownPeak] | None = None
    precursor: float | None = None


@dataclass(frozen=True, eq=False)
class Case:
    """given: what the model takes. truth: the graph that it should predict, if that is known.

    positions: (t, 2) where the truth's nodes stand in a picture of this side. in_scope: whether the model can know
    such graphs at all. rows: names of all inputs that came with this one, which is `row`, from 1.
    """

    given: Any
    shown: ShownInput
    truth: Graph | None = None
    positions: NDArray[np.float64] | None = None
    side: float | None = None
    in_scope: bool = True
    notes: Sequence[str] = ()
    rows: Sequence[str] = ()
    row: int = 1


@dataclass(frozen=True)
class Ion:
    """What a form says of a spectrum beside its peaks; empty where it says nothing."""

    formula: str = ""
    adduct: str = ""
    precursor: float | None = None


@dataclass(frozen=True)
class ExampleRange:
    """What can be wished of a picture that is drawn on demand."""

    least_regions: int
    most_regions: int
    noise: float
    most_noise: float


@dataclass(frozen=True)
class Wish:
    """What somebody wants of an example that is drawn on demand; None: as in the task's own."""

    regions: int | None = None
    noise: float | None = None


T = TypeVar("T", bound="Task")


@dataclass(frozen=True)
class TaskPage(Generic[T]):
    """The page of a task's models."""

    task: T

    title: ClassVar[str] = "From an input to its graph"
    text_label: ClassVar[str] = "An input"
    """What is pasted, in a word or two."""
    text_suffix: ClassVar[str] = ".txt"
    """Ending of the file that pasted text is written to."""
    one_line: ClassVar[bool] = False
    """Whether a line of text is an input, so that the end of a line sends it."""
    unseen: ClassVar[str] = "An unseen sample"
    answer: ClassVar[str] = "graph"
    """What the model answers."""
    empty: ClassVar[str] = "there is no input in it"
    colors: ClassVar[Mapping[str, Sequence[float]]] = {}
    """Red, green and blue, in 0..1, of node labels that are colours themselves."""

    @property
    def files(self) -> str:
        """What files can be chosen."""
        return self.task.files

    @property
    def takes_text(self) -> str | None:
        """What can be pasted; None: nothing."""
        return f"what a file of these has: {self.task.files}"

    @property
    def adducts(self) -> Sequence[str]:
        """The ions that a form offers, where inputs are spectra."""
        return ()

    def examples(self) -> list[tuple[str, str]]:
        """Titles and texts to start with."""
        return []

    def range(self) -> ExampleRange | None:
        """What can be wished of an example, where examples are drawn on demand."""
        return None

    def pasted(self, text: str, ion: Ion) -> str:  # noqa: ARG002
        """Pasted text, as its file has it."""
        return text

    def accepted(self, data: bytes, suffix: str) -> tuple[bytes, str]:
        """A file's bytes and the ending of its name, as `inputs` takes them."""
        return data, suffix

    def inputs(self, path: Path, formula: str) -> Iterator[NamedInput | BadInput]:  # noqa: ARG002
        """The inputs of a file. formula: of the molecules, where the file does not say it."""
        return self.task.read(path)

    def case(self, chosen: NamedInput, name: str, path: Path) -> Case:  # noqa: ARG002
        """One of the inputs of a file, with its truth where the file has that too."""
        return Case([chosen.value], self.drawn(chosen.value, name))

    def example(self, number: int, wish: Wish) -> Case:  # noqa: ARG002
        """A case from an unseen sample; the same number gives the same one."""
        samples = self.task.data("test", limit=UNSEEN)
        if not len(samples):
            raise ValueError("There is no test sample to take as an example.")
        at = number % min(len(samples), UNSEEN)
        return self.sample_case(samples[at], f"row {at + 1} of the test split")

    def sample_case(self, sample: Any, name: str) -> Case:
        """One of the task's own samples."""
        value = self.task.input_of(sample)
        return Case([value], self.drawn(value, name), sample.graph)

    def where(self, graph: Graph) -> NDArray[np.float64] | None:  # noqa: ARG002
        """(n, 2), y downwards, where a graph's nodes say that they are; None where they do not say it."""
        return None

    def drawn(self, value: Any, name: str) -> ShownInput:
        """An input as the task draws it."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(2.7, 2.4), layout="constrained")
        self.task.draw_input(value, figure.subplots())
        return ShownInput(name, "the input as the model reads it", figure=figure)


AnyPage: TypeAlias = "TaskPage[Any]"


TRAINED = "in the training set"
"""A remark on an input that a model was trained with."""


def in_a_sentence(remark: str) -> str:
    """A remark of a task as the page says it."""
    told, colon, reason = remark.partition("out of scope: ")
    if colon and not told:
        return f"Out of this model's scope: {reason}. It answers all the same, and is wrong."
    if remark == TRAINED:
        return "This one is in the training set: the model has seen the answer."
    return f"{remark[0].upper()}{remark[1:]}."
