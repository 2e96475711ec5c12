"""`python -m supply_chain.constraints`: the exact versions installed here of all that pyproject.toml needs."""

from __future__ import annotations

from packaging.requirements import Requirement

from supply_chain.requirements import closure, declared

HEAD = """\
# The exact versions that `make` installs and the tests run with; pyproject.toml has the ranges that are allowed.
# Written by `make constraints`.
"""
BUILD = ("pip", "setuptools")
"""What installs and builds the package."""


def constraints() -> str:
    """One line a package, torch without where it was built."""
    asked = [each for extra in declared().values() for each in extra]
    pinned = closure([*asked, *map(Requirement, BUILD)])
    return HEAD + "".join(f"{each.name}=={each.version}\n" for each in pinned.values())


if __name__ == "__main__":
    print(constraints(), end="")
