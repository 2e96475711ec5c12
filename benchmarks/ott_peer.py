"""ott-jax as a peer, in an environment of its own: JAX and torch need not agree on anything."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from benchmarks.sinkhorn_case import ITERATIONS, SinkhornCase

VARIABLE = "GRAPHWRIGHT_OTT_PYTHON"
FOLDER = Path(".venv-ott")
SCRIPT = Path(__file__).with_name("ott_script.py")
NAME = "ott-jax"
HOW = f"python -m venv {FOLDER} && {FOLDER}/bin/pip install ott-jax 'jax[cpu]', or ${VARIABLE}"


class OttError(RuntimeError):
    """The environment is there, but ott-jax does not run in it."""


@dataclass(frozen=True, eq=False)
class OttPass:
    """Milliseconds of a pass over the batch, plans and the gradient in the costs, (b, n, n) each."""

    milliseconds: float
    plan: Tensor
    cost_gradient: Tensor


def ott_python() -> Path | None:
    """The interpreter of the environment with ott-jax: the variable's, else that of the folder, else none."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    own = FOLDER / "bin" / "python"
    return own if own.exists() else None


def ott_pass(python: Path, case: SinkhornCase, threads: int, repeats: int) -> OttPass:
    """Forward and backward over the case, compiled beforehand, median of `repeats`."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "cost.npy", case.cost.numpy())
        np.save(folder / "gradient.npy", case.gradient.numpy())
        numbers = (str(case.epsilon), str(ITERATIONS), str(threads), str(repeats))
        try:
            done = subprocess.run(
                # Isolated, or the script's folder would hide packages behind modules of the same name.
                [str(python), "-I", str(SCRIPT), name, *numbers],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            raise OttError(f"{python} cannot be started: {error.strerror}") from error
        if done.returncode:
            last = (done.stderr.strip() or "no message").splitlines()[-1]
            raise OttError(f"{NAME} does not run under {python}: {last}")
        return OttPass(
            median(json.loads(done.stdout)),
            torch.from_numpy(np.load(folder / "plan.npy")),
            torch.from_numpy(np.load(folder / "cost_gradient.npy")),
        )
