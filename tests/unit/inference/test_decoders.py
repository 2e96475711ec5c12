"""Decoding for predictions and for evaluations."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from graphwright.decoding import decode_valid, valid_candidates
from graphwright.graphs import Prediction, is_isomorphic
from graphwright.graphs.molecules import molecule_vocabulary, smiles_from_graph
from graphwright.inference import load_model
from graphwright.inference.decoders import decoder_named, default_decoder, ranking
from graphwright.settings import load_run
from graphwright.tasks import task_of
from graphwright.tasks.coloring.sample import SYMMETRIES, turn_image

QM9 = molecule_vocabulary("CONF")


def vague(samples: int) -> Prediction:
    """Logits near zero: many places of many graphs."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randn(samples, 5, 4, 4, generator=generator)
    return Prediction(
        torch.randn(samples, 4, generator=generator), edges, torch.randn(samples, 4, 4, generator=generator)
    )


@pytest.mark.parametrize(
    ("preset", "recognises", "expected"),
    [
        ("coloring10", False, "views"),
        ("qm9", False, "fingerprint"),
        ("ms2scaffold-cpu", False, "valid"),
        ("ms2scaffold-cpu", True, "known"),
    ],
)
def test_molecules_are_valid_ones_where_nobody_chooses_a_decoder(
    preset: str, recognises: bool, expected: str
) -> None:
    assert default_decoder(task_of(load_run(preset).task), recognises) == expected


@pytest.mark.parametrize("decoder", ["plain", "valid"])
def test_the_candidates_of_an_evaluation_do_not_depend_on_the_clock(
    decoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prediction, task = vague(2), task_of(load_run("qm9").task)
    first = ranking(decoder_named(decoder), 10, task)(prediction, None, prediction.presence)
    assert [len(each.candidates) for each in first] == [10, 10]
    clock = iter(range(10**9))
    # A busy machine: far more time than it takes passes between two looks at the clock.
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock) / 100)
    second = ranking(decoder_named(decoder), 10, task)(prediction, None, prediction.presence)
    for one, other in zip(first, second, strict=True):
        assert [each.log_score for each in one.candidates] == [each.log_score for each in other.candidates]
        assert all(map(is_isomorphic, *([each.graph for each in found.candidates] for found in (one, other))))


def test_few_programs_give_the_best_so_far_and_say_so() -> None:
    """Logits so strange that no molecule is among the first graphs."""
    prediction = Prediction(torch.full((1, 4), 30.0), torch.zeros(1, 5, 4, 4), torch.zeros(1, 4, 4))
    prediction.edges[:, 3] = 9.0  # every pair by a triple bond
    prediction.node_labels[:, :, 3] = 9.0  # of fluorine
    (best,) = decode_valid(prediction, QM9)
    assert best.proved_optimal
    (hasty,) = valid_candidates(prediction, QM9, 3, programs=0)
    assert [each.proved for each in hasty.candidates] == [False]
    assert smiles_from_graph(hasty.candidates[0].graph) == "FF"
    assert not hasty.proved
    (enough,) = valid_candidates(prediction, QM9, 1, programs=30)
    assert enough.candidates[0].proved
    assert enough.candidates[0].log_score == pytest.approx(best.log_score)
    assert enough.candidates[0].log_score > hasty.candidates[0].log_score


def test_views_are_for_tasks_that_have_several() -> None:
    decoder_named("views").check(task_of(load_run("coloring10").task))
    with pytest.raises(ValueError, match="qm9 has one view of its inputs alone: decode it plain"):
        decoder_named("views").check(task_of(load_run("qm9").task))


def test_a_picture_and_its_turns_are_given_the_same_answer(tiny_run: Path) -> None:
    model = load_model(str(tiny_run))
    data = model.task.data("test")
    pictures = torch.stack([model.task.input_of(data[index]) for index in range(3)])
    views = model.task.other_views(pictures)
    turned = [turn_image(pictures.numpy(), code) for code in range(1, SYMMETRIES)]
    assert [view.tolist() for view in views] == [each.tolist() for each in turned]
    assert len({view.numpy().tobytes() for view in (pictures, *views)}) == 8
    expected = model.predict(pictures, decode="views", top=3)
    for view in views:
        for one, other in zip(expected, model.predict(view, decode="views", top=3), strict=True):
            assert is_isomorphic(one.graph, other.graph)
            assert one.confidence == pytest.approx(other.confidence, rel=1e-3)


def test_an_evaluation_looks_at_all_views_unless_told_otherwise(tiny_run: Path) -> None:
    model = load_model(str(tiny_run))
    result = model.evaluate(samples=5)
    assert result.decode == "views"
    data = model.task.data("test")
    alone = [model.predict(model.task.input_of(data[index])).graph for index in range(5)]
    assert all(map(is_isomorphic, alone, result.evaluation.predicted))
    assert model.evaluate(samples=5, decode="plain").decode == "plain"
