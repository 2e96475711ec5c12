"""A molecule without a search: atoms joined one by one, for when the time for the best one is over."""

from __future__ import annotations

import numpy as np

from graphwright.decoding.formula import Formula
from graphwright.decoding.score import Assignment, SlotScores
from graphwright.decoding.validity import judge
from graphwright.graphs import Vocabulary


def greedy_molecule(scores: SlotScores, vocabulary: Vocabulary, formula: Formula | None) -> Assignment | None:
    """The plain decoder's atoms as a molecule, as far as each fits what is there already; None if not one does.

    It starts from the surest atom, adds the atom and bond that cost least, and in the end the bonds that close
    rings, taking whatever leaves a molecule. Aromatic bonds, which hold only together, are not tried.
    """
    n = scores.slots
    labels = scores.label_regrets.argmin(1)
    surest = int(scores.presence[:, 1].argmax())
    wanted = [slot for slot, (_, regret) in enumerate(scores.presence_regrets.tolist()) if not regret] or [surest]
    presence, edges = np.arange(n) == surest, np.zeros((n, n), np.int64)
    molecule = scores.assign(presence, labels, edges)
    if not judge(molecule, vocabulary, formula).valid:
        return None
    codes = [code for code, name in enumerate(vocabulary.edges) if code and name != "aromatic"]
    cost = scores.edge_regrets - scores.edge_regrets[:, :, :1]  # (n, n, classes), above that of no bond
    pairs = [(i, j) for at, i in enumerate(wanted) for j in wanted[at + 1 :]]
    options = sorted((float(cost[i, j, code]), i, j, code) for i, j in pairs for code in codes)

    def fits(i: int, j: int, code: int) -> Assignment | None:
        more, joined = presence.copy(), edges.copy()
        more[[i, j]] = True
        joined[i, j] = joined[j, i] = code
        found = scores.assign(more, labels, joined)
        return found if judge(found, vocabulary, formula).valid else None

    grown = True
    while grown:
        grown = False
        for _, i, j, code in options:
            if presence[i] != presence[j] and (found := fits(i, j, code)) is not None:
                molecule, presence, edges = found, found.presence, found.edges
                grown = True
                break
    for extra, i, j, code in options:
        if extra < 0 and presence[i] and presence[j] and not edges[i, j]:
            found = fits(i, j, code)
            if found is not None:
                molecule, edges = found, found.edges
    return molecule
