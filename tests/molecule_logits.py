"""Predictions of molecules for tests: random ones, and true molecules under noise."""

from __future__ import annotations

import numpy as np
import torch

from graphwright.graphs import Graph, Prediction
from graphwright.graphs.molecules import graph_from_molecule, molecule_vocabulary, parse_smiles

QM9 = molecule_vocabulary(["C", "N", "O", "F"])


def random_prediction(
    samples: int, slots: int, seed: int, *, labels: int = 4, presence: float = 2.0
) -> Prediction:
    """Normal logits; presences and absences of bonds are likelier than not."""
    rng = np.random.default_rng(seed)
    edges = 2 * rng.normal(size=(samples, 5, slots, slots))
    edges[:, 0] += 1.5
    return Prediction(
        torch.tensor(presence + rng.normal(size=(samples, slots))),
        torch.tensor(edges),
        torch.tensor(rng.normal(size=(samples, slots, labels))),
    )


def noisy_prediction(smiles: list[str], slots: int, noise: float, seed: int) -> tuple[Prediction, list[Graph]]:
    """Logits of 6 for the truth and 0 for the rest, and normal noise."""
    rng = np.random.default_rng(seed)
    graphs = [graph_from_molecule(parse_smiles(text), QM9) for text in smiles]
    presence = np.full((len(smiles), slots), -3.0)
    labels = np.zeros((len(smiles), slots, 4))
    codes = np.zeros((len(smiles), slots, slots), np.int64)
    for at, graph in enumerate(graphs):
        presence[at, : graph.size] = 3.0
        labels[at, np.arange(graph.size), graph.node_labels] = 6.0
        codes[at, : graph.size, : graph.size] = graph.edge_matrix()
    edges = 6.0 * np.moveaxis(np.eye(5)[codes], -1, 1)
    arrays = [array + noise * rng.normal(size=array.shape) for array in (presence, edges, labels)]
    return Prediction(*(torch.tensor(array) for array in arrays)), graphs
