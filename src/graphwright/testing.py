"""What every task and every encoder promises, as tests that anybody can run on their own.

    from graphwright.testing import check_encoder, check_task

    def test_my_task(tmp_path):
        check_task(task_of(MySettings()), file=some_inputs_written_to(tmp_path))

    def test_my_encoder():
        check_encoder("mine", task_of(MySettings()))

A check is silent, or raises an AssertionError that says what is promised and what was seen; it needs no pytest.
"""

from __future__ import annotations

import copy
import json
import pickle
import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from graphwright.decoding import decode
from graphwright.graphs import Graph, GraphBatch, is_isomorphic
from graphwright.inference.model import build_predictor
from graphwright.models import Inputs, Tokens, build_encoder
from graphwright.settings import ENCODERS, TASKS, Model, Run, load_run, to_yaml
from graphwright.tasks import SPLITS, BadInput, NamedInput, Samples, Task, resolved, task_of

WIDTHS = (16, 24)
"""Widths of the encoders that are tried: small, and divisible by `HEADS`."""
HEADS = 2
TOLERANCE = 1e-4
"""How far tokens may differ because sums are taken in another order."""
EPOCHS = range(3)
OTHER_SEED = 12345


def check_task(task: Task, file: Path, *, samples: int = 6) -> None:
    """A task keeps all that training, evaluation, prediction and reports rely on.

    file: one that `task.read` takes, with at least one input that can be read. samples: how many of each split are
    looked at.
    """
    _check_what_it_says(task)
    run = _small_run(task)
    for split in SPLITS:
        where = f"the {split} split"
        with _promised(f"data({split!r}) gives the samples of {where}"):
            data, again = task.data(split), task_of(task.settings).data(split)
        _hold(len(data) > 0, f"every split has samples, {where} has none")
        indices = range(min(samples, len(data)))
        _check_graphs(task, data, indices, where)
        _check_repeatable(data, again, indices, where)
        _check_collate(task, data, indices, where)
        if split == "train":
            _check_epochs(data, indices)
            _check_drawings(task, [data[index] for index in indices])
        if split == "test":
            _check_answers(task, run, data, indices)
    _check_seed(task, 10 * samples)
    _check_settings(run)
    _check_reading(task, run, file)


def check_encoder(name: str, task: Task, *, samples: int = 6) -> None:
    """An encoder keeps all that models, training and checkpoints rely on, on inputs of a task that it can read.

    name: under which it is registered. task: whose samples it is tried on; they should differ in length, where its
    inputs have one, so that there is padding. samples: how many are looked at.
    """
    _hold(name in ENCODERS, f"an encoder is registered under its name, there is none called {name!r}")
    form, data = task.input_form, task.data("train")
    _hold(
        form.kind in ENCODERS[name].reads,
        f"an encoder names what it can read in `reads`: {name} reads {', '.join(ENCODERS[name].reads)}, "
        f"the inputs of {task.name} are of kind {form.kind}",
    )
    chosen = [data[index] for index in range(min(samples, len(data)))]
    inputs = data.collate(chosen)[0]

    def fresh(width: int = WIDTHS[0]) -> nn.Module:
        torch.manual_seed(0)
        with _promised(f"build makes an encoder of encoder_width {width}"):
            return build_encoder(form, _small_model(name, width))

    # Whoever runs a check keeps their own random numbers.
    with torch.random.fork_rng(devices=[]):
        for width in WIDTHS:
            _check_tokens(name, fresh(width).eval(), inputs, len(chosen), width)
        encoder = fresh().eval()
        _check_deterministic(fresh, encoder, inputs)
        _check_alone(encoder, data, chosen)
        _check_gradients(fresh().train(), inputs)
        _check_state(fresh, encoder, inputs)


# Tasks.


