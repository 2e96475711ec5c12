"""Molecules that have a fingerprint, put together from the environments that its bits allow.

No model is needed. Bits say which environments there may be (environments.py), an integer program how many of
each, a search how they are joined, and RDKit whether the molecule has the fingerprint. Several molecules may:
fingerprints do not count, and do not look further than two bonds.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from graphwright.decoding.valence import without_solver_noise
from graphwright.graphs.molecules import accepted
from graphwright.tasks.molecules.assembly.alphabet import AROMATIC, Alphabet, ring_systems
from graphwright.tasks.molecules.assembly.environments import Environments, environments_of
from graphwright.tasks.molecules.fingerprint import RADIUS, BitArray, active_bits

if TYPE_CHECKING:
    from rdkit.Chem import Mol


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
    """How many atoms of each environment a molecule with a fingerprint may have, the most usual first.

    An integer program: n_e atoms of environment e, at the least sum of costs, such that
    - every bit that is on is explained, sum of n_e over the environments that have it >= 1;
    - halves of bonds fit: as many atoms of s ask for t as atoms of t ask for s, over each type of bond, and an
      even number where s is t;
    - there are bonds enough to join all atoms, sum of n_e (degree_e - 2) >= -2, and at most `capacity` atoms.
    A solution that was looked at is cut off, and the program solved again.
    """

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
        # SciPy 1.11's solver takes indices of 32 bits alone.
        cells = rows.astype(np.int32), columns.astype(np.int32)
        matrix = csr_array((values, cells), shape=(len(self._rows), len(self._costs)))
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
        counts: Counts = result.x[: len(self._environments)].round().astype(np.int64)
        return counts


Bond = tuple[int, int, int]
"""First atom, second atom, type as the hash has it."""
AROMATIC_SIZES = (5, 6, 7)
_SIZES = (6, 5, 7, 3, 4, 8)
"""Sizes of rings, the commonest first."""
_USUAL = 2
"""Index of the last of these sizes to which a ring is closed before other atoms are tried."""


@dataclass(frozen=True)
class Skeleton:
    """Atoms, by environment, and the bonds between them."""

    environments: tuple[int, ...]
    bonds: tuple[Bond, ...]


def separate_parts(environments: Environments, counts: Counts) -> list[list[int]]:
    """The environments of a solution in groups between which no bond is asked for; one group if it may join."""
    used = np.flatnonzero(counts).tolist()
    links: dict[int, list[int]] = {at: [] for at in used}
    for first in used:
        for second in used:
            asks = any(other == environments.narrow[second] for _, other in environments.around[first])
            asked = any(other == environments.narrow[first] for _, other in environments.around[second])
            if asks and asked:
                links[first].append(second)
    parts, seen = [], set[int]()
    for start in used:
        if start in seen:
            continue
        part, waiting = [], [start]
        seen.add(start)
        while waiting:
            part.append(at := waiting.pop())
            fresh = [other for other in links[at] if other not in seen]
            seen.update(fresh)
            waiting += fresh
        parts.append(part)
    return parts


class Joining:
    """The ways to join the atoms of a solution, those with usual rings first.

    One connected part grows from the first atom on, so that atoms of an environment which are not in it yet are
    all the same, and only one of them is tried.
    """

    def __init__(self, environments: Environments, counts: Counts, steps: int, deadline: float) -> None:
        used = np.flatnonzero(counts).tolist()
        self._atoms = [at for at in used for _ in range(int(counts[at]))]
        self._narrow = [environments.narrow[at] for at in self._atoms]
        self._open = [list(environments.around[at]) for at in self._atoms]
        table = environments.alphabet
        self._ring = [bool(table.atoms[table.centres[own], 4]) for own in self._narrow]
        self._joined: list[dict[int, int]] = [{} for _ in self._atoms]
        self._part = [0]
        self._steps, self._deadline = steps, deadline
        self.spent = False
        """Whether steps or time ended before the search did."""

    def skeletons(self) -> Iterator[Skeleton]:
        """Connected simple graphs in which every half of a bond has its other half, until the steps are spent."""
        self._steps -= 1
        if self._steps < 0 or time.perf_counter() > self._deadline:
            self.spent = True
            return
        chosen = self._next_half()
        if chosen is None:
            if len(self._part) == len(self._atoms):
                yield self._skeleton()
            return
        atom, bond, partners = chosen
        for partner in partners:
            fresh = not self._joined[partner] and partner != self._part[0]
            self._join(atom, partner, bond)
            if fresh:
                self._part.append(partner)
            yield from self.skeletons()
            if fresh:
                self._part.pop()
            self._separate(atom, partner, bond)

    def _skeleton(self) -> Skeleton:
        bonds = (
            (first, second, bond)
            for first, joined in enumerate(self._joined)
            for second, bond in joined.items()
            if first < second
        )
        return Skeleton(tuple(self._atoms), tuple(bonds))

    def _next_half(self) -> tuple[int, int, list[int]] | None:
        """The half of a bond with the fewest partners, at the atom that came last; None where all are joined."""
        best: tuple[int, int, list[int]] | None = None
        inside = set(self._part)
        for atom in reversed(self._part):
            for bond, wanted in set(self._open[atom]):
                partners = self._partners(atom, bond, wanted, inside)
                if best is None or len(partners) < len(best[2]):
                    best = atom, bond, partners
                    if len(partners) < 2:
                        return best
        return best

    def _partners(self, atom: int, bond: int, wanted: int, inside: set[int]) -> list[int]:
        """Atoms that the half of a bond may go to: those that close a usual ring first."""
        back = (bond, self._narrow[atom])
        fresh, closing = dict[int, int](), list[tuple[int, int]]()
        paths: dict[int, list[int]] | None = None
        for other, narrow in enumerate(self._narrow):
            if narrow != wanted or other == atom or other in self._joined[atom] or back not in self._open[other]:
                continue
            if other not in inside:
                fresh.setdefault(self._atoms[other], other)
            elif self._ring[atom] and self._ring[other]:
                paths = self._paths(atom) if paths is None else paths
                path = paths[other]
                if bond != AROMATIC or self._may_be_aromatic(path):
                    closing.append((_rarity(len(path)), other))
        closing.sort()
        usual = [other for rarity, other in closing if rarity <= _USUAL]
        return [*usual, *fresh.values(), *(other for rarity, other in closing if rarity > _USUAL)]

    def _may_be_aromatic(self, ring: list[int]) -> bool:
        """Whether the ring is, or bonds that are still open may split it into, rings that are aromatic."""
        if len(ring) in AROMATIC_SIZES:
            return True
        if len(ring) < min(AROMATIC_SIZES):
            return False
        left = [sum(bond == AROMATIC for bond, _ in self._open[atom]) for atom in ring]
        return sum(left) > 2  # the ends have one each for the bond itself

    def _paths(self, start: int) -> dict[int, list[int]]:
        """A shortest way to every atom of the part."""
        paths, waiting = {start: [start]}, [start]
        for atom in waiting:
            for other in self._joined[atom]:
                if other not in paths:
                    paths[other] = [*paths[atom], other]
                    waiting.append(other)
        return paths

    def _join(self, first: int, second: int, bond: int) -> None:
        self._joined[first][second] = self._joined[second][first] = bond
        self._open[first].remove((bond, self._narrow[second]))
        self._open[second].remove((bond, self._narrow[first]))

    def _separate(self, first: int, second: int, bond: int) -> None:
        del self._joined[first][second], self._joined[second][first]
        self._open[first].append((bond, self._narrow[second]))
        self._open[second].append((bond, self._narrow[first]))


def _rarity(size: int) -> int:
    """How unusual rings of a size are."""
    return _SIZES.index(size) if size in _SIZES else size + len(_SIZES)


def molecule_of(skeleton: Skeleton, environments: Environments) -> Mol | None:
    """The molecule, with the hydrogens and charges of its environments; None where RDKit refuses it."""
    from rdkit import Chem

    table = environments.alphabet
    types = {
        1: Chem.BondType.SINGLE,
        2: Chem.BondType.DOUBLE,
        3: Chem.BondType.TRIPLE,
        AROMATIC: Chem.BondType.AROMATIC,
    }
    molecule = Chem.RWMol()
    aromatic = {atom for *ends, bond in skeleton.bonds if bond == AROMATIC for atom in ends}
    for at, environment in enumerate(skeleton.environments):
        number, _, hydrogens, charge, _ = table.atoms[table.centres[environments.narrow[environment]]].tolist()
        atom = Chem.Atom(number)
        atom.SetFormalCharge(charge)
        atom.SetNumExplicitHs(hydrogens)
        atom.SetNoImplicit(True)
        atom.SetIsAromatic(at in aromatic)
        molecule.AddAtom(atom)
    for first, second, bond in skeleton.bonds:
        molecule.AddBond(first, second, types[bond])
        if bond == AROMATIC:
            molecule.GetBondBetweenAtoms(first, second).SetIsAromatic(True)
    return accepted(molecule)


LARGER = 3
"""Halves of a capacity: how many atoms a molecule may have that shows that it does not fit."""


@dataclass(frozen=True)
class Limits:
    """How far to look.

    molecules: that are enough. programs: solved at most. barren: programs in a row that gave no new molecule,
    after which no more are sought if there is one. steps: of the search that joins the atoms of one solution.
    seconds: after which nothing more is begun; the other limits are mostly met before, so that an answer does not
    depend on how busy the machine is.
    """

    molecules: int = 20
    programs: int = 60
    barren: int = 6
    steps: int = 3000
    seconds: float = 8.0

    def __post_init__(self) -> None:
        for name in ("molecules", "programs", "barren", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.seconds >= 0:
            raise ValueError(f"seconds must not be negative, got {self.seconds}")


@dataclass(frozen=True, eq=False)
class Assembled:
    """A molecule with exactly the asked fingerprint; cost: how unusual what it is made of is, in nats."""

    molecule: Mol
    smiles: str
    cost: float


@dataclass(frozen=True, eq=False)
class Assembly:
    """The molecules found, the most usual first.

    complete: there are no others of known environments. unexplained: bits that no environment has.
    """

    molecules: tuple[Assembled, ...]
    complete: bool
    unexplained: frozenset[int] = frozenset()


def assemble(asked: BitArray, alphabet: Alphabet, capacity: int, limits: Limits | None = None) -> Assembly:
    """Molecules of at most `capacity` heavy atoms that have exactly these bits on.

    Environments that the alphabet does not have are thought of only where those that it has give no molecule.
    """
    limits = limits or Limits()
    if len(asked) > capacity * (RADIUS + 1):
        return Assembly((), complete=True)  # an atom has a bit of each radius at most
    deadline = time.perf_counter() + limits.seconds
    # An atom without neighbours has no bonds to put together, and one bit.
    lone = _lone_atoms(asked, alphabet)
    if lone:
        return Assembly(lone, complete=True)
    unexplained: frozenset[int] = frozenset()
    try:
        assembly = _assembled(environments_of(asked, alphabet, deadline=deadline), capacity, limits, deadline)
        if assembly.molecules or time.perf_counter() > deadline:
            return assembly
        unexplained = assembly.unexplained
        invented = environments_of(asked, alphabet, inventive=True, deadline=deadline)
        return _assembled(invented, capacity, limits, deadline)
    except TimeoutError:
        return Assembly((), complete=False, unexplained=unexplained)


def needs_more_atoms(asked: BitArray, alphabet: Alphabet, capacity: int, seconds: float) -> bool:
    """Whether a molecule with these bits was found that has more than `capacity` atoms."""
    larger = assemble(asked, alphabet, LARGER * capacity // 2, Limits(molecules=1, seconds=seconds))
    return any(each.molecule.GetNumAtoms() > capacity for each in larger.molecules)


def _lone_atoms(asked: BitArray, alphabet: Alphabet) -> tuple[Assembled, ...]:
    """Methane, water and their like: single atoms of the alphabet's elements with nothing but hydrogens."""
    from rdkit import Chem

    if len(asked) != 1:
        return ()
    molecules: dict[str, Assembled] = {}
    for number in np.unique(alphabet.atoms[alphabet.centres, 0]).tolist():
        atom = Chem.RWMol()
        atom.AddAtom(Chem.Atom(number))
        molecule = accepted(atom)
        if molecule is not None and np.array_equal(active_bits(molecule), asked):
            _add(molecules, molecule, 0.0, alphabet)
    return tuple(molecules.values())


