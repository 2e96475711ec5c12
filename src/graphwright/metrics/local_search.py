"""Better alignments by exchanging two slots at a time."""

from __future__ import annotations

import numpy as np

from graphwright.graphs.graph import IntArray
from graphwright.metrics.pairs import FloatArray, GraphPairs, edge_channels


def improve(pairs: GraphPairs, alignment: IntArray) -> IntArray:
    """(b, n) alignments that no exchange of two slots makes cheaper, from alignments (b, n).

    Every round prices all n (n - 1) / 2 exchanges of every pair at once and makes the best one.
    """
    alignment = alignment.copy()
    active = np.arange(len(pairs) if pairs.slots > 1 else 0)
    while len(active):
        changes = swap_changes(pairs, alignment[active]).reshape(len(active), -1)
        best = changes.argmin(1)
        better = np.flatnonzero(changes[np.arange(len(active)), best] < 0)
        i, j = np.divmod(best[better], pairs.slots)
        active, pairs = active[better], pairs.take(better)
        alignment[active, i], alignment[active, j] = alignment[active, j], alignment[active, i]
    return alignment


def swap_changes(pairs: GraphPairs, alignment: IntArray) -> FloatArray:
    """(b, n, n) change of the cost of alignments (b, n) when left slots i and j exchange their partners.

    With the right graph in the order of the left slots and `D_ij = [l_i != r_j] + sum_k [L_ik != R_jk]`, the
    change is `D_ij + D_ji - D_ii - D_jj`, but for what these say of the edge ij itself, which is not affected:
    `D_ij` and `D_ji` each count [L_ij > 0] + [R_ij > 0] for it, `D_ii` and `D_jj` each count [L_ij != R_ij].
    """
    b, n = alignment.shape
    right = pairs.aligned_right_edges(alignment)
    wide_left = pairs.left_channels.transpose(0, 2, 1, 3).reshape(b, n, -1)
    wide_right = edge_channels(right, pairs.edge_classes).transpose(0, 2, 1, 3).reshape(b, n, -1)
    left_present, right_present = pairs.left_edges > 0, right > 0
    D = np.take_along_axis(pairs.label_costs, alignment[:, None, :], axis=2)
    D -= wide_left @ wide_right.mT
    D += left_present.sum(2, dtype=np.float32)[:, :, None]
    D += right_present.sum(2, dtype=np.float32)[:, None, :]
    before = np.einsum("bii->bi", D)
    itself = left_present.astype(np.float32) + right_present - (pairs.left_edges != right)
    changes: FloatArray = D + D.mT - before[:, :, None] - before[:, None, :] - 2 * itself
    return changes