def _check_what_it_says(task: Task) -> None:
    kind, own = task.settings.kind, type(task).__name__
    _hold(
        kind in TASKS and TASKS[kind] is type(task),
        f"register_task makes a task known by the kind of its settings, {kind!r} does not stand for {own}",
    )
    _hold(
        isinstance(task.settings, type(task).settings_class),
        f"a task has the settings that it was registered with, {type(task).settings_class.__name__}, "
        f"these are {type(task.settings).__name__}",
    )
    for said in ("name", "heading", "summary", "limits", "files"):
        with _promised(f"{said} is a text"):
            text = getattr(task, said)
        _hold(isinstance(text, str) and bool(text.strip()), f"{said} is a text, got {text!r}")
    with _promised("a task knows capacity, vocabulary and input_form"):
        _, _, form = task.capacity, task.vocabulary, task.input_form
    _hold(
        form.kind in task.settings.input_kinds,
        f"the settings name the kinds of inputs in `input_kinds`, {', '.join(task.settings.input_kinds)}, "
        f"and the task's input_form is of kind {form.kind}",
    )


def _check_graphs(task: Task, data: Samples, indices: range, where: str) -> None:
    for index in indices:
        said = f"sample {index} of {where}"
        with _promised(f"a sample has its target in the attribute graph, {said} has not"):
            graph = data[index].graph
        _hold(isinstance(graph, Graph), f"a target is a Graph, that of {said} a {type(graph).__name__}")
        _hold(
            graph.vocabulary == task.vocabulary,
            f"graphs have the labels of the task's vocabulary, {task.vocabulary}; {said} has {graph.vocabulary}",
        )
        _hold(
            graph.size <= task.capacity,
            f"no graph has more nodes than the task's capacity, {task.capacity}; {said} has {graph.size}",
        )
        _hold(data.graph(index) == graph, f"graph({index}) is the target of sample {index}, not so in {where}")
    try:
        past = data[len(data)]
    except IndexError:
        return
    except Exception as error:
        raise AssertionError(f"an index past the end is an IndexError, {where} raised {error!r}") from error
    raise AssertionError(f"an index past the end is an IndexError, {where} gave {past!r}")


def _check_repeatable(data: Samples, again: Samples, indices: range, where: str) -> None:
    """The same sample whoever asks for it, when and how often: runs resume, and data workers share the work."""
    with _promised(f"samples can be pickled, for data workers; those of {where} cannot"):
        in_a_worker = pickle.loads(pickle.dumps(data))
    first = [data.collate([data[index]]) for index in indices]
    for said, other in (
        ("asked for again in another order", data),
        ("made once more from the same settings", again),
        ("in a data worker", in_a_worker),
    ):
        _hold(len(other) == len(data), f"{where} has {len(data)} samples, and {len(other)} {said}")
        for index in reversed(indices):
            _hold(
                _equal(other.collate([other[index]]), first[index]),
                "a sample is a pure function of settings, split and index; "
                f"sample {index} of {where} is another one {said}",
            )
    with _promised("digest() is a SHA-256"):
        digests = [each.digest() for each in (data, data, again)]
    _hold(
        all(isinstance(each, str) and len(each) == 64 and set(each) <= set(string.hexdigits) for each in digests),
        f"digest() is a SHA-256 in 64 hexadecimal digits, that of {where} is {digests[0]!r}",
    )
    _hold(len(set(digests)) == 1, f"the same data have the same digest, {where} has {sorted(set(digests))}")


def _check_epochs(data: Samples, indices: range) -> None:
    """An epoch may vary the input, at random but repeatably; what is to be predicted stays."""
    for index in indices:
        for epoch in EPOCHS:
            said = f"sample {index} in epoch {epoch}"
            with _promised(f"training asks for samples[index, epoch], for instance {said}"):
                once, twice = data[index, epoch], data[index, epoch]
            _hold(
                _equal(data.collate([once]), data.collate([twice])),
                f"samples[index, epoch] is a pure function of both, {said} is another one when asked for again",
            )
            _hold(
                is_isomorphic(once.graph, data[index].graph),
                f"an epoch changes how an input is seen, not its graph; {said} has another graph",
            )


