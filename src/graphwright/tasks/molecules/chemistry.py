"""What every task whose graphs are molecules says of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphwright.graphs import Graph
from graphwright.graphs.molecules import MoleculeError, smiles_from_graph
from graphwright.metrics.chemistry import chemistry_metrics
from graphwright.tasks.task import Extra


def chemistry_extras(predicted: Sequence[Graph], targets: Sequence[Graph]) -> list[Extra]:
    """Validity, same fingerprint, Tanimoto similarity."""
    found = chemistry_metrics(predicted, targets)
    return [
        Extra("validity", found.valid.astype(np.float64)),
        Extra("same_fingerprint", found.same_fingerprint.astype(np.float64)),
        Extra("tanimoto", found.tanimoto, share=False),
    ]


def smiles_or_none(graph: Graph) -> str | None:
    """SMILES; None where no molecule has this graph."""
    try:
        return smiles_from_graph(graph)
    except MoleculeError:
        return None
