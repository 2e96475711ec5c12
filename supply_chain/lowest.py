"""`python -m supply_chain.lowest`: the lowest versions that pyproject.toml allows, as constraints."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply_chain.requirements import TOOLS, declared


def lowest() -> list[str]:
    """One line for each package that graphwright needs or can use, its developers' tools left out."""
    asked = [each for extra, needed in declared().items() if extra not in TOOLS for each in needed]
    return sorted({f"{canonicalize_name(each.name)}=={bound(each)}" for each in asked})


def bound(asked: Requirement) -> str:
    """The version after `>=`."""
    bounds = [each.version for each in asked.specifier if each.operator == ">="]
    if len(bounds) != 1:
        raise ValueError(f"{asked} has no lowest version")
    return bounds[0]


if __name__ == "__main__":
    print("\n".join(lowest()))