def _check_collate(task: Task, data: Samples, indices: range, where: str) -> None:
    chosen = [data[index] for index in indices]
    b, n = len(chosen), task.capacity
    with _promised(f"collate makes a batch of samples of {where}"):
        inputs, target = data.collate(chosen)
    _hold(isinstance(target, GraphBatch), f"collate gives targets as a GraphBatch, got {type(target).__name__}")
    for tensor in _tensors(inputs):
        _hold(
            tensor.ndim > 0 and len(tensor) == b,
            f"inputs have a row for each of {b} samples, got a tensor of shape {tuple(tensor.shape)}",
        )
    _hold(
        tuple(target.mask.shape) == (b, n),
        f"targets are padded to the capacity, here ({b}, {n}), got a mask of shape {tuple(target.mask.shape)}",
    )
    matrix = target.edge_labels
    _hold(torch.equal(matrix, matrix.mT), "edges are undirected: edge_labels are symmetric, these are not")
    for said, labels, names in (
        ("node", target.node_labels, task.vocabulary.nodes),
        ("edge", matrix, task.vocabulary.edges),
    ):
        low, high = int(labels.min()), int(labels.max())
        _hold(
            low >= 0 and high < len(names),
            f"{said} labels are codes 0 to {len(names) - 1} of the vocabulary, got {low} to {high}",
        )
    same = target.graphs() == [sample.graph for sample in chosen]
    _hold(same, f"collate keeps the samples' graphs and their order, not so in {where}")
    with _promised("inputs takes what input_of gives"):
        given = task.inputs(task.input_of(chosen[0]))
    _hold(
        _equal(data.collate(chosen[:1])[0], given),
        "inputs makes of an input what collate makes of its sample, else a model is asked other questions than "
        f"it was trained on; sample 0 of {where} differs",
    )


def _check_seed(task: Task, samples: int) -> None:
    if not task.generated:
        try:
            task.data("test", seed=OTHER_SEED)
        except ValueError:
            return
        raise AssertionError(
            "data that are read, not generated (`generated` is false), have no seed to change: "
            "data(split, seed=...) raises a ValueError, here it was ignored"
        )
    with _promised("generated data take a seed"):
        other = task.data("test", seed=OTHER_SEED)
    _hold(task.data("test").digest() != other.digest(), "another seed draws other data, the digest is the same")
    seen: dict[tuple[bytes, ...], str] = {}
    for split in SPLITS:
        data = task.data(split)
        for index in range(min(samples, len(data))):
            key = tuple(map(_bytes, _tensors(data.collate([data[index]])[0])))
            before = seen.setdefault(key, split)
            _hold(
                before == split,
                f"no input is generated for two splits, sample {index} of {split} is also in {before}",
            )


def _check_settings(run: Run) -> None:
    """A run's YAML says all of it, and what was read off the data is then known without them."""
    with _promised("resolved() names what the settings leave to the data"):
        named = resolved(run)
    for said, settings in (("settings", run), ("resolved settings", named)):
        with TemporaryDirectory() as folder, _promised(f"{said} can be written as YAML and read"):
            path = Path(folder) / "config.yaml"
            path.write_text(to_yaml(settings), "utf-8")
            read = load_run(str(path))
        _hold(
            read.task == settings.task and to_yaml(read) == to_yaml(settings),
            f"{said} survive YAML, wrote {settings.task!r} and read {read.task!r}",
        )
    before, after = task_of(run.task), task_of(named.task)
    for name in ("name", "capacity", "vocabulary", "input_form"):
        was, is_now = getattr(before, name), getattr(after, name)
        _hold(was == is_now, f"resolved() only names what is so anyway, {name} was {was!r} and is {is_now!r}")


