"""What a step needs is what torch keeps for it."""

import pytest
import torch

from graphwright.training import build
from graphwright.training.footprint import Footprint, footprint
from tiny import tiny_settings


def test_a_step_keeps_so_much_for_every_sample_and_the_run_so_much_for_every_weight():
    run = tiny_settings(train={"optimizer": "adamw"})
    need = footprint(run)
    model = build(run)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert need.predictor + need.matcher == count
    assert need.fixed == 4 * 4 * count
    assert footprint(tiny_settings(train={"optimizer": "adamw", "averaging": 0.9})).fixed == (
        need.fixed + 4 * need.predictor
    )
    # The picture itself, the first feature maps and their activations at least; not a thousand of them.
    picture = 4 * 3 * 16**2
    assert 4 * picture < need.per_sample < 1000 * picture
    wider = footprint(tiny_settings(model={"encoder_width": 32}, train={"optimizer": "adamw"}))
    assert 1.3 * need.per_sample < wider.per_sample < 3 * need.per_sample


def test_a_batch_is_cut_into_the_fewest_parts_that_fit():
    need = Footprint(0, 0, fixed=100, per_sample=10.0)
    assert need.bytes(7) == 170
    assert need.parts(60, 1000) == 1  # 700 of 1,000 are for the step
    assert need.parts(61, 1000) == 2
    assert need.parts(61, 150) is None


@pytest.mark.parametrize("kind", ["learned", "conditional_gradient"])
def test_nothing_is_trained_by_measuring(kind):
    run = tiny_settings(matching={"kind": kind})
    torch.manual_seed(0)
    first = footprint(run)
    assert footprint(run) == first
