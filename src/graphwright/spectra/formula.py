"""Elements, formulas and adducts: counts of atoms, and what they weigh."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

# Mass in Da of the most abundant isotope (Atomic Mass Evaluation 2020); D is deuterium.
MASS = {
    "H": 1.007825031898,
    "D": 2.014101777844,
    "Li": 7.016003434,
    "B": 11.009305167,
    "C": 12.0,
    "N": 14.003074004251,
    "O": 15.994914619257,
    "F": 18.998403162067,
    "Na": 22.989769281951,
    "Mg": 23.985041689,
    "Al": 26.981538408,
    "Si": 27.976926534424,
    "P": 30.973761997677,
    "S": 31.972071173538,
    "Cl": 34.968852694,
    "K": 38.963706484822,
    "Ca": 39.962590850,
    "Ti": 47.947940932,
    "V": 50.943957664,
    "Cr": 51.940504714,
    "Mn": 54.938043040,
    "Fe": 55.934935537,
    "Co": 58.933193523,
    "Ni": 57.935341650,
    "Cu": 62.929597119,
    "Zn": 63.929141776,
    "Ga": 68.925573531,
    "Ge": 73.921177760,
    "As": 74.921594562,
    "Se": 79.916521761,
    "Br": 78.918337601,
    "Mo": 97.905403609,
    "Pd": 105.903480287,
    "Ag": 106.905091509,
    "Cd": 113.903364998,
    "Sn": 119.902202557,
    "Sb": 120.903811353,
    "Te": 129.906222745,
    "I": 126.904471853,
    "Pt": 194.964791719,
    "Au": 196.966568786,
    "Hg": 201.970643604,
    "Tl": 204.974427801,
    "Pb": 207.976652005,
    "Bi": 208.980398599,
}

ELECTRON_MASS = 0.000548579909065

# Usual number of bonds. The higher valences of S and P need no entry: their extra bonds go to oxygen, which
# takes two and so leaves the count of rings and double bonds as it was.
VALENCE = {
    **dict.fromkeys(["H", "D", "Li", "Na", "K", "F", "Cl", "Br", "I", "Ag", "Au", "Tl"], 1),
    **dict.fromkeys(["O", "S", "Se", "Te", "Mg", "Ca", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Pd", "Cd", "Hg"], 2),
    **dict.fromkeys(["B", "N", "Al", "P", "Cr", "V", "Ga", "As", "Sb", "Bi"], 3),
    **dict.fromkeys(["C", "Si", "Ti", "Ge", "Mo", "Sn", "Pt", "Pb"], 4),
}


_TOKEN = re.compile(r"([A-Z][a-z]?)([0-9]*)|(\()|\)([0-9]*)")
# Digits before the sign belong to the charge only after a bracket or a caret: C5H12N2+ has two nitrogens.
_CHARGE = re.compile(r"(?:\]\^?[0-9]*|\^[0-9]*)?[+-]+[0-9]*$")
MOST_ATOMS = 100_000


@dataclass(frozen=True)
class Composition:
    """Atoms of a molecule or ion, (element, count) in Hill order, counts positive."""

    counts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Composition:
        """From counts by element; elements of count 0 are left out, negative counts refused."""
        for element, count in counts.items():
            if element not in MASS:
                raise ValueError(f"unknown element {element!r}")
            if count < 0:
                raise ValueError(f"{-count} more {element} taken away than there are")
        carbon = counts.get("C", 0) > 0
        order = sorted(counts, key=lambda element: (carbon and "CH".find(element) % 3, element))
        return cls(tuple((element, counts[element]) for element in order if counts[element]))

    def count(self, element: str) -> int:
        """Number of atoms of an element."""
        return dict(self.counts).get(element, 0)

    @property
    def mass(self) -> float:
        """Monoisotopic mass in Da of the neutral atoms."""
        return sum(MASS[element] * count for element, count in self.counts)

    @property
    def double_bond_equivalents(self) -> float:
        """Rings and double bonds, 1 + sum of count * (valence - 2) / 2; a half for an even-electron ion."""
        return 1 + sum(count * (VALENCE[element] - 2) for element, count in self.counts) / 2

    def __str__(self) -> str:
        return "".join(f"{element}{count if count > 1 else ''}" for element, count in self.counts)

    def __add__(self, other: Composition) -> Composition:
        return Composition.of(Counter(dict(self.counts)) + Counter(dict(other.counts)))

    def __sub__(self, other: Composition) -> Composition:
        counts = dict(self.counts)
        for element, count in other.counts:
            counts[element] = counts.get(element, 0) - count
        return Composition.of(counts)

    def __mul__(self, times: int) -> Composition:
        return Composition.of({element: times * count for element, count in self.counts})


def parse_formula(text: str) -> Composition:
    """`C9H8O4`; also `Ca(OH)2`, salts, `C6H7N.2ClH`, and a written charge, `[C5H12N]+`, which is ignored."""
    whole = _CHARGE.sub("", text.strip())
    whole = whole.removeprefix("[") if whole.count("[") > whole.count("]") else whole
    total: Counter[str] = Counter()
    for part in re.split(r"[.·*]", whole):
        times = re.match(r"[0-9]*", part)
        assert times is not None
        atoms = _parse_part(part[times.end() :], text)
        for element, count in atoms.items():
            total[element] += count * _number(times.group(), text)
    if not any(total.values()):
        raise ValueError(f"formula {_shown(text)} has no atoms")
    if sum(total.values()) > MOST_ATOMS:
        raise ValueError(f"formula {_shown(text)} has more than {MOST_ATOMS:,} atoms")
    return Composition.of(total)


def _parse_part(part: str, text: str) -> Counter[str]:
    """Counts of one part of a formula, without dots; `text` is the whole, for messages."""
    stack: list[Counter[str]] = [Counter()]
    at = 0
    while at < len(part):
        match = _TOKEN.match(part, at)
        if not match:
            raise ValueError(f"formula {_shown(text)} cannot be read at {part[at : at + 8]!r}")
        element, number, opened, closed = match.groups()
        if element and element not in MASS:
            raise ValueError(f"formula {_shown(text)} has an unknown element {element!r}")
        if element:
            stack[-1][element] += _number(number, text)
        elif opened:
            stack.append(Counter())
        elif len(stack) == 1:
            raise ValueError(f"formula {_shown(text)} closes a bracket that it did not open")
        else:
            inner = stack.pop()
            for name, count in inner.items():
                stack[-1][name] += count * _number(closed, text)
        at = match.end()
    if len(stack) > 1 or not stack[0]:
        raise ValueError(
            f"formula {_shown(text)} " + ("opens a bracket too many" if len(stack) > 1 else "is empty")
        )
    return stack[0]


def _number(digits: str, text: str) -> int:
    if len(digits) > 6:
        raise ValueError(f"formula {_shown(text)} has more than {MOST_ATOMS:,} atoms")
    return int(digits) if digits else 1


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


# Names of molecules that are written in place of their formula.
_NAMED = {
    "ACN": "C2H3N",
    "MeOH": "CH4O",
    "DMSO": "C2H6OS",
    "IsoProp": "C3H8O",
    "FA": "CH2O2",
    "HAc": "C2H4O2",
    "Hac": "C2H4O2",
    "HCOO": "CHO2",
    "Ac": "C2H3O2",
    "OAc": "C2H3O2",
    "TFA": "C2HF3O2",
}
_ADDUCT = re.compile(
    r"[\[(]?([0-9]?)M((?:[+-][0-9]?[A-Z][A-Za-z0-9()]*?)*)[\])]?\^?(?:([0-9]?)([+-]+)|([+-])([0-9]))?"
)
_TERM = re.compile(r"([+-])([0-9]?)([A-Za-z][A-Za-z0-9()]*)")
# What M alone with these becomes when a file does not write the charge.
_CATION_OF = {"H": 1, "Na": 1, "K": 1, "Li": 1, "NH4": 1, "Ag": 1, "Ca": 2}


@dataclass(frozen=True)
class Adduct:
    """`molecules` copies of the molecule, plus and minus atoms, of charge `charge` (not 0)."""

    molecules: int
    added: Composition
    removed: Composition
    charge: int
    name: str

    def ion(self, molecule: Composition) -> Composition:
        """Atoms of the ion; refuses a molecule that lacks what the adduct removes."""
        try:
            return molecule * self.molecules + self.added - self.removed
        except ValueError:
            raise ValueError(f"{molecule} has not the {self.removed} that {self.name} removes") from None

    def mz(self, mass: float) -> float:
        """m/z of the ion of a molecule of monoisotopic mass `mass`."""
        total = self.molecules * mass + self.added.mass - self.removed.mass - self.charge * ELECTRON_MASS
        return total / abs(self.charge)

    def mass(self, mz: float) -> float:
        """Monoisotopic mass of the molecule whose ion has this m/z."""
        ion = mz * abs(self.charge) + self.charge * ELECTRON_MASS
        return (ion - self.added.mass + self.removed.mass) / self.molecules


def parse_adduct(text: str) -> Adduct:
    """`[M+H]+`, `[2M+Na]+`, `[M-H2O+H]+`, `[M+2H]2+`, `[M+FA-H]-`, `M+H`, `[M]+*`; `name` is its usual form."""
    bare = re.sub(r"\s", "", text).replace("−", "-").rstrip("*.•")
    match = _ADDUCT.fullmatch(bare)
    if not match or (bare[0] in "[(") != any(mark in bare[1:] for mark in "])"):
        raise ValueError(f"adduct {text[:40]!r} is not understood; expected the form [M+H]+")
    molecules, middle, before, signs, sign, after = match.groups()
    terms = _TERM.findall(middle)
    # Without brackets, a last sign belongs to the charge: the pattern is lazy, so `M+H` keeps its H.
    if "".join(f"{sign}{times}{atoms}" for sign, times, atoms in terms) != middle:
        raise ValueError(f"adduct {text[:40]!r} is not understood; expected the form [M+H]+")
    added: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for direction, times, atoms in terms:
        side = added if direction == "+" else removed
        for element, count in parse_formula(_NAMED.get(atoms, atoms)).counts:
            side[element] += int(times or 1) * count
    plus, minus = Composition.of(added), Composition.of(removed)
    if signs or sign:
        size = int(before or after or len(signs))
        charge = size if (signs or sign)[0] == "+" else -size
    else:
        charge = _usual_charge(terms, text)
    if not charge or molecules == "0" or len(set(signs or "+")) > 1:
        raise ValueError(f"adduct {text[:40]!r} has no molecule or no charge")
    number = "" if abs(charge) == 1 else str(abs(charge))
    name = f"[{molecules}M{middle}]{number}{'+' if charge > 0 else '-'}"
    return Adduct(int(molecules or 1), plus, minus, charge, name)


def _usual_charge(terms: list[tuple[str, str, str]], text: str) -> int:
    """Charge of an adduct written without one, from the cations that it adds and the protons that it takes."""
    charge = 0
    for direction, times, atoms in terms:
        charge += _CATION_OF.get(atoms, 0) * int(times or 1) * (1 if direction == "+" else -1)
    if not charge:
        raise ValueError(f"adduct {text[:40]!r} does not say its charge")
    return charge


def usual_adduct_name(text: str) -> str:
    """The usual spelling of an adduct, or the text itself where it is not understood."""
    try:
        return parse_adduct(text).name
    except ValueError:
        return text.strip()