def _check_answers(task: Task, run: Run, data: Samples, indices: range) -> None:
    """The default encoder reads the inputs, and a model of the task answers."""
    inputs, target = data.batch(list(indices))
    truths = target.graphs()
    with _promised(f"the default encoder, {run.model.encoder}, reads the inputs"):
        answers = _answers(run, inputs)
    _hold(len(answers) == len(truths), f"every input has an answer, {len(truths)} inputs have {len(answers)}")
    with _promised("other_views gives batches of inputs that a model reads"):
        views = task.other_views(inputs)
        counts = {len(_answers(run, view)) for view in views}
    _hold(counts <= {len(truths)}, f"a view is of all inputs, {len(truths)}, views have {sorted(counts)}")
    _hold(
        task.several_views == bool(views),
        f"several_views says whether there are other views: {task.several_views}, and there are {len(views)}",
    )
    with _promised("extras takes predictions and targets"):
        extras = task.extras(answers, truths)
    for extra in extras:
        _hold(
            extra.values.shape == (len(truths),),
            f"a metric has a value for every sample, {len(truths)}; {extra.name} has shape {extra.values.shape}",
        )
    for graph in (*answers, *truths):
        with _promised("text writes a graph in the notation of the trade, or gives None"):
            text = task.text(graph)
        _hold(text is None or isinstance(text, str), f"text gives a text or None, got {text!r}")


def _check_reading(task: Task, run: Run, file: Path) -> None:
    with _promised(f"read takes {task.files}"):
        read = list(task.read(file))
    for each in read:
        known = isinstance(each, NamedInput | BadInput)
        _hold(known, f"read yields NamedInput or BadInput, got {type(each).__name__}")
    named = [each for each in read if isinstance(each, NamedInput)]
    faults = "; ".join(each.message for each in read if isinstance(each, BadInput))
    _hold(bool(named), f"read gives the inputs in {file}, it gave none: {faults or 'nothing at all'}")
    for each in named:
        _hold(str(file) in each.name, f"the name of an input names its file, got {each.name!r} from {file}")
        _hold(
            bool(each.stem) and Path(each.stem).name == each.stem,
            f"the stem of an input goes into the names of files, got {each.stem!r}",
        )
        with _promised("facts about an input can be written as JSON"):
            json.dumps(task.facts(each.value))
    stems = [each.stem for each in named]
    _hold(len(set(stems)) == len(stems), f"each input of a file has a stem of its own, got {stems}")
    for said, given, count in (
        ("one input", named[0].value, 1),
        ("a list of inputs", [each.value for each in named], len(named)),
    ):
        with _promised(f"inputs takes {said} that read has given"):
            answers = _answers(run, task.inputs(given))
        _hold(len(answers) == count, f"inputs makes a batch of {said}, {count} rows, got {len(answers)}")
        with _promised(f"given takes {said} that read has given, for what it is and not for a file"):
            values, alone = task.given(given)
        _hold(
            _equal(task.inputs(values), task.inputs(given)) and alone == (given is named[0].value),
            f"given tells one input from several; {said} became {'one' if alone else 'several'}, {values!r}",
        )
    with TemporaryDirectory() as folder, _promised("write_drawing draws an input that read has given"):
        task.write_drawing(Path(folder) / "read", named[0].value, answers[0], "title")
    missing = file.with_name(f"missing-{file.name}")
    promise = f"a file that is not there is one BadInput that names it, {missing.name}"
    with _promised(promise):
        unread = list(task.read(missing))
    _hold(
        len(unread) == 1 and isinstance(unread[0], BadInput) and missing.name in unread[0].message,
        f"{promise}; got {unread}",
    )


def _check_drawings(task: Task, chosen: Sequence[Any]) -> None:
    with _promised("statistics gives pairs of texts"):
        rows = task.statistics(iter(chosen))
    pairs = all(len(row) == 2 and all(isinstance(text, str) for text in row) for row in rows)
    _hold(pairs, f"statistics gives pairs of texts, got {rows!r}")
    given, graph = task.input_of(chosen[0]), chosen[0].graph
    # A model that has learned nothing may well see no nodes.
    empty = Graph.build([], (), [], vocabulary=task.vocabulary)
    with TemporaryDirectory() as folder:
        with _promised("sheet draws samples"):
            task.sheet(chosen).savefig(Path(folder) / "sheet.png")
        for name, drawn in (("graph", graph), ("empty-graph", empty)):
            with _promised(f"write_drawing draws what a model may predict, here the {name}"):
                task.write_drawing(Path(folder) / name, given, drawn, "title")
            written = Path(folder) / f"{name}.svg"
            _hold(
                written.exists() and "<svg" in written.read_text("utf-8"),
                "write_drawing writes an SVG at its path with .svg added, wrote "
                + ", ".join(sorted(each.name for each in Path(folder).iterdir())),
            )
    with _promised("positions says where to draw the nodes"):
        shape = task.positions(chosen[0]).shape
    _hold(shape == (graph.size, 2), f"positions gives every node x and y, shape ({graph.size}, 2), got {shape}")


