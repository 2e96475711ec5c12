"""A trained predictor by name, a run folder, a shipped model or a model file, and the graphs it predicts."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from pydantic import ValidationError
from torch import Tensor

from graphwright.decoding import Formula, NoMoleculeError, harden
from graphwright.decoding.candidates import Candidate
from graphwright.files import SHIPPED_MODELS
from graphwright.graphs import Graph, Prediction, Vocabulary
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.checkpoint import CheckpointError, expanded
from graphwright.inference.decoders import PLAIN, PREDICTING, Question, decoder_named, default_decoder
from graphwright.inference.memory_limit import TooLargeError, count_weights, is_ordinary, refuse_large_model
from graphwright.known import Known, Library, Memory, Placement, Recalling, Recogniser
from graphwright.models import GraphHead, GraphPredictor, Inputs, NodeDecoder, TokenSlots, inputs_to
from graphwright.models.arithmetic import Bags
from graphwright.models.predictor import RelationDecoder, RelationHead, kept_tokens
from graphwright.settings import MATCHINGS, PairKind, Run
from graphwright.settings.schema import ModelKind, SlotKind
from graphwright.tasks import Split, Task, known_graphs, task_of
from graphwright.tasks.split import SPLITS

if TYPE_CHECKING:
    from graphwright.inference.evaluate import Evaluated


def build_predictor(run: Run, known_parts: Bags | None = None) -> GraphPredictor:
    """The predictor, freshly initialised.

    known_parts: what the graphs have in common that it learns to recognise; to load weights none are needed.
    """
    model, task = run.model, task_of(run.task)
    encoder = task.encoder(model)
    sizes = (task.capacity, model.width, model.layers, model.heads, model.dropout, model.encoder_width)
    recogniser = None
    if model.known_graphs:
        parts = known_parts or Bags.single(model.known_graphs)
        recogniser = Recogniser(model.encoder_width, parts)
    if model.kind is ModelKind.RELATIONFORMER:
        if task.vocabulary.attributes:
            named = ", ".join(task.vocabulary.attribute_names)
            raise ValueError(f"model.kind {model.kind} predicts no numbers of nodes, and {task.name} has {named}")
        relation_head = RelationHead(model.width, model.head_width, task.vocabulary)
        return GraphPredictor(encoder, RelationDecoder(*sizes), relation_head, recogniser)
    decoder = (
        NodeDecoder(*sizes)
        if model.slots is SlotKind.LEARNED
        else TokenSlots(task.capacity, model.spare_slots, *sizes[1:])
    )
    head = GraphHead(
        model.width,
        model.head_width,
        task.vocabulary,
        diffusion=task.diffusion,
        product=model.pairs is PairKind.PRODUCT,
    )
    return GraphPredictor(encoder, decoder, head, recogniser)


def slots(run: Run) -> int:
    """How many slots the predictor has."""
    capacity = task_of(run.task).capacity
    return capacity if run.model.slots is SlotKind.LEARNED else kept_tokens(capacity) + run.model.spare_slots


NOT_VALID = "not a valid molecule"


@dataclass(frozen=True, eq=False, repr=False)
class PredictedGraph:
    """A predicted graph and the model's probability of it.

    That is of exactly these decisions, slots taken as independent (of several views the geometric mean), or of
    this graph among those recognised.

    candidates: the most probable distinct graphs, this one first, where they were asked for.
    task: whose graph it is, which can write and draw it.
    """

    graph: Graph
    confidence: float
    candidates: tuple[Candidate, ...] = ()
    task: Task | None = field(default=None, repr=False)

    @property
    def text(self) -> str | None:
        """The graph in the notation of its task, such as SMILES; None where there is none."""
        return self._text(self.graph, self.candidates[0].text if self.candidates else None)

    def __str__(self) -> str:
        return f"{self._shown(self.graph, self.text)}  (confidence {_percent(self.confidence)})"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def _repr_svg_(self) -> str:
        """The drawing, for a notebook."""
        return self._svg(self.graph, f"confidence {_percent(self.confidence)}", self.text)

    def _repr_html_(self) -> str:
        """The drawing, and the candidates as a table where there are several."""
        drawn = f"<div>{_image(self._repr_svg_(), str(self))}</div>"
        if len(self.candidates) < 2:
            return drawn
        checked = any(each.checked is not None for each in self.candidates)
        headings = ["", "graph", "", "probability", "share", *(["same fingerprint"] if checked else [])]
        head = "".join(f"<th>{heading}</th>" for heading in headings)
        rows = "".join(self._row(rank, each, checked) for rank, each in enumerate(self.candidates, 1))
        return f"{drawn}<table><tr>{head}</tr>{rows}</table>"

    def _row(self, rank: int, candidate: Candidate, checked: bool) -> str:
        text = self._text(candidate.graph, candidate.text)
        shown = html.escape(self._shown(candidate.graph, text))
        cells = [
            str(rank),
            _image(self._svg(candidate.graph, "", text), shown, width=160),
            shown,
            _percent(candidate.probability),
            _percent(candidate.share),
            *(["yes" if candidate.checked else "no"] if checked else []),
        ]
        return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"

    def _text(self, graph: Graph, text: str | None) -> str | None:
        return text or (None if self.task is None else self.task.text(graph))

    def _shown(self, graph: Graph, text: str | None) -> str:
        """The notation, or the labels; those also where the notation has nothing to say of the graph."""
        if text is None and self.task is not None and self.task.ranked:
            return f"{graph}, {NOT_VALID}"
        return text or str(graph)

    def _svg(self, graph: Graph, title: str, text: str | None) -> str:
        if self.task is None:
            raise ValueError("a graph without its task cannot be drawn: see graphwright.graphs.draw")
        return self.task.svg(graph, title, text)


def _image(svg: str, text: str, width: int | None = None) -> str:
    """An SVG as an image element, so that identifiers inside two drawings do not clash."""
    code = base64.b64encode(svg.encode()).decode()
    size = "" if width is None else f' width="{width}"'
    return f'<img alt="{html.escape(text, quote=True)}"{size} src="data:image/svg+xml;base64,{code}">'


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


MODEL_NAME = "model"
PREDICTOR = "model.predictor."
"""Begins the names of its weights."""
AVERAGE = "average.predictor."
"""Begins the names of their running mean, which is taken instead where a run has one."""


@dataclass(frozen=True, eq=False, repr=False)
class SavedModel:
    """A trained predictor with the settings it was trained under: `predict`, `evaluate`, `save`."""

    name: str
    run: Run
    predictor: GraphPredictor
    facts: Mapping[str, Any]
    library: Library | None = None
    """Known graphs that came with it; without them they are those of its training data."""
    remembered: Memory | None = None
    """Training inputs that came with it; a run's model takes them from its training data."""

    @cached_property
    def task(self) -> Task:
        """What it predicts from what."""
        return task_of(self.run.task)

    @property
    def vocabulary(self) -> Vocabulary:
        """The labels of its graphs."""
        return self.task.vocabulary

    @property
    def decode(self) -> str:
        """The one that it was handed on with, or that answers best."""
        return str(self.facts.get("decoder", default_decoder(self.task, self.predictor.recogniser is not None)))

    @property
    def device(self) -> torch.device:
        """Where its weights are: the processor, unless somebody has moved the predictor."""
        return next(self.predictor.parameters()).device

    @cached_property
    def known(self) -> Known:
        """The distinct graphs that it knows, placed as it was trained to place them."""
        keeps_order = MATCHINGS[self.run.matching.kind].keeps_order
        placement = Placement.IN_ORDER if keeps_order else Placement.BEST
        library = self.library or known_graphs(self.task)
        library = replace(library, batch=library.batch.pad(slots(self.run)))
        return Known(library, placement, self.facts.get("temperature", 1.0))

    @cached_property
    def memory(self) -> Memory | None:
        """What it remembers beside what it has learned: nothing, where it recognises no graphs as wholes.

        Nor where it was handed on with known graphs alone: it answers as it did then, and needs no data.
        """
        if self.predictor.recogniser is None:
            return None
        if self.remembered is None and self.library is None:
            return self.task.memory(self.known.library)
        return self.remembered

    def answering(self, decode: str) -> GraphPredictor | Recalling:
        """The predictor as a decoder needs it: for known graphs it also recalls what it remembers."""
        return self._recalling if decoder_named(decode).from_known else self.predictor

    @cached_property
    def _recalling(self) -> GraphPredictor | Recalling:
        if self.memory is None:
            return self.predictor
        return Recalling(self.predictor, self.memory, self.task.bags).eval()

    @torch.no_grad()
    def views(self, inputs: Inputs) -> list[Prediction]:
        """What it predicts from every other view of a batch of inputs."""
        views = self.task.other_views(inputs)
        return [self.predictor(inputs_to(view, self.device)).graphs for view in views]

    def compiled(self) -> SavedModel:
        """The same model with its network compiled by torch at the first size that it sees.

        That takes up to a minute and a C++ compiler, and pays where inputs come one at a time for long; large
        batches are not faster (`python -m benchmarks prediction`).
        """
        return replace(self, predictor=cast(GraphPredictor, torch.compile(self.predictor, dynamic=False)))

    @torch.no_grad()
    def predict(
        self,
        given: Any,
        *,
        top: int = 1,
        decode: str | None = None,
        formula: Formula | str | None = None,
        seconds: float | None = None,
    ) -> Any:
        """The graph of an input, or a list of the graphs of several.

        given: a path of a file or what is in one: a picture (PIL's, or an array), a SMILES, an RDKit molecule, a
        bit vector, a spectrum, a row of a table; or a list of them. A file of several inputs is a list, too, and a
        batch (b, ...) as the task's data sets make it is taken as it is.
        top: above 1, or with another decoder than the plain one, adds so many candidates with a probability each.
        decode: plain, views, valid, known or fingerprint; without it the model's own.
        formula: which only the valid and the known decoder obey: a valid graph has it and a known one fits it.
        seconds: for one input, after which valid and checked graphs are the best so far.
        """
        values, one = self.task.given(given)
        if isinstance(values, list) and not values:
            return []
        graphs = self._predicted(values, top, decode, formula, seconds)
        return graphs[0] if one else graphs

    def _predicted(
        self, values: Any, top: int, decode: str | None, formula: Formula | str | None, seconds: float | None
    ) -> list[PredictedGraph]:
        decode = self.decode if decode is None else decode
        decoder = decoder_named(decode)
        if not hasattr(top, "__index__") or top < 1:  # numpy's whole numbers are no int
            raise ValueError(f"top must be at least 1, a whole number, got {top!r}")
        if formula is not None and not decoder.obeys_formulas:
            raise ValueError(f"the {decode} decoder does not obey a formula; the valid and the known one do")
        decoder.check(self.task)
        inputs = self.task.inputs(values)
        prediction = self.answering(decode)(inputs_to(inputs, self.device)).graphs
        if top == 1 and decode == PLAIN:
            graphs = harden(prediction, self.vocabulary).graphs(self.vocabulary)
            sure = confidence(prediction).tolist()
            return [PredictedGraph(graph, value, (), self.task) for graph, value in zip(graphs, sure, strict=True)]
        bounds = self.task.input_bounds(values)
        if formula is not None:
            bounds = [Formula.parse(formula) if isinstance(formula, str) else formula] * len(prediction)
        question = Question(
            prediction,
            self.task,
            top,
            effort=PREDICTING if seconds is None else PREDICTING.within(seconds),
            formulas=bounds,
            known=self.known if decoder.from_known else None,
            inputs=inputs,
            views=self.views(inputs) if decoder.from_views else (),
        )
        answers = [each.candidates for each in decoder.candidates(question)]
        lacking = next((at for at, ranked in enumerate(answers, 1) if not ranked), None)
        if lacking is not None:
            raise NoMoleculeError(
                f"input {lacking}: no molecule of the formula was found in {question.effort.seconds:g} s; "
                "more seconds may find one"
            )
        return [
            PredictedGraph(first.graph, first.probability, (first, *rest), self.task) for first, *rest in answers
        ]

    def evaluate(
        self,
        data: str | Path | None = None,
        *,
        split: Split = "test",
        samples: int | None = None,
        seed: int | None = None,
        decode: str | None = None,
    ) -> Evaluated:
        """True figures: of a split of the model's own data, or of all samples of a file like them.

        samples: how many, from the start; without it 1000 of a split, all of a file. seed: for fresh samples of a
        generated task. decode: as in `predict`.
        """
        from graphwright.inference.evaluate import evaluate_saved  # which needs this class

        if split not in SPLITS:
            raise ValueError(f"there is no split {split!r}, only {', '.join(SPLITS)}")
        if samples is not None and samples < 1:
            raise ValueError(f"samples must be at least 1, got {samples}")
        if data is not None and seed is not None:
            raise ValueError("a seed draws fresh samples and data are read: give one of the two")
        file = None if data is None else Path(data)
        return evaluate_saved(self, split, seed, samples, file=file, decode=decode)

    def save(self, folder: str | Path, *, decode: str | None = None) -> None:
        """Write a small copy that `graphwright.load`, `evaluate` and `predict` take; it needs no data.

        decode: what it is to be decoded with from now on. `graphwright export` also measures it and writes a card.
        """
        from graphwright.inference.export import save_model  # which needs this class

        save_model(self, Path(folder), self.decode if decode is None else decode)

    def __str__(self) -> str:
        weights = sum(each.numel() for each in self.predictor.parameters())
        known = f"; {self.standing}" if self.standing else ""
        return f"{self.name}: {self.task.summary}\n{weights:,} weights, decoded {self.decode}{known}"

    __repr__ = __str__

    @property
    def standing(self) -> str:
        """What is known of how good it is."""
        test, progress = self.facts.get("test"), self.facts.get("progress") or {}
        try:
            if test:
                return f"{test['isomorphic']:.1f} % of {test['samples']:,} unseen samples exactly right"
            return f"trained for {progress['seconds'] / 60:.1f} minutes" if "seconds" in progress else ""
        except (ArithmeticError, LookupError, TypeError, ValueError):  # whoever wrote it may have written anything
            return ""


