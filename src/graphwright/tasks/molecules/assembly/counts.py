"""How many atoms of each environment a molecule with a fingerprint may have, the most usual first.

An integer program: n_e atoms of environment e, at the least sum of costs, such that
- every bit that is on is explained, sum of n_e over the environments that have it >= 1;
- halves of bonds fit: as many atoms of s ask for t as atoms of t ask for s, over each type of bond, and an even
  number where s is t;
- there are bonds enough to join all atoms, sum of n_e (degree_e - 2) >= -2, and at most `capacity` atoms.
A solution that was looked at is cut off, and the program solved again.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from graphwright.decoding.valence import without_solver_noise
from graphwright.tasks.molecules.assembly.environments import Environments

Counts = NDArray[np.int64]
INFEASIBLE = 2
"""What `milp` says where there is no solution."""
_Row = dict[int, float]
REPEATED = 0.7
"""What another atom of an environment costs, in nats, after the first: fingerprints do not count."""


def usual_cost(environments: Environments, counts: Counts) -> float:
    """What a solution costs: each environment once, and a little for every atom more of it."""
    used = counts > 0
    return float(environments.costs[used].sum() + REPEATED * (counts[used] - 1).sum())


class CountProgram:
    """The program of one fingerprint, with the cuts made so far."""

    def __init__(self, environments: Environments, capacity: int) -> None:
        self.exhausted = False
        """Whether all solutions were given."""
        self._environments = environments
        self._capacity = capacity
        self._costs = [REPEATED] * len(environments)
        self._upper = [float(capacity)] * len(environments)
        self._rows: list[_Row] = []
        self._low: list[float] = []
        self._high: list[float] = []
        for at, cost in enumerate(environments.costs):
            used = self._variable(1.0, cost - REPEATED)
            self._require({at: 1.0, used: -float(capacity)}, -np.inf, 0)
        self._explain()
        self._fit()
        self._require(dict.fromkeys(range(len(environments)), 1.0), 1, capacity)
        degrees = [len(around) for around in environments.around]
        self._require({at: degree - 2.0 for at, degree in enumerate(degrees)}, -2, np.inf)

    def solutions(self, deadline: float) -> Iterator[Counts]:
        """The counts by increasing cost, until there are no more or the deadline (of `perf_counter`) has come.

        Whoever takes one may cut off more than it with `connect` before the next.
        """
        while (left := deadline - time.perf_counter()) > 0:
            counts = self._solve(left)
            if counts is None:
                return
            yield counts
            self._forbid(counts)

    def connect(self, part: Sequence[int]) -> None:
        """Cut off solutions in which atoms of these environments are joined to one another alone."""
        inside = set(part)
        types = {self._environments.narrow[at] for at in part}
        asked = {other for at in part for _, other in self._environments.around[at]}
        leaving = [
            at
            for at in range(len(self._environments))
            if at not in inside
            and self._environments.narrow[at] in asked
            and any(other in types for _, other in self._environments.around[at])
        ]
        row = dict.fromkeys(leaving, float(self._capacity)) | dict.fromkeys(part, -1.0)
        self._require(row, 0, np.inf)

    def _require(self, row: _Row, low: float, high: float) -> None:
        self._rows.append(row)
        self._low.append(low)
        self._high.append(high)

    def _variable(self, upper: float, cost: float = 0.0) -> int:
        self._costs.append(cost)
        self._upper.append(upper)
        return len(self._costs) - 1

    def _explain(self) -> None:
        having: dict[int, list[int]] = defaultdict(list)
        for at, bits in enumerate(self._environments.bits):
            for bit in bits:
                having[bit].append(at)
        for bit in self._environments.asked.tolist():
            self._require(dict.fromkeys(having[bit], 1.0), 1, np.inf)

    def _fit(self) -> None:
        rows: dict[tuple[int, int, int], _Row] = defaultdict(lambda: defaultdict(float))
        for at, (own, around) in enumerate(zip(self._environments.narrow, self._environments.around, strict=True)):
            for (bond, other), count in Counter(around).items():
                first, second = sorted((own, other))
                rows[first, bond, second][at] += count if own == first else -count
        for (first, _, second), row in rows.items():
            if first == second:
                row[self._variable(self._capacity * 3.0)] = -2.0
            self._require(dict(row), 0, 0)

    def _forbid(self, counts: Counts) -> None:
        """Cut off one solution: some environment has more atoms, or fewer."""
        row: _Row = {at: 1.0 for at in range(len(counts)) if not counts[at]}
        for at in np.flatnonzero(counts).tolist():
            more, fewer = self._variable(1.0), self._variable(1.0)
            count, most = float(counts[at]), float(self._capacity)
            self._require({at: 1.0, more: -count - 1}, 0, np.inf)
            self._require({at: 1.0, fewer: most - count + 1}, -np.inf, most)
            row |= {more: 1.0, fewer: 1.0}
        self._require(row, 1, np.inf)

    def _solve(self, seconds: float) -> Counts | None:
        """The cheapest counts; None where there are no more, or where the solver gave up."""
        entries = [(at, column, value) for at, row in enumerate(self._rows) for column, value in row.items()]
        rows, columns, values = (np.array(each) for each in zip(*entries, strict=True))
        matrix = csr_array((values, (rows, columns)), shape=(len(self._rows), len(self._costs)))
        with without_solver_noise():
            result = milp(
                np.array(self._costs),
                integrality=np.ones(len(self._costs), np.int64),
                bounds=Bounds(0, np.array(self._upper)),
                constraints=LinearConstraint(matrix, np.array(self._low), np.array(self._high)),
                options={"time_limit": seconds},
            )
        if result.x is None:
            # Time and numerical trouble leave no solution either, but then there may be one.
            self.exhausted = result.status == INFEASIBLE
            return None
        found: Counts = result.x[: len(self._environments)].round().astype(np.int64)
        return found
