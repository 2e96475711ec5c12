"""A run that was stopped and went on, beside the same run that was not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graphwright.inference import checkpoint as checkpoints
from graphwright.settings import Run
from graphwright.training import loop, train


def assert_resumes_exactly(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, stop: int = 3) -> list[Path]:
    """Train straight on, and stopped after a step and resumed: the same state to the last bit. -> both folders."""
    folders = [folder / "straight", folder / "stopped"]
    train(run, folders[0])
    whole_step = loop.Session._step
    with monkeypatch.context() as patch:
        patch.setattr(
            loop.Session, "_step", lambda self, data: whole_step(self, data) or self.progress.step == stop
        )
        with pytest.raises(KeyboardInterrupt):
            train(run, folders[1])
    train(run, folders[1], resume=True)
    one, other = (checkpoints.load(each / "checkpoints" / "last").tensors for each in folders)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    return folders