def confidence(prediction: Prediction) -> Tensor:
    """(b,) probability of the hard decisions: presence of every slot, labels and pairs of the slots present."""
    present = prediction.presence > 0
    score = -torch.nn.functional.softplus(-prediction.presence.abs()).sum(1)
    if prediction.node_labels is not None:
        best = prediction.node_labels.log_softmax(2).amax(2)
        score = score + (best * present).sum(1)
    if prediction.edges.ndim == 3:
        pairs = -torch.nn.functional.softplus(-prediction.edges.abs())
    else:
        pairs = prediction.edges.log_softmax(1).amax(1)
    both = (present[:, :, None] & present[:, None, :]).triu(1)
    return (score + (pairs * both).sum((1, 2))).exp()


def shipped_names() -> list[str]:
    """Names of the models that come with the package."""
    return sorted(path.parent.name for path in SHIPPED_MODELS.glob(f"*/{MODEL_NAME}.json"))


def load_model(source: str) -> SavedModel:
    """A model from a run folder (its best checkpoint), a shipped model's name, or a model's .json file."""
    path = find_model(source)
    saved = checkpoints.load(path)
    try:
        run = Run.model_validate(saved.facts["settings"])
    except KeyError as error:
        raise CheckpointError(f"{path}.json does not hold the settings of a run") from error
    except ValidationError as error:
        raise CheckpointError(
            f"{path}.json does not hold the settings of a run: {_first_complaint(error)}"
        ) from error
    tensors = expanded(saved.tensors)
    prefix = AVERAGE if any(name.startswith(AVERAGE) for name in tensors) else PREDICTOR
    weights = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    try:
        refuse_large_model(run, build_predictor, 1, "it takes")
        _refuse_misfit(run, weights)
        predictor = build_predictor(run)
        predictor.load_state_dict(weights)
    except TooLargeError:
        raise
    # Settings that no run has fail wherever they are first made use of.
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}.json does not fit its own settings: {error}") from error
    task = task_of(run.task)
    try:
        library = Library.unpacked(saved.tensors, task.vocabulary, task.capacity)
        remembered = Memory.unpacked(saved.tensors)
    except (ValueError, KeyError, IndexError, RuntimeError, TypeError) as error:
        raise CheckpointError(f"{path}.json has known graphs that cannot be read: {error}") from error
    return SavedModel(Path(source).stem, run, predictor.eval(), saved.facts, library, remembered)


