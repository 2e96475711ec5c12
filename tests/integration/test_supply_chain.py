"""Exact versions, ranges, licences, and the core alone."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply_chain.licences import rows
from supply_chain.lowest import bound, lowest
from supply_chain.requirements import CORE, TOOLS, closure, declared

ROOT = Path(__file__).parents[2]
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
ASKED = {str(each): each for found in declared().values() for each in found}


@pytest.mark.parametrize("name", ASKED)
def test_a_range_has_a_pin_and_both_agree(name):
    asked = ASKED[name]
    assert asked.specifier.contains(PINS[canonicalize_name(asked.name)])


def test_these_tests_run_with_the_pinned_versions():
    found = closure(list(ASKED.values()))
    assert {name: each.version for name, each in found.items()} == {name: PINS.get(name) for name in found}


def test_what_make_installs_is_pinned():
    recipe = (ROOT / "Makefile").read_text()
    installs = re.findall(r"-m pip install (.*)", recipe)
    assert any("--constraint constraints.txt" in line and ".[dev]" in line for line in installs)
    assert f"torch=={PINS['torch']}" in recipe
    assert f"pip=={PINS['pip']}" in recipe


def test_every_range_of_a_user_has_a_lowest_version():
    users = [each for extra, found in declared().items() if extra not in TOOLS for each in found]
    assert len(lowest()) == len({each.name for each in users})
    with pytest.raises(ValueError, match="no lowest version"):
        bound(Requirement("something<3"))


def test_the_list_of_licences_is_that_of_this_environment():
    page = (ROOT / "docs/licences.md").read_text()
    missing = [str(row) for row in rows() if not TOOLS.issuperset(row.needed_by) and str(row) not in page]
    assert missing == [], "make licences"


def test_the_core_works_with_its_own_dependencies_alone():
    """Everything else that is installed here cannot be imported."""
    allowed = {*closure(declared()[CORE]), "graphwright"}
    others = sorted(
        module
        for module, owners in packages_distributions().items()
        if not any(canonicalize_name(owner) in allowed for owner in owners)
    )
    assert {"rdkit", "matplotlib", "PIL", "fastapi", "lightning", "yaml", "ot"} <= {*others}
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {set(others)!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from supply_chain import core_check\n"
        "core_check.main()\n"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    assert "the core works" in result.stdout