def _small_run(task: Task) -> Run:
    sizes = {"encoder_width": WIDTHS[0], "encoder_layers": 1, "encoder_heads": HEADS, "encoder_blocks": 1}
    sizes |= {"width": 16, "layers": 1, "heads": HEADS, "head_width": 16}
    with _promised("the settings of a task make a run with its default encoder"):
        return Run.model_validate({"task": task.settings, "model": sizes})


def _answers(run: Run, inputs: Inputs) -> list[Graph]:
    """Answers of an untrained model."""
    run = resolved(run)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        prediction = build_predictor(run).eval()(inputs).graphs
    return decode(prediction, task_of(run.task).vocabulary)


# Encoders.


def _small_model(name: str, width: int) -> Model:
    return Model(encoder=name, encoder_width=width, encoder_layers=1, encoder_heads=HEADS, encoder_blocks=1)


def _encoded(encoder: nn.Module, inputs: Inputs) -> Tokens:
    with _promised("an encoder reads a batch of inputs"):
        tokens = encoder(inputs)
    return tokens if isinstance(tokens, Tokens) else Tokens(tokens)


def _check_tokens(name: str, encoder: nn.Module, inputs: Inputs, batch: int, width: int) -> None:
    values, mask, owning = _encoded(encoder, inputs)
    _hold(isinstance(values, Tensor), f"an encoder gives a tensor or Tokens, got {type(values).__name__}")
    shape = tuple(values.shape)
    _hold(
        len(shape) == 3 and shape[0] == batch and shape[1] > 0 and shape[2] == width,
        f"tokens have shape (b, k, encoder_width), here ({batch}, k, {width}), got {shape}",
    )
    _hold(values.is_floating_point() and bool(values.isfinite().all()), "tokens are finite numbers, some are not")
    for said, marks in (("mask", mask), ("owning", owning)):
        if marks is not None:
            _hold(
                tuple(marks.shape) == shape[:2] and marks.dtype == torch.bool,
                f"{said} is bool of shape (b, k), here {shape[:2]}, got {marks.dtype} {tuple(marks.shape)}",
            )
    if mask is not None:
        _hold(bool(mask.any(1).all()), "every input has a real token, of some the mask is false everywhere")
    if ENCODERS[name].owning:
        _hold(owning is not None, "an encoder whose tokens stand for nodes (`owning`) says which; it gave None")
    if owning is not None and mask is not None:
        _hold(not bool((owning & ~mask).any()), "only real tokens stand for nodes, here some of padding do")


def _check_deterministic(fresh: Callable[[], nn.Module], encoder: nn.Module, inputs: Inputs) -> None:
    given, state = copy.deepcopy(inputs), copy.deepcopy(encoder.state_dict())
    once, twice = _encoded(encoder, inputs), _encoded(encoder, inputs)
    _hold(_equal(given, inputs), "an encoder leaves its inputs as they are, they were changed")
    _hold(_equal(once, twice), "in evaluation the same inputs give the same tokens, they gave others")
    _hold(_same_state(state, encoder.state_dict()), "in evaluation an encoder does not change, its state did")
    _hold(
        _same_state(fresh().state_dict(), fresh().state_dict()),
        "fresh weights depend on torch's seed alone, so that runs can be repeated; two of one seed differ",
    )
    learned = []
    for _ in range(2):
        learner = fresh().train()
        torch.manual_seed(1)
        learned.append(_encoded(learner, inputs))
    _hold(
        _equal(*learned),
        "in training all randomness is torch's, so that runs resume exactly; one seed gave two answers",
    )