def _assembled(environments: Environments, capacity: int, limits: Limits, deadline: float) -> Assembly:
    if environments.unexplained or not len(environments):
        return Assembly((), complete=True, unexplained=environments.unexplained)
    molecules: dict[str, Assembled] = {}
    program = CountProgram(environments, capacity)
    barren, complete = 0, True
    for tried, counts in enumerate(program.solutions(deadline), 1):
        parts = separate_parts(environments, counts)
        before = len(molecules)
        if len(parts) > 1:
            for part in parts:
                program.connect(part)
        else:
            joining = Joining(environments, counts, limits.steps, deadline)
            for skeleton in joining.skeletons():
                molecule = molecule_of(skeleton, environments)
                if molecule is not None and np.array_equal(active_bits(molecule), environments.asked):
                    _add(molecules, molecule, usual_cost(environments, counts), environments.alphabet)
                    if len(molecules) == limits.molecules:
                        break
            complete &= not joining.spent
        barren = 0 if len(molecules) > before or not molecules else barren + 1
        if limits.molecules == len(molecules) or tried == limits.programs or barren == limits.barren:
            break
    in_order = tuple(sorted(molecules.values(), key=lambda each: each.cost))
    return Assembly(in_order, complete=complete and program.exhausted)


def _add(molecules: dict[str, Assembled], molecule: Mol, cost: float, alphabet: Alphabet) -> None:
    """Keep the molecule if it is new."""
    from rdkit import Chem

    smiles = Chem.MolToSmiles(molecule)
    if smiles not in molecules:
        rings = alphabet.rings.costs(np.array(ring_systems(molecule), np.uint32))
        molecules[smiles] = Assembled(molecule, smiles, cost + float(rings.sum()))
