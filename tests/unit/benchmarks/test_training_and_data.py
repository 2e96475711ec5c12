"""The benchmarks of training steps and of data: what they measure, nothing about how fast it is."""

import pytest
import torch

from benchmarks import measure_data, measure_presets, measure_training
from benchmarks.training import WARM_UP, _TimedSession, measure_loop, with_matching
from graphwright.inference.checkpoint import load
from graphwright.settings import MATCHINGS
from graphwright.training import train
from graphwright.training.log import Display
from tiny import tiny_settings

TINY = tiny_settings(task={"samples": 100}, train={"steps": 3, "batch_size": 4})


def test_every_matching_has_a_row_with_its_share_and_the_loop_one_on_most_threads():
    before = torch.get_num_threads()
    rows = list(measure_training(lambda n: TINY, sizes=(4,), batch=4, repeats=1, loop_steps=2))  # noqa: ARG005
    kinds = list(MATCHINGS.names())
    assert [(row.name, row.threads) for row in rows] == [
        *((name, 1) for name in kinds),
        *((name, 2) for name in (*kinds, "loop")),
    ]
    assert torch.get_num_threads() == before
    for row in rows[:-1]:
        facts = row.to_json()
        assert facts["ours_ms"] > 0
        assert facts["plan_share"] > 0
        assert facts["samples_per_second"] == pytest.approx(1000 / facts["ours_ms"])
    assert all(row.peer == "conditional_gradient step" for row in rows[:-1])
    assert {row.batch for row in rows} == {4}


def test_each_preset_is_timed_once_with_the_learned_matcher():
    wide = tiny_settings(task={"samples": 100}, model={"width": 32}, matching={"kind": "mirror"})
    runs = {
        "first": with_matching(TINY, "conditional_gradient"),
        "the same but for its matching": with_matching(TINY, "mirror"),
        "a baseline": tiny_settings(model={"kind": "relationformer"}, matching={"kind": "labels"}),
        "wide": wide,
    }
    rows = list(measure_presets(runs.__getitem__, list(runs), batch=3, repeats=1, count=1))
    assert [row.name for row in rows] == ["learned, first", "learned, wide"]
    for row in rows:
        assert (row.batch, row.threads) == (3, 1)
        assert row.extras["plan_share"] > 0


def test_the_loop_s_overhead_is_what_is_not_inside_its_steps():
    row = measure_loop(TINY, 1, 2)
    assert row.peer_ms < row.ours_ms
    assert row.extras["loop_overhead"] == pytest.approx(1 - row.ratio)
    assert (row.n, row.batch, row.threads) == (4, 4, 1)


def test_the_timed_loop_is_the_real_one(tmp_path):
    """Same weights as `train`, every step timed, and neither part of a step is left out."""
    session = _TimedSession(TINY, tmp_path / "timed", Display.silent())
    session.train(resume=False)
    train(TINY, tmp_path / "plain")
    timed, plain = (load(tmp_path / name / "checkpoints" / "last").tensors for name in ("timed", "plain"))
    assert all(torch.equal(timed[name], tensor) for name, tensor in plain.items())
    assert len(session.whole) == len(session.inside) == TINY.train.steps
    assert all(0 < inside < whole for inside, whole in zip(session.inside, session.whole, strict=True))


def test_the_optimiser_s_step_counts_as_inside(tmp_path, monkeypatch):
    """By a clock that only the optimiser moves, a step is inside from end to end."""
    now = [0.0]
    monkeypatch.setattr("benchmarks.training.perf_counter", lambda: now[0])
    session = _TimedSession(TINY, tmp_path / "run", Display.silent())
    session.optimizer.optimizer.register_step_pre_hook(lambda *_: now.__setitem__(0, now[0] + 1))
    session.train(resume=False)
    assert session.inside == session.whole == [1.0] * TINY.train.steps


def test_the_first_steps_of_the_loop_do_not_count(monkeypatch):
    seen = []
    original = _TimedSession.train

    def slow_start(self, *, resume):
        result = original(self, resume=resume)
        self.whole[:WARM_UP] = [1e9] * WARM_UP
        seen.append(len(self.whole))
        return result

    monkeypatch.setattr(_TimedSession, "train", slow_start)
    assert measure_loop(TINY, 1, 2).ours_ms < 1e8
    assert seen == [WARM_UP + 2]


def test_data_rows_name_the_plain_loop():
    (row,) = measure_data(sizes=(5,), samples=3, peer_samples=1, repeats=1)
    assert row.peer == "plain loop over pixels"
    assert row.to_json()["samples_per_second"] == pytest.approx(1000 / row.ours_ms)