def _refuse_misfit(run: Run, weights: Mapping[str, Tensor]) -> None:
    """Refuse settings that are not these weights' before a model is made, which could take all memory."""
    sizes = run.model.model_dump()
    layers = max(sizes[name] for name in ("layers", "encoder_layers", "encoder_blocks"))
    largest = max(value for value in sizes.values() if isinstance(value, int))
    numbers = sum(tensor.numel() for tensor in weights.values())
    if layers > len(weights) or largest > numbers:
        raise ValueError(f"{len(weights):,} tensors of {numbers:,} numbers are not of so large a model")
    if not is_ordinary(run) and count_weights(run, build_predictor) > MOST_BESIDE * numbers:
        raise ValueError(f"{numbers:,} weights are not of so large a model")


MOST_BESIDE = 2
"""Times its weights that a model has of numbers, those that are no weights among them."""


def _first_complaint(error: ValidationError) -> str:
    """In one line, by the name of the setting, which another version may have had."""
    first = error.errors(include_url=False)[0]
    key, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    return f"{key}: {reason}, got {str(first['input'])[:80]!r}" if key else reason


def log_beside(source: str) -> Path:
    """Where the training log of a model's run, or of an exported model, is if there is one."""
    folder = find_model(source).parent
    return (folder.parent if folder.name == "checkpoints" else folder) / "log.csv"


def find_model(source: str) -> Path:
    """The checkpoint behind a source, which is not read; an error says what was looked for."""
    path = Path(source)
    # Shipped names come before folders: one that happens to have such a name is ./NAME.
    if source in shipped_names():
        return SHIPPED_MODELS / source / MODEL_NAME
    if path.is_dir():
        for candidate in (path / "checkpoints" / "best", path / MODEL_NAME, path / "checkpoints" / "last"):
            if checkpoints.exists(candidate):
                return candidate
        raise CheckpointError(f"{path} holds no checkpoint: is it the folder of a run?")
    if path.suffix == ".json":
        if not path.is_file():
            raise CheckpointError(f"{path} does not exist")
        return path.with_suffix("")
    known = ", ".join(shipped_names()) or "none"
    raise CheckpointError(f"no model {source!r}: give a run's folder, a model's .json file, or one of: {known}")
