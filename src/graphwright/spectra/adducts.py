"""Adducts: from a molecule's formula to the ion that is measured, and its m/z."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from graphwright.spectra.elements import ELECTRON_MASS
from graphwright.spectra.formula import Formula, parse_formula

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
    added: Formula
    removed: Formula
    charge: int
    name: str

    def ion(self, molecule: Formula) -> Formula:
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
    found = _ADDUCT.fullmatch(bare)
    if not found or (bare[0] in "[(") != any(mark in bare[1:] for mark in "])"):
        raise ValueError(f"adduct {text[:40]!r} is not understood; expected the form [M+H]+")
    molecules, middle, before, signs, sign, after = found.groups()
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
    plus, minus = Formula.of(added), Formula.of(removed)
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
