"""How alike two inputs of a task are: what the nearest neighbour and the kernel of the barycentre go by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from graphwright.models import Tokens, inputs_to

if TYPE_CHECKING:
    from graphwright.tasks.task import Samples

Floats = NDArray[np.float32]

ENCODED_TOGETHER = 64


class Likeness(Protocol):
    """A way to compare inputs. Features are whatever `features` makes, one row for each input."""

    @property
    def name(self) -> str:
        """For tables and records."""

    def features(self, samples: Samples, indices: Sequence[int]) -> Any:
        """What is compared of some samples' inputs."""

    def similarity(self, queries: Any, references: Any) -> Floats:
        """(q, m) of features; the larger, the more alike."""

    def scale(self, similarity: Floats) -> float:
        """What differences are measured by, from the similarities (m, m) of references to each other."""

    def kernel(self, similarity: Floats, scale: float) -> Floats:
        """A positive definite kernel, 1 for equal inputs, of the same shape as the similarities."""


class EuclideanLikeness:
    """Feature vectors (m, d) by their squared distance, and the Gaussian kernel of it."""

    def similarity(self, queries: Floats, references: Floats) -> Floats:
        """(q, m) minus the squared distances."""
        squares = (queries**2).sum(1)[:, None] + (references**2).sum(1)
        distances: Floats = np.maximum(squares - 2 * queries @ references.T, 0)
        return -distances

    def scale(self, similarity: Floats) -> float:
        """The median squared distance of two different references; 1 where there is no such pair."""
        pairs = -similarity[np.triu_indices(len(similarity), 1)]
        apart = pairs[pairs > 0]
        return float(np.median(apart)) if len(apart) else 1.0

    def kernel(self, similarity: Floats, scale: float) -> Floats:
        """exp(-|x - y|^2 / scale)."""
        values: Floats = np.exp(similarity / np.float32(scale))
        return values


class KernelLikeness:
    """Similarities that are kernels themselves."""

    def scale(self, similarity: Floats) -> float:  # noqa: ARG002
        """Nothing to measure by."""
        return 1.0

    def kernel(self, similarity: Floats, scale: float) -> Floats:  # noqa: ARG002
        return similarity


@dataclass(frozen=True, eq=False)
class EncoderLikeness(EuclideanLikeness):
    """Inputs of any kind by the mean token of an encoder, trained or not."""

    encoder: nn.Module
    name: str = "encoder features"

    @torch.no_grad()
    def features(self, samples: Samples, indices: Sequence[int]) -> Floats:
        """(m, width)."""
        device = next(self.encoder.parameters()).device
        was_training = self.encoder.training
        self.encoder.eval()
        try:
            means = []
            for start in range(0, len(indices), ENCODED_TOGETHER):
                inputs, _ = samples.batch(indices[start : start + ENCODED_TOGETHER])
                encoded = self.encoder(inputs_to(inputs, device))
                tokens = encoded if isinstance(encoded, Tokens) else Tokens(encoded)
                means.append(tokens.mean())
        finally:
            self.encoder.train(was_training)
        values: Floats = torch.cat(means).float().cpu().numpy()
        return values
