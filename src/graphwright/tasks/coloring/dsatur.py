"""A random proper four-colouring: DSATUR with backtracking."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

_PREFERENCES = tuple(permutations(range(4)))


def four_coloring(adjacent: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """(n,) colours 0..3, different wherever `adjacent` (n, n, symmetric) is true.

    DSATUR (Brélaz, 1979): colour next the node whose neighbours show most colours, ties and colours at
    random; go back where no colour is left. A search that goes back often was unlucky in its first choices,
    so past a limit it starts anew with others and twice the limit: no heavy tail, and always an answer.
    """
    count = len(adjacent)
    limit = 4 * count
    while True:
        order = rng.permutation(count)
        codes = rng.integers(len(_PREFERENCES), size=count)
        preferences = [_PREFERENCES[code] for code in codes.tolist()]
        found = _search(_bits(adjacent[order][:, order]), preferences, limit)
        if found is not None:
            colors = np.empty(count, np.int64)
            colors[order] = found
            return colors
        limit *= 2


def _bits(rows: NDArray[np.bool_]) -> list[int]:
    """Each row (n,) as an integer, column j as bit j."""
    packed = np.packbits(rows, axis=1, bitorder="little")
    data, width = packed.tobytes(), packed.shape[1]
    return [int.from_bytes(data[at * width : (at + 1) * width], "little") for at in range(len(rows))]


def _search(neighbors: list[int], preferences: list[tuple[int, ...]], limit: int) -> list[int] | None:
    """Colours of all nodes, or None after going back `limit` times; an error if there is no colouring.

    Sets of nodes are bits of an integer. neighbors: of each node. preferences: colours, the last tried first.
    """
    colors = [0] * len(neighbors)
    uncolored = (1 << len(neighbors)) - 1
    blocked = [0, 0, 0, 0]  # by colour: the nodes next to it
    trail: list[tuple[int, list[int], int, list[int]]] = []
    while uncolored:
        chosen = _most_saturated(blocked, uncolored)
        node = (chosen & -chosen).bit_length() - 1
        free = [color for color in preferences[node] if not blocked[color] >> node & 1]
        while not free:
            if not trail:
                raise ValueError("the graph has no proper four-colouring")
            if limit == 0:
                return None
            limit -= 1
            node, free, uncolored, blocked = trail.pop()
        colors[node] = color = free.pop()
        trail.append((node, free, uncolored, blocked))
        uncolored &= ~(1 << node)
        blocked = blocked.copy()
        blocked[color] |= neighbors[node]
    return colors


def _most_saturated(blocked: list[int], uncolored: int) -> int:
    """The uncoloured nodes next to most colours, as bits."""
    a, b, c, d = blocked
    both, either, both_, either_ = a & b, a | b, c & d, c | d
    return (
        both & both_ & uncolored
        or (both & either_ | either & both_) & uncolored
        or (both | both_ | either & either_) & uncolored
        or (either | either_) & uncolored
        or uncolored
    )
