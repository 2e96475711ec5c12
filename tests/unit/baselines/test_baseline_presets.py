"""The presets of the trained baselines: the task's own preset with another method, and nothing else."""

from dataclasses import replace

import pytest
import torch

from graphwright.matching.matcher import ConditionalGradientMatcher, LabelProbabilityMatcher
from graphwright.settings import SlotKind, find_preset, load_run
from graphwright.training import build

TASKS = ("coloring10", "coloring20", "fingerprint2molecule", "ms2scaffold", "qm9")
CHEMISTRY = ("fingerprint2molecule", "ms2scaffold", "qm9")
SCALES = ("-cpu", "-paper")


def base_of(task: str, scale: str) -> str:
    """The paper's model for QM9, which the paper does not have, is called qm9."""
    return task if (task, scale) == ("qm9", "-paper") else task + scale


@pytest.mark.parametrize(
    ("task", "scale"), [(task, "-paper") for task in TASKS] + [(task, "-cpu") for task in CHEMISTRY]
)
def test_any2graph_differs_in_its_matching_and_its_epochs(task, scale):
    name = base_of(task, scale)
    run, base = load_run(f"any2graph-{name}"), load_run(name)
    assert (run.matching.kind, run.matching.steps) == ("conditional_gradient", 20)
    # Slots that begin as tokens are ours: a baseline has learned queries.
    assert (run.task, run.model) == (base.task, base.model.model_copy(update={"slots": SlotKind.LEARNED}))
    assert run.loss == replace(base.loss, recognition=0)  # ours
    if scale == "-paper":
        # "Any2Graph is trained for half the corresponding epoch budget" (appendix, Main comparison).
        assert run.train == base.train.model_copy(update={"epochs": base.train.epochs // 2})
    else:
        assert run.train == base.train


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("scale", SCALES)
def test_relationformer_has_the_same_encoder_and_budget(task, scale):
    name = base_of(task, scale)
    run, base = load_run(f"relationformer-{name}"), load_run(name)
    assert run.matching.kind == "labels"
    assert run.model == base.model.model_copy(update={"kind": run.model.kind, "slots": SlotKind.LEARNED})
    assert run.model.kind == "relationformer"
    assert (run.task, run.train) == (base.task, base.train)
    assert (run.loss.none_weight, run.loss.negatives, run.loss.adjacency) == (0.1, 3, 1)
    assert run.loss.recognition == 0


@pytest.mark.parametrize("task", ["coloring10", "coloring20"])
def test_on_two_cores_colorings_own_preset_matches_as_any2graph_does(task):
    matching = load_run(f"{task}-cpu").matching
    assert (matching.kind, matching.steps, matching.starts) == ("conditional_gradient", 20, 1)


@pytest.mark.parametrize(
    ("name", "matcher"),
    [(f"any2graph-{task}-cpu", ConditionalGradientMatcher) for task in CHEMISTRY]
    + [(f"relationformer-{task}-cpu", LabelProbabilityMatcher) for task in TASKS],
)
def test_they_are_built(name, matcher):
    with torch.device("meta"):
        model = build(load_run(name))
    assert type(model.matcher) is matcher
    assert name.partition("-")[0] in find_preset(name).summary.lower()


def test_a_baselines_name_alone_means_its_preset_for_two_cores():
    assert load_run("relationformer-coloring10") == load_run("relationformer-coloring10-cpu")
