"""Why a molecule, or a graph that should be one, is refused."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something is not a molecule that a graph can stand for, or a graph not a molecule."""

    EMPTY = "empty"
    UNPARSABLE = "unparsable"
    UNSANITIZABLE = "unsanitizable"
    SEVERAL_FRAGMENTS = "several fragments"
    TOO_LARGE = "too large"
    UNKNOWN_ELEMENT = "unknown element"
    UNKNOWN_BOND = "unknown bond"
    NET_CHARGE = "net charge"


class MoleculeError(ValueError):
    """A molecule refused; `reason` is what refusals are counted by, `atoms` are those at fault where known."""

    def __init__(self, reason: Reason, detail: str, atoms: tuple[int, ...] = ()) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.atoms = atoms

    def __reduce__(self) -> tuple[type[MoleculeError], tuple[Reason, str, tuple[int, ...]]]:
        # The default would call the class with the joined message.
        return MoleculeError, (self.reason, self.detail, self.atoms)
