"""`python -m supply_chain.licences > docs/licences.md`: every package that graphwright needs, with its licence."""

from __future__ import annotations

import re
from dataclasses import dataclass

from supply_chain.requirements import CORE, TOOLS, Installed, closure, declared

HEAD = """\
# Licences of dependencies

graphwright itself is under the MIT licence and includes no other package's code. This is what `make` installs
beside it, with the licence that each package states of itself; written by `make licences`. A build of torch for
GPUs comes with further packages under NVIDIA's terms.

"""
COLUMNS = "| package | version | licence | for |\n|---|---|---|---|\n"
LONGEST = 60
"""Characters of a licence's name."""
CLASSIFIER = "License :: "


@dataclass(frozen=True)
class Row:
    """needed_by: the extras that ask for it, the core's under an empty name."""

    package: Installed
    needed_by: tuple[str, ...]

    def __str__(self) -> str:
        extras = ", ".join(f"`{extra}`" if extra else "the core" for extra in self._shown())
        return f"| {self.package.name} | {self.package.version} | {licence(self.package)} | {extras} |\n"

    def _shown(self) -> tuple[str, ...]:
        """Whoever has the core has what the core needs."""
        return (CORE,) if CORE in self.needed_by else self.needed_by


def rows() -> list[Row]:
    """A row for each package, those that only developers need last."""
    needs = {extra: closure(asked) for extra, asked in declared().items()}
    packages = {name: each for group in needs.values() for name, each in group.items()}
    listed = [
        Row(each, tuple(extra for extra, closed in needs.items() if name in closed))
        for name, each in sorted(packages.items())
    ]
    return sorted(listed, key=lambda row: TOOLS.issuperset(row.needed_by))


def licence(each: Installed) -> str:
    """An SPDX expression where the package gives one, else its own word, else its classifiers."""
    facts = each.metadata.metadata
    if "License-Expression" in facts:
        return facts["License-Expression"]
    lines = facts["License"].strip().splitlines() if "License" in facts else []
    if len(lines) == 1 and len(lines[0]) <= LONGEST and lines[0].upper() != "UNKNOWN":
        return re.sub(r"[|<>]", " ", lines[0])
    # Of those that give the whole text, or nothing.
    classified = [text.rpartition(" :: ")[2] for text in facts.get_all("Classifier") or [] if CLASSIFIER in text]
    return ", ".join(classified) or "not stated in a word"


def page() -> str:
    """The page of the documentation."""
    return HEAD + COLUMNS + "".join(map(str, rows()))


if __name__ == "__main__":
    print(page(), end="")
