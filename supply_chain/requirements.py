"""What pyproject.toml asks for, and what of it is installed here."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
NAME = "graphwright"
CORE = ""
TOOLS = frozenset({"dev", "fuzz"})
"""The extras of which nothing is needed to use the package."""


def declared(root: Path = ROOT) -> dict[str, list[Requirement]]:
    """By extra, the core's under an empty name; references to our own extras left out."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    asked = {CORE: project["dependencies"], **project["optional-dependencies"]}
    return {
        extra: [each for each in map(Requirement, lines) if each.name != NAME] for extra, lines in asked.items()
    }


@dataclass(frozen=True)
class Installed:
    """A distribution of this environment."""

    name: str
    version: str
    metadata: Distribution

    @classmethod
    def of(cls, name: str) -> Installed:
        installed = distribution(name)
        # A local part, +cpu for instance, says where it was built, not what.
        return cls(canonicalize_name(installed.metadata["Name"]), installed.version.partition("+")[0], installed)


def closure(requirements: list[Requirement]) -> dict[str, Installed]:
    """What these need, and what that needs, and so on, as it is installed here; by name, in order.

    What is not installed is not needed on this machine, or by the build of a package that it has.
    """
    needed: dict[str, Installed] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    open_ones = list(requirements)
    while open_ones:
        asked = open_ones.pop()
        key = (canonicalize_name(asked.name), frozenset(asked.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            each = Installed.of(asked.name)
        except PackageNotFoundError:
            continue
        needed[each.name] = each
        open_ones += _needs(each, asked.extras)
    return dict(sorted(needed.items()))


def _needs(each: Installed, extras: set[str]) -> Iterator[Requirement]:
    for line in each.metadata.requires or []:
        asked = Requirement(line)
        if asked.marker is None or any(asked.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield asked