def _check_alone(encoder: nn.Module, data: Samples, chosen: Sequence[Any]) -> None:
    """An input's real tokens are the same alone and in any company: padding and neighbours are not seen."""
    alone = [_real(_encoded(encoder, data.collate([sample])[0]), 0) for sample in chosen]
    forwards = list(range(len(chosen)))
    for said, order in (("among others", forwards), ("in another order", forwards[::-1])):
        together = _encoded(encoder, data.collate([chosen[index] for index in order])[0])
        for row, index in enumerate(order):
            tokens = _real(together, row)
            _hold(
                alone[index].shape == tokens.shape,
                "an input has as many real tokens alone as in a batch (the mask says which are padding), "
                f"sample {index} has {len(alone[index])}, and {len(tokens)} {said}",
            )
            far = float((alone[index] - tokens).detach().abs().max())
            _hold(
                far < TOLERANCE,
                "an input's tokens do not depend on padding or on the rest of the batch, "
                f"those of sample {index} differ by {far:.2g} {said}",
            )


def _check_gradients(encoder: nn.Module, inputs: Inputs) -> None:
    values = _encoded(encoder, inputs).values
    # Weighted at random: the sum of normalised tokens is the same whatever the weights are.
    (values * torch.randn_like(values)).sum().backward()  # type: ignore[no-untyped-call]
    gradients = {name: each.grad for name, each in encoder.named_parameters() if each.requires_grad}
    unused = [name for name, gradient in gradients.items() if gradient is None]
    _hold(
        not unused,
        "the gradient reaches every parameter, else training on several devices waits for it for ever; "
        f"none reached {', '.join(unused)}",
    )
    wild = [name for name, each in gradients.items() if each is not None and not bool(each.isfinite().all())]
    _hold(not wild, f"gradients are finite, not so of {', '.join(wild)}")


def _check_state(fresh: Callable[[], nn.Module], encoder: nn.Module, inputs: Inputs) -> None:
    with _promised("safetensors saves an encoder: every tensor of its state has memory of its own"):
        saved = safetensors.torch.save(encoder.state_dict())
    other = fresh().eval()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1)
    with _promised("a fresh encoder takes the saved weights"):
        other.load_state_dict(safetensors.torch.load(saved))
    _hold(
        _equal(_encoded(encoder, inputs), _encoded(other, inputs)),
        "an encoder is all in its settings and its state, one that was loaded gives other tokens",
    )


def _real(tokens: Tokens, row: int) -> Tensor:
    values = tokens.values[row]
    return values if tokens.mask is None else values[tokens.mask[row]]


def _same_state(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return list(one) == list(other) and all(map(_equal, one.values(), other.values()))


# What both need.


def _hold(kept: bool, sentence: str) -> None:
    # Not the statement: python -O leaves that out.
    if not kept:
        raise AssertionError(sentence)


@contextmanager
def _promised(promise: str) -> Iterator[None]:
    """Any error within breaks the promise."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{promise}; it raised {type(error).__name__}: {error}") from error


def _tensors(inputs: Inputs) -> tuple[Tensor, ...]:
    tensors = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    for each in tensors:
        _hold(isinstance(each, Tensor), f"inputs are a tensor or a tuple of tensors, got {type(each).__name__}")
    return tensors


def _equal(one: Any, other: Any) -> bool:
    """To the last bit, whatever is in them."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and _bytes(one) == _bytes(other)
    if isinstance(one, GraphBatch) and isinstance(other, GraphBatch):
        return one.graphs() == other.graphs()
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one is None and other is None


def _bytes(tensor: Tensor) -> bytes:
    # Not torch.equal: an unknown number is NaN, which equals nothing.
    return tensor.detach().cpu().contiguous().numpy().tobytes()
