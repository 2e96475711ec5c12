"""The nearest training sample, against a search by hand."""

import numpy as np
import pytest
import torch

from graphwright.baselines import NearestSettings, predict_baseline
from graphwright.baselines.predict import References, baseline_likeness, nearest, references_of
from graphwright.inference import build_predictor
from graphwright.tasks import task_of


def test_a_training_sample_is_its_own_nearest_neighbour(any_run):
    task = task_of(any_run.task)
    samples = task.data("train", limit=8)
    found = predict_baseline("nearest", any_run, range(8), "train", settings=NearestSettings(references=None))
    assert found.graphs == [samples[index].graph for index in range(8)]
    assert found.settings.references >= 8
    assert found.seconds_per_prediction > 0


def test_the_nearest_picture_by_hand(picture_run):
    task = task_of(picture_run.task)
    training, test = task.data("train"), task.data("test")
    pictures = np.stack([training[index].image for index in range(len(training))])
    expected = []
    for index in range(5):
        distances = ((pictures - test[index].image) ** 2).sum((1, 2, 3))
        expected.append(training[int(distances.argmin())].graph)
    found = predict_baseline("nearest", picture_run, range(5), "test")
    assert found.graphs == expected
    assert found.likeness == "pixels"


def test_the_nearest_spectrum_is_the_tasks_own(spectrum_run):
    task = task_of(spectrum_run.task)
    samples = task.data("test")
    own = {each.name: each.graphs for each in task.baselines(samples, range(len(samples)))}
    found = predict_baseline("nearest", spectrum_run, range(len(samples)), "test")
    assert found.graphs == own["root cosine 0.01 Da"]
    assert found.graphs != own["commonest scaffold"]


def test_blocks_of_references_make_no_difference(monkeypatch, picture_run):
    task = task_of(picture_run.task)
    likeness, references = baseline_likeness(task), references_of(task, None)
    queries = likeness.features(task.data("validation"), range(6))
    whole = nearest(queries, references, likeness)
    monkeypatch.setattr("graphwright.baselines.predict.REFERENCES_TOGETHER", 7)
    counted = []
    parts = nearest(queries, references, likeness, counted.append)
    assert parts.index.tolist() == whole.index.tolist()
    assert sum(counted) == len(references)
    assert max(counted) == 7


def test_of_equals_the_first_is_nearest(picture_run):
    task = task_of(picture_run.task)
    likeness = baseline_likeness(task)
    twice = References(task.data("train"), [3, 5, 3, 5])
    found = nearest(likeness.features(twice.samples, [5, 3]), twice, likeness)
    assert found.index.tolist() == [1, 0]


def test_references_are_drawn_with_a_seed(picture_run):
    task = task_of(picture_run.task)
    first, again, other = (references_of(task, 20, seed).indices for seed in (0, 0, 1))
    assert first == again != other
    assert len(set(first)) == 20
    assert first == sorted(first)
    assert references_of(task, 10**9).indices == list(range(len(task.data("train"))))


def test_every_spectrum_is_a_reference(spectrum_run):
    task = task_of(spectrum_run.task)
    assert len(references_of(task, None)) == sum(len(unit) for unit in task.data("train").units)
    assert len(references_of(task, None)) > len(task.data("train"))


def test_features_of_an_encoder_may_be_compared(any_run):
    torch.manual_seed(0)
    encoder = build_predictor(any_run).encoder
    found = predict_baseline("nearest", any_run, range(6), "train", encoder=encoder)
    samples = task_of(any_run.task).data("train", limit=6)
    assert found.graphs == [samples[index].graph for index in range(6)]
    assert found.likeness == "encoder features"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "nearst"}, "they are nearest, barycentre, barycentre-true-size"),
        ({"split": "dev"}, "split must be one of train, validation, test, got 'dev'"),
        ({"indices": []}, "at least one sample"),
        ({"settings": NearestSettings(references=0)}, "references must be at least 1, got 0"),
        ({"name": "barycentre", "settings": NearestSettings()}, "barycentre takes BarycentreSettings"),
    ],
)
def test_what_cannot_be_answered_is_said(picture_run, change, message):
    given = {"name": "nearest", "run": picture_run, "indices": [0], "split": "test"} | change
    with pytest.raises(ValueError, match=message):
        predict_baseline(**given)
